//! Parts of the cluster in memory: objects of installed or missing kinds, watched by label as an API server serves them.
//! The caller plays the controllers that implement them.

use super::{Outcome, World};
use conductor::action::PartAction;
use conductor::api::names::PART;
use conductor::event::{Answer, Event, PartEvent, WhyMissing};
use conductor::model::{Part, PartKey, PartKind, Revision, WriteId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;
use k8s_openapi::jiff::Timestamp;
use serde_json::Value;

impl World {
    /// Installs a kind of parts. Returns the watch event.
    pub fn install(&mut self, kind: &PartKind) -> Event {
        self.missing_kinds.remove(kind);
        self.part_kinds.insert(kind.clone());
        self.follow(kind)
    }

    /// Makes a kind unavailable, and deletes its objects if it is no longer installed. Returns the watch event.
    pub fn uninstall(&mut self, kind: &PartKind, why: WhyMissing) -> Event {
        if why == WhyMissing::NotInstalled {
            self.parts.retain(|key, _| key.kind != *kind);
        }
        self.part_kinds.remove(kind);
        self.missing_kinds.insert(kind.clone(), why);
        self.follow(kind)
    }

    /// The first event for a watcher of a kind: the list, or why the kind is missing.
    pub fn follow(&self, kind: &PartKind) -> Event {
        let kind = kind.clone();
        if !self.part_kinds.contains(&kind) {
            let why = self.missing_kinds.get(&kind).cloned().unwrap_or(WhyMissing::NotInstalled);
            return Event::Part(PartEvent::KindMissing { kind, why });
        }
        let parts = self.parts.values().filter(|part| part.kind == kind && is_labelled(part));
        let (parts, revision) = (parts.cloned().collect(), Revision(self.revision));
        Event::Part(PartEvent::Listed { kind, parts, revision })
    }

    /// Finds a part.
    pub fn part(&self, key: &PartKey) -> Option<&Part> {
        self.parts.get(key)
    }

    /// All parts, sorted.
    pub fn parts(&self) -> impl Iterator<Item = &Part> {
        self.parts.values()
    }

    /// Creates or replaces a part, as a user would. Returns the watch event.
    pub fn put_part(&mut self, part: Part) -> Option<Event> {
        let known = self.parts.get(&part.key()).and_then(|p| p.metadata.uid.clone());
        self.store_part(part, known)
    }

    fn store_part(&mut self, mut part: Part, known: Option<String>) -> Option<Event> {
        let before = self.parts.get(&part.key()).is_some_and(is_labelled);
        self.revision += 1;
        part.metadata.resource_version = Some(self.revision.to_string());
        if part.metadata.uid.is_none() {
            part.metadata.uid = Some(known.unwrap_or_else(|| {
                self.uids += 1;
                format!("uid-{:06}", self.uids)
            }));
        }
        let (key, labelled) = (part.key(), is_labelled(&part));
        self.parts.insert(key.clone(), part.clone());
        match (before, labelled) {
            (_, true) => Some(Event::Part(PartEvent::Seen(Box::new(part)))),
            (true, false) => Some(gone(key, &part)),
            (false, false) => None,
        }
    }

    /// Edits a part, as its controller or an administrator would.
    pub fn edit_part(&mut self, key: &PartKey, edit: impl FnOnce(&mut Part)) -> Option<Event> {
        let mut part = self.part(key)?.clone();
        edit(&mut part);
        self.settle_part(part)
    }

    /// Sets a part's status.
    pub fn set_part_status(&mut self, key: &PartKey, status: Value) -> Option<Event> {
        self.edit_part(key, |part| part.body["status"] = status)
    }

    /// Deletes a part: at once, or when its finalizers are removed.
    pub fn delete_part(&mut self, key: &PartKey) -> Option<Event> {
        let mut part = self.part(key)?.clone();
        part.metadata.deletion_timestamp.get_or_insert(MetaTime(Timestamp::UNIX_EPOCH));
        self.settle_part(part)
    }

    fn settle_part(&mut self, part: Part) -> Option<Event> {
        let finalized = part.metadata.finalizers.as_ref().is_none_or(Vec::is_empty);
        if part.metadata.deletion_timestamp.is_some() && finalized {
            self.revision += 1;
            let key = part.key();
            let before = self.parts.remove(&key).is_some_and(|known| is_labelled(&known));
            return before.then(|| gone(key, &part));
        }
        self.store_part(part, None)
    }

    /// Answers a live read of a part; `None` if its kind is not served.
    pub fn read_part(&self, key: &PartKey) -> Option<Event> {
        let found = self.part(key).cloned().map(Box::new);
        let served = self.part_kinds.contains(&key.kind);
        served.then(|| Event::Part(PartEvent::Read { key: key.clone(), found }))
    }

    /// Executes a write of a part.
    pub(super) fn apply_part(&mut self, action: &PartAction) -> Option<(WriteId, Outcome)> {
        match action {
            PartAction::Create { id, part } => Some((*id, self.create_part(part))),
            PartAction::Update { id, part, uid, revision } => {
                let refused = self.refuse(&part.key(), uid, *revision);
                Some((*id, refused.unwrap_or_else(|| self.update_part(part))))
            }
            PartAction::Delete { id, key, uid, revision } => {
                let outcome = self.refuse(key, uid, *revision).unwrap_or_else(|| {
                    let seen = self.delete_part(key);
                    let left = self.part(key).cloned().map(Box::new);
                    Outcome { answer: left.map_or(Answer::Deleted, Answer::PartWritten), seen }
                });
                Some((*id, outcome))
            }
            PartAction::Read { .. } => None,
        }
    }

    /// Refuses a write whose UID or resource version is out of date.
    fn refuse(&self, key: &PartKey, uid: &str, revision: Revision) -> Option<Outcome> {
        let Some(part) = self.part(key) else { return Some(Outcome::refused(Answer::Missing)) };
        let is_meant = part.metadata.uid.as_deref() == Some(uid)
            && part.metadata.resource_version == Some(revision.to_string());
        (!is_meant).then(|| Outcome::refused(Answer::Conflict))
    }

    /// Replaces a part's body but for its status; only the engine writes specs of parts here.
    fn update_part(&mut self, wanted: &Part) -> Outcome {
        let seen = self.edit_part(&wanted.key(), |part| {
            let status = part.body.get("status").cloned();
            part.body = wanted.body.clone();
            if let (Some(status), Some(body)) = (status, part.body.as_object_mut()) {
                body.insert("status".to_owned(), status);
            }
            part.metadata.labels = wanted.metadata.labels.clone();
            part.metadata.annotations = wanted.metadata.annotations.clone();
        });
        let now = self.part(&wanted.key()).cloned().map(Box::new);
        Outcome { answer: now.map_or(Answer::Missing, Answer::PartWritten), seen }
    }

    fn create_part(&mut self, part: &Part) -> Outcome {
        if !self.part_kinds.contains(&part.kind) {
            return Outcome::refused(Answer::Missing);
        }
        if self.parts.contains_key(&part.key()) {
            return Outcome::refused(Answer::Exists);
        }
        let seen = self.store_part(part.clone(), None);
        let made = self.part(&part.key()).cloned().map(Box::new);
        Outcome { answer: made.map_or(Answer::Missing, Answer::PartWritten), seen }
    }
}

fn is_labelled(part: &Part) -> bool {
    part.metadata.labels.as_ref().is_some_and(|labels| labels.contains_key(PART))
}

fn gone(key: PartKey, part: &Part) -> Event {
    let uid = part.metadata.uid.as_deref().unwrap_or_default().into();
    Event::Part(PartEvent::Gone { key, uid })
}
