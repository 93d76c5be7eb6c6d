//! Bodies read into values: JSON or YAML, with fields that stand twice found, because a strict client wants to know.

use super::call::{Call, Media};
use super::protobuf;
use super::status::Status;
use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Number, Value};
use std::fmt;

/// What a body may be written in.
const MEDIA: [&str; 2] = ["application/json", "application/yaml"];

/// A body, and the fields that stood more than once.
#[derive(Debug)]
pub(super) struct Decoded {
    pub value: Value,
    pub repeated: Vec<String>,
}

/// Reads the body of a request that carries an object.
pub(super) fn decode(call: &Call) -> Result<Decoded, Status> {
    match call.media() {
        Media::Json => read_json(&call.body).map_err(|why| unreadable(&why)),
        Media::Yaml => read_yaml(&call.body).map_err(|why| unreadable(&why)),
        Media::Other if protobuf::is_protobuf(&call.body) => match protobuf::read(&call.body) {
            Ok(value) => Ok(Decoded { value, repeated: Vec::new() }),
            Err(why) => {
                Err(Status::bad_request(format!("the body in protocol buffers cannot be read: {why}")))
            }
        },
        _ => Err(Status::unsupported_media_type(&MEDIA)),
    }
}

/// Reads YAML, of which JSON is a part.
pub(super) fn read_yaml(bytes: &[u8]) -> Result<Decoded, String> {
    if let Ok(decoded) = read_json(bytes) {
        return Ok(decoded);
    }
    let text = std::str::from_utf8(bytes).map_err(|error| error.to_string())?;
    let value = serde_saphyr::from_str::<Value>(text).map_err(|error| error.to_string())?;
    Ok(Decoded { value, repeated: Vec::new() })
}

/// Reads JSON.
pub(super) fn read_json(bytes: &[u8]) -> Result<Decoded, String> {
    let mut walk = Walk { path: Vec::new(), repeated: Vec::new() };
    let mut reader = serde_json::Deserializer::from_slice(bytes);
    let value = Seed(&mut walk).deserialize(&mut reader).map_err(|error| error.to_string())?;
    reader.end().map_err(|error| error.to_string())?;
    Ok(Decoded { value, repeated: walk.repeated })
}

fn unreadable(why: &str) -> Status {
    Status::bad_request(format!("couldn't get version/kind; json parse error: {why}"))
}

struct Walk {
    path: Vec<String>,
    repeated: Vec<String>,
}

impl Walk {
    fn place(&self, name: &str) -> String {
        let mut place = String::new();
        for part in self.path.iter().map(String::as_str).chain([name]) {
            if !place.is_empty() && !part.starts_with('[') {
                place.push('.');
            }
            place.push_str(part);
        }
        place
    }
}

struct Seed<'a>(&'a mut Walk);

impl<'de> DeserializeSeed<'de> for Seed<'_> {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_> {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::from(value))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(Number::from_f64(value).map_or(Value::Null, Value::Number))
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E>(self, value: String) -> Result<Value, E> {
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut sequence: A) -> Result<Value, A::Error> {
        let mut items = Vec::new();
        loop {
            self.0.path.push(format!("[{}]", items.len()));
            let item = sequence.next_element_seed(Seed(self.0))?;
            self.0.path.pop();
            match item {
                Some(item) => items.push(item),
                None => return Ok(Value::Array(items)),
            }
        }
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Value, A::Error> {
        let mut fields = Map::new();
        while let Some(name) = map.next_key::<String>()? {
            if fields.contains_key(&name) {
                self.0.repeated.push(self.0.place(&name));
            }
            self.0.path.push(name);
            let value = map.next_value_seed(Seed(self.0))?;
            if let Some(name) = self.0.path.pop() {
                fields.insert(name, value);
            }
        }
        Ok(Value::Object(fields))
    }
}

#[test]
fn repeated_fields_are_found_where_they_stand() {
    let decoded = read_json(br#"{"a": {"b": 1, "b": 2}, "l": [{"c": 1, "c": 1}], "a": {"b": 3}}"#).unwrap();
    assert_eq!(decoded.repeated, ["a.b", "l[0].c", "a"]);
    assert_eq!(decoded.value, serde_json::json!({"a": {"b": 3}, "l": [{"c": 1}]}));
    assert!(read_json(b"{} x").is_err());
}
