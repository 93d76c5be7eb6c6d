//! Bringing touched objects one step closer to what they should be: at most one write each, then its answer.

use super::{Binding, DestroyCheck, Engine, Target};
use crate::action::{Action, Change, Write};
use crate::api::names::CLAIM_PROTECTION;
use crate::cache::{Departure, QuotaKey, ResourceEntry};
use crate::framework::Refusal;
use crate::lifecycle::{
    ClaimSide, Step, make_resource, plan_claim, plan_class, plan_quota, plan_resource, provisioned_name,
};
use crate::model::{Claim, ClaimPhase, Kind, Meta, Name, Predicate, ResourcePhase, Time, TypeId, Uid, Wants};
use crate::queue::{LaneKey, Wait};
use crate::scheduler::prepare;
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
            }
        }
        any
    }

    fn sync_claim(&mut self, uid: &Uid, now: Time) {
        let Some(claim) = self.state.claim(uid).cloned() else { return };
        let change = match self.bindings.get(uid) {
            None | Some(Binding::Waiting(None) | Binding::Assumed { .. }) => None,
            Some(Binding::Waiting(Some(refused))) => {
                let side = ClaimSide::Pending { reason: refused.reason, message: &refused.refusal.message };
                plan_claim(&claim, &side, now)
            }
            Some(Binding::Provisioning { class, resource }) => {
                let (class, resource) = (class.clone(), resource.clone());
                return self.sync_provisioning(&claim, &class, &resource, now);
            }
            Some(Binding::Bound { resource }) => {
                let id = self.state.find_resource(claim.ty, resource);
                let meta = id.and_then(|id| self.state.resource(id)).map(|e| &e.resource.meta);
                meta.and_then(|meta| {
                    let side = ClaimSide::Bound { resource: &meta.key, uid: &meta.uid };
                    plan_claim(&claim, &side, now)
                })
            }
            Some(Binding::Lost { reason, message }) => match claim.status.phase {
                // Said once: the first reason is the one that was seen happen.
                ClaimPhase::Lost => None,
                ClaimPhase::Pending | ClaimPhase::Bound => {
                    plan_claim(&claim, &ClaimSide::Lost { reason, message }, now)
                }
            },
            Some(Binding::Leaving) => {
                let side = ClaimSide::Leaving { may_go: self.may_go(&claim) };
                plan_claim(&claim, &side, now)
            }
        };
        if let Some(change) = change {
            self.tell_claim(&claim, &change);
            self.write(Target::Claim(uid.clone()), Kind::Claim(claim.ty), &claim.meta, change);
        }
    }

    /// Whether a claim that is being deleted has nothing left to wait for: everything that held it has
    /// been released, and nothing is on its way to being made for it.
    fn may_go(&self, claim: &Claim) -> bool {
        let being_made = self.busy.contains(&Target::Resource(claim.ty, provisioned_name(claim)));
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

    /// First the claim's protection, then the resource, then what people read.
    fn sync_provisioning(&mut self, claim: &Claim, class: &Name, resource: &Name, now: Time) {
        let message = format!("making resource {resource} from class {class}");
        let change = plan_claim(claim, &ClaimSide::Provisioning { message: &message }, now);
        let protected = claim.meta.has_finalizer(CLAIM_PROTECTION);
        let target = Target::Resource(claim.ty, resource.clone());
        let exists = self.state.find_resource(claim.ty, resource);
        if let Some(id) = exists
            && !self.state.holders_of(&claim.meta.uid).any(|holder| holder == id)
        {
            return self.refuse_taken_name(claim, resource, now);
        }
        if protected && exists.is_none() && !self.busy.contains(&target) {
            self.create_resource(claim, class, target, now);
        }
        if let Some(change) = change {
            self.tell_claim(claim, &change);
            self.write(Target::Claim(claim.meta.uid.clone()), Kind::Claim(claim.ty), &claim.meta, change);
        }
    }

    /// The name derives from the claim's UID, so whoever has it took it on purpose: that is told, and waited out.
    fn refuse_taken_name(&mut self, claim: &Claim, resource: &Name, now: Time) {
        self.retry_claim(&claim.meta.uid, now);
        self.queue.take(&claim.meta.uid);
        let message =
            format!("cannot make resource {resource}: one of that name exists and is not this claim's");
        let refusal = Arc::new(Refusal::single(Predicate::ResourceName, message));
        let lane = LaneKey {
            ty: claim.ty,
            wait: Wait::Resource(resource.clone()),
            wants: claim.wants.clone().unwrap_or_else(|_| Arc::new(Wants::least())),
            profile: claim.profile.clone(),
        };
        self.refuse(claim, crate::api::reasons::bound::PROVISIONING_FAILED, refusal, lane, now);
    }

    fn create_resource(&mut self, claim: &Claim, class: &Name, target: Target, now: Time) {
        let class = self.state.classes.get(&(claim.ty, class.clone())).filter(|c| !c.meta.deleting);
        // What is made is what was decided and charged: other defaults since then are decided about anew.
        let charged = self.state.ledger.find_charge(&claim.meta.uid);
        let request = prepare(&self.state, claim).ok();
        let request =
            request.filter(|r| class.is_some_and(|c| Some(&r.charge(Some(&c.meta.key.name))) == charged));
        let object = class
            .zip(request.map(|request| request.wants))
            .and_then(|(class, wants)| make_resource(class, claim, &wants, &self.config.system_namespace));
        match object {
            Some(object) => {
                let id = self.send(target);
                self.actions.push(Action::Create { id, object });
            }
            // The class went, or no longer makes what was decided: the claim is decided about anew.
            None => self.retry_claim(&claim.meta.uid, now),
        }
    }

    /// Gives up what was under way for a claim and queues it again.
    pub(super) fn retry_claim(&mut self, uid: &Uid, now: Time) {
        self.drop_binding(uid);
        self.bindings.remove(uid);
        self.requeue(uid, now);
    }

    fn sync_resource(&mut self, ty: TypeId, name: &Name, now: Time) {
        let Some(id) = self.state.find_resource(ty, name) else { return };
        let Some(entry) = self.state.resource(id) else { return };
        let step = plan_resource(entry, self.state.is_implemented(&entry.resource), now);
        let unresolved = self.awaits_word_of_holder(entry);
        // Claims that are being deleted wait for their resource to be released: look at them again.
        let held = entry.resource.claim_refs.iter().filter_map(|r| r.uid.as_ref());
        let leaving = held.filter(|uid| self.bindings.get(*uid) == Some(&Binding::Leaving));
        self.dirty.extend(leaving.cloned().map(Target::Claim));
        match step {
            // Whether it is held or released is being asked: until then its status says what it said.
            Step::Write { change: Change::ResourceStatus { .. }, .. } if unresolved => {}
            Step::Rest => {
                self.destroys.remove(&(ty, name.clone()));
            }
            Step::Write { change, .. } => {
                let meta = entry.resource.meta.clone();
                self.destroys.remove(&(ty, name.clone()));
                self.tell_resource(ty, &meta, &change);
                self.write(Target::Resource(ty, name.clone()), Kind::Resource(ty), &meta, change);
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
        let Some(id) = self.state.find_resource(ty, name) else { return };
        let Some(entry) = self.state.resource(id) else { return };
        let meta = entry.resource.meta.clone();
        let check = self.destroys.get(&(ty, name.clone()));
        match check {
            Some(check) if check.claims.is_empty() && check.revision == Some(meta.revision) => {
                let write = self.send(Target::Resource(ty, name.clone()));
                self.destroys.remove(&(ty, name.clone()));
                let Meta { key, uid, revision, .. } = meta;
                self.actions.push(Action::Delete { id: write, kind: Kind::Resource(ty), key, uid, revision });
            }
            Some(check) if check.revision.is_none() || !check.claims.is_empty() => {}
            Some(_) | None => {
                let gone =
                    entry.departed.iter().filter(|(_, how)| **how == Departure::Gone).map(|(uid, _)| uid);
                let gone: Vec<Uid> = gone.cloned().collect();
                let refs = entry.resource.claim_refs.iter();
                let claims = refs.filter(|r| r.uid.as_ref().is_some_and(|u| gone.contains(u)));
                let claims: Vec<_> = claims.map(|r| (r.claim.clone(), r.uid.clone())).collect();
                let check = DestroyCheck {
                    revision: None,
                    claims: claims.iter().map(|(key, _)| key.clone()).collect(),
                };
                self.destroys.insert((ty, name.clone()), check);
                self.read(Kind::Resource(ty), meta.key, None);
                claims.into_iter().for_each(|(key, uid)| self.read(Kind::Claim(ty), key, uid));
            }
        }
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
        let id = self.send(target);
        // References and finalizers are lists that are written whole: a stale one would undo somebody's work.
        let guarded = match &change {
            Change::ResourceSpec { .. } | Change::ClaimSpec { .. } | Change::ClassFinalizers { .. } => true,
            Change::ResourceStatus { .. } | Change::ClaimStatus { .. } | Change::QuotaStatus { .. } => false,
        };
        self.actions.push(Action::Write(Write {
            id,
            kind,
            key: meta.key.clone(),
            uid: meta.uid.clone(),
            revision: guarded.then_some(meta.revision),
            change,
        }));
    }

    fn tell_claim(&mut self, claim: &Claim, change: &Change) {
        let Change::ClaimStatus { phase, conditions, .. } = change else { return };
        let Some(bound) = conditions.iter().find(|c| &*c.kind == crate::api::reasons::BOUND) else { return };
        let was = claim.status.conditions.iter().find(|c| c.kind == bound.kind);
        if was.is_some_and(|was| was.reason == bound.reason) {
            return;
        }
        let word = crate::api::reasons::bound::find(&bound.reason);
        let warning = match phase {
            ClaimPhase::Bound => false,
            ClaimPhase::Lost => true,
            ClaimPhase::Pending => word != crate::api::reasons::bound::PROVISIONING,
        };
        let message = bound.message.to_string();
        self.tell(Kind::Claim(claim.ty), &claim.meta.key, &claim.meta.uid, warning, word, message);
    }

    fn tell_resource(&mut self, ty: TypeId, meta: &Meta, change: &Change) {
        let Change::ResourceStatus { phase, conditions, .. } = change else { return };
        let message =
            conditions.iter().find(|c| &*c.kind == crate::api::reasons::READY).map(|c| c.message.to_string());
        let message = message.unwrap_or_default();
        match phase {
            ResourcePhase::Released => {
                self.tell(Kind::Resource(ty), &meta.key, &meta.uid, false, "Released", message)
            }
            ResourcePhase::Failed => {
                self.tell(Kind::Resource(ty), &meta.key, &meta.uid, true, "Failed", message)
            }
            ResourcePhase::Pending
            | ResourcePhase::Creating
            | ResourcePhase::Available
            | ResourcePhase::Bound
            | ResourcePhase::Deleting => {}
        }
    }
}
