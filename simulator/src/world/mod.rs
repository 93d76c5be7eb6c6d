//! A cluster in memory: objects with revisions, UIDs, finalizers and preconditions, as the API server keeps them.
//! It stores and answers; it never decides. Faults are the caller's: what is not delivered is not delivered.

mod parts;
mod publish;

use conductor::action::{Action, Change, PartAction};
use conductor::event::{Answer, Event, Gone, WhyMissing};
use conductor::model::{Kind, Object, ObjectKey, Part, PartKey, PartKind, Slot, WriteId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// All objects, by kind and place.
#[derive(Clone, Debug, Default)]
pub struct World {
    objects: BTreeMap<(Kind, ObjectKey), Object>,
    parts: BTreeMap<PartKey, Part>,
    part_kinds: BTreeSet<PartKind>,
    /// Why kinds that are not served are not, where it is not that they are not installed.
    missing_kinds: BTreeMap<PartKind, WhyMissing>,
    /// Secrets, and what is published from them.
    side: BTreeMap<(Slot, ObjectKey), Value>,
    revision: u64,
    uids: u64,
}

/// What a write did to the world: the answer to its author, and what a watch would show.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The answer.
    pub answer: Answer,
    /// The watch event, where anything changed.
    pub seen: Option<Event>,
}

impl World {
    /// An empty world.
    pub fn new() -> World {
        World::default()
    }

    /// Puts an object in, new or in place of another, as a user's apply would. Keeps the UID of an
    /// object that is there. Returns what a watch would show.
    pub fn put(&mut self, mut object: Object) -> Event {
        let key = key_of(&object);
        if object.metadata.uid.is_none() {
            let known = self.objects.get(&(object.kind, key.clone())).and_then(|o| o.metadata.uid.clone());
            object.metadata.uid = Some(known.unwrap_or_else(|| {
                self.uids += 1;
                format!("uid-{:06}", self.uids)
            }));
        }
        self.store(key, object)
    }

    fn store(&mut self, key: ObjectKey, mut object: Object) -> Event {
        self.revision += 1;
        object.metadata.resource_version = Some(self.revision.to_string());
        self.objects.insert((object.kind, key), object.clone());
        Event::Seen(object)
    }

    /// The object at a place.
    pub fn get(&self, kind: Kind, key: &ObjectKey) -> Option<&Object> {
        self.objects.get(&(kind, key.clone()))
    }

    /// Every object, in order.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values()
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Changes an object by hand, as an administrator would. Nothing where it is not there.
    pub fn edit(&mut self, kind: Kind, key: &ObjectKey, edit: impl FnOnce(&mut Object)) -> Option<Event> {
        let before = self.get(kind, key)?.clone();
        let mut object = before.clone();
        edit(&mut object);
        count_generation(&before, &mut object);
        Some(self.settle(key.clone(), object))
    }

    /// Asks for an object's deletion: it is gone at once, or once its finalizers are.
    pub fn delete(&mut self, kind: Kind, key: &ObjectKey) -> Option<Event> {
        let mut object = self.get(kind, key)?.clone();
        object.metadata.deletion_timestamp.get_or_insert(MetaTime(Timestamp::UNIX_EPOCH));
        Some(self.settle(key.clone(), object))
    }

    /// Stores a changed object, or lets it go if it is being deleted and nothing holds it.
    fn settle(&mut self, key: ObjectKey, object: Object) -> Event {
        let finalized = object.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
        if object.metadata.deletion_timestamp.is_some() && finalized {
            self.revision += 1;
            self.objects.remove(&(object.kind, key.clone()));
            let uid = object.metadata.uid.unwrap_or_default();
            return Event::Gone(Gone { kind: object.kind, key, uid: uid.into() });
        }
        self.store(key, object)
    }

    /// Carries out what was asked for, and tells what its author and a watch would hear of it. Notes and alarms
    /// are not the world's business.
    pub fn carry_out(&mut self, action: &Action) -> Vec<Event> {
        match action {
            Action::Read { kind, key } => {
                let (kind, key) = (*kind, key.clone());
                let found = self.get(kind, &key).cloned();
                vec![Event::Read { kind, key, found }]
            }
            Action::Follow(kind) => vec![self.follow(kind)],
            Action::Part(PartAction::Read { key }) => self.read_part(key).into_iter().collect(),
            Action::ReadSecret { claim, key } => vec![self.read_secret(claim, key)],
            Action::Publish { id, publication } => {
                let (answer, news) = self.publish(publication);
                std::iter::once(Event::Answered { id: *id, answer }).chain(news).collect()
            }
            Action::Write(_)
            | Action::Create { .. }
            | Action::Delete { .. }
            | Action::Part(_)
            | Action::Withdraw { .. }
            | Action::Tell(_)
            | Action::WakeAt(_) => {
                let Some((id, outcome)) = self.apply(action) else { return Vec::new() };
                std::iter::once(Event::Answered { id, answer: outcome.answer }).chain(outcome.seen).collect()
            }
        }
    }

    /// Carries out a write, create or delete. Other actions change nothing and have no answer here.
    pub fn apply(&mut self, action: &Action) -> Option<(WriteId, Outcome)> {
        match action {
            Action::Write(write) => {
                let found = self.get(write.kind, &write.key).cloned();
                let outcome = match found {
                    None => Outcome::refused(Answer::Missing),
                    Some(object) if object.metadata.uid.as_deref() != Some(&*write.uid) => {
                        Outcome::refused(Answer::Conflict)
                    }
                    Some(object) if write.revision.is_some_and(|r| revision_of(&object) != r.to_string()) => {
                        Outcome::refused(Answer::Conflict)
                    }
                    Some(object) => self.change(&write.key, object, &write.change),
                };
                Some((write.id, outcome))
            }
            Action::Create { id, object } => Some((*id, self.create(object))),
            Action::Delete { id, kind, key, uid, revision } => {
                let found = self.get(*kind, key);
                let outcome = match found {
                    None => Outcome::refused(Answer::Missing),
                    Some(object)
                        if object.metadata.uid.as_deref() != Some(&**uid)
                            || revision_of(object) != revision.to_string() =>
                    {
                        Outcome::refused(Answer::Conflict)
                    }
                    Some(_) => {
                        let seen = self.delete(*kind, key);
                        let answer = match self.get(*kind, key) {
                            Some(object) => Answer::Written(Box::new(object.clone())),
                            None => Answer::Deleted,
                        };
                        Outcome { answer, seen }
                    }
                };
                Some((*id, outcome))
            }
            Action::Part(action) => self.apply_part(action),
            Action::Publish { id, publication } => {
                let answer = self.publish(publication).0;
                Some((*id, Outcome { answer, seen: None }))
            }
            Action::Withdraw { id, slot, key, uid } => Some((*id, self.withdraw(*slot, key, uid))),
            Action::Read { .. }
            | Action::ReadSecret { .. }
            | Action::Follow(_)
            | Action::Tell(_)
            | Action::WakeAt(_) => None,
        }
    }

    fn change(&mut self, key: &ObjectKey, mut object: Object, change: &Change) -> Outcome {
        let before = object.clone();
        patch(&mut object, &change.merge_patch());
        if object == before {
            return Outcome { answer: Answer::Written(Box::new(before)), seen: None };
        }
        count_generation(&before, &mut object);
        let event = self.settle(key.clone(), object);
        let answer = match &event {
            Event::Seen(object) => Answer::Written(Box::new(object.clone())),
            _ => Answer::Deleted,
        };
        Outcome { answer, seen: Some(event) }
    }

    fn create(&mut self, object: &Object) -> Outcome {
        let key = key_of(object);
        if self.objects.contains_key(&(object.kind, key)) {
            return Outcome::refused(Answer::Exists);
        }
        let event = self.put(object.clone());
        let answer = match &event {
            Event::Seen(object) => Answer::Written(Box::new(object.clone())),
            _ => Answer::Deleted,
        };
        Outcome { answer, seen: Some(event) }
    }
}

impl Outcome {
    fn refused(answer: Answer) -> Outcome {
        Outcome { answer, seen: None }
    }
}

/// Where an object is.
pub fn key_of(object: &Object) -> ObjectKey {
    let text = |t: &Option<String>| t.clone().unwrap_or_default();
    ObjectKey::new(text(&object.metadata.namespace), text(&object.metadata.name))
}

/// Everything but metadata and status counts as a new generation, as with an API server.
fn count_generation(before: &Object, object: &mut Object) {
    let declared = |object: &Object| {
        let mut body = object.body.clone();
        body.as_object_mut().map(|fields| fields.remove("status"));
        body
    };
    if declared(before) != declared(object) {
        object.metadata.generation = Some(object.metadata.generation.unwrap_or(0) + 1);
    }
}

fn revision_of(object: &Object) -> String {
    object.metadata.resource_version.clone().unwrap_or_default()
}

/// Applies a merge patch to metadata's finalizers and to the body, the only parts that changes touch.
fn patch(object: &mut Object, patch: &Value) {
    for (field, value) in patch.as_object().into_iter().flatten() {
        if field == "metadata" {
            let finalizers = value.get("finalizers").and_then(Value::as_array);
            let texts = finalizers
                .map(|f| f.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect::<Vec<_>>());
            object.metadata.finalizers = texts.filter(|f| !f.is_empty());
        } else {
            if !object.body.is_object() {
                object.body = Value::Object(serde_json::Map::new());
            }
            merge(&mut object.body[field.as_str()], value);
        }
    }
}

/// RFC 7396: objects are merged, null removes, everything else replaces.
fn merge(target: &mut Value, patch: &Value) {
    let Value::Object(patch) = patch else {
        *target = patch.clone();
        return;
    };
    if !target.is_object() {
        *target = Value::Object(serde_json::Map::new());
    }
    if let Value::Object(target) = target {
        for (key, value) in patch {
            if value.is_null() {
                target.remove(key);
            } else {
                merge(target.entry(key.clone()).or_insert(Value::Null), value);
            }
        }
    }
}
