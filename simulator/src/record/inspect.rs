//! What a recording holds, in figures. The whole file is read, and every check of the reader with it.

use super::line::{Header, Line, Verdict};
use super::reader::{ReadError, Reader};
use crate::plan::API_VERSION;
use serde::Serialize;
use std::collections::BTreeMap;
use std::path::Path;

/// A recording in figures.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Inspection {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Recording`.
    pub kind: &'static str,
    /// What the file says of itself.
    pub header: Header,
    /// Whether it has its end; what was interrupted has not. What is missing in between is told by the gaps.
    pub complete: bool,
    /// How long it is.
    pub duration_ms: u64,
    /// Objects at the beginning, by kind.
    pub objects: BTreeMap<String, u64>,
    /// Changes, by kind.
    pub events: BTreeMap<String, u64>,
    /// The live engine's decisions, by verdict.
    pub decisions: BTreeMap<String, u64>,
    /// Resources made, by the phase that they reached.
    pub outcomes: BTreeMap<String, u64>,
    /// Milliseconds that making one took: median and 95th percentile.
    pub provisioning_ms: Option<(u64, u64)>,
    /// Lost watches.
    pub gaps: Vec<Gap>,
    /// Lines in all.
    pub lines: u64,
}

/// A lost watch.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Gap {
    /// When it was noticed.
    pub at: u64,
    /// What was watched.
    pub kind: String,
    /// Why.
    pub why: String,
    /// Whether the watch was lost still: what happened is missing until the next gap of the kind, or to the end.
    pub open: bool,
}

/// Reads a recording from end to end.
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
            Line::Dec(decision) => count(&mut found.decisions, verdict(&decision.verdict)),
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

fn count(counts: &mut BTreeMap<String, u64>, word: &str) {
    *counts.entry(word.to_owned()).or_default() += 1;
}

fn verdict(verdict: &Verdict) -> &'static str {
    match verdict {
        Verdict::Bind { .. } => "Bind",
        Verdict::Provision { .. } => "Provision",
        Verdict::Refuse { .. } => "Refuse",
        Verdict::Lost { .. } => "Lost",
    }
}

/// The value below which so many of a hundred lie, of values in order.
pub fn percentile(sorted: &[u64], percent: usize) -> Option<u64> {
    let last = sorted.len().checked_sub(1)?;
    Some(sorted[(sorted.len() * percent / 100).min(last)])
}
