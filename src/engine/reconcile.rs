//! Reconciling touched objects: each is brought one step closer to what it should be, by at most one write, whose answer
//! leads to the next.

use super::emit::note_about;
use super::memory::{Effect, Target};
use super::{Binding, Engine};
use crate::action::{Action, Change, Write};
use crate::api::reasons;
use crate::cache::{QuotaKey, ResourceEntry};
use crate::lifecycle::{
    ClaimSide, Step, plan_claim, plan_class, plan_quota, plan_resource, provisioned_names,
};
use crate::model::{Claim, ClaimPhase, Kind, Meta, Name, ResourcePhase, Time, TypeId, Uid};
use crate::predicates::Predicate;
use crate::scheduler::{drift, spec_at_binding};
use std::sync::Arc;

impl Engine {
    /// Takes every touched object one step on. Returns whether there was any.
    pub(super) fn reconcile_all(&mut self, now: Time) -> bool {
        let mut any = false;
        while let Some(target) = self.work.pop() {
            any = true;
            if self.writes.is_busy(&target) {
                continue;
            }
            match &target {
                Target::Claim(uid) => self.reconcile_claim(uid, now),
                Target::Resource(ty, name) => self.reconcile_resource(*ty, name, now),
                Target::Class(ty, name) => self.reconcile_class(*ty, name),
                Target::Quota(key) => self.reconcile_quota(key),
                // The next step of a part follows from its resource, and the connection to that may change too.
                Target::Part(part) => {
                    let resource = Target::Resource(part.ty, part.resource.clone());
                    if !self.writes.is_busy(&resource) {
                        self.reconcile_resource(part.ty, &part.resource, now);
                    }
                    self.touch_holders(part.ty, &part.resource);
                }
                // The next step of these follows from their claim.
                Target::Publication(_) | Target::Published(..) => {}
            }
        }
        any
    }

    /// The connection of the claims that hold a resource may change.
    fn touch_holders(&mut self, ty: TypeId, name: &Name) {
        let entry = self.state.resource_named(ty, name);
        let holders = entry.into_iter().flat_map(|entry| entry.resource.holders());
        let held = holders.filter_map(|holder| holder.uid.clone()).map(Target::Claim);
        self.work.touch_all(held.filter(|claim| !self.writes.is_busy(claim)));
    }

    fn reconcile_claim(&mut self, uid: &Uid, now: Time) {
        let Some(claim) = self.state.claim(uid).cloned() else { return };
        let mut may_wait = false;
        // A claim that is refused no longer is contested no longer: what this engine writes to it now is new.
        let may_be_refused = matches!(self.bindings.get(uid), None | Some(Binding::Waiting(_)));
        if !self.writes.contests.is_empty() && !may_be_refused {
            self.writes.contests.forget(uid);
        }
        let change = match self.bindings.get(uid) {
            None | Some(Binding::Waiting(None) | Binding::Assumed { .. } | Binding::Unmanaged { .. }) => None,
            Some(Binding::Waiting(Some(refused))) => {
                let side = ClaimSide::Pending { reason: refused.reason, message: &refused.refusal.message };
                let change = plan_claim(&claim, &side, now);
                let refusal = Arc::clone(&refused.refusal);
                let is_contested = (change.is_some() || !self.writes.contests.is_empty())
                    && self.is_contested(&claim, &refusal.message, now);
                change.filter(|_| !is_contested)
            }
            Some(Binding::Provisioning { class, resource }) => {
                let (class, resource) = (class.clone(), resource.clone());
                return self.reconcile_provisioning(&claim, &class, &resource, now);
            }
            // A live read decides whether the resource of this name is the one that it is bound to: until then its record
            // stays, or another of that name would take the place of the lost one.
            Some(Binding::Bound { resource }) if self.losses.is_doubted(claim.ty, resource, uid) => None,
            Some(Binding::Bound { resource }) => {
                let resource = resource.clone();
                let ready = self.reconcile_connection(&claim, &resource);
                // A connection is published only for a claim that is protected; without one, the record has low priority.
                let is_awaited =
                    ready.as_ref().is_some_and(|ready| ready.reason == reasons::ready::PUBLISHING);
                may_wait = !is_awaited && claim.status.phase == ClaimPhase::Bound;
                self.state.resource_named(claim.ty, &resource).and_then(|entry| {
                    let (drift, meta) = (drift(&self.state, &claim, entry), &entry.resource.meta);
                    let bound_spec = spec_at_binding(&claim, entry);
                    let side = ClaimSide::Bound {
                        resource: &meta.key,
                        uid: &meta.uid,
                        drift: drift.as_deref(),
                        bound_spec: &bound_spec,
                        ready: ready.as_ref(),
                    };
                    plan_claim(&claim, &side, now)
                })
            }
            Some(Binding::Lost { reason, message }) => match claim.status.phase {
                // Written once: the first reason is the one that was seen happen. Only an earlier version's is replaced.
                ClaimPhase::Lost if says(&claim, message) => None,
                ClaimPhase::Lost | ClaimPhase::Pending | ClaimPhase::Bound => {
                    plan_claim(&claim, &ClaimSide::Lost { reason, message }, now)
                }
            },
            Some(Binding::Leaving) => {
                // What was published is deleted before what it leads to.
                let withdrawn = self.withdraw_all(&claim);
                let side = ClaimSide::Leaving { may_go: withdrawn && self.may_go(&claim) };
                plan_claim(&claim, &side, now)
            }
        };
        if let Some(change) = change {
            self.emit_claim(&claim, &change);
            let may_wait = may_wait && matches!(change, Change::ClaimSpec { .. });
            self.write_when(may_wait, Target::Claim(uid.clone()), Kind::Claim(claim.ty), &claim.meta, change);
        }
    }

    /// Whether the refusal of a claim must not be written now, because another client overwrites it again and again.
    fn is_contested(&mut self, claim: &Claim, message: &str, now: Time) -> bool {
        let bound = claim.status.conditions.iter().find(|condition| &*condition.kind == reasons::BOUND);
        let Some(shown) = bound.map(|bound| &bound.message) else { return false };
        let contested = self.writes.contests.judge(&claim.meta.uid, shown, message, now);
        if let Some(until) = contested.paused_until {
            self.writes.retry_at(until, Target::Claim(claim.meta.uid.clone()));
        }
        if contested.is_first_pause {
            let message = "another client changes the status of this claim each time that this controller writes it: \
                           look for a second controller with another system namespace. It is written again with \
                           growing pauses"
                .to_owned();
            self.work.emit(
                Kind::Claim(claim.ty),
                &claim.meta,
                true,
                reasons::event::STATUS_CONTESTED,
                message,
            );
        }
        contested.waits
    }

    /// Whether a claim that is being deleted has nothing left to wait for: everything that held it was released, and no
    /// create for it is in flight.
    fn may_go(&self, claim: &Claim) -> bool {
        // Once it exists, its own references show whether it still holds the claim.
        let being_made = provisioned_names(claim).into_iter().any(|made| {
            self.state.find_resource(claim.ty, &made).is_none()
                && self.writes.is_busy(&Target::Resource(claim.ty, made))
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

    pub(super) fn reconcile_resource(&mut self, ty: TypeId, name: &Name, now: Time) {
        self.watch_parts_of(ty, name);
        self.compile_script(ty, name);
        let Some(entry) = self.state.resource_named(ty, name) else { return };
        let implementation = self.implementation(entry);
        let refusal = self.writes.refusal(Target::Resource(ty, name.clone()), Effect::Deletion);
        let step = plan_resource(entry, &implementation, refusal, now);
        let unresolved = self.awaits_read_of_holder(entry);
        // No other claim can join: the next write to it comes when it is released.
        let standing = self.state.standing(entry).and_then(|standing| standing.predicate(ty));
        let is_taken = matches!(standing, Some(Predicate::Reserved | Predicate::Sharing));
        let entry_meta = entry.resource.meta.clone();
        if let Some(deadline) =
            entry.resource.deadline().filter(|at| *at > now && !entry.resource.is_offered())
        {
            self.writes.retry_at(deadline, Target::Resource(ty, name.clone()));
        }
        // Claims that are being deleted wait for their resource to be released.
        let held = entry.resource.claim_refs.iter().filter_map(|r| r.uid.as_ref());
        let leaving = held.filter(|uid| self.bindings.get(uid) == Some(&Binding::Leaving));
        self.work.touch_all(leaving.cloned().map(Target::Claim));
        match step {
            // A live read decides whether it is held or released: until then its status stays.
            Step::Write(change) if unresolved && change.is_status() => {}
            Step::Rest => match self.class_update(ty, name) {
                Some(change) => {
                    self.write(Target::Resource(ty, name.clone()), Kind::Resource(ty), &entry_meta, change);
                }
                None => self.reconcile_parts(ty, name, implementation.steps),
            },
            Step::Write(change) => {
                self.work.push_all(note_about(&entry.resource, &change).map(Action::Emit));
                self.reads.forget_check(ty, name);
                let may_wait =
                    is_taken && matches!(*change, Change::ResourceStatus { phase: ResourcePhase::Bound, .. });
                let target = Target::Resource(ty, name.clone());
                self.write_when(may_wait, target, Kind::Resource(ty), &entry_meta, *change);
            }
            Step::Destroy => self.delete_resource(ty, name),
        }
    }

    /// Whether a holder is not in the cache, and its live read is not answered yet.
    fn awaits_read_of_holder(&self, entry: &ResourceEntry) -> bool {
        let mut holders = entry.resource.claim_refs.iter().filter_map(|r| r.uid.as_ref());
        holders.any(|uid| self.state.claim(uid).is_none() && !entry.departed.contains_key(uid))
    }

    /// Deletes a resource once claim and resource have both been read live and still agree.
    fn delete_resource(&mut self, ty: TypeId, name: &Name) {
        if !self.has_read_all(ty, name, None) {
            return;
        }
        let entry = self.state.resource_named(ty, name);
        let Some(entry) = entry else { return };
        let Meta { key, uid, revision, .. } = entry.resource.meta.clone();
        let id = self.writes.send(Target::Resource(ty, name.clone()), Effect::Deletion, None);
        self.work.push(Action::Delete { id, kind: Kind::Resource(ty), key, uid, revision });
    }

    fn reconcile_class(&mut self, ty: TypeId, name: &Name) {
        let Some(class) = self.state.classes.get(&(ty, name.clone())) else { return };
        if let Some(change) = plan_class(class, self.state.class_use(ty, name)) {
            let meta = class.meta.clone();
            self.write(Target::Class(ty, name.clone()), Kind::Class(ty), &meta, change);
        }
    }

    fn reconcile_quota(&mut self, key: &QuotaKey) {
        let Some((quota, used)) = self.state.quota_usage.find_quota(key) else { return };
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
        let id = self.writes.send(target, Effect::Change, Some(meta.revision));
        // Always tied to the revision that it was computed from. References and finalizers are lists that are
        // written whole: a stale one would undo another client's write. And the API checks no UID on a status: an
        // untied one could land on another object that was created under the same name since.
        self.work.push(Action::Write(Write {
            id,
            kind,
            key: meta.key.clone(),
            uid: meta.uid.clone(),
            revision: Some(meta.revision),
            may_wait,
            change,
        }));
    }
}

/// Whether a claim's status gives this as the reason of its binding, or gives none: a recording keeps no messages.
fn says(claim: &Claim, message: &str) -> bool {
    let bound = claim.status.conditions.iter().find(|condition| &*condition.kind == reasons::BOUND);
    bound.is_none_or(|bound| bound.message.is_empty() || &*bound.message == message)
}
