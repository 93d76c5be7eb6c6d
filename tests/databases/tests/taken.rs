//! Names that are taken, and servers that are taken away: who is in the way is told as far as it is the reader's business,
//! with what to choose instead, and what is in use is not removed from under its users.

use conductor_databases::{House, RealServer, SYSTEM};
use conductor_live::until;
use conductor_sql::command::undelete;
use conductor_sql_plan::sql::Dialect;
use kube::api::DeleteParams;
use serde_json::{Value, json};

const BOTH: [Dialect; 2] = [Dialect::Postgresql, Dialect::Mariadb];

fn named() -> Value {
    json!({"parameters": {"databaseName": "orders", "userName": "orders_app"}})
}

/// Waits until a claim tells something of its connection, and gives it.
async fn tells(house: &House, (namespace, name): (&str, &str), part: &str) -> String {
    until(&format!("claim {namespace}/{name} tells {part:?}"), async || {
        Some(house.readiness(namespace, name).await).filter(|told| told.contains(part))
    })
    .await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_another_claim_has_is_told_as_such_and_ones_own_can_be_had_back() {
    for dialect in BOTH {
        let server = RealServer::start(dialect).await;
        let house = House::enter().await;
        house.register("main", &server, json!({"reclaimPolicy": "Retain"})).await;
        let controller = house.controller();
        let first = house.claim("app", "first", "main", named()).await;
        let login = house.login(dialect, "app", "first").await;
        login.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");

        let second = house.claim("app", "second", "main", named()).await;
        let told =
            tells(&house, ("app", "second"), "is that of claim first: choose another parameters.").await;
        assert!(!told.contains("remove") && !told.contains("role c_"), "{told}");
        house.claim("bank", "third", "main", named()).await;
        let told = tells(&house, ("bank", "third"), "is another claim's: choose another parameters.").await;
        assert!(!told.contains("first") && !told.contains("app/"), "{told}");

        // What the message advises helps: its own claim had nothing made yet.
        let other = json!({"parameters": {"databaseName": "bills", "userName": "bills_app"}});
        house.claim("bank", "third", "main", other).await;
        let login = house.login(dialect, "bank", "third").await;
        assert_eq!(login.get("database"), "bills");
        login.run("SELECT 1").await.expect("the login works");

        // What was never made is not kept.
        house.release("app", "second").await;
        until("its record is gone", async || house.record(&second).await.is_none().then_some(())).await;
        let left = house.secrets(SYSTEM).get_opt(&format!("login-{second}")).await.expect("the API answers");
        assert!(left.is_none(), "the Secret that told why is left");
        house.release("bank", "third").await;

        house.release("app", "first").await;
        house.record_in(&first, "Retained").await;
        house.claim("app", "first", "main", named()).await;
        tells(&house, ("app", "first"), "run conductor undelete app/first").await;
        undelete(&house.client, SYSTEM, ("app", "first")).await.expect("it is kept");
        let again = house.login(dialect, "app", "first").await;
        assert_eq!(again.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "with its data");
        controller.stop().await.expect("it stops when asked to");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_in_quarantine_keeps_its_name() {
    for dialect in BOTH {
        let server = RealServer::start(dialect).await;
        let house = House::enter().await;
        house.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 60})).await;
        let controller = house.controller();
        let only = json!({"parameters": {"databaseName": "orders"}});
        let first = house.claim("app", "first", "main", only.clone()).await;
        let login = house.login(dialect, "app", "first").await;
        login.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
        house.release("app", "first").await;
        house.record_in(&first, "Quarantined").await;

        house.claim("bank", "other", "main", only.clone()).await;
        tells(&house, ("bank", "other"), "is another claim's: choose another parameters.databaseName").await;
        house.claim("app", "first", "main", only.clone()).await;
        tells(&house, ("app", "first"), "run conductor undelete app/first").await;
        undelete(&house.client, SYSTEM, ("app", "first")).await.expect("it is in quarantine");
        let again = house.login(dialect, "app", "first").await;
        assert_eq!(again.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "with its data");

        // A second attempt: no empty database takes its place, and the old one is not dropped once it is restored.
        house.release("app", "first").await;
        house.record_in(&first, "Quarantined").await;
        house.claim("app", "first", "main", only.clone()).await;
        tells(&house, ("app", "first"), "run conductor undelete app/first").await;
        house.release("app", "first").await;
        undelete(&house.client, SYSTEM, ("app", "first")).await.expect("it is in quarantine");
        tells(&house, ("bank", "other"), "is another claim's: choose another parameters.databaseName").await;
        house.claim("app", "first", "main", only).await;
        let last = house.login(dialect, "app", "first").await;
        assert_eq!(last.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "with its data");
        let record = house.record_in(&first, "Ready").await;
        assert!(
            record.data["status"]["quarantinedAt"].is_null(),
            "nothing is scheduled to be dropped: {record:?}"
        );
        controller.stop().await.expect("it stops when asked to");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_with_databases_on_it_is_not_removed_from_under_them() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let house = House::enter().await;
    house.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
    let controller = house.controller();
    house.claim("app", "first", "main", json!({})).await;
    let login = house.login(Dialect::Postgresql, "app", "first").await;
    let servers = house.api("DatabaseServer");
    servers.delete("main", &DeleteParams::default()).await.expect("it is there");
    let told = house.server_tells("main", "waits for 1 databases on it").await;
    assert!(told.contains("delete their claims"), "{told}");
    login.run("SELECT 1").await.expect("its claim goes on");
    house
        .rotate(
            &house.turn.claim("app", "first").await.and_then(|c| c.metadata.uid).expect("a UID"),
            "soft-1",
        )
        .await;
    // Nobody new is bound to it.
    house.claim("app", "second", "main", json!({})).await;
    until("the second claim is told why", async || {
        let claim = house.turn.claim("app", "second").await?;
        let text = claim.data["status"]["conditions"].to_string();
        text.contains("cordoned").then_some(())
    })
    .await;
    house.release("app", "second").await;
    house.release("app", "first").await;
    until("the server goes", async || servers.get_opt("main").await.ok()?.is_none().then_some(())).await;
    controller.stop().await.expect("it stops when asked to");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_role_whose_secret_is_a_claims_is_told_whose_it_is() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let house = House::enter().await;
    house.register("main", &server, json!({})).await;
    let controller = house.controller();
    house.claim("app", "orders", "main", json!({})).await;
    let before = house.login(Dialect::Postgresql, "app", "orders").await;
    house
        .turn
        .put(json!({
            "apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseRole",
            "metadata": {"name": "reports", "namespace": "app"},
            "spec": {"claimRef": {"namespace": "app", "name": "orders"}, "access": "ReadOnly", "secretName": "orders"},
        }))
        .await;
    let roles = house.api_in("DatabaseRole", "app");
    until("the role says whose it is", async || {
        let role = roles.get("reports").await.ok()?;
        let told = role.data.pointer("/status/conditions/0/message").and_then(Value::as_str)?;
        let is_told = told.contains("RelationalDatabaseClaim orders: choose another spec.secretName");
        is_told.then_some(())
    })
    .await;
    before.run("SELECT 1").await.expect("the claim's login is untouched");
    controller.stop().await.expect("it stops when asked to");
}
