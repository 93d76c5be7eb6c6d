//! Converts JSON to CEL and back. Integers stay integers; a CEL value without a JSON form is an error.

use kube_cel::cel::Value as Cel;
use kube_cel::cel::objects::{Key, Map};
use serde_json::{Number, Value};
use std::collections::HashMap; // tidy-allow: CEL's own map; what leaves here is sorted
use std::sync::Arc;

/// A JSON value as a CEL value.
pub fn to_cel(json: &Value) -> Cel {
    match json {
        Value::Null => Cel::Null,
        Value::Bool(flag) => Cel::Bool(*flag),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Cel::Int(whole),
            (None, Some(large)) => Cel::UInt(large),
            (None, None) => Cel::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        Value::String(text) => Cel::String(Arc::new(text.clone())),
        Value::Array(items) => Cel::List(Arc::new(items.iter().map(to_cel).collect())),
        Value::Object(fields) => {
            let pair = |(key, value): (&String, &Value)| (Key::String(Arc::new(key.clone())), to_cel(value));
            let map = fields.iter().map(pair).collect::<HashMap<_, _>>(); // tidy-allow: CEL's own map
            Cel::Map(Map { map: Arc::new(map) })
        }
    }
}

/// The result of an expression as JSON, or why it has no JSON form.
pub(super) fn to_json(cel: &Cel) -> Result<Value, &'static str> {
    Ok(match cel {
        Cel::Null => Value::Null,
        Cel::Bool(flag) => Value::Bool(*flag),
        Cel::Int(whole) => Value::from(*whole),
        Cel::UInt(whole) => Value::from(*whole),
        Cel::Float(number) => {
            Number::from_f64(*number).map(Value::Number).ok_or("returns NaN or infinity")?
        }
        Cel::String(text) => Value::from(text.as_str()),
        Cel::List(items) => items.iter().map(to_json).collect::<Result<Vec<_>, _>>()?.into(),
        Cel::Map(map) => {
            let field = |(key, value): (&Key, &Cel)| match key {
                Key::String(key) => Ok((key.as_str().to_owned(), to_json(value)?)),
                Key::Int(_) | Key::Uint(_) | Key::Bool(_) => {
                    Err("returns a map with keys that are not strings")
                }
            };
            Value::Object(map.map.iter().map(field).collect::<Result<_, _>>()?)
        }
        // A quantity, a version, a time: functions convert each into a string or a number.
        Cel::Bytes(_) | Cel::Duration(_) | Cel::Timestamp(_) | Cel::Opaque(_) | Cel::Function(..) => {
            return Err("returns a value that has no JSON form");
        }
    })
}

/// A value as text, for strings with several expressions.
pub(super) fn to_text(cel: &Cel) -> Result<String, &'static str> {
    match to_json(cel)? {
        Value::String(text) => Ok(text),
        number @ (Value::Number(_) | Value::Bool(_)) => Ok(number.to_string()),
        Value::Null => Err("returns null inside a longer string"),
        Value::Array(_) | Value::Object(_) => Err("returns a list or a map inside a longer string"),
    }
}
