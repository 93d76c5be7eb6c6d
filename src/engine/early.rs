//! What is settled before the start. An engine that is copied for many questions settles it once; a copy that is
//! shown an object anew settles whom that concerns again, at its start, with all others. Nothing is decided here.

use super::{Engine, Target};
use crate::cache::ResourceId;
use crate::model::{Claim, ClaimPhase, Name, Time, TypeId, Uid};

impl Engine {
    /// Settles the bound claims of which `is_steady` holds, given the claim and the name of its resource, before the
    /// start. They are not looked at again by then, and not written to: the caller knows that nothing would come of it.
    pub fn settle_early(&mut self, is_steady: impl Fn(&Claim, &Name) -> bool, now: Time) {
        if self.synced {
            return;
        }
        let steady = self.state.claims().filter(|claim| {
            let resource = claim.status.resource.as_ref();
            resource.is_some_and(|name| self.is_plainly_held(claim, name) && is_steady(claim, name))
        });
        let steady: Vec<Uid> = steady.map(|claim| claim.meta.uid.clone()).collect();
        for uid in steady {
            self.settle_claim(&uid, now);
            self.dirty.remove(&Target::Claim(uid));
        }
        let late = self.state.claims().map(|claim| &claim.meta.uid);
        self.late = Some(late.filter(|uid| !self.bindings.contains(*uid)).cloned().collect());
    }

    /// The claims that are still to be settled, in order.
    pub(super) fn take_unsettled(&mut self) -> Vec<Uid> {
        match self.late.take() {
            Some(late) => late.into_iter().collect(),
            None => self.state.claims().map(|claim| claim.meta.uid.clone()).collect(),
        }
    }

    /// Nothing is written to a resource until it is seen again, and none of its holders is asked after: the caller knows
    /// that nothing would come of it, and that all of them are there.
    pub fn leave_alone(&mut self, ty: TypeId, resource: Name) {
        if !self.synced {
            self.busy.insert(Target::Resource(ty, resource), ());
        }
    }

    /// Whether both sides say that a claim is bound to this resource, and no other resource says so.
    fn is_plainly_held(&self, claim: &Claim, resource: &Name) -> bool {
        let mut holders = self.state.holders_of(&claim.meta.uid);
        let is_it =
            |id: ResourceId| self.state.resource(id).is_some_and(|e| e.resource.meta.key.name == *resource);
        claim.status.phase == ClaimPhase::Bound
            && !claim.meta.deleting
            && holders.next().is_some_and(is_it)
            && holders.next().is_none()
    }

    /// A resource is shown before the start: it is as any other again, and so are those whom it holds.
    pub(super) fn unsettle_resource(&mut self, ty: TypeId, name: &Name, id: ResourceId) {
        if !self.synced {
            self.busy.remove(&Target::Resource(ty, name.clone()));
            self.unsettle_holders(id);
        }
    }

    /// Something about a claim is otherwise than when it was settled: the start looks at it.
    pub(super) fn unsettle(&mut self, uid: &Uid) {
        if self.synced {
            return;
        }
        if self.bindings.remove(uid).is_some() {
            self.drop_binding(uid);
        }
        if let Some(late) = &mut self.late {
            late.insert(uid.clone());
        }
    }

    /// The same for everybody whom a resource holds.
    fn unsettle_holders(&mut self, id: ResourceId) {
        if !self.bindings.is_empty() {
            self.holders(id, |_| false).iter().for_each(|uid| self.unsettle(uid));
        }
    }
}
