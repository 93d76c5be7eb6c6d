//! Observing what decides about claims without being one side of a binding: classes, quotas, limits, profiles and the
//! labels of namespaces.

use super::Engine;
use super::memory::Target;
use crate::api::names::DEFAULT_PROFILE;
use crate::cache::QuotaKey;
use crate::model::{Claim, Class, Kind, Labels, Limits, Name, ProfileObject, Quota, TypeId, Uid};

impl Engine {
    pub(super) fn observe_class(&mut self, class: Class) {
        let (ty, name) = (class.ty, class.meta.key.name.clone());
        let known = self.state.classes.get(&(ty, name.clone()));
        if known.is_some_and(|known| class.meta.revision.is_older_than(known.meta.revision)) {
            return;
        }
        let news = known.is_none_or(|known| {
            (known.is_default, &known.recipe, known.meta.deleting)
                != (class.is_default, &class.recipe, class.meta.deleting)
        });
        if news && let Err(error) = &class.recipe {
            self.emit_unreadable(Kind::Class(ty), &class.meta, error);
        }
        if news && class.meta.deleting {
            self.emit_in_use(&class);
        }
        if news && self.bindings.is_started() {
            self.emit_unchecked(&class);
        }
        let was_default = self.state.default_class(ty).map(|c| c.meta.key.name.clone());
        self.state.classes.insert((ty, name.clone()), class);
        self.work.touch(Target::Class(ty, name.clone()));
        if news {
            self.touch_provisioned_by(ty, &name);
        }
        if self.bindings.is_started() && news {
            self.wake_for_class(ty, &name, was_default);
            self.emit_unused_defaults(ty);
        }
    }

    pub(super) fn class_gone(&mut self, ty: TypeId, name: &Name, uid: &Uid) {
        let class = (ty, name.clone());
        if self.state.classes.get(&class).is_some_and(|c| c.meta.uid == *uid) {
            let was_default = self.state.default_class(ty).map(|c| c.meta.key.name.clone());
            self.state.classes.remove(&class);
            self.wake_for_class(ty, name, was_default);
        }
    }

    /// Resources that a class provisioned may follow it.
    fn touch_provisioned_by(&mut self, ty: TypeId, class: &Name) {
        let recipe =
            self.state.classes.get(&(ty, class.clone())).and_then(|class| class.recipe.as_ref().ok());
        if !recipe.is_some_and(|recipe| recipe.follows) {
            return;
        }
        let resources = self.state.resources().map(|(_, entry)| &entry.resource);
        let resources = resources.filter(|r| r.ty == ty && r.provisioned_by.as_ref() == Some(class));
        self.work.touch_all(resources.map(|r| Target::Resource(ty, r.meta.key.name.clone())));
    }

    pub(super) fn observe_quota(&mut self, quota: Quota, kind: Kind) {
        let key = QuotaKey { namespace: quota.meta.key.namespace.clone(), name: quota.meta.key.name.clone() };
        let known = self.state.quota_usage.find_quota(&key).map(|(known, _)| known.meta.revision);
        if known.is_some_and(|known| quota.meta.revision.is_older_than(known)) {
            return;
        }
        let (meta, error) = (quota.meta.clone(), quota.limits.as_ref().err().cloned());
        let (key, news) = self.state.quota_usage.set_quota(quota);
        self.work.touch(Target::Quota(key.clone()));
        if let Some(error) = error.filter(|_| news) {
            self.emit_unreadable(kind, &meta, &error);
        }
        if self.bindings.is_started() && news {
            self.wake_for_quotas(&[key]);
        }
    }

    pub(super) fn observe_limits(&mut self, limits: Limits) {
        let key = limits.meta.key.clone();
        let known = self.state.find_limits(&key).map(|known| known.meta.revision);
        if known.is_some_and(|known| limits.meta.revision.is_older_than(known)) {
            return;
        }
        if let Err(error) = &limits.bounds {
            self.emit_unreadable(Kind::Limits, &limits.meta, error);
        }
        let news = self.state.find_limits(&key).is_none_or(|known| known.bounds != limits.bounds);
        self.state.set_limits(&key, Some(limits));
        if news {
            self.wake_for_limits(&key.namespace);
        }
    }

    pub(super) fn observe_profile(&mut self, profile: ProfileObject) {
        if let Err(error) = &profile.profile {
            self.emit_unreadable(Kind::Profile, &profile.meta, error);
        }
        let name = profile.meta.key.name.clone();
        let known = self.state.profiles.get(&name);
        if known.is_some_and(|known| profile.meta.revision.is_older_than(known.meta.revision)) {
            return;
        }
        let news = known.is_none_or(|known| known.profile != profile.profile);
        self.state.profiles.insert(name.clone(), profile);
        if news {
            self.profile_changed(&name);
        }
    }

    /// Refused claims may pass now, and what bound claims lack depends on what their profile checks.
    pub(super) fn profile_changed(&mut self, profile: &Name) {
        self.wake_all();
        let follows = |claim: &&Claim| claim.profile.as_deref().unwrap_or(DEFAULT_PROFILE) == &**profile;
        let bindings = &self.bindings;
        let is_bound = |uid: &&Uid| bindings.get(uid).is_some_and(|binding| binding.bound_to().is_some());
        let claims = self.state.claims().filter(follows).map(|claim| &claim.meta.uid);
        self.work.touch_all(claims.filter(is_bound).cloned().map(Target::Claim));
    }

    pub(super) fn observe_namespace(&mut self, name: Name, labels: Option<Labels>) {
        let quotas = self.state.set_namespace(name, labels);
        self.work.touch_all(quotas.iter().cloned().map(Target::Quota));
        if self.bindings.is_started() && !quotas.is_empty() {
            self.wake_for_quotas(&quotas);
        }
    }
}
