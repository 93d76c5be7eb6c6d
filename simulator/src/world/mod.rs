//! A cluster in memory: objects with revisions, UIDs, finalizers and preconditions, as the API server keeps them.
//! It stores and answers; it never decides. Faults are the caller's: what is not delivered is not delivered.

mod later;
mod parts;
mod publish;
mod stored;

pub(crate) use stored::Stored;

use conductor::action::{Action, PartAction, Write};
use conductor::event::{Answer, Event, Gone, WhyMissing};
use conductor::model::{Kind, Lookup, Object, ObjectKey, Part, PartKey, PartKind, Revision, Slot, WriteId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A thrifty world keeps about so many objects as they are, and folds the others.
const OPEN_MAX: usize = 1_024;

/// All objects, by kind and place.
#[derive(Clone, Debug, Default)]
pub struct World {
    objects: BTreeMap<Kind, Lookup<ObjectKey, Stored>>,
    /// What was stored last, where what was not is folded.
    recent: Option<VecDeque<(Kind, ObjectKey)>>,
    parts: BTreeMap<PartKey, Part>,
    part_kinds: BTreeSet<PartKind>,
    /// Why kinds that are not served are not, where it is not that they are not installed.
    missing_kinds: BTreeMap<PartKind, WhyMissing>,
    /// Secrets, and what is published from them.
    side: BTreeMap<(Slot, ObjectKey), Value>,
    revision: u64,
    uids: u64,
}

/// Whether a watch repeats what the answer to a write has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Telling {
    /// It does, as a cluster's does.
    Twice,
    /// It does not: the author of all writes learns nothing from it.
    Once,
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

    /// An empty world that keeps objects which nobody has touched for a while folded: for as many as a cluster has. What
    /// comes of it has UIDs that no other world gives: it is shown objects that one of those made.
    pub fn thrifty() -> World {
        World { recent: Some(VecDeque::new()), uids: 1 << 32, ..World::default() }
    }

    /// An empty world that counts revisions from one on.
    pub fn starting_at(revision: u64) -> World {
        World { revision, ..World::default() }
    }

    /// Counts a revision, as if something had changed.
    pub fn advance(&mut self) -> u64 {
        self.revision = self.revision.saturating_add(1);
        self.revision
    }

    /// Forgets an object without a word to anybody.
    pub fn forget(&mut self, kind: Kind, key: &ObjectKey) {
        self.take(kind, key);
    }

    fn find(&self, kind: Kind, key: &ObjectKey) -> Option<&Stored> {
        self.objects.get(&kind)?.get(key)
    }

    fn find_mut(&mut self, kind: Kind, key: &ObjectKey) -> Option<&mut Stored> {
        self.objects.get_mut(&kind)?.get_mut(key)
    }

    fn take(&mut self, kind: Kind, key: &ObjectKey) -> Option<Stored> {
        self.objects.get_mut(&kind)?.remove(key)
    }

    /// Puts an object in, new or in place of another, as a user's apply would. Keeps the UID of an
    /// object that is there. Returns what a watch would show.
    pub fn put(&mut self, mut object: Object) -> Event {
        let key = key_of(&object);
        if object.metadata.uid.is_none() {
            let known = self.get(object.kind, &key).and_then(|o| o.metadata.uid.clone());
            object.metadata.uid = Some(known.unwrap_or_else(|| {
                self.uids += 1;
                format!("uid-{:06}", self.uids)
            }));
        }
        self.store(key, object)
    }

    fn store(&mut self, key: ObjectKey, mut object: Object) -> Event {
        self.advance();
        object.metadata.resource_version = Some(self.revision.to_string());
        // Most are never looked at again, only written to.
        let stored = match self.recent {
            Some(_) => Stored::folded(&object),
            None => Stored::new(object.clone()),
        };
        self.objects.entry(object.kind).or_default().insert(key, stored);
        Event::Seen(object)
    }

    /// Folds what was stored longest ago, where that is wanted. One that was stored again since is opened again when
    /// it is needed.
    fn note_recent(&mut self, place: (Kind, ObjectKey)) {
        let Some(recent) = &mut self.recent else { return };
        recent.push_back(place);
        if recent.len() > OPEN_MAX
            && let Some(oldest) = recent.pop_front()
            && let Some(stored) =
                self.objects.get_mut(&oldest.0).and_then(|of_kind| of_kind.get_mut(&oldest.1))
        {
            stored.fold();
        }
    }

    /// Folds everything that was opened only to be looked at, where that is wanted.
    pub fn fold(&mut self) {
        if let Some(recent) = &mut self.recent {
            recent.clear();
            self.objects.values_mut().for_each(|of_kind| of_kind.each_mut(Stored::fold));
        }
    }

    /// The object at a place.
    pub fn get(&self, kind: Kind, key: &ObjectKey) -> Option<&Object> {
        self.find(kind, key).map(Stored::open)
    }

    /// Every object, in order.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values().flat_map(Lookup::sorted).map(|(_, stored)| stored.open())
    }

    /// Every object of a kind, in order.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects.get(&kind).into_iter().flat_map(Lookup::sorted).map(|(_, stored)| stored.open())
    }

    /// How many there are of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.objects.get(&kind).map_or(0, Lookup::len)
    }

    /// Every object, in order, when the world is needed no more.
    pub fn into_objects(self) -> impl Iterator<Item = Object> {
        self.into_stored().map(Stored::into_object)
    }

    fn into_stored(self) -> impl Iterator<Item = Stored> {
        self.objects.into_values().flat_map(Lookup::into_sorted).map(|(_, stored)| stored)
    }

    /// As [`World::into_objects`], on two threads: a cluster's worth of folded objects takes a while to open.
    pub fn into_objects_side_by_side(self) -> Vec<Object> {
        let mut first: Vec<Stored> = self.into_stored().collect();
        let second = first.split_off(first.len() / 2);
        let open = |stored: Vec<Stored>| stored.into_iter().map(Stored::into_object).collect::<Vec<_>>();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| open(second));
            let mut objects = open(first);
            // A panic there is a panic here.
            objects.extend(second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            objects
        })
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
        if is_let_go(&object) {
            self.advance();
            self.take(object.kind, &key);
            let uid = object.metadata.uid.unwrap_or_default();
            let revision = Revision::read(object.metadata.resource_version.as_deref());
            return Event::Gone(Gone { kind: object.kind, key, uid: uid.into(), revision });
        }
        self.store(key, object)
    }

    /// Carries out what was asked for, and tells what its author and a watch would hear of it. Notes and alarms
    /// are not the world's business.
    pub fn carry_out(&mut self, action: &Action) -> Vec<Event> {
        self.carry_out_telling(action, Telling::Twice)
    }

    /// As [`World::carry_out`], where `telling` says whether a watch repeats what an answer has shown.
    pub fn carry_out_telling(&mut self, action: &Action, telling: Telling) -> Vec<Event> {
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
                let Some((id, outcome)) = self.land(action, telling) else { return Vec::new() };
                std::iter::once(Event::Answered { id, answer: outcome.answer }).chain(outcome.seen).collect()
            }
        }
    }

    /// Carries out a write, create or delete. Other actions change nothing and have no answer here.
    pub fn apply(&mut self, action: &Action) -> Option<(WriteId, Outcome)> {
        self.land(action, Telling::Twice)
    }

    fn land(&mut self, action: &Action, telling: Telling) -> Option<(WriteId, Outcome)> {
        match action {
            Action::Write(write) => Some((write.id, self.write(write, telling))),
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
                        let left = self.find_mut(*kind, key);
                        let answer = left.map_or(Answer::Deleted, |left| Answer::Written(left.share()));
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

    /// Takes in a write without a look at the object: whoever asked for it knows what becomes of that, and whether it
    /// `declares` a new generation. Says which revision it made; nothing where it was not taken in.
    pub fn write_unseen(&mut self, write: &Write, declares: bool) -> Option<Revision> {
        let revision = Revision(self.revision.saturating_add(1));
        let stored = self.find_mut(write.kind, &write.key)?;
        let is_taken = stored.write_unseen(write, revision, declares);
        is_taken.then(|| {
            self.revision = revision.0;
            revision
        })
    }

    fn write(&mut self, write: &Write, telling: Telling) -> Outcome {
        let place = (write.kind, write.key.clone());
        let of_kind = self.objects.get_mut(&write.kind);
        let Some(stored) = of_kind.and_then(|of_kind| of_kind.get_mut(&write.key)) else {
            return Outcome::refused(Answer::Missing);
        };
        let object = stored.open_mut();
        let is_meant = object.metadata.uid.as_deref() == Some(&*write.uid)
            && write.revision.is_none_or(|r| revision_of(object) == r.to_string());
        if !is_meant {
            return Outcome::refused(Answer::Conflict);
        }
        let touched = patch(object, write.change.merge_patch());
        if !touched.any {
            return Outcome { answer: Answer::Written(stored.share()), seen: None };
        }
        if touched.declared {
            object.metadata.generation = Some(object.metadata.generation.unwrap_or(0) + 1);
        }
        self.revision = self.revision.saturating_add(1);
        if is_let_go(object) {
            let uid = object.metadata.uid.as_deref().unwrap_or_default().into();
            self.take(place.0, &place.1);
            let seen = Event::Gone(Gone { kind: place.0, key: place.1, uid, revision: Revision::default() });
            return Outcome { answer: Answer::Deleted, seen: Some(seen) };
        }
        object.metadata.resource_version = Some(self.revision.to_string());
        let seen = matches!(telling, Telling::Twice).then(|| Event::Seen(object.clone()));
        let answer = Answer::Written(stored.share());
        self.note_recent(place);
        Outcome { answer, seen }
    }

    fn create(&mut self, object: &Object) -> Outcome {
        let key = key_of(object);
        if self.find(object.kind, &key).is_some() {
            return Outcome::refused(Answer::Exists);
        }
        let event = self.put(object.clone());
        let answer = match &event {
            Event::Seen(object) => Answer::Written(Arc::new(object.clone())),
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

/// Whether an object is being deleted and nothing holds it.
fn is_let_go(object: &Object) -> bool {
    let finalized = object.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
    object.metadata.deletion_timestamp.is_some() && finalized
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

/// What a patch has changed.
#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    /// Anything at all.
    any: bool,
    /// Anything but metadata and status.
    declared: bool,
}

/// Applies a merge patch to metadata's finalizers and to the body, the only parts that changes touch.
fn patch(object: &mut Object, patch: Value) -> Touched {
    let mut touched = Touched::default();
    let Value::Object(patch) = patch else { return touched };
    for (field, value) in patch {
        if field == "metadata" {
            let finalizers = value.get("finalizers").and_then(Value::as_array);
            let texts = finalizers
                .map(|f| f.iter().filter_map(|v| v.as_str().map(str::to_owned)).collect::<Vec<_>>());
            let texts = texts.filter(|f| !f.is_empty());
            touched.any |= object.metadata.finalizers != texts;
            object.metadata.finalizers = texts;
        } else {
            if !object.body.is_object() {
                object.body = Value::Object(serde_json::Map::new());
                touched = Touched { any: true, declared: true };
            }
            let is_status = field == "status";
            let is_new = object.body.get(&field).is_none();
            let changed = merge(&mut object.body[field.as_str()], value) || is_new;
            touched.any |= changed;
            touched.declared |= changed && !is_status;
        }
    }
    touched
}

/// RFC 7396: objects are merged, null removes, everything else replaces. Says whether anything changed.
fn merge(target: &mut Value, patch: Value) -> bool {
    let Value::Object(patch) = patch else {
        let changed = *target != patch;
        *target = patch;
        return changed;
    };
    let mut changed = !target.is_object();
    if changed {
        *target = Value::Object(serde_json::Map::new());
    }
    if let Value::Object(target) = target {
        for (key, value) in patch {
            changed |= match (value, target.get_mut(&key)) {
                (Value::Null, None) => false,
                (Value::Null, Some(_)) => target.remove(&key).is_some(),
                (value, Some(known)) => merge(known, value),
                (value, None) => {
                    merge(target.entry(key).or_insert(Value::Null), value);
                    true
                }
            };
        }
    }
    changed
}
