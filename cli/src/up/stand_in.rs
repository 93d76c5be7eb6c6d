//! Stand-ins for operators that do not run here. A class may create a CloudNativePG Cluster or an RDSInstance; on a
//! cluster an operator defines and reconciles that kind. Here a kind that a template names and that has no definition
//! gets one that accepts anything, labelled as a stand-in, and its objects are reported as ready. No database is
//! created. A kind with any other definition belongs to the user, and is left alone.

use super::{definitions, manifests, resource_of};
use crate::output;
use conductor::model::{Kind, TypeId};
use futures::StreamExt;
use futures::stream::{self, BoxStream};
use kube::api::{ApiResource, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::oneshot;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;
use tokio::task::JoinSet;

/// The label of a stand-in's definition.
const STAND_IN: &str = "conductor.io/stand-in";
/// The reason on the condition that a stand-in writes.
const REASON: &str = "StandIn";
/// Operators that report readiness in a field of their own: group, kind, field, value.
const OWN_FIELDS: [(&str, &str, &str, &str); 2] = [
    ("rds.services.k8s.aws", "DBInstance", "dbInstanceStatus", "available"),
    ("acid.zalan.do", "postgresql", "PostgresClusterStatus", "Running"),
];
/// How long the user has to define a kind that a template names.
const PAUSE: Duration = Duration::from_millis(100);

/// A changed object.
enum Changed {
    /// A class or a resource, which may name kinds.
    Template(DynamicObject),
    /// A definition, which may be a stand-in of this run or of an earlier one.
    Definition(DynamicObject),
}

/// Provides stand-ins until it is dropped.
pub async fn provide(client: Client, system_namespace: String) {
    let kinds = TypeId::all().flat_map(|ty| [Kind::Class(ty), Kind::Resource(ty)]).filter_map(resource_of);
    let templates = kinds.map(|kind| follow(Api::namespaced_with(client.clone(), &system_namespace, &kind)));
    let templates = stream::select_all(templates.collect::<Vec<_>>()).map(Changed::Template);
    let defined = follow(Api::all_with(client.clone(), &definitions())).map(Changed::Definition);
    let mut changes = stream::select(templates, defined);
    let (mut checked, mut operated) = (BTreeSet::new(), BTreeSet::new());
    let mut operators = JoinSet::new();
    while let Some(change) = changes.next().await {
        match change {
            // Each kind is checked once: one that is defined later belongs to the user.
            Changed::Template(object) => {
                let new: Vec<_> =
                    templates_of(&object).into_iter().filter(|one| checked.insert(one.clone())).collect();
                if !new.is_empty() {
                    tokio::time::sleep(PAUSE).await;
                }
                for template in new {
                    if needs_stand_in(&client, &template).await {
                        define(&client, &template).await;
                    }
                }
            }
            Changed::Definition(object) => {
                let marked = object.labels().contains_key(STAND_IN);
                if let Some(resource) = served(&object.data).filter(|_| marked)
                    && operated.insert((resource.group.clone(), resource.kind.clone()))
                {
                    operators.spawn(operate(client.clone(), resource));
                }
            }
        }
    }
}

/// Streams every object, and again whenever it changes.
fn follow(api: Api<DynamicObject>) -> BoxStream<'static, DynamicObject> {
    let events = watcher(api, watcher::Config::default()).default_backoff();
    let objects = events.filter_map(async |event| match event {
        Ok(Event::Apply(object) | Event::InitApply(object)) => Some(object),
        Ok(Event::Delete(_) | Event::Init | Event::InitDone) | Err(_) => None,
    });
    objects.boxed()
}

/// The kinds that a class or a resource creates.
fn templates_of(object: &DynamicObject) -> BTreeSet<(String, String)> {
    let mut found = BTreeSet::new();
    named(&object.data, &mut found);
    named(&object.data["spec"], &mut found);
    found
}

/// Adds the kinds under `template` and `templates`, in every form of the latter.
fn named(form: &Value, found: &mut BTreeSet<(String, String)>) {
    let single = form.get("template").into_iter();
    let many = match form.get("templates") {
        Some(Value::Array(items)) => items.iter().collect(),
        Some(Value::Object(items)) => items.values().collect(),
        _ => Vec::new(),
    };
    let inner = many.iter().filter_map(|item| item.get("template"));
    for template in single.chain(many.iter().copied()).chain(inner) {
        let text = |field: &str| template.get(field).and_then(Value::as_str);
        if let (Some(api_version), Some(kind)) = (text("apiVersion"), text("kind")) {
            found.insert((api_version.to_owned(), kind.to_owned()));
        }
    }
}

/// Whether a kind belongs to an operator's group and has no definition. Kubernetes' own groups get no stand-ins.
async fn needs_stand_in(client: &Client, (api_version, kind): &(String, String)) -> bool {
    let Some((group, version)) = api_version.split_once('/') else { return false };
    let foreign = group.contains('.') && !group.ends_with("k8s.io") && !group.ends_with("kubernetes.io");
    let wanted = GroupVersionKind::gvk(group, version, kind);
    foreign && oneshot::pinned_kind(client, &wanted).await.is_err()
}

async fn define(client: &Client, (api_version, kind): &(String, String)) {
    let definition = definition(api_version, kind);
    let line = match manifests::put(client, &definitions(), &definition).await {
        Ok(()) => format!(
            "stand-in  {kind} ({api_version}): no operator runs here, so its objects are only reported as ready"
        ),
        Err(error) => format!("stand-in  {kind} ({api_version}): {error}"),
    };
    let _ = output::say(&line);
}

fn definition(api_version: &str, kind: &str) -> Value {
    let (group, version) = api_version.split_once('/').unwrap_or(("", api_version));
    let plural = plural(&kind.to_lowercase());
    let anything = json!({
        "type": "object", "x-kubernetes-preserve-unknown-fields": true,
        "description": "A stand-in of `conductor up`: its objects have no implementation.",
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}"), "labels": {STAND_IN: "true"}},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{
                "name": version, "served": true, "storage": true, "subresources": {"status": {}},
                "schema": {"openAPIV3Schema": anything},
            }],
        },
    })
}

fn plural(name: &str) -> String {
    match name {
        _ if ["s", "x", "ch", "sh"].iter().any(|end| name.ends_with(end)) => format!("{name}es"),
        _ => format!("{name}s"),
    }
}

fn served(definition: &Value) -> Option<ApiResource> {
    let text = |at: &str| definition.pointer(at)?.as_str();
    let (group, version) = (text("/spec/group")?, text("/spec/versions/0/name")?);
    let kind = GroupVersionKind::gvk(group, version, text("/spec/names/kind")?);
    Some(ApiResource::from_gvk_with_plural(&kind, text("/spec/names/plural")?))
}

/// Marks every object of the kind as ready.
async fn operate(client: Client, resource: ApiResource) {
    let mut marked = BTreeSet::new();
    let mut objects = follow(Api::all_with(client.clone(), &resource));
    while let Some(object) = objects.next().await {
        make_ready(&client, &resource, &object, &mut marked).await;
    }
}

async fn make_ready(
    client: &Client,
    resource: &ApiResource,
    object: &DynamicObject,
    marked: &mut BTreeSet<String>,
) {
    let (name, uid) = (object.metadata.name.as_deref().unwrap_or_default(), object.metadata.uid.clone());
    if !is_open(&object.data["status"]) || !marked.insert(uid.unwrap_or_default()) {
        return;
    }
    let namespace = object.metadata.namespace.as_deref().unwrap_or_default();
    let ready = json!({"status": ready(&resource.group, &resource.kind, &object.data["spec"])});
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, resource);
    // A deleted object needs no status.
    if api.patch_status(name, &PatchParams::default(), &Patch::Merge(&ready)).await.is_ok() {
        let _ = output::say(&format!("stand-in  {} {name} is reported as ready", resource.kind));
    }
}

/// Whether the status is empty, or was written by a stand-in in an earlier run.
fn is_open(status: &Value) -> bool {
    status.is_null() || status["conditions"][0]["reason"] == REASON
}

/// A ready status in the usual forms, and in the fields of the kind's own operator.
fn ready(group: &str, kind: &str, spec: &Value) -> Value {
    let count = |field: &str| spec[field].as_i64().unwrap_or(1);
    let mut status = json!({
        "phase": "Ready",
        "state": "ready",
        "instances": count("instances"),
        "readyInstances": count("instances"),
        "replicas": count("replicas"),
        "readyReplicas": count("replicas"),
        "conditions": [{
            "type": "Ready", "status": "True", "reason": REASON,
            "message": "written by the stand-in of conductor up; this object has no implementation",
        }],
    });
    let own = OWN_FIELDS.iter().filter(|(of, name, ..)| (*of, *name) == (group, kind));
    for (_, _, field, value) in own {
        status[*field] = Value::from(*value);
    }
    status
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::model::Readiness;
    use conductor::template::Adapters;

    #[test]
    fn kinds_are_found_in_every_form() {
        let mut found = BTreeSet::new();
        let template = |kind: &str| json!({"apiVersion": "a.example.com/v1", "kind": kind});
        named(&json!({"template": template("One")}), &mut found);
        named(
            &json!({"templates": [{"id": "x", "template": template("Two")}, template("Three")]}),
            &mut found,
        );
        named(&json!({"templates": {"x": template("Four")}}), &mut found);
        named(&json!({"template": 7, "templates": "no"}), &mut found);
        let kinds: Vec<&str> = found.iter().map(|(_, kind)| kind.as_str()).collect();
        assert_eq!(kinds, ["Four", "One", "Three", "Two"]);
    }

    #[test]
    fn every_adapter_accepts_a_stand_ins_status() {
        for ((group, kind), adapter) in Adapters::builtin().all() {
            let object =
                json!({"metadata": {"name": "a"}, "spec": {}, "status": ready(group, kind, &json!({}))});
            assert_eq!(adapter.readiness(&object), Some(Readiness::Ready), "{kind}.{group}");
        }
    }

    #[test]
    fn a_status_by_an_operator_is_left_alone() {
        assert!(is_open(&Value::Null) && is_open(&ready("a", "b", &json!({}))));
        assert!(!is_open(&json!({"conditions": [{"type": "Ready", "reason": "ClusterIsReady"}]})));
    }

    #[test]
    fn a_stand_in_is_labelled() {
        let made = definition("postgresql.cnpg.io/v1", "Cluster");
        assert_eq!(made["metadata"]["name"], "clusters.postgresql.cnpg.io");
        assert_eq!(made["metadata"]["labels"][STAND_IN], "true");
        assert_eq!(served(&made).unwrap().plural, "clusters");
        assert_eq!(plural("redis"), "redises");
    }
}
