//! Merge patches: objects merge, null removes, everything else replaces.

use serde_json::{Map, Value};

/// Merges a patch into a value.
pub(crate) fn merge(target: &mut Value, patch: Value) {
    let Value::Object(patch) = patch else {
        *target = patch;
        return;
    };
    if !target.is_object() {
        *target = Value::Object(Map::new());
    }
    let Some(fields) = target.as_object_mut() else { return };
    for (name, value) in patch {
        match value {
            Value::Null => drop(fields.remove(&name)),
            value => merge(fields.entry(name).or_insert(Value::Null), value),
        }
    }
}

#[test]
fn patches_merge_as_the_standard_says() {
    use serde_json::json;
    for (target, patch, expected) in [
        (json!({"a": "b"}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": "b", "b": "c"}), json!({"a": null}), json!({"b": "c"})),
        (json!({"a": ["b"]}), json!({"a": "c"}), json!({"a": "c"})),
        (json!({"a": {"b": "c"}}), json!({"a": {"b": "d", "c": null}}), json!({"a": {"b": "d"}})),
        (json!({"a": "x"}), json!({"a": {"b": {"c": null}}}), json!({"a": {"b": {}}})),
        (json!([1, 2]), json!({"a": 1}), json!({"a": 1})),
    ] {
        let mut made = target.clone();
        merge(&mut made, patch.clone());
        assert_eq!(made, expected, "{target} {patch}");
    }
}
