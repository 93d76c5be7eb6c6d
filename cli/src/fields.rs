//! Reads fields that several commands show from objects in JSON.

use serde_json::Value;

/// The condition of a type.
pub fn condition<'a>(object: &'a Value, kind: &str) -> Option<&'a Value> {
    let conditions = object.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().find(|condition| condition["type"] == kind)
}

/// The claims in a resource's `claimRefs`, as `namespace/name`.
pub fn holders(resource: &Value) -> Vec<String> {
    let refs = resource.pointer("/spec/claimRefs").and_then(Value::as_array);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let named = |by: &Value| format!("{}/{}", text(&by["namespace"]), text(&by["name"]));
    refs.into_iter().flatten().map(named).collect()
}
