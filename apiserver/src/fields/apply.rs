//! A configuration applied: merged over the live object, with what its manager no longer mentions taken out, and with
//! conflicts reported unless it is forced.

use super::managed_fields::{Entry, ManagedFields, Who, unmanaged};
use super::manager::Manager;
use super::path::Step;
use super::set::FieldSet;
use super::update::{bare, reset};
use super::walk::{compare, field_set, merge_typed, remove};
use super::zero_values::zero;
use crate::object;
use crate::registry::Served;
use crate::schema::Node;
use crate::status::Status;
use serde_json::{Value, json};

/// The object that an applied configuration makes of the live one.
///
/// # Errors
/// Fields that others manage and that the configuration would change, unless `force`.
pub(crate) fn apply(
    live: Option<&Value>,
    config: &Value,
    served: &Served,
    manager: &Manager,
    force: bool,
) -> Result<Value, Status> {
    let node = &served.version().fields;
    let empty = zero(served);
    let mut managed = live.map(ManagedFields::read).unwrap_or_default();
    let before = bare(live.unwrap_or(&empty));
    if live.is_some() && managed.0.is_empty() {
        managed.set(
            before_first_apply(served),
            compare(&empty, &before, node).added.difference(&unmanaged()),
            &manager.now,
        );
    }
    let who = Who {
        manager: manager.name.clone(),
        applies: true,
        version: served.api_version(),
        sub: manager.sub.name().to_owned(),
    };
    let ignored = reset(served, manager.sub);
    let config = bare(config);
    let merged = merge_typed(&before, &config, node);
    let last = managed.find(&who).map(|entry| entry.set.clone()).unwrap_or_default();
    let said = field_set(&config, node).without_branches(&ignored);
    managed.set(who.clone(), said.difference(&unmanaged()), &manager.now);
    let merged = prune(&merged, &managed, &said, &last, node);
    let comparison = compare(&before, &merged, node);
    let changed = comparison.added.union(&comparison.modified).without_branches(&ignored);
    if !force {
        refuse_conflicts(&managed, &who, &changed)?;
    }
    let removed = comparison.removed.without_branches(&ignored);
    managed.take_from_others(&who, &changed.union(&removed));
    let mut made = merged;
    if let Some(live) = live {
        let keep = object::meta(live).and_then(|meta| meta.get("resourceVersion")).cloned();
        let sent = object::meta(&config).and_then(|meta| meta.get("resourceVersion")).cloned();
        object::set_meta(&mut made, "resourceVersion", sent.or(keep).unwrap_or_default());
    }
    managed.write(&mut made);
    Ok(made)
}

/// The manager of the fields that were there before the first apply.
fn before_first_apply(served: &Served) -> Who {
    Who {
        manager: "before-first-apply".to_owned(),
        applies: false,
        version: served.api_version(),
        sub: String::new(),
    }
}

/// Removes what the manager applied last time and no manager owns now.
fn prune(merged: &Value, managed: &ManagedFields, said: &FieldSet, last: &FieldSet, node: &Node) -> Value {
    if last.is_empty() {
        return merged.clone();
    }
    let pruned = remove(merged, &last.with_named_parents(), node);
    let managed = managed.0.iter().fold(said.clone(), |all, entry| all.union(&entry.set));
    let had = field_set(merged, node).with_named_parents();
    let kept = field_set(&pruned, node).with_named_parents().union(&managed.with_named_parents());
    let pruned = remove(merged, &had.difference(&kept), node);
    let left = field_set(&pruned, node).with_named_parents();
    let dangling = had.difference(&left).intersection(&last.with_named_parents());
    remove(merged, &dangling, node)
}

fn refuse_conflicts(managed: &ManagedFields, who: &Who, changed: &FieldSet) -> Result<(), Status> {
    let mut conflicts: Vec<(String, Vec<Step>)> = Vec::new();
    for entry in managed.0.iter().filter(|entry| !entry.who.is(who)) {
        let shown = shown(entry);
        let paths = entry.set.intersection(changed).paths();
        conflicts.extend(paths.into_iter().map(|path| (shown.clone(), path)));
    }
    if conflicts.is_empty() {
        return Ok(());
    }
    conflicts.sort();
    let text = |path: &[Step]| path.iter().map(ToString::to_string).collect::<String>();
    let causes = conflicts.iter().map(|(manager, path)| {
        json!({"reason": "FieldManagerConflict", "message": format!("conflict with {manager}"), "field": text(path)})
    });
    let causes: Vec<Value> = causes.collect();
    let message = match conflicts.as_slice() {
        [(manager, path)] => format!("Apply failed with 1 conflict: conflict with {manager}: {}", text(path)),
        many => {
            let mut lines: Vec<String> = Vec::new();
            let mut last = "";
            for (manager, path) in many {
                if manager != last {
                    lines.push(format!("conflicts with {manager}:"));
                    last = manager;
                }
                lines.push(format!("- {}", text(path)));
            }
            format!("Apply failed with {} conflicts: {}", many.len(), lines.join("\n"))
        }
    };
    Err(Status::apply_conflict(message, causes))
}

fn shown(entry: &Entry) -> String {
    let Who { manager, applies, version, sub } = &entry.who;
    let mut text = format!("{manager:?}");
    if !sub.is_empty() {
        text.push_str(&format!(" with subresource {sub:?}"));
    }
    if !applies {
        text.push_str(&format!(" using {version}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fields::track_update;
    use crate::registry::Registry;
    use crate::scope::Sub;

    fn manager(name: &str) -> Manager {
        Manager { name: name.to_owned(), now: "2026-11-17T00:00:00Z".to_owned(), sub: Sub::Whole }
    }

    fn map(data: Value) -> Value {
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": data})
    }

    #[test]
    fn fields_go_when_their_only_manager_stops_mentioning_them() {
        let served = Registry::new().find("", "v1", "configmaps").expect("it is served");
        let first = apply(None, &map(json!({"a": "1", "b": "2"})), &served, &manager("one"), false).unwrap();
        let second = apply(Some(&first), &map(json!({"b": "2"})), &served, &manager("two"), false).unwrap();
        let third = apply(Some(&second), &map(json!({})), &served, &manager("one"), false).unwrap();
        assert_eq!(third["data"], json!({"b": "2"}));
    }

    #[test]
    fn a_change_of_anothers_field_is_a_conflict_until_it_is_forced() {
        let served = Registry::new().find("", "v1", "configmaps").expect("it is served");
        let mut live = map(json!({"a": "1"}));
        track_update(&mut live, None, &served, &manager("editor"));
        let config = map(json!({"a": "2"}));
        let refused = apply(Some(&live), &config, &served, &manager("one"), false).unwrap_err();
        assert_eq!(
            refused.message,
            "Apply failed with 1 conflict: conflict with \"editor\" using v1: .data.a"
        );
        let forced = apply(Some(&live), &config, &served, &manager("one"), true).unwrap();
        assert_eq!(forced["data"], json!({"a": "2"}));
        let managers: Vec<_> = forced["metadata"]["managedFields"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| &entry["manager"])
            .collect();
        assert_eq!(managers, ["one", "editor"], "the editor still has the map that it made");
    }

    #[test]
    fn sharing_a_value_is_no_conflict() {
        let served = Registry::new().find("", "v1", "configmaps").expect("it is served");
        let first = apply(None, &map(json!({"a": "1"})), &served, &manager("one"), false).unwrap();
        assert!(apply(Some(&first), &map(json!({"a": "1"})), &served, &manager("two"), false).is_ok());
    }
}
