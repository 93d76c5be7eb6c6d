//! Objects made to fit their schema: what is unknown is dropped and told of, what is absent gets its default.

use crate::embedded::call::{Call, Strictness, WriteOptions};
use crate::embedded::decode::{Decoded, decode};
use crate::embedded::kinds;
use crate::embedded::registry::Served;
use crate::embedded::schema::{Kind, Library, Node, default, find_mismatch, unknown_fields};
use crate::embedded::status::Status;
use serde_json::Value;

/// The object in a request's body, and what its sender should be told.
pub(crate) fn read_object(
    call: &Call,
    served: &Served,
    options: &WriteOptions,
) -> Result<(Value, Vec<String>), Status> {
    let Decoded { mut value, repeated } = decode(call)?;
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
            let mismatch = value.get("metadata").and_then(|metadata| metadata_mismatch(metadata));
            if let Some(why) = mismatch {
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

fn metadata_mismatch(metadata: &Value) -> Option<String> {
    if !metadata.is_object() && !metadata.is_null() {
        return Some("json: cannot unmarshal metadata into Go value of type v1.ObjectMeta".to_owned());
    }
    find_mismatch(metadata, Library::metadata()).map(|why| why.replace("ObjectMeta.", "ObjectMeta.metadata."))
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
    let Some(fields) = value.as_object_mut() else {
        let why = format!("the object provided is unrecognized (must be of type {kind}): it is no object");
        return Err(Status::bad_request(why));
    };
    for (field, text) in [("apiVersion", &expected), ("kind", kind)] {
        match fields.get(field) {
            Some(Value::String(found)) if !found.is_empty() => {}
            // The common kinds are known by their path; others must say what they are.
            None | Some(Value::Null | Value::String(_)) if !served.resource.is_custom() => {
                fields.insert(field.to_owned(), Value::String(text.clone()));
            }
            _ => {
                let title = if field == "kind" { "Kind" } else { field };
                let shown = Value::Object(fields.clone()).to_string();
                return Err(Status::bad_request(format!("Object '{title}' is missing in '{shown}'")));
            }
        }
    }
    let text = |field: &str| fields.get(field).and_then(Value::as_str).unwrap_or_default();
    if text("apiVersion") != expected {
        return Err(Status::bad_request(format!(
            "the API version in the data ({}) does not match the expected API version ({expected})",
            text("apiVersion")
        )));
    }
    if !served.resource.is_custom() && text("kind") != kind {
        let found = text("kind");
        let version = &served.version().name;
        return Err(Status::bad_request(format!(
            "{found} in version {version:?} cannot be handled as a {kind}: no kind {kind:?} is sent as {found:?}"
        )));
    }
    Ok(())
}

fn handled(value: &Value, served: &Served, why: &str) -> Status {
    let sent = value.get("kind").and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (&served.version().name, &served.resource.kind);
    Status::bad_request(format!("{sent} in version {version:?} cannot be handled as a {kind}: {why}"))
}
