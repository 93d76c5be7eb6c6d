//! Checks a configuration before it is applied: values of the wrong type, and items that cannot be told apart.

use super::path::Step;
use super::walk::step_of;
use crate::schema::{Kind, List, Node};
use serde_json::Value;

/// Everything that cannot be merged, with its place.
pub(crate) fn find_untyped(config: &Value, node: &Node) -> Vec<String> {
    let mut found = Vec::new();
    look(config, node, &mut String::new(), &mut found);
    found
}

fn look(value: &Value, node: &Node, path: &mut String, found: &mut Vec<String>) {
    if let Some(why) = mismatch(value, node.kind) {
        found.push(format!("{path}: {why}"));
        return;
    }
    let length = path.len();
    match value {
        Value::Object(fields) => {
            for (name, field) in fields {
                let Some(child) = node.field(name) else { continue };
                path.push_str(&Step::field(name).to_string());
                look(field, child, path, found);
                path.truncate(length);
            }
        }
        Value::Array(items) if node.list != List::Atomic => {
            let mut seen: Vec<Step> = Vec::new();
            for item in items {
                let Some(step) = step_of(item, node) else { continue };
                if seen.contains(&step) {
                    found.push(format!("{path}: duplicate entries for key {step}"));
                    continue;
                }
                if let Some(child) = &node.items {
                    path.push_str(&step.to_string());
                    look(item, child, path, found);
                    path.truncate(length);
                }
                seen.push(step);
            }
        }
        _ => {}
    }
}

fn mismatch(value: &Value, kind: Kind) -> Option<String> {
    let go_type = match value {
        Value::Null => return None,
        Value::String(_) => "string",
        Value::Bool(_) => "bool",
        Value::Number(number) if number.is_f64() => "float64",
        Value::Number(_) => "int64",
        Value::Array(_) => "[]interface {}",
        Value::Object(_) => "map[string]interface {}",
    };
    match (kind, value) {
        (Kind::Integer | Kind::Number, value) if !value.is_number() => {
            Some(format!("expected numeric (int or float), got {go_type}"))
        }
        (Kind::Text, value) if !value.is_string() => Some(format!("expected string, got {value}")),
        (Kind::Boolean, value) if !value.is_boolean() => Some(format!("expected boolean, got {value}")),
        (Kind::Array, value) if !value.is_array() => Some(format!("expected list, got &{{{}}}", raw(value))),
        (Kind::Object, value) if !value.is_object() => Some(format!("expected map, got &{{{}}}", raw(value))),
        _ => None,
    }
}

fn raw(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
