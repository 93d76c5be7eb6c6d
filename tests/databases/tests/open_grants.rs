//! Servers of MySQL's family grant by patterns of names, and stock ones give every login what matches `test\_%`. No
//! claim's database is made under a name that the server's own grants open to others.

use conductor_databases::{Cluster, Login, RealServer, engines};
use conductor_live::until;
use conductor_sql_plan::sql::Dialect;
use serde_json::{Value, json};

#[tokio::test(flavor = "multi_thread")]
async fn a_name_that_the_servers_grants_open_is_refused() {
    for dialect in engines().into_iter().filter(|dialect| *dialect != Dialect::Postgresql) {
        let server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        let admin = Login::admin(&server.access());
        cluster.register("main", &server, json!({})).await;
        let controller = cluster.controller();
        isolated(&cluster, "True").await;
        // As stock servers have it: MariaDB for PUBLIC, MySQL for the user without a name.
        open(&admin, dialect).await;
        admin.run("CREATE USER dev; GRANT SELECT ON `family_%`.* TO dev").await.expect("a grant");
        cluster.claim("app", "orders", "main", json!({"parameters": {"databaseName": "test_tenant"}})).await;
        let message = cluster.claim_reports("orders", "would be open to every login of the server").await;
        assert!(
            message.contains("`test\\_%`") && message.contains("choose another parameters.databaseName"),
            "{message}"
        );
        cluster.claim("app", "family", "main", json!({"parameters": {"databaseName": "family_x"}})).await;
        let message = cluster.claim_reports("family", "would be open to another account").await;
        assert!(!message.contains("dev"), "{message}");
        for name in ["test_tenant", "family_x"] {
            let found =
                format!("SELECT schema_name FROM information_schema.schemata WHERE schema_name = '{name}'");
            assert_eq!(admin.run(&found).await, Ok(Vec::new()), "nothing was made");
        }
        // Another name is served, and no other tenant gets in.
        cluster.claim("app", "safe", "main", json!({"parameters": {"databaseName": "tenant_test"}})).await;
        let safe = cluster.login(dialect, "app", "safe").await;
        safe.run("CREATE TABLE t (x INT)").await.expect("it is its own");
        cluster.claim("thief", "own", "main", json!({})).await;
        let thief = cluster.login(dialect, "thief", "own").await;
        thief.run("SELECT * FROM tenant_test.t").await.expect_err("it is another's");
        // The server reports the grant with the statement that ends it; once it is ended, the name is free.
        restart(&cluster, controller, async |cluster| {
            let message = isolated(cluster, "False").await;
            assert!(message.contains("`test\\_%`") && message.contains(": run "), "{message}");
            close(&admin, dialect).await;
            let orders = cluster.login(dialect, "app", "orders").await;
            orders.run("CREATE TABLE t (x INT)").await.expect("it is its own");
            thief.run("DROP TABLE test_tenant.t").await.expect_err("it is another's");
        })
        .await;
    }
}

/// A server that is ready is checked seldom: a new controller checks it at once.
async fn restart(
    cluster: &Cluster,
    controller: conductor_live::Controller,
    then: impl AsyncFnOnce(&Cluster),
) {
    controller.stop().await.expect("it stops on request");
    let controller = cluster.controller();
    then(cluster).await;
    controller.stop().await.expect("it stops on request");
}

async fn open(admin: &Login, dialect: Dialect) {
    let text = match dialect {
        Dialect::Mariadb => "GRANT SELECT, INSERT, CREATE, DROP ON `test\\_%`.* TO PUBLIC",
        _ => {
            "INSERT INTO mysql.db (Host, Db, User, Select_priv, Insert_priv, Create_priv, Drop_priv) \
             VALUES ('%', 'test\\\\_%', '', 'Y', 'Y', 'Y', 'Y'); FLUSH PRIVILEGES"
        }
    };
    admin.run(text).await.expect("a grant");
}

async fn close(admin: &Login, dialect: Dialect) {
    let text = match dialect {
        Dialect::Mariadb => "REVOKE ALL PRIVILEGES ON `test\\_%`.* FROM PUBLIC",
        _ => "DELETE FROM mysql.db WHERE User = ''; FLUSH PRIVILEGES",
    };
    admin.run(text).await.expect("no grant");
}

/// Waits until the condition has this status, and gives its message.
async fn isolated(cluster: &Cluster, status: &str) -> String {
    until(&format!("Isolated is {status}"), async || {
        let server = cluster.api("DatabaseServer").get("main").await.ok()?;
        let all = server.data.pointer("/status/conditions").and_then(Value::as_array)?.clone();
        let found = all.into_iter().find(|condition| condition["type"] == "Isolated")?;
        (found["status"] == status).then(|| found["message"].as_str().unwrap_or_default().to_owned())
    })
    .await
}
