//! What was acknowledged survives any end of the process: two hundred times a child writes and is killed at a random
//! moment, and every write that it saw acknowledged must be there.

use super::ask::{get, merge, post};
use conductor_apiserver::Embedded;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

const KILLS: u32 = 200;
/// The variable that marks the child process and names its folder.
const FOLDER: &str = "EMBEDDED_DURABLE_FOLDER";
/// Before the name and the count of what was answered.
const KEPT: &str = "kept ";
const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn scratch(name: &str) -> PathBuf {
    let folder = std::env::temp_dir().join(format!("conductor-embedded-{name}-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    folder
}

#[tokio::test]
async fn objects_survive_an_orderly_end_and_revisions_go_on() {
    let folder = scratch("orderly");
    let revision = {
        let api = Embedded::open(&folder).expect("it opens");
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "kept"}, "data": {"a": "1"}});
        post(&api, MAPS, map).await.body["metadata"]["resourceVersion"]
            .as_str()
            .unwrap()
            .parse::<u64>()
            .unwrap()
    };
    // The thread that writes ends with the last of the API.
    let api = reopen(&folder).await;
    let kept = get(&api, &format!("{MAPS}/kept")).await;
    assert_eq!(kept.body["data"], json!({"a": "1"}));
    let next = merge(&api, &format!("{MAPS}/kept"), json!({"data": {"a": "2"}})).await;
    let next: u64 = next.body["metadata"]["resourceVersion"].as_str().unwrap().parse().unwrap();
    assert!(next > revision);
    let old = get(&api, &format!("{MAPS}?watch=1&timeoutSeconds=1&resourceVersion=1")).await;
    assert_eq!(old.body["object"]["reason"], "Expired", "what was before the start is forgotten");
    drop(api);
    let _ = std::fs::remove_dir_all(folder);
}

/// Opens a folder whose last user may still be closing it.
async fn reopen(folder: &Path) -> Embedded {
    for _ in 0..500 {
        match Embedded::open(folder) {
            Ok(api) => return api,
            Err(_) => tokio::time::sleep(Duration::from_millis(20)).await,
        }
    }
    Embedded::open(folder).expect("no other handle uses it")
}

#[test]
fn no_answered_write_is_lost_when_the_process_is_killed() {
    let folder = scratch("killed");
    let mut acknowledged: BTreeMap<String, u64> = BTreeMap::new();
    let mut seed = 0x5eed_u64;
    for round in 0..KILLS {
        let mut child = start(&folder, round);
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let patience = Duration::from_micros(500 + (seed >> 33) % 25_000);
        read_until_killed(&mut child, patience, &mut acknowledged, round);
    }
    assert!(acknowledged.len() > 20, "the children hardly wrote: {}", acknowledged.len());
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        let api = Embedded::open(&folder).expect("it opens after every kill");
        for (name, count) in &acknowledged {
            let kept = get(&api, &format!("{MAPS}/{name}")).await;
            assert_eq!(kept.code, 200, "{name} was answered and is lost");
            let found: u64 =
                kept.body["data"]["count"].as_str().and_then(|text| text.parse().ok()).expect("it counts");
            assert!(found >= *count, "{name}: {count} was answered, {found} is kept");
            assert_eq!(kept.body["data"]["twin"], kept.body["data"]["count"], "{name} is half written");
        }
        let all = get(&api, MAPS).await;
        for item in all.body["items"].as_array().expect("a list has items") {
            assert_eq!(item["data"]["twin"], item["data"]["count"], "{item} is half written");
        }
    });
    let _ = std::fs::remove_dir_all(folder);
}

fn start(folder: &Path, round: u32) -> Child {
    Command::new(std::env::current_exe().expect("this test is a program"))
        .args(["--exact", "durable::child", "--nocapture", "--ignored"])
        .env(FOLDER, folder)
        .env("EMBEDDED_DURABLE_ROUND", round.to_string())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("this test can be started again")
}

/// Reads what the child was answered until its time is over, kills it, and reads what it had still said.
fn read_until_killed(
    child: &mut Child,
    patience: Duration,
    acknowledged: &mut BTreeMap<String, u64>,
    round: u32,
) {
    let lines = BufReader::new(child.stdout.take().expect("it is piped")).lines();
    let (sender, receiver) = std::sync::mpsc::channel();
    let reader = std::thread::spawn(move || {
        for line in lines.map_while(Result::ok) {
            let _ = sender.send(line);
        }
    });
    // The clock starts when it writes, so that every child does. The first word shares its line with the harness.
    let mut first = String::new();
    while !first.contains(KEPT) {
        first = receiver.recv_timeout(Duration::from_secs(60)).expect("a child writes within a minute");
    }
    std::thread::sleep(patience);
    child.kill().expect("it can be killed");
    let _ = child.wait();
    let _ = reader.join();
    let mut any = false;
    for line in std::iter::once(first).chain(receiver.try_iter()) {
        if let Some((name, count)) = line.split_once(KEPT).and_then(|(_, rest)| rest.split_once(' ')) {
            any = true;
            let count: u64 = count.parse().unwrap_or(0);
            acknowledged.entry(name.to_owned()).and_modify(|old| *old = (*old).max(count)).or_insert(count);
        }
    }
    assert!(any, "child {round} wrote nothing");
}

/// Not a test: what the test above starts and kills. It writes until it dies, and says what it was answered.
#[test]
#[ignore = "run by no_answered_write_is_lost_when_the_process_is_killed as a child process"]
fn child() {
    let (Ok(folder), Ok(round)) = (std::env::var(FOLDER), std::env::var("EMBEDDED_DURABLE_ROUND")) else {
        return;
    };
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime can be made");
    runtime.block_on(async {
        let api = Embedded::open(folder).expect("it opens after a kill");
        let writers = (0..8).map(|writer| write(&api, format!("r{round}-w{writer}")));
        futures::future::join_all(writers).await;
    });
}

async fn write(api: &Embedded, name: String) {
    let body = |count: u64| -> Value {
        let text = count.to_string();
        json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name},
            "data": {"count": text, "padding": "x".repeat(200), "twin": text},
        })
    };
    assert_eq!(post(api, MAPS, body(0)).await.code, 201);
    say(&name, 0);
    for count in 1_u64.. {
        let text = count.to_string();
        let patch = json!({"data": {"count": text, "twin": text}});
        assert_eq!(merge(api, &format!("{MAPS}/{name}"), patch).await.code, 200);
        say(&name, count);
    }
}

fn say(name: &str, count: u64) {
    let mut out = std::io::stdout().lock();
    let _ = writeln!(out, "{KEPT}{name} {count}");
    let _ = out.flush();
}
