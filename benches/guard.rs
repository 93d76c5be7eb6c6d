//! A guard against decisions that become dearer unnoticed: the instructions of fixed workloads, counted by callgrind,
//! held against the figures in `benches/guard.json`. Instructions, not seconds: they are the same on a busy machine.
//! `-- --bless` records the figures of this build instead.

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

fn main() -> ExitCode {
    let args: Vec<String> = std::env::args().skip(1).filter(|a| a != "--bench").collect();
    match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--run", workload] => run(workload),
        ["--bless"] => counted(bless),
        // `cargo test --benches` only asks whether it runs.
        ["--test"] => {}
        [] => return counted(compare),
        _ => {
            eprintln!("cargo bench --bench guard [-- --bless]");
            return ExitCode::from(2);
        }
    }
    ExitCode::SUCCESS
}

/// Counts every workload and hands the figures on.
fn counted<T>(then: impl FnOnce(&BTreeMap<String, u64>) -> T) -> T {
    let figures = WORKLOADS.iter().map(|name| ((*name).to_owned(), count(name))).collect();
    then(&figures)
}

fn bless(figures: &BTreeMap<String, u64>) {
    let text = serde_json::to_string_pretty(figures).expect("figures are plain") + "\n";
    std::fs::write(FIGURES, text).expect("benches/guard.json can be written");
    figures.iter().for_each(|(name, count)| println!("{name:<10} {count:>14}  recorded"));
}

fn compare(figures: &BTreeMap<String, u64>) -> ExitCode {
    let text = std::fs::read_to_string(FIGURES).expect("benches/guard.json can be read");
    let recorded: BTreeMap<String, u64> = serde_json::from_str(&text).expect("benches/guard.json is JSON");
    let mut dearer = false;
    println!("{:<10} {:>14} {:>14} {:>9}", "workload", "recorded", "now", "change");
    for (name, now) in figures {
        let Some(was) = recorded.get(name) else {
            println!("{name:<10} {:>14} {now:>14}  record it with --bless", "");
            dearer = true;
            continue;
        };
        let change = (*now as f64 / *was as f64 - 1.0) * 100.0;
        let too_much = *now * 100 > *was * (100 + GROWTH_MAX);
        dearer |= too_much;
        let word = if too_much { "  dearer" } else { "" };
        println!("{name:<10} {was:>14} {now:>14} {change:>+8.1} %{word}");
    }
    if dearer {
        println!("more than {GROWTH_MAX} % dearer: find out why, or record it on purpose with --bless");
        return ExitCode::FAILURE;
    }
    ExitCode::SUCCESS
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
