//! What may stand in a recording: an allow-list of the fields that decisions are made from, kind by kind. Definitions of
//! predicates say which fields those are. Everything else, however deep, is left out before it is written, unread. With
//! pseudonyms, names give way to stand-ins too.
//!
//! Left out on purpose: annotations of others, templates beyond what kind they make, parameters, connections,
//! messages. Whether something is readable is kept: a class that cannot be read must not become one that can.

use super::pseudonyms::Pseudonyms;
use crate::plan::unreadable;
use conductor::api::names;
use conductor::model::types::{FieldRule, Rule};
use conductor::model::used_fields::Amounts;
use conductor::model::{Class, Kind, Name, Object, ObjectKey, Recipe, Resource, SpecRecord, TypeId};
use conductor::predicates::{Predicate, Shape, Side};
use serde_json::{Map, Value, json};
use std::borrow::Cow;

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
const OURS: [&str; 3] = [names::CLAIM_PROTECTION, names::RESOURCE_PROTECTION, names::CLASS_PROTECTION];
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
/// The fields of a spec that a recording keeps beside those that predicates decide on.
const BESIDE_CLAIM: Fields = &[("priority", Shape::Leaf)];
const BESIDE_RESOURCE: Fields = &[("reclaimPolicy", Shape::Leaf)];
const SIZES: Shape =
    Shape::Named(&Shape::Fields(&[("min", Shape::Leaf), ("max", Shape::Leaf), ("step", Shape::Leaf)]));
const BESIDE_CLASS: Fields = &[("capacity", SIZES), ("reclaimPolicy", Shape::Leaf), ("sharing", SHARING)];
const SHARING: Shape = Shape::Fields(&[("maxClaims", Shape::Leaf), ("allowedNamespaces", Shape::NAMES)]);
const LIMIT: Shape = Shape::Fields(&[
    ("class", Shape::Name),
    ("engine", Shape::Leaf),
    ("claims", Shape::Leaf),
    ("requests", Shape::QUANTITIES),
]);
const WEIGHTED: Shape =
    Shape::Fields(&[("key", Shape::Name), ("value", Shape::Name), ("weight", Shape::Leaf)]);
const SCORE: Shape = Shape::Fields(&[
    ("name", Shape::Leaf),
    ("weight", Shape::Leaf),
    ("parameters", Shape::Fields(&[("labels", Shape::Each(&WEIGHTED))])),
]);
const LEAVES: Shape = Shape::Each(&Shape::Leaf);
const POLICY: Fields = &[
    ("limits", Shape::Each(&LIMIT)),
    ("namespaceSelector", Shape::SELECTOR),
    ("min", Shape::QUANTITIES),
    ("max", Shape::QUANTITIES),
    ("default", Shape::QUANTITIES),
    ("plugins", Shape::Fields(&[("disabled", LEAVES)])),
    ("scores", Shape::Each(&SCORE)),
    ("preferNewest", Shape::Leaf),
    ("order", LEAVES),
    ("batch", Shape::Leaf),
];
const PLACE: Shape =
    Shape::Fields(&[("namespace", Shape::Name), ("name", Shape::Name), ("uid", Shape::Leaf)]);
const CONDITION: Shape = Shape::Fields(&[
    ("type", Shape::Leaf),
    ("status", Shape::Leaf),
    ("reason", Shape::Leaf),
    ("lastTransitionTime", Shape::Leaf),
]);
const REFUSAL: Shape = Shape::Fields(&[
    ("class", Shape::Name),
    ("classUid", Shape::Leaf),
    ("classGeneration", Shape::Leaf),
    ("generation", Shape::Leaf),
    ("resourceUid", Shape::Leaf),
]);
const CLAIM_STATUS: Fields = &[
    ("phase", Shape::Leaf),
    ("resourceRef", PLACE),
    ("observedGeneration", Shape::Leaf),
    ("refusedBy", Shape::Each(&REFUSAL)),
    ("conditions", Shape::Each(&CONDITION)),
];
const RESOURCE_STATUS: Fields = &[
    ("phase", Shape::Leaf),
    ("version", Shape::Leaf),
    ("observedGeneration", Shape::Leaf),
    ("conditions", Shape::Each(&CONDITION)),
];
/// Stands for finalizers of others: that something keeps the object counts, and not what.
const KEPT_BY_OTHERS: &str = "redacted.conductor.io/kept";

/// Fields of a mapping, each with what may stand in it.
type Fields = &'static [(&'static str, Shape)];

/// The fields of a spec that predicates decide on, as their definitions say.
fn recorded(ty: TypeId, side: Side) -> impl Iterator<Item = (&'static str, Shape)> {
    let definitions = || Predicate::ALL.iter().map(|predicate| predicate.definition());
    let kept = definitions().flat_map(|definition| definition.recorded).filter(move |kept| kept.side == side);
    let fields = ty.rules().fields.iter().map(move |rule| match side {
        Side::Claim => (rule.claim, rule.recorded),
        Side::Resource => (rule.resource, rule.recorded),
    });
    fields.chain(kept.map(|kept| (kept.field, kept.shape)))
}

/// The fields of an object that a recording keeps: of a class the object's own, of all others those of its spec.
fn shapes(kind: Kind) -> Vec<(Cow<'static, str>, Shape)> {
    let owned = |fields: Fields| fields.iter().map(|(name, shape)| (Cow::from(*name), *shape));
    let spec = |ty, side| recorded(ty, side).map(|(name, shape)| (Cow::from(name), shape));
    match kind {
        Kind::Claim(ty) => spec(ty, Side::Claim).chain(owned(BESIDE_CLAIM)).collect(),
        Kind::Resource(ty) => spec(ty, Side::Resource).chain(owned(BESIDE_RESOURCE)).collect(),
        Kind::Class(ty) => {
            let plural = |rule: &FieldRule| match (rule.rule, rule.recorded) {
                (Rule::Flag | Rule::Contains, _) => None,
                (_, Shape::Name) => Some((Cow::from(format!("{}s", rule.resource)), Shape::NAMES)),
                _ => Some((Cow::from(format!("{}s", rule.resource)), LEAVES)),
            };
            let rules = || ty.rules().fields.iter();
            let one = rules().map(|rule| (Cow::from(rule.resource), rule.recorded));
            one.chain(rules().filter_map(plural)).chain(owned(BESIDE_CLASS)).collect()
        }
        Kind::Quota | Kind::ClusterQuota | Kind::Limits | Kind::Profile => owned(POLICY).collect(),
        Kind::Namespace => Vec::new(),
    }
}

fn status_shapes(kind: Kind) -> Fields {
    match kind {
        Kind::Claim(_) => CLAIM_STATUS,
        Kind::Resource(_) => RESOURCE_STATUS,
        Kind::Class(_)
        | Kind::Quota
        | Kind::ClusterQuota
        | Kind::Limits
        | Kind::Profile
        | Kind::Namespace => &[],
    }
}

/// What may stand of a value. What is of another shape than the engine reads is kept as unreadable as it is, and empty.
fn keep(shape: &Shape, value: &Value) -> Value {
    match (shape, value) {
        (Shape::Each(item), Value::Array(items)) => items.iter().map(|value| keep(item, value)).collect(),
        (Shape::Named(item), Value::Object(map)) => {
            Value::Object(map.iter().map(|(name, value)| (name.clone(), keep(item, value))).collect())
        }
        (Shape::Labels, Value::Object(_)) => keep(&Shape::Named(&Shape::Leaf), value),
        (Shape::Fields(fields), Value::Object(_)) => Value::Object(pick(fields, Some(value))),
        (_, Value::Array(_)) => json!([]),
        (_, Value::Object(_)) => json!({}),
        (_, scalar) => scalar.clone(),
    }
}

/// The fields of a mapping that may stand there, those without a value left out.
fn pick<N: AsRef<str>>(fields: &[(N, Shape)], from: Option<&Value>) -> Map<String, Value> {
    let Some(Value::Object(from)) = from else { return Map::new() };
    let kept =
        fields.iter().filter_map(|(name, shape)| Some((name.as_ref(), shape, from.get(name.as_ref())?)));
    let kept = kept.filter(|(_, _, value)| !value.is_null());
    kept.map(|(name, shape, value)| (name.to_owned(), keep(shape, value))).collect()
}

impl Redaction {
    /// Fields only: names stay.
    pub fn fields_only() -> Redaction {
        Redaction::default()
    }

    /// Fields, and stand-ins for names, under a key. The system namespace keeps its name: every cluster has one.
    pub fn with_key(key: &[u8], system_namespace: &str) -> Redaction {
        let prefixes: Vec<String> = TypeId::all().map(|ty| format!("{}-", ty.rules().short)).collect();
        let prefixes: Vec<&str> = prefixes.iter().map(String::as_str).collect();
        let mut pseudonyms = Pseudonyms::new(key, &prefixes);
        pseudonyms.keep(system_namespace);
        Redaction { pseudonyms: Some(pseudonyms) }
    }

    /// The name in the header.
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

    /// Where an object is, by its stand-ins. The profile that applies everywhere is known by its name.
    pub fn key(&mut self, kind: Kind, ObjectKey { namespace, name }: &ObjectKey) -> ObjectKey {
        let is_default = kind == Kind::Profile && &**name == names::DEFAULT_PROFILE;
        let name = if is_default { name.to_string() } else { self.name(name) };
        ObjectKey::new(self.name(namespace), name)
    }

    /// What may be shown of an object.
    pub fn redact(&mut self, object: &Object) -> Value {
        let mut kept = json!({
            "apiVersion": object.kind.api_version(), "kind": object.kind.name(),
            "metadata": metadata(object),
        });
        for (field, value) in body(object) {
            kept[field] = value;
        }
        keep_unreadable(object, &mut kept);
        if let Some(pseudonyms) = &mut self.pseudonyms {
            rename(&mut kept, object.kind, pseudonyms);
        }
        kept
    }
}

fn pick_whole(from: Option<&Value>, fields: &[&str]) -> Map<String, Value> {
    let from = from.and_then(Value::as_object);
    let kept = fields.iter().filter_map(|f| Some(((*f).to_owned(), from?.get(*f)?.clone())));
    kept.filter(|(_, value)| !value.is_null()).collect()
}

fn metadata(object: &Object) -> Value {
    let whole = serde_json::to_value(&object.metadata).unwrap_or_default();
    let mut kept = pick_whole(Some(&whole), &METADATA);
    if let Some(Value::Array(finalizers)) = kept.get_mut("finalizers") {
        let is_ours = |f: &Value| OURS.iter().any(|ours| f == ours);
        let (ours, others): (Vec<Value>, Vec<Value>) = finalizers.drain(..).partition(is_ours);
        finalizers.extend(ours);
        finalizers.extend(others.first().map(|_| Value::from(KEPT_BY_OTHERS)));
    }
    let annotations = pick_whole(whole.get("annotations"), &ANNOTATIONS);
    if !annotations.is_empty() {
        kept.insert("annotations".to_owned(), Value::Object(annotations));
    }
    Value::Object(kept)
}

fn body(object: &Object) -> Map<String, Value> {
    let (spec, status) = (object.body.get("spec"), object.body.get("status"));
    let of_spec = || Value::Object(pick(&shapes(object.kind), spec));
    let mut kept = match object.kind {
        Kind::Resource(ty) => {
            let mut kept = of_spec();
            // That it has one counts; what it creates does not.
            if Resource::read(ty, object).has_template() {
                kept["template"] = stub();
            }
            Map::from_iter([("spec".to_owned(), kept)])
        }
        Kind::Class(ty) => class(ty, object),
        Kind::Namespace => Map::new(),
        Kind::Claim(_) | Kind::Quota | Kind::ClusterQuota | Kind::Limits | Kind::Profile => {
            Map::from_iter([("spec".to_owned(), of_spec())])
        }
    };
    let mut status = pick(status_shapes(object.kind), status);
    if let Kind::Claim(_) = object.kind {
        status.extend(edited_fields(object).map(|edited| ("boundSpec".to_owned(), Value::from(edited))));
    }
    if !status.is_empty() {
        kept.insert("status".to_owned(), Value::Object(status));
    }
    kept
}

/// Which recorded fields of a claim were edited since it was bound. The digests that decide it stay where they are: they could be
/// those of a parameter.
fn edited_fields(object: &Object) -> Option<String> {
    let bound = object.body.pointer("/status/boundSpec").and_then(Value::as_str)?;
    let spec = SpecRecord::of(object.body.get("spec")?);
    let mut edited = spec.fields_that_differ(&SpecRecord::read(bound));
    let recorded = shapes(object.kind);
    let is_amount = |field: &str| field.strip_prefix("resources.requests.").is_some_and(is_plain_amount);
    edited.retain(|field| is_amount(field) || recorded.iter().any(|(name, _)| name == field));
    (!edited.is_empty()).then(|| SpecRecord::edited(&edited).text().to_string())
}

/// What could not be read must not become readable by what is left out of it.
fn keep_unreadable(object: &Object, kept: &mut Value) {
    let field = match object.kind {
        Kind::Claim(_) => "selector",
        Kind::Resource(_) => "capacity",
        Kind::Quota | Kind::ClusterQuota => "limits",
        Kind::Limits => "min",
        Kind::Profile => "scores",
        Kind::Class(_) | Kind::Namespace => return,
    };
    let body = |kept: &Value| json!({"spec": kept["spec"]});
    let read = |kept: &Value| {
        unreadable(&Object { kind: object.kind, metadata: object.metadata.clone(), body: body(kept) })
    };
    if unreadable(object).is_some() && read(kept).is_none() {
        kept["spec"][field] = Value::from("unreadable");
    }
}

fn stub() -> Value {
    json!({"apiVersion": "redacted.conductor.io/v1", "kind": "Redacted"})
}

/// A template that takes from a claim what the class's own takes: a class offers that, and decisions depend on it.
fn class_stub(ty: TypeId, recipe: &Recipe) -> Value {
    let fields = ty.rules().fields.iter().filter(|rule| recipe.used.has_field(rule));
    let mut takes: Vec<String> =
        fields.map(|rule| format!("${{resource.spec[\"{}\"]}}", rule.resource)).collect();
    match recipe.used.amounts() {
        Amounts::All => takes.push("${resource.spec.capacity}".to_owned()),
        Amounts::Named(names) => {
            takes.extend(names.iter().map(|name| format!("${{resource.spec.capacity[\"{name}\"]}}")))
        }
    }
    // Quotas refuse an amount that parameters may decide: of which amounts that is so, and nothing else of them.
    let beside = |name: &&Name| recipe.used.has_amount(name);
    let sized: Vec<&Name> = recipe.sized_by_parameters().collect();
    takes.extend(sized.iter().copied().filter(beside).map(|name| format!("{BESIDE_PARAMETERS}{name}\"]}}")));
    if !sized.is_empty() {
        takes.push(TAKES_PARAMETERS.to_owned());
    }
    let mut stub = stub();
    stub["spec"] = json!({ "takes": takes });
    stub
}

/// What a recorded class says where its templates read parameters, and where they do so beside an amount.
const TAKES_PARAMETERS: &str = "${parameters}";
const BESIDE_PARAMETERS: &str = "${parameters == resource.spec.capacity[\"";

/// Whether the content of a recorded template is what [`class_stub`] writes and nothing else: the names of fields that
/// claims and resources have, and of capacities.
pub(super) fn is_stub_spec(spec: &Value) -> bool {
    let takes = spec.as_object().filter(|spec| spec.len() == 1).and_then(|spec| spec.get("takes"));
    takes.and_then(Value::as_array).is_some_and(|takes| takes.iter().all(is_stub_path))
}

fn is_stub_path(path: &Value) -> bool {
    let Some(path) = path.as_str() else { return false };
    if [TAKES_ALL, TAKES_PARAMETERS, "${resource.spec.capacity}"].contains(&path) {
        return true;
    }
    let named = |before: &str| path.strip_prefix(before)?.strip_suffix("\"]}");
    let is_field =
        |name: &str| TypeId::all().any(|ty| ty.rules().fields.iter().any(|rule| rule.resource == name));
    let is_amount = is_plain_amount;
    named("${resource.spec[\"").is_some_and(is_field)
        || named("${resource.spec.capacity[\"").is_some_and(is_amount)
        || named(BESIDE_PARAMETERS).is_some_and(is_amount)
}

fn is_plain_amount(name: &str) -> bool {
    name.len() <= 63 && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./".contains(&b))
}

/// What a class takes of which nothing is known: it may be everything.
const TAKES_ALL: &str = "${claim}";

/// Recordings that were made before stand-ins said what a class takes: it was not known to refuse anything by it.
pub(super) fn widen_old_class(body: &mut Map<String, Value>) {
    if let Some(template) = body.get_mut("template").filter(|template| **template == stub()) {
        template["spec"] = json!({"takes": [TAKES_ALL]});
    }
}

fn class(ty: TypeId, object: &Object) -> Map<String, Value> {
    let shapes = shapes(object.kind);
    let mut kept = pick(&shapes, Some(&object.body));
    for (field, value) in pick(&shapes, object.body.get("spec")) {
        kept.entry(field).or_insert(value);
    }
    match Class::read(ty, object).recipe {
        Ok(recipe) if recipe.template.is_some() => {
            drop(kept.insert("template".to_owned(), class_stub(ty, &recipe)))
        }
        Ok(_) => {}
        // Unreadable for whatever reason: it stays so.
        Err(_) => drop(kept.insert("template".to_owned(), Value::from("unreadable"))),
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
    let of_class = matches!(kind, Kind::Class(_));
    let body = if of_class { Some(&mut *object) } else { object.get_mut("spec") };
    rename_fields(&shapes(kind), body, names);
    rename_fields(status_shapes(kind), object.get_mut("status"), names);
}

fn rename_fields<N: AsRef<str>>(fields: &[(N, Shape)], value: Option<&mut Value>, names: &mut Pseudonyms) {
    let Some(value) = value else { return };
    for (name, shape) in fields {
        rename_value(shape, value.get_mut(name.as_ref()), names);
    }
}

fn rename_value(shape: &Shape, value: Option<&mut Value>, names: &mut Pseudonyms) {
    match (shape, value) {
        (Shape::Name, value) => text(value, names),
        (Shape::Labels, value) => labels(value, names),
        (Shape::Fields(fields), value) => rename_fields(fields, value, names),
        (Shape::Each(item), Some(Value::Array(items))) => {
            items.iter_mut().for_each(|value| rename_value(item, Some(value), names));
        }
        (Shape::Named(item), Some(Value::Object(map))) => {
            map.values_mut().for_each(|value| rename_value(item, Some(value), names));
        }
        (Shape::Each(_) | Shape::Named(_) | Shape::Leaf, _) => {}
    }
}

fn text(value: Option<&mut Value>, names: &mut Pseudonyms) {
    if let Some(Value::String(name)) = value {
        *name = names.of(name);
    }
}

fn labels(value: Option<&mut Value>, names: &mut Pseudonyms) {
    let Some(Value::Object(labels)) = value else { return };
    let renamed = std::mem::take(labels).into_iter().map(|(key, mut value)| {
        text(Some(&mut value), names);
        (names.of(&key), value)
    });
    *labels = renamed.collect();
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(body: Map<String, Value>) -> Recipe {
        let ty = TypeId::RELATIONAL_DATABASE;
        let object =
            Object { kind: Kind::Class(ty), metadata: Default::default(), body: Value::Object(body) };
        (*Class::read(ty, &object).recipe.expect("it can be read")).clone()
    }

    #[test]
    fn a_recorded_claim_says_which_fields_were_edited_and_no_digest() {
        let was = json!({"engine": "mysql", "parameters": {"password": "hunter2"}});
        let now = json!({"engine": "postgresql", "priority": 3, "parameters": {"password": "hunter3"},
            "resources": {"requests": {"storage": "1Gi"}}});
        let status = json!({"phase": "Bound", "boundSpec": &**SpecRecord::of(&was).text()});
        let kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);
        let object =
            Object { kind, metadata: Default::default(), body: json!({"spec": now, "status": status}) };
        let kept = Redaction::fields_only().redact(&object);
        assert_eq!(kept["status"]["boundSpec"], "edited: engine priority resources.requests.storage");
        let again = json!({"spec": kept["spec"], "status": kept["status"]});
        let again = Redaction::fields_only().redact(&Object { body: again, ..object });
        assert_eq!(again["status"], kept["status"]);
    }

    #[test]
    fn a_recorded_class_offers_what_its_templates_take() {
        let ty = TypeId::RELATIONAL_DATABASE;
        let takes =
            json!({"ha": "${claim.spec[\"highly-available\"]}", "size": "${resource.spec.capacity.storage}"});
        let body =
            json!({"engine": "mysql", "template": {"apiVersion": "x/v1", "kind": "Thing", "spec": takes}});
        let object = Object { kind: Kind::Class(ty), metadata: Default::default(), body: body.clone() };
        let (whole, recorded) = (read(body.as_object().cloned().unwrap_or_default()), class(ty, &object));
        let redacted = read(recorded.clone());
        assert_eq!((&whole.fields, whole.used.amounts()), (&redacted.fields, redacted.used.amounts()));
        let mut again = recorded.clone();
        widen_old_class(&mut again);
        assert_eq!(again, recorded, "it says already what it takes");
        assert!(is_stub_spec(&recorded["template"]["spec"]));
        let mut old = Map::from_iter([("template".to_owned(), stub())]);
        widen_old_class(&mut old);
        assert!(is_stub_spec(&old["template"]["spec"]));
        assert_eq!(read(old).used.amounts(), Amounts::All);
        for size in [
            "${parameters.size}",
            "${has(parameters.size) ? parameters.size : resource.spec.capacity.storage}",
        ] {
            let sized = json!({"capacity": {"storage": {"min": "1Gi", "max": "9Gi"}, "connections": 5},
                "template": {"apiVersion": "x/v1", "kind": "Thing", "spec": {"size": size}}});
            let object = Object { kind: Kind::Class(ty), metadata: Default::default(), body: sized };
            let recorded = class(ty, &object);
            assert!(is_stub_spec(&recorded["template"]["spec"]), "{recorded:?}");
            let recorded = read(recorded);
            let sized: Vec<&str> = recorded.sized_by_parameters().map(|name| &**name).collect();
            assert_eq!(sized, ["storage"], "{size}");
        }
        for content in [
            json!({"takes": ["${resource.spec[\"password\"]}"]}),
            json!({"takes": ["${resource.spec.capacity[\"a secret\"]}"]}),
            json!({"takes": ["hunter2"]}),
            json!({"takes": [], "password": "hunter2"}),
            json!({"image": "db:1"}),
        ] {
            assert!(!is_stub_spec(&content), "{content}");
        }
    }
}
