//! Many claims on few servers: what it takes until each has a login that works. A measurement, not a promise, so it is
//! run on request: `make bench-databases`.

use conductor_databases::{Cluster, RealServer, cluster};
use conductor_live::Controller;
use conductor_sql_plan::sql::Dialect;
use futures::StreamExt;
use serde_json::json;
use std::time::{Duration, Instant};

const SERVERS: usize = 3;
const CLAIMS: usize = 300;
/// Longest wait for all of them.
const PATIENCE: Duration = Duration::from_secs(900);

#[tokio::test(flavor = "multi_thread")]
#[ignore = "a measurement of a minute or two: make bench-databases"]
async fn three_hundred_claims_over_three_shared_servers() {
    let mut servers = Vec::new();
    for _ in 0..SERVERS {
        servers.push(RealServer::start(Dialect::Postgresql).await);
    }
    let cluster = Cluster::enter().await;
    for (at, server) in servers.iter().enumerate() {
        cluster.register(&format!("server-{at}"), server, json!({})).await;
    }
    let controller = Controller::start(cluster.turn.controller_client(), cluster::options());
    for at in 0..SERVERS {
        cluster.server_reports(&format!("server-{at}"), "can be created on it").await;
    }
    let resting = resident_kib();
    let said_before = said(&servers);
    let begun = Instant::now();
    let make = (0..CLAIMS).map(|at| {
        let cluster = &cluster;
        async move {
            let server = format!("server-{}", at % SERVERS);
            cluster.claim("app", &format!("claim-{at}"), &server, json!({})).await
        }
    });
    futures::stream::iter(make).buffer_unordered(16).collect::<Vec<String>>().await;
    let made = begun.elapsed();
    let mut waiting: Vec<String> = (0..CLAIMS).map(|at| format!("claim-{at}")).collect();
    while !waiting.is_empty() {
        assert!(begun.elapsed() < PATIENCE, "{} claims have no login yet", waiting.len());
        let mut left = Vec::new();
        for name in waiting {
            if !cluster.readiness("app", &name).await.starts_with("True") {
                left.push(name);
            }
        }
        waiting = left;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let ready = begun.elapsed();
    let statements = said(&servers) - said_before;
    println!(
        "{CLAIMS} claims over {SERVERS} PostgreSQL servers: made in {:.1} s, all with a login after {:.1} s \
         ({:.1} a second); {:.1} messages with statements a claim, health checks included; \
         resident memory {} MiB at rest, {} MiB at the end",
        made.as_secs_f32(),
        ready.as_secs_f32(),
        CLAIMS as f32 / ready.as_secs_f32(),
        statements as f32 / CLAIMS as f32,
        resting / 1024,
        resident_kib() / 1024,
    );
    for at in (0..CLAIMS).step_by(37) {
        let login = cluster.login(Dialect::Postgresql, "app", &format!("claim-{at}")).await;
        login.run("CREATE TABLE t (v INT)").await.expect("it works");
    }
    controller.stop().await.expect("it stops on request");
}

/// Messages with statements that the servers have heard.
fn said(servers: &[RealServer]) -> usize {
    servers.iter().map(|server| server.log().matches("LOG:  statement: ").count()).sum()
}

/// Of this process: the controller, and the test's own load.
fn resident_kib() -> usize {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = text.lines().find(|line| line.starts_with("VmRSS")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|count| count.parse().ok()).unwrap_or(0)
}
