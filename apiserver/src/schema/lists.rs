//! Lists whose items are told apart, checked for items that are not: sets and maps by keys.

use super::{List, Node};
use crate::status::Cause;
use serde_json::{Map, Value};

/// Items that stand twice.
pub(crate) fn check_lists(value: &Value, node: &Node) -> Vec<Cause> {
    let mut causes = Vec::new();
    walk(value, node, "", &mut causes);
    causes
}

fn walk(value: &Value, node: &Node, path: &str, causes: &mut Vec<Cause>) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let Some(child) = node.field(name) else { continue };
                let named = node.properties.contains_key(name);
                let inner = match (path.is_empty(), named) {
                    (true, _) => name.clone(),
                    (false, true) => format!("{path}.{name}"),
                    (false, false) => format!("{path}[{name}]"),
                };
                walk(field, child, &inner, causes);
            }
        }
        Value::Array(items) => {
            match &node.list {
                List::Atomic => {}
                List::Set => repeated(items, path, causes, |item| Some(item.clone())),
                List::Map(keys) => repeated(items, path, causes, |item| keys_of(item, keys, node)),
            }
            let Some(child) = &node.items else { return };
            for (at, item) in items.iter().enumerate() {
                walk(item, child, &format!("{path}[{at}]"), causes);
            }
        }
        _ => {}
    }
}

fn repeated(items: &[Value], path: &str, causes: &mut Vec<Cause>, key: impl Fn(&Value) -> Option<Value>) {
    let mut seen: Vec<Value> = Vec::new();
    for (at, item) in items.iter().enumerate() {
        let Some(key) = key(item) else { continue };
        match seen.contains(&key) {
            true => causes.push(Cause::duplicate(format!("{path}[{at}]"), &key)),
            false => seen.push(key),
        }
    }
}

/// The fields that tell an item apart; a default stands in for one that is absent.
fn keys_of(item: &Value, keys: &[String], node: &Node) -> Option<Value> {
    let item = item.as_object()?;
    let mut found = Map::new();
    for key in keys {
        let default = || node.items.as_ref()?.properties.get(key)?.default.clone();
        if let Some(value) = item.get(key).cloned().or_else(default) {
            found.insert(key.clone(), value);
        }
    }
    Some(Value::Object(found))
}
