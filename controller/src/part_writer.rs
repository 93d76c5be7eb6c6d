//! Creates, updates, deletes and reads implementation objects (parts). Creates by POST, which never changes an object
//! that exists, and updates by server-side apply, which changes no field but ours.

use super::part_watch::{METRIC, MissingRoute, find_route};
use super::response;
use super::rest::delete_request;
use super::writer::{Executor, Job, Outcome, retry_read};
use conductor::action::PartAction;
use conductor::event::{Answer, Event, PartEvent};
use conductor::model::{ObjectKey, Part, PartKey, PartKind, Revision};
use conductor_runtime::call::{Reply, WriteVerb, found};
use conductor_runtime::rest::{self, FIELD_MANAGER, RestRequest, Route};
use serde_json::{Value, json};

impl Executor {
    pub(super) async fn execute_part(&self, action: PartAction, failures: u32) -> Outcome {
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
        Outcome::Done(Event::Answered { id, answer })
    }

    async fn create_part(&self, part: &Part) -> Answer {
        let body = part.to_json();
        let namespace = part.metadata.namespace.as_deref();
        self.write_part(WriteVerb::Create, &part.kind, |route| {
            namespace.and_then(|namespace| rest::post(&route.collection(Some(namespace)), &body))
        })
        .await
    }

    async fn delete_part(&self, key: &PartKey, uid: &str, revision: Revision) -> Answer {
        self.write_part(WriteVerb::Delete, &key.kind, |route| {
            delete_request(route, &object_key(key), uid, revision)
        })
        .await
    }

    /// Sends two requests once: the first hands the fields of our POST over to server-side apply, which would otherwise
    /// not remove those that are no longer wanted.
    async fn update_part(&self, part: &Part, uid: &str, revision: Revision) -> Answer {
        let key = part.key();
        let route = match self.route(&key.kind).await {
            Ok(route) => route,
            Err(answer) => return answer,
        };
        let Some(path) = route.object(&key.namespace, &key.name) else { return Answer::Missing };
        let mut revision = revision.to_string();
        match self.raw(&path).await {
            Ok(Some(found)) if text(&found, "/metadata/resourceVersion") != revision => {
                return Answer::Conflict;
            }
            Ok(Some(found)) => {
                if let Some(patch) = hand_over(&found) {
                    let request = rest::json_patch(&path, &patch);
                    match self.send_part(WriteVerb::Patch, &key.kind, request).await {
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
        self.send_part(WriteVerb::Patch, &key.kind, rest::apply(&path, &body)).await
    }

    /// The route of a kind, for writing. Every write of a part passes here: kinds that are denied, not on the
    /// installation's list or not served are refused.
    async fn route(&self, kind: &PartKind) -> Result<Route, Answer> {
        if kind.is_denied() || !self.allowed_kinds.allows(kind) {
            return Err(Answer::Invalid(format!("classes may not create objects of kind {kind}")));
        }
        find_route(&self.routes, kind).await.map_err(|no_route| match no_route {
            MissingRoute::Missing(why) => Answer::Invalid(format!("kind {kind}: {why:?}")),
            MissingRoute::Unknown(why) => Answer::Unknown(why),
        })
    }

    async fn write_part(
        &self,
        verb: WriteVerb,
        kind: &PartKind,
        request: impl FnOnce(&Route) -> Option<RestRequest>,
    ) -> Answer {
        match self.route(kind).await {
            Ok(route) => self.send_part(verb, kind, request(&route)).await,
            Err(answer) => answer,
        }
    }

    async fn send_part(&self, verb: WriteVerb, kind: &PartKind, request: Option<RestRequest>) -> Answer {
        let Some(request) = request else {
            return Answer::Invalid("it has no namespace or an invalid name".to_owned());
        };
        match self.send(verb, METRIC, request).await {
            Ok(reply) => response::to_part_write(verb, kind, reply),
            Err(why) => Answer::Unknown(why),
        }
    }

    async fn read_part(&self, key: PartKey, failures: u32) -> Outcome {
        match self.find_part(&key).await {
            Ok(found) => {
                let found = found.map(Box::new);
                Outcome::Done(Event::Part(PartEvent::Read { key, found }))
            }
            Err(why) => {
                let (failures, pause) =
                    retry_read(key.kind.to_string(), key.name.to_string(), failures, &why);
                Outcome::Retry(Job::Part { action: PartAction::Read { key }, failures }, pause)
            }
        }
    }

    /// Reads a part. A kind that is not served does not prove that its objects were deleted.
    async fn find_part(&self, key: &PartKey) -> Result<Option<Part>, String> {
        let route = find_route(&self.routes, &key.kind).await.map_err(|no_route| format!("{no_route:?}"))?;
        let Some(path) = route.object(&key.namespace, &key.name) else { return Ok(None) };
        let found = self.raw_reply(&path).await.map(|reply| response::to_part_read(&key.kind, reply));
        found.unwrap_or(Ok(None)).inspect_err(|_| self.routes.forget(&key.kind.api_version, &key.kind.kind))
    }

    /// Reads the whole object at a path.
    async fn raw(&self, path: &str) -> Result<Option<Value>, String> {
        self.raw_reply(path).await.map_or(Ok(None), found)
    }

    async fn raw_reply(&self, path: &str) -> Option<Reply> {
        let request = rest::get(path)?;
        self.rate_limit.wait_turn().await;
        Some(self.call(METRIC, request).await)
    }
}

/// The patch that hands the fields of our POST over to server-side apply; `None` where there are none. Tied to the
/// revision of `object`.
fn hand_over(object: &Value) -> Option<Value> {
    let managers = object.pointer("/metadata/managedFields")?.as_array()?;
    let is_ours = |entry: &Value| {
        text(entry, "/manager") == FIELD_MANAGER
            && text(entry, "/operation") == "Update"
            && text(entry, "/subresource").is_empty()
    };
    let handed = |entry: &Value| {
        let mut entry = entry.clone();
        if is_ours(&entry) {
            entry["operation"] = Value::from("Apply");
        }
        entry
    };
    managers.iter().any(is_ours).then(|| {
        json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": object.pointer("/metadata/resourceVersion")},
            {"op": "replace", "path": "/metadata/managedFields", "value": managers.iter().map(handed).collect::<Vec<_>>()},
        ])
    })
}

fn object_key(key: &PartKey) -> ObjectKey {
    ObjectKey { namespace: key.namespace.clone(), name: key.name.clone() }
}

fn text<'a>(value: &'a Value, pointer: &str) -> &'a str {
    value.pointer(pointer).and_then(Value::as_str).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn our_fields_of_a_post_are_handed_over_once() {
        let entry = |manager: &str, operation: &str| json!({"manager": manager, "operation": operation, "fieldsV1": {}});
        let object =
            |entries: Vec<Value>| json!({"metadata": {"resourceVersion": "7", "managedFields": entries}});
        let mut of_status = entry("conductor", "Update");
        of_status["subresource"] = json!("status");
        let patch = hand_over(&object(vec![entry("op", "Update"), entry("conductor", "Update"), of_status]));
        let managers = patch.expect("ours is there").pointer("/1/value").cloned().unwrap_or_default();
        let operations: Vec<&str> = (0..3).map(|at| text(&managers[at], "/operation")).collect();
        assert_eq!(operations, ["Update", "Apply", "Update"]);
        assert_eq!(hand_over(&object(vec![entry("conductor", "Apply"), entry("op", "Update")])), None);
    }
}
