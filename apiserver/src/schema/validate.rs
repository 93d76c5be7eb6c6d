//! A value checked against its schema, with the messages and the order of Kubernetes' own validator. Rules in CEL
//! and the keys of lists are checked elsewhere.

use super::formats;
use super::{Kind, List, Node};
use crate::status::Cause;
use serde_json::Value;

/// Everything that is wrong with a value. What has not changed since `old` was accepted before and stays so.
pub(crate) fn validate(value: &Value, old: Option<&Value>, node: &Node) -> Vec<Cause> {
    let mut outcome = Outcome::default();
    check(value, old, node, "", &mut outcome);
    outcome.causes
}

/// What was found, and how much was right: of failed alternatives the nearest one is reported.
#[derive(Default)]
struct Outcome {
    causes: Vec<Cause>,
    matches: usize,
}

impl Outcome {
    fn absorb(&mut self, other: Outcome) {
        self.causes.extend(other.causes);
        self.matches += other.matches;
    }

    fn refuse(&mut self, path: &str, value: &Value, why: &str) {
        self.causes.push(Cause::invalid(shown(path), value, &format!("{} in body {why}", plain_path(path))));
    }
}

fn check(value: &Value, old: Option<&Value>, node: &Node, path: &str, outcome: &mut Outcome) {
    outcome.matches += 1;
    if old == Some(value) {
        return;
    }
    check_type(value, node, path, outcome);
    if value.is_null() {
        check_choices(value, node, path, outcome);
        return;
    }
    check_junctions(value, node, path, outcome);
    match value {
        Value::String(text) => check_text(text, value, node, path, outcome),
        Value::Number(number) => check_number(number, value, node, path, outcome),
        Value::Array(items) => check_items(items, old, node, path, outcome),
        _ => {}
    }
    check_choices(value, node, path, outcome);
    if let Value::Object(fields) = value {
        if node.embedded {
            for name in ["apiVersion", "kind"].into_iter().filter(|name| !fields.contains_key(*name)) {
                outcome.causes.push(Cause::required(shown(&format!("{path}.{name}")), ""));
            }
        }
        check_fields(fields, old, node, path, outcome);
    }
}

fn check_type(value: &Value, node: &Node, path: &str, outcome: &mut Outcome) {
    let (expected, matches) = match (node.kind, value) {
        (Kind::Any, _) => return,
        (_, Value::Null) if node.nullable => return,
        (Kind::Object, value) => ("object", value.is_object()),
        (Kind::Array, value) => ("array", value.is_array()),
        (Kind::Text, value) => ("string", value.is_string()),
        (Kind::Boolean, value) => ("boolean", value.is_boolean()),
        (Kind::Number, value) => ("number", value.is_number()),
        (Kind::Integer, value) => ("integer", is_integer(value)),
        (Kind::IntOrString, value) => ("integer,string", value.is_string() || is_integer(value)),
    };
    if matches {
        outcome.matches += 1;
        return;
    }
    let found = type_name(value);
    let (expected, found) = match (&node.checks.format, value) {
        // A fraction is measured against the format.
        (Some(format), Value::Number(_)) if node.kind == Kind::Integer => (format.as_str(), "float64"),
        _ => (expected, found),
    };
    let why = format!("{} in body must be of type {expected}: {found:?}", plain_path(path));
    outcome.causes.push(Cause::type_invalid(shown(path), &Value::String(found.to_owned()), &why));
    if found == "float64" {
        let place = plain_path(path);
        let why = format!("Checked value must be of type integer with format {expected} in {place}");
        outcome.causes.push(Cause::invalid_text("<nil>", "", &why));
    }
}

fn check_choices(value: &Value, node: &Node, path: &str, outcome: &mut Outcome) {
    let Some(choices) = &node.checks.choices else { return };
    if choices.iter().any(|choice| same(choice, value)) {
        return;
    }
    let supported: Vec<String> = choices
        .iter()
        .map(|choice| choice.as_str().map_or_else(|| choice.to_string(), str::to_owned))
        .collect();
    let supported: Vec<&str> = supported.iter().map(String::as_str).collect();
    outcome.causes.push(Cause::unsupported(shown(path), value, &supported));
}

fn check_junctions(value: &Value, node: &Node, path: &str, outcome: &mut Outcome) {
    let checks = &node.checks;
    let tried = |part: &Node| {
        let mut tried = Outcome::default();
        check(value, None, part, path, &mut tried);
        tried
    };
    let refuse = |outcome: &mut Outcome, why: String| {
        outcome.causes.push(Cause::invalid("<nil>", &Value::String(String::new()), &why));
    };
    if !checks.any_of.is_empty() {
        let (valid, best) = alternatives(checks.any_of.iter().map(tried));
        if valid == 0 {
            refuse(outcome, format!("{path:?} must validate at least one schema (anyOf)"));
            outcome.absorb(best);
        }
    }
    if !checks.one_of.is_empty() {
        let (valid, best) = alternatives(checks.one_of.iter().map(tried));
        let found = match valid {
            1 => None,
            0 => Some("Found none valid".to_owned()),
            many => Some(format!("Found {many} valid alternatives")),
        };
        if let Some(found) = found {
            refuse(outcome, format!("{path:?} must validate one and only one schema (oneOf). {found}"));
            if valid == 0 {
                outcome.absorb(best);
            }
        }
    }
    if !checks.all_of.is_empty() {
        let results: Vec<Outcome> = checks.all_of.iter().map(tried).collect();
        let valid = results.iter().filter(|result| result.causes.is_empty()).count();
        results.into_iter().for_each(|result| outcome.absorb(result));
        if valid != checks.all_of.len() {
            let none = if valid == 0 { ". None validated" } else { "" };
            refuse(outcome, format!("{path:?} must validate all the schemas (allOf){none}"));
        }
    }
    if let Some(not) = &checks.not
        && tried(not).causes.is_empty()
    {
        refuse(outcome, format!("{path:?} must not validate the schema (not)"));
    }
}

/// How many hold, and the failure that had most right.
fn alternatives(tried: impl Iterator<Item = Outcome>) -> (usize, Outcome) {
    let (mut valid, mut best) = (0, None::<Outcome>);
    for result in tried {
        if result.causes.is_empty() {
            valid += 1;
        } else if best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    (valid, best.unwrap_or_default())
}

fn check_text(text: &str, value: &Value, node: &Node, path: &str, outcome: &mut Outcome) {
    let checks = &node.checks;
    let length = text.chars().count() as u64;
    if let Some(max) = checks.max_length.filter(|max| length > *max) {
        outcome.causes.push(Cause::too_long(shown(path), usize::try_from(max).unwrap_or(usize::MAX)));
    } else if let Some(min) = checks.min_length.filter(|min| length < *min) {
        outcome.refuse(path, value, &format!("should be at least {min} chars long"));
    } else if let Some(pattern) = &checks.pattern
        && pattern.regex.as_ref().is_some_and(|regex| !regex.is_match(text))
    {
        outcome.refuse(path, value, &format!("should match '{}'", pattern.text));
    }
    if let Some(format) = &checks.format
        && !formats::holds(format, text)
    {
        let why = format!("{} in body must be of type {format}: {text:?}", plain_path(path));
        outcome.causes.push(Cause::type_invalid(shown(path), value, &why));
    }
}

fn check_number(number: &serde_json::Number, value: &Value, node: &Node, path: &str, outcome: &mut Outcome) {
    let checks = &node.checks;
    let found = number.as_f64().unwrap_or(f64::NAN);
    if let Some(factor) = checks.multiple_of.filter(|factor| *factor > 0.0) {
        if found <= 0.0 {
            let place = plain_path(path);
            let why = format!("factor MultipleOf declared for {place} must be positive: {}", plain(found));
            outcome.causes.push(Cause::invalid(shown(path), value, &why));
        } else if (found / factor).fract() != 0.0 {
            outcome.refuse(path, value, &format!("should be a multiple of {}", plain(factor)));
        }
    }
    if let Some(max) = checks.maximum {
        match checks.exclusive_maximum {
            true if found >= max => {
                outcome.refuse(path, value, &format!("should be less than {}", plain(max)))
            }
            false if found > max => {
                outcome.refuse(path, value, &format!("should be less than or equal to {}", plain(max)));
            }
            _ => {}
        }
    }
    if let Some(min) = checks.minimum {
        match checks.exclusive_minimum {
            true if found <= min => {
                outcome.refuse(path, value, &format!("should be greater than {}", plain(min)));
            }
            false if found < min => {
                outcome.refuse(path, value, &format!("should be greater than or equal to {}", plain(min)));
            }
            _ => {}
        }
    }
}

fn check_items(items: &[Value], old: Option<&Value>, node: &Node, path: &str, outcome: &mut Outcome) {
    let checks = &node.checks;
    if let Some(child) = &node.items {
        for (at, item) in items.iter().enumerate() {
            let old = old.and_then(|old| find_old(old, item, &node.list));
            check(item, old, child, &format!("{path}[{at}]"), outcome);
        }
    }
    let count = items.len() as u64;
    if let Some(min) = checks.min_items.filter(|min| count < *min) {
        outcome.refuse(path, &Value::from(count), &format!("should have at least {min} items"));
    }
    if let Some(max) = checks.max_items.filter(|max| count > *max) {
        outcome.causes.push(too_many(path, count, max));
    }
    let repeated = || items.iter().enumerate().any(|(at, item)| items[..at].contains(item));
    if checks.unique_items && repeated() {
        outcome.refuse(path, &Value::String(String::new()), "shouldn't contain duplicates");
    }
}

/// The old item with the same keys; items that have none cannot be told apart.
fn find_old<'a>(old: &'a Value, item: &Value, list: &List) -> Option<&'a Value> {
    let List::Map(keys) = list else { return None };
    old.as_array()?.iter().find(|old| keys.iter().all(|key| old.get(key) == item.get(key)))
}

fn check_fields(
    fields: &serde_json::Map<String, Value>,
    old: Option<&Value>,
    node: &Node,
    path: &str,
    outcome: &mut Outcome,
) {
    let checks = &node.checks;
    let count = fields.len() as u64;
    if let Some(min) = checks.min_properties.filter(|min| count < *min) {
        outcome.refuse(path, &Value::from(count), &format!("should have at least {min} properties"));
    }
    if let Some(max) = checks.max_properties.filter(|max| count > *max) {
        outcome.causes.push(too_many(path, count, max));
    }
    for (name, field) in fields {
        let Some(child) = node.field(name) else { continue };
        let inner = match path.is_empty() && node.properties.contains_key(name) {
            true => name.clone(),
            false => format!("{path}.{name}"),
        };
        check(field, old.and_then(|old| old.get(name)), child, &inner, outcome);
    }
    for name in checks.required.iter().filter(|name| !fields.contains_key(*name)) {
        outcome.causes.push(Cause::required(shown(&format!("{path}.{name}")), ""));
    }
}

fn too_many(path: &str, count: u64, max: u64) -> Cause {
    let items = if max == 1 { "item" } else { "items" };
    let message = format!("Too many: {count}: must have at most {max} {items}");
    Cause { kind: "FieldValueTooMany", field: shown(path), message }
}

/// A path as messages show it; the root has none.
fn shown(path: &str) -> String {
    match path.trim_start_matches('.') {
        "" => "<nil>".to_owned(),
        path => path.to_owned(),
    }
}

/// A path within a message; the root is empty there.
fn plain_path(path: &str) -> &str {
    path.trim_start_matches('.')
}

fn is_integer(value: &Value) -> bool {
    value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
}

fn type_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) if is_integer(value) => "integer",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

fn same(one: &Value, other: &Value) -> bool {
    one == other || (one.is_number() && other.is_number() && one.as_f64() == other.as_f64())
}

/// A bound as Go prints it.
fn plain(number: f64) -> String {
    match number.fract() == 0.0 && number.abs() < 1e15 {
        true => format!("{number:.0}"),
        false => number.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::read;
    use super::*;
    use serde_json::json;

    #[test]
    fn messages_are_those_of_kubernetes() {
        let schema = json!({"type": "object", "required": ["spec"], "properties": {"spec": {
        "type": "object", "required": ["name"], "properties": {
            "name": {"type": "string", "maxLength": 3, "pattern": "^[a-z]+$"},
            "count": {"type": "integer", "minimum": 1, "maximum": 3},
            "mode": {"type": "string", "enum": ["a", "b"]},
            "list": {"type": "array", "maxItems": 1, "items": {"type": "string"}},
        }}}});
        let node = read(&schema);
        let found = |value: Value| {
            validate(&value, None, &node).iter().map(ToString::to_string).collect::<Vec<_>>().join("\n")
        };
        for (value, expected) in [
            (json!({}), "spec: Required value"),
            (json!({"spec": {}}), "spec.name: Required value"),
            (
                json!({"spec": {"name": 1}}),
                "spec.name: Invalid value: \"integer\": spec.name in body must be of type string: \"integer\"",
            ),
            (json!({"spec": {"name": "abcd"}}), "spec.name: Too long: may not be more than 3 bytes"),
            (
                json!({"spec": {"name": "A"}}),
                "spec.name: Invalid value: \"A\": spec.name in body should match '^[a-z]+$'",
            ),
            (
                json!({"spec": {"name": "a", "count": 0}}),
                "spec.count: Invalid value: 0: spec.count in body should be greater than or equal to 1",
            ),
            (
                json!({"spec": {"name": "a", "mode": "c"}}),
                "spec.mode: Unsupported value: \"c\": supported values: \"a\", \"b\"",
            ),
            (
                json!({"spec": {"name": "a", "list": ["x", 1]}}),
                "spec.list[1]: Invalid value: \"integer\": spec.list[1] in body must be of type string: \"integer\"\n\
                 spec.list: Too many: 2: must have at most 1 item",
            ),
            (json!({"spec": {"name": "a", "count": 2, "mode": "a", "list": ["x"]}}), ""),
        ] {
            assert_eq!(found(value.clone()), expected, "{value}");
        }
    }
}
