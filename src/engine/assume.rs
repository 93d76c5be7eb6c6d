//! Assuming a binding in memory before its write, with the charge to quotas; and undoing that: back to the queue, or out
//! of it.

use super::memory::Target;
use super::{Binding, Engine};
use crate::cache::{Charge, ResourceEntry, ResourceId};
use crate::model::{Capacity, Claim, ClaimPhase, ClaimRef, Name, Time, TypeId, Uid};

impl Engine {
    /// Assigns a resource to a claim in memory; the write that commits it follows.
    pub(super) fn assume_binding(
        &mut self,
        claim: &Claim,
        id: ResourceId,
        class: Option<Name>,
        requests: Capacity,
    ) {
        self.break_promise(&claim.meta.uid);
        let Some(entry) = self.state.resource(id) else { return };
        let resource = entry.resource.meta.key.name.clone();
        let is_kept = entry.resource.claim_refs.iter().any(|r| r.uid.is_none() && r.claim == claim.meta.key);
        let reserved = is_kept || self.losses.dropped_ref(&claim.meta.uid).is_some_and(|r| r.reserved);
        let (key, uid) = (claim.meta.key.clone(), claim.meta.uid.clone());
        let amounts = counted_amounts(entry, claim, requests.clone());
        let claim_ref = ClaimRef { claim: key, uid: Some(uid.clone()), requests, reserved };
        self.state.assume(id, claim_ref);
        self.charge(claim, class.clone(), amounts);
        self.work.touch(Target::Resource(claim.ty, resource.clone()));
        let since = self.queue.helpful_events();
        self.bindings.insert(uid, Binding::Assumed { resource, class, since });
    }

    pub(super) fn charge(&mut self, claim: &Claim, class: Option<Name>, amounts: Capacity) {
        let namespace = claim.meta.key.namespace.clone();
        let charge = Charge { namespace: namespace.clone(), class, engine: claim.group.clone(), amounts };
        let before = self.state.quota_usage.find_charge(&claim.meta.uid);
        if before == Some(&charge) {
            return;
        }
        // Charged less, or in another class, it leaves room for others.
        let frees = before.is_some_and(|before| {
            !charge.amounts.covers(&before.amounts)
                || (&before.class, &before.engine) != (&charge.class, &charge.engine)
        });
        self.state.quota_usage.charge(&claim.meta.uid, charge);
        let quotas = self.state.quota_usage.keys_for(&namespace);
        self.work.touch_all(quotas.iter().cloned().map(Target::Quota));
        if frees {
            self.wake_for_quotas(&quotas);
        }
    }

    /// Removes a claim from the queue, and releases its assumption, its provisioning and its charge.
    pub(super) fn drop_binding(&mut self, uid: &Uid) {
        self.queue.remove(uid);
        self.unassume(uid);
        self.break_promise(uid);
        self.provisioning.forget(uid);
        let quotas = self.state.quota_usage.release(uid);
        self.work.touch_all(quotas.iter().cloned().map(Target::Quota));
        self.wake_for_quotas(&quotas);
    }

    /// Releases what was assumed for a claim, and offers it to others.
    pub(super) fn unassume(&mut self, uid: &Uid) {
        let Some(Binding::Assumed { resource, .. }) = self.bindings.get(uid) else { return };
        let resource = resource.clone();
        for ty in TypeId::all() {
            if let Some(id) = self.state.find_resource(ty, &resource) {
                let before = self.state.index_of(ty).view(id);
                self.state.forget(id, uid);
                self.wake_for_resource(id, before.as_ref());
            }
        }
    }

    /// A write on a resource did not land: what was assumed of it and is not on it is released.
    pub(super) fn release_assumed(&mut self, target: &Target, now: Time) {
        let Target::Resource(ty, name) = target else { return };
        let Some(id) = self.state.find_resource(*ty, name) else { return };
        let assumed = self.state.resource(id).map(|e| e.assumed.clone()).unwrap_or_default();
        // Counted before anything is released: what we release ourselves is news to others, and no
        // reason for the same claim to try the same write again without a pause.
        let helpful = self.queue.helpful_events();
        assumed.into_iter().filter_map(|a| a.uid).for_each(|uid| self.release(id, &uid, helpful, now));
    }

    /// Releases a resource that was assumed for a claim, and decides what becomes of the claim.
    /// `helpful` is the count of helpful events before anything was released.
    fn release(&mut self, id: ResourceId, uid: &Uid, helpful: u64, now: Time) {
        let (since, resource) = match self.bindings.get(uid) {
            Some(Binding::Assumed { since, resource, .. }) => (*since, resource.clone()),
            _ => return self.state.forget(id, uid),
        };
        self.unassume(uid);
        // Also where its binding names another resource.
        self.state.forget(id, uid);
        let Some(claim) = self.state.claim(uid) else { return };
        if claim.was_bound() {
            // Its data is there and nowhere else. It keeps its charge and is settled once the resource
            // has been read; as a claim that waits it could be given other data.
            self.losses.doubt(claim.ty, &resource, uid);
            self.queue.remove(uid);
            self.bindings.insert(uid.clone(), Binding::Bound { resource });
            return;
        }
        let quotas = self.state.quota_usage.release(uid);
        self.work.touch_all(quotas.iter().cloned().map(Target::Quota));
        self.bindings.insert(uid.clone(), Binding::Waiting(None));
        self.queue.back_off(uid, helpful > since, now);
        self.wake_for_quotas(&quotas);
    }

    /// The resource that others waited to share can be seen by now, or will not be created any more.
    pub(super) fn break_promise(&mut self, uid: &Uid) {
        let Some(Binding::Provisioning { class, resource }) = self.bindings.get(uid) else { return };
        let (class, resource) = (class.clone(), resource.clone());
        let is_owned = |ty: &TypeId| self.provisioning.owner(*ty, &resource) == Some(uid);
        if let Some(ty) = TypeId::all().find(is_owned) {
            self.end_promise(ty, &class, &resource);
        }
    }

    /// Claims that waited to share a resource are reconciled.
    pub(super) fn end_promise(&mut self, ty: TypeId, class: &Name, resource: &Name) {
        let waited = self.state.shared_pending.end_promise(ty, class, resource);
        self.work.touch_all(waited.into_iter().map(Target::Claim));
    }

    /// Puts a claim into the queue as one that is ready to be tried.
    pub(super) fn requeue(&mut self, uid: &Uid, now: Time) {
        let Some(claim) = self.state.claim(uid).cloned() else { return };
        match self.bindings.get(uid) {
            Some(Binding::Waiting(_)) | None => {}
            Some(Binding::Assumed { resource, .. })
                if self.state.find_resource(claim.ty, resource).is_none() => {}
            // What is under way, done or lost is not begun anew because the spec was edited.
            Some(
                Binding::Assumed { .. }
                | Binding::Provisioning { .. }
                | Binding::Lost { .. }
                | Binding::Leaving
                | Binding::Unmanaged { .. },
            ) => return,
            Some(Binding::Bound { .. }) => {
                if claim.status.phase == ClaimPhase::Bound {
                    return;
                }
            }
        }
        // What it had is gone, and what it was charged for that goes with it.
        self.drop_binding(uid);
        self.queue.add(&claim, now);
        self.bindings.insert(uid.clone(), Binding::Waiting(None));
    }

    /// Gives up what was under way for a claim and queues it again.
    pub(super) fn retry_claim(&mut self, uid: &Uid, now: Time) {
        self.drop_binding(uid);
        self.bindings.remove(uid);
        self.requeue(uid, now);
    }

    /// Queues a claim whose binding is decided already, so that it is counted and not tried.
    pub(super) fn enqueue_in_flight(&mut self, claim: &Claim, now: Time) {
        let uid = &claim.meta.uid;
        if !self.queue.contains(uid) {
            self.queue.add(claim, now);
        }
        // Parked or pausing, it is not to be tried once more while this is under way.
        self.queue.wake(uid);
        self.queue.take(uid);
    }
}

/// What quotas count of a resource that a claim was given some of.
pub(super) fn counted_amounts(entry: &ResourceEntry, claim: &Claim, given: Capacity) -> Capacity {
    match &entry.resource.offer {
        Ok(offer) => offer.counted_for(&given, claim.is_exclusive()),
        Err(_) => given,
    }
}
