//! A gate suite: which state, which policies on top of it, and what to expect of the plan. Reading is strict: unknown
//! fields are errors, and so are expectations that cannot be met.

use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// A suite as written.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Suite {
    /// `simulator.conductor.io/v1alpha1`.
    pub api_version: String,
    /// `GateSuite`.
    pub kind: String,
    /// The suite's name.
    #[serde(default)]
    pub metadata: Metadata,
    /// Files, directories or recordings, relative to the suite's directory.
    pub state: Vec<PathBuf>,
    /// Manifests to apply on top: the policies under review.
    #[serde(default)]
    pub policies: Vec<PathBuf>,
    /// An accepted plan; `--bless` writes it.
    #[serde(default)]
    pub baseline: Option<PathBuf>,
    /// Limits on figures.
    #[serde(default)]
    pub thresholds: Thresholds,
    /// Expectations.
    #[serde(default)]
    pub cases: Vec<Case>,
    /// The line of each case, by name, if found.
    #[serde(skip)]
    pub lines: BTreeMap<String, usize>,
}

/// Metadata of a suite.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(default, deny_unknown_fields)]
pub struct Metadata {
    /// The name in reports.
    pub name: String,
}

/// Limits on figures; those on changes require a baseline.
#[derive(Clone, Debug, Default, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Thresholds {
    /// Claims that wait.
    pub pending: Option<usize>,
    /// Claims that wait, in per cent of all.
    pub pending_percent: Option<f64>,
    /// Claims that are lost.
    pub lost: Option<usize>,
    /// Claims with another outcome than in the baseline.
    pub changed: Option<usize>,
    /// Claims that were served in the baseline and now wait or are lost.
    pub unserved: Option<usize>,
    /// Claims that are bound to another resource than in the baseline.
    pub moved: Option<usize>,
    /// Resources that the plan deletes.
    pub deleted: Option<usize>,
}

/// One expectation.
#[derive(Clone, Debug, Deserialize, PartialEq)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Case {
    /// A unique name.
    pub name: String,
    /// The claims it is about; all by default.
    #[serde(default)]
    pub select: Select,
    /// What to expect of them.
    pub expect: Expect,
}

/// Selects claims that meet all conditions.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Select {
    /// Namespaces; `*` stands for any text.
    pub namespaces: Vec<String>,
    /// Names; `*` stands for any text.
    pub names: Vec<String>,
    /// Labels, all required.
    pub labels: BTreeMap<String, String>,
    /// Classes as named in the claims' specs.
    pub classes: Vec<String>,
    /// A CEL expression over `claim`, `spec`, `labels`.
    pub cel: Option<String>,
}

/// What to expect of the selected claims.
#[derive(Clone, Debug, Default, Deserialize, PartialEq, Eq)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Expect {
    /// The outcome of each: Bound, Provision, Pending or Lost.
    pub outcome: Option<String>,
    /// Each is bound to one of these resources; `*` stands for any text.
    pub resources: Vec<String>,
    /// How many there are.
    pub count: Option<Count>,
    /// CEL over `claim`, `spec`, `labels`, true for each.
    pub every: Option<String>,
    /// CEL over the same, true for at least one.
    pub any: Option<String>,
    /// CEL over `plan`, true for the plan.
    pub plan: Option<String>,
}

/// An inclusive range.
#[derive(Clone, Copy, Debug, Deserialize, PartialEq, Eq)]
#[serde(deny_unknown_fields)]
pub struct Count {
    /// At least.
    pub min: Option<usize>,
    /// At most.
    pub max: Option<usize>,
}

/// Why a suite cannot be used.
#[derive(Debug, Error)]
pub enum SuiteError {
    /// The file cannot be read or parsed, and why.
    #[error("{0}: {1}")]
    Unreadable(String, String),
    /// It contradicts itself or expects nothing: file, field or case, and what to write.
    #[error("{0}: {1}: {2}")]
    Contradiction(String, String, String),
}

impl Suite {
    /// Reads and checks a suite.
    ///
    /// # Errors
    /// It cannot be read, or it cannot be met.
    pub fn read(path: &Path) -> Result<Suite, SuiteError> {
        let file = path.display().to_string();
        let unreadable = |why: String| SuiteError::Unreadable(file.clone(), why);
        let text = std::fs::read_to_string(path).map_err(|e| unreadable(e.to_string()))?;
        let mut suite: Suite = serde_saphyr::from_str(&text).map_err(|e| unreadable(e.to_string()))?;
        suite.check().map_err(|(place, why)| SuiteError::Contradiction(file, place, why))?;
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
            return wrong("state", "names no file, so there is nothing to check");
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
            return wrong("thresholds.pendingPercent", "is not between 0 and 100");
        }
        let mut names = BTreeSet::new();
        for case in &self.cases {
            let place = format!("case {:?}", case.name);
            if !names.insert(&case.name) {
                return wrong(&place, "another case has the same name: rename one");
            }
            case.check().map_err(|why| (place, why.to_owned()))?;
        }
        self.check_pairs()
    }

    /// Cases with the same selection must not contradict each other.
    fn check_pairs(&self) -> Result<(), (String, String)> {
        for (at, case) in self.cases.iter().enumerate() {
            let before = self.cases[..at].iter().filter(|other| other.select == case.select);
            for other in before {
                if let Some(what) = case.expect.contradicts(&other.expect) {
                    let why = format!(
                        "selects the same claims as case {:?} but expects another {what}: no plan meets both",
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
    /// The expected outcome, stated or implied.
    fn fate(&self) -> Option<&str> {
        self.outcome.as_deref().or((!self.resources.is_empty()).then_some("Bound"))
    }

    /// In what two expectations of the same claims contradict each other.
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

/// The line on which a case is named, from 1.
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
            return Err("its count has a min above its max");
        }
        if let Some(Count { min: None, max: None }) = count {
            return Err("its count has neither min nor max");
        }
        let known = ["Bound", "Provision", "Pending", "Lost"];
        if outcome.as_ref().is_some_and(|o| !known.contains(&o.as_str())) {
            return Err("its outcome is none of Bound, Provision, Pending, Lost");
        }
        if !resources.is_empty() && outcome.as_ref().is_some_and(|o| o != "Bound") {
            return Err("it expects a resource and an outcome other than Bound");
        }
        let none = matches!(count, Some(Count { max: Some(0), .. }));
        if none && (outcome.is_some() || !resources.is_empty() || every.is_some() || any.is_some()) {
            return Err("it expects no claim, and something of every claim: keep one of the two");
        }
        Ok(())
    }
}
