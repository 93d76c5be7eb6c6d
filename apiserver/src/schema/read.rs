//! A node from an OpenAPI v3 schema. Schemas of CRDs have been checked before; what is odd here is read as open.

use super::checks::{Checks, Pattern};
use super::{Kind, List, Node, Patch};
use regex::Regex;
use serde_json::Value;
use std::sync::Arc;

/// How deep a schema may be; deeper parts are open.
const DEPTH_MAX: usize = 64;

/// Reads a schema.
pub(crate) fn read(schema: &Value) -> Node {
    read_at(schema, 0)
}

fn read_at(schema: &Value, depth: usize) -> Node {
    let mut node = Node::new(kind_of(schema));
    if depth > DEPTH_MAX {
        node.kind = Kind::Any;
        node.open = true;
        return node;
    }
    let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or(false);
    node.nullable = flag("nullable");
    node.open = flag("x-kubernetes-preserve-unknown-fields");
    node.embedded = flag("x-kubernetes-embedded-resource");
    node.default = schema.get("default").cloned();
    for (name, child) in entries(schema, "properties") {
        node.properties.insert(name.clone(), Arc::new(read_at(child, depth + 1)));
    }
    node.items = schema.get("items").map(|items| Arc::new(read_at(items, depth + 1)));
    match schema.get("additionalProperties") {
        Some(Value::Bool(true)) => node.values = Some(Arc::new(open())),
        Some(values @ Value::Object(_)) => node.values = Some(Arc::new(read_at(values, depth + 1))),
        _ => {}
    }
    node.list = list_of(schema);
    node.atomic = text(schema, "x-kubernetes-map-type") == Some("atomic");
    node.patch = patch_of(schema);
    node.checks = checks_of(schema, depth);
    node.go = text(schema, "x-go-type").map(Arc::from);
    node
}

/// A node that takes and keeps anything.
pub(super) fn open() -> Node {
    let mut node = Node::new(Kind::Any);
    node.open = true;
    node
}

fn kind_of(schema: &Value) -> Kind {
    if schema.get("x-kubernetes-int-or-string").and_then(Value::as_bool) == Some(true)
        || text(schema, "format") == Some("int-or-string")
    {
        return Kind::IntOrString;
    }
    match text(schema, "type") {
        Some("object") => Kind::Object,
        Some("array") => Kind::Array,
        Some("string") => Kind::Text,
        Some("integer") => Kind::Integer,
        Some("number") => Kind::Number,
        Some("boolean") => Kind::Boolean,
        _ => Kind::Any,
    }
}

fn list_of(schema: &Value) -> List {
    match text(schema, "x-kubernetes-list-type") {
        Some("set") => List::Set,
        Some("map") => List::Map(texts(schema, "x-kubernetes-list-map-keys")),
        _ => List::Atomic,
    }
}

fn patch_of(schema: &Value) -> Patch {
    let key = text(schema, "x-kubernetes-patch-merge-key").map(str::to_owned);
    match text(schema, "x-kubernetes-patch-strategy") {
        Some("merge") => Patch::Merge(key),
        Some("retainKeys") => Patch::RetainKeys,
        Some("merge,retainKeys") => Patch::MergeRetainKeys(key),
        _ => Patch::Replace,
    }
}

fn checks_of(schema: &Value, depth: usize) -> Checks {
    let number = |name: &str| schema.get(name).and_then(Value::as_f64);
    let count = |name: &str| schema.get(name).and_then(Value::as_u64);
    let flag = |name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or(false);
    let junction = |name: &str| {
        let parts = schema.get(name).and_then(Value::as_array);
        parts.into_iter().flatten().map(|part| read_at(part, depth + 1)).collect()
    };
    Checks {
        required: texts(schema, "required"),
        choices: schema.get("enum").and_then(Value::as_array).cloned(),
        minimum: number("minimum"),
        exclusive_minimum: flag("exclusiveMinimum"),
        maximum: number("maximum"),
        exclusive_maximum: flag("exclusiveMaximum"),
        multiple_of: number("multipleOf"),
        min_length: count("minLength"),
        max_length: count("maxLength"),
        pattern: text(schema, "pattern").filter(|pattern| !pattern.is_empty()).map(pattern),
        format: text(schema, "format").filter(|format| !format.is_empty()).map(str::to_owned),
        min_items: count("minItems"),
        max_items: count("maxItems"),
        unique_items: flag("uniqueItems"),
        min_properties: count("minProperties"),
        max_properties: count("maxProperties"),
        all_of: junction("allOf"),
        any_of: junction("anyOf"),
        one_of: junction("oneOf"),
        not: schema.get("not").map(|not| Box::new(read_at(not, depth + 1))),
    }
}

fn pattern(pattern: &str) -> Pattern {
    Pattern { text: pattern.to_owned(), regex: Regex::new(pattern).ok() }
}

fn text<'a>(schema: &'a Value, name: &str) -> Option<&'a str> {
    schema.get(name).and_then(Value::as_str)
}

fn texts(schema: &Value, name: &str) -> Vec<String> {
    let all = schema.get(name).and_then(Value::as_array);
    all.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

fn entries<'a>(schema: &'a Value, name: &str) -> impl Iterator<Item = (&'a String, &'a Value)> {
    schema.get(name).and_then(Value::as_object).into_iter().flatten()
}
