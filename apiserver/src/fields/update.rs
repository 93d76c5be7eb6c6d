//! Attributes an update: its manager owns what it added or changed, and no manager owns what it removed.

use super::managed_fields::{ManagedFields, Who, resets_managed_fields, unmanaged};
use super::manager::Manager;
use super::path::Step;
use super::set::FieldSet;
use super::walk::{Comparison, compare};
use super::zero_values::zero;
use crate::object;
use crate::registry::Served;
use crate::scope::Sub;
use serde_json::Value;

/// Attributes what an update changed. Without an old state everything is new.
pub(crate) fn track_update(draft: &mut Value, old: Option<&Value>, served: &Served, manager: &Manager) {
    let empty = zero(served);
    let live = old.unwrap_or(&empty);
    if old.is_some_and(|old| ManagedFields::read(old).0.is_empty()) && ManagedFields::read(draft).0.is_empty()
    {
        // An object created without managers has none until the first apply.
        object::set_meta(draft, "managedFields", Value::Null);
        return;
    }
    let mut managed = starting_fields(draft, old, manager.sub);
    let comparison = compare(&bare(live), &bare(draft), &served.version().fields);
    let who = Who {
        manager: manager.name.clone(),
        applies: false,
        version: served.api_version(),
        sub: manager.sub.name().to_owned(),
    };
    update(&mut managed, &comparison, &who, &reset(served, manager.sub), &manager.now);
    managed.write(draft);
}

fn starting_fields(draft: &Value, old: Option<&Value>, sub: Sub) -> ManagedFields {
    let live = || old.map(ManagedFields::read).unwrap_or_default();
    if sub != Sub::Whole {
        return live();
    }
    if resets_managed_fields(draft) {
        return ManagedFields::default();
    }
    // Who does not understand managed fields does not delete them by leaving them out.
    let sent = ManagedFields::read(draft);
    if sent.0.is_empty() { live() } else { sent }
}

fn update(managed: &mut ManagedFields, comparison: &Comparison, who: &Who, reset: &FieldSet, now: &str) {
    let cut = |set: &FieldSet| set.without_branches(reset);
    let changed = cut(&comparison.added.union(&comparison.modified));
    let removed = cut(&comparison.removed);
    managed.take_from_others(who, &changed.union(&removed));
    let own = managed.find(who).map(|entry| entry.set.clone()).unwrap_or_default();
    let own = own.difference(&removed).union(&changed).difference(&unmanaged());
    managed.set(who.clone(), own.without_branches(reset), now);
}

/// What a write through this part cannot change.
pub(super) fn reset(served: &Served, sub: Sub) -> FieldSet {
    let mut set = FieldSet::default();
    match sub {
        Sub::Whole if served.version().status => set.insert(&[Step::field("status")]),
        Sub::Status => {
            set.insert(&[Step::field("spec")]);
            set.insert(&[Step::field("metadata")]);
        }
        Sub::Whole | Sub::Scale | Sub::Finalize => {}
    }
    set
}

/// An object without its managed fields, which manage themselves.
pub(super) fn bare(object: &Value) -> Value {
    let mut object = object.clone();
    object::set_meta(&mut object, "managedFields", Value::Null);
    object
}

/// A write that would change nothing but times changes nothing.
pub(crate) fn keep_times(draft: &mut Value, old: &Value) {
    let (mut new, before) = (ManagedFields::read(draft), ManagedFields::read(old));
    if new == before {
        return;
    }
    let same = new.0.len() == before.0.len()
        && new.0.iter().zip(&before.0).all(|(one, two)| one.who == two.who && one.set == two.set);
    if same && bare(draft) == bare(old) {
        for (entry, old) in new.0.iter_mut().zip(&before.0) {
            entry.time = old.time.clone();
        }
        new.write(draft);
    }
}
