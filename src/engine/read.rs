//! Live reads: requested where the cache is not proof enough, and answered with the object as it is now.

use super::Engine;
use super::memory::{DeletionCheck, Target};
use crate::action::Action;
use crate::cache::{Departure, QuotaKey};
use crate::model::{Kind, Name, Object, ObjectKey, PartKey, Time, TypeId, Uid, inputs};
use std::collections::BTreeSet;

impl Engine {
    /// Requests a live read, unless one is in flight.
    pub(super) fn read(&mut self, kind: Kind, key: ObjectKey, doubted: Option<Uid>) {
        if self.bindings.is_started() && self.reads.request_object(kind, &key, doubted) {
            self.work.push(Action::Read { kind, key });
        }
    }

    /// Reads a target live. It stays busy until the answer.
    pub(super) fn read_target(&mut self, target: &Target) {
        let system = &self.config.system_namespace;
        let (kind, key) = match target {
            Target::Claim(uid) => match self.state.claim(uid) {
                Some(claim) => (Kind::Claim(claim.ty), claim.meta.key.clone()),
                None => return self.writes.release(target),
            },
            Target::Resource(ty, name) => (Kind::Resource(*ty), ObjectKey::new(system.clone(), name.clone())),
            Target::Class(ty, name) => (Kind::Class(*ty), ObjectKey::new(system.clone(), name.clone())),
            Target::Quota(key) => {
                let kind = if key.namespace.is_empty() { Kind::ClusterQuota } else { Kind::Quota };
                (kind, ObjectKey::new(key.namespace.clone(), key.name.clone()))
            }
            Target::Part(part) => return self.read_part_again(&part.clone()),
            Target::Publication(_) | Target::Published(..) => return self.try_publishing_again(target),
        };
        self.writes.hold(target.clone());
        self.read(kind, key, None);
    }

    pub(super) fn read_answered(&mut self, kind: Kind, key: &ObjectKey, found: Option<Object>, now: Time) {
        let Some(doubted) = self.reads.answer_object(kind, key) else { return };
        match found {
            Some(object) => {
                if let (Kind::Claim(_), Some(uid)) = (kind, object.metadata.uid.as_deref()) {
                    self.provisioning.keep_text(uid, || inputs::of_claim(&object));
                }
                self.observe(&object, now);
            }
            None => {
                if let Some(uid) = self.known_uid(kind, key) {
                    self.observe_gone(kind, key, &uid, now);
                }
            }
        }
        match kind {
            Kind::Claim(ty) => self.claim_read(ty, key, &doubted, now),
            Kind::Resource(ty) => self.resource_read(ty, &key.name, now),
            Kind::Class(ty) => self.free(Target::Class(ty, key.name.clone())),
            Kind::Quota | Kind::ClusterQuota => self.free(Target::Quota(quota_key(key))),
            Kind::Limits | Kind::Profile | Kind::Namespace => {}
        }
    }

    /// A target was read: it is reconciled, unless a write to it is in flight.
    pub(super) fn free(&mut self, target: Target) {
        self.writes.release_read(&target);
        self.work.touch(target);
    }

    fn known_uid(&self, kind: Kind, key: &ObjectKey) -> Option<Uid> {
        let meta = match kind {
            Kind::Claim(ty) => &self.state.find_claim(ty, key)?.meta,
            Kind::Resource(ty) => &self.state.resource_named(ty, &key.name)?.resource.meta,
            Kind::Class(ty) => &self.state.classes.get(&(ty, key.name.clone()))?.meta,
            Kind::Quota | Kind::ClusterQuota => &self.state.quota_usage.find_quota(&quota_key(key))?.0.meta,
            Kind::Limits | Kind::Profile | Kind::Namespace => return None,
        };
        Some(meta.uid.clone())
    }

    /// A claim was read live. Holders that reference an earlier claim of that name, or one that was deleted, have lost
    /// their claim.
    fn claim_read(&mut self, ty: TypeId, key: &ObjectKey, doubted: &BTreeSet<Uid>, now: Time) {
        for uid in doubted {
            let alive = self.state.claim(uid).is_some_and(|claim| !claim.meta.deleting);
            let departed = (!alive).then_some(Departure::Gone);
            let holders: Vec<_> = self.state.holders_of(uid).collect();
            for id in holders {
                self.state.set_departed(id, uid, departed);
                if let Some(entry) = self.state.resource(id) {
                    self.work.touch(Target::Resource(ty, entry.resource.meta.key.name.clone()));
                }
            }
        }
        let waited = self.reads.check_claim(ty, key);
        self.work.touch_all(waited.map(|name| Target::Resource(ty, name.clone())));
        if let Some(claim) = self.state.find_claim(ty, key) {
            let uid = claim.meta.uid.clone();
            self.free(Target::Claim(uid.clone()));
            self.settle_claim(&uid, now);
        }
    }

    fn resource_read(&mut self, ty: TypeId, name: &Name, now: Time) {
        let found = self.state.resource_named(ty, name);
        let revision = found.map(|e| e.resource.meta.revision);
        revision.into_iter().for_each(|revision| self.reads.check_resource(ty, name, revision));
        self.free(Target::Resource(ty, name.clone()));
        self.touch_owner(ty, name);
        self.resolve_doubts(ty, name, revision.is_none(), now);
    }

    /// Whether a resource, the claims that held it and `part` have been read live since it was last changed. Requests the
    /// reads where they have not; returns true once per check.
    pub(super) fn has_read_all(&mut self, ty: TypeId, name: &Name, part: Option<&PartKey>) -> bool {
        let entry = self.state.resource_named(ty, name);
        let Some(entry) = entry else { return false };
        let check = self.reads.check(ty, name, entry.resource.meta.revision);
        if check != DeletionCheck::Due {
            return check == DeletionCheck::Passed;
        }
        let is_gone = |uid: &Uid| entry.departed.get(uid) == Some(&Departure::Gone);
        let gone = entry.resource.claim_refs.iter().filter(|r| r.uid.as_ref().is_some_and(is_gone));
        let gone: Vec<_> = gone.map(|r| (r.claim.clone(), r.uid.clone())).collect();
        let key = entry.resource.meta.key.clone();
        let claims = gone.iter().map(|(key, _)| key.clone()).collect();
        self.reads.begin_check(ty, name, claims, part.cloned());
        self.read(Kind::Resource(ty), key, None);
        gone.into_iter().for_each(|(key, uid)| self.read(Kind::Claim(ty), key, uid));
        part.into_iter().for_each(|part| self.read_part(part, None));
        false
    }
}

fn quota_key(key: &ObjectKey) -> QuotaKey {
    QuotaKey { namespace: key.namespace.clone(), name: key.name.clone() }
}
