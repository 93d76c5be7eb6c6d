//! Servers that the controller runs itself: made from an object, there again after the controller was killed, with
//! their data; gone with their object, and not before the databases on them are.

use conductor_databases::{Cluster, Login, RealServer, SYSTEM, cluster};
use conductor_live::{Controller, until};
use conductor_sql_plan::sql::Dialect;
use kube::api::DeleteParams;
use serde_json::json;
use std::path::Path;

fn start(cluster: &Cluster, folder: &Path) -> Controller {
    let options =
        conductor_controller::Options { local_servers: Some(folder.to_owned()), ..cluster::options() };
    Controller::start(cluster.turn.controller_client(), options)
}

/// How many servers have data in a folder.
fn count(folder: &Path) -> usize {
    std::fs::read_dir(folder).map(Iterator::count).unwrap_or(0)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_local_server_serves_claims_outlives_a_crash_and_goes_with_its_object() {
    for (dialect, engine) in [(Dialect::Postgresql, "postgresql"), (Dialect::Mariadb, "mariadb")] {
        let folder = std::env::temp_dir().join(format!("conductor-local-{}-{engine}", std::process::id()));
        let cluster = Cluster::enter().await;
        let rules = json!({"reclaimPolicy": "Delete", "quarantineMinutes": 0});
        cluster
            .turn
            .put(json!({
                "apiVersion": "database.conductor.io/v1alpha1", "kind": "LocalServer",
                "metadata": {"name": "local", "namespace": SYSTEM},
                "spec": {"engine": engine, "databases": rules, "offer": {"labels": {"server": "local"}}},
            }))
            .await;
        let controller = start(&cluster, &folder);
        let id = cluster.claim("app", "orders", "local", json!({})).await;
        let login = cluster.login(dialect, "app", "orders").await;
        login.run("CREATE TABLE t (v INT); INSERT INTO t VALUES (7)").await.expect("it may make tables");
        controller.kill().await;
        let controller = start(&cluster, &folder);
        until("the server runs again with its data", async || {
            (login.run("SELECT v FROM t").await == Ok(vec!["7".to_owned()])).then_some(())
        })
        .await;
        // Its object is deleted while a database is on it: it waits.
        let api = cluster.api("LocalServer");
        api.delete("local", &DeleteParams::default()).await.expect("it exists");
        until("it says what it waits for", async || {
            let message =
                api.get("local").await.ok()?.data.pointer("/status/conditions/0/message")?.to_string();
            message.contains("still recorded").then_some(())
        })
        .await;
        login.run("SELECT 1").await.expect("it still serves");
        cluster.release("app", "orders").await;
        until("its record is gone", async || cluster.record(&id).await.is_none().then_some(())).await;
        until("the server is gone", async || api.get_opt("local").await.ok()?.is_none().then_some(())).await;
        assert_eq!(count(&folder), 0, "its data is gone");
        controller.stop().await.expect("it stops on request");
        let _ = std::fs::remove_dir_all(&folder);
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn servers_that_start_at_once_leave_each_others_files_alone() {
    let starting = (0..6).map(|_| RealServer::start(Dialect::Mariadb));
    for server in futures::future::join_all(starting).await {
        let answer = Login::admin(&server.access()).run("SELECT 1").await;
        assert_eq!(answer, Ok(vec!["1".to_owned()]));
    }
}
