//! Bodies in protocol buffers, as kubectl and client-go's typed clients send them: read into the same JSON that others
//! send. Only reading: answers are JSON, which every client takes, and kinds of CRDs have no protocol buffers at all.
//! Field numbers are facts in `messages.txt`; a field that it does not name is passed over, as the format wants it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// What a body begins with.
const MAGIC: &[u8] = b"k8s\0";
/// Messages within messages; no kind has a tenth of it.
const DEPTH_MAX: usize = 100;

/// Whether a body is one.
pub(super) fn is_protobuf(body: &[u8]) -> bool {
    body.starts_with(MAGIC)
}

/// Reads the object in a body.
///
/// # Errors
/// When the body is cut short or damaged, or of a kind that is not in the table.
pub(super) fn read(body: &[u8]) -> Result<Value, String> {
    let envelope = body.strip_prefix(MAGIC).ok_or("it is not in protocol buffers")?;
    let (mut api_version, mut kind, mut raw) = (String::new(), String::new(), &[][..]);
    for field in Fields(envelope) {
        match field? {
            (1, Wire::Bytes(types)) => {
                for field in Fields(types) {
                    match field? {
                        (1, Wire::Bytes(text)) => api_version = utf8(text)?,
                        (2, Wire::Bytes(text)) => kind = utf8(text)?,
                        _ => {}
                    }
                }
            }
            (2, Wire::Bytes(bytes)) => raw = bytes,
            _ => {}
        }
    }
    let message = message_of(&api_version, &kind)
        .ok_or_else(|| format!("{api_version} {kind} is not read from protocol buffers: send JSON"))?;
    let mut object = Map::new();
    object.insert("apiVersion".to_owned(), Value::from(api_version));
    object.insert("kind".to_owned(), Value::from(kind));
    read_message(message, raw, &mut object, 0)?;
    Ok(Value::Object(object))
}

/// What a field holds.
#[derive(Clone, Debug)]
enum Type {
    Text,
    Integer,
    Boolean,
    Bytes,
    Time { micros: bool },
    Quantity,
    IntOrText,
    Json,
    Message(&'static str),
    Many(Box<Type>),
    ByKey(Box<Type>),
}

#[derive(Debug)]
struct Field {
    number: u64,
    /// None: its own fields stand in the message itself.
    name: Option<&'static str>,
    holds: Type,
    /// Go writes the zeros of fields that are no pointers; the client did not set them.
    keeps_zero: bool,
}

type Message = [Field];

static MESSAGES: LazyLock<BTreeMap<&'static str, Vec<Field>>> = LazyLock::new(|| {
    let lines = include_str!("protobuf/messages.txt").lines().filter(|line| !line.starts_with('#'));
    lines.filter_map(read_line).collect()
});

fn read_line(line: &'static str) -> Option<(&'static str, Vec<Field>)> {
    let mut parts = line.split(' ');
    let name = parts.next()?;
    let fields = parts.filter_map(|part| {
        let (number, rest) = part.split_once(':')?;
        let (name, holds) = rest.split_once(':')?;
        let keeps_zero = holds.ends_with('*');
        let holds = read_type(holds.trim_end_matches('*'))?;
        Some(Field { number: number.parse().ok()?, name: (name != "^").then_some(name), holds, keeps_zero })
    });
    Some((name, fields.collect()))
}

fn read_type(text: &'static str) -> Option<Type> {
    if let Some(item) = text.strip_prefix("[]") {
        return Some(Type::Many(Box::new(read_type(item)?)));
    }
    if let Some(value) = text.strip_prefix("{}") {
        return Some(Type::ByKey(Box::new(read_type(value)?)));
    }
    if let Some(name) = text.strip_prefix('@') {
        return Some(Type::Message(name));
    }
    Some(match text {
        "s" => Type::Text,
        "i" => Type::Integer,
        "B" => Type::Boolean,
        "b" => Type::Bytes,
        "T" => Type::Time { micros: false },
        "M" => Type::Time { micros: true },
        "Q" => Type::Quantity,
        "I" => Type::IntOrText,
        "R" => Type::Json,
        _ => return None,
    })
}

fn message_of(api_version: &str, kind: &str) -> Option<&'static Message> {
    let group = api_version.split_once('/').map_or("", |(group, _)| group);
    let package = match (group, kind) {
        (_, "DeleteOptions") => "meta",
        ("", _) => "core",
        (group, _) => group.strip_suffix(".k8s.io").unwrap_or(group),
    };
    MESSAGES.get(format!("{package}.{kind}").as_str()).map(Vec::as_slice)
}

fn read_message(
    message: &Message,
    bytes: &[u8],
    object: &mut Map<String, Value>,
    depth: usize,
) -> Result<(), String> {
    if depth > DEPTH_MAX {
        return Err("it is nested too deeply".to_owned());
    }
    for found in Fields(bytes) {
        let (number, wire) = found?;
        let Some(field) = message.iter().find(|field| field.number == number) else { continue };
        let Some(name) = field.name else {
            if let (Type::Message(inner), Wire::Bytes(bytes)) = (&field.holds, wire) {
                read_message(fields_of(inner), bytes, object, depth + 1)?;
            }
            continue;
        };
        match &field.holds {
            Type::Many(item) => {
                let value = read_value(item, wire, depth)?.unwrap_or(Value::Null);
                let items = object.entry(name).or_insert_with(|| Value::Array(Vec::new()));
                items.as_array_mut().into_iter().for_each(|items| items.push(value.clone()));
            }
            Type::ByKey(value) => {
                let (key, value) = read_entry(value, wire, depth)?;
                let entries = object.entry(name).or_insert_with(|| Value::Object(Map::new()));
                entries.as_object_mut().into_iter().for_each(|entries| {
                    entries.insert(key.clone(), value.clone());
                });
            }
            single => {
                let value =
                    read_value(single, wire, depth)?.filter(|value| field.keeps_zero || !is_zero(value));
                if let Some(value) = value {
                    object.insert(name.to_owned(), value);
                }
            }
        }
    }
    Ok(())
}

fn fields_of(message: &str) -> &'static Message {
    MESSAGES.get(message).map_or(&[], Vec::as_slice)
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Bool(is_set) => !is_set,
        Value::Number(number) => number.as_i64() == Some(0),
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(fields) => fields.is_empty(),
    }
}

/// One entry of a map: a message of a key and a value.
fn read_entry(holds: &Type, wire: Wire<'_>, depth: usize) -> Result<(String, Value), String> {
    let (mut key, mut value) = (String::new(), None);
    for field in Fields(bytes_of(wire)?) {
        match field? {
            (1, Wire::Bytes(text)) => key = utf8(text)?,
            (2, wire) => value = read_value(holds, wire, depth)?,
            _ => {}
        }
    }
    let absent = || match holds {
        Type::Text | Type::Bytes | Type::Quantity => Value::from(""),
        _ => Value::Null,
    };
    Ok((key, value.unwrap_or_else(absent)))
}

fn read_value(holds: &Type, wire: Wire<'_>, depth: usize) -> Result<Option<Value>, String> {
    Ok(match holds {
        Type::Text => Some(Value::from(utf8(bytes_of(wire)?)?)),
        Type::Integer => Some(Value::from(number_of(wire)?)),
        Type::Boolean => Some(Value::from(number_of(wire)? != 0)),
        Type::Bytes => Some(Value::from(STANDARD.encode(bytes_of(wire)?))),
        Type::Time { micros } => read_time(bytes_of(wire)?, *micros)?,
        Type::Quantity => Some(Value::from(read_inner_text(bytes_of(wire)?)?)),
        Type::IntOrText => Some(read_int_or_text(bytes_of(wire)?)?),
        Type::Json => read_json(bytes_of(wire)?)?,
        Type::Message(name) => {
            let mut object = Map::new();
            read_message(fields_of(name), bytes_of(wire)?, &mut object, depth + 1)?;
            Some(Value::Object(object))
        }
        // No field of the table holds lists of lists or maps of maps.
        Type::Many(_) | Type::ByKey(_) => None,
    })
}

/// Seconds and nanoseconds; none of them is no time at all.
fn read_time(bytes: &[u8], micros: bool) -> Result<Option<Value>, String> {
    let (mut seconds, mut nanos) = (None, 0);
    for field in Fields(bytes) {
        match field? {
            (1, wire) => seconds = Some(number_of(wire)?),
            (2, wire) => nanos = number_of(wire)?,
            _ => {}
        }
    }
    let Some(seconds) = seconds else { return Ok(None) };
    let nanos = i32::try_from(nanos).map_err(|error| error.to_string())?;
    let time = Timestamp::new(seconds, nanos).map_err(|error| error.to_string())?;
    let shape = if micros { "%Y-%m-%dT%H:%M:%S.%6fZ" } else { "%Y-%m-%dT%H:%M:%SZ" };
    Ok(Some(Value::from(time.strftime(shape).to_string())))
}

fn read_inner_text(bytes: &[u8]) -> Result<String, String> {
    let mut text = String::new();
    for field in Fields(bytes) {
        if let (1, Wire::Bytes(inner)) = field? {
            text = utf8(inner)?;
        }
    }
    Ok(text)
}

fn read_int_or_text(bytes: &[u8]) -> Result<Value, String> {
    let (mut is_text, mut number, mut text) = (false, 0, String::new());
    for field in Fields(bytes) {
        match field? {
            (1, wire) => is_text = number_of(wire)? == 1,
            (2, wire) => number = number_of(wire)?,
            (3, Wire::Bytes(inner)) => text = utf8(inner)?,
            _ => {}
        }
    }
    Ok(if is_text { Value::from(text) } else { Value::from(number) })
}

fn read_json(bytes: &[u8]) -> Result<Option<Value>, String> {
    for field in Fields(bytes) {
        if let (1, Wire::Bytes(raw)) = field? {
            return serde_json::from_slice(raw).map(Some).map_err(|error| error.to_string());
        }
    }
    Ok(None)
}

/// A value as the wire has it.
#[derive(Clone, Copy, Debug)]
enum Wire<'a> {
    Number(u64),
    Bytes(&'a [u8]),
    /// Of a fixed width: no field of the table has one.
    Fixed,
}

fn bytes_of(wire: Wire<'_>) -> Result<&[u8], String> {
    match wire {
        Wire::Bytes(bytes) => Ok(bytes),
        Wire::Number(_) | Wire::Fixed => Err("a field is not of the type that it should be".to_owned()),
    }
}

/// Negative numbers are sent as their two's complement.
fn number_of(wire: Wire<'_>) -> Result<i64, String> {
    match wire {
        Wire::Number(number) => Ok(number.cast_signed()),
        Wire::Bytes(_) | Wire::Fixed => Err("a field is not of the type that it should be".to_owned()),
    }
}

fn utf8(bytes: &[u8]) -> Result<String, String> {
    std::str::from_utf8(bytes).map(str::to_owned).map_err(|error| error.to_string())
}

/// The fields of a message, one after the other. It ends at the first that cannot be read.
struct Fields<'a>(&'a [u8]);

impl<'a> Iterator for Fields<'a> {
    type Item = Result<(u64, Wire<'a>), String>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.0.is_empty() {
            return None;
        }
        let read = self.take_field();
        if read.is_none() {
            self.0 = &[];
        }
        Some(read.ok_or_else(|| "it is cut short or damaged".to_owned()))
    }
}

impl<'a> Fields<'a> {
    fn take_field(&mut self) -> Option<(u64, Wire<'a>)> {
        let tag = self.take_number()?;
        let wire = match tag & 7 {
            0 => Wire::Number(self.take_number()?),
            1 => self.take_bytes(8).map(|_| Wire::Fixed)?,
            2 => {
                let length = usize::try_from(self.take_number()?).ok()?;
                Wire::Bytes(self.take_bytes(length)?)
            }
            5 => self.take_bytes(4).map(|_| Wire::Fixed)?,
            _ => return None,
        };
        Some((tag >> 3, wire))
    }

    fn take_number(&mut self) -> Option<u64> {
        let mut number = 0u64;
        for at in 0..10 {
            let (&byte, rest) = self.0.split_first()?;
            self.0 = rest;
            number |= u64::from(byte & 0x7f).checked_shl(7 * at)?;
            if byte < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn take_bytes(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A field with bytes in it.
    fn bytes(number: u8, inner: &[u8]) -> Vec<u8> {
        let mut out = vec![(number << 3) | 2, u8::try_from(inner.len()).unwrap()];
        out.extend_from_slice(inner);
        out
    }

    fn number(number: u8, value: u8) -> Vec<u8> {
        vec![number << 3, value]
    }

    fn body(api_version: &str, kind: &str, raw: &[u8]) -> Vec<u8> {
        let types = [bytes(1, api_version.as_bytes()), bytes(2, kind.as_bytes())].concat();
        [MAGIC.to_vec(), bytes(1, &types), bytes(2, raw)].concat()
    }

    #[test]
    fn an_object_is_read_as_the_json_that_it_means() {
        let metadata = [bytes(1, b"a"), bytes(2, b""), number(7, 0), bytes(8, b"")].concat();
        let entry = [bytes(1, b"k"), bytes(2, b"v")].concat();
        let raw = [bytes(1, &metadata), bytes(2, &entry), number(4, 0)].concat();
        let read = read(&body("v1", "ConfigMap", &raw)).unwrap();
        // Zeros that the client did not set are dropped; a pointer to one stays.
        let meant = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"},
            "data": {"k": "v"}, "immutable": false});
        assert_eq!(read, meant);
    }

    #[test]
    fn times_amounts_and_parts_have_their_own_shapes() {
        let time = [number(1, 60), number(2, 0)].concat();
        let lease = bytes(2, &bytes(4, &time));
        let read_lease = read(&body("coordination.k8s.io/v1", "Lease", &lease)).unwrap();
        assert_eq!(read_lease["spec"]["renewTime"], "1970-01-01T00:01:00.000000Z");
        let port = [number(3, 80), bytes(4, &[number(1, 1), bytes(3, b"http")].concat())].concat();
        let service = bytes(2, &bytes(1, &port));
        let read_service = read(&body("v1", "Service", &service)).unwrap();
        assert_eq!(read_service["spec"]["ports"], json!([{"port": 80, "targetPort": "http"}]));
        let volume = [bytes(1, b"x"), bytes(2, &bytes(2, b""))].concat();
        let read_pod = read(&body("v1", "Pod", &bytes(2, &bytes(1, &volume)))).unwrap();
        assert_eq!(read_pod["spec"]["volumes"], json!([{"name": "x", "emptyDir": {}}]));
    }

    #[test]
    fn a_question_who_one_is_can_be_read() {
        let user = [bytes(1, b""), bytes(2, b"")].concat();
        let raw = [bytes(1, b""), bytes(2, &bytes(1, &user))].concat();
        let read = read(&body("authentication.k8s.io/v1", "SelfSubjectReview", &raw)).unwrap();
        assert_eq!(read["kind"], "SelfSubjectReview");
    }

    #[test]
    fn what_is_damaged_or_unknown_is_refused() {
        let whole = body("v1", "ConfigMap", &bytes(1, &bytes(1, b"a")));
        for cut in MAGIC.len() + 1..whole.len() {
            // Cut anywhere, it is an error or a smaller object, never a panic.
            let _ = read(&whole[..cut]);
        }
        assert!(read(&whole[..whole.len() - 1]).is_err());
        assert!(read(&body("v1", "Nothing", b"")).unwrap_err().contains("send JSON"));
        assert!(!is_protobuf(b"{}"));
    }

    #[test]
    fn the_table_names_only_messages_that_it_has() {
        assert!(MESSAGES.len() > 150, "{}", MESSAGES.len());
        fn named(holds: &Type) -> Option<&'static str> {
            match holds {
                Type::Message(name) => Some(name),
                Type::Many(inner) | Type::ByKey(inner) => named(inner),
                _ => None,
            }
        }
        for field in MESSAGES.values().flatten() {
            assert!(named(&field.holds).is_none_or(|name| MESSAGES.contains_key(name)), "{field:?}");
        }
    }
}
