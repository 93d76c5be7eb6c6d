//! The embedded API and the real one under the same work in one run: creates, patches, what a hundred watchers
//! receive, a list of a hundred thousand objects, and the memory that it takes. Every API but the first is a process of
//! its own, reached over HTTPS. Figures are to be read beside each other; nothing is asserted about them.

use conductor_apiserver::Embedded;
use conductor_bench_document::{Section, write};
use conductor_conformance::side::{Real, connect};
use conductor_controlplane::Part;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::{ConfigMap, Namespace};
use kube::api::{ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::json;
use std::fmt::Write as _;
use std::io::{BufRead, BufReader, Read};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const COMMAND: &str = "cargo bench --package conductor-conformance --bench apis -- --write";
const WRITES: usize = 5_000;
const AT_ONCE: usize = 32;
const WATCHERS: usize = 100;
const WATCHED: usize = 500;
const LISTED: usize = 100_000;

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let runtime =
        tokio::runtime::Builder::new_multi_thread().enable_all().build().expect("a runtime can be made");
    match arguments.get(1).map(String::as_str) {
        Some("serve") => runtime.block_on(serve(arguments.get(2).map(Path::new))),
        // `cargo test --benches` only asks whether it runs.
        _ if !arguments.iter().any(|argument| argument == "--bench") => {}
        _ => {
            let report = runtime.block_on(compare());
            println!("\n{report}");
            if arguments.iter().any(|argument| argument == "--write") {
                let page = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md"));
                write(page, Section::Apis, COMMAND, &report).expect("the page can be written");
            }
        }
    }
}

/// The embedded API alone in a process: prints where its kubeconfig is, and ends with its standard input.
async fn serve(data: Option<&Path>) {
    let api = match data {
        Some(folder) => Embedded::open(folder.join("data")).expect("the folder can be used"),
        None => Embedded::in_memory(),
    };
    let served = api.serve(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await.expect("a port is free");
    let kubeconfig = std::env::temp_dir().join(format!("conductor-apis-{}.kubeconfig", std::process::id()));
    std::fs::write(&kubeconfig, &served.kubeconfig).expect("a file can be written");
    println!("{}", kubeconfig.display());
    let ended = tokio::task::spawn_blocking(|| std::io::stdin().read_to_end(&mut Vec::new()));
    let _ = ended.await;
    let _ = std::fs::remove_file(kubeconfig);
}

async fn compare() -> String {
    let mut rows: Vec<(&str, Figures)> = Vec::new();
    let own = Embedded::in_memory();
    rows.push(("embedded, within the client's process", measure(&own.client(), &[]).await));
    drop(own);
    for (name, is_kept) in [("embedded, in memory", false), ("embedded, kept on disk", true)] {
        let process = Process::start(is_kept);
        let client = connect(&process.kubeconfig).await.expect("our own API answers");
        rows.push((name, measure(&client, &[process.child.id()]).await));
    }
    let real = Real::start().expect("the real control plane starts");
    let client = connect(real.plane.kubeconfig()).await.expect("the real API answers");
    let pids: Vec<u32> =
        [Part::ApiServer, Part::Etcd].into_iter().filter_map(|part| real.plane.pid(part)).collect();
    rows.push(("kube-apiserver and etcd", measure(&client, &pids).await));
    table(&rows)
}

/// A child that serves, gone with this.
struct Process {
    child: Child,
    kubeconfig: PathBuf,
    folder: PathBuf,
}

impl Process {
    fn start(is_kept: bool) -> Process {
        let folder = std::env::temp_dir().join(format!("conductor-apis-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("a folder can be made");
        let mut command = Command::new(std::env::current_exe().expect("we are a file"));
        command.arg("serve").args(is_kept.then_some(&folder));
        let mut child =
            command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().expect("we can run twice");
        let mut line = String::new();
        let said = child.stdout.take().expect("it is piped");
        BufReader::new(said).read_line(&mut line).expect("it says where its kubeconfig is");
        Process { child, kubeconfig: PathBuf::from(line.trim()), folder }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The end of its input ends it.
        drop(self.child.stdin.take());
        let _ = self.child.wait();
        // What cannot be removed is the system's to clean: it is a temporary folder.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What was measured on one API.
struct Figures {
    creates: Duration,
    patches: Duration,
    events: Duration,
    lists: [Duration; 2],
    /// The most that its processes took together; unknown where it shares the client's.
    memory_mib: Option<u64>,
}

async fn measure(client: &Client, pids: &[u32]) -> Figures {
    let (creates, patches) = writes(&maps(client, "writes").await).await;
    let events = fan_out(&maps(client, "watches").await).await;
    let lists = list(&maps(client, "lists").await).await;
    let memory_mib = (!pids.is_empty()).then(|| pids.iter().map(|pid| peak_mib(*pid)).sum());
    eprintln!("measured one of four");
    Figures { creates, patches, events, lists, memory_mib }
}

/// The ConfigMaps of a namespace of their own.
async fn maps(client: &Client, namespace: &str) -> Api<ConfigMap> {
    let metadata = ObjectMeta { name: Some(namespace.to_owned()), ..ObjectMeta::default() };
    let wanted = Namespace { metadata, ..Namespace::default() };
    let namespaces: Api<Namespace> = Api::all(client.clone());
    namespaces.create(&PostParams::default(), &wanted).await.expect("a namespace can be made");
    Api::namespaced(client.clone(), namespace)
}

/// Runs `work` for each number, so many at once.
async fn many<F: Future<Output = ()>>(count: usize, work: impl Fn(usize) -> F) -> Duration {
    let start = Instant::now();
    futures::stream::iter(0..count).map(work).buffer_unordered(AT_ONCE).collect::<Vec<()>>().await;
    start.elapsed()
}

async fn create(maps: &Api<ConfigMap>, name: String) {
    let map = ConfigMap {
        metadata: ObjectMeta { name: Some(name), ..ObjectMeta::default() },
        data: Some([("key".to_owned(), "x".repeat(200))].into()),
        ..ConfigMap::default()
    };
    maps.create(&PostParams::default(), &map).await.expect("it can be created");
}

async fn writes(maps: &Api<ConfigMap>) -> (Duration, Duration) {
    let created = many(WRITES, |number| create(maps, format!("m{number}"))).await;
    let patched = many(WRITES, |number| async move {
        let patch = Patch::Merge(json!({"data": {"key": "y"}}));
        maps.patch(&format!("m{number}"), &PatchParams::default(), &patch).await.expect("it can be patched");
    });
    (created, patched.await)
}

/// From the first create until every watcher has heard of the last.
async fn fan_out(maps: &Api<ConfigMap>) -> Duration {
    let watchers: Vec<_> = (0..WATCHERS).map(|_| tokio::spawn(follow(maps.clone()))).collect();
    let start = Instant::now();
    many(WATCHED, |number| create(maps, format!("w{number}"))).await;
    for watcher in watchers {
        watcher.await.expect("a watcher does not panic");
    }
    start.elapsed()
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

/// The same list twice, read whole by the client.
async fn list(maps: &Api<ConfigMap>) -> [Duration; 2] {
    many(LISTED, |number| create(maps, format!("l{number:06}"))).await;
    let mut took = [Duration::ZERO; 2];
    for took in &mut took {
        let start = Instant::now();
        let found = maps.list(&ListParams::default()).await.expect("it can be listed").items.len();
        *took = start.elapsed();
        assert_eq!(found, LISTED);
    }
    took
}

fn peak_mib(pid: u32) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").parse::<u64>().ok()).unwrap_or(0) / 1_024
}

fn table(rows: &[(&str, Figures)]) -> String {
    let mut text = format!(
        "The same work on each, one after the other: {WRITES} ConfigMaps created and patched, {AT_ONCE} at once;\n\
         {WATCHED} creates watched by {WATCHERS} clients, in events received per second; {LISTED} ConfigMaps in one list, read whole\n\
         by the client, twice. Memory is the peak of the API's processes. The client runs on the same cores and\n\
         decodes what it receives. etcd runs here without waiting for the disk (`--unsafe-no-fsync`); our own API on disk\n\
         waits for it at every commit. kube-apiserver does much more: authorization, admission, audit, priority and\n\
         fairness, conversions.\n\n\
         | API | creates/s | patches/s | events/s | list | again | memory |\n|---|---:|---:|---:|---:|---:|---:|\n"
    );
    for (name, Figures { creates, patches, events, lists: [first, again], memory_mib }) in rows {
        let rate = |count: usize, took: &Duration| count as f64 / took.as_secs_f64();
        let memory = memory_mib.map_or(String::new(), |mib| format!("{mib} MiB"));
        let _ = writeln!(
            text,
            "| {name} | {:.0} | {:.0} | {:.0} | {:.2} s | {:.2} s | {memory} |",
            rate(WRITES, creates),
            rate(WRITES, patches),
            rate(WATCHED * WATCHERS, events),
            first.as_secs_f64(),
            again.as_secs_f64(),
        );
    }
    text
}
