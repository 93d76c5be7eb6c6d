//! Namespaces: always labelled with their own name, kept until they are empty.

use super::{inner, put};
use crate::embedded::object::{meta_mut, name};
use crate::embedded::status::Cause;
use serde_json::{Map, Value, json};

/// The finalizer that keeps a Namespace until its contents are gone.
pub(crate) const KUBERNETES: &str = "kubernetes";

pub(super) fn default(object: &mut Value) {
    let own = name(object).to_owned();
    if own.is_empty() {
        return;
    }
    let labels = meta_mut(object).entry("labels").or_insert_with(|| Value::Object(Map::new()));
    if let Some(labels) = labels.as_object_mut() {
        labels.insert("kubernetes.io/metadata.name".to_owned(), own.into());
    }
}

pub(super) fn prepare_created(object: &mut Value) {
    // Named only now where the name was generated.
    default(object);
    if let Some(fields) = object.as_object_mut() {
        fields.insert("status".to_owned(), json!({"phase": "Active"}));
    }
    let Some(spec) = inner(object, "spec") else { return };
    put(spec, "finalizers", json!([]));
    if let Some(finalizers) = spec.get_mut("finalizers").and_then(Value::as_array_mut)
        && !finalizers.iter().any(|one| one == KUBERNETES)
    {
        finalizers.push(KUBERNETES.into());
    }
}

pub(super) fn check(object: &Value) -> Vec<Cause> {
    let phase = object.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    let deleting = crate::embedded::object::is_deleting(object);
    let why = match (deleting, phase) {
        (true, phase) if phase != "Terminating" => {
            "may only be 'Terminating' if `deletionTimestamp` is not empty"
        }
        (false, "Terminating") => "may only be 'Active' if `deletionTimestamp` is empty",
        _ => return Vec::new(),
    };
    vec![Cause::invalid_text("status.Phase", phase, why)]
}
