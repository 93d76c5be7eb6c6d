//! Parameters: the values that claims can set, described by the JSON schema of a class with defaults. An unsupported keyword
//! of a schema is an error of the class, never ignored.

use crate::model::{FieldError, Quantity, ValueError, Version, VersionRange};
use regex::Regex;
use serde_json::{Map, Value};

/// Maximum nesting of a schema.
const DEPTH_MAX: usize = 16;
/// Maximum length of a pattern and of its compiled form, because every claim is matched against it.
const PATTERN_MAX: usize = 1_024;
const PATTERN_SIZE_MAX: usize = 1 << 16;

/// Keywords that do not validate anything.
const ANNOTATIONS: [&str; 3] = ["description", "title", "examples"];

/// Checks a class's schema, if it has one, and the class's own parameters against it, so that errors of the class are not
/// reported on its claims.
///
/// # Errors
/// The first unknown or invalid keyword, or the first default or parameter that the schema does not allow.
pub fn check_schema(schema: Option<&Value>, parameters: Option<&Value>) -> Result<(), FieldError> {
    let Some(schema) = schema.filter(|schema| !schema.is_null()) else { return Ok(()) };
    check_schema_at(schema, "parameterSchema", 0)?;
    let Some(given) = parameters.and_then(Value::as_object) else { return Ok(()) };
    // Claims add to them: only those that are set are checked.
    let mut filled = Value::Object(given.clone());
    fill(schema, &mut filled);
    given.keys().try_for_each(|name| check_one(schema, name, &filled[name], "parameters"))
}

/// The parameters of a claim: the defaults of the schema, overridden by the class, overridden by the claim.
///
/// # Errors
/// The first parameter that the schema does not allow, and what it allows.
pub fn parameters(class: &Value, claim: &Value) -> Result<Value, FieldError> {
    let of = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let mut parameters = of(class.get("parameters"));
    parameters.extend(of(claim.pointer("/spec/parameters")));
    let mut parameters = Value::Object(parameters);
    if let Some(schema) = class.get("parameterSchema").filter(|schema| !schema.is_null()) {
        fill(schema, &mut parameters);
        check(schema, &parameters, "spec.parameters")?;
    }
    Ok(parameters)
}

fn wrong(at: &str, value: &Value, problem: impl Into<String>, fix: impl Into<String>) -> FieldError {
    let shown = match value {
        Value::String(text) => text.chars().take(64).collect(),
        Value::Null | Value::Object(_) | Value::Array(_) => String::new(),
        other => other.to_string(),
    };
    ValueError::new(&shown, problem.into(), fix.into()).in_field(at)
}

fn check_schema_at(schema: &Value, at: &str, depth: usize) -> Result<(), FieldError> {
    let Some(keywords) = schema.as_object() else {
        return Err(wrong(at, schema, "is not a map", "write `type: object`"));
    };
    if depth > DEPTH_MAX {
        return Err(wrong(at, schema, "is nested too deep", "keep it under 16 levels"));
    }
    for (keyword, value) in keywords {
        let place = format!("{at}.{keyword}");
        let number = || value.is_number() || Quantity::from_json(value).is_ok();
        let fits = match keyword.as_str() {
            "type" => value.as_str().is_some_and(|t| TYPES.contains(&t)),
            "enum" | "required" => value.is_array(),
            "const" => true,
            "additionalProperties" => value.is_boolean(),
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => number(),
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                value.is_u64()
            }
            "uniqueItems" => value.is_boolean(),
            "format" => value.as_str().is_some_and(|f| FORMATS.contains(&f)),
            "versions" => VersionRange::from_json(value).is_ok(),
            "pattern" => value.as_str().is_some_and(|p| compile(p).is_some()),
            "items" => check_schema_at(value, &place, depth + 1).map(|()| true)?,
            "properties" => check_properties(value, &place, depth).map(|()| true)?,
            "default" => {
                let mut default = value.clone();
                fill(schema, &mut default);
                check(schema, &default, &place).map(|()| true)?
            }
            other if ANNOTATIONS.contains(&other) => true,
            _ => {
                return Err(wrong(
                    &place,
                    value,
                    "is not a supported keyword",
                    format!("use {}", KNOWN.join(", ")),
                ));
            }
        };
        if !fits {
            return Err(wrong(&place, value, "is not valid here", "see docs/provisioning.md"));
        }
    }
    Ok(())
}

const TYPES: [&str; 6] = ["object", "array", "string", "integer", "number", "boolean"];
const FORMATS: [&str; 2] = ["quantity", "version"];
const KNOWN: [&str; 20] = [
    "type",
    "enum",
    "const",
    "properties",
    "required",
    "additionalProperties",
    "minProperties",
    "maxProperties",
    "items",
    "minItems",
    "maxItems",
    "uniqueItems",
    "minimum",
    "maximum",
    "exclusiveMinimum",
    "exclusiveMaximum",
    "multipleOf",
    "minLength",
    "maxLength",
    "pattern, format, versions, default, description",
];

fn check_properties(value: &Value, at: &str, depth: usize) -> Result<(), FieldError> {
    let Some(properties) = value.as_object() else {
        return Err(wrong(at, value, "is not a map", "name each property"));
    };
    properties
        .iter()
        .try_for_each(|(name, schema)| check_schema_at(schema, &format!("{at}.{name}"), depth + 1))
}

fn compile(pattern: &str) -> Option<Regex> {
    let short = pattern.len() <= PATTERN_MAX;
    short.then(|| regex::RegexBuilder::new(pattern).size_limit(PATTERN_SIZE_MAX).build().ok()).flatten()
}

/// Fills in defaults.
fn fill(schema: &Value, value: &mut Value) {
    let Some(properties) = schema.get("properties").and_then(Value::as_object) else { return };
    let Some(fields) = value.as_object_mut() else { return };
    for (name, schema) in properties {
        if let (false, Some(default)) = (fields.contains_key(name), schema.get("default")) {
            fields.insert(name.clone(), default.clone());
        }
        if let Some(inner) = fields.get_mut(name) {
            fill(schema, inner);
        }
    }
}

fn check(schema: &Value, value: &Value, at: &str) -> Result<(), FieldError> {
    let keyword = |name: &str| schema.get(name).filter(|v| !v.is_null());
    if let Some(kind) = keyword("type").and_then(Value::as_str)
        && !is_of_type(kind, value)
    {
        return Err(wrong(
            at,
            value,
            format!("is not of type {kind}"),
            format!("write a value of type {kind}"),
        ));
    }
    if let Some(allowed) = keyword("enum").and_then(Value::as_array)
        && !allowed.contains(value)
    {
        let list = allowed.iter().map(Value::to_string).collect::<Vec<_>>().join(", ");
        return Err(wrong(at, value, "is not offered", format!("use one of {list}")));
    }
    if let Some(only) = keyword("const").filter(|only| *only != value) {
        return Err(wrong(at, value, "is not offered", format!("use {only}")));
    }
    check_amount(schema, value, at)?;
    match value {
        Value::String(text) => check_text(schema, value, text, at),
        Value::Array(items) => check_items(schema, value, items, at),
        Value::Object(fields) => check_fields(schema, value, fields, at),
        Value::Null | Value::Bool(_) | Value::Number(_) => Ok(()),
    }
}

fn is_of_type(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "integer" => value.is_i64() || value.is_u64(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        _ => false,
    }
}

/// Whether a quantity is within a bound.
type Holds = fn(&Quantity, &Quantity) -> bool;

/// Checks the bounds of numbers and quantities.
fn check_amount(schema: &Value, value: &Value, at: &str) -> Result<(), FieldError> {
    let is_quantity = schema.get("format").and_then(Value::as_str) == Some("quantity");
    if !value.is_number() && !is_quantity {
        return Ok(());
    }
    let amount = Quantity::from_json(value).map_err(|error| error.in_field(at))?;
    let bound = |name: &str| schema.get(name).and_then(|bound| Quantity::from_json(bound).ok());
    let bounds: [(&str, Holds, &str); 4] = [
        ("minimum", |a, b| a >= b, "at least"),
        ("maximum", |a, b| a <= b, "at most"),
        ("exclusiveMinimum", |a, b| a > b, "more than"),
        ("exclusiveMaximum", |a, b| a < b, "less than"),
    ];
    for (name, holds, relation) in bounds {
        if let Some(bound) = bound(name).filter(|bound| !holds(&amount, bound)) {
            return Err(wrong(at, value, "is out of range", format!("use {relation} {bound}")));
        }
    }
    match bound("multipleOf").filter(|step| !step.is_zero() && amount.round_up_to(*step) != amount) {
        Some(step) => {
            Err(wrong(at, value, "is not a multiple of the step", format!("use a multiple of {step}")))
        }
        None => Ok(()),
    }
}

fn check_text(schema: &Value, value: &Value, text: &str, at: &str) -> Result<(), FieldError> {
    check_count(schema, value, text.chars().count(), ("minLength", "maxLength", "characters"), at)?;
    if let Some(pattern) = schema.get("pattern").and_then(Value::as_str)
        && !compile(pattern).is_some_and(|regex| regex.is_match(text))
    {
        return Err(wrong(at, value, "does not match the pattern", format!("match {pattern}")));
    }
    let is_version = schema.get("format").and_then(Value::as_str) == Some("version");
    let Some(range) = schema.get("versions").and_then(|range| VersionRange::from_json(range).ok()) else {
        return match is_version {
            true => Version::parse(text).map(drop).map_err(|error| error.in_field(at)),
            false => Ok(()),
        };
    };
    let version = Version::parse(text).map_err(|error| error.in_field(at))?;
    match range.matches(&version) {
        true => Ok(()),
        false => {
            let offered = schema.get("versions").cloned().unwrap_or_default();
            Err(wrong(at, value, "is not offered", format!("use a version in {offered}")))
        }
    }
}

fn check_items(schema: &Value, value: &Value, items: &[Value], at: &str) -> Result<(), FieldError> {
    check_count(schema, value, items.len(), ("minItems", "maxItems", "items"), at)?;
    let unique = schema.get("uniqueItems").and_then(Value::as_bool) == Some(true);
    if unique && items.iter().enumerate().any(|(n, item)| items[..n].contains(item)) {
        return Err(wrong(at, value, "has an item twice", "name each once"));
    }
    let Some(each) = schema.get("items") else { return Ok(()) };
    items.iter().enumerate().try_for_each(|(n, item)| check(each, item, &format!("{at}[{n}]")))
}

fn check_fields(
    schema: &Value,
    value: &Value,
    fields: &Map<String, Value>,
    at: &str,
) -> Result<(), FieldError> {
    check_count(schema, value, fields.len(), ("minProperties", "maxProperties", "parameters"), at)?;
    let required =
        schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str);
    if let Some(missing) = required.into_iter().find(|name| !fields.contains_key(*name)) {
        return Err(wrong(&format!("{at}.{missing}"), &Value::Null, "is missing", "the class requires it"));
    }
    fields.iter().try_for_each(|(name, inner)| check_one(schema, name, inner, at))
}

/// Checks one field of a map.
fn check_one(schema: &Value, name: &str, value: &Value, at: &str) -> Result<(), FieldError> {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    // Closed by default: a parameter that no template reads is a typing error.
    let open = schema.get("additionalProperties").and_then(Value::as_bool).unwrap_or(properties.is_empty());
    let at = format!("{at}.{name}");
    match properties.get(name) {
        Some(schema) => check(schema, value, &at),
        None if open => Ok(()),
        None => {
            let known = properties.keys().cloned().collect::<Vec<_>>().join(", ");
            Err(wrong(&at, value, "is not known to the class", format!("use one of {known}")))
        }
    }
}

fn check_count(
    schema: &Value,
    value: &Value,
    count: usize,
    (least, most, what): (&str, &str, &str),
    at: &str,
) -> Result<(), FieldError> {
    let bound = |name: &str| schema.get(name).and_then(Value::as_u64).and_then(|n| usize::try_from(n).ok());
    match (bound(least), bound(most)) {
        (Some(least), _) if count < least => {
            Err(wrong(at, value, "is too short", format!("give at least {least} {what}")))
        }
        (_, Some(most)) if count > most => {
            Err(wrong(at, value, "is too long", format!("give at most {most} {what}")))
        }
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object", "required": ["owner"],
            "properties": {
                "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
                "replicas": {"type": "integer", "minimum": 1, "maximum": 5, "default": 1},
                "disk": {"type": "string", "format": "quantity", "minimum": "1Gi", "maximum": "1Ti", "multipleOf": "1Gi"},
                "release": {"type": "string", "versions": ">=14 <17"},
                "owner": {"type": "string", "pattern": "^[a-z]+$", "maxLength": 8},
                "tags": {"type": "array", "maxItems": 2, "uniqueItems": true, "items": {"type": "string"}},
                "net": {"type": "object", "properties": {"port": {"type": "integer", "default": 5432}}},
            },
        })
    }

    fn given(parameters: Value) -> Result<Value, String> {
        let class = json!({"parameters": {"owner": "ops"}, "parameterSchema": schema()});
        super::parameters(&class, &json!({"spec": {"parameters": parameters}}))
            .map_err(|error| error.to_string())
    }

    #[test]
    fn the_claim_overrides_the_class_and_the_class_the_defaults() {
        let made = given(json!({"replicas": 3, "net": {}})).expect("it is allowed");
        let expected = json!({"size": "small", "replicas": 3, "owner": "ops", "net": {"port": 5432}});
        assert_eq!(made, expected);
    }

    #[test]
    fn a_refused_parameter_is_reported_with_what_is_allowed() {
        for (parameters, message) in [
            (
                json!({"size": "huge"}),
                "spec.parameters.size: `huge` is not offered: use one of \"small\", \"large\"",
            ),
            (json!({"replicas": 9}), "spec.parameters.replicas: `9` is out of range: use at most 5"),
            (json!({"replicas": 0}), "use at least 1"),
            (json!({"replicas": "3"}), "is not of type integer"),
            (json!({"replicas": 1.5}), "is not of type integer"),
            (json!({"disk": "2Ti"}), "use at most 1Ti"),
            (json!({"disk": "1500Mi"}), "use a multiple of 1Gi"),
            (json!({"disk": "much"}), "spec.parameters.disk"),
            (json!({"release": "17.1"}), "use a version in \">=14 <17\""),
            (json!({"release": "x"}), "spec.parameters.release"),
            (json!({"owner": "Ops"}), "match ^[a-z]+$"),
            (json!({"owner": "operations"}), "give at most 8 characters"),
            (json!({"tags": ["a", "a"]}), "has an item twice"),
            (json!({"tags": ["a", "b", "c"]}), "give at most 2 items"),
            (json!({"tags": [1]}), "spec.parameters.tags[0]: `1` is not of type string"),
            (
                json!({"net": {"prot": 1}}),
                "spec.parameters.net.prot: `1` is not known to the class: use one of port",
            ),
            (json!({"other": 1}), "is not known to the class"),
        ] {
            let error = given(parameters.clone()).expect_err(&parameters.to_string());
            assert!(error.contains(message), "{parameters}: {error}");
        }
    }

    #[test]
    fn a_schema_with_an_unsupported_keyword_is_refused() {
        for (schema, message) in [
            (json!({"properties": {"a": {"$ref": "x"}}}), "parameterSchema.properties.a.$ref"),
            (json!({"type": "text"}), "parameterSchema.type"),
            (json!({"properties": {"a": {"pattern": "("}}}), "parameterSchema.properties.a.pattern"),
            (json!({"properties": {"a": {"versions": "newest!"}}}), "parameterSchema.properties.a.versions"),
            (json!("object"), "parameterSchema: "),
            (
                json!({"properties": {"a": {"type": "integer", "maximum": 3, "default": 9}}}),
                "parameterSchema.properties.a.default: `9` is out of range: use at most 3",
            ),
            (
                json!({"properties": {"a": {"type": "object", "default": {}, "required": ["b"]}}}),
                "parameterSchema.properties.a.default.b: `` is missing",
            ),
        ] {
            let error = check_schema(Some(&schema), None).expect_err(&schema.to_string()).to_string();
            assert!(error.contains(message), "{schema}: {error}");
        }
        assert_eq!(check_schema(Some(&super::tests::schema()), None), Ok(()));
        assert_eq!(check_schema(None, Some(&json!({"any": "thing"}))), Ok(()));
    }

    #[test]
    fn a_class_must_satisfy_its_own_schema() {
        let check = |own: Value| check_schema(Some(&schema()), Some(&own)).map_err(|error| error.to_string());
        assert_eq!(check(json!({"size": "large", "net": {}})), Ok(()), "a claim gives what is required");
        for (own, message) in [
            (json!({"size": "huge"}), "parameters.size: `huge` is not offered"),
            (json!({"replicas": 9}), "parameters.replicas: `9` is out of range"),
            (json!({"other": 1}), "parameters.other: `1` is not known to the class"),
        ] {
            let error = check(own.clone()).expect_err(&own.to_string());
            assert!(error.starts_with(message), "{own}: {error}");
        }
    }
}
