//! The gate: a suite of expectations held against the plan of a state with its policies applied; one verdict.
//!
//! ```text
//! suite -> state + policies -> plan -> cases, thresholds, baseline -> verdict -> JUnit | SARIF | Markdown | JSON
//! ```
//!
//! It fails closed: a case that selects nothing has failed, a state without a claim too, an expression that cannot be answered is an error, and a
//! baseline that is not there leaves the verdict open. Not here: files of the state, and exit codes.

mod baseline;
mod cel;
mod check;
mod document;
mod junit;
mod markdown;
mod sarif;
mod suite;

pub use document::{Baseline, BaselineChange, BaselineDifference, Finding, Judged, Verdict};
pub use junit::junit;
pub use markdown::{MARKDOWN_MAX, markdown};
pub use sarif::sarif;
pub use suite::{Case, Count, Expect, Metadata, Select, Suite, SuiteError, Thresholds};

use crate::diff::{Side, diff};
use crate::plan::{API_VERSION, Options, Plan, Planned};
use crate::whatif::Edit;
use check::Subject;
use conductor::model::Object;

/// What is judged.
pub struct Gate<'a> {
    /// By this suite.
    pub suite: &'a Suite,
    /// The state without the policies.
    pub state: Vec<Object>,
    /// What is applied on top.
    pub policies: Vec<Object>,
    /// What was found good; absent where there is no such file yet.
    pub baseline: Option<Baseline>,
    /// What plans are made under.
    pub options: Options,
}

impl Gate<'_> {
    /// Judges. Returns the plan too, from which a new baseline is made.
    ///
    /// # Errors
    /// The suite's error: an expression that cannot be read or answered.
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
        let mut judged: Vec<Judged> = cases.collect::<Result<_, _>>()?;
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

/// A plan without a claim meets every threshold, and most expressions: it has shown nothing. A suite that means it
/// counts the claims.
fn unseen(suite: &Suite, plan: &Plan) -> Option<Judged> {
    let is_meant = suite.cases.iter().any(|case| case.expect.count.is_some());
    (plan.claims.is_empty() && !is_meant).then(|| Judged {
        name: "state".to_owned(),
        kind: Finding::Case,
        passed: false,
        matched: 0,
        failures: vec![
            "holds no claim: nothing was looked at; where that is meant, write a case with count: {max: 0}"
                .to_owned(),
        ],
        more: 0,
    })
}

/// A baseline allows no difference, unless a threshold says how many.
fn is_strict(suite: &Suite) -> bool {
    let Thresholds { changed, unserved, moved, .. } = suite.thresholds;
    changed.is_none() && unserved.is_none() && moved.is_none()
}

fn against_baseline(difference: &BaselineDifference) -> Judged {
    let told = |change: &BaselineChange| {
        let word = |fate: &Option<String>| fate.clone().unwrap_or_else(|| "not there".to_owned());
        let cause = change.cause.as_ref().map(|cause| format!(" ({cause})")).unwrap_or_default();
        format!("{}: {} -> {}{cause}", change.name, word(&change.before), word(&change.after))
    };
    let all: Vec<String> = difference.claims.iter().chain(&difference.resources).map(told).collect();
    let more = all.len().saturating_sub(20);
    Judged {
        name: "baseline".to_owned(),
        kind: Finding::Baseline,
        passed: all.is_empty(),
        matched: all.len(),
        failures: all.into_iter().take(20).collect(),
        more,
    }
}
