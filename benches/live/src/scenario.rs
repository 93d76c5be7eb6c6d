//! The runs. Each begins when everything before it has settled, and measures from outside: what a client of the
//! API sees.

use crate::binder::{Binder, Rival};
use crate::cluster::Cluster;
use crate::meter::{self, Process, Usage, Watcher};
use anyhow::{Result, bail};
use futures::{StreamExt, TryStreamExt, stream};
use serde_json::Value;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Claims that are made at the same time when they arrive.
const ARRIVING: usize = 16;

/// One run.
#[derive(Debug, Default)]
pub struct Outcome {
    pub per_second: f64,
    /// From the sending of a claim until it was seen Bound; none where claims were there before.
    pub latency: Option<(Duration, Duration)>,
    /// How many claims were made a second, where they arrive: no binder is faster than they come.
    pub made_per_second: Option<f64>,
    pub writes_per_bind: f64,
    pub used: Vec<(&'static str, Usage)>,
}

/// Claims and offers that a binder finds when it starts; it runs on afterwards.
pub async fn backlog(cluster: &mut Cluster, binder: &mut Binder, count: usize) -> Result<Outcome> {
    let rival = binder.rival;
    eprintln!("{}: a backlog of {count} claims", rival.name());
    make_offers(cluster, rival, "backlog", count).await?;
    let names: Vec<String> = (0..count).map(|n| format!("backlog-{n:06}")).collect();
    cluster.create_all(named(rival.claims(), &names, |name| rival.claim(name))).await?;
    let before = meter::writes(&cluster.client).await?;
    let watcher = Watcher::start(&cluster.client, rival.claims()).await?;
    binder.start(cluster).await?;
    let started = usages(&binder.processes(cluster));
    watcher.wait(count).await?;
    let seen = watcher.seen();
    let (first, last) = (seen.values().min(), seen.values().max());
    let taken = first.zip(last).map_or(Duration::ZERO, |(first, last)| *last - *first);
    settle(cluster).await?;
    let writes = meter::writes(&cluster.client).await? - before;
    Ok(Outcome {
        per_second: (count - 1) as f64 / taken.as_secs_f64(),
        latency: None,
        made_per_second: None,
        writes_per_bind: writes as f64 / count as f64,
        used: used_since(&started, &binder.processes(cluster)),
    })
}

/// What Conductor does when many are bound already: new ones, and a restart.
#[derive(Debug)]
pub struct Crowded {
    pub arrivals: Outcome,
    pub objects: usize,
    pub ready_after: Duration,
    pub writes_after_restart: u64,
    pub memory_mib: u64,
}

pub async fn crowd(
    cluster: &mut Cluster,
    binder: &mut Binder,
    bound: usize,
    count: usize,
) -> Result<Crowded> {
    eprintln!("{}: {bound} claims are bound first", binder.rival.name());
    make_offers(cluster, binder.rival, "crowd", bound).await?;
    binder.start(cluster).await?;
    arrive_on(cluster, binder, "crowd", bound).await?;
    let arrivals = arrive(cluster, binder, "late", count).await?;
    let objects = 2 * (bound + count);
    eprintln!("{}: killed and started again", binder.rival.name());
    binder.kill(cluster);
    let before = meter::writes(&cluster.client).await?;
    let ready_after = binder.start(cluster).await?;
    settle(cluster).await?;
    let writes_after_restart = meter::writes(&cluster.client).await? - before;
    let ours = binder.processes(cluster).into_iter().find(|(name, _)| *name == "conductor");
    let memory_mib = ours.map_or(0, |(_, pid)| meter::usage(pid).peak_mib);
    binder.kill(cluster);
    Ok(Crowded { arrivals, objects, ready_after, writes_after_restart, memory_mib })
}

/// Offers first; when they are all Available, claims as fast as they can be made.
pub async fn arrive(cluster: &Cluster, binder: &Binder, prefix: &str, count: usize) -> Result<Outcome> {
    eprintln!("{}: {count} claims that arrive", binder.rival.name());
    make_offers(cluster, binder.rival, prefix, count).await?;
    arrive_on(cluster, binder, prefix, count).await
}

async fn arrive_on(cluster: &Cluster, binder: &Binder, prefix: &str, count: usize) -> Result<Outcome> {
    let rival = binder.rival;
    wait_phase(cluster, rival.offers(), "Available", count).await?;
    settle(cluster).await?;
    let before = meter::writes(&cluster.client).await?;
    let started = usages(&binder.processes(cluster));
    let watcher = Watcher::start(&cluster.client, rival.claims()).await?;
    let names = (0..count).map(|n| format!("{prefix}-{n:06}"));
    let begun = Instant::now();
    let sent = stream::iter(names).map(|name| async move {
        let sent = Instant::now();
        cluster.create(rival.claims(), &rival.claim(&name)).await.map(|_| (name, sent))
    });
    let sent: BTreeMap<String, Instant> = sent.buffer_unordered(ARRIVING).try_collect().await?;
    let made_per_second = count as f64 / begun.elapsed().as_secs_f64();
    watcher.wait(count).await?;
    let seen = watcher.seen();
    let last = seen.values().max().copied().unwrap_or(begun);
    let mut latencies: Vec<Duration> =
        sent.iter().filter_map(|(name, sent)| Some(*seen.get(name)? - *sent)).collect();
    latencies.sort_unstable();
    settle(cluster).await?;
    let writes = meter::writes(&cluster.client).await? - before;
    let made = count as u64;
    Ok(Outcome {
        per_second: count as f64 / (last - begun).as_secs_f64(),
        latency: Some((percentile(&latencies, 50), percentile(&latencies, 99))),
        made_per_second: Some(made_per_second),
        writes_per_bind: writes.saturating_sub(made) as f64 / count as f64,
        used: used_since(&started, &binder.processes(cluster)),
    })
}

pub fn percentile(sorted: &[Duration], percent: usize) -> Duration {
    let at = (sorted.len() * percent).div_ceil(100).saturating_sub(1);
    sorted.get(at).copied().unwrap_or_default()
}

pub fn named(path: &str, names: &[String], object: impl Fn(&str) -> Value) -> Vec<(String, Value)> {
    names.iter().map(|name| (path.to_owned(), object(name))).collect()
}

pub async fn make_offers(cluster: &Cluster, rival: Rival, prefix: &str, count: usize) -> Result<()> {
    let names: Vec<String> = (0..count).map(|n| format!("{prefix}-{n:06}")).collect();
    cluster.create_all(named(rival.offers(), &names, |name| rival.offer(name))).await
}

/// Waits until so many objects of a collection are in a phase.
pub async fn wait_phase(cluster: &Cluster, collection: &str, phase: &str, count: usize) -> Result<()> {
    let until = Instant::now() + Duration::from_secs(600);
    while cluster.count_phase(collection, phase).await? < count {
        if Instant::now() > until {
            bail!("{count} objects of {collection} did not become {phase} in ten minutes");
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
    Ok(())
}

/// Waits until the API server has served no write for two seconds.
pub async fn settle(cluster: &Cluster) -> Result<()> {
    let mut last = (meter::writes(&cluster.client).await?, Instant::now());
    while last.1.elapsed() < Duration::from_secs(2) {
        tokio::time::sleep(Duration::from_millis(200)).await;
        let now = meter::writes(&cluster.client).await?;
        if now != last.0 {
            last = (now, Instant::now());
        }
    }
    Ok(())
}

fn usages(processes: &[Process]) -> Vec<(Process, Usage)> {
    processes.iter().map(|process| (*process, meter::usage(process.1))).collect()
}

fn used_since(before: &[(Process, Usage)], processes: &[Process]) -> Vec<(&'static str, Usage)> {
    let used = |process: &Process| {
        let known = before.iter().find(|(p, _)| p == process).map(|(_, usage)| *usage).unwrap_or_default();
        let now = meter::usage(process.1);
        (process.0, Usage { cpu: now.cpu.saturating_sub(known.cpu), peak_mib: now.peak_mib })
    };
    processes.iter().map(used).collect()
}
