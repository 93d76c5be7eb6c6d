//! What may stand in a recording: an allow-list of the fields that decisions are made from, kind by kind. Everything
//! else is left out before it is written, unread. With pseudonyms, names give way to stand-ins too.
//!
//! Left out on purpose: annotations of others, templates beyond what kind they make, parameters, connections,
//! messages. Whether something is readable is kept: a class that cannot be read must not become one that can.

use super::pseudonyms::Pseudonyms;
use conductor::api::names;
use conductor::model::{Class, Kind, Object, Resource, TypeId};
use serde_json::{Map, Value, json};

/// What recordings say of how they were made safe.
pub const FIELDS_ONLY: &str = "allow-list-1";
/// The same, with stand-ins for names.
pub const STAND_INS: &str = "allow-list-1+pseudonyms";

/// Makes objects safe to give away.
#[derive(Clone, Debug, Default)]
pub struct Redaction {
    pseudonyms: Option<Pseudonyms>,
}

/// Annotations that decisions read.
const ANNOTATIONS: [&str; 4] =
    [names::IS_DEFAULT_CLASS, names::SCHEDULING_PROFILE, names::PROVISIONED_BY, names::PROVISIONED_FOR];
const METADATA: [&str; 9] = [
    "name",
    "namespace",
    "uid",
    "resourceVersion",
    "generation",
    "creationTimestamp",
    "deletionTimestamp",
    "labels",
    "finalizers",
];
const CLAIM: [&str; 10] = [
    "engine",
    "version",
    "highly-available",
    "requests",
    "class",
    "classes",
    "resourceName",
    "selector",
    "priority",
    "exclusive",
];
const RESOURCE: [&str; 10] = [
    "engine",
    "version",
    "highly-available",
    "capacity",
    "capabilities",
    "class",
    "reclaimPolicy",
    "sharing",
    "unschedulable",
    "claimRefs",
];
const CLASS: [&str; 9] = [
    "engine",
    "engines",
    "version",
    "versions",
    "highly-available",
    "capabilities",
    "capacity",
    "reclaimPolicy",
    "sharing",
];
const REFUSAL: [&str; 5] = ["class", "classUid", "classGeneration", "generation", "resourceUid"];
const POLICY: [&str; 10] = [
    "limits",
    "namespaceSelector",
    "min",
    "max",
    "default",
    "plugins",
    "scores",
    "preferNewest",
    "order",
    "batch",
];

impl Redaction {
    /// Fields only: names stay.
    pub fn fields_only() -> Redaction {
        Redaction::default()
    }

    /// Fields, and stand-ins for names, under a key. The system namespace keeps its name: everybody has one.
    pub fn with_key(key: &[u8], system_namespace: &str) -> Redaction {
        let prefixes: Vec<String> = TypeId::all().map(|ty| format!("{}-", ty.rules().short)).collect();
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        let mut pseudonyms = Pseudonyms::new(key, &prefixes);
        pseudonyms.keep(system_namespace);
        Redaction { pseudonyms: Some(pseudonyms) }
    }

    /// The word for the header.
    pub fn word(&self) -> &'static str {
        if self.pseudonyms.is_some() { STAND_INS } else { FIELDS_ONLY }
    }

    /// The stand-in of a name, or the name.
    pub fn name(&mut self, name: &str) -> String {
        match &mut self.pseudonyms {
            Some(pseudonyms) => pseudonyms.of(name),
            None => name.to_owned(),
        }
    }

    /// What may be told of an object.
    pub fn redact(&mut self, object: &Object) -> Value {
        let mut told = json!({
            "apiVersion": object.kind.api_version(), "kind": object.kind.name(),
            "metadata": metadata(object),
        });
        for (field, value) in body(object) {
            told[field] = value;
        }
        if let Some(pseudonyms) = &mut self.pseudonyms {
            rename(&mut told, object.kind, pseudonyms);
        }
        told
    }
}

fn pick(from: Option<&Value>, fields: &[&str]) -> Map<String, Value> {
    let from = from.and_then(Value::as_object);
    let kept = fields.iter().filter_map(|f| Some(((*f).to_owned(), from?.get(*f)?.clone())));
    kept.filter(|(_, value)| !value.is_null()).collect()
}

fn metadata(object: &Object) -> Value {
    let whole = serde_json::to_value(&object.metadata).unwrap_or_default();
    let mut kept = pick(Some(&whole), &METADATA);
    let annotations = pick(whole.get("annotations"), &ANNOTATIONS);
    if !annotations.is_empty() {
        kept.insert("annotations".to_owned(), Value::Object(annotations));
    }
    Value::Object(kept)
}

fn body(object: &Object) -> Map<String, Value> {
    let (spec, status) = (object.body.get("spec"), object.body.get("status"));
    let mut kept = match object.kind {
        Kind::Claim(_) => {
            let mut claim = pick(spec, &CLAIM);
            let requests = spec.and_then(|s| s.get("resources")).and_then(|r| r.get("requests"));
            if let Some(requests) = requests {
                claim.insert("resources".to_owned(), json!({"requests": requests}));
            }
            Map::from_iter([("spec".to_owned(), Value::Object(claim))])
        }
        Kind::Resource(ty) => {
            let mut resource = pick(spec, &RESOURCE);
            // Only that it has one counts; what it makes is nobody's business here.
            if Resource::read(ty, object).has_template() {
                resource.insert("template".to_owned(), stub());
            }
            Map::from_iter([("spec".to_owned(), Value::Object(resource))])
        }
        Kind::Class(ty) => class(ty, object),
        Kind::Quota | Kind::ClusterQuota | Kind::Limits | Kind::Profile => {
            Map::from_iter([("spec".to_owned(), Value::Object(pick(spec, &POLICY)))])
        }
        Kind::Namespace => Map::new(),
    };
    let status = self::status(object.kind, status);
    if !status.is_empty() {
        kept.insert("status".to_owned(), Value::Object(status));
    }
    kept
}

fn stub() -> Value {
    json!({"apiVersion": "redacted.conductor.io/v1", "kind": "Redacted"})
}

fn class(ty: TypeId, object: &Object) -> Map<String, Value> {
    let mut kept = pick(Some(&object.body), &CLASS);
    for (field, value) in pick(object.body.get("spec"), &CLASS) {
        kept.entry(field).or_insert(value);
    }
    match Class::read(ty, object).recipe {
        Ok(recipe) if recipe.template.is_some() => drop(kept.insert("template".to_owned(), stub())),
        Ok(_) => {}
        // Unreadable for whatever reason: it stays so.
        Err(_) => drop(kept.insert("template".to_owned(), Value::from("unreadable"))),
    }
    kept
}

fn status(kind: Kind, status: Option<&Value>) -> Map<String, Value> {
    let mut kept = match kind {
        Kind::Claim(_) => pick(status, &["phase", "resourceRef", "observedGeneration"]),
        Kind::Resource(_) => pick(status, &["phase", "observedGeneration"]),
        Kind::Class(_)
        | Kind::Quota
        | Kind::ClusterQuota
        | Kind::Limits
        | Kind::Profile
        | Kind::Namespace => {
            return Map::new();
        }
    };
    let refusals = status.and_then(|s| s.get("refusedBy")).and_then(Value::as_array);
    if let (Kind::Claim(_), Some(refusals)) = (kind, refusals) {
        let told = |r: &Value| Value::Object(pick(Some(r), &REFUSAL));
        kept.insert("refusedBy".to_owned(), refusals.iter().map(told).collect());
    }
    let conditions = status.and_then(|s| s.get("conditions")).and_then(Value::as_array);
    let conditions: Vec<Value> = conditions
        .into_iter()
        .flatten()
        .map(|c| Value::Object(pick(Some(c), &["type", "status", "reason", "lastTransitionTime"])))
        .collect();
    if !conditions.is_empty() {
        kept.insert("conditions".to_owned(), Value::Array(conditions));
    }
    kept
}

/// Stand-ins wherever a name, a namespace, a label or a capability stands.
fn rename(object: &mut Value, kind: Kind, names: &mut Pseudonyms) {
    let keep_name = matches!(kind, Kind::Profile) && object["metadata"]["name"] == names::DEFAULT_PROFILE;
    for field in ["name", "namespace"] {
        // The profile of that name is the one that applies everywhere.
        if !(keep_name && field == "name") {
            text(object["metadata"].get_mut(field), names);
        }
    }
    labels(object["metadata"].get_mut("labels"), names);
    if let Some(annotations) = object["metadata"].get_mut("annotations") {
        text(annotations.get_mut(names::SCHEDULING_PROFILE), names);
        text(annotations.get_mut(names::PROVISIONED_BY), names);
    }
    if let Some(spec) = object.get_mut("spec") {
        for field in ["class", "resourceName"] {
            text(spec.get_mut(field), names);
        }
        for field in ["classes", "requests", "capabilities"] {
            texts(spec.get_mut(field), names);
        }
        texts(spec.pointer_mut("/sharing/allowedNamespaces"), names);
        selector(spec.get_mut("selector"), names);
        selector(spec.get_mut("namespaceSelector"), names);
        for claim_ref in list(spec.get_mut("claimRefs")) {
            text(claim_ref.get_mut("namespace"), names);
            text(claim_ref.get_mut("name"), names);
        }
        for limit in list(spec.get_mut("limits")) {
            text(limit.get_mut("class"), names);
        }
        for score in list(spec.get_mut("scores")) {
            for label in list(score.pointer_mut("/parameters/labels")) {
                text(label.get_mut("key"), names);
                text(label.get_mut("value"), names);
            }
        }
    }
    if let Kind::Class(_) = kind {
        texts(object.get_mut("capabilities"), names);
        texts(object.pointer_mut("/sharing/allowedNamespaces"), names);
    }
    for field in ["name", "namespace"] {
        text(object.pointer_mut(&format!("/status/resourceRef/{field}")), names);
    }
    for refusal in list(object.pointer_mut("/status/refusedBy")) {
        text(refusal.get_mut("class"), names);
    }
}

fn list(value: Option<&mut Value>) -> impl Iterator<Item = &mut Value> {
    value.and_then(Value::as_array_mut).into_iter().flatten()
}

fn text(value: Option<&mut Value>, names: &mut Pseudonyms) {
    if let Some(Value::String(name)) = value {
        *name = names.of(name);
    }
}

fn texts(value: Option<&mut Value>, names: &mut Pseudonyms) {
    list(value).for_each(|item| text(Some(item), names));
}

fn labels(value: Option<&mut Value>, names: &mut Pseudonyms) {
    let Some(Value::Object(labels)) = value else { return };
    let renamed = std::mem::take(labels).into_iter().map(|(key, mut value)| {
        text(Some(&mut value), names);
        (names.of(&key), value)
    });
    *labels = renamed.collect();
}

fn selector(value: Option<&mut Value>, names: &mut Pseudonyms) {
    let Some(selector) = value else { return };
    labels(selector.get_mut("matchLabels"), names);
    for expression in list(selector.get_mut("matchExpressions")) {
        text(expression.get_mut("key"), names);
        texts(expression.get_mut("values"), names);
    }
}
