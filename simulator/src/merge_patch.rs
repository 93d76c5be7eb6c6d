//! Creates and applies merge patches (RFC 7396).

pub use conductor::model::merge_patch as merge;
use serde_json::{Map, Value};

/// The patch from `old` to `new`; `None` if they are equal. A merge patch cannot set a field to null; objects of the API
/// have no such fields.
pub fn diff(old: &Value, new: &Value) -> Option<Value> {
    if old == new {
        return None;
    }
    let (Value::Object(was), Value::Object(is)) = (old, new) else { return Some(new.clone()) };
    let mut patch = Map::new();
    for (key, value) in is {
        match was.get(key) {
            None => drop(patch.insert(key.clone(), value.clone())),
            Some(known) => drop(diff(known, value).map(|change| patch.insert(key.clone(), change))),
        }
    }
    for key in was.keys().filter(|key| !is.contains_key(*key)) {
        patch.insert(key.clone(), Value::Null);
    }
    Some(Value::Object(patch))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    fn value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![any::<bool>().prop_map(Value::from), "[a-c]{0,2}".prop_map(Value::from)];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
                prop::collection::btree_map("[a-c]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    fn object() -> impl Strategy<Value = Value> {
        prop::collection::btree_map("[a-c]", value(), 0..4)
            .prop_map(|map| Value::Object(map.into_iter().collect()))
    }

    proptest! {
        #[test]
        fn a_patch_leads_from_one_form_to_the_other((old, new) in (object(), object())) {
            let mut followed = old.clone();
            if let Some(patch) = diff(&old, &new) {
                merge(&mut followed, patch);
            }
            prop_assert_eq!(followed, new);
        }
    }

    #[test]
    fn only_what_changed_is_in_a_patch() {
        let (old, new) = (json!({"a": {"b": 1, "c": 2}, "d": [1]}), json!({"a": {"b": 1, "c": 3}, "d": [1]}));
        assert_eq!(diff(&old, &new), Some(json!({"a": {"c": 3}})));
        assert_eq!(diff(&old, &old), None);
    }
}
