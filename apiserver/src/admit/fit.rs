//! Fits objects to their schema: unknown fields are dropped and reported, absent ones get their default.

use crate::call::{Call, Strictness, WriteOptions};
use crate::decode::{Decoded, decode};
use crate::kinds;
use crate::registry::{Registry, Served};
use crate::schema::{Kind, Library, Node, default, find_mismatch, unknown_fields};
use crate::status::Status;
use serde_json::Value;

/// The object in a request's body, and the warnings for the client.
pub(crate) fn read_object(
    call: &Call,
    served: &Served,
    options: &WriteOptions,
) -> Result<(Value, Vec<String>), Status> {
    let kind = &served.resource.kind;
    let unrecognized = |status: Status| {
        let message = format!(
            "the object provided is unrecognized (must be of type {kind}): {} ({})",
            status.message,
            summary(call)
        );
        if status.code == 400 { Status::bad_request(message) } else { status }
    };
    let Decoded { mut value, repeated } = decode(call).map_err(unrecognized)?;
    if !value.is_object() {
        let found = if value.is_array() { "array" } else { "value" };
        let why = format!(
            "couldn't get version/kind; json parse error: json: cannot unmarshal {found} into an object"
        );
        return Err(unrecognized(Status::bad_request(why)));
    }
    if served.resource.is_custom() {
        name_itself(&value).map_err(unrecognized)?;
    }
    name_kind(&mut value, served)?;
    let mut strict: Vec<String> = repeated.iter().map(|field| format!("duplicate field {field:?}")).collect();
    let unknown = unknown(&mut value, served).map_err(|why| handled(&value, served, &why))?;
    strict.extend(unknown.iter().map(|field| format!("unknown field {field:?}")));
    let warnings = match options.strictness {
        Strictness::Ignore => Vec::new(),
        Strictness::Warn => strict,
        Strictness::Strict if strict.is_empty() => strict,
        Strictness::Strict => {
            return Err(handled(&value, served, &format!("strict decoding error: {}", strict.join(", "))));
        }
    };
    fit(&mut value, served);
    Ok((value, warnings))
}

/// Defaults, and the form in which objects of the kind are kept.
pub(crate) fn fit(value: &mut Value, served: &Served) {
    normalize(value, served);
    if served.resource.is_custom() {
        drop_nulls(value, &served.version().schema);
    }
    default(value, &served.version().schema);
    if let Some(common) = served.resource.common() {
        kinds::default(common, value);
    }
}

/// Drops what the schema does not know and says what that was.
///
/// # Errors
/// A value that the kind cannot hold at all.
pub(crate) fn unknown(value: &mut Value, served: &Served) -> Result<Vec<String>, String> {
    let schema = &served.version().schema;
    let mut found = match served.resource.is_custom() {
        true => {
            let mismatch = value.get("metadata").and_then(metadata_mismatch);
            if let Some(why) = mismatch {
                return Err(why);
            }
            if let Some(why) = embedded_mismatch(value, schema, "") {
                return Err(why);
            }
            unknown_fields(value, schema, true)
        }
        false => {
            if let Some(why) = find_mismatch(value, schema) {
                return Err(why);
            }
            return Ok(unknown_fields(value, schema, false));
        }
    };
    if let Some(metadata) = value.get_mut("metadata") {
        let unknown = unknown_fields(metadata, Library::metadata(), false);
        found.extend(unknown.into_iter().map(|field| format!("metadata.{field}")));
    }
    found.sort();
    Ok(found)
}

/// The metadata of an object within an object is metadata like any other.
fn embedded_mismatch(value: &Value, node: &Node, path: &str) -> Option<String> {
    if node.embedded
        && let Some(metadata) = value.get("metadata")
        && let Some(why) = metadata_mismatch(metadata)
    {
        return Some(format!("{path}.metadata: Invalid value: {metadata}: {why}"));
    }
    match value {
        Value::Object(fields) => fields.iter().find_map(|(name, field)| {
            let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
            embedded_mismatch(field, node.field(name)?, &place)
        }),
        Value::Array(items) => {
            let node = node.items.as_ref()?;
            items
                .iter()
                .enumerate()
                .find_map(|(at, item)| embedded_mismatch(item, node, &format!("{path}[{at}]")))
        }
        _ => None,
    }
}

fn metadata_mismatch(metadata: &Value) -> Option<String> {
    if !metadata.is_object() && !metadata.is_null() {
        return Some("json: cannot unmarshal metadata into Go value of type v1.ObjectMeta".to_owned());
    }
    find_mismatch(metadata, Library::metadata())
}

/// Fields that a struct would not write: what is null or empty in metadata and in the common kinds.
pub(crate) fn normalize(value: &mut Value, served: &Served) {
    match served.resource.is_custom() {
        true => {
            if let Some(metadata) = value.get_mut("metadata") {
                drop_empty(metadata, Library::metadata());
                drop_empty_texts(metadata);
            }
        }
        false => {
            drop_empty(value, &served.version().schema);
            if let Some(metadata) = value.get_mut("metadata") {
                drop_empty_texts(metadata);
            }
        }
    }
}

/// A null where none may be counts as nothing, unless a default takes its place.
fn drop_nulls(value: &mut Value, node: &Node) {
    match value {
        Value::Object(fields) => {
            let stays = |name: &str, field: &Value| {
                !field.is_null()
                    || node.properties.get(name).is_none_or(|child| child.nullable || child.default.is_some())
            };
            fields.retain(|name, field| stays(name, field));
            for (name, field) in fields.iter_mut() {
                if let Some(child) = node.field(name) {
                    drop_nulls(field, child);
                }
            }
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                items.iter_mut().for_each(|item| drop_nulls(item, node));
            }
        }
        _ => {}
    }
}

fn drop_empty(value: &mut Value, node: &Node) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter_mut() {
                if let Some(child) = node.field(name) {
                    drop_empty(field, child);
                }
            }
            fields.retain(|name, field| !node.field(name).is_some_and(|child| is_empty(field, child)));
        }
        Value::Array(items) => {
            if let Some(node) = &node.items {
                items.iter_mut().for_each(|item| drop_empty(item, node));
            }
        }
        _ => {}
    }
}

fn is_empty(value: &Value, node: &Node) -> bool {
    match value {
        Value::Null => node.kind != Kind::Any,
        Value::Array(items) => items.is_empty() && node.kind == Kind::Array,
        Value::Object(fields) => fields.is_empty() && node.values.is_some(),
        _ => false,
    }
}

fn drop_empty_texts(metadata: &mut Value) {
    if let Some(fields) = metadata.as_object_mut() {
        fields.retain(|_, value| !value.as_str().is_some_and(str::is_empty));
    }
}

/// Sees that the body says what it is, and that this is what the path says.
fn name_kind(value: &mut Value, served: &Served) -> Result<(), Status> {
    let expected = served.api_version();
    let kind = &served.resource.kind;
    let Some(fields) = value.as_object_mut() else { return Err(Status::bad_request("it is no object")) };
    for (field, text) in [("apiVersion", &expected), ("kind", kind)] {
        // The common kinds are known by their path.
        if fields.get(field).is_none_or(|found| found.is_null() || found == "") {
            fields.insert(field.to_owned(), Value::String(text.clone()));
        }
    }
    let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default();
    if !served.resource.is_custom() && (text("apiVersion") != expected || text("kind") != kind) {
        return Err(other_kind(text("apiVersion"), text("kind"), served));
    }
    if text("apiVersion") != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({expected})",
            text("apiVersion")
        )));
    }
    Ok(())
}

/// A custom object must say what it is.
fn name_itself(value: &Value) -> Result<(), Status> {
    for (field, title) in [("kind", "Kind"), ("apiVersion", "apiVersion")] {
        if value.get(field).and_then(Value::as_str).is_none_or(str::is_empty) {
            return Err(Status::bad_request(format!("Object '{title}' is missing in '{value}'")));
        }
    }
    Ok(())
}

/// An object of another kind than the path's, with the message of the scheme that would have to know it.
fn other_kind(api_version: &str, found: &str, served: &Served) -> Status {
    let (kind, version) = (&served.resource.kind, api_version.rsplit('/').next().unwrap_or_default());
    let known = Registry::is_common(api_version, found);
    let why = match known {
        true => {
            let hub = |group: &str| match group {
                "" => "core".to_owned(),
                group => group.split('.').next().unwrap_or_default().to_owned(),
            };
            format!("converting (v1.{found}) to ({}.{kind}): unknown conversion", hub(&served.resource.group))
        }
        false => format!(
            "no kind {found:?} is registered for version {api_version:?} in scheme \"pkg/runtime/scheme.go:111\""
        ),
    };
    Status::bad_request(format!("{found} in version {version:?} cannot be handled as a {kind}: {why}"))
}

/// The beginning of a body, as messages show it.
fn summary(call: &Call) -> String {
    const SHOWN: usize = 30;
    let body = &call.body;
    let cut = &body[..body.len().min(SHOWN)];
    let more = if body.len() > SHOWN { " ..." } else { "" };
    match body.first() {
        None => "<empty>".to_owned(),
        Some(b'{') => format!("{}{more}", String::from_utf8_lossy(cut)),
        Some(_) => format!("{}{more}", cut.iter().map(|byte| format!("{byte:02x}")).collect::<String>()),
    }
}

fn handled(value: &Value, served: &Served, why: &str) -> Status {
    let sent = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (&served.version().name, &served.resource.kind);
    Status::bad_request(format!("{sent} in version {version:?} cannot be handled as a {kind}: {why}"))
}
