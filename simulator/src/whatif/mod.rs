//! What if: the state is edited, planned again, and only what changes is told, with the rule that flipped it.
//! Both plans are the production engine's; nothing is guessed from the edit itself.
//!
//! ```text
//! state -> plan ----------------+
//!   |                           +-> diff -> document
//!   +-> edits -> state' -> plan-+
//! ```
//!
//! [`Questions`] plans the state once for any number of edits.
//!
//! Not here: reading files, tables. Time does not pass; that is replay's.

mod copies;
mod edit;
mod fit;
mod impact;
mod questions;
mod size;
mod target;

pub use copies::COPIES_MAX;
pub use edit::{Edit, EditError};
pub use fit::{Displaced, Fit, FitPlace, fit};
pub use impact::{ClassImpact, class_impact};
pub use questions::{Edited, Questions};
pub use size::{Size, size};
pub use target::{FieldPath, Target};

use crate::diff::Difference;
use crate::plan::{Options, Plan, Summary};
use conductor::model::{Kind, Name, Object, ObjectKey};
use serde::Serialize;
use std::collections::BTreeSet;

/// What would change, and nothing else.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct WhatIf {
    /// [`crate::plan::API_VERSION`].
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
    require_makeable(&objects, edits)?;
    Questions::new(objects, options).what_if(edits)
}

/// Tells of an edit that cannot be made before anything is planned.
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
    // Which others there are is told, too.
    let mut all = objects.to_vec();
    edits.iter().try_for_each(|edit| edit.make(&mut all))
}
