//! A cluster in memory: objects with revisions, UIDs, finalizers and preconditions, as the API server keeps them.
//! It stores and answers; it never decides. Callers inject faults by not delivering what it returns.

mod parts;
mod pending_writes;
mod publish;
mod stored;

pub(crate) use stored::Stored;

use conductor::action::{Action, PartAction, Write};
use conductor::event::{Answer, Event, Gone, WhyMissing};
use conductor::model::{
    Kind, Lookup, Object, ObjectKey, Part, PartKey, PartKind, Revision, Slot, WriteId, merge_patch,
};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// A compact world keeps about this many objects unpacked.
const OPEN_MAX: usize = 1_024;

/// A cluster in memory.
#[derive(Clone, Debug, Default)]
pub struct World {
    objects: BTreeMap<Kind, Lookup<ObjectKey, Stored>>,
    /// Compact worlds: the objects written last; all others are packed.
    recent: Option<VecDeque<(Kind, ObjectKey)>>,
    parts: BTreeMap<PartKey, Part>,
    part_kinds: BTreeSet<PartKind>,
    /// Why a kind is unavailable, if not because it is not installed.
    missing_kinds: BTreeMap<PartKind, WhyMissing>,
    /// Secrets and published objects.
    side: BTreeMap<(Slot, ObjectKey), Value>,
    revision: u64,
    uids: u64,
}

/// Whether a watch repeats what the answer to a write has shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEcho {
    /// It does, as on a cluster.
    On,
    /// It does not: the only writer learns nothing from it.
    Off,
}

/// The result of a write.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The answer to the writer.
    pub answer: Answer,
    /// The watch event, if anything changed.
    pub seen: Option<Event>,
}

impl World {
    /// An empty world.
    pub fn new() -> World {
        World::default()
    }

    /// An empty world that packs objects which were not touched for a while, to hold a whole cluster. Its UIDs differ from
    /// those of other worlds, because it may hold objects that were created there.
    pub fn compact() -> World {
        World { recent: Some(VecDeque::new()), uids: 1 << 32, ..World::default() }
    }

    /// An empty world that counts revisions up from `revision`.
    pub fn starting_at(revision: u64) -> World {
        World { revision, ..World::default() }
    }

    /// Increments the revision as if something had changed.
    pub fn advance(&mut self) -> u64 {
        self.revision = self.revision.saturating_add(1);
        self.revision
    }

    /// Removes an object without an event.
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

    /// Creates or replaces an object, as a user's apply would; an existing object keeps its UID. Returns the watch event.
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
        // Most are never read again, only written to.
        let stored = match self.recent {
            Some(_) => Stored::packed(&object),
            None => Stored::new(object.clone()),
        };
        self.objects.entry(object.kind).or_default().insert(key, stored);
        Event::Seen(object)
    }

    /// Packs the object that was stored longest ago, in a compact world. One that was stored again since is unpacked again on
    /// its next use.
    fn note_recent(&mut self, place: (Kind, ObjectKey)) {
        let Some(recent) = &mut self.recent else { return };
        recent.push_back(place);
        if recent.len() > OPEN_MAX
            && let Some(oldest) = recent.pop_front()
            && let Some(stored) =
                self.objects.get_mut(&oldest.0).and_then(|of_kind| of_kind.get_mut(&oldest.1))
        {
            stored.pack();
        }
    }

    /// Packs all objects of a compact world, such as those unpacked only for reading.
    pub fn pack(&mut self) {
        if let Some(recent) = &mut self.recent {
            recent.clear();
            self.objects.values_mut().for_each(|of_kind| of_kind.each_mut(Stored::pack));
        }
    }

    /// Finds an object.
    pub fn get(&self, kind: Kind, key: &ObjectKey) -> Option<&Object> {
        self.find(kind, key).map(Stored::open)
    }

    /// All objects, sorted.
    pub fn objects(&self) -> impl Iterator<Item = &Object> {
        self.objects.values().flat_map(Lookup::sorted).map(|(_, stored)| stored.open())
    }

    /// All objects of a kind, sorted.
    pub fn of(&self, kind: Kind) -> impl Iterator<Item = &Object> {
        self.objects.get(&kind).into_iter().flat_map(Lookup::sorted).map(|(_, stored)| stored.open())
    }

    /// Number of objects of a kind.
    pub fn count(&self, kind: Kind) -> usize {
        self.objects.get(&kind).map_or(0, Lookup::len)
    }

    /// Consumes the world and returns all objects, sorted.
    pub fn into_objects(self) -> impl Iterator<Item = Object> {
        self.into_stored().map(Stored::into_object)
    }

    fn into_stored(self) -> impl Iterator<Item = Stored> {
        self.objects.into_values().flat_map(Lookup::into_sorted).map(|(_, stored)| stored)
    }

    /// As [`World::into_objects`], on two threads: unpacking a whole cluster takes a while.
    pub fn into_objects_side_by_side(self) -> Vec<Object> {
        let mut first: Vec<Stored> = self.into_stored().collect();
        let second = first.split_off(first.len() / 2);
        let open = |stored: Vec<Stored>| stored.into_iter().map(Stored::into_object).collect::<Vec<_>>();
        std::thread::scope(|scope| {
            let second = scope.spawn(|| open(second));
            let mut objects = open(first);
            // Propagate a panic.
            objects.extend(second.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            objects
        })
    }

    /// The revision of the last change.
    pub fn revision(&self) -> u64 {
        self.revision
    }

    /// Edits an object as an administrator would. Returns `None` if it does not exist.
    pub fn edit(&mut self, kind: Kind, key: &ObjectKey, edit: impl FnOnce(&mut Object)) -> Option<Event> {
        let before = self.get(kind, key)?.clone();
        let mut object = before.clone();
        edit(&mut object);
        count_generation(&before, &mut object);
        Some(self.store_or_remove(key.clone(), object))
    }

    /// Deletes an object: at once, or when its finalizers are removed.
    pub fn delete(&mut self, kind: Kind, key: &ObjectKey) -> Option<Event> {
        let mut object = self.get(kind, key)?.clone();
        object.metadata.deletion_timestamp.get_or_insert(MetaTime(Timestamp::UNIX_EPOCH));
        Some(self.store_or_remove(key.clone(), object))
    }

    /// Stores a changed object, or removes it if it is being deleted and has no finalizers.
    fn store_or_remove(&mut self, key: ObjectKey, object: Object) -> Event {
        if is_let_go(&object) {
            self.advance();
            self.take(object.kind, &key);
            let uid = object.metadata.uid.unwrap_or_default();
            let revision = Revision::read(object.metadata.resource_version.as_deref());
            return Event::Gone(Gone { kind: object.kind, key, uid: uid.into(), revision });
        }
        self.store(key, object)
    }

    /// Executes an action and returns the answer and the watch events. Events for users and wake-ups are the caller's.
    pub fn carry_out(&mut self, action: &Action) -> Vec<Event> {
        self.carry_out_with(action, WatchEcho::On)
    }

    /// As [`World::carry_out`], with or without watch events that repeat an answer.
    pub fn carry_out_with(&mut self, action: &Action, echo: WatchEcho) -> Vec<Event> {
        match action {
            Action::Read { kind, key } => {
                let (kind, key) = (*kind, key.clone());
                let found = self.get(kind, &key).cloned();
                vec![Event::Read { kind, key, found }]
            }
            Action::Watch(kind) => vec![self.follow(kind)],
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
            | Action::Emit(_)
            | Action::WakeAt(_) => {
                let Some((id, outcome)) = self.land(action, echo) else { return Vec::new() };
                std::iter::once(Event::Answered { id, answer: outcome.answer }).chain(outcome.seen).collect()
            }
        }
    }

    /// Executes a write, create or delete; returns `None` for other actions.
    pub fn apply(&mut self, action: &Action) -> Option<(WriteId, Outcome)> {
        self.land(action, WatchEcho::On)
    }

    fn land(&mut self, action: &Action, echo: WatchEcho) -> Option<(WriteId, Outcome)> {
        match action {
            Action::Write(write) => Some((write.id, self.write(write, echo))),
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
            | Action::Watch(_)
            | Action::Emit(_)
            | Action::WakeAt(_) => None,
        }
    }

    /// Accepts a write without unpacking the object, for a caller that predicts its result. `bumps_generation`: the write
    /// changes the spec. Returns the new revision, or `None` if the write must be executed normally.
    pub fn write_unseen(&mut self, write: &Write, bumps_generation: bool) -> Option<Revision> {
        let revision = Revision(self.revision.saturating_add(1));
        let stored = self.find_mut(write.kind, &write.key)?;
        let is_taken = stored.write_unseen(write, revision, bumps_generation);
        is_taken.then(|| {
            self.revision = revision.0;
            revision
        })
    }

    fn write(&mut self, write: &Write, echo: WatchEcho) -> Outcome {
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
        let seen = matches!(echo, WatchEcho::On).then(|| Event::Seen(object.clone()));
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

/// The key of an object.
pub fn key_of(object: &Object) -> ObjectKey {
    let text = |t: &Option<String>| t.clone().unwrap_or_default();
    ObjectKey::new(text(&object.metadata.namespace), text(&object.metadata.name))
}

/// Whether an object is being deleted and has no finalizers.
fn is_let_go(object: &Object) -> bool {
    let finalized = object.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
    object.metadata.deletion_timestamp.is_some() && finalized
}

/// Increments the generation if anything but metadata and status changed, as an API server does.
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

/// What a patch changed.
#[derive(Clone, Copy, Debug, Default)]
struct Touched {
    /// Anything.
    any: bool,
    /// Anything but metadata and status.
    declared: bool,
}

/// Applies a merge patch to the finalizers and the body, the only parts that the engine's changes touch.
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
            let changed = merge_patch(&mut object.body[field.as_str()], value) || is_new;
            touched.any |= changed;
            touched.declared |= changed && !is_status;
        }
    }
    touched
}
