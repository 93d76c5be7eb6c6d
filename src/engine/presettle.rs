//! Settling before the start, for plans alone: the simulator copies one engine for each question of a what-if plan, and
//! settles once what no question concerns. A controller never calls this, and pays a flag for it: a copy that sees an
//! object anew settles its claims again at its own start, with all others. Nothing is decided here.

use super::Engine;
use super::memory::Target;
use crate::cache::ResourceId;
use crate::model::{Claim, ClaimPhase, Name, Time, TypeId, Uid};

impl Engine {
    /// Settles, before the start, the bound claims for which `is_steady` holds, given the claim and the name of its
    /// resource. The start skips them: the caller knows that nothing would come of it.
    pub fn presettle(&mut self, is_steady: impl Fn(&Claim, &Name) -> bool, now: Time) {
        if self.bindings.is_started() {
            return;
        }
        let steady = self.state.claims().filter(|claim| {
            let resource = claim.status.resource.as_ref();
            resource.is_some_and(|name| self.is_plainly_held(claim, name) && is_steady(claim, name))
        });
        let steady: Vec<Uid> = steady.map(|claim| claim.meta.uid.clone()).collect();
        for uid in steady {
            self.settle_claim(&uid, now);
            self.work.untouch(&Target::Claim(uid));
        }
        self.bindings.presettled(self.state.claims().map(|claim| &claim.meta.uid));
    }

    /// Leaves a resource alone until it is seen again: nothing is written to it and its holders are not read. The caller
    /// knows that nothing would come of it, and that all of them exist.
    pub fn leave_alone(&mut self, ty: TypeId, resource: Name) {
        if !self.bindings.is_started() {
            self.writes.hold(Target::Resource(ty, resource));
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

    /// A resource is seen before the start: the start reconciles it as any other, and settles its holders.
    pub(super) fn unsettle_resource(&mut self, ty: TypeId, name: &Name, id: ResourceId) {
        if self.bindings.is_started() {
            return;
        }
        self.writes.release(&Target::Resource(ty, name.clone()));
        if !self.bindings.is_empty() {
            self.holders(id, |_| false).iter().for_each(|uid| self.unsettle(uid));
        }
    }

    /// A claim has changed before the start: the start settles it.
    pub(super) fn unsettle(&mut self, uid: &Uid) {
        if self.bindings.is_started() {
            return;
        }
        if self.bindings.remove(uid).is_some() {
            self.drop_binding(uid);
        }
        self.bindings.unsettle(uid);
    }
}
