//! The result of a replay, as printed.

#![allow(missing_docs, reason = "the fields are named as in the printed document")]

use crate::plan::Summary;
use crate::record::Verdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// A replay compared with its recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// Version of the recording program.
    pub recorder: String,
    /// How much of the recording was replayed, in milliseconds.
    pub duration_ms: u64,
    /// Whether the recording stops without its end line.
    pub interrupted: bool,
    /// Changes read.
    pub events: u64,
    /// Changes by users, administrators and implementations.
    pub inputs: u64,
    /// Writes of the replay's engine.
    pub writes: u64,
    pub gaps: u64,
    /// How many decisions agree.
    pub agreement: Agreement,
    /// Decisions that differ, in order.
    pub divergences: Vec<Divergence>,
    /// How long claims waited.
    pub waiting: Waiting,
    /// Samples of the state over time.
    pub series: Vec<Sample>,
    /// Claims by outcome, at the end.
    pub end: Summary,
    /// Digest of the plan of the state at the end.
    pub digest: String,
}

/// How many of the live engine's decisions the replay repeats.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// Decisions in the recording.
    pub decisions: u64,
    /// Decisions that the replay repeats.
    pub agreed: u64,
    /// In per cent; `None` without decisions, because nothing was verified.
    pub percent: Option<f64>,
    /// By verdict: how many there are and how many agree.
    pub verdicts: BTreeMap<String, (u64, u64)>,
    /// Divergences by explanation.
    pub explained: BTreeMap<String, u64>,
}

/// What explains a divergence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Explanation {
    /// A watch was lost: the recording lacks events that the live engine saw.
    Gap,
    /// A change just before, which the live engine may have seen later or not at all.
    Race,
    /// Another version recorded it.
    Version,
    /// No change explains it: the rules decide differently.
    Rule,
}

impl Explanation {
    /// The name in the document.
    pub fn name(self) -> &'static str {
        match self {
            Explanation::Gap => "Gap",
            Explanation::Race => "Race",
            Explanation::Version => "Version",
            Explanation::Rule => "Rule",
        }
    }
}

/// A decision that the replay does not repeat.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divergence {
    /// Time in milliseconds since the recording began.
    pub at: u64,
    pub claim: String,
    /// The live engine's decision, if any.
    pub live: Option<Verdict>,
    /// The replay's decision, if any.
    pub simulated: Option<Verdict>,
    /// What explains it.
    pub explanation: Explanation,
    pub message: String,
}

/// How long claims waited until they were served, in milliseconds of virtual time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Waiting {
    /// In the replay.
    pub simulated: Percentiles,
    /// In the recording.
    pub live: Percentiles,
}

/// Percentiles of milliseconds.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Percentiles {
    pub count: usize,
    /// Half of the values are below.
    pub p50: u64,
    /// 95 per cent of the values are below.
    pub p95: u64,
    /// The largest value.
    pub max: u64,
}

impl Percentiles {
    /// Percentiles of unsorted values.
    pub fn of(mut values: Vec<u64>) -> Percentiles {
        values.sort_unstable();
        let at = |percent| crate::record::percentile(&values, percent).unwrap_or(0);
        Percentiles {
            count: values.len(),
            p50: at(50),
            p95: at(95),
            max: values.last().copied().unwrap_or(0),
        }
    }
}

/// The state at some time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sample {
    pub at: u64,
    pub bound: usize,
    /// Claims whose resource is being provisioned.
    pub provisioning: usize,
    pub waiting: usize,
    pub lost: usize,
    /// Held and all resources, by class; empty name for no class.
    pub classes: BTreeMap<String, (usize, usize)>,
    /// Pending claims by reason.
    pub reasons: BTreeMap<String, usize>,
    /// Use of each quota, in per cent of its tightest limit.
    pub quotas: BTreeMap<String, u64>,
}
