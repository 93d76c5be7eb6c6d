//! How long the simulator's answers take on a large cluster, and the memory at the most of each: load, plan (of claims that
//! all wait, and of a cluster where nine of ten are bound), what-if on that cluster from a state that was planned once,
//! replay. Each is measured in a process of its own. With `--write` the figures go into docs/benchmarks.md;
//! `CONDUCTOR_SCALE=1000` makes everything that many times smaller. Nothing is asserted.

use conductor::model::{Kind, Object, TypeId};
use conductor_simulator::load::{LoadOptions, load};
use conductor_simulator::plan::{Options, Planned};
use conductor_simulator::record::{Change, Decision, Header, Line, Verdict, Writer};
use conductor_simulator::replay;
use conductor_simulator::whatif::{Edit, Target, WhatIfSession};
use serde_json::{Value, json};
use std::fmt::Write as _;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RESOURCES: usize = 10_000;
const CLAIMS: usize = 100_000;
const EVENTS: usize = 1_000_000;
const SLOTS: usize = 10;
const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;
const COMMAND: &str = "cargo bench --package conductor-simulator --bench scale -- --write";
/// How often each question is repeated; the median counts.
const REPEATS: usize = 5;
/// What this bench measured before questions shared a plan and replays skipped events without effect.
const BEFORE: &str = "Before questions shared one plan, and replays skipped events without effect, this bench \
measured: load 1.6 s, plan 2.1 to 3.4 s, a question 2.7 s (two plans side by side), replay 20,700 events/s; memory 0.5 to \
1.3 GiB, in replay 2.6 GiB.";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).filter(|arg| arg != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--measure", what, file] => print!("{}", measure(what, Path::new(file))),
        ["--write"] => write_page(&report()),
        // `cargo test --benches` only checks that it runs.
        ["--test", ..] => {}
        _ => println!("{}", report()),
    }
}

fn write_page(report: &str) {
    let page = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks.md"));
    let text = format!(
        "Goals for 10,000 resources, 100,000 claims and 1,000,000 events: load under 3 s, plan under 5 s, a question to a \
         state\nthat was planned under 200 ms, replay over 200,000 events/s, memory under 1 GiB.\n\n{BEFORE}\n\n{report}"
    );
    conductor_bench_document::write(page, conductor_bench_document::Section::Simulator, COMMAND, &text)
        .expect("the page can be written");
    println!("{report}");
}

fn report() -> String {
    let scale: usize = std::env::var("CONDUCTOR_SCALE").ok().and_then(|s| s.parse().ok()).unwrap_or(1).max(1);
    let (resources, claims, events) = (RESOURCES / scale, CLAIMS / scale, EVENTS / scale);
    let folder = std::env::temp_dir().join(format!("conductor-scale-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    let waiting = write_state(&folder.join("waiting.json"), resources, claims, |object| object);
    let lived_in = write_state(&folder.join("lived-in.json"), resources, claims, lived_in);
    let history = write_recording(&folder, resources, claims, events);
    let mut text = format!("{resources} resources, {claims} claims, {events} events.\n\n");
    text.push_str("| what | time | peak memory of the process | |\n|---|---:|---:|---|\n");
    for (what, file) in [
        ("load", &waiting),
        ("plan", &waiting),
        ("plan", &lived_in),
        ("questions", &lived_in),
        ("replay", &history),
    ] {
        let exe = std::env::current_exe().expect("this program has a path");
        let output = Command::new(exe).args(["--measure", what]).arg(file).output();
        let rows = output.expect("this program can be run").stdout;
        let rows = String::from_utf8_lossy(&rows);
        eprint!("{rows}");
        text.push_str(&rows);
    }
    let _ = std::fs::remove_dir_all(&folder);
    text
}

/// One measurement, as rows of the table.
fn measure(what: &str, file: &Path) -> String {
    match what {
        "load" => {
            let (objects, ms) = timed(|| read(file));
            row("load", ms, &format!("{} objects", objects.len()))
        }
        "plan" => {
            let objects = read(file);
            let (plan, ms) = timed(|| Planned::new(objects, &Options::default()).plan());
            let summary = plan.summary;
            let state =
                if file.ends_with("waiting.json") { "all claims wait" } else { "nine of ten are bound" };
            row(
                &format!("plan, {state}"),
                ms,
                &format!("{} bound, {} pending", summary.bound, summary.pending),
            )
        }
        "questions" => questions(read(file)),
        "replay" => {
            let (played, ms) =
                timed(|| replay::replay(file, &replay::Options::default()).expect("our own recording"));
            let rate = played.events as f64 / ms * 1_000.0;
            let agree = played.agreement.percent.unwrap_or_default();
            row("replay", ms, &format!("{} events, {rate:.0} a second, {agree} % agree", played.events))
        }
        other => format!("nothing is known of {other}\n"),
    }
}

fn questions(objects: Vec<Object>) -> String {
    let (questions, ms) = timed(|| WhatIfSession::new(objects, &Options::default()));
    let mut text = row("the state planned once, for questions", ms, "");
    let target = |text: &str| Target::read(text, "team-0", "conductor-system").expect("a target");
    let set = |text: String| Edit::read_set(&text, "team-0", "conductor-system").expect("an edit");
    type Ask<'a> = (&'a str, &'a dyn Fn(usize) -> Edit);
    let requests: [Ask<'_>; 5] = [
        ("a resource is lost", &|n| Edit::Lose(target(&format!("resource/db-{n:05}")))),
        ("a claim is deleted", &|n| Edit::Delete(target(&format!("claim/team-{n}/claim-{n:06}")))),
        ("a resource grows", &|n| set(format!("resource/db-{n:05}:spec.capacity.storage=20Gi"))),
        ("a claim requests more", &|n| {
            let at = n * SLOTS + SLOTS - 1;
            set(format!("claim/team-{}/claim-{at:06}:spec.resources.requests.storage=2Gi", at % 100))
        }),
        ("100 claims more", &|n| Edit::Copies {
            like: target(&format!("claim/team-{n}/claim-{n:06}")),
            count: 100,
        }),
    ];
    for (what, ask) in requests {
        let mut answers: Vec<(f64, usize)> = Vec::new();
        for n in 0..REPEATS {
            let (answer, ms) = timed(|| questions.what_if(&[ask(n)]).expect("an edit"));
            answers.push((ms, answer.difference.claims.len()));
        }
        answers.sort_by(|a, b| a.0.total_cmp(&b.0));
        let (ms, changed) = answers[REPEATS / 2];
        text.push_str(&row(&format!("what if {what}"), ms, &format!("{changed} claims change")));
    }
    text
}

fn read(file: &Path) -> Vec<Object> {
    let loaded = load(&[file], &LoadOptions::default()).expect("our own manifests");
    loaded.objects.into_iter().map(|l| l.object).collect()
}

/// What came of it, and the milliseconds that it took.
fn timed<T>(work: impl FnOnce() -> T) -> (T, f64) {
    let begun = Instant::now();
    let done = work();
    (done, begun.elapsed().as_secs_f64() * 1_000.0)
}

fn row(what: &str, ms: f64, more: &str) -> String {
    let time = if ms < 1_000.0 { format!("{ms:.0} ms") } else { format!("{:.2} s", ms / 1_000.0) };
    let mut row = String::new();
    let _ = writeln!(row, "| {what} | {time} | {} MiB | {more} |", peak_mib());
    row
}

/// The cluster after a while: nine of ten claims have their resource, the last wait.
fn lived_in(mut object: Value) -> Value {
    let bound = |at: usize| at % SLOTS != SLOTS - 1;
    let name = object["metadata"]["name"].as_str().unwrap_or_default();
    let at: usize = name.rsplit('-').next().and_then(|n| n.parse().ok()).unwrap_or(0);
    if object["kind"] == Kind::Resource(TYPE).name() {
        let held = (at * SLOTS..(at + 1) * SLOTS).filter(|n| bound(*n)).map(claim_ref);
        object["spec"]["claimRefs"] = held.collect();
        object["status"]["phase"] = json!("Bound");
    } else if bound(at) {
        let resource = json!({"name": format!("db-{:05}", at / SLOTS), "namespace": "conductor-system"});
        object["status"] = json!({"phase": "Bound", "resourceRef": resource});
    }
    object
}

fn claim_ref(at: usize) -> Value {
    json!({
        "namespace": format!("team-{}", at % 100), "name": format!("claim-{at:06}"), "uid": format!("c-{at}"),
        "requests": {"storage": "1Gi"},
    })
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()).unwrap_or(0) / 1_024
}

fn resource(at: usize) -> Value {
    json!({
        "apiVersion": Kind::Resource(TYPE).api_version(), "kind": Kind::Resource(TYPE).name(),
        "metadata": {"name": format!("db-{at:05}"), "namespace": "conductor-system", "uid": format!("r-{at}"), "resourceVersion": "1"},
        "spec": {"engine": "postgresql", "version": "16.2", "capacity": {"storage": "10Gi"}, "sharing": {"maxClaims": SLOTS}},
        "status": {"phase": "Available"},
    })
}

fn claim(at: usize) -> Value {
    json!({
        "apiVersion": Kind::Claim(TYPE).api_version(), "kind": Kind::Claim(TYPE).name(),
        "metadata": {"name": format!("claim-{at:06}"), "namespace": format!("team-{}", at % 100), "uid": format!("c-{at}")},
        "spec": {"engine": "postgresql", "version": ">= 15", "resources": {"requests": {"storage": "1Gi"}}},
    })
}

fn write_state(path: &Path, resources: usize, claims: usize, lives: impl Fn(Value) -> Value) -> PathBuf {
    let mut out = BufWriter::new(File::create(path).expect("a file can be made"));
    let objects = (0..resources).map(resource).chain((0..claims).map(claim)).map(lives);
    writeln!(out, "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[").expect("it is written");
    for (at, object) in objects.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        writeln!(out, "{comma}{object}").expect("it is written");
    }
    writeln!(out, "]}}").expect("it is written");
    path.to_owned()
}

/// Claims are created one by one, the live engine fills one resource after the other, and statuses change often.
fn write_recording(folder: &Path, resources: usize, claims: usize, events: usize) -> PathBuf {
    let path = folder.join("history.rec");
    let mut out = Writer::new(BufWriter::new(File::create(&path).expect("a file can be made")));
    let header = Header {
        format: 1,
        recorder: env!("CARGO_PKG_VERSION").to_owned(),
        began: 1_704_300_000_000,
        system_namespace: "conductor-system".to_owned(),
        kinds: [("RelationalDatabase".to_owned(), "1".to_owned())].into(),
        redaction: "allow-list-1".to_owned(),
        part: 1,
        ..Header::default()
    };
    out.line(&Line::Header(Box::new(header))).expect("it is written");
    (0..resources).for_each(|at| out.line(&Line::Obj { o: resource(at) }).expect("it is written"));
    let (mut revision, mut written, echoes) = (1_u64, 0, (events / claims.max(1)).saturating_sub(3));
    for at in 0..claims.min(resources * SLOTS) {
        let name = format!("claim-{at:06}");
        let (ns, uid, time) = (format!("team-{}", at % 100), format!("c-{at}"), (at as u64) * 10);
        let mut change = |kind: Kind,
                          ns: &str,
                          name: &str,
                          uid: &str,
                          new: Option<Value>,
                          patch: Option<Value>| {
            revision += 1;
            written += 1;
            let stamp = |mut value: Value| {
                value["metadata"]["resourceVersion"] = json!(revision.to_string());
                value
            };
            let (kind, ns, name, uid) =
                (kind.name().to_owned(), ns.to_owned(), name.to_owned(), uid.to_owned());
            let (new, patch) = (new.map(stamp), patch.map(stamp));
            out.line(&Line::Ev(Change { at: time, kind, ns, name, uid, new, patch, gone: false, rev: None }))
                .expect("it is written");
        };
        change(Kind::Claim(TYPE), &ns, &name, &uid, Some(claim(at)), None);
        let (slot, db) = (at % SLOTS, at / SLOTS);
        let refs: Vec<Value> = (db * SLOTS..=db * SLOTS + slot).map(claim_ref).collect();
        let resource = format!("db-{db:05}");
        change(
            Kind::Resource(TYPE),
            "conductor-system",
            &resource,
            &format!("r-{db}"),
            None,
            Some(json!({"spec": {"claimRefs": refs}})),
        );
        let (kind, verdict) =
            (Kind::Claim(TYPE).name().to_owned(), Verdict::Bind { resource: resource.clone() });
        let decision =
            Decision { at: time, kind, ns: ns.clone(), name: name.clone(), uid: uid.clone(), verdict };
        out.line(&Line::Dec(decision)).expect("it is written");
        let mut change = |patch: Value| {
            revision += 1;
            written += 1;
            let mut patch = patch;
            patch["metadata"]["resourceVersion"] = json!(revision.to_string());
            let (kind, ns, name, uid) =
                (Kind::Claim(TYPE).name().to_owned(), ns.clone(), name.clone(), uid.clone());
            out.line(&Line::Ev(Change {
                at: time,
                kind,
                ns,
                name,
                uid,
                new: None,
                patch: Some(patch),
                gone: false,
                rev: None,
            }))
            .expect("it is written");
        };
        change(
            json!({"status": {"phase": "Bound", "resourceRef": {"name": resource, "namespace": "conductor-system"}}}),
        );
        (0..echoes).for_each(|n| change(json!({"status": {"observedGeneration": n}})));
    }
    out.finish(claims as u64 * 10).expect("it is written");
    path
}
