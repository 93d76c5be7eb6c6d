//! Three runs under load: claims that exist before anything fits them, a crowd of released offers that no claim may get, and
//! claims that are created and deleted all the time. Measured from outside, as every run.

use crate::binder::{Binder, Rival};
use crate::cluster::Cluster;
use crate::meter::{self, Watcher};
use crate::scenario::{Outcome, arrive, make_offers, named, percentile, settle, wait_phase};
use anyhow::Result;
use http::Request;
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use tokio::task::JoinSet;
use tokio::time::MissedTickBehavior;

/// Released offers beside each one that can be had.
const RELEASED_FOR_EACH: usize = 9;
/// Between two claims that come.
pub const TICK: Duration = Duration::from_millis(50);
/// Claims that come in all: two minutes of them.
const COMING: usize = 2_400;
/// How many claims there are before the oldest goes.
const ALIVE: usize = 200;

/// Claims first, offers later.
#[derive(Debug)]
pub struct Early {
    /// From the first offer until the last claim was seen Bound.
    pub per_second: f64,
    /// From the last offer until the last claim was seen Bound.
    pub after_last_offer: Duration,
    /// Without those that made the offers.
    pub writes_per_bind: f64,
}

/// Claims that come and go.
#[derive(Debug)]
pub struct Churn {
    pub claims: usize,
    /// From the sending of a claim until it was seen Bound, as [`percentiles`] has them.
    pub latencies: [Duration; 4],
}

pub async fn early(cluster: &Cluster, rival: Rival, count: usize) -> Result<Early> {
    eprintln!("{}: {count} claims before their offers", rival.name());
    let names: Vec<String> = (0..count).map(|n| format!("early-{n:06}")).collect();
    cluster.create_all(named(rival.claims(), &names, |name| rival.claim(name))).await?;
    settle(cluster).await?;
    let before = meter::writes(&cluster.client).await?;
    let watcher = Watcher::start(&cluster.client, rival.claims()).await?;
    let begun = Instant::now();
    make_offers(cluster, rival, "early", count).await?;
    let offered = Instant::now();
    watcher.wait(count).await?;
    let last = watcher.seen().values().max().copied().unwrap_or(offered);
    settle(cluster).await?;
    let writes = meter::writes(&cluster.client).await? - before;
    Ok(Early {
        per_second: count as f64 / (last - begun).as_secs_f64(),
        after_last_offer: last.saturating_duration_since(offered),
        writes_per_bind: writes.saturating_sub(count as u64) as f64 / count as f64,
    })
}

pub async fn among_released(cluster: &Cluster, binder: &Binder, count: usize) -> Result<Outcome> {
    let rival = binder.rival;
    eprintln!("{}: released offers, {RELEASED_FOR_EACH} for each claim", rival.name());
    let crowd = make_released(cluster, rival, count).await?;
    wait_phase(cluster, rival.offers(), "Released", crowd).await?;
    arrive(cluster, binder, "among", count).await
}

/// Creates released offers, a multiple of the free ones; returns how many.
pub async fn make_released(cluster: &Cluster, rival: Rival, count: usize) -> Result<usize> {
    let names: Vec<String> = (0..RELEASED_FOR_EACH * count).map(|n| format!("released-{n:06}")).collect();
    cluster.create_all(named(rival.offers(), &names, |name| rival.released(name))).await?;
    Ok(names.len())
}

pub async fn churn(cluster: &Cluster, rival: Rival) -> Result<Churn> {
    eprintln!("{}: {COMING} claims come, one each {} ms, and go", rival.name(), TICK.as_millis());
    make_offers(cluster, rival, "churn", COMING).await?;
    wait_phase(cluster, rival.offers(), "Available", COMING).await?;
    settle(cluster).await?;
    let watcher = Watcher::start(&cluster.client, rival.claims()).await?;
    let mut ticks = tokio::time::interval(TICK);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
    let (mut calls, mut sent) = (JoinSet::new(), BTreeMap::new());
    for n in 0..COMING {
        ticks.tick().await;
        let name = format!("churn-{n:06}");
        let (client, claim) = (cluster.client.clone(), rival.claim(&name));
        let request = Request::post(rival.claims()).header("Content-Type", "application/json");
        let request = request.body(serde_json::to_vec(&claim)?)?;
        sent.insert(name, Instant::now());
        calls.spawn(async move { client.request::<Value>(request).await });
        if let Some(oldest) = n.checked_sub(ALIVE) {
            let client = cluster.client.clone();
            let request = Request::delete(format!("{}/churn-{oldest:06}", rival.claims())).body(Vec::new())?;
            calls.spawn(async move { client.request::<Value>(request).await });
        }
    }
    while let Some(called) = calls.join_next().await {
        called??;
    }
    watcher.wait(COMING).await?;
    let seen = watcher.seen();
    let latencies = sent.iter().filter_map(|(name, sent)| Some(*seen.get(name)? - *sent)).collect();
    Ok(Churn { claims: COMING, latencies: percentiles(latencies) })
}

/// Half of them, nine of ten, 99 of a hundred, all.
pub fn percentiles(mut latencies: Vec<Duration>) -> [Duration; 4] {
    latencies.sort_unstable();
    [50, 90, 99, 100].map(|percent| percentile(&latencies, percent))
}
