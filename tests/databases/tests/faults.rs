//! Servers that are down, hang, refuse or are not to be trusted with a claim yet: the server's object and the claim say
//! what is wrong and what to do, nothing is forgotten, and it goes on by itself when it can.

use conductor_databases::{House, Login, RealServer, SYSTEM};
use conductor_live::until;
use conductor_sql::command::undelete;
use conductor_sql_plan::names::{Names, User};
use conductor_sql_plan::sql::Dialect;
use kube::api::{Patch, PatchParams};
use serde_json::json;

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_is_down_is_told_of_on_the_claim_and_waited_for() {
    for dialect in [Dialect::Postgresql, Dialect::Mariadb] {
        let mut server = RealServer::start(dialect).await;
        let house = House::enter().await;
        house.register("main", &server, json!({})).await;
        let controller = house.controller();
        house.server_tells("main", "can be made on it").await;
        let id = house.claim("app", "first", "main", json!({})).await;
        let first = house.login(dialect, "app", "first").await;
        first.run("CREATE TABLE t (v INT)").await.expect("it may make tables");
        server.stop();
        house.claim("app", "second", "main", json!({})).await;
        house.claim_tells("second", "cannot be reached").await;
        house.server_tells("main", "cannot be reached").await;
        // A claim that goes while its server is away is not forgotten.
        house.release("app", "first").await;
        assert!(house.record(&id).await.is_some(), "the record stays");
        server.restart().await;
        house.login(dialect, "app", "second").await.run("SELECT 1").await.expect("it works");
        house.record_in(&id, "Retained").await;
        first.run("SELECT 1").await.expect_err("nobody logs in any more");
        controller.stop().await.expect("it stops when asked to");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_asked_back_while_its_server_is_down_is_kept_and_had_back_when_the_server_is() {
    for dialect in [Dialect::Postgresql, Dialect::Mariadb] {
        let mut server = RealServer::start(dialect).await;
        let house = House::enter().await;
        // One goes before the server does and is in quarantine, the other while it is down, with no quarantine at all.
        let rules = |minutes: i32| json!({"reclaimPolicy": "Delete", "quarantineMinutes": minutes});
        house.register("slow", &server, rules(60)).await;
        house.register("swift", &server, rules(0)).await;
        let controller = house.controller();
        let mut ids = Vec::new();
        for name in ["slow", "swift"] {
            ids.push(house.claim("app", name, name, json!({})).await);
            let login = house.login(dialect, "app", name).await;
            login.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
        }
        let in_use = undelete(&house.client, SYSTEM, ("app", "slow")).await.expect_err("it is in use");
        assert!(in_use.to_string().contains("nothing to have back"), "{in_use}");
        house.release("app", "slow").await;
        house.record_in(&ids[0], "Quarantined").await;
        server.stop();
        house.server_tells("slow", "cannot be reached").await;
        house.server_tells("swift", "cannot be reached").await;
        house.release("app", "swift").await;
        house.record_tells(&ids[1], "nothing of it is dropped before the server is back").await;
        for (name, id) in ["slow", "swift"].into_iter().zip(&ids) {
            let note = undelete(&house.client, SYSTEM, ("app", name)).await.expect("it is on record");
            assert_eq!(note.name, format!("db-{id}"));
            assert!(
                note.waits_for.is_some_and(|why| why.contains("cannot be reached")),
                "the server is down"
            );
            house.record_tells(id, "it is asked back").await;
        }
        server.restart().await;
        for (name, id) in ["slow", "swift"].into_iter().zip(&ids) {
            house.record_in(id, "Retained").await;
            house.claim("app", name, name, json!({})).await;
            let again = house.login(dialect, "app", name).await;
            assert_eq!(again.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "{dialect:?} {name}");
        }
        let never = undelete(&house.client, SYSTEM, ("app", "never")).await.expect_err("there is none");
        assert!(never.to_string().contains("what is dropped is gone"), "{never}");
        controller.stop().await.expect("it stops when asked to");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_is_named_with_the_statement_that_gives_it() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let house = House::enter().await;
    let admin = Login::admin(&server.access());
    admin.run("CREATE ROLE clerk LOGIN PASSWORD 'weak-but-mine'").await.expect("a role");
    // One that it may not enter is not counted, and hides nothing.
    for statement in ["CREATE DATABASE private", "REVOKE ALL ON DATABASE private FROM PUBLIC"] {
        admin.run(statement).await.expect("the administrator may");
    }
    house.register("main", &server, json!({})).await;
    house.administrator("main", server.plan.port, ("clerk", "wrong")).await;
    let controller = house.controller();
    let told = house.server_tells("main", "authentication failed").await;
    assert!(told.contains("clerk") && !told.contains("wrong"), "{told}");
    assert!(told.contains("Secret main-admin"), "{told}");
    house.administrator("main", server.plan.port, ("clerk", "weak-but-mine")).await;
    let told = house.server_tells("main", "lacks CREATEROLE").await;
    assert!(told.contains("ALTER ROLE \"clerk\" CREATEROLE") && told.contains("CREATEDB"), "{told}");
    // With these two and no more, everything works: made, changed, reclaimed.
    admin.run("ALTER ROLE clerk CREATEROLE CREATEDB").await.expect("rights");
    let rules = json!({"spec": {"databases": {"reclaimPolicy": "Delete", "quarantineMinutes": 0}}});
    let patch = Patch::Merge(rules);
    house
        .api("DatabaseServer")
        .patch("main", &PatchParams::default(), &patch)
        .await
        .expect("the server is there");
    house.server_tells("main", "can be made on it").await;
    let id = house.claim("app", "orders", "main", json!({})).await;
    let login = house.login(Dialect::Postgresql, "app", "orders").await;
    login.run("CREATE TABLE t (v INT)").await.expect("it may make tables");
    house.rotate(&id, "hard-1").await;
    house.release("app", "orders").await;
    until("its record is gone", async || house.record(&id).await.is_none().then_some(())).await;
    controller.stop().await.expect("it stops when asked to");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_not_ours_is_never_touched_whatever_its_name() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let house = House::enter().await;
    house.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
    let admin = Login::admin(&server.access());
    // Without a controller the claim waits, and its UID is known before anything is made.
    let id = house.claim("app", "orders", "main", json!({})).await;
    let names = Names::new(&id, None);
    admin.run(&format!("CREATE ROLE \"{}\" LOGIN", names.user(User::B))).await.expect("a role of theirs");
    let controller = house.controller();
    house.claim_tells("orders", "does not carry Conductor's mark").await;
    house.release("app", "orders").await;
    until("its record is gone", async || house.record(&id).await.is_none().then_some(())).await;
    let left = format!("SELECT rolname FROM pg_roles WHERE rolname LIKE '{}%' AND rolcanlogin", names.owner);
    assert_eq!(admin.run(&left).await, Ok(vec![names.user(User::B).to_string()]), "theirs stays as it was");
    controller.stop().await.expect("it stops when asked to");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_database_that_somebody_dropped_is_told_of_and_not_replaced() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let house = House::enter().await;
    house.register("main", &server, json!({})).await;
    let controller = house.controller();
    let id = house.claim("app", "orders", "main", json!({})).await;
    let login = house.login(Dialect::Postgresql, "app", "orders").await;
    house.record_in(&id, "Ready").await;
    let admin = Login::admin(&server.access());
    let database = login.get("database");
    admin.run(&format!("DROP DATABASE \"{database}\" WITH (FORCE)")).await.expect("somebody drops it");
    let note = json!({"metadata": {"annotations": {"look": "again"}}});
    let name = format!("db-{id}");
    let patch = Patch::Merge(note);
    house.api("LogicalDatabase").patch(&name, &PatchParams::default(), &patch).await.expect("it is there");
    until("the record tells", async || {
        let told = house.record(&id).await?.data["status"]["conditions"][0]["message"].to_string();
        told.contains("was there and is gone").then_some(())
    })
    .await;
    let left = format!("SELECT datname FROM pg_database WHERE datname = '{database}'");
    assert_eq!(admin.run(&left).await, Ok(Vec::new()), "no empty one takes its place");
    controller.stop().await.expect("it stops when asked to");
}
