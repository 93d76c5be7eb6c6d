//! Parts: updates of them are observed, their next steps are sent, answers are settled. `lifecycle` computes the steps; a
//! plan over manifests creates none.

use super::Engine;
use super::memory::{Effect, Target};
use crate::action::{Action, PartAction};
use crate::cache::{ResourceEntry, Sight};
use crate::event::{Answer, PartEvent};
use crate::lifecycle::{Implementation, PartSight, PartStep, View, judge};
use crate::model::part::WhyMissing;
use crate::model::{Name, Part, PartId, PartKey, PartKind, PartView, Revision, Time, TypeId, Uid};
use std::collections::BTreeSet;

impl Engine {
    pub(super) fn observe_parts(&mut self, event: PartEvent, now: Time) {
        match event {
            PartEvent::Listed { kind, parts, revision } => self.parts_listed(&kind, parts, revision),
            PartEvent::Seen(part) => self.observe_part(&part),
            PartEvent::Gone { key, uid } => {
                // Or it has lost its label: the read decides.
                if self.state.parts.find(&key).is_some_and(|part| part.uid == uid) {
                    self.read_part(&key, Some(uid));
                }
            }
            PartEvent::KindMissing { kind, why } => {
                self.state.parts.set_kind(&kind, Some(why));
                self.reads.forget_parts_of(&kind);
                self.free_users_of(&kind);
            }
            PartEvent::Read { key, found } => self.part_read(&key, found.as_deref(), now),
        }
    }

    fn parts_listed(&mut self, kind: &PartKind, parts: Vec<Part>, revision: Revision) {
        let listed: BTreeSet<&str> = parts.iter().filter_map(|p| p.metadata.uid.as_deref()).collect();
        let missing = self.state.parts.missing_from(kind, &listed, revision);
        self.state.parts.set_kind(kind, None);
        missing.into_iter().for_each(|(key, uid)| self.read_part(&key, Some(uid)));
        parts.iter().for_each(|part| self.observe_part(part));
        self.free_users_of(kind);
    }

    /// A kind has become available, or is not any more: every part of it is reconciled.
    fn free_users_of(&mut self, kind: &PartKind) {
        for part in self.state.parts.users_of_kind(kind) {
            let key = self.key_of_part(&part);
            if !key.is_some_and(|key| self.reads.is_part_requested(&key)) {
                self.free(Target::Part(part));
            }
        }
    }

    fn observe_part(&mut self, part: &Part) {
        let view = PartView::read(part);
        if self.tombstones.contains(&view.uid) || !self.state.parts.is_followed(&view.key.kind) {
            return;
        }
        let user = self.state.parts.user_of(&view.key).cloned();
        self.state.parts.set(view);
        self.work.touch_all(user.map(Target::Part));
    }

    fn part_read(&mut self, key: &PartKey, found: Option<&Part>, now: Time) {
        let Some(doubted) = self.reads.answer_part(key) else { return };
        match found {
            Some(part) => self.observe_part(part),
            None => {
                let known = self.state.parts.find(key).map(|part| part.uid.clone());
                doubted.iter().chain(&known).for_each(|uid| self.tombstones.insert(uid));
                self.state.parts.set_gone(key);
            }
        }
        let Some(user) = self.state.parts.user_of(key).cloned() else { return };
        self.reads.check_part(user.ty, &user.resource, key);
        self.free(Target::Part(user.clone()));
        if self.sight_of(&user) == Some(Sight::Taken) {
            // No watch reports when a name that is not ours is free again.
            self.writes.retry(Target::Part(user), now);
        }
    }

    /// Where a part of a resource is, or will be.
    fn key_of_part(&self, part: &PartId) -> Option<PartKey> {
        let entry = self.state.resource_named(part.ty, &part.resource)?;
        let mut parts = entry.resource.parts();
        parts.find(|(id, _)| **id == part.part).map(|(_, key)| key.clone())
    }

    fn sight_of(&self, part: &PartId) -> Option<Sight<'_>> {
        let entry = self.state.resource_named(part.ty, &part.resource)?;
        let (id, key) = entry.resource.parts().find(|(id, _)| **id == part.part)?;
        Some(self.sight(entry, id, key))
    }

    /// What is known of a resource's part.
    fn sight(&self, entry: &ResourceEntry, id: &Name, key: &PartKey) -> Sight<'_> {
        let resource = &entry.resource;
        let target = Target::Part(PartId::new(resource.ty, &resource.meta.key.name, id));
        if self.writes.is_flying(&target) {
            return Sight::InFlight;
        }
        if !self.config.allowed_kinds.allows(&key.kind) {
            return Sight::KindMissing(&WhyMissing::NotListed);
        }
        match self.state.parts.sight(key, &resource.meta.uid) {
            // Reads of a kind that is not available are not waited for.
            Sight::KindMissing(why) => Sight::KindMissing(why),
            _ if self.writes.is_busy(&target) => Sight::InFlight,
            sight => sight,
        }
    }

    /// The state of a resource's implementation.
    pub(super) fn implementation(&self, entry: &ResourceEntry) -> Implementation {
        let resource = &entry.resource;
        match self.config.makes_parts {
            true => judge(entry, &self.view(entry)),
            false => Implementation::by_phase(self.state.is_implemented(resource)),
        }
    }

    /// What is seen of a resource's parts.
    pub(super) fn view<'a>(&'a self, entry: &'a ResourceEntry) -> View<'a> {
        let resource = &entry.resource;
        let effect = if resource.meta.deleting { Effect::Deletion } else { Effect::Change };
        let seen = |(id, key): (&'a Name, &PartKey)| {
            let target = Target::Part(PartId::new(resource.ty, &resource.meta.key.name, id));
            let trouble = self.writes.refusal(target, effect);
            (id, PartSight { sight: self.sight(entry, id, key), trouble })
        };
        let script = resource.script.as_deref();
        View {
            parts: resource.parts().map(seen).collect(),
            compiled: script.and_then(|script| self.provisioning.compiled(script)),
            adapters: &self.config.adapters,
        }
    }

    /// Compiles the templates of a resource.
    pub(super) fn compile_script(&mut self, ty: TypeId, name: &Name) {
        let entry = self.state.resource_named(ty, name);
        let script = entry.and_then(|entry| entry.resource.script.as_deref());
        if let Some(script) = script.filter(|_| self.config.makes_parts) {
            self.provisioning.compile(script);
        }
    }

    /// Starts a watch, once, for every kind of which a resource has, or will have, a part.
    pub(super) fn watch_parts_of(&mut self, ty: TypeId, name: &Name) {
        let entry = self.state.resource_named(ty, name);
        let Some(entry) = entry.filter(|_| self.config.makes_parts) else { return };
        let made = entry.resource.template.objects().iter().map(|part| &part.key.kind);
        let kinds: Vec<PartKind> =
            entry.resource.parts().map(|(_, key)| &key.kind).chain(made).cloned().collect();
        for kind in kinds.into_iter().filter(|kind| self.config.allowed_kinds.allows(kind)) {
            if self.state.parts.follow(&kind) {
                self.work.push(Action::Watch(kind));
            }
        }
    }

    pub(super) fn reconcile_parts(&mut self, ty: TypeId, name: &Name, steps: Vec<(Name, PartStep)>) {
        if !steps.iter().any(|(_, step)| matches!(step, PartStep::Delete { .. })) {
            self.reads.forget_check(ty, name);
        }
        for (id, step) in steps {
            let target = Target::Part(PartId::new(ty, name, &id));
            match step {
                PartStep::Read(key) => self.read_part(&key, None),
                PartStep::Create(part) => {
                    // That it did not exist proves nothing any more.
                    self.state.parts.forget(&part.key());
                    let id = self.writes.send(target, Effect::Change, None);
                    self.work.push(Action::Part(PartAction::Create { id, part }));
                }
                PartStep::Update { part, uid, revision } => {
                    let id = self.writes.send(target, Effect::Change, None);
                    self.work.push(Action::Part(PartAction::Update { id, part, uid, revision }));
                }
                PartStep::Delete { key, uid, revision } => {
                    if self.has_read_all(ty, name, Some(&key)) {
                        let id = self.writes.send(target, Effect::Deletion, None);
                        self.work.push(Action::Part(PartAction::Delete { id, key, uid, revision }));
                    }
                }
            }
        }
    }

    pub(super) fn part_answered(&mut self, part: PartId, effect: Effect, answer: Answer, now: Time) {
        let target = Target::Part(part);
        match answer {
            Answer::PartWritten(part) => {
                self.writes.succeed(&target, effect);
                self.observe_part(&part);
                self.work.touch(target);
            }
            Answer::Written(_)
            | Answer::Deleted
            | Answer::Published(_)
            | Answer::Incomplete(_)
            | Answer::Taken(_) => {
                self.writes.succeed(&target, effect);
                self.read_target(&target);
            }
            Answer::Conflict | Answer::Exists => {
                self.stats.conflicts += 1;
                self.read_target(&target);
            }
            // Its kind may be going: not at once again.
            Answer::Missing => self.writes.hold_and_retry(target, now),
            Answer::Invalid(why) => {
                self.emit_refused_write(&target, &why);
                self.writes.refuse(target, effect, why, now);
            }
            Answer::Unknown(why) => self.writes.miss_answer(target, effect, why, now),
        }
    }

    /// Reads a resource's part live. Its target stays busy until the answer.
    pub(super) fn read_part_again(&mut self, part: &PartId) {
        let key = self.key_of_part(part);
        match key.filter(|key| !self.state.parts.is_missing(&key.kind)) {
            Some(key) => {
                self.writes.hold(Target::Part(part.clone()));
                self.read_part(&key, None);
            }
            None => self.free(Target::Part(part.clone())),
        }
    }

    /// Requests a live read of a part, unless one is in flight. Of a kind that is not available nothing is requested: once
    /// it is, what its list lacks is.
    pub(super) fn read_part(&mut self, key: &PartKey, doubted: Option<Uid>) {
        if self.state.parts.is_missing(&key.kind) {
            return;
        }
        if self.reads.request_part(key, doubted) {
            self.work.push(Action::Part(PartAction::Read { key: key.clone() }));
        }
    }
}
