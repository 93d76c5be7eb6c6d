//! Claims that have nothing to be bound to: a resource, an object that implements it and a connection are made for
//! each. The operator is the one of the live tests: it has an instance ready as soon as it sees it.

use crate::binder::{Binder, Rival};
use crate::cluster::Cluster;
use crate::meter::{self, Watcher};
use crate::scenario::{percentile, settle};
use anyhow::{Result, ensure};
use conductor_live::operator;
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Claims that are made at the same time.
const ARRIVING: usize = 16;

/// What it took.
#[derive(Debug)]
pub struct Provisioned {
    pub per_second: f64,
    pub p50: Duration,
    pub p99: Duration,
    /// Without the one that made the claim, and without the operator's own.
    pub writes_per_claim: f64,
    /// Claims that have their connection.
    pub ready: usize,
}

/// Makes so many claims of a class that makes what they get, and waits until all of them have it.
pub async fn provision(cluster: &mut Cluster, binder: &mut Binder, count: usize) -> Result<Provisioned> {
    eprintln!("{}: {count} claims that are provisioned for", binder.rival.name());
    install(cluster).await?;
    binder.start(cluster).await?;
    settle(cluster).await?;
    let operator = tokio::spawn(operator::operate(cluster.client.clone()));
    let claims = Rival::Conductor.claims();
    let before = meter::writes(&cluster.client).await?;
    let watcher = Watcher::start(&cluster.client, claims).await?;
    let begun = Instant::now();
    let names = (0..count).map(|n| format!("made-{n:06}"));
    let cluster_ref = &*cluster;
    let sent = stream::iter(names).map(|name| async move {
        let sent = Instant::now();
        cluster_ref.create(claims, &claim(&name)).await.map(|_| (name, sent))
    });
    let sent: BTreeMap<String, Instant> = sent.buffer_unordered(ARRIVING).try_collect().await?;
    watcher.wait(count).await?;
    let seen = watcher.seen();
    settle(cluster).await?;
    let writes = meter::writes(&cluster.client).await? - before;
    let ready = count_ready(cluster, claims).await?;
    operator.abort();
    binder.kill(cluster);
    let last = seen.values().max().copied().unwrap_or(begun);
    let mut latencies: Vec<Duration> =
        sent.iter().filter_map(|(name, sent)| Some(*seen.get(name)? - *sent)).collect();
    latencies.sort_unstable();
    let not_ours = 2 * count as u64;
    Ok(Provisioned {
        per_second: count as f64 / (last - begun).as_secs_f64(),
        p50: percentile(&latencies, 50),
        p99: percentile(&latencies, 99),
        writes_per_claim: writes.saturating_sub(not_ours) as f64 / count as f64,
        ready,
    })
}

async fn install(cluster: &Cluster) -> Result<()> {
    let class = json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClass",
        "metadata": {"name": "made", "namespace": "conductor-system"}, "reclaimPolicy": "Delete",
        "engine": "postgresql", "versions": ["16"],
        "template": {
            "apiVersion": "database.aws.conductor.io/v1alpha1", "kind": "RDSInstance",
            "spec": {"for": "${claim.metadata.name}", "size": "${resource.spec.capacity.storage}"},
        },
        "connection": {
            "host": "${objects.main.status.address}", "port": 5432, "database": "${claim.metadata.name}",
            "username": "${secret.username}", "password": "${secret.password}", "secretRef": {"name": "login"},
        },
    });
    let login = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "login", "namespace": "conductor-system", "labels": {"conductor.io/publishable": "true"}},
        "stringData": {"username": "app", "password": "of-the-bench"},
    });
    let wait = ["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"];
    for (arguments, input) in [
        (&["apply", "-f", "-"][..], operator::definition()),
        (&wait[..], Value::Null),
        (&["apply", "-f", "-"][..], login),
        (&["apply", "-f", "-"][..], class),
    ] {
        let output = cluster.plane.kubectl_with_input(arguments, &input.to_string())?;
        ensure!(output.status.success(), "kubectl: {}", String::from_utf8_lossy(&output.stderr));
    }
    Ok(())
}

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "metadata": {"name": name, "namespace": "bench"},
        "spec": {
            "engine": "postgresql", "version": "16", "class": "made",
            "resources": {"requests": {"storage": "5Gi"}},
        },
    })
}

async fn count_ready(cluster: &Cluster, claims: &str) -> Result<usize> {
    let list: Value = cluster.client.request(http::Request::get(claims).body(Vec::new())?).await?;
    let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
    let is_ready = |claim: &&Value| {
        let conditions = claim["status"]["conditions"].as_array();
        conditions.into_iter().flatten().any(|c| c["type"] == "Ready" && c["status"] == "True")
    };
    Ok(items.iter().filter(is_ready).count())
}
