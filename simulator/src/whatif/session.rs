//! Plans a state once and answers many what-if questions with changed clones of it. The answer equals that of two plans
//! from scratch; a change that reaches too far for a clone is planned from scratch.

use super::{Edit, EditError, PlanFigures, WhatIf};
use crate::diff::{Difference, Side, diff};
use crate::plan::{API_VERSION, BasePlan, ObjectChange, Options, Plan, Planned};
use conductor::model::{Kind, Object, ObjectKey};
use std::collections::{BTreeMap, BTreeSet};

/// A state planned for questions.
pub struct WhatIfSession {
    base: BasePlan,
}

/// A state after edits.
pub struct Edited {
    /// Its plan with the engine.
    pub planned: Planned,
    /// Its plan.
    pub plan: Plan,
}

impl WhatIfSession {
    /// Plans the state.
    pub fn new(objects: Vec<Object>, options: &Options) -> WhatIfSession {
        WhatIfSession { base: BasePlan::new(objects, options) }
    }

    /// The plan of the state as it is.
    pub fn plan(&self) -> &Plan {
        self.base.plan()
    }

    /// Returns what changes after `edits`, applied in order.
    ///
    /// # Errors
    /// The first edit that fails.
    pub fn what_if(&self, edits: &[Edit]) -> Result<WhatIf, EditError> {
        let planned = self.planned_with(edits)?;
        let mut after = Edited { plan: self.base.plan_without_digest(&planned), planned };
        let (digest, difference) = std::thread::scope(|scope| {
            // Digest and difference are independent.
            let digest = scope.spawn(|| self.base.digest(&after.plan));
            let difference = self.differs(&after);
            (digest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), difference)
        });
        after.plan.digest = digest;
        let figures = PlanFigures::from(&after.plan);
        // Freeing a copy of a whole cluster takes a while: do it in the background.
        std::thread::spawn(move || drop(after));
        Ok(WhatIf {
            api_version: API_VERSION,
            kind: "WhatIf",
            edits: edits.iter().map(ToString::to_string).collect(),
            before: PlanFigures::from(self.plan()),
            after: figures,
            difference,
        })
    }

    /// Returns the differences to the state after edits.
    pub fn differs(&self, after: &Edited) -> Difference {
        let before = Side { planned: self.base.planned(), plan: self.base.plan() };
        diff(before, Side { planned: &after.planned, plan: &after.plan })
    }

    /// Plans the state after `edits`, applied in order.
    ///
    /// # Errors
    /// The first edit that fails.
    pub fn edited(&self, edits: &[Edit]) -> Result<Edited, EditError> {
        let planned = self.planned_with(edits)?;
        let mut plan = self.base.plan_without_digest(&planned);
        plan.digest = self.base.digest(&plan);
        Ok(Edited { plan, planned })
    }

    fn planned_with(&self, edits: &[Edit]) -> Result<Planned, EditError> {
        if let Some(planned) = self.replaced(edits).and_then(|replaced| self.base.with(replaced)) {
            return Ok(planned);
        }
        let mut objects: Vec<Object> = self.base.objects().collect();
        edits.iter().try_for_each(|edit| edit.make(&mut objects))?;
        Ok(Planned::new(objects, self.base.options()))
    }

    /// The edits' effect on the objects that they name; `None` if one fails or creates a duplicate.
    fn replaced(&self, edits: &[Edit]) -> Option<Vec<ObjectChange>> {
        let mut named: BTreeSet<(Kind, ObjectKey)> = edits.iter().map(Edit::place).collect();
        for namespace in edits.iter().filter_map(Edit::namespace) {
            named.extend(self.base.places_in(namespace));
        }
        let mut objects: Vec<Object> =
            named.iter().filter_map(|(kind, key)| self.base.find(*kind, key)).collect();
        edits.iter().try_for_each(|edit| edit.make(&mut objects)).ok()?;
        let mut after: BTreeMap<(Kind, ObjectKey), Option<Object>> =
            named.into_iter().map(|place| (place, None)).collect();
        for object in objects {
            let place = (object.kind, crate::world::key_of(&object));
            let is_new = !after.contains_key(&place);
            // A copy may take the name of an object that no edit names.
            let is_taken = is_new && self.base.find(place.0, &place.1).is_some();
            if after.insert(place, Some(object)).flatten().is_some() || is_taken {
                return None;
            }
        }
        Some(after.into_iter().map(|((kind, key), object)| ObjectChange { kind, key, object }).collect())
    }
}
