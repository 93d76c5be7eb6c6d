//! Observing claims and resources: the cache is updated first, then each claim that the change concerns is settled or
//! woken. An update that is older than the cache, or of a deleted object, is ignored.

use super::memory::Target;
use super::{Binding, Engine};
use crate::cache::{QuotaKey, ResourceEntry, ResourceId};
use crate::lifecycle::{provisioned_names, with_checked_templates};
use crate::model::{
    Claim, ClaimRef, Class, Kind, Labels, Limits, Name, Object, ObjectKey, PartId, ProfileObject, Quota,
    Resource, Time, TypeId, Uid,
};
use crate::queue::Wait;
use std::collections::BTreeSet;

impl Engine {
    pub(super) fn observe(&mut self, object: &Object, now: Time) {
        if object.metadata.uid.as_deref().is_some_and(|uid| self.tombstones.contains(uid)) {
            return;
        }
        match object.kind {
            Kind::Claim(ty) => self.observe_claim(Claim::read(ty, object), now),
            Kind::Resource(ty) if self.is_in_system_namespace(object) => {
                self.observe_resource(Resource::read(ty, object), now)
            }
            Kind::Class(ty) if self.is_in_system_namespace(object) => self
                .observe_class(with_checked_templates(Class::read(ty, object), &self.config.allowed_kinds)),
            Kind::Resource(_) | Kind::Class(_) => self.emit_outside(object),
            Kind::Quota | Kind::ClusterQuota => self.observe_quota(Quota::read(object), object.kind),
            Kind::Limits => self.observe_limits(Limits::read(object)),
            Kind::Profile => self.observe_profile(ProfileObject::read(object)),
            Kind::Namespace => {
                let name = Name::from(object.metadata.name.as_deref().unwrap_or_default());
                self.observe_namespace(name, Some(Labels::read(object.metadata.labels.as_ref())));
            }
        }
    }

    fn is_in_system_namespace(&self, object: &Object) -> bool {
        object.metadata.namespace.as_deref() == Some(&*self.config.system_namespace)
    }

    pub(super) fn observe_claim(&mut self, claim: Claim, now: Time) {
        let uid = claim.meta.uid.clone();
        if let Some(known) = self.state.find_claim(claim.ty, &claim.meta.key) {
            if claim.meta.revision.is_older_than(known.meta.revision) {
                return;
            }
            if known.meta.uid != uid {
                let (kind, key, old) =
                    (Kind::Claim(claim.ty), claim.meta.key.clone(), known.meta.uid.clone());
                self.observe_gone(kind, &key, &old, now);
            }
        }
        self.emit_edits(&claim);
        let known = self.state.claim(&uid);
        let requests_anew = known.is_none_or(|known| requests_differently(known, &claim));
        let lets_others_in = known.is_some_and(|known| known.is_exclusive() && !claim.is_exclusive());
        self.state.set_claim(claim);
        self.unsettle(&uid);
        if !self.bindings.is_started() {
            return;
        }
        if requests_anew && self.is_only_planned(&uid) {
            self.retry_claim(&uid, now);
        } else if requests_anew {
            self.requeue(&uid, now);
        }
        self.settle_claim(&uid, now);
        if lets_others_in {
            let held: Vec<ResourceId> = self.state.holders_of(&uid).collect();
            held.into_iter().for_each(|id| self.wake_for_resource(id, None));
        }
    }

    /// Whether a resource is to be provisioned for the claim and nothing has been sent for it yet.
    fn is_only_planned(&self, uid: &Uid) -> bool {
        let Some(Binding::Provisioning { resource, .. }) = self.bindings.get(uid) else { return false };
        let Some(claim) = self.state.claim(uid) else { return false };
        let target = Target::Resource(claim.ty, resource.clone());
        self.state.find_resource(claim.ty, resource).is_none() && !self.writes.is_busy(&target)
    }

    pub(super) fn observe_resource(&mut self, resource: Resource, now: Time) {
        let (ty, name) = (resource.ty, resource.meta.key.name.clone());
        if let Some(entry) = self.state.resource_named(ty, &name) {
            let known = &entry.resource.meta;
            if resource.meta.revision.is_older_than(known.revision) {
                return;
            }
            if known.uid != resource.meta.uid {
                let (key, old) = (known.key.clone(), known.uid.clone());
                self.observe_gone(Kind::Resource(ty), &key, &old, now);
            }
        }
        let id = self.state.find_resource(ty, &name);
        let before = id.and_then(|id| self.state.index_of(ty).view(id));
        let steady = id.map(|id| self.steady_holders(id, &resource)).unwrap_or_default();
        let is_steady = |uid: &Uid| steady.contains(uid);
        let mut concerned: BTreeSet<Uid> = id.map(|id| self.holders(id, is_steady)).unwrap_or_default();
        let old_class = id.and_then(|id| self.class_of(id));
        let old = id.and_then(|id| self.state.resource(id)).filter(|e| !e.assumed.is_empty()).cloned();
        let is_news = id.and_then(|id| self.state.resource(id)).is_none_or(|e| e.resource != resource);
        let promised_by = resource.provisioned_by.clone().filter(|_| id.is_none());
        // Before the start nothing was assumed: each object that is listed is all there is.
        let seen = id.filter(|_| self.bindings.is_started());
        self.losses.set_dropped_refs(seen.map(|id| self.dropped_refs(id, &resource)).unwrap_or_default());
        id.into_iter().for_each(|id| self.unsettle_resource(ty, &name, id));
        let id = self.state.set_resource(resource);
        if !self.bindings.is_started() {
            return self.unsettle_resource(ty, &name, id);
        }
        if let Some(class) = promised_by {
            self.end_promise(ty, &class, &name);
        }
        if let Some(old) = old {
            self.reconsider(id, &old, now);
        }
        for class in [old_class, self.class_of(id)].into_iter().flatten() {
            self.work.touch(Target::Class(ty, class));
        }
        self.work.touch(Target::Resource(ty, name));
        // Those who held it before, in case they do no longer, and those who do now.
        concerned.extend(self.holders(id, is_steady));
        // And those who lost it, where it returns: after those who are bound to it.
        let lost = self.state.resource(id).map(|entry| self.losses.returned(&entry.resource.meta.uid));
        for claim in concerned.into_iter().chain(lost.unwrap_or_default()) {
            self.settle_claim(&claim, now);
        }
        self.losses.set_dropped_refs(Default::default());
        self.check_holders(id);
        if is_news {
            self.wake_for_resource(id, before.as_ref());
        }
    }

    /// A resource has changed under claims that it was assumed for and that are not on it yet: they are decided about
    /// anew. Written again at the newer revision, their references would ignore the change: a reservation, a smaller
    /// capacity, another holder or one that takes more. A write of theirs in flight cannot land any more, because it is
    /// tied to the older revision.
    fn reconsider(&mut self, id: ResourceId, old: &ResourceEntry, now: Time) {
        let Some(entry) = self.state.resource(id) else { return };
        let (was, is) = (&old.resource, &entry.resource);
        // A reservation that is filled stands among the references as they were, and not among those that count.
        let known = || old.refs().chain(&was.claim_refs);
        let is_new = |r: &ClaimRef| !known().any(|known| (&known.claim, &known.uid) == (&r.claim, &r.uid));
        let changed = was.offer != is.offer
            || was.meta.deleting != is.meta.deleting
            || (was.status.phase != is.status.phase && !is.is_offered())
            || is.claim_refs.iter().any(is_new)
            || entry.is_overdrawn();
        if changed {
            let assumed: Vec<Uid> = entry.assumed.iter().filter_map(|a| a.uid.clone()).collect();
            for uid in assumed {
                self.drop_binding(&uid);
                self.bindings.remove(&uid);
                self.settle_claim(&uid, now);
            }
        }
    }

    fn class_of(&self, id: ResourceId) -> Option<Name> {
        self.state.resource(id)?.resource.offer.as_ref().ok()?.class.clone()
    }

    pub(super) fn observe_gone(&mut self, kind: Kind, key: &ObjectKey, uid: &Uid, now: Time) {
        self.tombstones.insert(uid);
        match kind {
            Kind::Claim(_) => self.claim_gone(uid),
            Kind::Resource(ty) => self.resource_gone(ty, &key.name, uid, now),
            Kind::Class(ty) => self.class_gone(ty, &key.name, uid),
            Kind::Quota | Kind::ClusterQuota => {
                let quota = QuotaKey { namespace: key.namespace.clone(), name: key.name.clone() };
                self.state.quota_usage.remove_quota(&quota);
                self.wake_for_quotas(&[quota]);
            }
            Kind::Limits => {
                self.state.set_limits(key, None);
                self.wake_for_limits(&key.namespace);
            }
            Kind::Profile => {
                self.state.profiles.remove(&key.name);
                self.profile_changed(&key.name);
            }
            Kind::Namespace => self.observe_namespace(key.name.clone(), None),
        }
    }

    fn claim_gone(&mut self, uid: &Uid) {
        self.writes.contests.forget(uid);
        let Some(claim) = self.state.remove_claim(uid) else { return };
        if let Some(lost) = &claim.status.resource_uid {
            self.losses.forget(lost, uid);
        }
        self.drop_binding(uid);
        for name in provisioned_names(&claim) {
            self.provisioning.end(claim.ty, name);
        }
        self.bindings.remove(uid);
        self.writes.release(&Target::Claim(uid.clone()));
        self.forget_published(uid);
        let holders: Vec<ResourceId> = self.state.holders_of(uid).collect();
        for id in holders {
            self.check_holders(id);
            if claim.is_exclusive() {
                self.wake_for_resource(id, None);
            }
        }
    }

    fn resource_gone(&mut self, ty: TypeId, name: &Name, uid: &Uid, now: Time) {
        let Some(id) = self.state.find_resource(ty, name) else { return };
        if self.state.resource(id).is_none_or(|e| e.resource.meta.uid != *uid) {
            return;
        }
        let holders = self.holders(id, |_| false);
        let class = self.class_of(id);
        let entry = self.state.resource(id);
        let parts = entry.into_iter().flat_map(|entry| entry.resource.parts());
        let parts = parts.map(|(part, _)| Target::Part(PartId::new(ty, name, part)));
        let targets: Vec<Target> = parts.chain([Target::Resource(ty, name.clone())]).collect();
        self.unsettle_resource(ty, name, id);
        self.state.remove_resource(id);
        targets.iter().for_each(|target| self.writes.abandon(target));
        self.reads.forget_check(ty, name);
        self.wake_waiting_for(&Wait::Resource(name.clone()));
        self.work.touch_all(class.map(|class| Target::Class(ty, class)));
        if self.bindings.is_started() {
            holders.iter().for_each(|claim| self.settle_claim(claim, now));
        }
    }
}

/// Whether a claim requests something else than before: its status and bookkeeping do not count.
fn requests_differently(known: &Claim, claim: &Claim) -> bool {
    let steering = |c: &Claim| (c.priority, c.resource_name.clone(), c.profile.clone());
    // A class may have refused a parameter, and parameters are not matched by.
    let is_corrected = !claim.status.refused_by.is_empty() && known.meta.generation != claim.meta.generation;
    known.wants != claim.wants || steering(known) != steering(claim) || is_corrected
}
