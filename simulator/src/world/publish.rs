//! Secrets and published connections of the cluster in memory, composed by the same function as the controller's.

use super::{Outcome, World};
use conductor::event::{Answer, Event, PublishEvent};
use conductor::lifecycle::{Meeting, compose, decode, meet};
use conductor::model::{ObjectKey, Publication, PublishedView, Revision, Slot, SourceView, Uid};
use serde_json::Value;

/// Namespace of the Secrets that connections are read from.
const SYSTEM: &str = "conductor-system";

impl World {
    /// Creates or replaces a Secret, ConfigMap or Service, as a user or an operator would. Returns the watch event.
    pub fn put_side(&mut self, slot: Slot, mut object: Value) -> Event {
        self.revision += 1;
        object["metadata"]["resourceVersion"] = Value::from(self.revision.to_string());
        if object["metadata"]["uid"].is_null() {
            self.uids += 1;
            object["metadata"]["uid"] = Value::from(format!("uid-{:06}", self.uids));
        }
        let key = key_of(&object);
        self.side.insert((slot, key), object.clone());
        self.news_of(slot, &object, false)
    }

    /// Deletes one. Returns the watch event.
    pub fn remove_side(&mut self, slot: Slot, key: &ObjectKey) -> Option<Event> {
        let object = self.side.remove(&(slot, key.clone()))?;
        self.revision += 1;
        Some(self.news_of(slot, &object, true))
    }

    /// Finds one.
    pub fn side(&self, slot: Slot, key: &ObjectKey) -> Option<&Value> {
        self.side.get(&(slot, key.clone()))
    }

    /// All of them, sorted.
    pub fn sides(&self) -> impl Iterator<Item = (&(Slot, ObjectKey), &Value)> {
        self.side.iter()
    }

    /// The watch event for an object; a tick if the controller does not watch it. Secrets are watched in one namespace.
    fn news_of(&self, slot: Slot, object: &Value, gone: bool) -> Event {
        if let Some(view) = PublishedView::read(slot, object).filter(|_| slot != Slot::Secret) {
            return Event::Publish(if gone { PublishEvent::Gone(view) } else { PublishEvent::Seen(view) });
        }
        let source =
            SourceView::read(object).filter(|_| slot == Slot::Secret && &*key_of(object).namespace == SYSTEM);
        match source {
            Some(source) if gone => Event::Publish(PublishEvent::SourceGone(source)),
            Some(source) => Event::Publish(PublishEvent::SourceSeen(source)),
            None => Event::Tick,
        }
    }

    /// The first events for a watcher: lists of everything published and of the Secrets that connections are read from.
    pub fn published(&self) -> Vec<Event> {
        let revision = Revision(self.revision);
        let of =
            |slot: Slot| self.side.iter().filter(move |((s, _), _)| *s == slot).map(|(_, object)| object);
        let listed = |slot: Slot| {
            let published = of(slot).filter_map(|object| PublishedView::read(slot, object)).collect();
            Event::Publish(PublishEvent::Listed { slot, published, revision })
        };
        let sources = of(Slot::Secret).filter(|secret| &*key_of(secret).namespace == SYSTEM);
        let sources = PublishEvent::SourcesListed(sources.filter_map(SourceView::read).collect());
        Slot::LISTED.map(listed).into_iter().chain([Event::Publish(sources)]).collect()
    }

    /// Answers a live read of a Secret that may be published for a claim.
    pub(super) fn read_secret(&self, claim: &Uid, key: &ObjectKey) -> Event {
        let found = self.side(Slot::Secret, key).and_then(|secret| PublishedView::read(Slot::Secret, secret));
        Event::Publish(PublishEvent::SecretRead { claim: claim.clone(), key: key.clone(), found })
    }

    /// Publishes a connection, as the controller does.
    pub(super) fn publish(&mut self, publication: &Publication) -> (Answer, Vec<Event>) {
        let source = match &publication.source {
            None => None,
            Some((key, uid, revision)) => match self.side(Slot::Secret, key) {
                Some(secret)
                    if secret["metadata"]["uid"] == **uid
                        && secret["metadata"]["resourceVersion"] == revision.to_string() =>
                {
                    Some(decode(secret))
                }
                Some(_) | None => return (Answer::Conflict, Vec::new()),
            },
        };
        let objects = match compose(publication, source.as_ref()) {
            Ok(objects) => objects,
            Err(why) => return (Answer::Incomplete(why), Vec::new()),
        };
        let (mut views, mut news) = (Vec::new(), Vec::new());
        for (slot, object) in objects {
            let key = key_of(&object);
            let wanted = match meet(self.side(slot, &key), &object, publication) {
                Meeting::Taken => {
                    let why = format!("{} {key} exists and is not this claim's", slot.kind());
                    return (Answer::Taken(why), news);
                }
                Meeting::Going => return (Answer::Conflict, news),
                Meeting::Create => Some(object),
                Meeting::Replace(whole) => {
                    match self.side(slot, &key).and_then(|old| unchangeable(old, &whole)) {
                        Some(field) => return (Answer::Invalid(format!("422 Invalid {field}")), news),
                        None => Some(whole),
                    }
                }
                Meeting::Remake { uid, wanted } => {
                    let there = self.side(slot, &key).is_some_and(|old| old["metadata"]["uid"] == *uid);
                    match self.remove_side(slot, &key).filter(|_| there) {
                        Some(gone) => news.push(gone),
                        None => return (Answer::Conflict, news),
                    }
                    Some(wanted)
                }
                Meeting::Rest => None,
            };
            news.extend(wanted.map(|object| self.put_side(slot, object)));
            views.extend(self.side(slot, &key).and_then(|object| PublishedView::read(slot, object)));
        }
        (Answer::Published(views), news)
    }

    pub(super) fn withdraw(&mut self, slot: Slot, key: &ObjectKey, uid: &str) -> Outcome {
        match self.side(slot, key) {
            None => Outcome::refused(Answer::Missing),
            Some(object) if object["metadata"]["uid"] != *uid => Outcome::refused(Answer::Conflict),
            Some(_) => Outcome { answer: Answer::Deleted, seen: self.remove_side(slot, key) },
        }
    }
}

/// The immutable field that a write would change.
fn unchangeable(old: &Value, new: &Value) -> Option<&'static str> {
    let locked = old["immutable"] == true && old.get("data") != new.get("data");
    let fixed = ["type", "addressType"].into_iter().find(|field| old.get(*field) != new.get(*field));
    if locked { Some("data") } else { fixed }
}

fn key_of(object: &Value) -> ObjectKey {
    let text = |field: &str| object["metadata"][field].as_str().unwrap_or_default().to_owned();
    ObjectKey::new(text("namespace"), text("name"))
}
