//! The gate: checks a suite's expectations against the plan of a state with policies applied, and returns one verdict.
//!
//! ```text
//! suite -> state + policies -> plan -> cases, thresholds, baseline -> verdict -> JUnit | SARIF | Markdown | JSON
//! ```
//!
//! It fails closed: a case that selects no claim fails, and so does a state without claims; an expression that cannot be
//! evaluated is an error; without its baseline the verdict is inconclusive. Not here: reading the state, exit codes.

mod baseline;
mod cel;
mod check;
mod document;
mod junit;
mod markdown;
mod sarif;
mod suite;

pub use document::{Baseline, BaselineChange, BaselineDifference, CheckKind, CheckResult, Verdict};
pub use junit::junit;
pub use markdown::{MARKDOWN_MAX, markdown};
pub use sarif::sarif;
pub use suite::{Case, Count, Expect, Metadata, Select, Suite, SuiteError, Thresholds};

use crate::diff::{Side, diff};
use crate::plan::{API_VERSION, Options, Plan, Planned};
use crate::whatif::Edit;
use check::Subject;
use conductor::model::Object;

/// Input of a gate.
pub struct Gate<'a> {
    /// The expectations.
    pub suite: &'a Suite,
    /// The state without the policies.
    pub state: Vec<Object>,
    /// The policies to apply to it.
    pub policies: Vec<Object>,
    /// The accepted plan; `None` if there is no such file yet.
    pub baseline: Option<Baseline>,
    /// Settings of the plans.
    pub options: Options,
}

impl Gate<'_> {
    /// Checks everything. Also returns the plan, for a new baseline.
    ///
    /// # Errors
    /// An expression that is invalid or cannot be evaluated.
    pub fn judge(self) -> Result<(Verdict, Plan), String> {
        let Gate { suite, state, policies, baseline, options } = self;
        let mut objects = state.clone();
        for policy in policies.iter().cloned() {
            Edit::Apply(Box::new(policy)).make(&mut objects).map_err(|e| e.to_string())?;
        }
        let after = Planned::new(objects.clone(), &options);
        let plan = after.plan();
        let subject = Subject::new(&plan, &objects);
        let cases = suite
            .cases
            .iter()
            .map(|case| subject.judge(case).map_err(|e| format!("case {:?}: {e}", case.name)));
        let mut judged: Vec<CheckResult> = cases.collect::<Result<_, _>>()?;
        let changed = (!policies.is_empty()).then(|| {
            let before = Planned::new(state, &options);
            let was = before.plan();
            diff(Side { planned: &before, plan: &was }, Side { planned: &after, plan: &plan })
        });
        let difference = baseline.as_ref().map(|b| b.differs(&Baseline::of(&plan), changed));
        judged.extend(check::thresholds(&suite.thresholds, &plan, difference.as_ref()));
        judged.extend(difference.as_ref().filter(|_| is_strict(suite)).map(against_baseline));
        judged.extend(unseen(suite, &plan));
        let inconclusive = suite.baseline.is_some() && baseline.is_none();
        let passed = judged.iter().all(|j| j.passed) && !inconclusive;
        let verdict = Verdict {
            api_version: API_VERSION,
            kind: "GateVerdict",
            suite: suite.metadata.name.clone(),
            passed,
            inconclusive: inconclusive && judged.iter().all(|j| j.passed),
            digest: plan.digest.clone(),
            summary: plan.summary,
            judged,
            difference,
        };
        Ok((verdict, plan))
    }
}

/// Fails a plan without claims, which meets every threshold and most expressions but proves nothing. A suite that expects
/// none counts the claims.
fn unseen(suite: &Suite, plan: &Plan) -> Option<CheckResult> {
    let is_meant = suite.cases.iter().any(|case| case.expect.count.is_some());
    let why = "the state holds no claim, so it proves nothing; if that is intended, add a case with count: {max: 0}";
    let is_unseen = plan.claims.is_empty() && !is_meant;
    is_unseen.then(|| CheckResult::new(CheckKind::Case, "state", 0, vec![why.to_owned()]))
}

/// A baseline allows no difference unless a threshold does.
fn is_strict(suite: &Suite) -> bool {
    let Thresholds { changed, unserved, moved, .. } = suite.thresholds;
    changed.is_none() && unserved.is_none() && moved.is_none()
}

fn against_baseline(difference: &BaselineDifference) -> CheckResult {
    let line = |change: &BaselineChange| {
        let outcome = |fate: &Option<String>| fate.clone().unwrap_or_else(|| "none".to_owned());
        let cause = change.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
        format!("{}: {} -> {}{cause}", change.name, outcome(&change.before), outcome(&change.after))
    };
    let all: Vec<String> = difference.claims.iter().chain(&difference.resources).map(line).collect();
    CheckResult::new(CheckKind::Baseline, "baseline", all.len(), all)
}
