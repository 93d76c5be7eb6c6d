//! Validates an object as an API server does: unknown fields, the structural schema, list types, CEL rules. Supports only
//! what our schemas use; the conformance suite runs against the real server.

use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::core::cel::Validator;
use regex::Regex;
use serde_json::{Map, Value};
use std::collections::HashSet;

/// The schema of the CRD's one version.
pub fn schema_of(crd: &CustomResourceDefinition) -> Value {
    let schema = crd.spec.versions[0].schema.as_ref().and_then(|s| s.open_api_v3_schema.as_ref());
    serde_json::to_value(schema.expect("every version has a schema")).expect("a schema is JSON")
}

/// Every objection to the object; empty means that it is accepted.
pub fn objections(crds: &[CustomResourceDefinition], object: &Value) -> Vec<String> {
    let kind = object["kind"].as_str().unwrap_or_default();
    let Some(crd) = crds.iter().find(|crd| crd.spec.names.kind == kind) else {
        return vec![format!("no CRD for kind {kind:?}")];
    };
    if object["apiVersion"] != format!("{}/{}", crd.spec.group, crd.spec.versions[0].name) {
        return vec![format!("no version {} of {kind}", object["apiVersion"])];
    }
    let schema = schema_of(crd);
    let mut found = Vec::new();
    check(&schema, &without_type_meta(object), "", &mut found);
    if found.is_empty()
        && let Err(errors) = Validator::new().validate(&schema, &without_nulls(object), None)
    {
        found.extend(errors.iter().map(ToString::to_string));
    }
    found
}

/// Whether every value of `given` is in `kept`; `kept` may have defaults besides.
pub fn holds(kept: &Value, given: &Value) -> bool {
    match (kept, given) {
        (_, Value::Null) => true,
        (Value::Object(kept), Value::Object(given)) => given
            .iter()
            .all(|(name, value)| value.is_null() || kept.get(name).is_some_and(|kept| holds(kept, value))),
        (Value::Array(kept), Value::Array(given)) => {
            kept.len() == given.len() && kept.iter().zip(given).all(|(kept, given)| holds(kept, given))
        }
        (kept, given) => kept == given,
    }
}

fn without_type_meta(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.retain(|name, _| !["apiVersion", "kind", "metadata"].contains(&name.as_str()));
    }
    object
}

/// To the API server's `has()`, a field that is null is absent.
fn without_nulls(value: &Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.iter().filter(|(_, value)| !value.is_null());
            Value::Object(kept.map(|(name, value)| (name.clone(), without_nulls(value))).collect())
        }
        Value::Array(items) => Value::Array(items.iter().map(without_nulls).collect()),
        other => other.clone(),
    }
}

fn check(schema: &Value, value: &Value, at: &str, found: &mut Vec<String>) {
    // A null where there is a default becomes the default before anything is checked.
    let open = schema["nullable"] == true || schema.get("type").is_none() || schema.get("default").is_some();
    if value.is_null() && open {
        return;
    }
    let mut object_to = |what: String| found.push(format!("{at}: {what}"));
    if !has_type(schema, value) {
        return object_to(format!("wrong type: {value}"));
    }
    if let Some(allowed) = schema["enum"].as_array()
        && !allowed.contains(value)
    {
        object_to(format!("{value} is not among {allowed:?}"));
    }
    if let Some(forbidden) = schema["not"]["enum"].as_array()
        && forbidden.contains(value)
    {
        object_to(format!("{value} is forbidden"));
    }
    match value {
        Value::String(text) => check_text(schema, text, &mut object_to),
        Value::Number(number) => bounded(schema, "imum", number.as_f64().unwrap_or(0.0), &mut object_to),
        Value::Array(items) => check_list(schema, items, at, found),
        Value::Object(fields) => check_fields(schema, fields, at, found),
        Value::Null | Value::Bool(_) => {}
    }
}

fn has_type(schema: &Value, value: &Value) -> bool {
    if schema["x-kubernetes-int-or-string"] == true {
        return value.is_i64() || value.is_u64() || value.is_string();
    }
    match schema["type"].as_str() {
        None => true,
        Some("string") => value.is_string(),
        Some("boolean") => value.is_boolean(),
        Some("integer") => value.is_i64() || value.is_u64(),
        Some("number") => value.is_number(),
        Some("array") => value.is_array(),
        Some("object") => value.is_object(),
        Some(other) => panic!("unknown type {other}"),
    }
}

fn bounded(schema: &Value, of: &str, size: f64, object_to: &mut impl FnMut(String)) {
    if schema[format!("min{of}")].as_f64().is_some_and(|min| size < min) {
        object_to(format!("{size} is below min{of}"));
    }
    if schema[format!("max{of}")].as_f64().is_some_and(|max| size > max) {
        object_to(format!("{size} is above max{of}"));
    }
}

fn check_text(schema: &Value, text: &str, object_to: &mut impl FnMut(String)) {
    bounded(schema, "Length", text.chars().count() as f64, object_to);
    if let Some(pattern) = schema["pattern"].as_str()
        && !Regex::new(pattern).expect("patterns compile").is_match(text)
    {
        object_to(format!("{text:?} does not match {pattern}"));
    }
}

fn check_list(schema: &Value, items: &[Value], at: &str, found: &mut Vec<String>) {
    bounded(schema, "Items", items.len() as f64, &mut |what| found.push(format!("{at}: {what}")));
    let mut seen = HashSet::new();
    for (index, item) in items.iter().enumerate() {
        let at = format!("{at}[{index}]");
        let key = match schema["x-kubernetes-list-type"].as_str() {
            Some("set") => Some(item.to_string()),
            Some("map") => Some(map_key(schema, item)),
            _ => None,
        };
        if key.is_some_and(|key| !seen.insert(key)) {
            found.push(format!("{at}: duplicate"));
        }
        check(&schema["items"], item, &at, found);
    }
}

fn map_key(schema: &Value, item: &Value) -> String {
    let keys = schema["x-kubernetes-list-map-keys"].as_array().expect("a map list has keys");
    keys.iter().map(|key| item[key.as_str().unwrap_or_default()].to_string()).collect()
}

fn check_fields(schema: &Value, fields: &Map<String, Value>, at: &str, found: &mut Vec<String>) {
    bounded(schema, "Properties", fields.len() as f64, &mut |what| found.push(format!("{at}: {what}")));
    let child = |name: &str| if at.is_empty() { name.to_owned() } else { format!("{at}.{name}") };
    for required in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !fields.contains_key(required) {
            found.push(format!("{}: required", child(required)));
        }
    }
    for (name, value) in fields {
        match schema["properties"].get(name).or(schema.get("additionalProperties")) {
            Some(schema) => check(schema, value, &child(name), found),
            None if schema["x-kubernetes-preserve-unknown-fields"] == true => {}
            None => found.push(format!("{}: unknown field", child(name))),
        }
    }
}
