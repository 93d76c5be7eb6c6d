//! The schema of a CRD checked for being structural: shaped by properties, items and additionalProperties alone, with
//! types everywhere, so that pruning and defaulting know what to do.

use super::{items, text};
use crate::schema::{check_lists, find_fault, prune, read, validate};
use crate::status::Cause;
use serde_json::Value;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];
/// What no schema of a CRD may have.
const FORBIDDEN: [&str; 6] =
    ["id", "additionalItems", "patternProperties", "definitions", "dependencies", "$ref"];
/// What may only stand outside of junctions.
const SHAPE: [&str; 8] = [
    "type",
    "default",
    "nullable",
    "additionalProperties",
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-embedded-resource",
    "x-kubernetes-list-type",
    "x-kubernetes-map-type",
];

/// What is wrong with a schema.
pub(super) fn check_schema(schema: &Value, place: &str) -> Vec<Cause> {
    let mut causes = Vec::new();
    match text(schema, "type") {
        "object" => {}
        "" => causes.push(Cause::required(format!("{place}.type"), "must not be empty at the root")),
        other => {
            causes.push(Cause::invalid_text(format!("{place}.type"), other, "must be object at the root"));
        }
    }
    walk(schema, place, 0, true, &mut causes);
    if causes.is_empty() {
        check_rules(schema, place, &mut causes);
    }
    causes
}

fn walk(schema: &Value, place: &str, depth: usize, is_root: bool, causes: &mut Vec<Cause>) {
    if depth > 64 {
        causes.push(Cause::forbidden(place, "a schema may be no deeper than 64 levels"));
        return;
    }
    let at = |field: &str| format!("{place}.{field}");
    let flag = |field: &str| schema.get(field).and_then(Value::as_bool).unwrap_or(false);
    for field in FORBIDDEN.iter().filter(|field| schema.get(**field).is_some_and(|value| !value.is_null())) {
        causes.push(Cause::forbidden(at(field), &format!("{field} is not supported")));
    }
    if flag("uniqueItems") {
        let why = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
        causes.push(Cause::forbidden(at("uniqueItems"), why));
    }
    let kind = text(schema, "type");
    if !kind.is_empty() && !TYPES.contains(&kind) {
        causes.push(Cause::unsupported(at("type"), &kind.into(), &TYPES));
    }
    let typeless = flag("x-kubernetes-int-or-string") || flag("x-kubernetes-preserve-unknown-fields");
    if kind.is_empty() && !typeless && !is_root {
        causes.push(Cause::required(at("type"), "must not be empty for specified object fields"));
    }
    if schema.get("x-kubernetes-preserve-unknown-fields") == Some(&Value::Bool(false)) {
        let why = "must be true or undefined";
        causes.push(Cause::invalid(at("x-kubernetes-preserve-unknown-fields"), &Value::Bool(false), why));
    }
    if kind == "array" && schema.get("items").is_none_or(Value::is_null) {
        causes.push(Cause::required(at("items"), "must be specified"));
    }
    if schema.get("properties").is_some() && schema.get("additionalProperties").is_some() {
        let why = "additionalProperties and properties are mutual exclusive";
        causes.push(Cause::forbidden(at("additionalProperties"), why));
    }
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && let Err(error) = regex::Regex::new(pattern)
    {
        let said = error.to_string();
        let said = said.lines().last().unwrap_or_default().trim_start_matches("error: ").to_owned();
        let why = format!("must be a valid regular expression, but isn't: error parsing regexp: {said}");
        causes.push(Cause::invalid_text(at("pattern"), pattern, &why));
    }
    check_list(schema, place, causes);
    check_default(schema, place, causes);
    for junction in ["allOf", "anyOf", "oneOf"] {
        for (index, part) in items(schema, junction).iter().enumerate() {
            check_junction(part, &format!("{place}.{junction}[{index}]"), causes);
        }
    }
    for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        if is_root && name == "metadata" {
            check_metadata(child, &format!("{place}.properties[metadata]"), causes);
            continue;
        }
        walk(child, &format!("{place}.properties[{name}]"), depth + 1, false, causes);
    }
    for field in ["items", "additionalProperties"] {
        if let Some(child) = schema.get(field).filter(|child| child.is_object()) {
            walk(child, &at(field), depth + 1, false, causes);
        }
    }
}

/// Metadata is what it is everywhere; a schema may only narrow names.
fn check_metadata(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    let fields = schema.get("properties").and_then(Value::as_object).into_iter().flatten();
    let others = fields.filter(|(name, _)| !matches!(name.as_str(), "name" | "generateName")).count();
    if others > 0 {
        let why = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        causes.push(Cause::forbidden(place, why));
    }
}

fn check_list(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    let at = |field: &str| format!("{place}.{field}");
    let keys = items(schema, "x-kubernetes-list-map-keys");
    let list = text(schema, "x-kubernetes-list-type");
    match list {
        "" | "atomic" | "set" => {
            if !keys.is_empty() {
                let why = "must be map if x-kubernetes-list-map-keys is non-empty";
                causes.push(Cause::invalid_text(at("x-kubernetes-list-type"), list, why));
            }
        }
        "map" => {
            if keys.is_empty() {
                let why = "must not be empty if x-kubernetes-list-type is map";
                causes.push(Cause::required(at("x-kubernetes-list-map-keys"), why));
            }
            let item = schema.get("items").cloned().unwrap_or(Value::Null);
            for key in keys.iter().filter_map(Value::as_str) {
                let property = item.pointer(&format!("/properties/{key}"));
                let Some(property) = property else {
                    let why = "entries must all be names of item properties";
                    let shown = schema.get("x-kubernetes-list-map-keys").cloned().unwrap_or_default();
                    causes.push(Cause::invalid(at("x-kubernetes-list-map-keys"), &shown, why));
                    continue;
                };
                let required = items(&item, "required").iter().any(|one| one == key);
                if !required && property.get("default").is_none() {
                    let why = "this property is in x-kubernetes-list-map-keys, so it must have a default or be a required property";
                    causes.push(Cause::required(at(&format!("items.properties[{key}].default")), why));
                }
            }
        }
        other => {
            let known = ["atomic", "map", "set"];
            causes.push(Cause::unsupported(at("x-kubernetes-list-type"), &other.into(), &known));
        }
    }
    if !list.is_empty() && text(schema, "type") != "array" {
        let why = "must be array if x-kubernetes-list-type is specified";
        match text(schema, "type") {
            "" => causes.push(Cause::required(at("type"), why)),
            other => causes.push(Cause::invalid_text(at("type"), other, why)),
        }
    }
    let map = text(schema, "x-kubernetes-map-type");
    if !map.is_empty() && !["atomic", "granular"].contains(&map) {
        causes.push(Cause::unsupported(at("x-kubernetes-map-type"), &map.into(), &["atomic", "granular"]));
    }
}

/// A default must itself be valid and fully known.
fn check_default(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    let Some(default) = schema.get("default") else { return };
    let node = read(schema);
    let mut pruned = default.clone();
    prune(&mut pruned, &node, node.embedded);
    if pruned != *default {
        causes.push(Cause::invalid(format!("{place}.default"), default, "must not have unknown fields"));
    }
    for cause in validate(default, None, &node).into_iter().chain(check_lists(default, &node)) {
        let field = match cause.field.as_str() {
            "<nil>" | "" | "." => format!("{place}.default"),
            inner => format!("{place}.default.{inner}"),
        };
        causes.push(Cause { field, ..cause });
    }
}

fn check_junction(part: &Value, place: &str, causes: &mut Vec<Cause>) {
    let int_or_string =
        matches!(text(part, "type"), "integer" | "string") && part.as_object().is_some_and(|f| f.len() == 1);
    for field in SHAPE.iter().filter(|field| part.get(**field).is_some()) {
        if *field == "type" && int_or_string {
            continue;
        }
        let why = "must be empty to be structural";
        causes.push(Cause::forbidden(format!("{place}.{field}"), why));
    }
    for (name, child) in part.get("properties").and_then(Value::as_object).into_iter().flatten() {
        check_junction(child, &format!("{place}.properties[{name}]"), causes);
    }
    if let Some(child) = part.get("items") {
        check_junction(child, &format!("{place}.items"), causes);
    }
}

fn check_rules(schema: &Value, place: &str, causes: &mut Vec<Cause>) {
    for (at, rule) in items(schema, "x-kubernetes-validations").iter().enumerate() {
        let place = format!("{place}.x-kubernetes-validations[{at}].rule");
        if let Some(why) = find_fault(text(rule, "rule"), schema) {
            causes.push(Cause::invalid(place, rule, &why));
        }
    }
    for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
        check_rules(child, &format!("{place}.properties[{name}]"), causes);
    }
    for field in ["items", "additionalProperties"] {
        if let Some(child) = schema.get(field).filter(|child| child.is_object()) {
            check_rules(child, &format!("{place}.{field}"), causes);
        }
    }
}
