//! Values of the wrong type in the kinds that every cluster has, reported as Go's decoder reports them: those kinds are
//! structs there, and clients see what it says.

use super::{Kind, Node};
use serde_json::Value;

/// The first value that a struct could not hold.
pub(crate) fn find_mismatch(value: &Value, node: &Node) -> Option<String> {
    let mut walk = Walk { path: Vec::new() };
    walk.look(value, node, "")
}

struct Walk {
    path: Vec<String>,
}

impl Walk {
    fn look(&mut self, value: &Value, node: &Node, holder: &str) -> Option<String> {
        match (node.kind, value) {
            (_, Value::Null) => None,
            (Kind::Any, _) => None,
            (Kind::Object, Value::Object(fields)) => {
                let holder = node.go.as_deref().unwrap_or(holder);
                let order = node.properties.keys().filter_map(|name| fields.get_key_value(name));
                let rest = fields.iter().filter(|(name, _)| !node.properties.contains_key(*name));
                order.chain(rest).find_map(|(name, field)| {
                    let child = node.field(name)?;
                    // The keys of a map are no fields.
                    let is_field = node.properties.contains_key(name);
                    if is_field {
                        self.path.push(name.clone());
                    }
                    let found = self.look(field, child, holder);
                    if is_field {
                        self.path.pop();
                    }
                    found
                })
            }
            (Kind::Array, Value::Array(items)) => {
                let node = node.items.as_ref()?;
                items.iter().find_map(|item| self.look(item, node, holder))
            }
            (Kind::Text, Value::String(text)) => bad_text(node, text),
            (Kind::Boolean, Value::Bool(_)) | (Kind::IntOrString, Value::String(_) | Value::Number(_)) => {
                None
            }
            (Kind::Integer, Value::Number(_)) if fits(node, value) => None,
            (Kind::Number, Value::Number(_)) => None,
            (_, value) => Some(self.report(value, node, holder)),
        }
    }

    fn report(&self, value: &Value, node: &Node, holder: &str) -> String {
        let found = match value {
            Value::Null => "null".to_owned(),
            Value::Bool(_) => "bool".to_owned(),
            Value::Number(number) if node.kind == Kind::Integer => format!("number {number}"),
            Value::Number(_) => "number".to_owned(),
            Value::String(_) => "string".to_owned(),
            Value::Array(_) => "array".to_owned(),
            Value::Object(_) => "object".to_owned(),
        };
        let place = format!("{holder}.{}", self.path.join("."));
        format!("json: cannot unmarshal {found} into Go struct field {place} of type {}", go_type(node))
    }
}

fn fits(node: &Node, value: &Value) -> bool {
    match (value.as_i64(), node.checks.format.as_deref()) {
        (Some(number), Some("int32")) => i32::try_from(number).is_ok(),
        (Some(_), _) => true,
        (None, _) => false,
    }
}

fn bad_text(node: &Node, text: &str) -> Option<String> {
    match node.checks.format.as_deref()? {
        "byte" => bad_base64(text),
        "date-time" if !text.is_empty() && text.parse::<jiff::Timestamp>().is_err() => {
            let is_micro = node.go.as_deref() == Some("MicroTime");
            let layout =
                if is_micro { "2006-01-02T15:04:05.000000Z07:00" } else { "2006-01-02T15:04:05Z07:00" };
            Some(format!("parsing time {text:?} as {layout:?}: cannot parse {text:?} as \"2006\""))
        }
        _ => None,
    }
}

fn bad_base64(text: &str) -> Option<String> {
    use base64::Engine;
    let error = base64::engine::general_purpose::STANDARD.decode(text).err()?;
    let at = match error {
        base64::DecodeError::InvalidByte(at, _) | base64::DecodeError::InvalidLastSymbol(at, _) => at,
        // A text that ends too early is found wrong where its last group begins.
        base64::DecodeError::InvalidLength(_) | base64::DecodeError::InvalidPadding => text.len() / 4 * 4,
    };
    Some(format!("illegal base64 data at input byte {at}"))
}

fn go_type(node: &Node) -> String {
    match node.kind {
        Kind::Object => match (&node.go, &node.values) {
            (Some(name), _) => format!("v1.{name}"),
            (None, Some(values)) => format!("map[string]{}", go_type(values)),
            (None, None) => "map[string]interface {}".to_owned(),
        },
        Kind::Array => {
            let items = node.items.as_ref().map_or_else(|| "interface {}".to_owned(), |items| go_type(items));
            format!("[]{items}")
        }
        Kind::Text => "string".to_owned(),
        Kind::Integer => node.checks.format.clone().unwrap_or_else(|| "int64".to_owned()),
        Kind::Number => "float64".to_owned(),
        Kind::Boolean => "bool".to_owned(),
        Kind::Any | Kind::IntOrString => "interface {}".to_owned(),
    }
}

#[test]
fn wrong_types_are_reported_as_go_reports_them() {
    use serde_json::json;
    let node = super::Library::get().node("io.k8s.api.apps.v1.Deployment");
    for (value, expected) in [
        (
            json!({"spec": {"replicas": "x"}}),
            Some("string into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ),
        (
            json!({"spec": {"replicas": 1.5}}),
            Some("number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32"),
        ),
        (
            json!({"metadata": {"labels": {"a": 1}}}),
            Some("number into Go struct field ObjectMeta.metadata.labels of type string"),
        ),
        (json!({"spec": {"replicas": 1}}), None),
    ] {
        let expected = expected.map(|text| format!("json: cannot unmarshal {text}"));
        assert_eq!(find_mismatch(&value, &node), expected, "{value}");
    }
}
