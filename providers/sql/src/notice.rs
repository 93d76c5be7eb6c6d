//! Events about refused requests of a DatabaseClaim or a claim. Best effort: the status of the object says the same, and an
//! Event is written when that changes, with a name derived from its content, so that a repeat adds none.

use super::api_client::ApiClient;
pub(super) use conductor::api::reasons::event::{INVALID_SPEC, NOT_AS_ASKED};
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use k8s_openapi::jiff::Timestamp;
use kube::api::Api;
use sha2::{Digest, Sha256};

/// Most bytes of an Event's note.
const MESSAGE_MAX: usize = 1_024;
/// Most characters of an object's name in the name of its Event.
const NAME_MAX: usize = 200;

impl ApiClient {
    /// Writes a warning about an object into its namespace.
    pub async fn warn(&self, object: ObjectReference, reason: &str, message: &str) {
        let namespace = object.namespace.clone().unwrap_or_default();
        let api: Api<Event> = Api::namespaced(self.client.clone(), &namespace);
        let event = event(object, reason, message, Timestamp::now());
        if let Err(why) = self.create(&api, &event).await {
            tracing::debug!(%why, reason, "an Event was not written");
        }
    }
}

fn event(object: ObjectReference, reason: &str, message: &str, now: Timestamp) -> Event {
    let name: String = object.name.as_deref().unwrap_or_default().chars().take(NAME_MAX).collect();
    let content = format!("{} {reason} {message}", object.uid.as_deref().unwrap_or_default());
    let digest: String = Sha256::digest(content).iter().take(8).map(|byte| format!("{byte:02x}")).collect();
    let metadata = ObjectMeta {
        name: Some(format!("{}.{digest}", name.trim_end_matches(['.', '-']))),
        namespace: object.namespace.clone(),
        ..ObjectMeta::default()
    };
    Event {
        metadata,
        event_time: Some(MicroTime(now)),
        reporting_controller: Some("conductor.io/conductor".to_owned()),
        reporting_instance: Some("conductor".to_owned()),
        action: Some("Reconciling".to_owned()),
        reason: Some(reason.to_owned()),
        regarding: Some(object),
        note: Some(message[..message.floor_char_boundary(MESSAGE_MAX)].to_owned()),
        type_: Some("Warning".to_owned()),
        ..Event::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_event_is_beside_its_object_and_a_repeat_has_its_name() {
        let object = |uid: &str| ObjectReference {
            kind: Some("DatabaseClaim".to_owned()),
            namespace: Some("team".to_owned()),
            name: Some("orders".to_owned()),
            uid: Some(uid.to_owned()),
            ..ObjectReference::default()
        };
        let at = |uid: &str, message: &str, second: i64| {
            let now = Timestamp::from_second(second).unwrap_or_default();
            event(object(uid), INVALID_SPEC, message, now)
        };
        let first = at("u", "spec.SecretName", 1);
        assert_eq!(first.metadata.namespace.as_deref(), Some("team"));
        assert!(first.metadata.name.as_deref().is_some_and(|name| name.starts_with("orders.")));
        assert_eq!(first.metadata.name, at("u", "spec.SecretName", 2).metadata.name);
        assert_ne!(first.metadata.name, at("u", "spec.Type", 1).metadata.name);
        assert_ne!(first.metadata.name, at("other", "spec.SecretName", 1).metadata.name);
        let long = at("u", &"ä".repeat(2_000), 1);
        assert_eq!(long.note.map(|note| note.len()), Some(MESSAGE_MAX));
    }
}
