//! A verdict as it is printed: one word, and everything that led to it.

use crate::diff::Difference;
use crate::plan::Summary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// What a gate found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    /// The version of the document.
    pub api_version: &'static str,
    /// `GateVerdict`.
    pub kind: &'static str,
    /// What the suite is called.
    pub suite: String,
    /// Whether everything holds.
    pub passed: bool,
    /// Whether it could not be told: the baseline is missing.
    pub inconclusive: bool,
    /// The plan's digest.
    pub digest: String,
    /// Claims by outcome.
    pub summary: Summary,
    /// Cases, thresholds and the baseline, in the suite's order.
    pub judged: Vec<Judged>,
    /// What differs from the baseline.
    pub difference: Option<BaselineDifference>,
}

/// What was judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Finding {
    /// A case of the suite.
    Case,
    /// A figure.
    Threshold,
    /// The plan that was found good.
    Baseline,
}

/// One thing that was judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Judged {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub kind: Finding,
    /// Whether it holds.
    pub passed: bool,
    /// How many claims it is about.
    pub matched: usize,
    /// Why not, line by line.
    pub failures: Vec<String>,
    /// How many more there are.
    pub more: usize,
}

/// The plan that was found good, as it is kept: only what people would want to hear of when it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Baseline {
    /// The version of the document.
    pub api_version: String,
    /// `GateBaseline`.
    pub kind: String,
    /// What becomes of each claim, by `namespace/name`.
    pub claims: BTreeMap<String, String>,
    /// What is reclaimed, by resource.
    pub reclaims: BTreeMap<String, String>,
}

/// What differs from the baseline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BaselineDifference {
    /// Claims that fare otherwise.
    pub claims: Vec<BaselineChange>,
    /// Resources that are reclaimed otherwise.
    pub resources: Vec<BaselineChange>,
    /// The same against the state without the policies, with causes.
    pub policies: Option<Difference>,
}

/// One line that differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BaselineChange {
    /// Whose.
    pub name: String,
    /// In the baseline; absent where it was not there.
    pub before: Option<String>,
    /// Now; absent where it is not there.
    pub after: Option<String>,
    /// The rule behind it, where the policies make the difference.
    pub cause: Option<String>,
}
