//! Parts: what was seen of them is taken in, what is to be done about them is sent, answers are settled.
//! What that is, `lifecycle` says; a plan over manifests makes none.

use super::{Effect, Engine, Target};
use crate::action::{Action, PartAction};
use crate::cache::{ResourceEntry, Sight};
use crate::event::{Answer, PartEvent};
use crate::lifecycle::{Implementation, PartSight, PartStep, View, judge};
use crate::model::part::WhyMissing;
use crate::model::{Name, Part, PartId, PartKey, PartKind, PartView, Revision, Time, TypeId, Uid};
use crate::template::{Blueprint, Source};
use serde_json::Value;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Compiled templates that are kept: as many as there are classes, and then some.
const BLUEPRINTS_MAX: usize = 1_024;

impl Engine {
    pub(super) fn observe_parts(&mut self, event: PartEvent, now: Time) {
        match event {
            PartEvent::Listed { kind, parts, revision } => self.parts_listed(&kind, parts, revision),
            PartEvent::Seen(part) => self.observe_part(&part),
            PartEvent::Gone { key, uid } => {
                // Or it has lost its label: the read tells.
                if self.state.parts.find(&key).is_some_and(|part| part.uid == uid) {
                    self.read_part(&key, Some(uid));
                }
            }
            PartEvent::KindMissing { kind, why } => {
                self.state.parts.set_kind(&kind, Some(why));
                self.part_reads.retain(|key, _| key.kind != kind);
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

    /// How a kind stands has changed: whoever has parts of it is looked at again.
    fn free_users_of(&mut self, kind: &PartKind) {
        for part in self.state.parts.users_of_kind(kind) {
            let asked = self.key_of_part(&part);
            if !asked.is_some_and(|key| self.part_reads.contains_key(&key)) {
                self.free(Target::Part(part));
            }
        }
    }

    fn observe_part(&mut self, part: &Part) {
        let view = PartView::read(part);
        if self.gone.contains(&view.uid) || !self.state.parts.is_followed(&view.key.kind) {
            return;
        }
        let user = self.state.parts.user_of(&view.key).cloned();
        self.state.parts.set(view);
        self.dirty.extend(user.map(Target::Part));
    }

    fn part_read(&mut self, key: &PartKey, found: Option<&Part>, now: Time) {
        let Some(doubted) = self.part_reads.remove(key) else { return };
        match found {
            Some(part) => self.observe_part(part),
            None => {
                let known = self.state.parts.find(key).map(|part| part.uid.clone());
                doubted.iter().chain(&known).for_each(|uid| self.bury(uid));
                self.state.parts.set_gone(key);
            }
        }
        let Some(user) = self.state.parts.user_of(key).cloned() else { return };
        if let Some(check) = self.destroys.get_mut(&(user.ty, user.resource.clone())) {
            check.part.take_if(|part| part == key);
        }
        self.free(Target::Part(user.clone()));
        if self.sight_of(&user) == Some(Sight::Taken) {
            // Nobody tells when a name that is not ours is free again.
            self.read_later(Target::Part(user), now);
        }
    }

    /// Where a part of a resource is, or is to be.
    fn key_of_part(&self, part: &PartId) -> Option<PartKey> {
        let entry = self.state.resource(self.state.find_resource(part.ty, &part.resource)?)?;
        let mut parts = entry.resource.parts();
        parts.find(|(id, _)| **id == part.part).map(|(_, key)| key.clone())
    }

    fn sight_of(&self, part: &PartId) -> Option<Sight<'_>> {
        let entry = self.state.resource(self.state.find_resource(part.ty, &part.resource)?)?;
        let (id, key) = entry.resource.parts().find(|(id, _)| **id == part.part)?;
        Some(self.sight(entry, id, key))
    }

    /// What is known of a resource's part.
    fn sight(&self, entry: &ResourceEntry, id: &Name, key: &PartKey) -> Sight<'_> {
        let resource = &entry.resource;
        let target = Target::Part(PartId::new(resource.ty, &resource.meta.key.name, id));
        if self.flying.contains(&target) {
            return Sight::InFlight;
        }
        if !self.config.allowed_kinds.allows(&key.kind) {
            return Sight::KindMissing(&WhyMissing::NotListed);
        }
        match self.state.parts.sight(key, &resource.meta.uid) {
            // Reads of a kind that cannot be had are not waited for.
            Sight::KindMissing(why) => Sight::KindMissing(why),
            _ if self.busy.contains(&target) => Sight::InFlight,
            sight => sight,
        }
    }

    /// How a resource's implementation stands.
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
        let effect = if resource.meta.deleting { Effect::Destruction } else { Effect::Change };
        let seen = |(id, key): (&'a Name, &PartKey)| {
            let target = Target::Part(PartId::new(resource.ty, &resource.meta.key.name, id));
            let trouble = self.troubles.get(&(target, effect)).map(String::as_str);
            (id, PartSight { sight: self.sight(entry, id, key), trouble })
        };
        let script = resource.script.as_ref();
        let blueprint = script.and_then(|script| self.blueprints.get(script.text.as_str()));
        View {
            parts: resource.parts().map(seen).collect(),
            blueprint: blueprint.map(|blueprint| (**blueprint).as_ref()),
            adapters: &self.config.adapters,
        }
    }

    /// Compiles what is computed for a resource, unless another of its class has had it compiled.
    pub(super) fn compile_script(&mut self, ty: TypeId, name: &Name) {
        let entry = self.state.find_resource(ty, name).and_then(|id| self.state.resource(id));
        let script = entry.and_then(|entry| entry.resource.script.as_deref());
        let Some(script) = script.filter(|_| self.config.makes_parts) else { return };
        if self.blueprints.contains_key(script.text.as_str()) {
            return;
        }
        if self.blueprints.len() >= BLUEPRINTS_MAX {
            self.blueprints.clear();
        }
        let of = |name: &str| script.source.get(name);
        let source = Source {
            template: of("template"),
            templates: of("templates"),
            ready: of("ready").and_then(Value::as_str),
            connection: of("connection"),
        };
        self.blueprints.insert(script.text.clone(), Arc::new(Blueprint::compile(&source)));
    }

    /// Asks once for every kind of which a resource has, or is to have, a part.
    pub(super) fn follow_parts_of(&mut self, ty: TypeId, name: &Name) {
        let entry = self.state.find_resource(ty, name).and_then(|id| self.state.resource(id));
        let Some(entry) = entry.filter(|_| self.config.makes_parts) else { return };
        let made = entry.resource.template.objects().iter().map(|part| &part.key.kind);
        let kinds: Vec<PartKind> =
            entry.resource.parts().map(|(_, key)| &key.kind).chain(made).cloned().collect();
        for kind in kinds.into_iter().filter(|kind| self.config.allowed_kinds.allows(kind)) {
            if self.state.parts.follow(&kind) {
                self.actions.push(Action::Follow(kind));
            }
        }
    }

    pub(super) fn sync_parts(&mut self, ty: TypeId, name: &Name, steps: Vec<(Name, PartStep)>) {
        if !steps.iter().any(|(_, step)| matches!(step, PartStep::Delete { .. })) {
            self.destroys.remove(&(ty, name.clone()));
        }
        for (id, step) in steps {
            let target = Target::Part(PartId::new(ty, name, &id));
            match step {
                PartStep::Read(key) => self.read_part(&key, None),
                PartStep::Create(part) => {
                    // That it was not there says nothing any more.
                    self.state.parts.forget(&part.key());
                    let id = self.send(target, Effect::Change);
                    self.actions.push(Action::Part(PartAction::Create { id, part }));
                }
                PartStep::Update { part, uid, revision } => {
                    let id = self.send(target, Effect::Change);
                    self.actions.push(Action::Part(PartAction::Update { id, part, uid, revision }));
                }
                PartStep::Delete { key, uid, revision } => {
                    if self.has_read_all(ty, name, Some(&key)) {
                        let id = self.send(target, Effect::Destruction);
                        self.actions.push(Action::Part(PartAction::Delete { id, key, uid, revision }));
                    }
                }
            }
        }
    }

    pub(super) fn part_answered(&mut self, part: PartId, effect: Effect, answer: Answer, now: Time) {
        let target = Target::Part(part);
        match answer {
            Answer::PartWritten(part) => {
                self.succeeded(&target, effect);
                self.observe_part(&part);
                self.dirty.insert(target);
            }
            Answer::Written(_)
            | Answer::Deleted
            | Answer::Published(_)
            | Answer::Incomplete(_)
            | Answer::Taken(_) => {
                self.succeeded(&target, effect);
                self.read_target(&target);
            }
            Answer::Conflict | Answer::Exists => {
                self.stats.conflicts += 1;
                self.read_target(&target);
            }
            // Its kind may be going: not at once again.
            Answer::Missing => self.retry_later(target, now),
            Answer::Invalid(why) => {
                self.tell_refused(&target, &why);
                self.refused(target, effect, why, now);
            }
            Answer::Unknown(why) => self.unanswered(target, effect, why, now),
        }
    }

    /// Reads a resource's part live. Its target stays busy until the answer.
    pub(super) fn read_part_again(&mut self, part: &PartId) {
        let key = self.key_of_part(part);
        match key.filter(|key| !self.state.parts.is_missing(&key.kind)) {
            Some(key) => {
                self.busy.insert(Target::Part(part.clone()), ());
                self.read_part(&key, None);
            }
            None => self.free(Target::Part(part.clone())),
        }
    }

    /// Asks for a live read of a part, unless one is on its way. Of a kind that cannot be had nothing is
    /// asked: once it can be, what its list does not have is.
    pub(super) fn read_part(&mut self, key: &PartKey, doubted: Option<Uid>) {
        if self.state.parts.is_missing(&key.kind) {
            return;
        }
        let asked = self.part_reads.contains_key(key);
        self.part_reads.entry(key.clone()).or_default().extend(doubted);
        if !asked {
            self.actions.push(Action::Part(PartAction::Read { key: key.clone() }));
        }
    }
}
