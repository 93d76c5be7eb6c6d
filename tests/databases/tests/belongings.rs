//! What an application has on a PostgreSQL server beside its tables: its sessions, which it sees and ends, and no other
//! tenant's; what it made after it left the role of its owner; large objects, which a login that only reads cannot make.

use conductor_databases::{Cluster, Login, RealServer};
use conductor_live::until;
use conductor_sql_plan::sql::Dialect;
use serde_json::json;

const ENGINE: Dialect = Dialect::Postgresql;

#[tokio::test(flavor = "multi_thread")]
async fn an_application_sees_and_ends_its_own_sessions_alone() {
    let server = RealServer::start(ENGINE).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let first = cluster.login(ENGINE, "app", "orders").await;
    cluster.claim("thief", "own", "main", json!({})).await;
    let thief = cluster.login(ENGINE, "thief", "own").await;
    cluster.record_in(&id, "Ready").await;
    cluster.rotate(&id, "soft-1").await;
    let second = next(&cluster, "orders", &first).await;
    for (function, slow) in [("cancel", "SELECT pg_sleep(600)"), ("terminate", "SELECT pg_sleep(601)")] {
        // A session of the login before the last; the new one ends it.
        let session = tokio::spawn({
            let first = first.clone();
            async move { first.run(slow).await }
        });
        let find = format!("SELECT pid FROM conductor.sessions() WHERE query = '{slow}'");
        let process = until("its own session is seen", async || {
            second.run(&find).await.expect("it may look").into_iter().next()
        })
        .await;
        assert_eq!(thief.run(&find).await, Ok(Vec::new()), "another tenant sees nothing of it");
        let end = format!("SELECT conductor.{function}({process})");
        assert_eq!(thief.run(&end).await, Ok(vec![String::new()]), "nor can it end it");
        assert_eq!(second.run(&end).await, Ok(vec!["t".to_owned()]));
        session.await.expect("it ran").expect_err("it was ended");
    }
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn what_a_login_created_belongs_to_the_next_login_too() {
    let server = RealServer::start(ENGINE).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let first = cluster.login(ENGINE, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    // As a pooler leaves a session that it gives to the next.
    let made = "SET ROLE NONE; CREATE TABLE public.own (x int); INSERT INTO public.own VALUES (7)";
    first.run(made).await.expect("it may");
    cluster.rotate(&id, "soft-1").await;
    let second = next(&cluster, "orders", &first).await;
    assert_eq!(second.run("SELECT x FROM public.own").await, Ok(vec!["7".to_owned()]));
    second.run("ALTER TABLE public.own ADD y int").await.expect("it owns it");
    // What sessions of the old login still make can be used at once.
    first.run("SET ROLE NONE; CREATE TABLE public.late (x int)").await.expect("it may");
    second.run("INSERT INTO public.late VALUES (8)").await.expect("it can use it");
    controller.stop().await.expect("it stops on request");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_login_that_only_reads_makes_no_large_object() {
    let server = RealServer::start(ENGINE).await;
    let cluster = Cluster::enter().await;
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    let id = cluster.claim("app", "orders", "main", json!({})).await;
    let owner = cluster.login(ENGINE, "app", "orders").await;
    cluster.record_in(&id, "Ready").await;
    for (name, access) in [("reports", "ReadOnly"), ("imports", "ReadWrite")] {
        cluster
            .turn
            .put(json!({"apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseRole",
                "metadata": {"name": name, "namespace": "app"},
                "spec": {"claimRef": {"name": "orders"}, "access": access}}))
            .await;
    }
    let role = async |name: &str| {
        until(&format!("role {name} has its login"), async || {
            let login = Login::new(ENGINE, cluster.published("app", name).await?);
            login.run("SELECT 1").await.is_ok().then_some(login)
        })
        .await
    };
    let (reader, writer) = (role("reports").await, role("imports").await);
    for made in ["SELECT lo_create(0)", "SELECT lo_creat(-1)", "SELECT lo_from_bytea(0, 'x')"] {
        reader.run(made).await.expect_err("it only reads");
        writer.run(made).await.expect("it may write");
        owner.run(made).await.expect("it owns the database");
    }
    controller.stop().await.expect("it stops on request");
}

async fn next(cluster: &Cluster, name: &str, before: &Login) -> Login {
    until("another login is published", async || {
        let now = Login::new(before.dialect, cluster.published("app", name).await?);
        (now != *before).then_some(now)
    })
    .await
}
