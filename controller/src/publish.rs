//! Connections on the wire: the one place that reads the Secrets that they come from, and writes those that
//! applications read. Nothing of what they hold leaves this file: no log, no event, no answer has it. Secrets are listed
//! and watched in the system namespace only; elsewhere each is read by its name.

use super::answer::{self, Ask};
use super::call::Reply;
use super::chance;
use super::owner::Message;
use super::watch::Reader;
use super::wire::{self, Route};
use super::writer::{Hands, Job, METRIC_PUBLISHED, Outcome, ask_again};
use conductor::event::{Answer, Event, PublishEvent};
use conductor::lifecycle::{Meeting, compose, decode, meet};
use conductor::model::{ObjectKey, Publication, PublishedView, Revision, Slot, SourceView, Uid};
use http::{Method, Request, StatusCode};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::sync::mpsc;

/// Where a kind that is published is served.
pub(super) fn route(slot: Slot) -> Route {
    let plural = match slot {
        Slot::Service => "services",
        Slot::Endpoints => "endpointslices",
        Slot::Config => "configmaps",
        Slot::Secret => "secrets",
    };
    Route { base: wire::base(slot.api_version()), plural: plural.to_owned(), namespaced: true }
}

/// Reads what is published, of one kind.
pub(super) struct PublishedReader(pub Slot);

impl Reader for PublishedReader {
    type Item = PublishedView;

    fn metric(&self) -> &'static str {
        METRIC_PUBLISHED
    }

    fn name(&self) -> &str {
        self.0.kind()
    }

    fn read(&self, json: Value) -> Result<PublishedView, String> {
        PublishedView::read(self.0, &json).ok_or_else(|| "it does not say whose it is".to_owned())
    }

    fn listed(&self, published: Vec<PublishedView>, revision: Revision) -> Event {
        Event::Publish(PublishEvent::Listed { slot: self.0, published, revision })
    }

    fn seen(&self, view: PublishedView) -> Event {
        Event::Publish(PublishEvent::Seen(view))
    }

    fn gone(&self, view: PublishedView) -> Event {
        Event::Publish(PublishEvent::Gone(view))
    }

    fn advice(&self) -> String {
        "the API server does not serve it".to_owned()
    }

    fn refused(&self) -> Option<Event> {
        Some(Event::Publish(PublishEvent::Refused(self.0)))
    }
}

/// Reads the Secrets in the system namespace, and nothing of what they hold.
pub(super) struct SourceReader;

impl Reader for SourceReader {
    type Item = SourceView;

    fn metric(&self) -> &'static str {
        METRIC_PUBLISHED
    }

    fn name(&self) -> &str {
        "Secret"
    }

    fn read(&self, json: Value) -> Result<SourceView, String> {
        SourceView::read(&json).ok_or_else(|| "it has no metadata".to_owned())
    }

    fn listed(&self, sources: Vec<SourceView>, _: Revision) -> Event {
        Event::Publish(PublishEvent::SourcesListed(sources))
    }

    fn seen(&self, source: SourceView) -> Event {
        Event::Publish(PublishEvent::SourceSeen(source))
    }

    fn gone(&self, source: SourceView) -> Event {
        Event::Publish(PublishEvent::SourceGone(source))
    }

    fn advice(&self) -> String {
        "the API server does not serve it".to_owned()
    }
}

/// Into how many shares the published Secrets are divided, so that they are not all read at once.
const SHARES: u32 = 256;

/// Has every published Secret read once in each `period`, a share at a time: nobody tells when somebody else changes one.
/// Works until nobody listens any more.
pub(super) async fn recheck(period: Duration, inbox: mpsc::Sender<Message>) {
    let mut turn = (chance::number() % u64::from(SHARES)) as u32;
    loop {
        // A pause is three quarters of `most` on average.
        tokio::time::sleep(chance::pause(period / SHARES * 4 / 3)).await;
        let event = Event::Publish(PublishEvent::Recheck { turn, of: SHARES });
        if inbox.send(Message::Event(event)).await.is_err() {
            return;
        }
        turn = (turn + 1) % SHARES;
    }
}

impl Hands {
    /// Looks at one Secret that may be published for a claim. A read that fails is asked again until it is answered;
    /// that it may not be read is an answer.
    pub(super) async fn read_secret(&self, claim: Uid, key: ObjectKey, failures: u32) -> Outcome {
        let told = |event| Outcome::Happened(Event::Publish(event));
        let Some(request) = route(Slot::Secret).object(&key).and_then(|path| wire::get_request(&path)) else {
            // No object can have that name.
            return told(PublishEvent::SecretRead { claim, key, found: None });
        };
        self.governor.wait_turn().await;
        let reply = self.call(METRIC_PUBLISHED, request).await;
        if matches!(reply, Reply::Answered { status: StatusCode::FORBIDDEN, .. }) {
            tracing::warn!(%key, "may not read this Secret: see conductor grant NAMESPACE");
            return told(PublishEvent::SecretRefused { claim, key });
        }
        match answer::found(reply) {
            Ok(found) => {
                let found = found.and_then(|secret| PublishedView::read(Slot::Secret, &secret));
                told(PublishEvent::SecretRead { claim, key, found })
            }
            Err(why) => {
                let (failures, pause) = ask_again("Secret".to_owned(), key.to_string(), failures, &why);
                Outcome::Again(Job::ReadSecret { claim, key, failures }, pause)
            }
        }
    }

    /// Reads the source, computes the rest, and writes what is not yet as it should be.
    pub(super) async fn publish(&self, publication: &Publication) -> Answer {
        let source = match &publication.source {
            None => None,
            Some((key, uid, revision)) => match self.side(Slot::Secret, key).await {
                Ok(Some(secret)) if is_meant(&secret, uid, *revision) => Some(decode(&secret)),
                // Another life of that name, or a newer state: the watch tells, and it is planned anew.
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

    /// Creates, replaces or remakes one object, unless it is as it should be or is somebody else's.
    async fn put(&self, slot: Slot, wanted: &Value, publication: &Publication) -> Result<Value, Answer> {
        let text = |field: &str| wanted["metadata"][field].as_str().unwrap_or_default().to_owned();
        let key = ObjectKey::new(text("namespace"), text("name"));
        let route = route(slot);
        let path = route.object(&key).ok_or(Answer::Missing)?;
        let found =
            self.side(slot, &key).await.map_err(|why| Answer::Unknown(advised(why, &key.namespace)))?;
        let create = |object| wire::post_request(&route.collection(Some(&key.namespace)), object);
        let (ask, request) = match meet(found.as_ref(), wanted, publication) {
            Meeting::Rest => return Ok(found.unwrap_or_default()),
            Meeting::Taken => {
                return Err(Answer::Taken(taken(slot, &key)));
            }
            Meeting::Going => return Err(Answer::Conflict),
            Meeting::Create => (Ask::Create, create(wanted)),
            // Whoever mounts it has to do without for as long as the second call takes: the API has no shorter way.
            Meeting::Remake { uid, wanted } => {
                let gone = wire::delete_request(&path, &uid, Revision::default());
                self.written(Ask::Delete, gone, &key.namespace).await?;
                (Ask::Create, create(&wanted))
            }
            Meeting::Replace(whole) => {
                (Ask::Patch, wire::request(Method::PUT, &path, Some(("application/json", &whole))))
            }
        };
        self.written(ask, request, &key.namespace).await
    }

    async fn written(
        &self,
        ask: Ask,
        request: Option<Request<Vec<u8>>>,
        namespace: &str,
    ) -> Result<Value, Answer> {
        let request = request.ok_or(Answer::Missing)?;
        match self.send(ask, METRIC_PUBLISHED, request).await {
            Err(why) => Err(Answer::Unknown(why)),
            Ok(Reply::Lost(why)) => Err(Answer::Unknown(why)),
            Ok(Reply::Answered { status, body, .. }) if status.is_success() => Ok(body),
            Ok(Reply::Answered { status, body, .. }) => Err(refused(ask, status, &body, namespace)),
        }
    }

    /// Deletes something that was published.
    pub(super) async fn withdraw(&self, slot: Slot, key: &ObjectKey, uid: &str) -> Answer {
        let path = route(slot).object(key);
        let request = path.and_then(|path| wire::delete_request(&path, uid, Revision::default()));
        match self.written(Ask::Delete, request, &key.namespace).await {
            Ok(_) => Answer::Deleted,
            Err(answer) => answer,
        }
    }

    /// What is at a place now.
    async fn side(&self, slot: Slot, key: &ObjectKey) -> Result<Option<Value>, String> {
        let Some(request) = route(slot).object(key).and_then(|path| wire::get_request(&path)) else {
            return Ok(None);
        };
        self.governor.wait_turn().await;
        answer::found(self.call(METRIC_PUBLISHED, request).await)
    }
}

/// What is in the way of publishing, and what can be done about it.
fn taken(slot: Slot, key: &ObjectKey) -> String {
    let kind = slot.kind();
    let fix = match slot {
        Slot::Secret => "rename it, or set spec.connection.secretName".to_owned(),
        // These have no other name to be published under.
        Slot::Service | Slot::Endpoints | Slot::Config => {
            format!("the claim's {kind} is named after it: rename what is there, or the claim")
        }
    };
    format!("{kind} {key} exists and is not this claim's: {fix}")
}

fn is_meant(secret: &Value, uid: &str, revision: Revision) -> bool {
    let meant = json!({"uid": uid, "resourceVersion": revision.to_string()});
    ["uid", "resourceVersion"].into_iter().all(|field| secret["metadata"][field] == meant[field])
}

/// A refusal for lack of rights, with the command that gives them.
fn advised(why: String, namespace: &str) -> String {
    if !why.to_lowercase().contains("forbidden") {
        return why;
    }
    format!(
        "{why}; give Conductor the right to publish in this namespace: conductor grant {namespace} | kubectl apply -f -"
    )
}

/// A refusal in words that hold nothing of what was sent: the API may quote an object back.
fn refused(ask: Ask, status: StatusCode, body: &Value, namespace: &str) -> Answer {
    let reason = body.get("reason").and_then(Value::as_str).unwrap_or_default();
    if status == StatusCode::FORBIDDEN {
        // Rights come and go, and a quota of Kubernetes answers alike: it is tried again.
        return Answer::Unknown(advised(format!("the API answers {status}"), namespace));
    }
    match answer::refusal(ask, status, body) {
        answer::Refusal::Conflict => Answer::Conflict,
        answer::Refusal::Missing => Answer::Missing,
        answer::Refusal::Exists => Answer::Exists,
        answer::Refusal::Invalid => {
            let causes = body.pointer("/details/causes").and_then(Value::as_array).into_iter().flatten();
            let fields: Vec<&str> = causes.filter_map(|cause| cause.get("field")?.as_str()).collect();
            Answer::Invalid(format!("{status} {reason} {}", fields.join(", ")).trim().to_owned())
        }
        answer::Refusal::Unknown => Answer::Unknown(format!("{status} {reason}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_namespace_without_rights_is_answered_with_the_command() {
        let quoted = json!({"reason": "Forbidden", "message": "secrets is forbidden: hunter2"});
        let Answer::Unknown(why) = refused(Ask::Create, StatusCode::FORBIDDEN, &quoted, "shop") else {
            panic!("it is not tried again");
        };
        assert!(why.contains("conductor grant shop | kubectl apply -f -"), "{why}");
        assert!(!why.contains("hunter2"), "{why}");
    }

    #[test]
    fn what_is_in_the_way_is_answered_with_what_helps() {
        let key = ObjectKey::new("shop", "orders");
        let secret = taken(Slot::Secret, &key);
        assert!(secret.starts_with("Secret shop/orders") && secret.contains("spec.connection.secretName"));
        for slot in Slot::LISTED {
            let told = taken(slot, &key);
            assert!(
                !told.contains("secretName") && told.contains("rename what is there, or the claim"),
                "{told}"
            );
        }
    }
}
