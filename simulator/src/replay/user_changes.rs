//! Separates users' fields of recorded objects from the live engine's. Only users' changes are replayed; the engine's are
//! what the replay is compared with.

use crate::record::{Change, made_for};
use conductor::api::names::{CLAIM_PROTECTION, CLASS_PROTECTION, RESOURCE_PROTECTION};
use conductor::model::{Kind, Object, ObjectKey, ReclaimPolicy};
use serde_json::Value;

/// Returns the object without the engine's fields.
pub(super) fn user_part(kind: Kind, mut object: Value) -> Value {
    let bound_to = object.pointer("/status/resourceRef/name").cloned();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
        if let Some(Value::Object(metadata)) = fields.get_mut("metadata") {
            metadata.remove("resourceVersion");
            metadata.remove("generation");
            drop_finalizers(metadata);
        }
    }
    let spec = object.get_mut("spec").and_then(Value::as_object_mut);
    match (kind, spec) {
        // If it equals the status, the engine wrote it.
        (Kind::Claim(_), Some(spec)) if spec.get("resourceName") == bound_to.as_ref() => {
            spec.remove("resourceName");
        }
        (Kind::Resource(_), Some(spec)) => {
            let refs = spec.get_mut("claimRefs").and_then(Value::as_array_mut);
            let kept: Vec<Value> =
                refs.into_iter().flat_map(std::mem::take).filter_map(reservation).collect();
            match kept.is_empty() {
                true => drop(spec.remove("claimRefs")),
                false => drop(spec.insert("claimRefs".to_owned(), Value::Array(kept))),
            }
        }
        _ => {}
    }
    object
}

/// Whether the names of a change's fields show that only the engine writes them, as in most changes. Not if the status
/// names a resource, because that decides whose the name in the spec is.
pub(super) fn is_engine_patch(change: &Change) -> bool {
    let Change { new: None, gone: false, patch: Some(Value::Object(patch)), .. } = change else {
        return false;
    };
    patch.iter().all(|(field, value)| match field.as_str() {
        "status" => value.as_object().is_some_and(|status| !status.contains_key("resourceRef")),
        "metadata" => {
            value.as_object().is_some_and(|m| m.keys().all(|k| k == "resourceVersion" || k == "generation"))
        }
        _ => false,
    })
}

/// An administrator's reservation as it was before the claim existed.
fn reservation(mut claim_ref: Value) -> Option<Value> {
    let held = claim_ref.get("uid").is_some_and(|uid| uid.as_str().is_some_and(|uid| !uid.is_empty()));
    let fields = claim_ref.as_object_mut()?;
    if !held {
        return Some(claim_ref);
    }
    if fields.remove("reserved") != Some(Value::Bool(true)) {
        return None;
    }
    fields.remove("uid");
    fields.remove("requests");
    Some(claim_ref)
}

fn drop_finalizers(metadata: &mut serde_json::Map<String, Value>) {
    let ours = [CLAIM_PROTECTION, RESOURCE_PROTECTION, CLASS_PROTECTION];
    if let Some(Value::Array(finalizers)) = metadata.get_mut("finalizers") {
        finalizers.retain(|f| !ours.iter().any(|ours| f == ours));
        if finalizers.is_empty() {
            metadata.remove("finalizers");
        }
    }
}

/// Whether the live engine provisioned the object; the replay provisions its own.
pub(super) fn is_made(kind: Kind, recorded: &Value) -> bool {
    matches!(kind, Kind::Resource(_)) && made_for(recorded).is_some()
}

/// Whether it is being deleted.
pub(super) fn is_deleting(recorded: &Value) -> bool {
    recorded.pointer("/metadata/deletionTimestamp").is_some_and(|t| !t.is_null())
}

/// Why a recorded object was deleted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ending {
    /// A user deleted it: finalizers hold it, as in the API.
    Requested,
    /// The live engine reclaimed it after its last claim; the replay decides that itself.
    Reclaimed,
    /// It disappeared while a claim held it: its finalizers were removed by hand, or the store lost it.
    Forced,
}

/// Why a recorded object was deleted. `lives`: whether a claim is recorded at that time and not being deleted.
pub(super) fn ending(kind: Kind, recorded: &Value, lives: impl Fn(&ObjectKey, &str) -> bool) -> Ending {
    let Kind::Resource(_) = kind else { return Ending::Requested };
    let text = |r: &Value, field: &str| r.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let refs = recorded.pointer("/spec/claimRefs").and_then(Value::as_array).into_iter().flatten();
    let holders: Vec<&Value> = refs.filter(|r| !text(r, "uid").is_empty()).collect();
    let is_held =
        |r: &&Value| lives(&ObjectKey::new(text(r, "namespace"), text(r, "name")), text(r, "uid").as_str());
    let is_deleted_after_use =
        recorded.pointer("/spec/reclaimPolicy").is_some_and(|p| p == ReclaimPolicy::Delete.name());
    match (holders.is_empty(), holders.iter().any(is_held)) {
        (_, true) => Ending::Forced,
        (false, false) if is_deleted_after_use => Ending::Reclaimed,
        (_, false) => Ending::Requested,
    }
}

/// Removes finalizers other than the engine's.
pub(super) fn keep_own_finalizers(object: &mut Object) {
    let ours = [CLAIM_PROTECTION, RESOURCE_PROTECTION, CLASS_PROTECTION];
    if let Some(finalizers) = &mut object.metadata.finalizers {
        finalizers.retain(|f| ours.contains(&f.as_str()));
    }
    object.metadata.finalizers = object.metadata.finalizers.take().filter(|left| !left.is_empty());
}

/// Applies the users' fields of `new` to an object of the replay, and keeps what the replay's engine wrote.
pub(super) fn apply(object: &mut Object, new: &Object) {
    let status = object.body.get("status").cloned();
    let held = object.body.pointer("/spec/claimRefs").cloned();
    let named = object.body.pointer("/spec/resourceName").cloned();
    let changed = object.body.get("spec") != new.body.get("spec");
    object.metadata.labels = new.metadata.labels.clone();
    object.metadata.annotations = new.metadata.annotations.clone();
    keep_own_finalizers(object);
    if let Some(others) = &new.metadata.finalizers {
        object.metadata.finalizers.get_or_insert_default().extend(others.iter().cloned());
    }
    object.body = new.body.clone();
    if let (Some(body), Some(status)) = (object.body.as_object_mut(), status) {
        body.insert("status".to_owned(), status);
    }
    if let Some(Value::Object(spec)) = object.body.get_mut("spec") {
        if let (Kind::Resource(_), Some(held)) = (object.kind, held) {
            spec.insert("claimRefs".to_owned(), held);
        }
        if let (Kind::Claim(_), Some(named)) = (object.kind, named) {
            spec.entry("resourceName").or_insert(named);
        }
    }
    if changed {
        object.metadata.generation = Some(object.metadata.generation.unwrap_or(1) + 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::model::TypeId;
    use serde_json::json;

    const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

    #[test]
    fn fields_of_the_engine_are_not_the_users() {
        let claim = json!({
            "metadata": {"name": "x", "resourceVersion": "7", "finalizers": ["conductor.io/claim-protection", "mine"]},
            "spec": {"engine": "mysql", "resourceName": "db"}, "status": {"resourceRef": {"name": "db"}},
        });
        let changed = json!({"metadata": {"name": "x", "finalizers": ["mine"]}, "spec": {"engine": "mysql"}});
        assert_eq!(user_part(Kind::Claim(TYPE), claim), changed);
        let named = json!({"metadata": {"name": "x"}, "spec": {"resourceName": "db"}});
        assert_eq!(user_part(Kind::Claim(TYPE), named.clone()), named, "the author's own name stays");
    }

    #[test]
    fn why_a_resource_goes_is_read_off_its_holders() {
        let resource =
            |policy: &str, refs: Value| json!({"spec": {"reclaimPolicy": policy, "claimRefs": refs}});
        let held = json!([{"namespace": "a", "name": "x", "uid": "u"}]);
        let kind = Kind::Resource(TYPE);
        let lives = |_: &ObjectKey, uid: &str| uid == "u";
        let left = |_: &ObjectKey, _: &str| false;
        assert_eq!(ending(kind, &resource("Delete", held.clone()), lives), Ending::Forced);
        assert_eq!(ending(kind, &resource("Delete", held.clone()), left), Ending::Reclaimed);
        assert_eq!(ending(kind, &resource("Retain", held), left), Ending::Requested);
        let reserved = json!([{"namespace": "a", "name": "x"}]);
        assert_eq!(ending(kind, &resource("Delete", reserved), lives), Ending::Requested);
    }

    #[test]
    fn an_engine_patch_is_recognised_by_its_fields() {
        let change = |patch: Value| Change { patch: Some(patch), ..Change::default() };
        let version = json!({"resourceVersion": "7"});
        assert!(is_engine_patch(&change(json!({"metadata": version, "status": {"phase": "Bound"}}))));
        assert!(!is_engine_patch(&change(
            json!({"metadata": version, "status": {"resourceRef": {"name": "db"}}})
        )));
        assert!(!is_engine_patch(&change(json!({"metadata": version, "status": null}))));
        assert!(!is_engine_patch(&change(json!({"metadata": {"labels": {"a": "b"}}}))));
        assert!(!is_engine_patch(&change(json!({"spec": {"engine": "mysql"}}))));
        assert!(!is_engine_patch(&Change { gone: true, ..change(json!({"status": {}})) }));
    }

    #[test]
    fn a_reservation_is_the_users_and_a_holder_is_not() {
        let resource = json!({"metadata": {"name": "db"}, "spec": {"claimRefs": [
            {"namespace": "a", "name": "x", "uid": "u"},
            {"namespace": "a", "name": "y", "uid": "v", "reserved": true},
            {"namespace": "a", "name": "z"},
        ]}});
        let refs = json!([{"namespace": "a", "name": "y"}, {"namespace": "a", "name": "z"}]);
        assert_eq!(user_part(Kind::Resource(TYPE), resource)["spec"]["claimRefs"], refs);
    }
}
