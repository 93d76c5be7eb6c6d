//! Metadata checked when an object is created and when it is changed.

use super::names::{Form, bad_key, bad_label, bad_label_value, bad_name};
use super::{finalizers, is_deleting, meta, meta_text};
use crate::status::Cause;
use serde_json::{Map, Value};

const ANNOTATIONS_MAX: usize = 256 * 1024;

/// What is wrong with the metadata of a new object.
pub(crate) fn check_created(object: &Value, namespaced: bool, form: Form, is_common: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    if let Some(prefix) = meta_text(object, "generateName") {
        for why in bad_name(form, prefix, true) {
            causes.push(Cause::invalid_text("metadata.generateName", prefix, &why));
        }
    }
    match meta_text(object, "name") {
        None => causes.push(Cause::required("metadata.name", "name or generateName is required")),
        Some(name) => {
            for why in bad_name(form, name, false) {
                causes.push(Cause::invalid_text("metadata.name", name, &why));
            }
        }
    }
    check_namespace(object, namespaced, &mut causes);
    check_common(object, &mut causes);
    if is_common {
        check_standard_finalizers(object, &mut causes);
    }
    causes
}

/// What is wrong with changed metadata. A real server looks several times, and says it each time.
pub(crate) fn check_updated(object: &Value, old: &Value, is_common: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    check_common(object, &mut causes);
    for _ in 0..2 {
        check_change(object, old, &mut causes);
    }
    if is_common {
        check_common(object, &mut causes);
    }
    causes
}

fn check_change(object: &Value, old: &Value, causes: &mut Vec<Cause>) {
    if is_deleting(old) {
        let had = finalizers(old);
        let mut new: Vec<&str> = finalizers(object).into_iter().filter(|one| !had.contains(one)).collect();
        new.sort_unstable();
        if !new.is_empty() {
            let list = new.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ");
            let why = "no new finalizers can be added if the object is being deleted, found new finalizers";
            causes.push(Cause::forbidden("metadata.finalizers", &format!("{why} []string{{{list}}}")));
        }
    }
    for field in ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"] {
        let (new, old) = (meta_text(object, field), meta_text(old, field));
        if new != old {
            let value = new.map_or(Value::String(String::new()), Value::from);
            causes.push(Cause::invalid(format!("metadata.{field}"), &value, "field is immutable"));
        }
    }
    check_common(object, causes);
}

/// The common kinds want finalizers with a domain.
fn check_standard_finalizers(object: &Value, causes: &mut Vec<Cause>) {
    let known = ["kubernetes", "orphan", "foregroundDeletion"];
    let odd = |one: &str| !one.contains('/') && !known.contains(&one);
    for (at, finalizer) in finalizers(object).into_iter().enumerate().filter(|(_, one)| odd(one)) {
        let why = "name is neither a standard finalizer name nor is it fully qualified";
        causes.push(Cause::invalid_text(format!("metadata.finalizers[{at}]"), finalizer, why));
    }
}

fn check_namespace(object: &Value, namespaced: bool, causes: &mut Vec<Cause>) {
    match (meta_text(object, "namespace"), namespaced) {
        (None, true) => causes.push(Cause::required("metadata.namespace", "")),
        (Some(namespace), true) => {
            for why in bad_label(namespace) {
                causes.push(Cause::invalid_text("metadata.namespace", namespace, &why));
            }
        }
        (Some(_), false) => causes.push(Cause::forbidden("metadata.namespace", "not allowed on this type")),
        (None, false) => {}
    }
}

fn check_common(object: &Value, causes: &mut Vec<Cause>) {
    let Some(metadata) = meta(object) else { return };
    for (key, value) in texts(metadata, "labels") {
        for why in bad_key(key) {
            causes.push(Cause::invalid_text("metadata.labels", key, &why));
        }
        for why in bad_label_value(value) {
            causes.push(Cause::invalid_text("metadata.labels", value, &why));
        }
    }
    let mut size = 0;
    for (key, value) in texts(metadata, "annotations") {
        size += key.len() + value.len();
        for why in bad_key(&key.to_lowercase()) {
            causes.push(Cause::invalid_text("metadata.annotations", key, &why));
        }
    }
    if size > ANNOTATIONS_MAX {
        causes.push(Cause::too_long("metadata.annotations", ANNOTATIONS_MAX));
    }
    check_owners(super::owners(object), causes);
    check_finalizers(object, causes);
}

fn check_owners(owners: &[Value], causes: &mut Vec<Cause>) {
    let mut controller: Option<String> = None;
    for owner in owners {
        let text = |field: &str| owner.get(field).and_then(Value::as_str).unwrap_or_default();
        let mut refuse = |field: &str, why: &str| {
            causes.push(Cause::invalid_text(format!("metadata.ownerReferences.{field}"), text(field), why));
        };
        if text("apiVersion").is_empty() || text("apiVersion").ends_with('/') {
            refuse("apiVersion", "version must not be empty");
        }
        for field in ["kind", "name", "uid"] {
            if text(field).is_empty() {
                refuse(field, "must not be empty");
            }
        }
        if text("apiVersion") == "v1" && text("kind") == "Event" {
            let why = "/v1, Kind=Event is disallowed from being an owner";
            causes.push(Cause::invalid("metadata.ownerReferences", owner, why));
        }
        if owner.get("controller").and_then(Value::as_bool) == Some(true) {
            let this = format!("{}/{}", text("kind"), text("name"));
            match &controller {
                Some(first) => {
                    let why = format!(
                        "Only one reference can have Controller set to true. Found \"true\" in references for {first} and {this}"
                    );
                    let all = Value::Array(owners.to_vec());
                    causes.push(Cause::invalid("metadata.ownerReferences", &all, &why));
                }
                None => controller = Some(this),
            }
        }
    }
}

fn check_finalizers(object: &Value, causes: &mut Vec<Cause>) {
    let all = finalizers(object);
    for finalizer in &all {
        for why in bad_key(finalizer) {
            causes.push(Cause::invalid_text("metadata.finalizers", finalizer, &why));
        }
    }
    if all.contains(&"orphan") && all.contains(&"foregroundDeletion") {
        let value = Value::from(all.iter().map(|one| Value::from(*one)).collect::<Vec<_>>());
        let why = "finalizer orphan and foregroundDeletion cannot be both set";
        causes.push(Cause::invalid("metadata.finalizers", &value, why));
    }
}

fn texts<'a>(metadata: &'a Map<String, Value>, field: &str) -> impl Iterator<Item = (&'a str, &'a str)> {
    let map = metadata.get(field).and_then(Value::as_object).into_iter().flatten();
    map.filter_map(|(key, value)| Some((key.as_str(), value.as_str()?)))
}
