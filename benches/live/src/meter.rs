//! What a run costs: time on a core and memory of each process, writes that the API server counted, and when
//! each claim was seen Bound. It reads and never writes.

use anyhow::{Context, Result};
use futures::AsyncBufReadExt;
use http::Request;
use kube::Client;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// A process by its name.
pub type Process = (&'static str, u32);

/// What a process has used so far.
#[derive(Clone, Copy, Debug, Default)]
pub struct Usage {
    pub cpu: Duration,
    pub peak_mib: u64,
}

/// What a process has used so far; nothing where it has ended.
pub fn usage(pid: u32) -> Usage {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    // The name may hold anything, so the fields are counted from its end.
    let after_name = stat.rsplit_once(") ").map(|(_, rest)| rest).unwrap_or_default();
    let field = |at: usize| after_name.split(' ').nth(at).and_then(|n| n.parse::<u64>().ok()).unwrap_or(0);
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    let kib: u64 = peak.and_then(|p| p.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0);
    // The kernel counts in hundredths of a second, whatever its own tick is.
    Usage { cpu: Duration::from_millis((field(11) + field(12)) * 10), peak_mib: kib / 1024 }
}

/// Writes that the API server has served, without Leases and Events: Events are sent slowly in the background, and
/// no decision waits for them.
pub async fn writes(client: &Client) -> Result<u64> {
    let text = client.request_text(Request::get("/metrics").body(Vec::new())?).await?;
    let counted = text.lines().filter(|line| line.starts_with("apiserver_request_total{")).filter(|line| {
        let writes = ["POST", "PUT", "PATCH", "APPLY", "DELETE"];
        writes.iter().any(|verb| line.contains(&format!("verb=\"{verb}\"")))
            && !["leases", "events"].iter().any(|kind| line.contains(&format!("resource=\"{kind}\"")))
    });
    Ok(counted.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).sum::<f64>() as u64)
}

/// Notes when each object of a collection is first seen Bound.
pub struct Watcher {
    bound: Arc<Mutex<BTreeMap<String, Instant>>>,
    task: JoinHandle<()>,
}

impl Watcher {
    /// Begins to watch; what is there already does not count.
    pub async fn start(client: &Client, collection: &str) -> Result<Watcher> {
        let list: Value =
            client.request(Request::get(format!("{collection}?limit=1")).body(Vec::new())?).await?;
        let mut from = list.pointer("/metadata/resourceVersion").and_then(Value::as_str).map(str::to_owned);
        let bound: Arc<Mutex<BTreeMap<String, Instant>>> = Arc::default();
        let (client, collection, seen) = (client.clone(), collection.to_owned(), Arc::clone(&bound));
        let task = tokio::spawn(async move {
            while let Some(revision) = from.take() {
                from = watch(&client, &collection, revision, &seen).await.ok();
            }
        });
        Ok(Watcher { bound, task })
    }

    /// Waits until so many are Bound.
    pub async fn wait(&self, count: usize) -> Result<()> {
        let mut before = (0, Instant::now());
        loop {
            let now = self.seen().len();
            if now >= count {
                return Ok(());
            }
            if now > before.0 {
                before = (now, Instant::now());
            }
            let stuck = before.1.elapsed() > Duration::from_secs(120) || self.task.is_finished();
            (!stuck).then_some(()).with_context(|| format!("only {now} of {count} claims became Bound"))?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// When each was seen Bound.
    pub fn seen(&self) -> BTreeMap<String, Instant> {
        self.bound.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Drop for Watcher {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Watches until the API ends it; says where to go on.
async fn watch(
    client: &Client,
    collection: &str,
    mut revision: String,
    seen: &Mutex<BTreeMap<String, Instant>>,
) -> Result<String> {
    let uri = format!("{collection}?watch=1&allowWatchBookmarks=true&resourceVersion={revision}");
    let stream = client.request_stream(Request::get(uri).body(Vec::new())?).await?;
    let mut lines = Box::pin(stream).lines();
    while let Some(line) = futures::TryStreamExt::try_next(&mut lines).await? {
        let news: Value = serde_json::from_str(&line)?;
        let text = |at: &str| news.pointer(at).and_then(Value::as_str);
        if let Some(at) = text("/object/metadata/resourceVersion") {
            at.clone_into(&mut revision);
        }
        if let (Some("Bound"), Some(name)) = (text("/object/status/phase"), text("/object/metadata/name")) {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.entry(name.to_owned()).or_insert_with(Instant::now);
        }
    }
    Ok(revision)
}
