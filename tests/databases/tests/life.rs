//! From a claim to a working login and its end, on real servers and a real API server, for every engine: created, used,
//! kept apart, changed under its users, released, retained, dropped, restored.

use conductor::api::database::UNDELETE;
use conductor_databases::{Cluster, Login, RealServer, SYSTEM, engines};
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
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({})).await;
        let controller = cluster.controller();
        cluster.claim("one", "orders", "main", json!({})).await;
        cluster.claim("two", "orders", "main", json!({})).await;
        let (one, two) =
            (cluster.login(dialect, "one", "orders").await, cluster.login(dialect, "two", "orders").await);
        one.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
        assert_eq!(one.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]));
        // No login sees another's database, nor does the other's login work there.
        assert!(two.run("SELECT v FROM t").await.is_err());
        let across = two.at(one.get("database")).run("SELECT v FROM t").await;
        assert!(across.is_err(), "{dialect:?}: {across:?}");
        assert!(one.at(two.get("database")).run("SELECT 1").await.is_err());
        for key in ["host", "port", "username", "password", "database", "uri", "type", "provider"] {
            assert!(!one.get(key).is_empty(), "{key} is missing");
        }
        cluster.release("one", "orders").await;
        refused(&one).await;
        assert_eq!(cluster.published("one", "orders").await, None);
        assert!(two.run("SELECT 1").await.is_ok(), "the other goes on");
        controller.stop().await.expect("it stops on request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn what_users_make_belongs_to_both_users_and_a_change_of_the_login_leaves_the_old_one_working() {
    for dialect in engines() {
        let server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({})).await;
        let controller = cluster.controller();
        let id = cluster.claim("app", "orders", "main", json!({})).await;
        let first = cluster.login(dialect, "app", "orders").await;
        first.run("CREATE TABLE t (v INT)").await.expect("it may make tables");
        let changed = async |token: &str, before: &Login| {
            cluster.rotate(&id, token).await;
            until("another login is published", async || {
                let now = Login::new(dialect, cluster.published("app", "orders").await?);
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
        controller.stop().await.expect("it stops on request");
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
    let found = admin.run(&text).await.expect("the administrator queries");
    found.into_iter().map(|name| name.replace(database, "D")).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn retain_keeps_the_data_and_delete_drops_it_after_its_quarantine() {
    for dialect in engines() {
        let server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        cluster.register("kept", &server, json!({"reclaimPolicy": "Retain"})).await;
        cluster.register("gone", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
        let controller = cluster.controller();
        for name in ["kept", "gone"] {
            let id = cluster.claim("app", name, name, json!({})).await;
            let login = cluster.login(dialect, "app", name).await;
            login.run("CREATE TABLE t (v INT)").await.expect("it may make tables");
            let database = login.get("database").to_owned();
            cluster.release("app", name).await;
            refused(&login).await;
            if name == "kept" {
                cluster.record_in(&id, "Retained").await;
                let admin = Login::admin(&server.access()).at(&database);
                admin.run("SELECT v FROM t").await.expect("the data is there");
            } else {
                until("its record is gone", async || cluster.record(&id).await.is_none().then_some(())).await;
                assert_eq!(there(&server, &database).await, Vec::<String>::new());
            }
            for kind in ["login", "ledger"] {
                let left =
                    cluster.secrets(SYSTEM).get_opt(&format!("{kind}-{id}")).await.expect("the API answers");
                assert!(left.is_none(), "{kind} of {name} is left");
            }
        }
        // The servers are there for the next claim.
        cluster.claim("app", "next", "gone", json!({})).await;
        cluster.login(dialect, "app", "next").await.run("SELECT 1").await.expect("it works");
        controller.stop().await.expect("it stops on request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_quarantined_database_is_restored_with_its_data() {
    for dialect in engines() {
        let server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 60})).await;
        let controller = cluster.controller();
        let id = cluster.claim("app", "orders", "main", json!({})).await;
        let first = cluster.login(dialect, "app", "orders").await;
        first.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
        cluster.release("app", "orders").await;
        let record = cluster.record_in(&id, "Quarantined").await;
        refused(&first).await;
        let message = record.data["status"]["conditions"][0]["message"].to_string();
        assert!(message.contains("unless it is restored"), "{message}");
        let note = Patch::Merge(json!({"metadata": {"annotations": {UNDELETE: "true"}}}));
        cluster
            .api("LogicalDatabase")
            .patch(&record.name_any(), &PatchParams::default(), &note)
            .await
            .expect("the record is there");
        cluster.record_in(&id, "Retained").await;
        // The same claim again, and it finds what it had.
        cluster.claim("app", "orders", "main", json!({})).await;
        let again = cluster.login(dialect, "app", "orders").await;
        assert_eq!(again.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]));
        assert_eq!(again.get("database"), first.get("database"));
        cluster.record_in(&id, "Ready").await;
        controller.stop().await.expect("it stops on request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_extensions_and_limits_are_exactly_as_requested() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({"schemas": ["app"], "connectionLimit": 9})).await;
    let controller = cluster.controller();
    let requests =
        json!({"parameters": {"schemas": ["audit"]}, "resources": {"requests": {"connections": "5"}}});
    cluster.claim("app", "orders", "main", requests).await;
    let login = cluster.login(Dialect::Postgresql, "app", "orders").await;
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
    cluster.claim("app", "greedy", "main", json!({"parameters": {"extensions": ["dblink"]}})).await;
    let reported = until("the claim says why not", async || {
        Some(cluster.readiness("app", "greedy").await).filter(|reported| reported.contains("dblink"))
    })
    .await;
    assert!(
        reported.contains("spec.parameters.extensions") && reported.contains("allowedExtensions"),
        "{reported}"
    );
    controller.stop().await.expect("it stops on request");
}
