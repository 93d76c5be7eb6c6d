//! A resource from a CRD that has been accepted. Whether it may be accepted is decided where CRDs are written.

use super::resource::{Column, Flavour, Resource, Scale, Version};
use crate::schema::{Library, Node, Rules, read};
use serde_json::Value;
use std::sync::Arc;

/// The resource that a CRD describes, once it is established and as long as its names are its own.
pub(crate) fn read_crd(crd: &Value) -> Option<Resource> {
    if !has_condition(crd, "Established") {
        return None;
    }
    let spec = crd.get("spec")?;
    let names = crd.pointer("/status/acceptedNames").or_else(|| spec.get("names"))?;
    let name = |field: &str| names.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let group = spec.get("group")?.as_str()?.to_owned();
    let plural = name("plural");
    let versions = spec.get("versions")?.as_array()?.iter().filter_map(|found| version(found, &group, names));
    Some(Resource {
        table: Arc::from(format!("{plural}.{group}")),
        singular: name("singular"),
        kind: name("kind"),
        list_kind: name("listKind"),
        short_names: texts(names.get("shortNames")),
        categories: texts(names.get("categories")),
        namespaced: spec.get("scope")?.as_str()? == "Namespaced",
        versions: versions.collect(),
        flavour: Flavour::Custom,
        group,
        plural,
    })
}

/// Whether a condition of a CRD is True.
pub(crate) fn has_condition(crd: &Value, kind: &str) -> bool {
    let conditions = crd.pointer("/status/conditions").and_then(Value::as_array);
    conditions.into_iter().flatten().any(|condition| {
        condition.get("type").and_then(Value::as_str) == Some(kind)
            && condition.get("status").and_then(Value::as_str) == Some("True")
    })
}

fn version(found: &Value, group: &str, names: &Value) -> Option<Version> {
    let name = found.get("name")?.as_str()?.to_owned();
    let flag = |field: &str| found.get(field).and_then(Value::as_bool).unwrap_or(false);
    let published = found.pointer("/schema/openAPIV3Schema").cloned().unwrap_or(Value::Null);
    let schema = root(&published);
    let mut fields = root(&published);
    fields.properties.insert("metadata".to_owned(), Arc::clone(Library::metadata()));
    let kind = names.get("kind").and_then(Value::as_str).unwrap_or_default();
    let deprecated = flag("deprecated").then(|| {
        let own = found.get("deprecationWarning").and_then(Value::as_str);
        own.map_or_else(|| format!("{group}/{name} {kind} is deprecated"), str::to_owned)
    });
    let selectable = found.get("selectableFields").and_then(Value::as_array).into_iter().flatten();
    let selectable = selectable.filter_map(|field| field.get("jsonPath")?.as_str());
    Some(Version {
        served: flag("served"),
        storage: flag("storage"),
        deprecated,
        status: found.pointer("/subresources/status").is_some(),
        scale: found.pointer("/subresources/scale").and_then(scale),
        columns: columns(found),
        rules: Rules::read(&published).map(Arc::new),
        schema: Arc::new(schema),
        fields: Arc::new(fields),
        published: Arc::new(published),
        selectable: selectable.map(|path| path.trim_start_matches('.').to_owned()).collect(),
        name,
    })
}

/// The schema of a whole object: what it says about metadata is only about names, never about the rest.
fn root(published: &Value) -> Node {
    let mut schema = published.clone();
    if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
        fields.remove("apiVersion");
        fields.remove("kind");
    }
    read(&schema)
}

fn scale(found: &Value) -> Option<Scale> {
    let path = |field: &str| found.get(field).and_then(Value::as_str).map(str::to_owned);
    Some(Scale {
        spec_replicas: path("specReplicasPath")?,
        status_replicas: path("statusReplicasPath")?,
        selector: path("labelSelectorPath").filter(|path| !path.is_empty()),
    })
}

fn columns(version: &Value) -> Vec<Column> {
    let found = version.get("additionalPrinterColumns").and_then(Value::as_array);
    let column = |column: &Value| {
        let text = |field: &str| column.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
        Column {
            name: text("name"),
            kind: text("type"),
            format: text("format"),
            description: text("description"),
            priority: column.get("priority").and_then(Value::as_i64).unwrap_or(0),
            path: text("jsonPath"),
        }
    };
    match found.filter(|found| !found.is_empty()) {
        Some(found) => found.iter().map(column).collect(),
        // Without columns of its own a resource shows how old its objects are.
        None => vec![Column {
            name: "Age".to_owned(),
            kind: "date".to_owned(),
            format: String::new(),
            description: crate::table::AGE.to_owned(),
            priority: 0,
            path: ".metadata.creationTimestamp".to_owned(),
        }],
    }
}

fn texts(list: Option<&Value>) -> Vec<String> {
    let list = list.and_then(Value::as_array).into_iter().flatten();
    list.filter_map(Value::as_str).map(str::to_owned).collect()
}
