//! One document: the definitions of a group and version, with the kinds that they are of, and their paths.

use super::paths;
use crate::registry::{Registry, Resource, Version};
use crate::schema::Library;
use serde_json::{Map, Value, json};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";
const REF: &str = "#/components/schemas/";
const OLD_REF: &str = "#/definitions/";

/// The document of a group and version.
pub(super) fn build(registry: &Registry, group: &str, version: &str) -> Value {
    let mut schemas = Map::new();
    let mut all_paths = Map::new();
    for (resource, found) in served(registry, group, version) {
        let name = definition_name(resource, found);
        define(resource, found, &name, &mut schemas);
        all_paths.extend(paths::of(resource, found, &name));
    }
    json!({
        "openapi": "3.0.0",
        "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": all_paths,
        "components": {"schemas": schemas},
    })
}

/// All definitions in the form of version 2.
pub(super) fn old(registry: &Registry) -> Value {
    let mut definitions = Map::new();
    for (group, versions) in registry.groups() {
        for version in versions {
            for (resource, found) in served(registry, &group, &version) {
                define(resource, found, &definition_name(resource, found), &mut definitions);
            }
        }
    }
    let mut document = json!({
        "swagger": "2.0",
        "info": {"title": "Kubernetes", "version": "v1.36.0"},
        "paths": {},
        "definitions": definitions,
    });
    to_old(&mut document);
    document
}

fn served<'a>(
    registry: &'a Registry,
    group: &'a str,
    version: &'a str,
) -> impl Iterator<Item = (&'a Resource, &'a Version)> {
    registry.all().filter(move |resource| resource.group == group).filter_map(move |resource| {
        let found = resource.versions.iter().find(|found| found.served && found.name == version)?;
        Some((resource.as_ref(), found))
    })
}

/// The name of a definition: the published one, or the group turned around.
fn definition_name(resource: &Resource, version: &Version) -> String {
    match version.published.as_str() {
        Some(name) => name.to_owned(),
        None => {
            let turned = resource.group.split('.').rev().collect::<Vec<_>>().join(".");
            format!("{turned}.{}.{}", version.name, resource.kind)
        }
    }
}

fn define(resource: &Resource, version: &Version, name: &str, schemas: &mut Map<String, Value>) {
    let library = Library::get();
    match version.published.as_str() {
        Some(root) => schemas.extend(library.with_references(&[root, LIST_META])),
        None => {
            schemas.extend(library.with_references(&[META, LIST_META]));
            schemas.insert(name.to_owned(), custom(&version.published));
        }
    }
    let kind = |kind: &str| json!([{"group": resource.group, "version": version.name, "kind": kind}]);
    if let Some(schema) = schemas.get_mut(name).and_then(Value::as_object_mut) {
        schema.insert("x-kubernetes-group-version-kind".to_owned(), kind(&resource.kind));
    }
    let list = json!({
        "type": "object",
        "description": format!("{} is a list of {}", resource.list_kind, resource.kind),
        "required": ["items"],
        "properties": {
            "apiVersion": {"type": "string", "description": API_VERSION},
            "kind": {"type": "string", "description": KIND},
            "metadata": {"allOf": [{"$ref": format!("{REF}{LIST_META}")}], "default": {}},
            "items": {"type": "array", "items": {"allOf": [{"$ref": format!("{REF}{name}")}], "default": {}}},
        },
        "x-kubernetes-group-version-kind": kind(&resource.list_kind),
    });
    schemas.insert(format!("{name}List"), list);
}

const API_VERSION: &str = "APIVersion defines the versioned schema of this representation of an object. Servers should convert \
recognized schemas to the latest internal value, and may reject unrecognized values. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const KIND: &str = "Kind is a string value representing the REST resource this object represents. Servers may infer this from \
the endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";
const METADATA: &str = "Standard object's metadata. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata";

/// The schema of a CRD, with what every object has.
fn custom(published: &Value) -> Value {
    let mut schema = published.clone();
    let Some(fields) = schema.as_object_mut() else { return json!({"type": "object"}) };
    let properties = fields.entry("properties").or_insert_with(|| json!({}));
    if let Some(properties) = properties.as_object_mut() {
        properties.insert("apiVersion".to_owned(), json!({"type": "string", "description": API_VERSION}));
        properties.insert("kind".to_owned(), json!({"type": "string", "description": KIND}));
        properties.insert(
            "metadata".to_owned(),
            json!({"allOf": [{"$ref": format!("{REF}{META}")}], "description": METADATA}),
        );
    }
    add_implied(&mut schema);
    schema
}

/// Adds what a schema implies: values that are a number or a text, objects within objects.
fn add_implied(schema: &mut Value) {
    let flag = |schema: &Value, name: &str| schema.get(name).and_then(Value::as_bool).unwrap_or(false);
    let (either, embedded) =
        (flag(schema, "x-kubernetes-int-or-string"), flag(schema, "x-kubernetes-embedded-resource"));
    let Some(fields) = schema.as_object_mut() else { return };
    if either && !fields.contains_key("anyOf") && !fields.contains_key("allOf") {
        fields.insert("anyOf".to_owned(), json!([{"type": "integer"}, {"type": "string"}]));
    }
    if embedded {
        let properties = fields.entry("properties").or_insert_with(|| json!({}));
        if let Some(properties) = properties.as_object_mut() {
            properties
                .insert("apiVersion".to_owned(), json!({"type": "string", "description": INNER_API_VERSION}));
            properties.insert("kind".to_owned(), json!({"type": "string", "description": INNER_KIND}));
            let metadata = json!({"allOf": [{"$ref": format!("{REF}{META}")}], "description": METADATA});
            properties.insert("metadata".to_owned(), metadata);
        }
        fields.insert("required".to_owned(), json!(["kind", "apiVersion"]));
    }
    for (name, child) in fields.iter_mut() {
        match (name.as_str(), child) {
            ("properties", Value::Object(children)) => children.values_mut().for_each(add_implied),
            ("items" | "additionalProperties", child) => add_implied(child),
            _ => {}
        }
    }
}

const INNER_API_VERSION: &str = "apiVersion defines the versioned schema of this representation of an object. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#resources";
const INNER_KIND: &str = "kind is a string value representing the type of this object. In CamelCase. More info: \
https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#types-kinds";

/// References and what version 2 does not know.
fn to_old(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            if let Some(parts) = fields.get("allOf").and_then(Value::as_array)
                && let [one] = parts.as_slice()
                && let Some(target) = one.get("$ref").cloned()
            {
                fields.remove("allOf");
                fields.insert("$ref".to_owned(), target);
            }
            for unknown in ["nullable", "anyOf", "oneOf", "not"] {
                if fields.get(unknown).is_some_and(|value| !value.is_object() || unknown != "nullable") {
                    fields.remove(unknown);
                }
            }
            if let Some(Value::String(target)) = fields.get_mut("$ref")
                && let Some(name) = target.strip_prefix(REF)
            {
                *target = format!("{OLD_REF}{name}");
            }
            fields.values_mut().for_each(to_old);
        }
        Value::Array(items) => items.iter_mut().for_each(to_old),
        _ => {}
    }
}
