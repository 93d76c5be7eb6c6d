//! What the log keeps of deleted objects. The first test measures, on request; the second asserts.

use super::ask::{delete, get, merge, post};
use conductor_apiserver::{Embedded, Options};
use serde_json::json;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn come_and_go(api: &Embedded, objects: usize, padding: usize) {
    for n in 0..objects {
        let name = format!("m-{n}");
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"padding": "x".repeat(padding)},
        });
        assert_eq!(post(api, MAPS, map).await.code, 201);
        for step in 0..3 {
            let patch = json!({"data": {"step": step.to_string()}});
            assert_eq!(merge(api, &format!("{MAPS}/{name}"), patch).await.code, 200);
        }
        assert_eq!(delete(api, &format!("{MAPS}/{name}")).await.code, 200);
    }
}

fn resident_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap_or_default();
    line.split_whitespace().nth(1).and_then(|text| text.parse::<u64>().ok()).unwrap_or(0) / 1024
}

/// `cargo test -p conductor-apiserver --test api measure -- --ignored --nocapture`, with LOG_BYTES_MAX for another
/// bound than the default; one run each, because a process does not give its memory back.
#[tokio::test]
#[ignore = "it measures: run it by name"]
async fn measure_what_26000_objects_leave() {
    let bound = std::env::var("LOG_BYTES_MAX").ok().and_then(|text| text.parse().ok());
    let mut options = Options::default();
    options.log_bytes_max = bound.unwrap_or(options.log_bytes_max);
    let api = Embedded::in_memory_with(options.clone());
    let before = resident_mib();
    come_and_go(&api, 26_000, 4_000).await;
    println!("log_bytes_max {}: {before} MiB before, {} MiB after", options.log_bytes_max, resident_mib());
}

#[tokio::test]
async fn a_watch_older_than_the_log_in_bytes_lists_anew() {
    let options = Options { log_bytes_max: 100_000, ..Options::default() };
    let api = Embedded::in_memory_with(options);
    let begun = get(&api, MAPS).await.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    come_and_go(&api, 20, 4_000).await;
    let old = get(&api, &format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={begun}")).await;
    assert_eq!(old.body["object"]["reason"], "Expired", "{:?}", old.body);
    let now = get(&api, MAPS).await.body["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    let new = get(&api, &format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion={now}")).await;
    assert_eq!(new.code, 200);
    assert!(!new.body.to_string().contains("Expired"), "{:?}", new.body);
}
