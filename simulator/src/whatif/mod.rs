//! What-if: edits a state, plans it again, and returns what changes, with the rule that causes it. The production engine
//! makes both plans; nothing is inferred from the edit itself.
//!
//! ```text
//! state -> plan ----------------+
//!   |                           +-> diff -> document
//!   +-> edits -> state' -> plan-+
//! ```
//!
//! [`WhatIfSession`] plans the state once for any number of edits. Not here: reading files, tables, time (see `replay`).

mod copy;
mod edit;
mod fit;
mod impact;
mod session;
mod size;
mod target;

pub use copy::COPIES_MAX;
pub use edit::{Edit, EditError};
pub use fit::{Displaced, Fit, FitPlace, fit};
pub use impact::{ClassImpact, class_impact};
pub use session::{Edited, WhatIfSession};
pub use size::{Size, size};
pub use target::{FieldPath, Target};

use crate::diff::Difference;
use crate::plan::{Options, Plan, Summary};
use conductor::model::{Kind, Name, Object, ObjectKey};
use serde::Serialize;
use std::collections::BTreeSet;

/// The changes of a plan.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WhatIf {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// The edits as sentences.
    pub edits: Vec<String>,
    pub before: PlanFigures,
    pub after: PlanFigures,
    #[serde(flatten)]
    pub difference: Difference,
}

/// Figures of a plan.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct PlanFigures {
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

/// Plans `objects` before and after `edits`, applied in order, and returns what changes.
///
/// # Errors
/// The first edit that fails.
pub fn what_if(objects: Vec<Object>, edits: &[Edit], options: &Options) -> Result<WhatIf, EditError> {
    require_makeable(&objects, edits)?;
    WhatIfSession::new(objects, options).what_if(edits)
}

/// Reports an edit that fails before anything is planned.
fn require_makeable(objects: &[Object], edits: &[Edit]) -> Result<(), EditError> {
    let named: BTreeSet<(Kind, ObjectKey)> = edits.iter().map(Edit::place).collect();
    let namespaces: BTreeSet<&Name> = edits.iter().filter_map(Edit::namespace).collect();
    let is_named = |o: &&Object| {
        let key = crate::world::key_of(o);
        namespaces.contains(&key.namespace) || named.contains(&(o.kind, key))
    };
    let mut concerned: Vec<Object> = objects.iter().filter(is_named).cloned().collect();
    if edits.iter().try_for_each(|edit| edit.make(&mut concerned)).is_ok() {
        return Ok(());
    }
    // Again with all objects: the error lists some of them.
    let mut all = objects.to_vec();
    edits.iter().try_for_each(|edit| edit.make(&mut all))
}
