//! Many questions to one state: it is planned once, and each question tells a copy what would be otherwise. The answer is
//! the one that two plans from nothing would give; where a change reaches too far for a copy, that is what is done.

use super::{Edit, EditError, PlanFigures, WhatIf};
use crate::diff::{Difference, Side, diff};
use crate::plan::{API_VERSION, Base, Options, Plan, Planned, Replaced};
use conductor::model::{Kind, Object, ObjectKey};
use std::collections::{BTreeMap, BTreeSet};

/// A state that is ready for questions.
pub struct Questions {
    base: Base,
}

/// A state with some edits made.
pub struct Edited {
    /// Everything behind its plan.
    pub planned: Planned,
    /// Its plan.
    pub plan: Plan,
}

impl Questions {
    /// Plans the state as it is.
    pub fn new(objects: Vec<Object>, options: &Options) -> Questions {
        Questions { base: Base::new(objects, options) }
    }

    /// The plan of the state as it is.
    pub fn plan(&self) -> &Plan {
        self.base.plan()
    }

    /// Tells what differs after `edits`, made in order.
    ///
    /// # Errors
    /// The first edit that cannot be made.
    pub fn what_if(&self, edits: &[Edit]) -> Result<WhatIf, EditError> {
        let planned = self.planned_with(edits)?;
        let mut after = Edited { plan: self.base.unsealed_plan(&planned), planned };
        let (digest, difference) = std::thread::scope(|scope| {
            // What differs does not depend on it.
            let digest = scope.spawn(|| self.base.digest(&after.plan));
            let difference = self.differs(&after);
            (digest.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)), difference)
        });
        after.plan.digest = digest;
        let figures = PlanFigures::from(&after.plan);
        // Giving back a copy of a whole cluster takes its time: whoever asked need not wait for it.
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

    /// What differs between the state as it is and as it would be.
    pub fn differs(&self, after: &Edited) -> Difference {
        let before = Side { planned: self.base.planned(), plan: self.base.plan() };
        diff(before, Side { planned: &after.planned, plan: &after.plan })
    }

    /// The state after `edits`, made in order.
    ///
    /// # Errors
    /// The first edit that cannot be made.
    pub fn edited(&self, edits: &[Edit]) -> Result<Edited, EditError> {
        let planned = self.planned_with(edits)?;
        let mut plan = self.base.unsealed_plan(&planned);
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

    /// What the edits make of the objects that they name; nothing where one cannot be made, or makes two of a place.
    fn replaced(&self, edits: &[Edit]) -> Option<Vec<Replaced>> {
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
            // A copy may have the name of an object that nobody spoke of.
            let is_taken = is_new && self.base.find(place.0, &place.1).is_some();
            if after.insert(place, Some(object)).flatten().is_some() || is_taken {
                return None;
            }
        }
        Some(after.into_iter().map(|((kind, key), object)| Replaced { kind, key, object }).collect())
    }
}
