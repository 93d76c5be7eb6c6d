//! Servers that are down, hang, refuse or are not to be trusted with a claim yet: the server's object and the claim say
//! what is wrong and what to do, nothing is forgotten, and it goes on by itself when it can.

use conductor_databases::{Cluster, Login, RealServer, SYSTEM};
use conductor_live::until;
use conductor_sql::command::undelete;
use conductor_sql_plan::names::{Names, User};
use conductor_sql_plan::sql::Dialect;
use kube::api::{Patch, PatchParams};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_reported_on_the_claim_and_awaited() {
    for dialect in [Dialect::Postgresql, Dialect::Mariadb] {
        let mut server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({})).await;
        let controller = cluster.controller();
        cluster.server_reports("main", "can be created on it").await;
        let id = cluster.claim("app", "first", "main", json!({})).await;
        let first = cluster.login(dialect, "app", "first").await;
        first.run("CREATE TABLE t (v INT)").await.expect("it may make tables");
        server.stop();
        cluster.claim("app", "second", "main", json!({})).await;
        cluster.claim_reports("second", "cannot be reached").await;
        cluster.server_reports("main", "cannot be reached").await;
        // A claim that goes while its server is away is not forgotten.
        cluster.release("app", "first").await;
        assert!(cluster.record(&id).await.is_some(), "the record stays");
        server.restart().await;
        cluster.login(dialect, "app", "second").await.run("SELECT 1").await.expect("it works");
        cluster.record_in(&id, "Retained").await;
        first.run("SELECT 1").await.expect_err("no user can log in");
        controller.stop().await.expect("it stops on request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_restored_while_its_server_is_down_is_kept() {
    for dialect in [Dialect::Postgresql, Dialect::Mariadb] {
        let mut server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        // One goes before the server does and is in quarantine, the other while it is down, with no quarantine at all.
        let rules = |minutes: i32| json!({"reclaimPolicy": "Delete", "quarantineMinutes": minutes});
        cluster.register("slow", &server, rules(60)).await;
        cluster.register("swift", &server, rules(0)).await;
        let controller = cluster.controller();
        let mut ids = Vec::new();
        for name in ["slow", "swift"] {
            ids.push(cluster.claim("app", name, name, json!({})).await);
            let login = cluster.login(dialect, "app", name).await;
            login.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
        }
        let in_use = undelete(&cluster.client, SYSTEM, ("app", "slow")).await.expect_err("it is in use");
        assert!(in_use.to_string().contains("nothing to restore"), "{in_use}");
        cluster.release("app", "slow").await;
        cluster.record_in(&ids[0], "Quarantined").await;
        server.stop();
        cluster.server_reports("slow", "cannot be reached").await;
        cluster.server_reports("swift", "cannot be reached").await;
        cluster.release("app", "swift").await;
        cluster.record_reports(&ids[1], "nothing of it is dropped before the server is reachable").await;
        for (name, id) in ["slow", "swift"].into_iter().zip(&ids) {
            let note = undelete(&cluster.client, SYSTEM, ("app", name)).await.expect("it is on record");
            assert_eq!(note.name, format!("db-{id}"));
            assert!(
                note.waits_for.is_some_and(|why| why.contains("cannot be reached")),
                "the server is down"
            );
            cluster.record_reports(id, "a user requested to restore it").await;
        }
        server.restart().await;
        for (name, id) in ["slow", "swift"].into_iter().zip(&ids) {
            cluster.record_in(id, "Retained").await;
            cluster.claim("app", name, name, json!({})).await;
            let again = cluster.login(dialect, "app", name).await;
            assert_eq!(again.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "{dialect:?} {name}");
        }
        let never = undelete(&cluster.client, SYSTEM, ("app", "never")).await.expect_err("there is none");
        assert!(never.to_string().contains("a dropped database cannot be restored"), "{never}");
        controller.stop().await.expect("it stops on request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_named_with_the_statement_that_gives_it() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    let admin = Login::admin(&server.access());
    admin.run("CREATE ROLE clerk LOGIN PASSWORD 'weak-but-mine'").await.expect("a role");
    // One that it may not enter is not counted, and hides nothing.
    for statement in ["CREATE DATABASE private", "REVOKE ALL ON DATABASE private FROM PUBLIC"] {
        admin.run(statement).await.expect("the administrator may");
    }
    cluster.register("main", &server, json!({})).await;
    cluster.administrator("main", server.plan.port, ("clerk", "wrong")).await;
    let controller = cluster.controller();
    let message = cluster.server_reports("main", "authentication failed").await;
    assert!(message.contains("clerk") && !message.contains("wrong"), "{message}");
    assert!(message.contains("Secret main-admin"), "{message}");
    cluster.administrator("main", server.plan.port, ("clerk", "weak-but-mine")).await;
    let message = cluster.server_reports("main", "lacks CREATEROLE").await;
    assert!(message.contains("ALTER ROLE \"clerk\" CREATEROLE") && message.contains("CREATEDB"), "{message}");
    // With these two and no more, everything works: made, changed, reclaimed.
    admin.run("ALTER ROLE clerk CREATEROLE CREATEDB").await.expect("rights");
    let rules = json!({"spec": {"databases": {"reclaimPolicy": "Delete", "quarantineMinutes": 0}}});
    let patch = Patch::Merge(rules);
    cluster
        .api("DatabaseServer")
        .patch("main", &PatchParams::default(), &patch)
        .await
        .expect("the server is there");
    cluster.server_reports("main", "can be created on it").await;
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let login = cluster.login(Dialect::Postgresql, "app", "orders").await;
    login.run("CREATE TABLE t (v INT)").await.expect("it may make tables");
    cluster.rotate(&id, "hard-1").await;
    cluster.release("app", "orders").await;
    until("its record is gone", async || cluster.record(&id).await.is_none().then_some(())).await;
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ours_is_never_touched_whatever_its_name() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
    let admin = Login::admin(&server.access());
    // Without a controller the claim waits, and its UID is known before anything is made.
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let names = Names::new(&id, None);
    admin.run(&format!("CREATE ROLE \"{}\" LOGIN", names.user(User::B))).await.expect("a role of theirs");
    let controller = cluster.controller();
    cluster.claim_reports("orders", "does not carry Conductor's mark").await;
    cluster.release("app", "orders").await;
    until("its record is gone", async || cluster.record(&id).await.is_none().then_some(())).await;
    let left = format!("SELECT rolname FROM pg_roles WHERE rolname LIKE '{}%' AND rolcanlogin", names.owner);
    assert_eq!(admin.run(&left).await, Ok(vec![names.user(User::B).to_string()]), "theirs stays as it was");
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_dropped_database_is_reported_and_not_replaced() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let login = cluster.login(Dialect::Postgresql, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    let admin = Login::admin(&server.access());
    let database = login.get("database");
    admin.run(&format!("DROP DATABASE \"{database}\" WITH (FORCE)")).await.expect("another client drops it");
    let note = json!({"metadata": {"annotations": {"look": "again"}}});
    let name = format!("db-{id}");
    let patch = Patch::Merge(note);
    cluster.api("LogicalDatabase").patch(&name, &PatchParams::default(), &patch).await.expect("it exists");
    until("the record reports it", async || {
        let message = cluster.record(&id).await?.data["status"]["conditions"][0]["message"].to_string();
        message.contains("no longer exists on the server and is not replaced").then_some(())
    })
    .await;
    let left = format!("SELECT datname FROM pg_database WHERE datname = '{database}'");
    assert_eq!(admin.run(&left).await, Ok(Vec::new()), "no empty one takes its place");
    controller.stop().await.expect("it stops on request");
}
