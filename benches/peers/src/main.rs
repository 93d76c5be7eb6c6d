//! How long one decision takes, beside the peers' own matching code: the same resources, the same claims, one core,
//! turn by turn in one run. Where a peer can express the question, its answers must be ours; that is checked too.

mod fixture;
mod ours;
mod report;

use anyhow::{Context, Result, bail};
use clap::Parser;
use fixture::{CLAIMS, Fixture, Shape};
use ours::Outcome;
use report::{Report, Row};
use std::path::{Path, PathBuf};
use std::process::Command;

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// So many turns for each; the best counts.
const TURNS: usize = 3;
/// The core that everything runs on.
const CORE: &str = "0";

/// Measure one decision beside the PV binder's and the device allocator's own code
#[derive(Debug, Parser)]
struct Arguments {
    /// The program of benches/peers/go
    #[arg(long, value_name = "FILE", required_unless_present = "ours")]
    peers: Option<PathBuf>,
    /// How many resources; may be given several times
    #[arg(long, value_name = "N", default_values_t = [1_000, 10_000, 100_000])]
    resources: Vec<u64>,
    /// Write the tables to docs/benchmarks.md as well
    #[arg(long)]
    write: bool,
    /// Decide about this fixture and print the outcome: what the run calls itself with
    #[arg(long, value_name = "FIXTURE", hide = true)]
    ours: Option<PathBuf>,
}

/// Who decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Who {
    Volumes,
    Devices,
    Ours,
}

fn main() -> Result<()> {
    let Arguments { peers, resources, write, ours } = Arguments::parse();
    if let Some(path) = ours {
        println!("{}", serde_json::to_string(&ours::run(&read(&path)?))?);
        return Ok(());
    }
    let peers = peers.context("--peers is required")?;
    let mut report = Report::default();
    for shape in Shape::ALL {
        for count in &resources {
            eprintln!("{}, {count} resources", shape.name());
            report.add(measure(&peers, *count, shape)?);
        }
    }
    let text = report.text();
    println!("{text}");
    if write {
        let page = Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/benchmarks.md"));
        conductor_bench_document::write(
            page,
            conductor_bench_document::Section::Peers,
            "make bench-peers",
            &text,
        )?;
    }
    match report.first_difference() {
        Some(difference) => bail!("the PV binder chooses otherwise: {difference}"),
        None => Ok(()),
    }
}

fn read(path: &Path) -> Result<Fixture> {
    let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
    serde_json::from_str(&text).with_context(|| path.display().to_string())
}

/// Each program in turn, several times over the same fixture.
fn measure(peers: &Path, count: u64, shape: Shape) -> Result<Row> {
    let path = std::env::temp_dir().join(format!("conductor-peers-{}-{count}.json", std::process::id()));
    std::fs::write(&path, serde_json::to_string(&fixture::make(count, shape))?)?;
    let turns = || -> Result<[Outcome; 3]> {
        let mut best = [Who::Volumes, Who::Devices, Who::Ours].map(|who| (who, None::<Outcome>));
        for _ in 0..TURNS {
            for (who, best) in &mut best {
                let outcome = run(peers, &path, *who, count)?;
                if best.as_ref().is_none_or(|known| outcome.each() < known.each()) {
                    *best = Some(outcome);
                }
            }
        }
        let [volumes, devices, ours] = best.map(|(_, outcome)| outcome.context("nothing was measured"));
        Ok([volumes?, devices?, ours?])
    };
    let measured = turns();
    std::fs::remove_file(&path)?;
    let [volumes, devices, ours] = measured?;
    Ok(Row { shape, count, volumes, devices, ours })
}

fn run(peers: &Path, fixture: &Path, who: Who, count: u64) -> Result<Outcome> {
    // A scan of 100,000 takes a peer a tenth of a second: fewer claims suffice.
    let decisions = if count >= 100_000 { CLAIMS / 4 } else { CLAIMS }.to_string();
    let mut command = Command::new("taskset");
    command.args(["--cpu-list", CORE]).env("GOMAXPROCS", "1");
    match who {
        Who::Volumes => command.arg(peers).arg("volumes").arg(fixture).arg(decisions),
        Who::Devices => command.arg(peers).arg("devices").arg(fixture).arg(decisions),
        Who::Ours => command.arg(std::env::current_exe()?).arg("--ours").arg(fixture),
    };
    let output = command.output().with_context(|| format!("cannot run {command:?}"))?;
    if !output.status.success() {
        bail!("{who:?} failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    serde_json::from_slice(&output.stdout).with_context(|| format!("{who:?} printed no outcome"))
}
