//! The tables of docs/benchmarks.md: time per decision, ratios, growth, memory. Ratios are of one run.

use crate::fixture::Shape;
use crate::ours::Outcome;
use std::fmt::Write;

/// One fixture, and the result of each program.
#[derive(Debug)]
pub struct Row {
    pub shape: Shape,
    pub count: u64,
    pub volumes: Outcome,
    pub devices: Outcome,
    pub ours: Outcome,
}

/// What was measured so far.
#[derive(Debug, Default)]
pub struct Report {
    rows: Vec<Row>,
}

impl Report {
    pub fn add(&mut self, row: Row) {
        let [volumes, devices, ours] = row.all().map(|outcome| time(outcome.each()));
        eprintln!("  PV binder {volumes}, devices {devices}, Conductor {ours}");
        self.rows.push(row);
    }

    /// The first claim that the PV binder serves otherwise than we do.
    pub fn first_difference(&self) -> Option<String> {
        self.rows.iter().find_map(|row| {
            let pairs = row.volumes.choices.iter().zip(&row.ours.choices).enumerate();
            let (claim, (theirs, ours)) = pairs.into_iter().find(|(_, (theirs, ours))| theirs != ours)?;
            let (shape, count) = (row.shape.name(), row.count);
            Some(format!("{shape}, {count} resources, claim-{claim}: {theirs:?}, ours {ours:?}"))
        })
    }

    pub fn text(&self) -> String {
        let mut text = String::from(CAVEATS);
        self.times(&mut text);
        self.growth(&mut text);
        self.memory(&mut text);
        let compared: usize = self.rows.iter().map(|row| row.volumes.choices.len()).sum();
        let verdict = if self.first_difference().is_none() { "all are ours" } else { "not all are ours" };
        let _ = writeln!(text, "\nChoices of the PV binder compared with ours: {compared}; {verdict}.");
        text
    }

    fn times(&self, text: &mut String) {
        text.push_str(
            "| shape | resources | PV binder | device allocator | Conductor | PV / ours | devices / ours |\n",
        );
        text.push_str("|---|---:|---:|---:|---:|---:|---:|\n");
        for row in &self.rows {
            let [volumes, devices, ours] = row.all().map(Outcome::each);
            let _ = writeln!(
                text,
                "| {} | {} | {} | {} | {} | {:.0} | {:.0} |",
                row.shape.name(),
                row.count,
                time(volumes),
                time(devices),
                time(ours),
                volumes / ours,
                devices / ours
            );
        }
    }

    fn growth(&self, text: &mut String) {
        text.push_str(
            "\n| shape | growth | PV binder | device allocator | Conductor |\n|---|---|---:|---:|---:|\n",
        );
        for pair in self.rows.windows(2) {
            let [before, after] = pair else { continue };
            if before.shape != after.shape {
                continue;
            }
            let [volumes, devices, ours] =
                [0, 1, 2].map(|who| after.all()[who].each() / before.all()[who].each());
            let _ = writeln!(
                text,
                "| {} | {} -> {} | {volumes:.1} | {devices:.1} | {ours:.2} |",
                after.shape.name(),
                before.count,
                after.count
            );
        }
    }

    fn memory(&self, text: &mut String) {
        text.push_str(
            "\n| shape | resources | PV binder | device allocator | Conductor |\n|---|---:|---:|---:|---:|\n",
        );
        for row in &self.rows {
            let [volumes, devices, ours] = row.all().map(|outcome| outcome.memory_kib / 1024);
            let _ = writeln!(
                text,
                "| {} | {} | {volumes} MiB | {devices} MiB | {ours} MiB |",
                row.shape.name(),
                row.count
            );
        }
    }
}

impl Row {
    fn all(&self) -> [&Outcome; 3] {
        [&self.volumes, &self.devices, &self.ours]
    }
}

fn time(ns: f64) -> String {
    if ns < 1e6 { format!("{:.2} µs", ns / 1e3) } else { format!("{:.2} ms", ns / 1e6) }
}

const CAVEATS: &str = "\
Each program reads the same fixture (`benches/peers/src/fixture.rs`) and runs on one core in its own process. They take turns, three
times each; the best turn counts. A claim requests a class, an engine, a range of versions and storage; one in eight requests
more than any resource has. Nothing is allocated: every claim sees the same resources.

- *PV binder*: `FindMatchingVolume` of `k8s.io/component-helpers`, over the volumes of an indexer by access modes, as in the
  persistent volume controller. Engine and version are labels; the range is a list of releases, since a selector has no order. It
  keeps no index by class or size, so it checks every volume. It does more than we do here: it would honour volume modes and node
  affinity. Best fit, as ours.
- *Device allocator*: `k8s.io/dynamic-resource-allocation/structured`, a new allocator per decision as in the
  scheduler, compiled CEL selectors on class, engine, version and storage. First fit, so its choices are not compared;
  it could also solve several requests of a claim together, which this benchmark does not use.
- *Conductor*: one scheduling cycle on its index, with nothing remembered from the last one. A refusal counts every
  resource by the predicate that refused it, which neither peer does. Its memory includes the whole cache.

";
