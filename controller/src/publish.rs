//! Publishes connections: the only code that reads the Secrets of connections and writes those of applications. No log,
//! event or answer shows their content. Lists and watches Secrets in the system namespace only; reads all others by name.

use super::event_loop::Message;
use super::rest::delete_request;
use super::sink::Reader;
use super::writer::{Executor, Job, METRIC_PUBLISHED, Outcome, retry_read};
use conductor::event::{Answer, Event, PublishEvent};
use conductor::lifecycle::{Meeting, compose, decode, meet};
use conductor::model::{ObjectKey, Publication, PublishedView, Revision, Slot, SourceView, Uid};
use conductor_runtime::backoff;
use conductor_runtime::call::{Refusal, Reply, WriteVerb, found, refusal};
use conductor_runtime::list_watch::News;
use conductor_runtime::rest::{self, RestRequest, Route};
use http::StatusCode;
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;

const NOT_SERVED: &str = "the API server does not serve it";

/// The route of a published kind.
pub(super) fn route(slot: Slot) -> Route {
    let plural = match slot {
        Slot::Service => "services",
        Slot::Endpoints => "endpointslices",
        Slot::Config => "configmaps",
        Slot::Secret => "secrets",
    };
    Route::namespaced(slot.api_version(), plural)
}

/// Reads the published objects of one kind.
pub(super) fn published_reader(slot: Slot) -> Reader<PublishedView> {
    Reader {
        metric: METRIC_PUBLISHED,
        name: slot.kind().to_owned(),
        read: Box::new(move |json| {
            PublishedView::read(slot, &json).ok_or_else(|| "it does not name its claim".to_owned())
        }),
        event: Box::new(move |news| {
            Event::Publish(match news {
                News::Listed { items: published, revision } => {
                    PublishEvent::Listed { slot, published, revision: Revision::read(Some(&revision)) }
                }
                News::Seen(view) => PublishEvent::Seen(view),
                News::Deleted(view) => PublishEvent::Gone(view),
            })
        }),
        advice: NOT_SERVED,
        optional: Some(slot),
    }
}

/// Reads the metadata of the Secrets in the system namespace.
pub(super) fn source_reader() -> Reader<SourceView> {
    Reader {
        metric: METRIC_PUBLISHED,
        name: "Secret".to_owned(),
        read: Box::new(|json| SourceView::read(&json).ok_or_else(|| "it has no metadata".to_owned())),
        event: Box::new(|news| {
            Event::Publish(match news {
                News::Listed { items, revision: _ } => PublishEvent::SourcesListed(items),
                News::Seen(source) => PublishEvent::SourceSeen(source),
                News::Deleted(source) => PublishEvent::SourceGone(source),
            })
        }),
        advice: NOT_SERVED,
        optional: None,
    }
}

/// Shares of the published Secrets, each resynced in its turn, so that they are not all read at once.
const SHARES: u32 = 256;

/// Resyncs every published Secret once in each `period`, a share at a time: no watch shows changes by other clients. Runs
/// until the event loop ends.
pub(super) async fn resync(period: Duration, inbox: mpsc::Sender<Message>) {
    let mut turn = (backoff::random() % u64::from(SHARES)) as u32;
    loop {
        // On average the pause is three quarters of its maximum.
        tokio::time::sleep(backoff::jitter(period / SHARES * 4 / 3)).await;
        let event = Event::Publish(PublishEvent::Recheck { turn, of: SHARES });
        if inbox.send(Message::Event(event)).await.is_err() {
            return;
        }
        turn = (turn + 1) % SHARES;
    }
}

impl Executor {
    /// Reads one Secret that may be published for a claim. Retries until the API answers; a refusal is an answer.
    pub(super) async fn read_secret(&self, claim: Uid, key: ObjectKey, failures: u32) -> Outcome {
        let done = |event| Outcome::Done(Event::Publish(event));
        let Some(request) = get(Slot::Secret, &key) else {
            // The name is invalid.
            return done(PublishEvent::SecretRead { claim, key, found: None });
        };
        self.rate_limit.wait_turn().await;
        let reply = self.call(METRIC_PUBLISHED, request).await;
        if matches!(reply, Reply::Answered { status: StatusCode::FORBIDDEN, .. }) {
            tracing::warn!(%key, "not allowed to read this Secret: see conductor grant NAMESPACE");
            return done(PublishEvent::SecretRefused { claim, key });
        }
        match found(reply) {
            Ok(found) => {
                let found = found.and_then(|secret| PublishedView::read(Slot::Secret, &secret));
                done(PublishEvent::SecretRead { claim, key, found })
            }
            Err(why) => {
                let (failures, pause) = retry_read("Secret".to_owned(), key.to_string(), failures, &why);
                Outcome::Retry(Job::ReadSecret { claim, key, failures }, pause)
            }
        }
    }

    /// Reads the source, composes the published objects, and writes those that differ.
    pub(super) async fn publish(&self, publication: &Publication) -> Answer {
        let source = match &publication.source {
            None => None,
            Some((key, uid, revision)) => match self.side(Slot::Secret, key).await {
                Ok(Some(secret)) if is_meant(&secret, uid, *revision) => Some(decode(&secret)),
                // Another object of that name, or a newer revision: the watch brings it, and the engine plans again.
                Ok(Some(_) | None) => return Answer::Conflict,
                Err(why) => return Answer::Unknown(why),
            },
        };
        let objects = match compose(publication, source.as_ref()) {
            Ok(objects) => objects,
            Err(why) => return Answer::Incomplete(why),
        };
        let mut views = Vec::new();
        for (slot, object) in objects {
            match self.put(slot, &object, publication).await {
                Ok(written) => views.extend(PublishedView::read(slot, &written)),
                Err(answer) => return answer,
            }
        }
        Answer::Published(views)
    }

    /// Creates, replaces or recreates one object, unless it is up to date or belongs to another owner.
    async fn put(&self, slot: Slot, wanted: &Value, publication: &Publication) -> Result<Value, Answer> {
        let text = |field: &str| wanted["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = ObjectKey::new(text("namespace"), text("name"));
        let route = route(slot);
        let path = route.object(&key.namespace, &key.name).ok_or(Answer::Missing)?;
        let found =
            self.side(slot, &key).await.map_err(|why| Answer::Unknown(advised(why, &key.namespace)))?;
        let create = |object| rest::post(&route.collection(Some(&key.namespace)), object);
        let (verb, request) = match meet(found.as_ref(), wanted, publication) {
            Meeting::Rest => return Ok(found.unwrap_or_default()),
            Meeting::Taken => {
                return Err(Answer::Taken(taken(slot, &key)));
            }
            Meeting::Going => return Err(Answer::Conflict),
            Meeting::Create => (WriteVerb::Create, create(wanted)),
            // Pods that mount it miss it until the second call returns: the API offers no shorter way.
            Meeting::Remake { uid, wanted } => {
                let gone = delete_request(&route, &key, &uid, Revision::default());
                self.written(WriteVerb::Delete, gone, &key.namespace).await?;
                (WriteVerb::Create, create(&wanted))
            }
            Meeting::Replace(whole) => (WriteVerb::Patch, rest::put(&path, &whole)),
        };
        self.written(verb, request, &key.namespace).await
    }

    async fn written(
        &self,
        verb: WriteVerb,
        request: Option<RestRequest>,
        namespace: &str,
    ) -> Result<Value, Answer> {
        let request = request.ok_or(Answer::Missing)?;
        match self.send(verb, METRIC_PUBLISHED, request).await {
            Err(why) => Err(Answer::Unknown(why)),
            Ok(Reply::Lost(why)) => Err(Answer::Unknown(why)),
            Ok(Reply::Answered { status, body, .. }) if status.is_success() => Ok(body),
            Ok(Reply::Answered { status, body, .. }) => Err(refused(verb, status, &body, namespace)),
        }
    }

    /// Deletes a published object.
    pub(super) async fn withdraw(&self, slot: Slot, key: &ObjectKey, uid: &str) -> Answer {
        let request = delete_request(&route(slot), key, uid, Revision::default());
        match self.written(WriteVerb::Delete, request, &key.namespace).await {
            Ok(_) => Answer::Deleted,
            Err(answer) => answer,
        }
    }

    /// Reads an object.
    async fn side(&self, slot: Slot, key: &ObjectKey) -> Result<Option<Value>, String> {
        let Some(request) = get(slot, key) else {
            return Ok(None);
        };
        self.rate_limit.wait_turn().await;
        found(self.call(METRIC_PUBLISHED, request).await)
    }
}

fn get(slot: Slot, key: &ObjectKey) -> Option<RestRequest> {
    rest::get(&route(slot).object(&key.namespace, &key.name)?)
}

/// What blocks publishing, and what to do about it.
fn taken(slot: Slot, key: &ObjectKey) -> String {
    let kind = slot.kind();
    let fix = match slot {
        Slot::Secret => "rename it, or set spec.connection.secretName".to_owned(),
        // These are published under no other name.
        Slot::Service | Slot::Endpoints | Slot::Config => {
            format!("the claim's {kind} is named after it: rename that object, or the claim")
        }
    };
    format!("{kind} {key} exists and is not this claim's: {fix}")
}

fn is_meant(secret: &Value, uid: &str, revision: Revision) -> bool {
    let meant = json!({"uid": uid, "resourceVersion": revision.to_string()});
    ["uid", "resourceVersion"].into_iter().all(|field| secret["metadata"][field] == meant[field])
}

/// A refusal for lack of rights, with the command that grants them.
fn advised(why: String, namespace: &str) -> String {
    if !why.to_lowercase().contains("forbidden") {
        return why;
    }
    format!(
        "{why}; grant Conductor the right to publish in this namespace: conductor grant {namespace} | kubectl apply -f -"
    )
}

/// A refusal without any content of the request: the API may quote the object.
fn refused(verb: WriteVerb, status: StatusCode, body: &Value, namespace: &str) -> Answer {
    let reason = body.get("reason").and_then(Value::as_str).unwrap_or_default();
    if status == StatusCode::FORBIDDEN {
        // Rights change, and a ResourceQuota answers alike: retry.
        return Answer::Unknown(advised(format!("the API answers {status}"), namespace));
    }
    match refusal(verb, status, body) {
        Refusal::Conflict => Answer::Conflict,
        Refusal::Missing => Answer::Missing,
        Refusal::Exists => Answer::Exists,
        Refusal::Invalid => {
            let causes = body.pointer("/details/causes").and_then(Value::as_array).into_iter().flatten();
            let fields: Vec<&str> = causes.filter_map(|cause| cause.get("field")?.as_str()).collect();
            Answer::Invalid(format!("{status} {reason} {}", fields.join(", ")).trim().to_owned())
        }
        Refusal::Unknown => Answer::Unknown(format!("{status} {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_for_lack_of_rights_shows_the_command() {
        let quoted = json!({"reason": "Forbidden", "message": "secrets is forbidden: hunter2"});
        let Answer::Unknown(why) = refused(WriteVerb::Create, StatusCode::FORBIDDEN, &quoted, "shop") else {
            panic!("it is not tried again");
        };
        assert!(why.contains("conductor grant shop | kubectl apply -f -"), "{why}");
        assert!(!why.contains("hunter2"), "{why}");
    }

    #[test]
    fn a_conflict_shows_what_to_do() {
        let key = ObjectKey::new("shop", "orders");
        let secret = taken(Slot::Secret, &key);
        assert!(secret.starts_with("Secret shop/orders") && secret.contains("spec.connection.secretName"));
        for slot in Slot::LISTED {
            let why = taken(slot, &key);
            assert!(!why.contains("secretName") && why.contains("rename that object, or the claim"), "{why}");
        }
    }
}
