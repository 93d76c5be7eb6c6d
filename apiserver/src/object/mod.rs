//! Objects as JSON: their metadata read and written by name, and checked. What a kind adds is elsewhere.

mod check;
pub(super) mod names;

pub(super) use check::{check_created, check_updated};

use serde_json::{Map, Value};

/// The metadata, where it is an object.
pub(super) fn meta(object: &Value) -> Option<&Map<String, Value>> {
    object.get("metadata")?.as_object()
}

/// The metadata, made where there is none.
pub(super) fn meta_mut(object: &mut Value) -> &mut Map<String, Value> {
    if !object.is_object() {
        *object = Value::Object(Map::new());
    }
    let fields = object.as_object_mut().expect("it has been made an object above");
    let metadata = fields.entry("metadata").or_insert_with(|| Value::Object(Map::new()));
    if !metadata.is_object() {
        *metadata = Value::Object(Map::new());
    }
    metadata.as_object_mut().expect("it has been made an object above")
}

/// A text of the metadata; empty counts as absent.
pub(super) fn meta_text<'a>(object: &'a Value, field: &str) -> Option<&'a str> {
    meta(object)?.get(field)?.as_str().filter(|text| !text.is_empty())
}

pub(super) fn name(object: &Value) -> &str {
    meta_text(object, "name").unwrap_or_default()
}

pub(super) fn namespace(object: &Value) -> &str {
    meta_text(object, "namespace").unwrap_or_default()
}

pub(super) fn uid(object: &Value) -> &str {
    meta_text(object, "uid").unwrap_or_default()
}

pub(super) fn finalizers(object: &Value) -> Vec<&str> {
    let list = meta(object).and_then(|meta| meta.get("finalizers")).and_then(Value::as_array);
    list.into_iter().flatten().filter_map(Value::as_str).collect()
}

pub(super) fn is_deleting(object: &Value) -> bool {
    meta_text(object, "deletionTimestamp").is_some()
}

pub(super) fn generation(object: &Value) -> i64 {
    meta(object).and_then(|meta| meta.get("generation")).and_then(Value::as_i64).unwrap_or(0)
}

pub(super) fn owners(object: &Value) -> &[Value] {
    let list = meta(object).and_then(|meta| meta.get("ownerReferences")).and_then(Value::as_array);
    list.map_or(&[], Vec::as_slice)
}

/// Sets or, with null, removes a field of the metadata.
pub(super) fn set_meta(object: &mut Value, field: &str, value: Value) {
    let metadata = meta_mut(object);
    match value {
        Value::Null => drop(metadata.remove(field)),
        value => drop(metadata.insert(field.to_owned(), value)),
    }
}

/// Sets or removes a top-level field.
pub(super) fn set_field(object: &mut Value, field: &str, value: Option<Value>) {
    let Some(fields) = object.as_object_mut() else { return };
    match value {
        None => drop(fields.remove(field)),
        Some(value) => drop(fields.insert(field.to_owned(), value)),
    }
}

/// Where an object of a resource is kept.
pub(super) fn key(namespace: &str, name: &str) -> String {
    match namespace.is_empty() {
        true => name.to_owned(),
        false => format!("{namespace}/{name}"),
    }
}
