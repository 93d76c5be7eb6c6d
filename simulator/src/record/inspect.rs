//! Summarises a recording. Reads the whole file, so the reader checks all of it.

use super::line::{Header, Line};
use super::reader::{ReadError, Reader};
use crate::plan::API_VERSION;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A recording's figures.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// The file's header.
    pub header: Header,
    /// Whether it has its end line. `gaps` lists what is missing in between.
    pub complete: bool,
    /// Its length.
    pub duration_ms: u64,
    /// Initial objects by kind.
    pub objects: BTreeMap<String, u64>,
    /// Changes by kind.
    pub events: BTreeMap<String, u64>,
    /// The live engine's decisions by verdict.
    pub decisions: BTreeMap<String, u64>,
    /// Provisioned resources by the phase that they reached.
    pub outcomes: BTreeMap<String, u64>,
    /// Milliseconds of provisioning: median and 95th percentile.
    pub provisioning_ms: Option<(u64, u64)>,
    pub gaps: Vec<Gap>,
    pub lines: u64,
}

/// A lost watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// When it was noticed, in milliseconds.
    pub at: u64,
    /// The kind that was watched.
    pub kind: String,
    /// Why, if known.
    pub why: String,
    /// Whether it was still lost: events are missing until the next gap of the kind, or to the end.
    pub open: bool,
}

/// Reads a whole recording.
///
/// # Errors
/// It cannot be read.
pub fn inspect(path: &Path) -> Result<Inspection, ReadError> {
    let mut reader = Reader::open(path)?;
    let mut found = Inspection {
        api_version: API_VERSION,
        kind: "Recording",
        header: reader.header().clone(),
        complete: false,
        duration_ms: reader.header().from,
        objects: BTreeMap::new(),
        events: BTreeMap::new(),
        decisions: BTreeMap::new(),
        outcomes: BTreeMap::new(),
        provisioning_ms: None,
        gaps: Vec::new(),
        lines: 0,
    };
    let mut took = Vec::new();
    while let Some(line) = reader.next_line()? {
        found.duration_ms = line.at().map_or(found.duration_ms, |at| found.duration_ms.max(at));
        match line {
            Line::Obj { o } => count(&mut found.objects, o["kind"].as_str().unwrap_or_default()),
            Line::Ev(change) => count(&mut found.events, &change.kind),
            Line::Dec(decision) => count(&mut found.decisions, decision.verdict.name()),
            Line::Ext(outcome) => {
                took.extend(outcome.took_ms);
                count(&mut found.outcomes, &outcome.phase);
            }
            Line::Gap { at, kind, why, open } => found.gaps.push(Gap { at, kind, why, open }),
            Line::Header(_) | Line::End(_) => {}
        }
    }
    took.sort_unstable();
    found.provisioning_ms = percentile(&took, 50).zip(percentile(&took, 95));
    found.complete = !reader.was_interrupted();
    found.lines = reader.count();
    Ok(found)
}

fn count(counts: &mut BTreeMap<String, u64>, name: &str) {
    *counts.entry(name.to_owned()).or_default() += 1;
}

/// The value at a percentile of sorted values.
pub fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[(sorted.len() * percent / 100).min(last)])
}
