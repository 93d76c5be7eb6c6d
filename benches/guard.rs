//! A guard against decisions that become dearer unnoticed: the instructions of fixed workloads, counted by callgrind,
//! held against the figures in `benches/guard.json`. Instructions, not seconds: they are the same on a busy machine.
//! `make test` runs it as the tests are compiled, `make bench-guard` as the release is: each has figures of its own.
//! `-- --bless`, or `make bless` for both, records the figures of this build instead.

mod support;

use conductor::cache::State;
use conductor::engine::Engine;
use conductor::event::Event;
use conductor::model::{Claim, Object};
use conductor::scheduler::{Memo, prepare, schedule_one};
use std::collections::BTreeMap;
use std::hint::black_box;
use std::process::{Command, ExitCode};
use support::{Dice, NOW, Sizes, Wish};

const FIGURES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/benches/guard.json");
/// Growth that is let pass, in percent.
const GROWTH_MAX: u64 = 10;
const WORKLOADS: [&str; 4] = ["fits", "refused", "freed", "read"];

/// Figures by the build that they were counted of, then by workload.
type Figures = BTreeMap<String, BTreeMap<String, u64>>;

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--run", workload] => run(workload),
        ["--bless"] => bless(),
        [] => return compare(),
        _ => {
            eprintln!("cargo bench --bench guard [-- --bless]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// How this program was compiled: what it counts is held against figures of the same build.
fn build() -> &'static str {
    if cfg!(debug_assertions) { "test" } else { "release" }
}

fn recorded() -> Figures {
    let text = std::fs::read_to_string(FIGURES).expect("benches/guard.json can be read");
    serde_json::from_str(&text).expect("benches/guard.json is JSON")
}

fn bless() {
    let figures = WORKLOADS.iter().map(|name| ((*name).to_owned(), count(name)));
    let mut all = recorded();
    let figures = all.entry(build().to_owned()).insert_entry(figures.collect());
    figures.get().iter().for_each(|(name, count)| println!("{name:<10} {count:>14}  recorded"));
    let text = serde_json::to_string_pretty(&all).expect("figures are plain") + "\n";
    std::fs::write(FIGURES, text).expect("benches/guard.json can be written");
}

/// Each workload is a test; the last line says so as other tests' do.
fn compare() -> ExitCode {
    let recorded = recorded().remove(build()).unwrap_or_default();
    println!("{:<10} {:>14} {:>14} {:>9}", build(), "recorded", "now", "change");
    let dearer =
        WORKLOADS.iter().filter(|name| is_dearer(name, recorded.get(**name).copied(), count(name))).count();
    if dearer > 0 {
        println!("more than {GROWTH_MAX} % dearer: find out why, or record it on purpose: make bless");
    }
    let word = if dearer == 0 { "ok" } else { "FAILED" };
    println!("\ntest result: {word}. {} passed; {dearer} failed", WORKLOADS.len() - dearer);
    if dearer == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Whether a workload costs too much, or has no record yet; prints the row.
fn is_dearer(name: &str, was: Option<u64>, now: u64) -> bool {
    let Some(was) = was else {
        println!("{name:<10} {:>14} {now:>14}  record it: make bless", "");
        return true;
    };
    let change = (now as f64 / was as f64 - 1.0) * 100.0;
    let too_much = now * 100 > was * (100 + GROWTH_MAX);
    let word = if too_much { "  dearer" } else { "" };
    println!("{name:<10} {was:>14} {now:>14} {change:>+8.1} %{word}");
    too_much
}

/// The instructions of one workload, its preparation not counted.
fn count(workload: &str) -> u64 {
    let exe = std::env::current_exe().expect("this program has a path");
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null", "--toggle-collect=*guarded_work*"])
        .arg(exe)
        .args(["--run", workload])
        .output()
        .expect("valgrind runs: apt-get install valgrind");
    let text = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{workload}: {text}");
    let line = text.lines().find_map(|line| line.split_once("Collected : "));
    line.and_then(|(_, count)| count.trim().parse().ok())
        .filter(|count| *count > 0)
        .unwrap_or_else(|| panic!("callgrind counted nothing of {workload}: {text}"))
}

/// Prepares a workload and does it.
fn run(workload: &str) {
    let decide = |wish, served| {
        let state = support::state(10_000, Sizes::Any);
        let claims = support::claims(&state, wish, served, 256);
        guarded_work(&mut || decisions(&state, &claims));
    };
    match workload {
        "fits" => decide(Wish::Usual, true),
        "refused" => decide(Wish::Impossible, false),
        "freed" => {
            let mut engine = support::crowd(2_000, 20, 100);
            let mut freed: Vec<Object> = (0..50).map(|n| support::held(n, false, 2, "50Gi")).collect();
            guarded_work(&mut || see(&mut engine, std::mem::take(&mut freed)));
        }
        "read" => {
            let (mut resources, mut claims) = (Dice::new(1), Dice::new(7));
            let mut objects: Vec<Object> = (0..2_000)
                .flat_map(|n| {
                    let resource = support::resource(&mut resources, n, Sizes::Shirts);
                    [resource, support::claim(&mut claims, n, Wish::Usual)]
                })
                .collect();
            let mut engine = Engine::new(conductor::engine::Config::default());
            guarded_work(&mut || see(&mut engine, std::mem::take(&mut objects)));
        }
        _ => panic!("there is no workload {workload}"),
    }
}

/// The one function whose instructions are counted; callgrind finds it by its name.
#[inline(never)]
fn guarded_work(work: &mut dyn FnMut()) {
    work();
}

fn decisions(state: &State, claims: &[Claim]) {
    for claim in claims {
        let request = prepare(state, claim).expect("the generator writes what can be read");
        black_box(schedule_one(state, &request, &mut Memo::default()));
    }
}

fn see(engine: &mut Engine, objects: Vec<Object>) {
    for object in objects {
        black_box(engine.handle(Event::Seen(object), NOW));
    }
}
