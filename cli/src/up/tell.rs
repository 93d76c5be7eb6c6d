//! What happens, as it happens: one line when a claim or a resource comes to another phase, with the reason that its
//! condition gives. Everything is read from the API, as anybody could.

use super::resource_of;
use crate::output;
use conductor::api::reasons;
use conductor::model::{Kind, TypeId};
use conductor_apiserver::Embedded;
use futures::TryStreamExt;
use kube::api::{DynamicObject, ListParams, WatchEvent, WatchParams};
use kube::{Api, Client};
use serde_json::Value;
use std::collections::BTreeMap;
use std::pin::pin;
use std::time::Duration;
use tokio::task::JoinSet;

/// Says when writes cannot be kept, and when they can again, until it is dropped.
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
            Some(why) => format!("no write can be kept: {why}"),
            None => "writes are kept again".to_owned(),
        };
        let _ = output::say(&format!("up        {text}"));
    }
}

/// Follows every claim and every resource until it is dropped.
pub async fn follow(client: Client, system_namespace: String) {
    let mut followed = JoinSet::new();
    for ty in TypeId::all() {
        followed.spawn(follow_kind(client.clone(), Kind::Claim(ty), None));
        followed.spawn(follow_kind(client.clone(), Kind::Resource(ty), Some(system_namespace.clone())));
    }
    while followed.join_next().await.is_some() {}
}

async fn follow_kind(client: Client, kind: Kind, namespace: Option<String>) {
    let Some(resource) = resource_of(kind) else { return };
    let api: Api<DynamicObject> = match &namespace {
        Some(namespace) => Api::namespaced_with(client, namespace, &resource),
        None => Api::all_with(client, &resource),
    };
    let mut told = BTreeMap::new();
    loop {
        if let Ok(listed) = api.list(&ListParams::default()).await {
            listed.items.iter().for_each(|object| tell(kind, object, &mut told));
            let revision = listed.metadata.resource_version.unwrap_or_default();
            if let Ok(stream) = api.watch(&WatchParams::default(), &revision).await {
                let mut stream = pin!(stream);
                while let Ok(Some(event)) = stream.try_next().await {
                    match event {
                        WatchEvent::Added(object) | WatchEvent::Modified(object) => {
                            tell(kind, &object, &mut told)
                        }
                        WatchEvent::Deleted(object) => gone(kind, &object, &mut told),
                        WatchEvent::Bookmark(_) | WatchEvent::Error(_) => {}
                    }
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// What was last said of each object.
type Told = BTreeMap<String, String>;

fn tell(kind: Kind, object: &DynamicObject, told: &mut Told) {
    let Some(words) = words(kind, &object.data) else { return };
    let before = told.insert(name(kind, object), words.clone());
    if before.as_ref() != Some(&words) {
        say(kind, object, &words);
    }
}

fn gone(kind: Kind, object: &DynamicObject, told: &mut Told) {
    told.remove(&name(kind, object));
    say(kind, object, "gone");
}

fn say(kind: Kind, object: &DynamicObject, words: &str) {
    let what = if matches!(kind, Kind::Claim(_)) { "claim" } else { "resource" };
    // Whoever reads us may have gone; the controllers go on.
    let _ = output::say(&format!("{what:<9} {:<28} {words}", name(kind, object)));
}

/// Claims by namespace and name, resources by name: they are all in one place.
fn name(kind: Kind, object: &DynamicObject) -> String {
    let name = object.metadata.name.as_deref().unwrap_or_default();
    match (kind, object.metadata.namespace.as_deref()) {
        (Kind::Claim(_), Some(namespace)) => format!("{namespace}/{name}"),
        _ => name.to_owned(),
    }
}

fn words(kind: Kind, object: &Value) -> Option<String> {
    let phase = object["status"]["phase"].as_str()?;
    if phase == "Bound" && matches!(kind, Kind::Resource(_)) {
        return Some(format!("{phase:<10} held by {}", holders(object)));
    }
    let wanted = if matches!(kind, Kind::Claim(_)) { reasons::BOUND } else { reasons::READY };
    let conditions = object["status"]["conditions"].as_array();
    let condition = conditions.into_iter().flatten().find(|condition| condition["type"] == wanted);
    let text = |field: &str| condition.and_then(|c| c[field].as_str()).unwrap_or_default();
    let (reason, message) = (text("reason"), text("message"));
    let reason = if reason == phase { "" } else { reason };
    let why = [reason, message].into_iter().filter(|part| !part.is_empty()).collect::<Vec<_>>().join(": ");
    Some(format!("{phase:<10} {why}").trim_end().to_owned())
}

fn holders(resource: &Value) -> String {
    let held = resource["spec"]["claimRefs"].as_array().into_iter().flatten();
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let names: Vec<String> =
        held.map(|by| format!("{}/{}", text(&by["namespace"]), text(&by["name"]))).collect();
    crate::sim::list(&names)
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
        assert_eq!(words(kind, &json!({})), None);
        assert_eq!(words(kind, &claim("Bound", "Bound", "bound to a")).unwrap(), "Bound      bound to a");
        assert_eq!(
            words(kind, &claim("Pending", "NoMatch", "0/1 fit")).unwrap(),
            "Pending    NoMatch: 0/1 fit"
        );
        assert_eq!(words(kind, &json!({"status": {"phase": "Lost"}})).unwrap(), "Lost");
    }
}
