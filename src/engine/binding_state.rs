//! Settling a claim: its binding follows from both sides. The resource's side is the truth: the claim that it references
//! is bound, whatever the claim's own fields say.

use super::assume::counted_amounts;
use super::memory::Target;
use super::{Binding, Engine};
use crate::api::reasons;
use crate::cache::{Departure, ResourceId};
use crate::lifecycle::{cannot_be_made, was_never_made};
use crate::model::{Claim, ClaimPhase, Kind, Name, ReclaimPolicy, Resource, ResourcePhase, Time, Uid};

impl Engine {
    /// Derives a claim's binding and touches what must be written for it.
    pub(super) fn settle_claim(&mut self, uid: &Uid, now: Time) {
        let Some(claim) = self.state.claim(uid).cloned() else { return };
        let holders: Vec<ResourceId> = self.state.holders_of(uid).collect();
        // Before all else, deletion included: what this engine cannot see it must not end.
        if let Some(namespace) = self.unmanaged_namespace(&claim) {
            return self.leave_unmanaged(&claim, namespace);
        }
        self.work.touch(Target::Claim(uid.clone()));
        if claim.meta.deleting {
            return self.leave(uid, &holders);
        }
        if claim.status.phase == ClaimPhase::Lost {
            return match self.find_lost(&claim, &holders) {
                Some(id) => self.adopt(&claim, id, &holders, now),
                None => self.settle_lost(&claim, now),
            };
        }
        let holders = self.without_failed(&claim, holders);
        match self.choose_holder(&claim, &holders) {
            Some(id) if self.is_recorded(&claim, id) => self.adopt(&claim, id, &holders, now),
            // Bound by its own record to a resource that does not say so: that one has its data, and
            // another that claims to hold it never will.
            Some(_) => {
                self.let_go(&claim.meta.uid, &holders, None);
                self.settle_unheld(&claim, now);
            }
            None => self.settle_unheld(&claim, now),
        }
    }

    /// The namespace of the resource that a claim is bound to by its own record, where that is not the system namespace.
    fn unmanaged_namespace(&self, claim: &Claim) -> Option<Name> {
        claim.status.resource.as_ref()?;
        claim.status.resource_namespace.clone().filter(|namespace| *namespace != self.config.system_namespace)
    }

    /// Another controller's claim, or ours under a wrong system namespace: whether its resource exists cannot be judged here.
    fn leave_unmanaged(&mut self, claim: &Claim, namespace: Name) {
        let uid = &claim.meta.uid;
        let resource = claim.status.resource.clone().unwrap_or_default();
        let binding = Binding::Unmanaged { namespace: namespace.clone(), resource: resource.clone() };
        if self.bindings.get(uid) == Some(&binding) {
            return;
        }
        let message = format!(
            "bound to {resource} in namespace {namespace}, which this controller does not manage: its system namespace is \
             {}. The claim is left as it is",
            self.config.system_namespace
        );
        self.work.emit(Kind::Claim(claim.ty), &claim.meta, true, reasons::event::NOT_MANAGED, message);
        self.drop_binding(uid);
        // What it holds counts all the same; its class cannot be seen from here.
        let requests = claim.wants.as_ref().map(|wants| wants.requests.clone()).unwrap_or_default();
        self.charge(claim, None, requests);
        self.bindings.insert(uid.clone(), binding);
    }

    /// The claim is being deleted: it is neither bound nor provisioned, and its holders let it go.
    fn leave(&mut self, uid: &Uid, holders: &[ResourceId]) {
        self.drop_binding(uid);
        self.bindings.insert(uid.clone(), Binding::Leaving);
        for id in holders {
            self.depart(*id, uid, Departure::Gone);
        }
    }

    /// Releases what was provisioned for a claim and has failed for good, once the claim has it on record: its class is
    /// not tried again, and the incomplete resource goes by its policy. A claim that was to share it is decided about
    /// anew.
    fn without_failed(&mut self, claim: &Claim, holders: Vec<ResourceId>) -> Vec<ResourceId> {
        let (failed, left): (Vec<_>, Vec<_>) =
            holders.into_iter().partition(|id| self.is_given_up(claim, *id));
        self.let_go(&claim.meta.uid, &failed, None);
        left
    }

    fn is_given_up(&self, claim: &Claim, id: ResourceId) -> bool {
        let Some(resource) = self.state.resource(id).map(|entry| &entry.resource) else { return false };
        if claim.was_bound() {
            return false;
        }
        let is_its_own = resource.provisioned_for.as_ref() == Some(&claim.meta.uid);
        if !is_its_own {
            return resource.provisioned_for.is_some() && cannot_be_made(resource).is_some();
        }
        let class = resource.provisioned_by.as_ref();
        // A class that was deleted needs no record.
        let class_is_gone =
            || !class.is_some_and(|c| self.state.classes.contains_key(&(claim.ty, c.clone())));
        let failed = || cannot_be_made(resource).is_some() && class_is_gone();
        // On record, it is given up whatever it says now: it may be on its way out.
        claim.has_given_up(&resource.meta.uid) || failed()
    }

    /// Of the resources that hold a claim, the one that it is bound to: its own record first, then the name in its spec,
    /// then the first by name. Two can hold it after a crash between two tries.
    fn choose_holder(&self, claim: &Claim, holders: &[ResourceId]) -> Option<ResourceId> {
        let named = |id: &&ResourceId, name: Option<&Name>| {
            self.state.resource(**id).is_some_and(|e| Some(&e.resource.meta.key.name) == name)
        };
        let recorded = holders.iter().find(|id| named(id, claim.status.resource.as_ref()));
        let requested = || holders.iter().find(|id| named(id, claim.resource_name.as_ref()));
        let first =
            || holders.iter().min_by_key(|id| self.state.resource(**id).map(|e| &e.resource.meta.key.name));
        recorded.or_else(requested).or_else(first).copied()
    }

    /// Whether a holder is the one that the claim was bound to, or the claim was never bound.
    fn is_recorded(&self, claim: &Claim, id: ResourceId) -> bool {
        let recorded = claim.status.resource.as_ref().filter(|_| claim.status.phase == ClaimPhase::Bound);
        let name = self.state.resource(id).map(|e| &e.resource.meta.key.name);
        recorded.is_none() || recorded == name
    }

    /// The resource holds the claim: the bind is completed, without checking again whether it fits.
    fn adopt(&mut self, claim: &Claim, id: ResourceId, holders: &[ResourceId], now: Time) {
        let uid = &claim.meta.uid;
        self.break_promise(uid);
        self.let_go(uid, holders, Some(id));
        self.state.set_departed(id, uid, None);
        let Some(entry) = self.state.resource(id) else { return };
        let resource = entry.resource.meta.key.name.clone();
        let is_its_own = entry.resource.provisioned_for.as_ref() == Some(uid);
        let failed = entry.resource.status.phase == Some(ResourcePhase::Failed);
        let usable = self.state.is_implemented(&entry.resource) && !failed;
        let waits = is_its_own && !usable || self.state.is_being_made(&entry.resource);
        let class = entry.resource.offer.as_ref().ok().and_then(|o| o.class.clone());
        let held = entry.resource.claim_refs.iter().find(|r| r.uid.as_ref() == Some(uid));
        let given = held.map(|r| r.requests.clone()).unwrap_or_default();
        let amounts = counted_amounts(entry, claim, given);
        self.work.touch(Target::Resource(claim.ty, resource.clone()));
        if matches!(self.bindings.get(uid), Some(Binding::Assumed { resource: r, .. }) if *r != resource) {
            self.unassume(uid);
        }
        self.charge(claim, class.clone(), amounts);
        let was_bound = claim.status.phase != ClaimPhase::Pending;
        if waits && !was_bound {
            self.enqueue_in_flight(claim, now);
            let class = class.unwrap_or_default();
            self.bindings.insert(uid.clone(), Binding::Provisioning { class, resource });
        } else {
            if self.queue.contains(uid) {
                self.stats.bound += 1;
                self.queue.pass_on(uid, &claim.meta.key.namespace);
                self.queue.settle(uid);
            }
            self.bindings.insert(uid.clone(), Binding::Bound { resource });
        }
    }

    /// No resource holds the claim.
    pub(super) fn settle_unheld(&mut self, claim: &Claim, now: Time) {
        let uid = &claim.meta.uid;
        let in_progress = match self.bindings.get(uid) {
            // The binding alone does not prove it: the reference may have been written and removed again since.
            Some(Binding::Assumed { resource, .. }) => {
                let entry = self.state.resource_named(claim.ty, resource);
                entry.is_some_and(|e| e.assumed.iter().any(|a| a.uid.as_ref() == Some(uid)))
            }
            // Once it exists and does not hold the claim, another client has removed the reference.
            Some(Binding::Provisioning { resource, .. }) => {
                self.state.find_resource(claim.ty, resource).is_none()
            }
            Some(Binding::Lost { .. }) => true,
            Some(
                Binding::Waiting(_) | Binding::Bound { .. } | Binding::Leaving | Binding::Unmanaged { .. },
            )
            | None => false,
        };
        if in_progress {
            return;
        }
        if claim.was_bound() {
            return self.restore(claim, now);
        }
        // The write that says Bound is in flight, and may land: then what the claim was bound to is its own, and nothing
        // else is. The answer comes first; it settles the claim again.
        let is_bound = self.bindings.get(uid).is_some_and(|binding| binding.bound_to().is_some());
        if is_bound && self.writes.is_busy(&Target::Claim(uid.clone())) {
            return;
        }
        if !self.queue.contains(uid) || !matches!(self.bindings.get(uid), Some(Binding::Waiting(_))) {
            // What it had is gone, and what it was charged for that goes with it.
            self.retry_claim(uid, now);
        }
    }

    /// Removes a claim from every holder but `keep`.
    fn let_go(&mut self, uid: &Uid, holders: &[ResourceId], keep: Option<ResourceId>) {
        for id in holders.iter().filter(|id| Some(**id) != keep) {
            let how = self.loser_departure(*id, uid);
            self.depart(*id, uid, how);
        }
    }

    /// A second resource that holds the claim was provisioned for this claim alone, or could not be provisioned at all:
    /// where its policy says Delete, or nothing was ever created of it, it is reclaimed, otherwise others may bind it.
    fn loser_departure(&self, id: ResourceId, uid: &Uid) -> Departure {
        let is_useless = |resource: &Resource| {
            resource.provisioned_for.as_ref() == Some(uid) || cannot_be_made(resource).is_some()
        };
        let is_disposable =
            |resource: &Resource| resource.reclaim == ReclaimPolicy::Delete || was_never_made(resource);
        let reclaimed =
            self.state.resource(id).is_some_and(|e| is_useless(&e.resource) && is_disposable(&e.resource));
        if reclaimed { Departure::Gone } else { Departure::Elsewhere }
    }

    fn depart(&mut self, id: ResourceId, uid: &Uid, how: Departure) {
        self.state.set_departed(id, uid, Some(how));
        if let Some(entry) = self.state.resource(id) {
            self.work.touch(Target::Resource(entry.resource.ty, entry.resource.meta.key.name.clone()));
        }
    }
}
