//! The embedded API measured from within its process: creates, patches, what a hundred watchers cost, a list of a
//! hundred thousand objects, and the same writes kept on disk. Figures of one run, to be read beside each other.

use conductor_simulator::embedded::Embedded;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::json;
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const WRITES: usize = 5_000;
const AT_ONCE: usize = 32;
const WATCHERS: usize = 100;
const WATCHED: usize = 500;
const LISTED: usize = 100_000;

fn main() {
    // `cargo test --benches` only asks whether it runs.
    if !std::env::args().any(|argument| argument == "--bench") {
        return;
    }
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        writes("in memory", &maps(&Embedded::in_memory())).await;
        fan_out(&maps(&Embedded::in_memory())).await;
        list(&maps(&Embedded::in_memory())).await;
        let folder = std::env::temp_dir().join(format!("conductor-embedded-bench-{}", std::process::id()));
        {
            let disk = Embedded::open(&folder).expect("the folder can be used");
            writes("on disk", &maps(&disk)).await;
        }
        // What cannot be removed is the system's to clean: it is a temporary folder.
        let _ = std::fs::remove_dir_all(folder);
    });
}

fn maps(api: &Embedded) -> Api<ConfigMap> {
    let client: Client = api.client();
    Api::namespaced(client, "default")
}

fn map(name: String) -> ConfigMap {
    let data = [("key".to_owned(), "x".repeat(200))].into();
    ConfigMap {
        metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
        data: Some(data),
        ..ConfigMap::default()
    }
}

fn tell(what: &str, count: usize, took: Duration) {
    let rate = count as f64 / took.as_secs_f64();
    println!("{what:<44} {count:>8} in {:>8.1} ms  {rate:>10.0}/s", took.as_secs_f64() * 1e3);
}

/// Runs `work` for each number, so many at once.
async fn many<F: Future<Output = ()>>(count: usize, work: impl Fn(usize) -> F) -> Duration {
    let start = Instant::now();
    futures::stream::iter(0..count).map(work).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    start.elapsed()
}

async fn create(maps: &Api<ConfigMap>, name: String) {
    maps.create(&PostParams::default(), &map(name)).await.expect("it can be created");
}

async fn writes(place: &str, maps: &Api<ConfigMap>) {
    let created = many(WRITES, |number| create(maps, format!("m{number}"))).await;
    tell(&format!("creates {place}, {AT_ONCE} at once"), WRITES, created);
    let patched = many(WRITES, |number| async move {
        let patch = Patch::Merge(json!({"data": {"key": "y"}}));
        maps.patch(&format!("m{number}"), &PatchParams::default(), &patch).await.expect("it can be patched");
    });
    tell(&format!("patches {place}, {AT_ONCE} at once"), WRITES, patched.await);
}

async fn fan_out(maps: &Api<ConfigMap>) {
    let watchers: Vec<_> = (0..WATCHERS).map(|_| tokio::spawn(follow(maps.clone()))).collect();
    let start = Instant::now();
    many(WATCHED, |number| create(maps, format!("w{number}"))).await;
    for watcher in watchers {
        watcher.await.expect("a watcher does not panic");
    }
    tell(&format!("events told to {WATCHERS} watchers"), WATCHED * WATCHERS, start.elapsed());
}

async fn follow(maps: Api<ConfigMap>) {
    let mut seen = 0;
    let mut events = maps.watch(&WatchParams::default(), "0").await.expect("it can be watched").boxed();
    while seen < WATCHED {
        match events.try_next().await {
            Ok(Some(WatchEvent::Added(_))) => seen += 1,
            Ok(Some(_)) => {}
            other => panic!("a watch ended early: {other:?}"),
        }
    }
}

async fn list(maps: &Api<ConfigMap>) {
    many(LISTED, |number| create(maps, format!("l{number:06}"))).await;
    for round in ["first", "again"] {
        let start = Instant::now();
        let found = maps.list(&ListParams::default()).await.expect("it can be listed").items.len();
        assert_eq!(found, LISTED);
        tell(&format!("list, read by the client, {round}"), LISTED, start.elapsed());
    }
}
