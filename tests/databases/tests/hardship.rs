//! Servers that are there and not well: they hang, have no connection left, may not be written to, lack a right, have no
//! room, move. Each is reported on its own object or on the claim with a fix, everything else goes on, and it goes on by
//! itself when it can.

use conductor_databases::server::new_folder;
use conductor_databases::{Cluster, Login, RealServer, Tap};
use conductor_live::until;
use conductor_sql_plan::sql::Dialect;
use kube::api::{Patch, PatchParams};
use serde_json::json;
use std::path::PathBuf;
use std::process::Command;
use tokio_postgres::NoTls;

const BOTH: [Dialect; 2] = [Dialect::Postgresql, Dialect::Mariadb];

#[tokio::test(flavor = "multi_thread")]
async fn a_server_that_hangs_is_reported_and_delays_no_other() {
    for dialect in BOTH {
        let (hung, well) = (RealServer::start(dialect).await, RealServer::start(dialect).await);
        let cluster = Cluster::enter().await;
        cluster.register("hung", &hung, json!({})).await;
        cluster.register("well", &well, json!({})).await;
        let controller = cluster.controller();
        cluster.claim("app", "first", "hung", json!({})).await;
        cluster.login(dialect, "app", "first").await;
        hung.signal("STOP");
        for name in ["a", "b", "c", "d", "e", "f"] {
            cluster.claim("app", name, "hung", json!({})).await;
        }
        cluster.claim("app", "other", "well", json!({})).await;
        cluster.login(dialect, "app", "other").await.run("SELECT 1").await.expect("others go on");
        cluster.claim_reports("a", "did not answer within").await;
        hung.signal("CONT");
        for name in ["a", "f"] {
            cluster.login(dialect, "app", name).await.run("SELECT 1").await.expect("it goes on by itself");
        }
        controller.stop().await.expect("it stops on request");
    }
}

/// A connection that is held until it is dropped.
type Held = Box<dyn std::any::Any + Send>;

async fn hold(login: &Login) -> Result<Held, String> {
    let port = login.get("port").parse().unwrap_or(0);
    match login.dialect {
        Dialect::Postgresql => {
            let mut config = tokio_postgres::Config::new();
            config.host(login.get("host")).port(port).user(login.get("username"));
            config.password(login.get("password")).dbname(login.get("database"));
            let (client, connection) = config.connect(NoTls).await.map_err(|error| error.to_string())?;
            tokio::spawn(connection);
            Ok(Box::new(client))
        }
        Dialect::Mariadb | Dialect::Mysql => {
            let options = mysql_async::OptsBuilder::default()
                .ip_or_hostname(login.get("host"))
                .tcp_port(port)
                .user(Some(login.get("username")))
                .pass(Some(login.get("password")))
                .db_name(Some(login.get("database")))
                .prefer_socket(false);
            let conn = mysql_async::Conn::new(options).await.map_err(|error| error.to_string())?;
            Ok(Box::new(conn))
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_server_without_a_free_connection_is_reported_and_awaited() {
    for dialect in BOTH {
        let server = RealServer::start_with(dialect, 16, &[]).await;
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({})).await;
        let controller = cluster.controller();
        cluster.claim("app", "first", "main", json!({})).await;
        let first = cluster.login(dialect, "app", "first").await;
        let mut held = Vec::new();
        while let Ok(connection) = hold(&first).await {
            held.push(connection);
        }
        assert!(held.len() > 3, "{} connections were to be had", held.len());
        cluster.claim("app", "second", "main", json!({})).await;
        cluster.claim_reports("second", "raise max_connections").await;
        held.clear();
        cluster.login(dialect, "app", "second").await.run("SELECT 1").await.expect("it goes on by itself");
        controller.stop().await.expect("it stops on request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_read_only_server_is_reported_with_a_fix() {
    for dialect in BOTH {
        let server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        cluster.register("main", &server, json!({})).await;
        let controller = cluster.controller();
        cluster.server_reports("main", "can be created on it").await;
        let admin = Login::admin(&server.access());
        let (on, off): (&[&str], &[&str]) = match dialect {
            Dialect::Postgresql => (
                &["ALTER SYSTEM SET default_transaction_read_only = on", "SELECT pg_reload_conf()"],
                &["ALTER SYSTEM SET default_transaction_read_only = off", "SELECT pg_reload_conf()"],
            ),
            Dialect::Mariadb | Dialect::Mysql => {
                (&["SET GLOBAL read_only = 1"], &["SET GLOBAL read_only = 0"])
            }
        };
        for statement in on {
            admin.run(statement).await.expect("the administrator may");
        }
        // Any change of the object makes the controller check at once.
        let look = |note: &str| Patch::Merge(json!({"spec": {"databases": {"passwordLength": note.len()}}}));
        let api = cluster.api("DatabaseServer");
        api.patch("main", &PatchParams::default(), &look(&"x".repeat(20))).await.expect("it exists");
        let message = cluster.server_reports("main", "read-only").await;
        assert!(
            message.contains("default_transaction_read_only = off") || message.contains("read_only = 0"),
            "{message}"
        );
        if dialect == Dialect::Postgresql {
            // On MariaDB this administrator may write all the same.
            cluster.claim("app", "orders", "main", json!({})).await;
            cluster.claim_reports("orders", "read-only transaction").await;
        }
        for statement in off {
            admin.run(statement).await.expect("the administrator may");
        }
        cluster.server_reports("main", "can be created on it").await;
        if dialect == Dialect::Postgresql {
            cluster
                .login(dialect, "app", "orders")
                .await
                .run("SELECT 1")
                .await
                .expect("it goes on by itself");
        }
        controller.stop().await.expect("it stops on request");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_missing_right_on_mariadb_is_named_with_the_grant_that_gives_it() {
    let server = RealServer::start(Dialect::Mariadb).await;
    let cluster = Cluster::enter().await;
    let admin = Login::admin(&server.access());
    admin
        .run("CREATE USER 'clerk'@'%' IDENTIFIED BY 'weak-but-mine'; GRANT SELECT ON *.* TO 'clerk'@'%'")
        .await
        .expect("a user");
    cluster.register("main", &server, json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0})).await;
    cluster.administrator("main", server.plan.port, ("clerk", "weak-but-mine")).await;
    let controller = cluster.controller();
    let message = cluster.server_reports("main", "lacks CREATE USER").await;
    assert!(message.contains("GRANT CREATE USER ON *.* TO 'clerk'@'%'"), "{message}");
    // Without these two it would neither see the sessions of applications nor end them, without an error.
    for right in ["PROCESS", "CONNECTION ADMIN"] {
        assert!(message.contains(&format!("GRANT {right} ON *.* TO 'clerk'@'%'")), "{message}");
    }
    // The grants that it names suffice.
    for statement in message.split("; ").filter_map(|part| Some(part.split_once(": run ")?.1)) {
        admin.run(statement).await.expect(statement);
    }
    cluster.server_reports("main", "can be created on it").await;
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let login = cluster.login(Dialect::Mariadb, "app", "orders").await;
    login.run("CREATE TABLE t (v INT)").await.expect("it may make tables");
    let session = login.clone();
    let session = tokio::spawn(async move { session.run("SELECT SLEEP(15)").await });
    let sessions =
        format!("SELECT id FROM information_schema.processlist WHERE user = '{}'", login.get("username"));
    until("a session is open", async || {
        (!admin.run(&sessions).await.unwrap_or_default().is_empty()).then_some(())
    })
    .await;
    cluster.rotate(&id, "hard-1").await;
    assert!(session.await.expect("it runs").is_err(), "the session has outlived a hard change");
    cluster.release("app", "orders").await;
    until("its record is gone", async || cluster.record(&id).await.is_none().then_some(())).await;
    controller.stop().await.expect("it stops on request");
}

/// A file system of a few megabytes, gone with the test.
struct Small(PathBuf);

impl Small {
    fn mount(mebibytes: u32) -> Option<Small> {
        let folder = new_folder();
        std::fs::create_dir_all(&folder).ok()?;
        let size = format!("size={mebibytes}m,mode=0755");
        let done = Command::new("mount").args(["-t", "tmpfs", "-o", &size, "tmpfs"]).arg(&folder).status();
        done.is_ok_and(|status| status.success()).then_some(Small(folder))
    }

    /// Fills it to the last page.
    fn fill(&self) -> PathBuf {
        let file = self.0.join("ballast");
        let page = vec![0_u8; 1 << 12];
        let mut ballast = std::fs::File::create(&file).expect("a file");
        while std::io::Write::write_all(&mut ballast, &page).is_ok() {}
        file
    }
}

impl Drop for Small {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
        let _ = std::fs::remove_dir(&self.0);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_full_disk_is_reported_and_awaited() {
    let Some(small) = Small::mount(160) else {
        println!("left out: a small file system can only be mounted by root");
        return;
    };
    let dialect = Dialect::Postgresql;
    let server = RealServer::start_in(small.0.join("server"), dialect, 50, &["max_wal_size=32MB"]).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    cluster.claim("app", "first", "main", json!({})).await;
    let first = cluster.login(dialect, "app", "first").await;
    first.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
    let ballast = small.fill();
    cluster.claim("app", "second", "main", json!({})).await;
    cluster.claim_reports("second", "its disk is full").await;
    assert_eq!(first.run("SELECT v FROM t").await, Ok(vec!["7".to_owned()]), "others go on");
    std::fs::remove_file(ballast).expect("room again");
    cluster.login(dialect, "app", "second").await.run("SELECT 1").await.expect("it goes on by itself");
    controller.stop().await.expect("it stops on request");
    drop(server);
}

#[tokio::test(flavor = "multi_thread")]
async fn what_is_published_follows_a_server_that_moves() {
    for dialect in BOTH {
        let server = RealServer::start(dialect).await;
        let cluster = Cluster::enter().await;
        let before = Tap::open(dialect, server.plan.port).await;
        cluster.register_at("main", &server, before.port, json!({})).await;
        let controller = cluster.controller();
        cluster.claim("app", "orders", "main", json!({})).await;
        let first = cluster.login(dialect, "app", "orders").await;
        assert_eq!(first.get("port"), before.port.to_string());
        cluster.register("main", &server, json!({})).await;
        let moved = until("the new address is published", async || {
            let keys = cluster.published("app", "orders").await?;
            (keys.get("port") == Some(&server.plan.port.to_string())).then_some(keys)
        })
        .await;
        let moved = Login::new(dialect, moved);
        assert_eq!(moved.get("password"), first.get("password"), "the login itself is the same");
        drop(before);
        moved.run("SELECT 1").await.expect("it works");
        controller.stop().await.expect("it stops on request");
    }
}
