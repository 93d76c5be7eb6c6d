//! The rules of a CRD, in CEL, each at its place in the schema. A rule that uses the old value runs only where an
//! old value can be found for certain: by the name of a field or the keys of an item.

use super::{List, read};
use crate::status::Cause;
use kube_cel::{CompiledSchema, ErrorKind, ValidationError, compile_schema};
use serde_json::{Map, Value};
use std::collections::BTreeMap;

const RULES: &str = "x-kubernetes-validations";
const OLD: &str = "oldSelf";

/// Rules of one place and of everything below it.
#[derive(Debug, Default)]
pub(crate) struct Rules {
    here: Option<Here>,
    fields: BTreeMap<String, Rules>,
    items: Option<Box<Rules>>,
    values: Option<Box<Rules>>,
    keys: Vec<String>,
}

#[derive(Debug)]
struct Here {
    compiled: CompiledSchema,
    /// The same for values that are new, where a rule asks whether there was an old one.
    compiled_new: Option<CompiledSchema>,
    /// Values that a message would be too long for.
    is_container: bool,
    /// Rules that compare with the old value, by their text.
    transitions: Vec<String>,
    /// What rules say of themselves, by their text.
    messages: BTreeMap<String, String>,
}

impl Rules {
    /// Compiles everything in a schema; nothing where there are no rules.
    pub fn read(schema: &Value) -> Option<Rules> {
        let mut rules = Rules { here: here(schema), ..Rules::default() };
        for (name, child) in schema.get("properties").and_then(Value::as_object).into_iter().flatten() {
            if let Some(child) = Rules::read(child) {
                rules.fields.insert(name.clone(), child);
            }
        }
        let inner = |name: &str| schema.get(name).filter(|child| child.is_object()).and_then(Rules::read);
        rules.items = inner("items").map(Box::new);
        rules.values = inner("additionalProperties").map(Box::new);
        if let List::Map(keys) = read(&without_children(schema)).list {
            rules.keys = keys;
        }
        let empty = rules.here.is_none()
            && rules.fields.is_empty()
            && rules.items.is_none()
            && rules.values.is_none();
        (!empty).then_some(rules)
    }

    /// What the rules have against a value.
    pub fn check(&self, value: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = Vec::new();
        self.walk(value, old, "", &mut causes);
        causes
    }

    /// As [`Rules::check`] for what lives under one field alone.
    pub fn check_field(&self, name: &str, value: &Value, old: Option<&Value>) -> Vec<Cause> {
        let mut causes = Vec::new();
        if let (Some(rules), Some(value)) = (self.fields.get(name), value.get(name)) {
            rules.walk(value, old.and_then(|old| old.get(name)), name, &mut causes);
        }
        causes
    }

    fn walk(&self, value: &Value, old: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
        if value.is_null() {
            return;
        }
        if let Some(here) = &self.here {
            here.check(value, old, path, causes);
        }
        match value {
            Value::Object(fields) => {
                for (name, field) in fields {
                    let (rules, inner) = match (self.fields.get(name), &self.values) {
                        (Some(rules), _) if path.is_empty() => (rules, name.clone()),
                        (Some(rules), _) => (rules, format!("{path}.{name}")),
                        (None, Some(rules)) => (&**rules, format!("{path}[{name}]")),
                        (None, None) => continue,
                    };
                    rules.walk(field, old.and_then(|old| old.get(name)), &inner, causes);
                }
            }
            Value::Array(items) => {
                let Some(rules) = &self.items else { return };
                for (at, item) in items.iter().enumerate() {
                    let old = old.and_then(|old| self.find_old(old, item));
                    rules.walk(item, old, &format!("{path}[{at}]"), causes);
                }
            }
            _ => {}
        }
    }

    /// The old item with the same keys.
    fn find_old<'a>(&self, old: &'a Value, item: &Value) -> Option<&'a Value> {
        if self.keys.is_empty() {
            return None;
        }
        old.as_array()?.iter().find(|old| self.keys.iter().all(|key| old.get(key) == item.get(key)))
    }
}

impl Here {
    fn check(&self, value: &Value, old: Option<&Value>, path: &str, causes: &mut Vec<Cause>) {
        let old = old.filter(|old| !old.is_null());
        let compiled = self.compiled_new.as_ref().filter(|_| old.is_none()).unwrap_or(&self.compiled);
        let Err(errors) = kube_cel::validate_compiled(compiled, value, old) else { return };
        for error in errors.into_vec() {
            // What was wrong before and has not been touched may stay.
            if old == Some(value) && !self.transitions.contains(&error.rule) {
                continue;
            }
            causes.push(self.cause(&error, value, path));
        }
    }

    fn cause(&self, error: &ValidationError, value: &Value, path: &str) -> Cause {
        let inner = error.field_path.trim_start_matches('.');
        let field = match (path.is_empty(), inner.is_empty()) {
            (true, true) => "<nil>".to_owned(),
            (true, false) => inner.to_owned(),
            (false, true) => path.to_owned(),
            (false, false) => format!("{path}.{inner}"),
        };
        if error.kind != ErrorKind::ValidationFailure {
            let kind = if value.is_array() { "array" } else { "object" };
            let said = error.message.trim_start_matches("rule evaluation error: ");
            let said = said.replacen("No such key", "no such key", 1);
            let rule = self.messages.get(&error.rule).unwrap_or(&error.rule);
            return Cause::invalid_text(field, kind, &format!("{said} evaluating rule: {rule}"));
        }
        match error.reason.as_deref() {
            Some("FieldValueForbidden") => Cause::forbidden(field, &error.message),
            Some("FieldValueRequired") => Cause::required(field, &error.message),
            Some("FieldValueDuplicate") if self.is_container => {
                Cause { kind: "FieldValueDuplicate", field, message: "Duplicate value".to_owned() }
            }
            Some("FieldValueDuplicate") => Cause::duplicate(field, value),
            _ if self.is_container => {
                let message = format!("Invalid value: {}", error.message);
                Cause { kind: "FieldValueInvalid", field, message }
            }
            _ => Cause::invalid(field, value, &error.message),
        }
    }
}

/// The rules of one place, compiled without those below, which have places of their own.
fn here(schema: &Value) -> Option<Here> {
    let rules = schema.get(RULES)?.as_array().filter(|rules| !rules.is_empty())?;
    let mut alone = schema.clone();
    if let Some(alone) = alone.as_object_mut() {
        alone.iter_mut().filter(|(name, _)| *name != RULES).for_each(|(_, child)| strip(child));
        ["default", "allOf", "anyOf", "oneOf", "not"].into_iter().for_each(|name| drop(alone.remove(name)));
    }
    let texts = rules.iter().filter_map(|rule| rule.get("rule")?.as_str());
    let transitions = texts.filter(|rule| rule.contains(OLD)).map(str::to_owned).collect();
    let text = |rule: &Value, field: &str| rule.get(field).and_then(Value::as_str).map(str::to_owned);
    let messages =
        rules.iter().filter_map(|rule| Some((text(rule, "rule")?, text(rule, "message")?))).collect();
    let kind = schema.get("type").and_then(Value::as_str);
    let is_optional = |rule: &Value| rule.get("optionalOldSelf") == Some(&Value::Bool(true));
    let asks = rules.iter().any(is_optional);
    let compiled_new = asks.then(|| compile_schema(&with_optional(&alone, "optional.none()")));
    Some(Here {
        compiled: compile_schema(&with_optional(&alone, "optional.of(oldSelf)")),
        compiled_new,
        is_container: matches!(kind, Some("object" | "array")),
        transitions,
        messages,
    })
}

/// Rules that take the old value as one that may not be there, with what stands for it.
fn with_optional(schema: &Value, old: &str) -> Value {
    let mut schema = schema.clone();
    let rules = schema.get_mut(RULES).and_then(Value::as_array_mut);
    for rule in rules.into_iter().flatten().filter_map(Value::as_object_mut) {
        if rule.remove("optionalOldSelf") != Some(Value::Bool(true)) {
            continue;
        }
        let text = rule.get("rule").and_then(Value::as_str).unwrap_or_default().to_owned();
        rule.entry("message").or_insert_with(|| format!("failed rule: {text}").into());
        rule.insert("rule".to_owned(), text.replace(OLD, old).into());
    }
    schema
}

/// Defaults have been put in before, and deeper rules run on their own.
fn strip(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            [RULES, "default", "allOf", "anyOf", "oneOf", "not"]
                .into_iter()
                .for_each(|name| drop(fields.remove(name)));
            fields.values_mut().for_each(strip);
        }
        Value::Array(items) => items.iter_mut().for_each(strip),
        _ => {}
    }
}

fn without_children(schema: &Value) -> Value {
    let keep = |name: &str| name.starts_with("x-kubernetes-list");
    let fields = schema.as_object().into_iter().flatten().filter(|(name, _)| keep(name));
    Value::Object(fields.map(|(name, value)| (name.clone(), value.clone())).collect::<Map<_, _>>())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn transitions_follow_items_by_their_keys() {
        let schema = json!({"type": "object", "properties": {"list": {
            "type": "array", "x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"],
            "items": {"type": "object", "properties": {"name": {"type": "string"}, "size": {
                "type": "integer",
                "x-kubernetes-validations": [{"rule": "self >= oldSelf", "message": "may only grow"}],
            }}},
        }}});
        let rules = Rules::read(&schema).expect("there is a rule");
        let old = json!({"list": [{"name": "a", "size": 5}, {"name": "b", "size": 1}]});
        let moved = json!({"list": [{"name": "b", "size": 2}, {"name": "a", "size": 5}]});
        assert_eq!(rules.check(&moved, Some(&old)), []);
        let shrunk = json!({"list": [{"name": "b", "size": 0}]});
        let found: Vec<_> = rules.check(&shrunk, Some(&old)).iter().map(ToString::to_string).collect();
        assert_eq!(found, ["list[0].size: Invalid value: 0: may only grow"]);
        assert_eq!(rules.check(&shrunk, None), []);
    }
}
