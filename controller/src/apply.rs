//! Parts on the wire: created, brought in line, deleted and read, each under the same rules. A part is created by a
//! POST, which never lands on what is there, and changed by server-side apply, which touches no field but ours.

use super::answer::{self, Ask};
use super::call::Reply;
use super::parts::{METRIC, NoRoute};
use super::wire::{self, Route};
use super::writer::{Hands, Outcome, ask_again};
use conductor::action::PartAction;
use conductor::event::{Answer, Event, PartEvent};
use conductor::model::{ObjectKey, Part, PartKey, PartKind, Revision};
use http::Request;
use serde_json::Value;

impl Hands {
    pub(super) async fn carry_out_part(&self, action: PartAction, failures: u32) -> Outcome {
        let (id, answer) = match action {
            PartAction::Create { id, part } => (id, self.create_part(&part).await),
            PartAction::Update { id, part, uid, revision } => {
                (id, self.update_part(&part, &uid, revision).await)
            }
            PartAction::Delete { id, key, uid, revision } => {
                (id, self.delete_part(&key, &uid, revision).await)
            }
            PartAction::Read { key } => return self.read_part(key, failures).await,
        };
        Outcome::Happened(Event::Answered { id, answer })
    }

    async fn create_part(&self, part: &Part) -> Answer {
        let body = part.to_json();
        let namespace = part.metadata.namespace.as_deref();
        self.write_part(Ask::Create, &part.kind, |route| {
            namespace.and_then(|namespace| wire::post_request(&route.collection(Some(namespace)), &body))
        })
        .await
    }

    async fn delete_part(&self, key: &PartKey, uid: &str, revision: Revision) -> Answer {
        self.write_part(Ask::Delete, &key.kind, |route| {
            wire::delete_request(&route.object(&place(key))?, uid, revision)
        })
        .await
    }

    /// Two calls, once: fields that a POST made are handed over to server-side apply first, or apply would not
    /// know that those which are no longer wanted are ours to remove.
    async fn update_part(&self, part: &Part, uid: &str, revision: Revision) -> Answer {
        let key = part.key();
        let route = match self.route(&key.kind).await {
            Ok(route) => route,
            Err(answer) => return answer,
        };
        let Some(path) = route.object(&place(&key)) else { return Answer::Missing };
        let mut revision = revision.to_string();
        match self.raw(&path).await {
            Ok(Some(found)) if text(&found, "/metadata/resourceVersion") != revision => {
                return Answer::Conflict;
            }
            Ok(Some(found)) => {
                if let Some(patch) = wire::hand_over(&found) {
                    let request = wire::json_patch_request(&path, &patch);
                    match self.send_part(Ask::Patch, &key.kind, request).await {
                        Answer::PartWritten(now) => {
                            revision = now.metadata.resource_version.unwrap_or_default();
                        }
                        answer => return answer,
                    }
                }
            }
            Ok(None) => return Answer::Missing,
            Err(why) => return Answer::Unknown(why),
        }
        let mut body = part.to_json();
        body["metadata"]["uid"] = Value::from(uid);
        body["metadata"]["resourceVersion"] = Value::from(revision);
        self.send_part(Ask::Patch, &key.kind, wire::apply_request(&path, &body)).await
    }

    /// Where a kind is written. Every write of a part passes here, whoever planned it: what is denied, not on the
    /// installation's list or not known to discovery goes no further.
    async fn route(&self, kind: &PartKind) -> Result<Route, Answer> {
        if kind.is_denied() || !self.allowed_kinds.allows(kind) {
            return Err(Answer::Invalid(format!("objects of kind {kind} are not made here")));
        }
        self.routes.find(kind).await.map_err(|no_route| match no_route {
            NoRoute::Missing(why) => Answer::Invalid(format!("kind {kind}: {why:?}")),
            NoRoute::Unknown(why) => Answer::Unknown(why),
        })
    }

    async fn write_part(
        &self,
        ask: Ask,
        kind: &PartKind,
        request: impl FnOnce(&Route) -> Option<Request<Vec<u8>>>,
    ) -> Answer {
        match self.route(kind).await {
            Ok(route) => self.send_part(ask, kind, request(&route)).await,
            Err(answer) => answer,
        }
    }

    async fn send_part(&self, ask: Ask, kind: &PartKind, request: Option<Request<Vec<u8>>>) -> Answer {
        let Some(request) = request else {
            return Answer::Invalid("it has no namespace, or a name that is none".to_owned());
        };
        match self.send(ask, METRIC, request).await {
            Ok(reply) => answer::to_part_write(ask, kind, reply),
            Err(why) => Answer::Unknown(why),
        }
    }

    async fn read_part(&self, key: PartKey, failures: u32) -> Outcome {
        match self.find_part(&key).await {
            Ok(found) => {
                let found = found.map(Box::new);
                Outcome::Happened(Event::Part(PartEvent::Read { key, found }))
            }
            Err(why) => {
                let (failures, pause) = ask_again(key.kind.to_string(), key.name.to_string(), failures, &why);
                Outcome::Again(super::writer::Job::Part { action: PartAction::Read { key }, failures }, pause)
            }
        }
    }

    /// A part as it is now. A kind that is not served does not say that its objects are gone for good.
    async fn find_part(&self, key: &PartKey) -> Result<Option<Part>, String> {
        let route = self.routes.find(&key.kind).await.map_err(|no_route| format!("{no_route:?}"))?;
        let Some(path) = route.object(&place(key)) else { return Ok(None) };
        let found = self.raw_reply(&path).await.map(|reply| answer::to_part_read(&key.kind, reply));
        found.unwrap_or(Ok(None)).inspect_err(|_| self.routes.forget(&key.kind))
    }

    /// What is at a path now, whole.
    async fn raw(&self, path: &str) -> Result<Option<Value>, String> {
        self.raw_reply(path).await.map_or(Ok(None), answer::found)
    }

    async fn raw_reply(&self, path: &str) -> Option<Reply> {
        let request = wire::get_request(path)?;
        self.governor.wait_turn().await;
        Some(self.call(METRIC, request).await)
    }
}

fn place(key: &PartKey) -> ObjectKey {
    ObjectKey { namespace: key.namespace.clone(), name: key.name.clone() }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn fields_of_a_post_are_handed_over_once_and_nobody_elses() {
        let entry = |manager: &str, operation: &str| json!({"manager": manager, "operation": operation, "fieldsV1": {}});
        let object =
            |entries: Vec<Value>| json!({"metadata": {"resourceVersion": "7", "managedFields": entries}});
        let mut of_status = entry("conductor", "Update");
        of_status["subresource"] = json!("status");
        let patch =
            wire::hand_over(&object(vec![entry("op", "Update"), entry("conductor", "Update"), of_status]));
        let managers = patch.expect("ours is there").pointer("/1/value").cloned().unwrap_or_default();
        let operations: Vec<&str> = (0..3).map(|at| text(&managers[at], "/operation")).collect();
        assert_eq!(operations, ["Update", "Apply", "Update"]);
        assert_eq!(wire::hand_over(&object(vec![entry("conductor", "Apply"), entry("op", "Update")])), None);
    }
}
