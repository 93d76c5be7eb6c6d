//! Progress as it happens: one line when a claim or a resource changes its phase, with the reason of its condition. It
//! watches the API as any client could.

use super::resource_of;
use crate::fields::{condition, holders};
use crate::output;
use crate::sim::list;
use conductor::api::reasons;
use conductor::model::{Kind, TypeId};
use conductor_apiserver::Embedded;
use futures::StreamExt;
use kube::api::DynamicObject;
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client};
use serde_json::Value;
use std::collections::BTreeMap;
use std::pin::pin;
use tokio::task::JoinSet;

/// Reports when writes cannot be stored, and when they can again, until it is dropped.
pub async fn follow_store(api: Embedded) {
    let Some(mut trouble) = api.follow_trouble() else { return };
    let mut failed = false;
    while trouble.changed().await.is_ok() {
        let now = trouble.borrow_and_update().clone();
        if now.is_some() == failed {
            continue;
        }
        failed = now.is_some();
        let text = match now {
            Some(why) => format!("writes cannot be stored: {why}"),
            None => "writes are stored again".to_owned(),
        };
        let _ = output::say(&format!("up        {text}"));
    }
}

/// Follows every claim and every resource until it is dropped.
pub async fn follow(client: Client, system_namespace: String) {
    let mut followed = JoinSet::new();
    for ty in TypeId::all() {
        followed.spawn(watch_kind(client.clone(), Kind::Claim(ty), None));
        followed.spawn(watch_kind(client.clone(), Kind::Resource(ty), Some(system_namespace.clone())));
    }
    while followed.join_next().await.is_some() {}
}

async fn watch_kind(client: Client, kind: Kind, namespace: Option<String>) {
    let Some(resource) = resource_of(kind) else { return };
    let api: Api<DynamicObject> = match &namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let mut reported = BTreeMap::new();
    let mut events = pin!(watcher(api, watcher::Config::default()).default_backoff());
    while let Some(event) = events.next().await {
        match event {
            Ok(Event::Apply(object) | Event::InitApply(object)) => report(kind, &object, &mut reported),
            Ok(Event::Delete(object)) => report_deleted(kind, &object, &mut reported),
            Ok(Event::Init | Event::InitDone) | Err(_) => {}
        }
    }
}

/// The last line about each object.
type Reported = BTreeMap<String, String>;

fn report(kind: Kind, object: &DynamicObject, reported: &mut Reported) {
    let Some(state) = state(kind, &object.data) else { return };
    let before = reported.insert(name(kind, object), state.clone());
    if before.as_ref() != Some(&state) {
        say(kind, object, &state);
    }
}

fn report_deleted(kind: Kind, object: &DynamicObject, reported: &mut Reported) {
    reported.remove(&name(kind, object));
    say(kind, object, "deleted");
}

fn say(kind: Kind, object: &DynamicObject, state: &str) {
    let what = if matches!(kind, Kind::Claim(_)) { "claim" } else { "resource" };
    // The reader of the output may be gone; the controllers continue.
    let _ = output::say(&format!("{what:<9} {:<28} {state}", name(kind, object)));
}

/// Claims by namespace and name, resources by name: they share one namespace.
fn name(kind: Kind, object: &DynamicObject) -> String {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    match (kind, object.metadata.namespace.as_deref()) {
        (Kind::Claim(_), Some(namespace)) => format!("{namespace}/{name}"),
        _ => name.to_owned(),
    }
}

fn state(kind: Kind, object: &Value) -> Option<String> {
    let phase = object["status"]["phase"].as_str()?;
    if phase == "Bound" && matches!(kind, Kind::Resource(_)) {
        return Some(format!("{phase:<10} held by {}", list(&holders(object))));
    }
    let wanted = if matches!(kind, Kind::Claim(_)) { reasons::BOUND } else { reasons::READY };
    let condition = condition(object, wanted);
    let text = |field: &str| condition.and_then(|c| c[field].as_str()).unwrap_or_default();
    let (reason, message) = (text("reason"), text("message"));
    let reason = if reason == phase { "" } else { reason };
    let why = [reason, message].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
    Some(format!("{phase:<10} {why}").trim_end().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_phase_comes_with_its_reason() {
        let kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);
        let claim = |phase: &str, reason: &str, message: &str| {
            json!({"status": {"phase": phase, "conditions": [
                {"type": "Ready", "reason": "NotBound", "message": "x"},
                {"type": "Bound", "reason": reason, "message": message},
            ]}})
        };
        assert_eq!(state(kind, &json!({})), None);
        assert_eq!(state(kind, &claim("Bound", "Bound", "bound to a")).unwrap(), "Bound      bound to a");
        assert_eq!(
            state(kind, &claim("Pending", "NoMatch", "0/1 fit")).unwrap(),
            "Pending    NoMatch: 0/1 fit"
        );
        assert_eq!(state(kind, &json!({"status": {"phase": "Lost"}})).unwrap(), "Lost");
    }
}
