//! A suite as it is written: which state, which policies on top of it, what is expected of the plan. Reading it is
//! strict: a word that nobody knows is an error, and so is an expectation that nothing could meet.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A suite.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Suite {
    /// `simulator.conductor.io/v1alpha1`.
    pub api_version: String,
    /// `GateSuite`.
    pub kind: String,
    /// What it is called.
    #[serde(default)]
    pub metadata: Metadata,
    /// Files, directories or recordings, seen from the suite's own folder.
    pub state: Vec<PathBuf>,
    /// Manifests that are applied on top: the policies that are to be judged.
    #[serde(default)]
    pub policies: Vec<PathBuf>,
    /// A plan that was found good, which `--bless` writes.
    #[serde(default)]
    pub baseline: Option<PathBuf>,
    /// Figures that must not be exceeded.
    #[serde(default)]
    pub thresholds: Thresholds,
    /// What is expected.
    #[serde(default)]
    pub cases: Vec<Case>,
    /// The line on which each case is named, as far as it was found.
    #[serde(skip)]
    pub lines: BTreeMap<String, usize>,
}

/// A name.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Metadata {
    /// What the suite is called in reports.
    #[serde(default)]
    pub name: String,
}

/// Figures that must not be exceeded; those of changes need a baseline.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Thresholds {
    /// Claims that wait.
    pub pending: Option<usize>,
    /// Claims that wait, in per cent of all.
    pub pending_percent: Option<f64>,
    /// Claims that are lost.
    pub lost: Option<usize>,
    /// Claims that fare otherwise than in the baseline.
    pub changed: Option<usize>,
    /// Claims that were served in the baseline and wait or are lost.
    pub unserved: Option<usize>,
    /// Claims that are bound to another resource than in the baseline.
    pub moved: Option<usize>,
    /// Resources that the plan would destroy.
    pub deleted: Option<usize>,
}

/// One expectation.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// In words; no two are called alike.
    pub name: String,
    /// Which claims; all of them where it says nothing.
    #[serde(default)]
    pub select: Select,
    /// What is expected of them.
    pub expect: Expect,
}

/// Which claims. Every line must hold.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Select {
    /// In one of these namespaces; `*` stands for any text.
    #[serde(default)]
    pub namespaces: Vec<String>,
    /// Of one of these names; `*` stands for any text.
    #[serde(default)]
    pub names: Vec<String>,
    /// With all of these labels.
    #[serde(default)]
    pub labels: BTreeMap<String, String>,
    /// Of these classes, as the claim names them.
    #[serde(default)]
    pub classes: Vec<String>,
    /// A CEL expression over `claim`, `spec`, `labels`.
    #[serde(default)]
    pub cel: Option<String>,
}

/// What is expected.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Expect {
    /// Every one fares so: Bound, Provision, Pending or Lost.
    #[serde(default)]
    pub outcome: Option<String>,
    /// Every one is bound to one of these; `*` stands for any text.
    #[serde(default)]
    pub resources: Vec<String>,
    /// So many are selected.
    #[serde(default)]
    pub count: Option<Count>,
    /// Holds of every one: CEL over `claim`, `spec`, `labels`.
    #[serde(default)]
    pub every: Option<String>,
    /// Holds of at least one.
    #[serde(default)]
    pub any: Option<String>,
    /// Holds of the plan: CEL over `plan`.
    #[serde(default)]
    pub plan: Option<String>,
}

/// A range of numbers.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// At least.
    #[serde(default)]
    pub min: Option<usize>,
    /// At most.
    #[serde(default)]
    pub max: Option<usize>,
}

/// Why a suite cannot be judged by.
#[derive(Debug, Error)]
pub enum SuiteError {
    /// The file cannot be read.
    #[error("{file}: {why}")]
    Unreadable {
        /// Which file.
        file: String,
        /// What is wrong.
        why: String,
    },
    /// It contradicts itself, or expects nothing.
    #[error("{file}: {place}: {why}")]
    Contradiction {
        /// Which file.
        file: String,
        /// Where.
        place: String,
        /// What is wrong, and what to do.
        why: String,
    },
}

impl Suite {
    /// Reads a suite.
    ///
    /// # Errors
    /// It cannot be read, or nothing could meet it.
    pub fn read(path: &Path) -> Result<Suite, SuiteError> {
        let file = path.display().to_string();
        let unreadable = |why: String| SuiteError::Unreadable { file: file.clone(), why };
        let text = std::fs::read_to_string(path).map_err(|e| unreadable(e.to_string()))?;
        let mut suite: Suite = serde_saphyr::from_str(&text).map_err(|e| unreadable(e.to_string()))?;
        suite.check().map_err(|(place, why)| SuiteError::Contradiction { file, place, why })?;
        suite.lines =
            suite.cases.iter().filter_map(|c| Some((c.name.clone(), line_of(&text, &c.name)?))).collect();
        Ok(suite)
    }

    fn check(&self) -> Result<(), (String, String)> {
        let wrong = |place: &str, why: &str| Err((place.to_owned(), why.to_owned()));
        if self.kind != "GateSuite" || self.api_version != crate::plan::API_VERSION {
            return wrong("kind", "write apiVersion: simulator.conductor.io/v1alpha1 and kind: GateSuite");
        }
        if self.state.is_empty() {
            return wrong("state", "names no file: there would be nothing to judge");
        }
        if self.cases.is_empty() && self.baseline.is_none() && self.thresholds == Thresholds::default() {
            return wrong("cases", "expects nothing: write cases, thresholds or a baseline");
        }
        let Thresholds { changed, unserved, moved, pending_percent, .. } = self.thresholds;
        if self.baseline.is_none() && (changed.is_some() || unserved.is_some() || moved.is_some()) {
            return wrong(
                "thresholds",
                "changed, unserved and moved are counted against a baseline: name one",
            );
        }
        if pending_percent.is_some_and(|p| !(0.0..=100.0).contains(&p)) {
            return wrong("thresholds.pendingPercent", "is no share of a hundred");
        }
        let mut names = BTreeSet::new();
        for case in &self.cases {
            let place = format!("case {:?}", case.name);
            if !names.insert(&case.name) {
                return wrong(&place, "there are two of that name: give each its own");
            }
            case.check().map_err(|why| (place, why.to_owned()))?;
        }
        self.check_pairs()
    }

    /// Two cases about the same claims must be able to hold together.
    fn check_pairs(&self) -> Result<(), (String, String)> {
        for (at, case) in self.cases.iter().enumerate() {
            let before = self.cases[..at].iter().filter(|other| other.select == case.select);
            for other in before {
                if let Some(what) = case.expect.contradicts(&other.expect) {
                    let why = format!(
                        "selects the same claims as case {:?} and expects another {what}: nothing could meet both",
                        other.name
                    );
                    return Err((format!("case {:?}", case.name), why));
                }
            }
        }
        Ok(())
    }
}

impl Expect {
    /// The outcome of every claim, said or implied.
    fn fate(&self) -> Option<&str> {
        self.outcome.as_deref().or((!self.resources.is_empty()).then_some("Bound"))
    }

    /// What two expectations of the same claims cannot have both.
    fn contradicts(&self, other: &Expect) -> Option<&'static str> {
        if let (Some(a), Some(b)) = (self.fate(), other.fate())
            && a != b
        {
            return Some("outcome");
        }
        let (Some(a), Some(b)) = (self.count, other.count) else { return None };
        let least = a.min.unwrap_or(0).max(b.min.unwrap_or(0));
        let most = a.max.unwrap_or(usize::MAX).min(b.max.unwrap_or(usize::MAX));
        (least > most).then_some("count")
    }
}

/// The line, from 1, on which a case is named.
fn line_of(text: &str, name: &str) -> Option<usize> {
    let cases = text.lines().position(|line| line.starts_with("cases"))?;
    let names = |line: &str| {
        line.split_once("name:")
            .is_some_and(|(_, rest)| rest.trim_start_matches([' ', '"', '\'']).starts_with(name))
    };
    text.lines().skip(cases).position(names).map(|at| cases + at + 1)
}

impl Case {
    fn check(&self) -> Result<(), &'static str> {
        let Expect { outcome, resources, count, every, any, plan: _ } = &self.expect;
        if self.expect == Expect::default() {
            return Err("expects nothing: write outcome, resources, count, every, any or plan");
        }
        if let Some(Count { min: Some(min), max: Some(max) }) = count
            && min > max
        {
            return Err("its count has a min above its max: nothing could meet it");
        }
        if let Some(Count { min: None, max: None }) = count {
            return Err("its count has neither min nor max");
        }
        let known = ["Bound", "Provision", "Pending", "Lost"];
        if outcome.as_ref().is_some_and(|o| !known.contains(&o.as_str())) {
            return Err("its outcome is none of Bound, Provision, Pending, Lost");
        }
        if !resources.is_empty() && outcome.as_ref().is_some_and(|o| o != "Bound") {
            return Err("it expects a resource and an outcome other than Bound: nothing could meet it");
        }
        let none = matches!(count, Some(Count { max: Some(0), .. }));
        if none && (outcome.is_some() || !resources.is_empty() || every.is_some() || any.is_some()) {
            return Err("it expects no claim at all, and something of every one: keep one of the two");
        }
        Ok(())
    }
}
