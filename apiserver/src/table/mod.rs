//! Objects as rows, for people: the columns of CRDs by their paths, those of the common kinds as Kubernetes shows them.

mod age;
mod common;
mod path;

use super::encode;
use super::registry::{Column, Served};
use super::status::Status;
use serde_json::{Map, Value, json};

/// A table of one object.
pub(super) fn of_one(object: &Value, served: &Served) -> Value {
    let revision = super::object::meta_text(object, "resourceVersion").unwrap_or_default();
    let meta = Map::from_iter([("resourceVersion".to_owned(), Value::from(revision))]);
    of_list(vec![object.clone()], served, meta, "Metadata")
}

/// A table of a list.
pub(super) fn of_list(
    objects: Vec<Value>,
    served: &Served,
    meta: Map<String, Value>,
    include: &str,
) -> Value {
    let rows: Vec<Value> = objects.into_iter().map(|object| row(object, served, include)).collect();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": meta,
        "columnDefinitions": columns(served),
        "rows": rows,
    })
}

/// A table of one event of a watch; only the first names its columns.
pub(super) fn of_event(object: Value, served: &Served, include: &str, is_first: bool) -> Value {
    let revision = super::object::meta_text(&object, "resourceVersion").unwrap_or_default().to_owned();
    let columns = if is_first { Value::Array(columns(served)) } else { Value::Null };
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": revision},
        "columnDefinitions": columns,
        "rows": [row(object, served, include)],
    })
}

/// A bookmark of a watch of tables.
pub(super) fn of_bookmark(bookmark: &Value) -> Value {
    let revision = super::object::meta_text(bookmark, "resourceVersion").unwrap_or_default();
    json!({
        "kind": "Table",
        "apiVersion": "meta.k8s.io/v1",
        "metadata": {"resourceVersion": revision},
        "columnDefinitions": null,
        "rows": [{"cells": [], "object": encode::metadata(bookmark)}],
    })
}

/// What of the objects a requested table includes.
pub(super) fn included(asked: Option<&str>) -> Result<&str, Status> {
    match asked {
        None | Some("") => Ok("Metadata"),
        Some(known @ ("Metadata" | "Object" | "None")) => Ok(known),
        Some(other) => Err(Status::bad_request(format!(
            "Unable to convert to Table as requested: includeObject: Invalid value: {other:?}: must be 'Metadata', \
             'Object', 'None', or empty"
        ))),
    }
}

fn row(object: Value, served: &Served, include: &str) -> Value {
    let cells = match served.resource.common() {
        Some(kind) => common::cells(kind, &object),
        None => custom_cells(&object, &served.version().columns),
    };
    let shown = match include {
        "None" => Value::Null,
        "Object" => object,
        _ => encode::metadata(&object),
    };
    json!({"cells": cells, "object": shown})
}

fn columns(served: &Served) -> Vec<Value> {
    match served.resource.common() {
        Some(kind) => common::columns(kind),
        None => {
            let name = definition("Name", "string", "name", NAME, 0);
            let own = served.version().columns.iter();
            std::iter::once(name).chain(own.map(custom_column)).collect()
        }
    }
}

/// What every table says of its first column.
const NAME: &str = "Name must be unique within a namespace. Is required when creating resources, although some resources \
may allow a client to request the generation of an appropriate name automatically. Name is primarily intended for creation \
idempotence and configuration definition. Cannot be updated. More info: \
https://kubernetes.io/docs/concepts/overview/working-with-objects/names#names";
/// What every table says of an age.
pub(super) const AGE: &str = "CreationTimestamp is a timestamp representing the server time when this object was created. It is not \
guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It is represented \
in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

fn definition(name: &str, kind: &str, format: &str, description: &str, priority: i64) -> Value {
    json!({"name": name, "type": kind, "format": format, "description": description, "priority": priority})
}

fn custom_column(column: &Column) -> Value {
    let description = match (column.description.is_empty(), column.path.as_str()) {
        (true, path) => format!("Custom resource definition column (in JSONPath format): {path}"),
        (false, _) => column.description.clone(),
    };
    definition(&column.name, &column.kind, &column.format, &description, column.priority)
}

fn custom_cells(object: &Value, columns: &[Column]) -> Vec<Value> {
    let name = Value::from(super::object::name(object));
    std::iter::once(name).chain(columns.iter().map(|column| cell(object, column))).collect()
}

fn cell(object: &Value, column: &Column) -> Value {
    let found = path::find(object, &column.path);
    let Some(first) = found.first().copied().filter(|value| !value.is_null()) else { return Value::Null };
    match (column.kind.as_str(), first) {
        ("integer", Value::Number(number)) => {
            number.as_i64().map_or_else(|| json!(number.as_f64()), Value::from)
        }
        ("number", Value::Number(_)) | ("boolean", Value::Bool(_)) => first.clone(),
        ("date", Value::String(text)) => age::age(text).into(),
        ("string", Value::String(text)) if found.len() == 1 => text.clone().into(),
        ("string", _) => {
            let texts =
                found.iter().map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
            texts.collect::<Vec<_>>().join(" ").into()
        }
        _ => Value::Null,
    }
}
