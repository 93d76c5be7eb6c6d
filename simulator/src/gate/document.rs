//! A gate's verdict as printed: the result, and every check that led to it.

#![allow(missing_docs, reason = "the fields are named as in the printed document")]

use crate::diff::Difference;
use crate::plan::Summary;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// The verdict of a gate.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Verdict {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub suite: String,
    /// Whether every check passed.
    pub passed: bool,
    /// Whether every check passed but the baseline is missing.
    pub inconclusive: bool,
    pub digest: String,
    pub summary: Summary,
    /// Results of cases, thresholds and the baseline, in the suite's order.
    pub judged: Vec<CheckResult>,
    /// Differences from the baseline.
    pub difference: Option<BaselineDifference>,
}

/// What a check is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum CheckKind {
    /// A case of the suite.
    Case,
    /// A limit on a figure.
    Threshold,
    /// The accepted plan.
    Baseline,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CheckResult {
    pub name: String,
    /// What it is about.
    pub kind: CheckKind,
    /// Whether it passed.
    pub passed: bool,
    /// Number of claims it covers.
    pub matched: usize,
    /// Why it failed, one line each.
    pub failures: Vec<String>,
    /// Number of failures that are not listed.
    pub more: usize,
}

impl CheckResult {
    /// Number of failures listed per check; the rest is counted.
    const FAILURES_MAX: usize = 20;

    /// A check passes if it has no failures.
    pub(super) fn new(kind: CheckKind, name: &str, matched: usize, mut failures: Vec<String>) -> CheckResult {
        let more = failures.len().saturating_sub(CheckResult::FAILURES_MAX);
        failures.truncate(CheckResult::FAILURES_MAX);
        CheckResult { name: name.to_owned(), kind, passed: failures.is_empty(), matched, failures, more }
    }
}

/// An accepted plan as stored: only what matters when it changes.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Baseline {
    pub api_version: String,
    pub kind: String,
    /// The outcome of each claim, by `namespace/name`.
    pub claims: BTreeMap<String, String>,
    /// The reclaim policy of each released resource, by name.
    pub reclaims: BTreeMap<String, String>,
}

/// Differences from the baseline.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BaselineDifference {
    /// Claims with another outcome.
    pub claims: Vec<BaselineChange>,
    /// Resources that are reclaimed differently.
    pub resources: Vec<BaselineChange>,
    /// What the policies change in the state, with causes.
    pub policies: Option<Difference>,
}

/// A line that differs from the baseline.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BaselineChange {
    /// The claim's or resource's name.
    pub name: String,
    /// In the baseline; `None` if it was not in it.
    pub before: Option<String>,
    /// Now; `None` if it no longer exists.
    pub after: Option<String>,
    /// The rule that causes it, if the policies do.
    pub cause: Option<String>,
}
