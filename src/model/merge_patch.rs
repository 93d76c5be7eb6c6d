//! JSON merge patches, RFC 7396: objects merge, null removes, everything else replaces.

use serde_json::{Map, Value};

/// Merges a patch into a value and returns whether that changed it.
pub fn merge_patch(target: &mut Value, patch: Value) -> bool {
    let Value::Object(patch) = patch else {
        let changed = *target != patch;
        *target = patch;
        return changed;
    };
    let mut changed = !target.is_object();
    if changed {
        *target = Value::Object(Map::new());
    }
    if let Value::Object(fields) = target {
        for (name, value) in patch {
            changed |= match (value, fields.get_mut(&name)) {
                (Value::Null, None) => false,
                (Value::Null, Some(_)) => fields.remove(&name).is_some(),
                (value, Some(known)) => merge_patch(known, value),
                (value, None) => {
                    merge_patch(fields.entry(name).or_insert(Value::Null), value);
                    true
                }
            };
        }
    }
    changed
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
        (json!({"a": {"b": 1}}), json!({"a": {"b": 1}, "c": null}), json!({"a": {"b": 1}})),
    ] {
        let mut merged = target.clone();
        let changed = merge_patch(&mut merged, patch.clone());
        assert_eq!(merged, expected, "{target} {patch}");
        assert_eq!(changed, merged != target, "{target} {patch}");
    }
}
