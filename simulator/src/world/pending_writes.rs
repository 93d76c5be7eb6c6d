//! Writes to a packed object, kept as changes until the object is unpacked. Of two writes of the same fields only the
//! later one is kept.

use super::patch;
use conductor::action::Change;
use conductor::model::{Capacity, ClaimPhase, Name, Object, Revision};

#[derive(Clone, Debug, Default)]
pub(super) struct PendingWrites {
    changes: Vec<Change>,
    generations: i64,
    pub revision: Revision,
}

impl PendingWrites {
    /// Adds a write. `bumps_generation`: it changes the spec.
    pub fn add(&mut self, change: Change, revision: Revision, bumps_generation: bool) {
        self.revision = revision;
        self.generations += i64::from(bumps_generation);
        self.changes.retain(|known| !replaces(&change, known));
        self.changes.push(change);
    }

    /// Applies the writes to the object.
    pub fn apply_to(&self, object: &mut Object) {
        for change in &self.changes {
            patch(object, change.merge_patch());
        }
        if self.generations > 0 {
            object.metadata.generation = Some(object.metadata.generation.unwrap_or(0) + self.generations);
        }
        object.metadata.resource_version = Some(self.revision.to_string());
    }
}

/// Whether `new` overwrites all of `old`, whatever came between. Different kinds of changes share no field.
fn replaces(new: &Change, old: &Change) -> bool {
    match (new, old) {
        (Change::ResourceSpec { .. }, Change::ResourceSpec { .. }) => true,
        // A merge cannot restore a field that a write in between removed as a whole.
        (
            Change::ClaimStatus { phase, resource: new, binding: secret, .. },
            Change::ClaimStatus { phase: old_phase, resource: old, binding: old_secret, .. },
        ) => {
            // A lost claim keeps what its status recorded.
            let is_whole = *phase != ClaimPhase::Lost || *old_phase == ClaimPhase::Lost;
            is_whole && (new.is_none() || old.is_some()) && (secret.is_none() || old_secret.is_some())
        }
        (
            Change::ClaimSpec { resource_name: new, finalizers: _ },
            Change::ClaimSpec { resource_name: old, finalizers: _ },
        ) => new.is_some() || old.is_none(),
        (
            Change::ResourceStatus {
                allocated: new,
                no_longer: gone,
                implementation: None,
                version: None,
                ..
            },
            Change::ResourceStatus {
                allocated: old,
                no_longer: old_gone,
                implementation: None,
                version: None,
                ..
            },
        ) => names_all((new, gone), (old, old_gone)),
        _ => false,
    }
}

/// Quantities that a write does not name stay, unless it removes all.
fn names_all((new, gone): (&Capacity, &[Name]), (old, old_gone): (&Capacity, &[Name])) -> bool {
    let is_named = |name: &str| !new.get(name).is_zero() || gone.iter().any(|g| **g == *name);
    let mut named = old.iter().map(|(dim, _)| dim.name()).chain(old_gone.iter().map(|name| &**name));
    new.is_empty() || !old.is_empty() && named.all(is_named)
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::model::{Kind, ObjectKey, Quantity, ResourcePhase, TypeId, Uid};
    use serde_json::{Value, json};

    fn status(resource: Option<&str>) -> Change {
        let place = |name: &str| (ObjectKey::new("system", name), Uid::from("u"));
        Change::ClaimStatus {
            phase: ClaimPhase::Pending,
            resource: resource.map(place),
            conditions: Vec::new(),
            observed_generation: 1,
            binding: None,
            bound_spec: None,
        }
    }

    fn spec(name: Option<&str>, finalizer: &str) -> Change {
        Change::ClaimSpec { resource_name: name.map(Name::from), finalizers: vec![Name::from(finalizer)] }
    }

    #[test]
    fn what_is_kept_leads_to_the_same_object_as_one_write_after_the_other() {
        let changes = [
            spec(Some("a"), "one"),
            status(Some("a")),
            spec(None, "two"),
            status(None),
            spec(Some("b"), "three"),
            status(Some("b")),
        ];
        let body = json!({"spec": {"engine": "x"}, "status": {"resourceRef": {"more": 1}}});
        check(Kind::Claim(TypeId::RELATIONAL_DATABASE), body, &changes, 3);
    }

    #[test]
    fn a_capacity_that_went_stays_gone_though_a_later_write_does_not_speak_of_it() {
        let allocated = |names: &[&str], no_longer: &[&str]| Change::ResourceStatus {
            phase: ResourcePhase::Bound,
            allocated: Capacity::from_entries("storage", names.iter().map(|n| (*n, Quantity::from_nanos(7)))),
            no_longer: no_longer.iter().copied().map(Name::from).collect(),
            conditions: Vec::new(),
            observed_generation: 1,
            version: None,
            implementation: None,
        };
        let changes = [
            allocated(&["storage", "connections"], &[]),
            allocated(&["storage"], &["connections"]),
            allocated(&["storage"], &[]),
        ];
        let body = json!({"status": {"allocated": {"storage": "1", "connections": "1"}}});
        check(Kind::Resource(TypeId::RELATIONAL_DATABASE), body, &changes, 2);
    }

    /// Applied together, pending writes equal the same writes one by one; `kept` of them remain.
    fn check(kind: Kind, body: Value, changes: &[Change], kept: usize) {
        let mut each = Object { kind, metadata: Default::default(), body };
        let (mut pending, mut together) = (PendingWrites::default(), each.clone());
        for change in changes {
            patch(&mut each, change.merge_patch());
            pending.add(change.clone(), Revision(7), false);
        }
        pending.apply_to(&mut together);
        each.metadata.resource_version = Some("7".to_owned());
        assert_eq!(together, each);
        assert_eq!(pending.changes.len(), kept);
    }
}
