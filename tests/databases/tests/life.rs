//! From a claim to a working login and back, on real servers and a real API server, for every engine: made, used,
//! kept apart, changed under its users, released, kept, dropped, asked back.

use conductor::api::database::UNDELETE;
use conductor_databases::{House, Login, RealServer, SYSTEM, engines};
use conductor_live::until;
use conductor_sql_plan::sql::Dialect;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::json;

/// Waits until a login does not work any more, and gives what the server says.
async fn refused(login: &Login) -> String {
    until("the login is refused", async || login.run("SELECT 1").await.err()).await
}

#[tokio::test(flavor = "multi_thread")]
async fn a_claim_ends_in_a_working_login_that_is_its_own_and_ends_with_it() {
    for dialect in engines() {
        let server = RealServer::start(dialect).await;
        let house = House::enter().await;
        house.register("main", &server, json!({})).await;
        let controller = house.controller();
        house.claim("one", "orders", "main", json!({})).await;
        house.claim("two", "orders", "main", json!({})).await;
        let (one, two) =
            (house.login(dialect, "one", "orders").await, house.login(dialect, "two", "orders").await);
        one.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
        assert_eq!(one.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]));
        // Nobody sees another's: neither with one's own login, nor the other's database by it.
        assert!(two.run("SELECT v FROM t").await.is_err());
        let across = two.at(one.get("database")).run("SELECT v FROM t").await;
        assert!(across.is_err(), "{dialect:?}: {across:?}");
        assert!(one.at(two.get("database")).run("SELECT 1").await.is_err());
        for key in ["host", "port", "username", "password", "database", "uri", "type", "provider"] {
            assert!(!one.get(key).is_empty(), "{key} is missing");
        }
        house.release("one", "orders").await;
        refused(&one).await;
        assert_eq!(house.published("one", "orders").await, None);
        assert!(two.run("SELECT 1").await.is_ok(), "the other goes on");
        controller.stop().await.expect("it stops when asked to");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_users_make_belongs_to_both_users_and_a_change_of_the_login_leaves_the_old_one_working() {
    for dialect in engines() {
        let server = RealServer::start(dialect).await;
        let house = House::enter().await;
        house.register("main", &server, json!({})).await;
        let controller = house.controller();
        let id = house.claim("app", "orders", "main", json!({})).await;
        let first = house.login(dialect, "app", "orders").await;
        first.run("CREATE TABLE t (v INT)").await.expect("it may make tables");
        let changed = async |token: &str, before: &Login| {
            house.rotate(&id, token).await;
            until("another login is published", async || {
                let now = Login::new(dialect, house.published("app", "orders").await?);
                (now != *before).then_some(now)
            })
            .await
        };
        let second = changed("soft-1", &first).await;
        assert_ne!(first.get("username"), second.get("username"));
        second
            .run("ALTER TABLE t ADD COLUMN w INT; INSERT INTO t VALUES (1, 2)")
            .await
            .expect("it owns it too");
        first.run("SELECT w FROM t").await.expect("who has not heard yet still gets in");
        let third = changed("soft-2", &second).await;
        assert_eq!(third.get("username"), first.get("username"));
        second.run("SELECT 1").await.expect("the one before still works");
        first.run("SELECT 1").await.expect_err("the password before that does not");
        // A leak: everything but what is published now ends at once.
        let fourth = changed("hard-1", &third).await;
        fourth.run("SELECT w FROM t").await.expect("the new one works");
        refused(&third).await;
        refused(&second).await;
        controller.stop().await.expect("it stops when asked to");
    }
}

/// What there is on a server under the name of a database, its owner and users.
async fn there(server: &RealServer, database: &str) -> Vec<String> {
    let admin = Login::admin(&server.access());
    let text = match server.plan.dialect {
        Dialect::Postgresql => format!(
            "SELECT datname FROM pg_database WHERE datname LIKE '{database}%' \
             UNION ALL SELECT rolname FROM pg_roles WHERE rolname LIKE '{database}%' ORDER BY 1"
        ),
        Dialect::Mariadb | Dialect::Mysql => format!(
            "SELECT schema_name FROM information_schema.schemata WHERE schema_name LIKE '{database}%' \
             UNION ALL SELECT user FROM mysql.user WHERE user LIKE '{database}%' \
             UNION ALL SELECT name FROM conductor.marks WHERE name LIKE '{database}%' ORDER BY 1"
        ),
    };
    let found = admin.run(&text).await.expect("the administrator asks");
    found.into_iter().map(|name| name.replace(database, "D")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn retain_keeps_the_data_and_delete_drops_it_after_its_quarantine() {
    for dialect in engines() {
        let server = RealServer::start(dialect).await;
        let house = House::enter().await;
        house.register("kept", &server, json!({"reclaimPolicy": "Retain"})).await;
        house.register("gone", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
        let controller = house.controller();
        for name in ["kept", "gone"] {
            let id = house.claim("app", name, name, json!({})).await;
            let login = house.login(dialect, "app", name).await;
            login.run("CREATE TABLE t (v INT)").await.expect("it may make tables");
            let database = login.get("database").to_owned();
            house.release("app", name).await;
            refused(&login).await;
            if name == "kept" {
                house.record_in(&id, "Retained").await;
                let admin = Login::admin(&server.access()).at(&database);
                admin.run("SELECT v FROM t").await.expect("the data is there");
            } else {
                until("its record is gone", async || house.record(&id).await.is_none().then_some(())).await;
                assert_eq!(there(&server, &database).await, Vec::<String>::new());
            }
            for kind in ["login", "ledger"] {
                let left =
                    house.secrets(SYSTEM).get_opt(&format!("{kind}-{id}")).await.expect("the API answers");
                assert!(left.is_none(), "{kind} of {name} is left");
            }
        }
        // The servers are there for the next claim.
        house.claim("app", "next", "gone", json!({})).await;
        house.login(dialect, "app", "next").await.run("SELECT 1").await.expect("it works");
        controller.stop().await.expect("it stops when asked to");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_in_quarantine_can_be_had_back_with_its_data() {
    for dialect in engines() {
        let server = RealServer::start(dialect).await;
        let house = House::enter().await;
        house.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 60})).await;
        let controller = house.controller();
        let id = house.claim("app", "orders", "main", json!({})).await;
        let first = house.login(dialect, "app", "orders").await;
        first.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
        house.release("app", "orders").await;
        let record = house.record_in(&id, "Quarantined").await;
        refused(&first).await;
        let message = record.data["status"]["conditions"][0]["message"].to_string();
        assert!(message.contains("unless it is asked back"), "{message}");
        let note = Patch::Merge(json!({"metadata": {"annotations": {UNDELETE: "true"}}}));
        house
            .api("LogicalDatabase")
            .patch(&record.name_any(), &PatchParams::default(), &note)
            .await
            .expect("the record is there");
        house.record_in(&id, "Retained").await;
        // The same claim again, and it finds what it had.
        house.claim("app", "orders", "main", json!({})).await;
        let again = house.login(dialect, "app", "orders").await;
        assert_eq!(again.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]));
        assert_eq!(again.get("database"), first.get("database"));
        house.record_in(&id, "Ready").await;
        controller.stop().await.expect("it stops when asked to");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_extensions_and_limits_are_as_asked_and_nothing_else_is_given() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let house = House::enter().await;
    house.register("main", &server, json!({"schemas": ["app"], "connectionLimit": 9})).await;
    let controller = house.controller();
    let asks = json!({"parameters": {"schemas": ["audit"]}, "resources": {"requests": {"connections": "5"}}});
    house.claim("app", "orders", "main", asks).await;
    let login = house.login(Dialect::Postgresql, "app", "orders").await;
    login.run("CREATE TABLE audit.t (v INT); CREATE TABLE app.t (v INT)").await.expect("both are there");
    let limit = "SELECT datconnlimit FROM pg_database WHERE datname = current_database()";
    assert_eq!(login.run(limit).await, Ok(vec!["5".to_owned()]));
    let owner = "SELECT DISTINCT tableowner FROM pg_tables WHERE tablename = 't'";
    assert_eq!(login.run(owner).await, Ok(vec![login.get("database").to_owned()]));
    for power in
        ["CREATE ROLE x", "CREATE DATABASE x", "SELECT * FROM pg_authid", "COPY (SELECT 1) TO PROGRAM 'id'"]
    {
        assert!(login.run(power).await.is_err(), "{power}");
    }
    house.claim("app", "greedy", "main", json!({"parameters": {"extensions": ["dblink"]}})).await;
    let told = until("the claim says why not", async || {
        Some(house.readiness("app", "greedy").await).filter(|told| told.contains("dblink"))
    })
    .await;
    assert!(told.contains("spec.parameters.extensions") && told.contains("allowedExtensions"), "{told}");
    controller.stop().await.expect("it stops when asked to");
}
