//! `conductor get`: objects of the cluster as tables or JSON, with the reason why a claim waits or a class provisions
//! nothing. It decides nothing: it reads the objects as the controller does.

use crate::args::{Format, GetArguments, Listed};
use crate::fields::{condition, holders};
use crate::sim::list as list_names;
use crate::table::objects::{self, Column};
use crate::{cluster, output};
use anyhow::Result;
use conductor::api::reasons;
use conductor::lifecycle::with_checked_templates;

use conductor::model::part::AllowedKinds;
use conductor::model::{Class, Kind, Name, Object, TypeId};
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};
use std::io::Write;

/// `conductor get`.
pub fn get(arguments: &GetArguments) -> Result<()> {
    let objects = cluster::block_on(list(arguments))?;
    let mut out = output::stdout();
    match arguments.output {
        Format::Json => {
            let items: Vec<Value> = objects.iter().map(Object::to_json).collect();
            output::json(&mut out, &json!({"apiVersion": "v1", "kind": "List", "items": items}))?;
        }
        Format::Table if objects.is_empty() => output::diagnostic("no objects found"),
        Format::Table => {
            let used = used_default(&objects);
            let row = |object| row(arguments.what, object, used.as_ref());
            let rows: Vec<Vec<String>> = objects.iter().map(row).collect();
            objects::write(&mut output::sanitized(&mut out), columns(arguments.what), &rows)?;
        }
    }
    Ok(out.flush()?)
}

async fn list(arguments: &GetArguments) -> Result<Vec<Object>> {
    let (client, own) = cluster::connect(&arguments.cluster).await?;
    let namespace = arguments.namespace.as_ref().unwrap_or(&own);
    let namespace = (!arguments.all_namespaces).then_some(namespace.as_str());
    let system = arguments.cluster.system_namespace.as_str();
    let mut objects = Vec::new();
    for kind in kinds(arguments.what) {
        let within = match kind {
            Kind::Claim(_) | Kind::Quota => namespace,
            // These live in the system namespace, or are cluster-scoped.
            Kind::Resource(_)
            | Kind::Class(_)
            | Kind::ClusterQuota
            | Kind::Limits
            | Kind::Profile
            | Kind::Namespace => None,
        };
        objects.extend(conductor_controller::list(&client, kind, within, system).await?);
        // Without permission to list all namespaces there is no warning.
        for stray in conductor_controller::list_outside(&client, kind, system).await.unwrap_or_default() {
            let of = |text: Option<String>| text.unwrap_or_default();
            let (namespace, name) = (of(stray.metadata.namespace), of(stray.metadata.name));
            output::diagnostic(&format!(
                "warning: {} {namespace}/{name} is ignored: Conductor reads this kind only in namespace {system}",
                kind.name()
            ));
        }
    }
    Ok(objects)
}

/// The class of claims that name none: of several default classes the newest, then the first by name.
fn used_default(objects: &[Object]) -> Option<(TypeId, Name)> {
    let classes = objects.iter().filter_map(|object| match object.kind {
        Kind::Class(ty) => Some(Class::read(ty, object)),
        _ => None,
    });
    let defaults = classes.filter(|class| class.is_default && !class.meta.deleting);
    let newest = |class: &Class| (std::cmp::Reverse(class.meta.created), class.meta.key.name.clone());
    defaults.min_by_key(newest).map(|class| (class.ty, class.meta.key.name))
}

/// Why a class provisions nothing, is not the default despite its annotation, or cannot be checked.
fn class_message(object: &Object, used: Option<&(TypeId, Name)>) -> Option<String> {
    let Kind::Class(ty) = object.kind else { return None };
    let class = with_checked_templates(Class::read(ty, object), &AllowedKinds::default());
    let unused = used.filter(|(_, name)| class.is_default && *name != class.meta.key.name);
    let broken = class.recipe.as_ref().err().map(|error| format!("provisions nothing: {error}"));
    let is_unchecked = class.recipe.as_ref().is_ok_and(|recipe| recipe.checks_no_sizes());
    let unchecked =
        || is_unchecked.then(|| "declares no capacity or version: Conductor does not check them".to_owned());
    broken
        .or_else(|| unused.map(|(_, name)| format!("not used as the default: {name} is newer")))
        .or_else(unchecked)
}

fn kinds(what: Listed) -> Vec<Kind> {
    match what {
        Listed::Claims => TypeId::all().map(Kind::Claim).collect(),
        Listed::Resources => TypeId::all().map(Kind::Resource).collect(),
        Listed::Classes => TypeId::all().map(Kind::Class).collect(),
        Listed::Quotas => vec![Kind::Quota, Kind::ClusterQuota],
    }
}

/// The columns, and the order in which a narrow terminal drops them.
fn columns(what: Listed) -> &'static [Column] {
    match what {
        Listed::Claims => {
            &[("CLAIM", 0), ("PHASE", 0), ("RESOURCE", 3), ("CLASS", 2), ("AGE", 1), ("MESSAGE", 0)]
        }
        Listed::Resources => &[
            ("RESOURCE", 0),
            ("PHASE", 0),
            ("ENGINE", 3),
            ("VERSION", 4),
            ("CLASS", 2),
            ("AGE", 1),
            ("CLAIMS", 0),
        ],
        Listed::Classes => {
            &[("CLASS", 0), ("RECLAIM", 2), ("DEFAULT", 3), ("AGE", 1), ("IMPLEMENTATION", 4), ("MESSAGE", 0)]
        }
        Listed::Quotas => &[("QUOTA", 0), ("AGE", 1), ("USED", 0)],
    }
}

fn row(what: Listed, object: &Object, used: Option<&(TypeId, Name)>) -> Vec<String> {
    let metadata = &object.metadata;
    let name = metadata.name.clone().unwrap_or_default();
    let qualified = match metadata.namespace.as_deref() {
        Some(namespace) => format!("{namespace}/{name}"),
        None => name.clone(),
    };
    let at = |path: &str| text(object.body.pointer(path));
    let age = age(object, Timestamp::now());
    match what {
        Listed::Claims => {
            let resource = at("/status/resourceRef/name");
            vec![qualified, at("/status/phase"), resource, at("/spec/class"), age, message(object)]
        }
        Listed::Resources => {
            // The running version, if the resource reports one.
            let version = object.body.pointer("/status/version").or(object.body.pointer("/spec/version"));
            let (engine, version) = (at("/spec/engine"), text(version));
            let holders = holders(&object.body);
            let claims = if holders.is_empty() { "-".to_owned() } else { list_names(&holders) };
            vec![name, phase(object), engine, version, at("/spec/class"), age, claims]
        }
        Listed::Classes => {
            let field = |name: &str| {
                let body = &object.body;
                body.get(name).or_else(|| body.pointer(&format!("/spec/{name}"))).cloned()
            };
            let annotations = metadata.annotations.as_ref();
            let default = annotations.and_then(|a| a.get(conductor::api::names::IS_DEFAULT_CLASS));
            let is_used = used.is_none_or(|(_, used)| *used == Name::from(name.as_str()));
            let is_default = match default.is_some_and(|v| v == "true") {
                true if is_used => "yes",
                true => "unused",
                false => "-",
            };
            let message = class_message(object, used).unwrap_or("-".to_owned());
            let template = field("template").and_then(|t| Some(t.get("kind")?.as_str()?.to_owned()));
            // It stays as long as it has resources, and provisions none.
            let deleting = metadata.deletion_timestamp.is_some();
            let name = if deleting { format!("{name} (deleting, waits for its resources)") } else { name };
            let reclaim = field("reclaimPolicy").map_or("Retain".to_owned(), |policy| text(Some(&policy)));
            vec![name, reclaim, is_default.to_owned(), age, template.unwrap_or("-".to_owned()), message]
        }
        Listed::Quotas => vec![qualified, age, at("/status/summary")],
    }
}

/// A resource's phase, and whether it is cordoned, as kubectl shows it for nodes.
fn phase(resource: &Object) -> String {
    let phase = text(resource.body.pointer("/status/phase"));
    match resource.body.pointer("/spec/unschedulable") {
        Some(Value::Bool(true)) => format!("{phase},SchedulingDisabled"),
        _ => phase,
    }
}

/// The value as text, `-` if it is empty.
fn text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => "-".to_owned(),
        Some(Value::String(text)) if text.is_empty() => "-".to_owned(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
    }
}

/// Why a claim has its phase: from its condition `Bound`, and once it is bound from `Ready`.
pub fn message(object: &Object) -> String {
    match condition(&object.body, reasons::BOUND) {
        None => "not reconciled yet: is a controller running?".to_owned(),
        Some(bound) if bound["status"] != "True" => reason_and_message(bound),
        Some(bound) => {
            let unmet = (bound["reason"] == reasons::bound::NOT_AS_ASKED).then(|| reason_and_message(bound));
            let messages: Vec<String> = unready(object).into_iter().chain(unmet).collect();
            if messages.is_empty() { "-".to_owned() } else { messages.join("; ") }
        }
    }
}

/// Why the application of a bound claim cannot use it yet.
pub fn unready(claim: &Object) -> Option<String> {
    condition(&claim.body, reasons::BOUND).filter(|bound| bound["status"] == "True")?;
    let ready = condition(&claim.body, reasons::READY).filter(|ready| ready["status"] != "True")?;
    Some(format!("not ready: {}", reason_and_message(ready)))
}

fn reason_and_message(condition: &Value) -> String {
    format!("{}: {}", text(condition.get("reason")), text(condition.get("message")))
}

/// The age of an object, in its largest unit.
fn age(object: &Object, now: Timestamp) -> String {
    let Some(created) = &object.metadata.creation_timestamp else { return "-".to_owned() };
    match now.as_second() - created.0.as_second() {
        seconds @ ..120 => format!("{}s", seconds.max(0)),
        seconds @ ..7_200 => format!("{}m", seconds / 60),
        seconds @ ..172_800 => format!("{}h", seconds / 3_600),
        seconds => format!("{}d", seconds / 86_400),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn claim(body: Value) -> Object {
        let metadata = serde_json::from_value(json!({
            "name": "db", "namespace": "team", "creationTimestamp": "2026-01-01T00:00:00Z",
        }));
        let kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);
        Object { kind, metadata: metadata.expect("it is metadata"), body }
    }

    #[test]
    fn a_claim_shows_why_it_waits() {
        let waiting = json!({"type": "Bound", "status": "False", "reason": "NoMatch", "message": "0/3 fit"});
        let bound = json!({"type": "Bound", "status": "True", "reason": "Bound", "message": "bound to x"});
        let unmet = json!({"type": "Bound", "status": "True", "reason": "NotAsAsked",
            "message": "bound to x; it lacks y"});
        let ready = json!({"type": "Ready", "status": "True", "reason": "Published", "message": "x"});
        let unready = json!({"type": "Ready", "status": "False", "reason": "SecretConflict",
            "message": "Secret team/db is not this claim's"});
        for (body, expected) in [
            (json!({}), "not reconciled yet: is a controller running?"),
            (json!({"status": {"conditions": [waiting]}}), "NoMatch: 0/3 fit"),
            (json!({"status": {"conditions": [bound]}}), "-"),
            (json!({"status": {"conditions": [bound, ready]}}), "-"),
            (json!({"status": {"conditions": [unmet, ready]}}), "NotAsAsked: bound to x; it lacks y"),
            (
                json!({"status": {"conditions": [unmet, unready]}}),
                "not ready: SecretConflict: Secret team/db is not this claim's; NotAsAsked: bound to x; it lacks y",
            ),
            (
                json!({"status": {"conditions": [bound, unready]}}),
                "not ready: SecretConflict: Secret team/db is not this claim's",
            ),
        ] {
            assert_eq!(message(&claim(body)), expected);
        }
    }

    fn class(name: &str, created: &str, body: Value) -> Object {
        let metadata = serde_json::from_value(json!({
            "name": name, "namespace": "conductor-system", "creationTimestamp": created,
            "annotations": {"conductor.io/is-default-class": "true"},
        }));
        let kind = Kind::Class(TypeId::RELATIONAL_DATABASE);
        Object { kind, metadata: metadata.expect("it is metadata"), body }
    }

    #[test]
    fn an_unusable_class_and_an_unused_default_say_why() {
        let template =
            json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "${claim.spec.nothing}"}});
        let plain = json!({"apiVersion": "v1", "kind": "ConfigMap"});
        let classes = [
            class("old", "2026-01-01T00:00:00Z", json!({})),
            class("new", "2026-02-01T00:00:00Z", json!({"template": plain})),
            class("broken", "2025-01-01T00:00:00Z", json!({ "template": template })),
            class("unread", "2025-01-01T00:00:00Z", json!({"capacity": 5})),
        ];
        let used = used_default(&classes);
        let shown = |at: usize| {
            let row = row(Listed::Classes, &classes[at], used.as_ref());
            (row[2].clone(), row[5].clone())
        };
        assert_eq!(shown(0), ("unused".into(), "not used as the default: new is newer".into()));
        assert_eq!(
            shown(1),
            ("yes".into(), "declares no capacity or version: Conductor does not check them".into())
        );
        for at in [2, 3] {
            assert!(shown(at).1.starts_with("provisions nothing: "), "{:?}", shown(at));
        }
    }

    #[test]
    fn a_cordoned_resource_shows_scheduling_disabled() {
        let body = |unschedulable: bool| {
            json!({"spec": {"version": "99", "unschedulable": unschedulable},
                "status": {"phase": "Available", "version": "15.18"}})
        };
        let kind = Kind::Resource(TypeId::RELATIONAL_DATABASE);
        let shown = |unschedulable| {
            row(Listed::Resources, &Object { kind, ..claim(body(unschedulable)) }, None)[1..4].join(" ")
        };
        assert_eq!(shown(true), "Available,SchedulingDisabled - 15.18");
        assert_eq!(shown(false), "Available - 15.18");
    }

    #[test]
    fn ages_have_one_unit() {
        let at = |seconds: i64| {
            let created: Timestamp = "2026-01-01T00:00:00Z".parse().expect("it is a time");
            age(&claim(json!({})), Timestamp::from_second(created.as_second() + seconds).expect("a time"))
        };
        let ages = [-5, 59, 180, 7_300, 400_000].map(at);
        assert_eq!(ages, ["0s", "59s", "3m", "2h", "4d"]);
    }
}
