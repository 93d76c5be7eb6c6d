//! Namespaces: always labelled with their own name, kept until they are empty.

use super::{inner, put};
use crate::object::{finalizers, meta_mut, name};
use crate::status::Cause;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

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

/// What a Namespace on its way out waits for, as conditions.
pub(crate) fn remaining(namespace: &mut Value, left: &[(&str, &Value)], now: &str) {
    let mut by_table: BTreeMap<String, usize> = BTreeMap::new();
    let mut by_finalizer: BTreeMap<String, usize> = BTreeMap::new();
    for (table, object) in left {
        let named = if table.contains('.') { (*table).to_owned() } else { format!("{table}.") };
        *by_table.entry(named).or_default() += 1;
        for finalizer in finalizers(object) {
            *by_finalizer.entry(finalizer.to_owned()).or_default() += 1;
        }
    }
    let join = |counts: &BTreeMap<String, usize>, verb: &str| {
        let texts = counts.iter().map(|(name, count)| format!("{name} {verb} {count} resource instances"));
        texts.collect::<Vec<_>>().join(", ")
    };
    let tables = format!("Some resources are remaining: {}", join(&by_table, "has"));
    let finalizers = join(&by_finalizer, "in");
    let finalizers = format!("Some content in the namespace has finalizers remaining: {finalizers}");
    let rows = [
        (
            "NamespaceDeletionDiscoveryFailure",
            false,
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            false,
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            false,
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ("NamespaceContentRemaining", true, "SomeResourcesRemain", tables.as_str()),
        match by_finalizer.is_empty() {
            true => (
                "NamespaceFinalizersRemaining",
                false,
                "ContentHasNoFinalizers",
                "All content-preserving finalizers finished",
            ),
            false => ("NamespaceFinalizersRemaining", true, "SomeFinalizersRemain", finalizers.as_str()),
        },
    ];
    let conditions = rows.map(|(kind, holds, reason, message)| {
        let status = if holds { "True" } else { "False" };
        json!({
            "type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": now,
        })
    });
    let Some(status) = inner(namespace, "status") else { return };
    let present = status.get("conditions").and_then(Value::as_array);
    let same = present.is_some_and(|present| {
        let plain = |one: &Value| (one["status"].clone(), one["message"].clone());
        present.len() == conditions.len()
            && present.iter().zip(&conditions).all(|(a, b)| plain(a) == plain(b))
    });
    if !same && let Some(status) = status.as_object_mut() {
        status.insert("conditions".to_owned(), Value::Array(conditions.to_vec()));
    }
}

pub(super) fn check(object: &Value) -> Vec<Cause> {
    let phase = object.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default();
    let deleting = crate::object::is_deleting(object);
    let why = match (deleting, phase) {
        (true, phase) if phase != "Terminating" => {
            "may only be 'Terminating' if `deletionTimestamp` is not empty"
        }
        (false, "Terminating") => "may only be 'Active' if `deletionTimestamp` is empty",
        _ => return Vec::new(),
    };
    vec![Cause::invalid_text("status.Phase", phase, why)]
}
