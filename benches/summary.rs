//! The table that people read: decisions by number of resources, the whole plan, events by number parked.
//! With `--write` it updates docs/benchmarks.md. Every figure comes from one run on one machine.

mod support;

use conductor::cache::State;
use conductor::engine::{Config, Engine};
use conductor::event::Event;
use conductor::model::{Claim, Object};
use conductor::scheduler::{Memo, prepare, schedule_one};
use std::fmt::Write;
use std::hint::black_box;
use std::process::Command;
use std::time::{Duration, Instant};
use support::{Dice, NOW, Sizes, Wish};

/// Claims and resources of the plan.
const PLAN: u64 = 100_000;
const COMMAND: &str = "cargo bench --package conductor --bench summary -- --write";

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    match args.iter().map(String::as_str).find(|a| *a != "--bench") {
        Some("--plan") => {
            let sizes = if args.iter().any(|a| a == "any") { Sizes::Any } else { Sizes::Shirts };
            let count = args.iter().find_map(|a| a.parse().ok()).unwrap_or(PLAN);
            print!("{}", plan(count, sizes));
        }
        Some("--write") => write(&report()),
        // `cargo test --benches` only asks whether it runs.
        Some("--test") => {}
        _ => println!("{}", report()),
    }
}

fn report() -> String {
    let mut text = String::new();
    decisions(&mut text);
    worst_cases(&mut text);
    plans(&mut text);
    events(&mut text);
    templates(&mut text);
    text
}

/// A class of three objects whose outputs are all known, so that all of it is rendered.
fn templates(text: &mut String) {
    let compiled = support::compile(&support::graph_class());
    let inputs = support::GraphInputs::new();
    let round = || {
        let start = Instant::now();
        for _ in 0..200 {
            black_box(compiled.render(&inputs.all_there()));
        }
        start.elapsed()
    };
    let best = (0..20).map(|_| round()).min().unwrap_or_default();
    text.push_str("\n## One class of three objects\n\nCompiled once; nine expressions; each object uses the status of the previous one.\n\n");
    text.push_str("| step | time |\n|---|---:|\n");
    row(text, &format!("| render | {} |", us(best.as_nanos() as f64 / 200.0)));
}

fn write(report: &str) {
    let page = std::path::Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/benchmarks.md"));
    let text = format!(
        "Worlds are generated from fixed seeds (`benches/support`). Goals: a decision among 100,000 resources\n\
         under 20 µs and no more than twice that among 1,000,000; 100,000 claims against 100,000 resources\n\
         under 3 s on one core and under 1 GiB; the cost of an event does not grow with the claims parked; a class of\n\
         three objects rendered under 100 µs.\n{report}"
    );
    conductor_bench_document::write(page, conductor_bench_document::Section::Engine, COMMAND, &text)
        .expect("the page can be written");
    println!("{report}");
}

/// The best of several rounds over all claims, in nanoseconds per decision: what else the machine
/// does can only add to it.
fn ns_per_decision(state: &State, claims: &[Claim]) -> f64 {
    let round = || {
        let start = Instant::now();
        for claim in claims {
            let request = prepare(state, claim).expect("readable");
            black_box(schedule_one(state, &request, &mut Memo::default()));
        }
        start.elapsed()
    };
    let best = (0..20).map(|_| round()).min().unwrap_or_default();
    best.as_nanos() as f64 / claims.len().max(1) as f64
}

fn decisions(text: &mut String) {
    text.push_str("\n### One decision\n\nA request with engine, version range, class, selector and capacity; nothing remembered from the last one.\n\n");
    text.push_str("| resources | sizes | fits | refused, with counts |\n|---:|---|---:|---:|\n");
    let mut grown = String::new();
    for sizes in [Sizes::Shirts, Sizes::Any] {
        let mut before = None;
        for count in [1_000, 10_000, 100_000, 1_000_000] {
            let state = support::state(count, sizes);
            let fits = ns_per_decision(&state, &support::claims(&state, Wish::Usual, true, 256));
            let refused = ns_per_decision(&state, &support::claims(&state, Wish::Impossible, false, 256));
            let name = name(sizes);
            row(text, &format!("| {count} | {name} | {} | {} |", us(fits), us(refused)));
            if let Some((f, r)) = before {
                let _ = writeln!(
                    grown,
                    "| {} -> {count} | {name} | {:.2} | {:.2} |",
                    count / 10,
                    fits / f,
                    refused / r
                );
            }
            before = Some((fits, refused));
        }
    }
    text.push_str("\n| growth, times | sizes | fits | refused |\n|---|---|---:|---:|\n");
    text.push_str(&grown);
}

/// Adds a line to the table, and shows at once how far it has come.
fn row(text: &mut String, line: &str) {
    eprintln!("{line}");
    let _ = writeln!(text, "{line}");
}

fn name(sizes: Sizes) -> &'static str {
    match sizes {
        Sizes::Shirts => "12 sizes",
        Sizes::Any => "all different",
    }
}

fn us(ns: f64) -> String {
    format!("{:.2} µs", ns / 1_000.0)
}

fn worst_cases(text: &mut String) {
    text.push_str("\n### Awkward requests, among 100000\n\n| request | sizes | time |\n|---|---|---:|\n");
    for sizes in [Sizes::Shirts, Sizes::Any] {
        let state = support::state(100_000, sizes);
        let cases = [
            ("connections that few have, refused", Wish::Scarce, false),
            ("connections that few have, fits", Wish::Scarce, true),
            ("all but two instances, fits", Wish::NotThese, true),
            ("all but two instances, refused", Wish::NotThese, false),
        ];
        for (what, wish, served) in cases {
            let claims = support::claims(&state, wish, served, 256);
            if !claims.is_empty() {
                let ns = ns_per_decision(&state, &claims);
                row(text, &format!("| {what} | {} | {} |", name(sizes), us(ns)));
            }
        }
    }
}

/// Runs each plan in a process of its own, so that its memory is its own.
fn plans(text: &mut String) {
    let _ = writeln!(text, "\n### The whole plan: {PLAN} claims, {PLAN} resources, time on one core\n");
    text.push_str("| sizes | read | decide | together | bound | waiting | actions | peak memory |\n");
    text.push_str("|---|---:|---:|---:|---:|---:|---:|---:|\n");
    let exe = std::env::current_exe().expect("this program has a path");
    for sizes in ["shirts", "any"] {
        let output = Command::new(&exe).args(["--plan", sizes]).output().expect("this program can be run");
        row(text, String::from_utf8_lossy(&output.stdout).trim_end());
    }
}

/// As many claims, of which those that resources already hold are bound, against as many resources.
fn plan(count: u64, sizes: Sizes) -> String {
    let mut engine = Engine::new(Config::default());
    let (read, mut actions) = ingest(&mut engine, count, sizes);
    let start = time_on_core();
    actions += engine.handle(Event::Synced, NOW).len();
    while engine.queue_lengths().active > 0 {
        actions += engine.handle(Event::Tick, NOW).len();
    }
    let decide = time_on_core() - start;
    let waiting = engine.queue_lengths().parked;
    let bound = engine.state().claim_count() - waiting;
    format!(
        "| {} | {:.2} s | {:.2} s | {:.2} s | {bound} | {waiting} | {actions} | {} |\n",
        name(sizes),
        read.as_secs_f64(),
        decide.as_secs_f64(),
        (read + decide).as_secs_f64(),
        peak_memory()
    )
}

/// Objects are made in small lots and not counted: only the engine's own time and memory are.
fn ingest(engine: &mut Engine, count: u64, sizes: Sizes) -> (Duration, usize) {
    const LOT: u64 = 500;
    let (mut resources, mut claims) = (Dice::new(count), Dice::new(7));
    let (mut taken, mut actions) = (Duration::ZERO, 0);
    for first in (0..count).step_by(LOT as usize) {
        let mut lot: Vec<Object> = Vec::new();
        for n in first..count.min(first + LOT) {
            lot.push(support::resource(&mut resources, n, sizes));
            lot.push(support::claim(&mut claims, n, Wish::Usual));
        }
        let start = time_on_core();
        actions += lot.into_iter().map(|object| engine.handle(Event::Seen(object), NOW).len()).sum::<usize>();
        taken += time_on_core() - start;
    }
    (taken, actions)
}

/// How long this thread has been on a core: what else the machine does is not in it.
fn time_on_core() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    Duration::from_nanos(text.split(' ').next().and_then(|ns| ns.parse().ok()).unwrap_or_default())
}

fn peak_memory() -> String {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:")).unwrap_or_default();
    let kib: f64 = line.trim().trim_end_matches(" kB").parse().unwrap_or_default();
    format!("{:.0} MiB", kib / 1024.0)
}

fn events(text: &mut String) {
    text.push_str("\n### One event: a resource is freed\n\n");
    text.push_str("| parked | kinds of request | helps no claim | serves a claim |\n|---:|---:|---:|---:|\n");
    for (parked, lanes) in [(10, 1), (100_000, 1), (1_000, 1_000), (100_000, 1_000)] {
        let (idle, helped) = event_cost(parked, lanes);
        row(text, &format!("| {parked} | {lanes} | {} | {} |", us(idle), us(helped)));
    }
}

/// Nanoseconds for an event that helps no claim, and for one that serves a claim.
fn event_cost(parked: u64, lanes: u64) -> (f64, f64) {
    let mut engine = support::crowd(parked, lanes, 100);
    let mut see = |object: Object| {
        let start = Instant::now();
        black_box(engine.handle(Event::Seen(object), NOW));
        start.elapsed()
    };
    let toggle = |n: u64| support::held(1_000_000, !n.is_multiple_of(2), n, "512Mi");
    let mut idle: Vec<Duration> = (2..2_002).map(|n| see(toggle(n))).collect();
    let mut helped: Vec<Duration> =
        (0..parked.min(8)).map(|n| see(support::held(n, false, 2, "50Gi"))).collect();
    (median_ns(&mut idle), median_ns(&mut helped))
}

fn median_ns(times: &mut [Duration]) -> f64 {
    times.sort_unstable();
    times.get(times.len() / 2).map_or(0.0, |t| t.as_nanos() as f64)
}
