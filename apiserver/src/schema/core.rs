//! The schemas of the kinds that every cluster has, from the generated types. Made once per process, on first use.

use super::{Node, overlay, read};
use k8s_openapi::api::{apps, authorization, autoscaling, coordination, core, discovery, events, policy};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions;
use k8s_openapi::apimachinery::pkg::apis::meta;
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

const META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// Where the generator keeps its definitions.
const REF: &str = "#/components/schemas/";
/// Types that hold anything, and the one that holds itself.
const OPEN: [&str; 7] = [
    "RawExtension",
    "FieldsV1",
    "JSON",
    "JSONSchemaProps",
    "JSONSchemaPropsOrArray",
    "JSONSchemaPropsOrBool",
    "JSONSchemaPropsOrStringArray",
];

/// All definitions, by their published names.
#[derive(Debug)]
pub(crate) struct Library {
    definitions: BTreeMap<String, Value>,
}

static LIBRARY: LazyLock<Library> = LazyLock::new(Library::generate);
static META_NODE: LazyLock<Arc<Node>> = LazyLock::new(|| Library::get().node(META));

impl Library {
    pub fn get() -> &'static Library {
        &LIBRARY
    }

    /// The schema of every object's metadata.
    pub fn metadata() -> &'static Arc<Node> {
        &META_NODE
    }

    /// The node of a definition, with everything it refers to.
    pub fn node(&self, definition: &str) -> Arc<Node> {
        Arc::new(read(&self.inlined(definition)))
    }

    /// A definition and all that it refers to, as they are published.
    pub fn with_references(&self, roots: &[&str]) -> BTreeMap<String, Value> {
        let mut found = BTreeMap::new();
        let mut open: Vec<String> = roots.iter().map(|root| (*root).to_owned()).collect();
        while let Some(name) = open.pop() {
            let Some(definition) = self.definitions.get(&name) else { continue };
            if let std::collections::btree_map::Entry::Vacant(place) = found.entry(name) {
                references(definition, &mut open);
                place.insert(published(definition));
            }
        }
        found
    }

    fn generate() -> Library {
        let mut settings = SchemaSettings::openapi3();
        settings.transforms.clear();
        let mut generator = SchemaGenerator::new(settings);
        let g = &mut generator;
        g.subschema_for::<core::v1::Namespace>();
        g.subschema_for::<core::v1::Secret>();
        g.subschema_for::<core::v1::ConfigMap>();
        g.subschema_for::<core::v1::Service>();
        g.subschema_for::<core::v1::Event>();
        g.subschema_for::<core::v1::Pod>();
        g.subschema_for::<core::v1::ServiceAccount>();
        g.subschema_for::<events::v1::Event>();
        g.subschema_for::<discovery::v1::EndpointSlice>();
        g.subschema_for::<coordination::v1::Lease>();
        g.subschema_for::<apps::v1::Deployment>();
        g.subschema_for::<autoscaling::v1::Scale>();
        g.subschema_for::<policy::v1::Eviction>();
        g.subschema_for::<apiextensions::v1::CustomResourceDefinition>();
        g.subschema_for::<authorization::v1::SelfSubjectAccessReview>();
        g.subschema_for::<authorization::v1::SelfSubjectRulesReview>();
        g.subschema_for::<meta::v1::DeleteOptions>();
        g.subschema_for::<meta::v1::ListMeta>();
        g.subschema_for::<meta::v1::Status>();
        let definitions = generator.take_definitions(false);
        let definitions = definitions.into_iter().map(|(name, schema)| {
            let schema = annotated(&name, schema);
            (name, schema)
        });
        Library { definitions: definitions.collect() }
    }

    fn inlined(&self, definition: &str) -> Value {
        let kind = last(definition);
        let Some(Value::Object(found)) = self.definitions.get(definition) else {
            return serde_json::json!({"x-kubernetes-preserve-unknown-fields": true});
        };
        if OPEN.contains(&kind) {
            return serde_json::json!({"x-kubernetes-preserve-unknown-fields": true});
        }
        let mut schema = self.inline_object(found);
        schema.insert("x-go-type".to_owned(), kind.into());
        Value::Object(schema)
    }

    fn inline_object(&self, schema: &Map<String, Value>) -> Map<String, Value> {
        let mut made = Map::new();
        if let Some(target) = schema.get("$ref").and_then(Value::as_str).and_then(|r| r.strip_prefix(REF))
            && let Value::Object(target) = self.inlined(target)
        {
            made = target;
        }
        for (name, value) in
            schema.iter().filter(|(name, _)| !matches!(name.as_str(), "$ref" | "description"))
        {
            let value = match (name.as_str(), value) {
                ("properties", Value::Object(fields)) => {
                    let inline = |(name, field): (&String, &Value)| (name.clone(), self.inline(field));
                    Value::Object(fields.iter().map(inline).collect())
                }
                ("items" | "additionalProperties", value) => self.inline(value),
                (_, value) => value.clone(),
            };
            made.insert(name.clone(), value);
        }
        made
    }

    fn inline(&self, schema: &Value) -> Value {
        match schema {
            Value::Object(schema) => Value::Object(self.inline_object(schema)),
            other => other.clone(),
        }
    }
}

/// A definition with what the generated types leave out.
fn annotated(name: &str, mut schema: Value) -> Value {
    let kind = last(name).to_owned();
    if let Some(schema) = schema.as_object_mut() {
        overlay::about_type(&kind, schema);
        if let Some(fields) = schema.get_mut("properties").and_then(Value::as_object_mut) {
            for (field, schema) in fields.iter_mut() {
                if let Some(schema) = schema.as_object_mut() {
                    overlay::about_field(&kind, field, schema);
                }
            }
        }
    }
    schema
}

/// A definition as it is published: a reference beside other keywords, and metadata that no client must give.
fn published(definition: &Value) -> Value {
    let mut definition = definition.clone();
    if let Some(required) = definition.get_mut("required").and_then(Value::as_array_mut) {
        required.retain(|name| name != "metadata");
    }
    if definition.get("required").and_then(Value::as_array).is_some_and(Vec::is_empty)
        && let Some(fields) = definition.as_object_mut()
    {
        fields.remove("required");
    }
    wrap_references(&mut definition);
    definition
}

fn wrap_references(schema: &mut Value) {
    let Some(fields) = schema.as_object_mut() else { return };
    if let Some(target) = fields.remove("$ref") {
        fields.insert("allOf".to_owned(), serde_json::json!([{ "$ref": target }]));
    }
    for (name, child) in fields.iter_mut() {
        match (name.as_str(), child) {
            ("properties", Value::Object(children)) => children.values_mut().for_each(wrap_references),
            ("items" | "additionalProperties", child) => wrap_references(child),
            _ => {}
        }
    }
}

fn references(schema: &Value, found: &mut Vec<String>) {
    match schema {
        Value::Object(fields) => {
            for (name, value) in fields {
                match value.as_str().and_then(|text| text.strip_prefix(REF)) {
                    Some(target) if name == "$ref" => found.push(target.to_owned()),
                    _ => references(value, found),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| references(item, found)),
        _ => {}
    }
}

fn last(name: &str) -> &str {
    name.rsplit('.').next().unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::super::{Kind, List};
    use super::*;

    #[test]
    fn a_pod_knows_how_its_ports_are_told_apart() {
        let pod = Library::get().node("io.k8s.api.core.v1.Pod");
        let containers = &pod.properties["spec"].properties["containers"];
        assert_eq!(containers.list, List::Map(vec!["name".to_owned()]));
        let ports = &containers.items.as_ref().expect("a list has items").properties["ports"];
        assert_eq!(ports.list, List::Map(vec!["containerPort".to_owned(), "protocol".to_owned()]));
        let port = ports.items.as_ref().expect("a list has items");
        assert_eq!(port.properties["containerPort"].kind, Kind::Integer);
        assert_eq!(port.go.as_deref(), Some("ContainerPort"));
    }
}
