//! Bringing touched objects one step closer to what they should be: at most one write each, then its answer.

use super::{Binding, DestroyCheck, Effect, Engine, Target};
use crate::action::{Action, Change, Note, Write};
use crate::api::names::RESOURCE_PROTECTION;
use crate::api::reasons;
use crate::cache::{Departure, QuotaKey, ResourceEntry, Standing};
use crate::lifecycle::{
    ClaimSide, Step, plan_claim, plan_class, plan_quota, plan_resource, provisioned_names, retained_parts,
};
use crate::model::meta::ConditionView;
use crate::model::{
    Claim, ClaimPhase, Kind, Meta, Name, PartKey, Resource, ResourcePhase, Time, TypeId, Uid,
};
use crate::scheduler::{spec_at_binding, unmet};
use std::sync::Arc;

impl Engine {
    /// Takes every touched object one step on. Says whether there was any.
    pub(super) fn sync_dirty(&mut self, now: Time) -> bool {
        let mut any = false;
        while let Some(target) = self.dirty.pop_first() {
            any = true;
            if self.busy.contains(&target) {
                continue;
            }
            match &target {
                Target::Claim(uid) => self.sync_claim(uid, now),
                Target::Resource(ty, name) => self.sync_resource(*ty, name, now),
                Target::Class(ty, name) => self.sync_class(*ty, name),
                Target::Quota(key) => self.sync_quota(key),
                // What is to be done about a part follows from its resource, and how that is reached may too.
                Target::Part(part) => {
                    let resource = Target::Resource(part.ty, part.resource.clone());
                    if !self.busy.contains(&resource) {
                        self.sync_resource(part.ty, &part.resource, now);
                    }
                    self.dirty_holders(part.ty, &part.resource);
                }
                // What is to be done about these follows from their claim.
                Target::Publication(_) | Target::Published(..) => {}
            }
        }
        any
    }

    /// Whoever holds a resource may be reached by it in another way now.
    fn dirty_holders(&mut self, ty: TypeId, name: &Name) {
        let entry = self.state.find_resource(ty, name).and_then(|id| self.state.resource(id));
        let holders = entry.into_iter().flat_map(|entry| entry.resource.holders());
        let held = holders.filter_map(|holder| holder.uid.clone()).map(Target::Claim);
        let bound = held.filter(|claim| !self.busy.contains(claim));
        self.dirty.extend(bound.collect::<Vec<_>>());
    }

    fn sync_claim(&mut self, uid: &Uid, now: Time) {
        let Some(claim) = self.state.claim(uid).cloned() else { return };
        let mut may_wait = false;
        self.end_contest(uid);
        let change = match self.bindings.get(uid) {
            None | Some(Binding::Waiting(None) | Binding::Assumed { .. } | Binding::Unmanaged { .. }) => None,
            Some(Binding::Waiting(Some(refused))) => {
                let side = ClaimSide::Pending { reason: refused.reason, message: &refused.refusal.message };
                let change = plan_claim(&claim, &side, now);
                let refusal = Arc::clone(&refused.refusal);
                let is_contested = (change.is_some() || !self.contests.is_empty())
                    && self.is_contested(&claim, &refusal.message, now);
                change.filter(|_| !is_contested)
            }
            Some(Binding::Provisioning { class, resource }) => {
                let (class, resource) = (class.clone(), resource.clone());
                return self.sync_provisioning(&claim, &class, &resource, now);
            }
            // Whether the resource of this name is the one that it is bound to is being read: its record stays as it is, or
            // another of that name would take the place of the lost one.
            Some(Binding::Bound { resource }) if self.is_in_doubt(&claim, resource) => None,
            Some(Binding::Bound { resource }) => {
                let resource = resource.clone();
                let ready = self.sync_connection(&claim, &resource);
                // A connection is published only for a claim that is protected; without one, nobody waits.
                let is_awaited =
                    ready.as_ref().is_some_and(|ready| ready.reason == reasons::ready::PUBLISHING);
                may_wait = !is_awaited && claim.status.phase == ClaimPhase::Bound;
                let id = self.state.find_resource(claim.ty, &resource);
                let entry = id.and_then(|id| self.state.resource(id));
                entry.and_then(|entry| {
                    let (unmet, meta) = (unmet(&self.state, &claim, entry), &entry.resource.meta);
                    let bound_spec = spec_at_binding(&claim, entry);
                    let side = ClaimSide::Bound {
                        resource: &meta.key,
                        uid: &meta.uid,
                        unmet: unmet.as_deref(),
                        bound_spec: &bound_spec,
                        ready: ready.as_ref(),
                    };
                    plan_claim(&claim, &side, now)
                })
            }
            Some(Binding::Lost { reason, message }) => match claim.status.phase {
                // Said once: the first reason is the one that was seen happen. Only what an earlier version said is replaced.
                ClaimPhase::Lost if says(&claim, message) => None,
                ClaimPhase::Lost | ClaimPhase::Pending | ClaimPhase::Bound => {
                    plan_claim(&claim, &ClaimSide::Lost { reason, message }, now)
                }
            },
            Some(Binding::Leaving) => {
                // What was published goes before what it leads to.
                let withdrawn = self.withdraw_all(&claim);
                let side = ClaimSide::Leaving { may_go: withdrawn && self.may_go(&claim) };
                plan_claim(&claim, &side, now)
            }
        };
        if let Some(change) = change {
            self.tell_claim(&claim, &change);
            let may_wait = may_wait && matches!(change, Change::ClaimSpec { .. });
            self.write_when(may_wait, Target::Claim(uid.clone()), Kind::Claim(claim.ty), &claim.meta, change);
        }
    }

    fn is_in_doubt(&self, claim: &Claim, resource: &Name) -> bool {
        let doubted = self.doubted.get(&(claim.ty, resource.clone()));
        doubted.is_some_and(|claims| claims.contains(&claim.meta.uid))
    }

    /// Whether a claim that is being deleted has nothing left to wait for: everything that held it has
    /// been released, and nothing is on its way to being made for it.
    fn may_go(&self, claim: &Claim) -> bool {
        // Once it is there, it tells itself whether it still holds the claim.
        let being_made = provisioned_names(claim).into_iter().any(|made| {
            self.state.find_resource(claim.ty, &made).is_none()
                && self.busy.contains(&Target::Resource(claim.ty, made))
        });
        let released = |entry: &ResourceEntry| {
            let phase = entry.resource.status.phase;
            let ended = matches!(
                phase,
                Some(ResourcePhase::Released | ResourcePhase::Failed | ResourcePhase::Deleting)
            );
            entry.is_released() && (ended || entry.resource.meta.deleting)
        };
        let mut holders = self.state.holders_of(&claim.meta.uid).filter_map(|id| self.state.resource(id));
        !being_made && holders.all(released)
    }

    pub(super) fn write_claim(&mut self, claim: &Claim, change: Change) {
        self.write(Target::Claim(claim.meta.uid.clone()), Kind::Claim(claim.ty), &claim.meta, change);
    }

    /// Gives up what was under way for a claim and queues it again.
    pub(super) fn retry_claim(&mut self, uid: &Uid, now: Time) {
        self.drop_binding(uid);
        self.bindings.remove(uid);
        self.requeue(uid, now);
    }

    pub(super) fn sync_resource(&mut self, ty: TypeId, name: &Name, now: Time) {
        self.follow_parts_of(ty, name);
        self.compile_script(ty, name);
        let Some(id) = self.state.find_resource(ty, name) else { return };
        let Some(entry) = self.state.resource(id) else { return };
        let implementation = self.implementation(entry);
        let trouble = self.troubles.get(&(Target::Resource(ty, name.clone()), Effect::Destruction));
        let step = plan_resource(entry, &implementation, trouble.map(String::as_str), now);
        let unresolved = self.awaits_word_of_holder(entry);
        // Nobody can join: what is written to it next is written when it is let go.
        let is_taken = matches!(self.state.standing(entry), Standing::Reserved | Standing::Full);
        let entry_meta = entry.resource.meta.clone();
        if let Some(deadline) =
            entry.resource.deadline().filter(|at| *at > now && !entry.resource.is_offered())
        {
            self.retries.insert((deadline, Target::Resource(ty, name.clone())));
        }
        // Claims that are being deleted wait for their resource to be released: look at them again.
        let held = entry.resource.claim_refs.iter().filter_map(|r| r.uid.as_ref());
        let leaving = held.filter(|uid| self.bindings.get(*uid) == Some(&Binding::Leaving));
        self.dirty.extend(leaving.cloned().map(Target::Claim));
        match step {
            // Whether it is held or released is being asked: until then its status says what it said.
            Step::Write(change) if unresolved && change.is_status() => {}
            Step::Rest => match self.follow_class(ty, name) {
                Some(change) => {
                    self.write(Target::Resource(ty, name.clone()), Kind::Resource(ty), &entry_meta, change);
                }
                None => self.sync_parts(ty, name, implementation.steps),
            },
            Step::Write(change) => {
                self.actions.extend(note_about(&entry.resource, &change).map(Action::Tell));
                self.destroys.remove(&(ty, name.clone()));
                let may_wait =
                    is_taken && matches!(*change, Change::ResourceStatus { phase: ResourcePhase::Bound, .. });
                let target = Target::Resource(ty, name.clone());
                self.write_when(may_wait, target, Kind::Resource(ty), &entry_meta, *change);
            }
            Step::Destroy => self.destroy(ty, name),
        }
    }

    /// Whether a holder is not in the cache and a live read has not told yet whether it is gone.
    fn awaits_word_of_holder(&self, entry: &ResourceEntry) -> bool {
        let mut holders = entry.resource.claim_refs.iter().filter_map(|r| r.uid.as_ref());
        holders.any(|uid| self.state.claim(uid).is_none() && !entry.departed.contains_key(uid))
    }

    /// Destroys a resource once claim and resource have both been read live and still agree.
    fn destroy(&mut self, ty: TypeId, name: &Name) {
        if !self.has_read_all(ty, name, None) {
            return;
        }
        let Some(id) = self.state.find_resource(ty, name) else { return };
        let Some(entry) = self.state.resource(id) else { return };
        let Meta { key, uid, revision, .. } = entry.resource.meta.clone();
        let id = self.send(Target::Resource(ty, name.clone()), Effect::Destruction);
        self.actions.push(Action::Delete { id, kind: Kind::Resource(ty), key, uid, revision });
    }

    /// Whether a resource, the claims that held it and `part` have been read live since it was last changed.
    /// Asks for the reads where they have not; says yes once for each time they were asked for.
    pub(super) fn has_read_all(&mut self, ty: TypeId, name: &Name, part: Option<&PartKey>) -> bool {
        let Some(id) = self.state.find_resource(ty, name) else { return false };
        let Some(entry) = self.state.resource(id) else { return false };
        let revision = entry.resource.meta.revision;
        match self.destroys.get(&(ty, name.clone())) {
            Some(check) if check.revision.is_none() || !check.claims.is_empty() || check.part.is_some() => {
                false
            }
            Some(check) if check.revision == Some(revision) => {
                self.destroys.remove(&(ty, name.clone()));
                true
            }
            Some(_) | None => {
                self.read_all(ty, name, part);
                false
            }
        }
    }

    fn read_all(&mut self, ty: TypeId, name: &Name, part: Option<&PartKey>) {
        let Some(id) = self.state.find_resource(ty, name) else { return };
        let Some(entry) = self.state.resource(id) else { return };
        let key = entry.resource.meta.key.clone();
        let is_gone = |uid: &Uid| entry.departed.get(uid) == Some(&Departure::Gone);
        let gone = entry.resource.claim_refs.iter().filter(|r| r.uid.as_ref().is_some_and(is_gone));
        let gone: Vec<_> = gone.map(|r| (r.claim.clone(), r.uid.clone())).collect();
        let claims = gone.iter().map(|(key, _)| key.clone()).collect();
        let check = DestroyCheck { revision: None, claims, part: part.cloned() };
        self.destroys.insert((ty, name.clone()), check);
        self.read(Kind::Resource(ty), key, None);
        gone.into_iter().for_each(|(key, uid)| self.read(Kind::Claim(ty), key, uid));
        part.into_iter().for_each(|part| self.read_part(part, None));
    }

    fn sync_class(&mut self, ty: TypeId, name: &Name) {
        let Some(class) = self.state.classes.get(&(ty, name.clone())) else { return };
        if let Some(change) = plan_class(class, self.state.class_use(ty, name)) {
            let meta = class.meta.clone();
            self.write(Target::Class(ty, name.clone()), Kind::Class(ty), &meta, change);
        }
    }

    fn sync_quota(&mut self, key: &QuotaKey) {
        let Some((quota, used)) = self.state.ledger.find_quota(key) else { return };
        if let Some(change) = plan_quota(quota, used) {
            let meta = quota.meta.clone();
            let kind = if key.namespace.is_empty() { Kind::ClusterQuota } else { Kind::Quota };
            self.write(Target::Quota(key.clone()), kind, &meta, change);
        }
    }

    fn write(&mut self, target: Target, kind: Kind, meta: &Meta, change: Change) {
        self.write_when(false, target, kind, meta, change);
    }

    fn write_when(&mut self, may_wait: bool, target: Target, kind: Kind, meta: &Meta, change: Change) {
        let id = self.send(target, Effect::Change);
        self.flights.entry(id).and_modify(|flight| flight.from = Some(meta.revision));
        // Always tied to the revision that it was computed from. References and finalizers are lists that are
        // written whole: a stale one would undo somebody's work. And the API checks no UID on a status: an
        // untied one could land on another object that was made under the same name since.
        self.actions.push(Action::Write(Write {
            id,
            kind,
            key: meta.key.clone(),
            uid: meta.uid.clone(),
            revision: Some(meta.revision),
            may_wait,
            change,
        }));
    }

    pub(super) fn tell_claim(&mut self, claim: &Claim, change: &Change) {
        let Change::ClaimStatus { phase, conditions, .. } = change else { return };
        self.tell_ready(claim, conditions);
        let Some(bound) = conditions.iter().find(|c| &*c.kind == reasons::BOUND) else { return };
        let was = claim.status.conditions.iter().find(|c| c.kind == bound.kind);
        if was.is_some_and(|was| was.reason == bound.reason) {
            return;
        }
        let word = reasons::bound::find(&bound.reason);
        let warning = match phase {
            ClaimPhase::Bound => word == reasons::bound::NOT_AS_ASKED,
            ClaimPhase::Lost => true,
            ClaimPhase::Pending => word != reasons::bound::PROVISIONING,
        };
        let message = bound.message.to_string();
        self.tell(Kind::Claim(claim.ty), &claim.meta.key, &claim.meta.uid, warning, word, message);
    }

    fn tell_ready(&mut self, claim: &Claim, conditions: &[ConditionView]) {
        let Some(ready) = conditions.iter().find(|c| &*c.kind == reasons::READY) else { return };
        let was = claim.status.conditions.iter().find(|c| c.kind == ready.kind);
        if was.is_some_and(|was| was.reason == ready.reason) {
            return;
        }
        if let Some((word, warning)) = told_of_ready(&ready.reason) {
            let message = ready.message.to_string();
            self.tell(Kind::Claim(claim.ty), &claim.meta.key, &claim.meta.uid, warning, word, message);
        }
    }
}

/// Whether people are told of a reason of the claim's Ready condition, and whether as a warning. What waits for
/// others is told by the condition alone.
fn told_of_ready(word: &str) -> Option<(&'static str, bool)> {
    let told = [
        (reasons::ready::CONNECTION_PUBLISHED, false),
        (reasons::ready::SECRET_CONFLICT, true),
        (reasons::ready::SECRET_NOT_ALLOWED, true),
        (reasons::ready::LOGIN_REVOKED, true),
    ];
    told.into_iter().find(|(reason, _)| *reason == word)
}

/// A resource that goes and leaves its implementation behind says where: afterwards nobody can.
fn note_of_what_stays(resource: &Resource, finalizers: &[Name]) -> Option<Note> {
    let goes = resource.meta.deleting && !finalizers.iter().any(|f| &**f == RESOURCE_PROTECTION);
    let parts = retained_parts(resource).filter(|_| goes)?;
    let (key, uid) = (resource.meta.key.clone(), resource.meta.uid.clone());
    let message = format!("it goes, its implementation stays: {parts}");
    let reason = reasons::resource::IMPLEMENTATION_RETAINED;
    Some(Note { kind: Kind::Resource(resource.ty), key, uid, warning: false, reason, message })
}

/// What people are told when a resource's status is about to change.
fn note_about(resource: &Resource, change: &Change) -> Option<Note> {
    if let Change::ResourceSpec { finalizers, .. } = change {
        return note_of_what_stays(resource, finalizers);
    }
    let Change::ResourceStatus { phase, conditions, .. } = change else { return None };
    let ready = conditions.iter().find(|c| &*c.kind == reasons::READY)?;
    let was = resource.status.conditions.iter().find(|c| c.kind == ready.kind);
    let is_news = was.is_none_or(|was| was.reason != ready.reason);
    let (warning, reason) = match phase {
        ResourcePhase::Released => (false, "Released"),
        ResourcePhase::Failed => (true, "Failed"),
        ResourcePhase::Creating if is_news => (true, reasons::resource::find_trouble(&ready.reason)?),
        ResourcePhase::Creating
        | ResourcePhase::Pending
        | ResourcePhase::Available
        | ResourcePhase::Bound
        | ResourcePhase::Deleting => return None,
    };
    let (key, uid) = (resource.meta.key.clone(), resource.meta.uid.clone());
    let message = ready.message.to_string();
    Some(Note { kind: Kind::Resource(resource.ty), key, uid, warning, reason, message })
}

/// Whether a claim's status gives this as the reason of its binding, or gives none: a recording keeps no messages.
fn says(claim: &Claim, message: &str) -> bool {
    let bound = claim.status.conditions.iter().find(|condition| &*condition.kind == reasons::BOUND);
    bound.is_none_or(|bound| bound.message.is_empty() || &*bound.message == message)
}
