//! Lists: what is not among the listed objects was deleted. And the start, once every kind was listed.

use super::Engine;
use super::memory::Target;
use crate::cache::ResourceId;
use crate::model::{Class, Kind, Meta, Name, Object, ObjectKey, Revision, Time, TypeId, Uid};
use std::collections::BTreeSet;

impl Engine {
    pub(super) fn observe_list(&mut self, kind: Kind, objects: Vec<Object>, revision: Revision, now: Time) {
        let listed: BTreeSet<&str> = objects.iter().filter_map(|o| o.metadata.uid.as_deref()).collect();
        // What we wrote after the list was taken is not missing from it.
        let is_missing =
            |meta: &&Meta| !listed.contains(&*meta.uid) && !revision.is_older_than(meta.revision);
        let missing = self.known(kind).filter(is_missing);
        let missing: Vec<(ObjectKey, Uid)> = missing.map(|m| (m.key.clone(), m.uid.clone())).collect();
        for (key, uid) in missing {
            self.observe_gone(kind, &key, &uid, now);
        }
        if kind == Kind::Namespace {
            self.forget_namespaces_but(&objects);
        }
        objects.iter().for_each(|object| self.observe(object, now));
    }

    /// Of a namespace only its labels are known, under its name.
    fn forget_namespaces_but(&mut self, listed: &[Object]) {
        let listed: BTreeSet<&str> = listed.iter().filter_map(|o| o.metadata.name.as_deref()).collect();
        let gone: Vec<Name> =
            self.state.quota_usage.namespaces().filter(|name| !listed.contains(&***name)).cloned().collect();
        gone.into_iter().for_each(|name| self.observe_namespace(name, None));
    }

    fn known(&self, kind: Kind) -> Box<dyn Iterator<Item = &Meta> + '_> {
        let state = &self.state;
        match kind {
            Kind::Claim(ty) => Box::new(state.claims().filter(move |c| c.ty == ty).map(|c| &c.meta)),
            Kind::Resource(ty) => {
                let of_type = state.resources().filter(move |(_, e)| e.resource.ty == ty);
                Box::new(of_type.map(|(_, e)| &e.resource.meta))
            }
            Kind::Class(ty) => Box::new(state.classes.values().filter(move |c| c.ty == ty).map(|c| &c.meta)),
            Kind::Quota | Kind::ClusterQuota => {
                let is_cluster = kind == Kind::ClusterQuota;
                let quotas = state.quota_usage.quotas();
                let of_scope = quotas.filter(move |(key, ..)| key.namespace.is_empty() == is_cluster);
                Box::new(of_scope.map(|(_, quota, _)| &quota.meta))
            }
            Kind::Limits => Box::new(state.limits().map(|limits| &limits.meta)),
            Kind::Profile => Box::new(state.profiles.values().map(|profile| &profile.meta)),
            Kind::Namespace => Box::new(std::iter::empty()),
        }
    }

    /// Every kind was listed: settles every claim and resyncs every object once, then decisions begin.
    pub(super) fn start(&mut self, now: Time) {
        if self.bindings.is_started() {
            return;
        }
        let unsettled = self.bindings.start();
        self.emit_all_unreadable();
        TypeId::all().for_each(|ty| self.emit_unused_defaults(ty));
        let classes: Vec<Class> = self.state.classes.values().cloned().collect();
        classes.iter().for_each(|class| self.emit_unchecked(class));
        let resources: Vec<ResourceId> = self.state.resources().map(|(id, _)| id).collect();
        let claims: Vec<Uid> = match unsettled {
            Some(unsettled) => unsettled.into_iter().collect(),
            None => self.state.claims().map(|claim| claim.meta.uid.clone()).collect(),
        };
        self.work.touch_all(classes.into_iter().map(|class| Target::Class(class.ty, class.meta.key.name)));
        for id in resources {
            let Some(resource) = self.state.resource(id).map(|entry| &entry.resource) else { continue };
            let target = Target::Resource(resource.ty, resource.meta.key.name.clone());
            if !self.writes.is_busy(&target) {
                self.work.touch(target);
                self.check_holders(id);
            }
        }
        for claim in claims {
            self.settle_claim(&claim, now);
        }
    }
}
