//! What a replay found, as it is printed.

use crate::plan::Summary;
use crate::record::Verdict;
use serde::Serialize;
use std::collections::BTreeMap;

/// A replay and how it held against the recording.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Replay {
    /// The version of the document.
    pub api_version: &'static str,
    /// `Replay`.
    pub kind: &'static str,
    /// Version of the program that recorded.
    pub recorder: String,
    /// How much of the recording was played, in milliseconds.
    pub duration_ms: u64,
    /// Whether the recording stops without its end.
    pub interrupted: bool,
    /// Changes that were read.
    pub events: u64,
    /// Those among them that were somebody's wish.
    pub inputs: u64,
    /// Writes that the replay's engine made.
    pub writes: u64,
    /// Lost watches.
    pub gaps: u64,
    /// How the decisions agree.
    pub agreement: Agreement,
    /// Where they do not, in order.
    pub divergences: Vec<Divergence>,
    /// How long claims waited until they were served.
    pub waiting: Waiting,
    /// The state over time.
    pub series: Vec<Sample>,
    /// Claims at the end, by outcome.
    pub end: Summary,
    /// The digest of a plan over the state at the end.
    pub digest: String,
}

/// How many of the live engine's decisions were made again.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Agreement {
    /// Decisions in the recording.
    pub decisions: u64,
    /// Decisions that were the same.
    pub agreed: u64,
    /// In per cent; absent where there was none: nothing was verified.
    pub percent: Option<f64>,
    /// Of each verdict, how many there were and how many agreed.
    pub verdicts: BTreeMap<String, (u64, u64)>,
    /// Divergences, by what explains them.
    pub explained: BTreeMap<String, u64>,
}

/// What explains a divergence.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum Explanation {
    /// A watch was lost then: the recording does not have all that the live engine saw.
    Gap,
    /// Something other than the claim's own coming changed just before: the live engine may have seen it later, or decided before.
    Race,
    /// Another version recorded.
    Version,
    /// Nothing: the rules say otherwise.
    Rule,
}

impl Explanation {
    /// The word in the document.
    pub fn name(self) -> &'static str {
        match self {
            Explanation::Gap => "Gap",
            Explanation::Race => "Race",
            Explanation::Version => "Version",
            Explanation::Rule => "Rule",
        }
    }
}

/// One decision that was not made again.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Divergence {
    /// When, in milliseconds since the recording began.
    pub at: u64,
    /// The claim, as `namespace/name`.
    pub claim: String,
    /// What the live engine decided; absent where it decided nothing.
    pub live: Option<Verdict>,
    /// What the replay's engine decided; absent where it decided nothing.
    pub simulated: Option<Verdict>,
    /// What explains it.
    pub explanation: Explanation,
    /// In words.
    pub message: String,
}

/// How long claims waited, in milliseconds of virtual time.
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
    /// How many.
    pub count: usize,
    /// Half of them are below.
    pub p50: u64,
    /// All but five of a hundred are below.
    pub p95: u64,
    /// The longest.
    pub max: u64,
}

impl Percentiles {
    /// Of any values.
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

/// The state at one time.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Sample {
    /// Milliseconds since the recording began.
    pub at: u64,
    /// Claims that have a resource.
    pub bound: usize,
    /// Claims whose resource is being made.
    pub provisioning: usize,
    /// Claims that wait.
    pub waiting: usize,
    /// Claims that are lost.
    pub lost: usize,
    /// Resources that are held, and all, by class; the empty name for none.
    pub classes: BTreeMap<String, (usize, usize)>,
    /// Claims that wait, by the word of their reason.
    pub reasons: BTreeMap<String, usize>,
    /// How far each quota is used, in per cent of its tightest limit.
    pub quotas: BTreeMap<String, u64>,
}
