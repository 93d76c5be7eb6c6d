//! What if: the state is edited, planned again, and only what changes is told, with the rule that flipped it.
//! Both plans are the production engine's; nothing is guessed from the edit itself.
//!
//! ```text
//! state -> plan ----------------+
//!   |                           +-> diff -> document
//!   +-> edits -> state' -> plan-+
//! ```
//!
//! Not here: reading files, tables. Time does not pass; that is replay's.

mod edit;
mod fit;
mod impact;
mod size;
mod target;

pub use edit::{Edit, EditError};
pub use fit::{Fit, FitPlace, fit};
pub use impact::{ClassImpact, class_impact};
pub use size::{Size, size};
pub use target::{FieldPath, Target};

use crate::diff::{Difference, Side, diff};
use crate::plan::{API_VERSION, Options, Plan, Planned, Summary};
use conductor::model::Object;
use serde::Serialize;

/// What would change, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WhatIf {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `WhatIf`.
    pub kind: &'static str,
    /// What was done to the state, in words.
    pub edits: Vec<String>,
    /// The plan of the state as it is.
    pub before: PlanFigures,
    /// The plan of the edited state.
    pub after: PlanFigures,
    /// What differs.
    #[serde(flatten)]
    pub difference: Difference,
}

/// A plan in figures.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanFigures {
    /// The plan's digest.
    pub digest: String,
    /// Claims counted by outcome.
    #[serde(flatten)]
    pub summary: Summary,
}

impl From<&Plan> for PlanFigures {
    fn from(plan: &Plan) -> PlanFigures {
        PlanFigures { digest: plan.digest.clone(), summary: plan.summary }
    }
}

/// Plans `objects` as they are and as they are after `edits`, in order, and tells what differs.
///
/// # Errors
/// The first edit that cannot be made.
pub fn what_if(objects: Vec<Object>, edits: &[Edit], options: &Options) -> Result<WhatIf, EditError> {
    let edited = edited(&objects, edits)?;
    let ((before, was), (after, is)) = plan_both(objects, edited, options);
    let difference = diff(Side { planned: &before, plan: &was }, Side { planned: &after, plan: &is });
    Ok(WhatIf {
        api_version: API_VERSION,
        kind: "WhatIf",
        edits: edits.iter().map(ToString::to_string).collect(),
        before: PlanFigures::from(&was),
        after: PlanFigures::from(&is),
        difference,
    })
}

/// Two states planned side by side: neither waits for the other.
fn plan_both(
    before: Vec<Object>,
    after: Vec<Object>,
    options: &Options,
) -> ((Planned, Plan), (Planned, Plan)) {
    let planned = |objects: Vec<Object>| {
        let planned = Planned::new(objects, options);
        let plan = planned.plan();
        (planned, plan)
    };
    std::thread::scope(|scope| {
        let other = scope.spawn(|| planned(after));
        let before = planned(before);
        let after = other.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        (before, after)
    })
}

fn edited(objects: &[Object], edits: &[Edit]) -> Result<Vec<Object>, EditError> {
    let mut edited = objects.to_vec();
    edits.iter().try_for_each(|edit| edit.make(&mut edited))?;
    Ok(edited)
}
