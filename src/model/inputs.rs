//! The inputs of templates: the class and the claim at the time of provisioning, and the resource itself. Kept as JSON,
//! because only the expressions of `template` read them.

use super::object::Object;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

/// The annotation in which kubectl keeps a copy of the manifest. Expressions can read the object itself.
const LAST_APPLIED: &str = "kubectl.kubernetes.io/last-applied-configuration";

/// Whether any string in a value contains an expression.
pub fn has_expressions(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(_) | Value::Number(_) => false,
        Value::String(text) => text.contains("${"),
        Value::Array(items) => items.iter().any(has_expressions),
        Value::Object(fields) => {
            fields.iter().any(|(key, value)| key.contains("${") || has_expressions(value))
        }
    }
}

/// A claim as templates see it: metadata and spec, without its status.
pub fn of_claim(claim: &Object) -> Value {
    json!({"metadata": metadata(&claim.metadata), "spec": claim.body.get("spec").unwrap_or(&Value::Null)})
}

/// A class as templates see it: its fields at the top level, in whichever form they are written, without the templates.
pub fn of_class(class: &Object) -> Value {
    let mut fields = Map::from_iter([("metadata".to_owned(), metadata(&class.metadata))]);
    let top = class.body.as_object().into_iter().flatten().filter(|(name, _)| *name != "spec");
    let inner = class.body.get("spec").and_then(Value::as_object).into_iter().flatten();
    let own = top.chain(inner).filter(|(name, _)| !["template", "templates"].contains(&name.as_str()));
    fields.extend(own.map(|(name, value)| (name.clone(), value.clone())));
    Value::Object(fields)
}

/// A resource as templates see it, without its templates and its claims.
pub(super) fn of_resource(resource: &Object) -> Value {
    let spec = resource.body.get("spec").and_then(Value::as_object).into_iter().flatten();
    let own =
        spec.filter(|(name, _)| !["template", "templates", "inputs", "claimRefs"].contains(&name.as_str()));
    let spec: Map<String, Value> = own.map(|(name, value)| (name.clone(), value.clone())).collect();
    json!({"metadata": metadata(&resource.metadata), "spec": spec})
}

fn metadata(metadata: &ObjectMeta) -> Value {
    let ObjectMeta { name, namespace, uid, labels, annotations, .. } = metadata;
    let mut annotations = annotations.clone().unwrap_or_default();
    annotations.remove(LAST_APPLIED);
    json!({
        "name": name, "namespace": namespace, "uid": uid,
        "labels": labels.clone().unwrap_or_default(), "annotations": annotations,
    })
}
