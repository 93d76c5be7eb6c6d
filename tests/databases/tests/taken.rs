//! Names that are taken, and servers that are taken away: the owner in the way is reported as far as the reader may know it,
//! with what to choose instead, and what is in use is not removed from under its users.

use conductor_databases::{Cluster, RealServer, SYSTEM};
use conductor_live::until;
use conductor_sql::command::undelete;
use conductor_sql_plan::sql::Dialect;
use kube::api::DeleteParams;
use serde_json::{Value, json};

const BOTH: [Dialect; 2] = [Dialect::Postgresql, Dialect::Mariadb];

fn named() -> Value {
    json!({"parameters": {"databaseName": "orders", "userName": "orders_app"}})
}

/// Waits until a claim's `Ready` condition contains a text, and returns it.
async fn reports(cluster: &Cluster, (namespace, name): (&str, &str), part: &str) -> String {
    until(&format!("claim {namespace}/{name} reports {part:?}"), async || {
        Some(cluster.readiness(namespace, name).await).filter(|message| message.contains(part))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_taken_name_is_reported_and_ones_own_database_is_restored() {
    for dialect in BOTH {
        let server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({"reclaimPolicy": "Retain"})).await;
        let controller = cluster.controller();
        let first = cluster.claim("app", "first", "main", named()).await;
        let login = cluster.login(dialect, "app", "first").await;
        login.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");

        let second = cluster.claim("app", "second", "main", named()).await;
        let message =
            reports(&cluster, ("app", "second"), "belongs to claim first: choose another parameters.").await;
        assert!(!message.contains("remove") && !message.contains("role c_"), "{message}");
        cluster.claim("bank", "third", "main", named()).await;
        let message =
            reports(&cluster, ("bank", "third"), "belongs to another claim: choose another parameters.")
                .await;
        assert!(!message.contains("first") && !message.contains("app/"), "{message}");

        // What the message advises helps: its own claim had nothing made yet.
        let other = json!({"parameters": {"databaseName": "bills", "userName": "bills_app"}});
        cluster.claim("bank", "third", "main", other).await;
        let login = cluster.login(dialect, "bank", "third").await;
        assert_eq!(login.get("database"), "bills");
        login.run("SELECT 1").await.expect("the login works");

        // What was never made is not kept.
        cluster.release("app", "second").await;
        until("its record is gone", async || cluster.record(&second).await.is_none().then_some(())).await;
        let left =
            cluster.secrets(SYSTEM).get_opt(&format!("login-{second}")).await.expect("the API answers");
        assert!(left.is_none(), "the Secret with the reason is left");
        cluster.release("bank", "third").await;

        cluster.release("app", "first").await;
        cluster.record_in(&first, "Retained").await;
        cluster.claim("app", "first", "main", named()).await;
        reports(&cluster, ("app", "first"), "run conductor undelete app/first").await;
        undelete(&cluster.client, SYSTEM, ("app", "first")).await.expect("it is kept");
        let again = cluster.login(dialect, "app", "first").await;
        assert_eq!(again.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "with its data");
        controller.stop().await.expect("it stops on request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_in_quarantine_keeps_its_name() {
    for dialect in BOTH {
        let server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 60})).await;
        let controller = cluster.controller();
        let only = json!({"parameters": {"databaseName": "orders"}});
        let first = cluster.claim("app", "first", "main", only.clone()).await;
        let login = cluster.login(dialect, "app", "first").await;
        login.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
        cluster.release("app", "first").await;
        cluster.record_in(&first, "Quarantined").await;

        cluster.claim("bank", "other", "main", only.clone()).await;
        reports(
            &cluster,
            ("bank", "other"),
            "belongs to another claim: choose another parameters.databaseName",
        )
        .await;
        cluster.claim("app", "first", "main", only.clone()).await;
        reports(&cluster, ("app", "first"), "run conductor undelete app/first").await;
        undelete(&cluster.client, SYSTEM, ("app", "first")).await.expect("it is in quarantine");
        let again = cluster.login(dialect, "app", "first").await;
        assert_eq!(again.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "with its data");

        // A second attempt: no empty database takes its place, and the old one is not dropped once it is restored.
        cluster.release("app", "first").await;
        cluster.record_in(&first, "Quarantined").await;
        cluster.claim("app", "first", "main", only.clone()).await;
        reports(&cluster, ("app", "first"), "run conductor undelete app/first").await;
        cluster.release("app", "first").await;
        undelete(&cluster.client, SYSTEM, ("app", "first")).await.expect("it is in quarantine");
        reports(
            &cluster,
            ("bank", "other"),
            "belongs to another claim: choose another parameters.databaseName",
        )
        .await;
        cluster.claim("app", "first", "main", only).await;
        let last = cluster.login(dialect, "app", "first").await;
        assert_eq!(last.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "with its data");
        let record = cluster.record_in(&first, "Ready").await;
        assert!(
            record.data["status"]["quarantinedAt"].is_null(),
            "nothing is scheduled to be dropped: {record:?}"
        );
        controller.stop().await.expect("it stops on request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_databases_on_it_is_not_removed_from_under_them() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
    let controller = cluster.controller();
    cluster.claim("app", "first", "main", json!({})).await;
    let login = cluster.login(Dialect::Postgresql, "app", "first").await;
    let servers = cluster.api("DatabaseServer");
    servers.delete("main", &DeleteParams::default()).await.expect("it exists");
    let message = cluster.server_reports("main", "waits for 1 databases on it").await;
    assert!(message.contains("delete their claims"), "{message}");
    login.run("SELECT 1").await.expect("its claim goes on");
    cluster
        .rotate(
            &cluster.turn.claim("app", "first").await.and_then(|c| c.metadata.uid).expect("a UID"),
            "soft-1",
        )
        .await;
    // No new claim is bound to it.
    cluster.claim("app", "second", "main", json!({})).await;
    until("the second claim reports why", async || {
        let claim = cluster.turn.claim("app", "second").await?;
        let text = claim.data["status"]["conditions"].to_string();
        text.contains("cordoned").then_some(())
    })
    .await;
    cluster.release("app", "second").await;
    cluster.release("app", "first").await;
    until("the server goes", async || servers.get_opt("main").await.ok()?.is_none().then_some(())).await;
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_whose_secret_is_a_claims_reports_the_owner() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    cluster.claim("app", "orders", "main", json!({})).await;
    let before = cluster.login(Dialect::Postgresql, "app", "orders").await;
    cluster
        .turn
        .put(json!({
            "apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseRole",
            "metadata": {"name": "reports", "namespace": "app"},
            "spec": {"claimRef": {"namespace": "app", "name": "orders"}, "access": "ReadOnly", "secretName": "orders"},
        }))
        .await;
    let roles = cluster.api_in("DatabaseRole", "app");
    until("the role says whose it is", async || {
        let role = roles.get("reports").await.ok()?;
        let message = role.data.pointer("/status/conditions/0/message").and_then(Value::as_str)?;
        let is_reported = message.contains("RelationalDatabaseClaim orders: choose another spec.secretName");
        is_reported.then_some(())
    })
    .await;
    before.run("SELECT 1").await.expect("the claim's login is untouched");
    controller.stop().await.expect("it stops on request");
}
