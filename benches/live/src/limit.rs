//! What the API server allows at most: a bare client that knows all answers writes what a binder must write, and decides
//! nothing. No binder on the same cores is faster.

use crate::Run;
use crate::binder::Rival;
use crate::cluster::Cluster;
use crate::meter::Watcher;
use crate::scenario::{make_offers, named};
use crate::scenes::{TICK, make_released, percentiles};
use anyhow::{Context, Result};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

/// Calls on their way at the same time; as many as Conductor's.
const PARALLEL: usize = 64;
/// How long the run for the ceiling lasts.
const CEILING: Duration = Duration::from_secs(10);
/// Claims that are bound one by one.
const ALONE: usize = 400;

/// What a bare client reaches.
#[derive(Clone, Copy, Debug)]
pub struct Limit {
    /// Status patches a second.
    pub patches: f64,
    /// Binds a second of existing claims: the resource's references are written, then the claim's status.
    pub backlog: f64,
    /// The same with the creation of the claim.
    pub arrivals: f64,
    /// The same on an API server that holds a crowd of released offers, as in the run beside them.
    pub released: f64,
    /// How long those three writes take one after the other, at the pace of churn and with nothing beside them.
    pub alone: [Duration; 4],
}

impl Limit {
    /// Binds a second at most in a run.
    pub fn of(self, run: Run) -> f64 {
        match run {
            Run::Backlog => self.backlog,
            Run::Released => self.released,
            Run::Limit | Run::Arrivals | Run::Early | Run::Churn | Run::Provision | Run::Crowd => {
                self.arrivals
            }
        }
    }
}

/// Measures all of it.
pub async fn measure(cluster: &Cluster, count: usize) -> Result<Limit> {
    let rival = Rival::Conductor;
    // A binder has to watch what it binds.
    let _claims = Watcher::start(&cluster.client, rival.claims()).await?;
    let _offers = Watcher::start(&cluster.client, rival.offers()).await?;
    let names: Vec<String> = (0..count).map(|n| format!("limit-{n:06}")).collect();
    make_offers(cluster, rival, "limit", count).await?;
    let arrivals = each(&names, |name| async move { make_and_bind(cluster, &name).await }).await?;
    let patches = patch_for_a_while(cluster, &names).await?;
    let names: Vec<String> = (0..count).map(|n| format!("again-{n:06}")).collect();
    make_offers(cluster, rival, "again", count).await?;
    cluster.create_all(named(rival.claims(), &names, |name| rival.claim(name))).await?;
    let known = &json!({"metadata": {"uid": "known beforehand"}});
    let backlog = each(&names, |name| async move { bind(cluster, &name, known).await }).await?;
    let alone = one_by_one(cluster).await?;
    make_released(cluster, rival, count).await?;
    let names: Vec<String> = (0..count).map(|n| format!("among-{n:06}")).collect();
    make_offers(cluster, rival, "among", count).await?;
    let released = each(&names, |name| async move { make_and_bind(cluster, &name).await }).await?;
    for collection in [rival.claims(), rival.offers()] {
        cluster.client.request::<Value>(http::Request::delete(collection).body(Vec::new())?).await?;
    }
    Ok(Limit { patches, backlog, arrivals, released, alone })
}

/// Does something for every name, many at a time; says how many a second.
async fn each<F: Future<Output = Result<()>>>(names: &[String], act: impl Fn(String) -> F) -> Result<f64> {
    let begun = Instant::now();
    let done = stream::iter(names.to_vec()).map(act).buffer_unordered(PARALLEL);
    done.try_for_each(|()| async { Ok(()) }).await?;
    Ok(names.len() as f64 / begun.elapsed().as_secs_f64())
}

async fn make_and_bind(cluster: &Cluster, name: &str) -> Result<()> {
    let rival = Rival::Conductor;
    let claim = cluster.create(rival.claims(), &rival.claim(name)).await?;
    bind(cluster, name, &claim).await
}

async fn one_by_one(cluster: &Cluster) -> Result<[Duration; 4]> {
    make_offers(cluster, Rival::Conductor, "alone", ALONE).await?;
    let (mut ticks, mut taken) = (tokio::time::interval(TICK), Vec::new());
    for n in 0..ALONE {
        ticks.tick().await;
        let begun = Instant::now();
        make_and_bind(cluster, &format!("alone-{n:06}")).await?;
        taken.push(begun.elapsed());
    }
    Ok(percentiles(taken))
}

/// The two writes that every binder needs: the resource's references, then the claim's status.
async fn bind(cluster: &Cluster, name: &str, claim: &Value) -> Result<()> {
    let rival = Rival::Conductor;
    let uid = claim.pointer("/metadata/uid").context("a claim without a UID")?;
    let holder = json!({"namespace": "bench", "name": name, "uid": uid, "requests": {"storage": "5Gi"}});
    let spec = json!({"spec": {"claimRefs": [holder]}});
    let offer = cluster.patch(&format!("{}/{name}", rival.offers()), &spec).await?;
    let condition = |kind: &str, status: &str, message: &str| {
        json!({
            "type": kind, "status": status, "reason": kind, "message": message,
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        })
    };
    let status = json!({
        "phase": "Bound", "observedGeneration": 2,
        "resourceRef": {
            "namespace": "conductor-system", "name": name, "uid": offer.pointer("/metadata/uid"),
        },
        "conditions": [
            condition("Bound", "True", &format!("bound to {name}")),
            condition("Ready", "False", "no connection is known"),
        ],
    });
    cluster.patch_status(&format!("{}/{name}", rival.claims()), status).await
}

/// Patches the status of claims, one after the other; says how many a second.
async fn patch_for_a_while(cluster: &Cluster, names: &[String]) -> Result<f64> {
    let rival = Rival::Conductor;
    let begun = Instant::now();
    let turns = (0_u64..).take_while(|_| begun.elapsed() < CEILING);
    let patch = |turn: u64| {
        let path = format!("{}/{}", rival.claims(), names[turn as usize % names.len()]);
        let condition = json!({
            "type": "Bound", "status": "False", "reason": "NoMatch", "message": format!("turn {turn}"),
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        });
        async move {
            let status = json!({"phase": "Pending", "conditions": [condition], "observedGeneration": 1});
            cluster.patch_status(&path, status).await
        }
    };
    let done = stream::iter(turns).map(patch).buffer_unordered(PARALLEL);
    let done: u64 = done.try_fold(0, |sum, ()| async move { Ok(sum + 1) }).await?;
    Ok(done as f64 / begun.elapsed().as_secs_f64())
}
