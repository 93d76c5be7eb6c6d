//! Taking in what was seen: the cache first, then whoever it concerns is settled or woken.

use super::{Binding, Effect, Engine, TOMBSTONES_MAX, Target};
use crate::api::names::{DEFAULT_PROFILE, IS_DEFAULT_CLASS};
use crate::api::reasons;
use crate::cache::{Glance, QuotaKey, ResourceEntry, ResourceId};
use crate::lifecycle::{provisioned_names, with_checked_templates};
use crate::model::{
    Claim, ClaimRef, Class, FieldError, Kind, Labels, Limits, Meta, Name, Object, ObjectKey, PartId,
    ProfileObject, Quota, Resource, Revision, Time, TypeId, Uid,
};
use crate::queue::{LaneKey, Wait};
use std::collections::BTreeSet;

impl Engine {
    pub(super) fn observe(&mut self, object: &Object, now: Time) {
        if object.metadata.uid.as_deref().is_some_and(|uid| self.gone.contains(uid)) {
            return;
        }
        match object.kind {
            Kind::Claim(ty) => self.observe_claim(Claim::read(ty, object), now),
            Kind::Resource(ty) if self.is_ours(object) => {
                self.observe_resource(Resource::read(ty, object), now)
            }
            Kind::Class(ty) if self.is_ours(object) => self
                .observe_class(with_checked_templates(Class::read(ty, object), &self.config.allowed_kinds)),
            Kind::Resource(_) | Kind::Class(_) => self.tell_outside(object),
            Kind::Quota | Kind::ClusterQuota => self.observe_quota(Quota::read(object), object.kind),
            Kind::Limits => self.observe_limits(Limits::read(object)),
            Kind::Profile => self.observe_profile(ProfileObject::read(object)),
            Kind::Namespace => {
                let name = Name::from(object.metadata.name.as_deref().unwrap_or_default());
                self.observe_namespace(name, Some(Labels::read(object.metadata.labels.as_ref())));
            }
        }
    }

    fn is_ours(&self, object: &Object) -> bool {
        object.metadata.namespace.as_deref() == Some(&*self.config.system_namespace)
    }

    /// A class or resource in another namespace takes no part, and has no status of ours to say so on.
    fn tell_outside(&mut self, object: &Object) {
        let meta = Meta::read(&object.metadata);
        let system = &self.config.system_namespace;
        let message = format!(
            "it is ignored: {} is read in namespace {system} only, the system namespace of this controller; if that is the \
             right one, create it there. What exists here is left as it is",
            object.kind.name()
        );
        self.tell(object.kind, &meta.key, &meta.uid, true, "OutsideSystemNamespace", message);
    }

    /// A class that declares nothing of what it makes serves claims of any size: that is nobody's promise.
    fn tell_unchecked(&mut self, class: &Class) {
        if !class.meta.deleting && class.recipe.as_ref().is_ok_and(|recipe| recipe.checks_no_sizes()) {
            let (kind, meta) = (Kind::Class(class.ty), &class.meta);
            self.tell(kind, &meta.key, &meta.uid, true, "SizesNotChecked", SIZES_NOT_CHECKED.to_owned());
        }
    }

    /// Of several default classes one counts, the newest: the others are told which.
    pub(super) fn tell_defaults(&mut self, ty: TypeId) {
        let Some(used) = self.state.default_class(ty).map(|class| class.meta.key.name.clone()) else {
            return;
        };
        let classes = self.state.classes.values().filter(|class| class.ty == ty && class.is_default);
        let unused = classes.filter(|class| !class.meta.deleting && class.meta.key.name != used);
        let unused: Vec<(ObjectKey, Uid)> =
            unused.map(|class| (class.meta.key.clone(), class.meta.uid.clone())).collect();
        for (key, uid) in unused {
            let message = format!(
                "it is not used as the default class: of several the newest counts, which is {used}; take the annotation {IS_DEFAULT_CLASS} off all others"
            );
            self.tell(Kind::Class(ty), &key, &uid, true, "DefaultNotUsed", message);
        }
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
        self.tell_edits(&claim);
        let known = self.state.claim(&uid);
        let asks_anew = known.is_none_or(|known| asks_differently(known, &claim));
        let lets_others_in = known.is_some_and(|known| known.is_exclusive() && !claim.is_exclusive());
        self.state.set_claim(claim);
        self.unsettle(&uid);
        if self.synced {
            if asks_anew && self.is_only_planned(&uid) {
                self.retry_claim(&uid, now);
            } else if asks_anew {
                self.requeue(&uid, now);
            }
            self.settle_claim(&uid, now);
            if lets_others_in {
                let held: Vec<ResourceId> = self.state.holders_of(&uid).collect();
                held.into_iter().for_each(|id| self.wake_for_resource(id, None));
            }
        }
    }

    /// Edits of a bound claim that its status cannot show: one is undone, and of the other only what is decided
    /// afterwards shows the effect.
    fn tell_edits(&mut self, claim: &Claim) {
        let Some(known) = self.state.claim(&claim.meta.uid) else { return };
        let Some(Binding::Bound { resource }) = self.bindings.get(&claim.meta.uid) else { return };
        let is_renamed = known.resource_name.as_ref() == Some(resource)
            && claim.resource_name.as_ref() != Some(resource)
            && !claim.meta.deleting;
        let is_closed = !known.is_exclusive() && claim.is_exclusive();
        if !is_renamed && !is_closed {
            return;
        }
        let resource = resource.clone();
        let (kind, key, uid) = (Kind::Claim(claim.ty), &claim.meta.key, &claim.meta.uid);
        if is_renamed {
            let message = format!(
                "spec.resourceName is the record of the binding to {resource} and is restored: a bound claim does not move. \
                 To use another resource, create a claim that names it"
            );
            self.tell(kind, key, uid, true, reasons::bound::RESOURCE_NAME_RESTORED, message);
        }
        let entry = self.state.find_resource(claim.ty, &resource).and_then(|id| self.state.resource(id));
        let others = |entry: &ResourceEntry| entry.refs().filter(|r| r.uid.as_ref() != Some(uid)).count();
        let others = entry.filter(|_| is_closed).map_or(0, others);
        if others > 0 {
            let message = format!(
                "spec.exclusive keeps further claims off {resource}; {others} other claims hold it already and stay"
            );
            self.tell(kind, key, uid, true, reasons::bound::SHARED_WITH_OTHERS, message);
        }
    }

    /// Whether a resource is to be made for the claim and nothing has been sent for it yet.
    fn is_only_planned(&self, uid: &Uid) -> bool {
        let Some(Binding::Provisioning { resource, .. }) = self.bindings.get(uid) else { return false };
        let Some(claim) = self.state.claim(uid) else { return false };
        let target = Target::Resource(claim.ty, resource.clone());
        self.state.find_resource(claim.ty, resource).is_none() && !self.busy.contains(&target)
    }

    pub(super) fn observe_resource(&mut self, resource: Resource, now: Time) {
        let (ty, name) = (resource.ty, resource.meta.key.name.clone());
        if let Some(entry) = self.state.find_resource(ty, &name).and_then(|id| self.state.resource(id)) {
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
        let before = id.and_then(|id| self.state.index_of(ty).glance(id));
        let steady = id.map(|id| self.steady_holders(id, &resource)).unwrap_or_default();
        let is_steady = |uid: &Uid| steady.contains(uid);
        let mut concerned: BTreeSet<Uid> = id.map(|id| self.holders(id, is_steady)).unwrap_or_default();
        let old_class = id.and_then(|id| self.class_of(id));
        let old = id.and_then(|id| self.state.resource(id)).filter(|e| !e.assumed.is_empty()).cloned();
        let is_news = id.and_then(|id| self.state.resource(id)).is_none_or(|e| e.resource != resource);
        let promised_by = resource.provisioned_by.clone().filter(|_| id.is_none());
        // Before the start nothing is known of what was given: a state that is shown says all there is.
        let seen = id.filter(|_| self.synced);
        self.dropped = seen.map(|id| self.dropped_refs(id, &resource)).unwrap_or_default();
        id.into_iter().for_each(|id| self.unsettle_resource(ty, &name, id));
        let id = self.state.set_resource(resource);
        if !self.synced {
            return self.unsettle_resource(ty, &name, id);
        }
        if let Some(class) = promised_by {
            self.end_promise(ty, &class, &name);
        }
        if let Some(old) = old {
            self.reconsider(id, &old, now);
        }
        for class in [old_class, self.class_of(id)].into_iter().flatten() {
            self.dirty.insert(Target::Class(ty, class));
        }
        self.dirty.insert(Target::Resource(ty, name));
        // Those who held it before, in case they do no longer, and those who do now.
        concerned.extend(self.holders(id, is_steady));
        // And those who lost it, where it returns: after those who are bound to it.
        let lost = self.state.resource(id).and_then(|entry| self.lost_to.remove(&entry.resource.meta.uid));
        for claim in concerned.into_iter().chain(lost.unwrap_or_default()) {
            self.settle_claim(&claim, now);
        }
        self.dropped.clear();
        self.check_holders(id);
        if is_news {
            self.wake_for_resource(id, before.as_ref());
        }
    }

    /// A resource has changed under claims that were given it and are not on it yet: they are decided about
    /// anew. Written again at the newer revision, their references would pass by whatever changed: a
    /// reservation, a smaller capacity, another holder or one that takes more. A write of theirs that is on its way cannot land
    /// any more, because it is tied to the older revision.
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
            let given: Vec<Uid> = entry.assumed.iter().filter_map(|a| a.uid.clone()).collect();
            for uid in given {
                self.drop_binding(&uid);
                self.bindings.remove(&uid);
                self.settle_claim(&uid, now);
            }
        }
    }

    fn class_of(&self, id: ResourceId) -> Option<Name> {
        self.state.resource(id)?.resource.offer.as_ref().ok()?.class.clone()
    }

    fn observe_class(&mut self, class: Class) {
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
            self.tell_unreadable(Kind::Class(ty), &class.meta.key, &class.meta.uid, &error.clone());
        }
        if news && class.meta.deleting {
            self.tell_in_use(&class);
        }
        if news && self.synced {
            self.tell_unchecked(&class);
        }
        let was_default = self.state.default_class(ty).map(|c| c.meta.key.name.clone());
        self.state.classes.insert((ty, name.clone()), class);
        self.dirty.insert(Target::Class(ty, name.clone()));
        if news {
            self.dirty_made_from(ty, &name);
        }
        if self.synced && news {
            self.wake_for_class(ty, &name, was_default);
            self.tell_defaults(ty);
        }
    }

    /// Resources that were made from a class may follow it.
    fn dirty_made_from(&mut self, ty: TypeId, class: &Name) {
        let recipe =
            self.state.classes.get(&(ty, class.clone())).and_then(|class| class.recipe.as_ref().ok());
        if !recipe.is_some_and(|recipe| recipe.follows) {
            return;
        }
        let made =
            self.state.resources().map(|(_, entry)| &entry.resource).filter(|resource| resource.ty == ty);
        let made = made.filter(|resource| resource.provisioned_by.as_ref() == Some(class));
        let made: Vec<Target> = made.map(|r| Target::Resource(ty, r.meta.key.name.clone())).collect();
        self.dirty.extend(made);
    }

    fn wake_for_class(&mut self, ty: TypeId, name: &Name, was_default: Option<Name>) {
        self.helpful += 1;
        let mut lanes = self.queue.lanes().for_class(ty, name);
        let default = self.state.default_class(ty).map(|c| c.meta.key.name.clone());
        if default.as_ref() == Some(name) || default != was_default {
            lanes.extend(self.queue.lanes().for_default_class(ty).cloned());
            // A claim that names its resource and no class is of the default class too.
            lanes.extend(self.queue.lanes().naming_no_class(ty).cloned());
        }
        self.queue.wake_lanes(lanes);
    }

    fn observe_quota(&mut self, quota: Quota, kind: Kind) {
        let key = QuotaKey { namespace: quota.meta.key.namespace.clone(), name: quota.meta.key.name.clone() };
        let known = self.state.ledger.find_quota(&key).map(|(known, _)| known.meta.revision);
        if known.is_some_and(|known| quota.meta.revision.is_older_than(known)) {
            return;
        }
        let (meta, error) = (quota.meta.clone(), quota.limits.as_ref().err().cloned());
        let (key, news) = self.state.ledger.set_quota(quota);
        self.dirty.insert(Target::Quota(key.clone()));
        if let Some(error) = error.filter(|_| news) {
            self.tell_unreadable(kind, &meta.key, &meta.uid, &error);
        }
        if self.synced && news {
            self.wake_for_quotas(&[key]);
        }
    }

    fn observe_limits(&mut self, limits: Limits) {
        let key = limits.meta.key.clone();
        let known = self.state.find_limits(&key).map(|known| known.meta.revision);
        if known.is_some_and(|known| limits.meta.revision.is_older_than(known)) {
            return;
        }
        if let Err(error) = &limits.bounds {
            self.tell_unreadable(Kind::Limits, &key, &limits.meta.uid, &error.clone());
        }
        let news = self.state.find_limits(&key).is_none_or(|known| known.bounds != limits.bounds);
        self.state.set_limits(&key, Some(limits));
        if news {
            self.wake_for_limits(&key.namespace);
        }
    }

    /// Other limits may let a claim pass, and other defaults change what it asks: every lane of the
    /// namespace begins anew.
    fn wake_for_limits(&mut self, namespace: &Name) {
        self.helpful += 1;
        let lanes: Vec<LaneKey> = self.queue.lanes().all().cloned().collect();
        for lane in lanes {
            self.queue.wake_in_namespaces(&lane, [&**namespace]);
        }
    }

    /// What claims that are bound do not get depends on what their profile asks.
    fn look_at_bound_of_profile(&mut self, profile: &Name) {
        let follows = |claim: &&Claim| claim.profile.as_deref().unwrap_or(DEFAULT_PROFILE) == &**profile;
        let bound = |uid: &Uid| matches!(self.bindings.get(uid), Some(Binding::Bound { .. }));
        let claims = self.state.claims().filter(follows).map(|claim| &claim.meta.uid);
        let claims: Vec<Target> = claims.filter(|uid| bound(uid)).cloned().map(Target::Claim).collect();
        self.dirty.extend(claims);
    }

    fn observe_profile(&mut self, profile: ProfileObject) {
        if let Err(error) = &profile.profile {
            self.tell_unreadable(Kind::Profile, &profile.meta.key, &profile.meta.uid, &error.clone());
        }
        let name = profile.meta.key.name.clone();
        let known = self.state.profiles.get(&name).map(|known| known.meta.revision);
        if known.is_some_and(|known| profile.meta.revision.is_older_than(known)) {
            return;
        }
        let news = self.state.profiles.get(&name).is_none_or(|known| known.profile != profile.profile);
        self.state.profiles.insert(name.clone(), profile);
        if news {
            self.wake_all();
            self.look_at_bound_of_profile(&name);
        }
    }

    fn wake_all(&mut self) {
        self.helpful += 1;
        let lanes: Vec<LaneKey> = self.queue.lanes().all().cloned().collect();
        self.queue.wake_lanes(lanes);
    }

    fn observe_namespace(&mut self, name: Name, labels: Option<Labels>) {
        let quotas = self.state.set_namespace(name, labels);
        self.dirty.extend(quotas.iter().cloned().map(Target::Quota));
        if self.synced && !quotas.is_empty() {
            self.wake_for_quotas(&quotas);
        }
    }

    /// Wakes the first claim of every lane that waits for one of these quotas.
    pub(super) fn wake_for_quotas(&mut self, quotas: &[crate::cache::QuotaKey]) {
        if quotas.is_empty() {
            return;
        }
        self.helpful += 1;
        let concerned = |namespace: &Name| {
            quotas.iter().any(|quota| quota.namespace.is_empty() || quota.namespace == *namespace)
        };
        for namespace in self.queue.lanes().namespaces_over_quota().into_iter().filter(concerned) {
            let lanes = self.queue.lanes().waiting_for(&Wait::Quota(namespace));
            self.queue.wake_lanes(lanes);
        }
    }

    /// Not before the start: whoever only stands by tells nobody, and would have forgotten it when it leads.
    fn tell_unreadable(&mut self, kind: Kind, key: &ObjectKey, uid: &Uid, error: &FieldError) {
        if self.synced {
            self.tell(kind, key, uid, true, "InvalidSpec", error.to_string());
        }
    }

    /// Everything that has no status to tell it on and could not be read.
    fn tell_all_unreadable(&mut self) {
        let id =
            |kind, meta: &Meta, error: &FieldError| (kind, meta.key.clone(), meta.uid.clone(), error.clone());
        let mut unreadable = Vec::new();
        let classes = self.state.classes.values();
        unreadable
            .extend(classes.filter_map(|c| Some(id(Kind::Class(c.ty), &c.meta, c.recipe.as_ref().err()?))));
        unreadable.extend(self.state.ledger.quotas().filter_map(|(key, quota, _)| {
            let kind = if key.namespace.is_empty() { Kind::ClusterQuota } else { Kind::Quota };
            Some(id(kind, &quota.meta, quota.limits.as_ref().err()?))
        }));
        let limits = self.state.limits();
        unreadable.extend(limits.filter_map(|l| Some(id(Kind::Limits, &l.meta, l.bounds.as_ref().err()?))));
        let profiles = self.state.profiles.values();
        unreadable
            .extend(profiles.filter_map(|p| Some(id(Kind::Profile, &p.meta, p.profile.as_ref().err()?))));
        for (kind, key, uid, error) in unreadable {
            self.tell_unreadable(kind, &key, &uid, &error);
        }
    }

    /// Wakes the claims that a resource can help now, where it could not before.
    pub(super) fn wake_for_resource(&mut self, id: ResourceId, before: Option<&Glance>) {
        let Some(entry) = self.state.resource(id) else { return };
        let (ty, name) = (entry.resource.ty, entry.resource.meta.key.name.clone());
        let reserved = entry.resource.claim_refs.iter().filter(|r| r.uid.is_none()).map(|r| r.claim.clone());
        for key in reserved.collect::<Vec<_>>() {
            if let Some(claim) = self.state.find_claim(ty, &key) {
                self.queue.wake(&claim.meta.uid.clone());
            }
        }
        let named = self.queue.lanes().waiting_for(&Wait::Resource(name));
        self.queue.wake_lanes(named);
        let index = self.state.index_of(ty);
        if index.glance(id).is_none_or(|now| !now.is_better_than(before)) {
            return;
        }
        self.helpful += 1;
        for lane in self.lanes_for(ty, id) {
            let restricted = self.restricted_to(id);
            if restricted.is_empty() {
                self.queue.wake_lanes([lane]);
            } else {
                self.queue.wake_in_namespaces(&lane, restricted.iter().map(|n| &**n));
            }
        }
    }

    fn restricted_to(&self, id: ResourceId) -> Vec<Name> {
        let offer = self.state.resource(id).and_then(|e| e.resource.offer.as_ref().ok());
        offer.map(|o| o.allowed_namespaces.to_vec()).unwrap_or_default()
    }

    /// The lanes whose claims this resource fits.
    fn lanes_for(&self, ty: TypeId, id: ResourceId) -> Vec<LaneKey> {
        let Some(Ok(offer)) = self.state.resource(id).map(|e| e.resource.offer.as_ref()) else {
            return Vec::new();
        };
        let group = ty.rules().group_field().and_then(|at| match &offer.fields[at] {
            crate::model::FieldValue::Name(name) => Some(name),
            _ => None,
        });
        let lanes = self.queue.lanes();
        let default = self.state.default_class(ty).map(|c| &c.meta.key.name);
        let is_default = offer.class.is_some() && offer.class.as_ref() == default;
        let defaulting = is_default.then(|| lanes.for_default_class(ty));
        let lanes = lanes.for_resource(ty, offer.class.as_ref(), group);
        let lanes = lanes.chain(defaulting.into_iter().flatten());
        let namespace = offer.allowed_namespaces.first().cloned().unwrap_or_default();
        let helped = lanes.filter(|lane| {
            let class = crate::cache::ClassAsk::Any;
            let ask = crate::cache::Ask { namespace: &namespace, class, wants: &lane.wants, headroom: None };
            self.state.index_of(ty).first_refusal(&ask, id).is_none()
        });
        helped.cloned().collect()
    }

    pub(super) fn observe_gone(&mut self, kind: Kind, key: &ObjectKey, uid: &Uid, now: Time) {
        self.bury(uid);
        match kind {
            Kind::Claim(_) => self.claim_gone(uid),
            Kind::Resource(ty) => self.resource_gone(ty, &key.name, uid, now),
            Kind::Class(ty) => {
                let class = (ty, key.name.clone());
                if self.state.classes.get(&class).is_some_and(|c| c.meta.uid == *uid) {
                    let was_default = self.state.default_class(ty).map(|c| c.meta.key.name.clone());
                    self.state.classes.remove(&class);
                    self.wake_for_class(ty, &key.name, was_default);
                }
            }
            Kind::Quota | Kind::ClusterQuota => {
                let quota =
                    crate::cache::QuotaKey { namespace: key.namespace.clone(), name: key.name.clone() };
                self.state.ledger.remove_quota(&quota);
                self.wake_for_quotas(&[quota]);
            }
            Kind::Limits => {
                self.state.set_limits(key, None);
                self.wake_for_limits(&key.namespace);
            }
            Kind::Profile => {
                self.state.profiles.remove(&key.name);
                self.wake_all();
                self.look_at_bound_of_profile(&key.name);
            }
            Kind::Namespace => self.observe_namespace(key.name.clone(), None),
        }
    }

    pub(super) fn bury(&mut self, uid: &Uid) {
        if self.gone.insert(uid.clone()) {
            self.gone_order.push_back(uid.clone());
        }
        if self.gone_order.len() > TOMBSTONES_MAX
            && let Some(oldest) = self.gone_order.pop_front()
        {
            self.gone.remove(&oldest);
        }
    }

    fn claim_gone(&mut self, uid: &Uid) {
        self.contests.remove(uid);
        let Some(claim) = self.state.remove_claim(uid) else { return };
        if let Some(lost) = &claim.status.resource_uid
            && let Some(claims) = self.lost_to.get_mut(lost)
        {
            claims.remove(uid);
            if claims.is_empty() {
                self.lost_to.remove(lost);
            }
        }
        self.drop_binding(uid);
        for name in provisioned_names(&claim) {
            self.makers.remove(&(claim.ty, name));
        }
        self.bindings.remove(uid);
        self.busy.remove(&Target::Claim(uid.clone()));
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
        targets.iter().for_each(|target| self.abandon(target));
        self.destroys.remove(&(ty, name.clone()));
        let named = self.queue.lanes().waiting_for(&Wait::Resource(name.clone()));
        self.queue.wake_lanes(named);
        self.dirty.extend(class.map(|class| Target::Class(ty, class)));
        if self.synced {
            holders.iter().for_each(|claim| self.settle_claim(claim, now));
        }
    }

    /// Forgets what is under way for a target: the answer to a write on this life of a name must not free
    /// the next one.
    fn abandon(&mut self, target: &Target) {
        if self.busy.remove(target).is_some() {
            self.flights.retain(|_, flight| flight.target != *target);
            self.flying.remove(target);
        }
        self.troubles.remove(&(target.clone(), Effect::Change));
        self.troubles.remove(&(target.clone(), Effect::Destruction));
    }

    pub(super) fn observe_list(&mut self, kind: Kind, objects: Vec<Object>, revision: Revision, now: Time) {
        let listed: BTreeSet<&str> = objects.iter().filter_map(|o| o.metadata.uid.as_deref()).collect();
        // What we wrote after the list was taken is not missing from it.
        let missing = |uid: &Uid, seen: Revision| !listed.contains(&**uid) && !revision.is_older_than(seen);
        let gone: Vec<(ObjectKey, Uid)> =
            self.known(kind).filter(|(_, uid, seen)| missing(uid, *seen)).map(|(k, u, _)| (k, u)).collect();
        for (key, uid) in gone {
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
            self.state.ledger.namespaces().filter(|name| !listed.contains(&***name)).cloned().collect();
        gone.into_iter().for_each(|name| self.observe_namespace(name, None));
    }

    fn known(&self, kind: Kind) -> Box<dyn Iterator<Item = (ObjectKey, Uid, Revision)> + '_> {
        fn id(meta: &crate::model::Meta) -> (ObjectKey, Uid, Revision) {
            (meta.key.clone(), meta.uid.clone(), meta.revision)
        }
        match kind {
            Kind::Claim(ty) => Box::new(self.state.claims().filter(move |c| c.ty == ty).map(|c| id(&c.meta))),
            Kind::Resource(ty) => {
                let of_type = self.state.resources().filter(move |(_, e)| e.resource.ty == ty);
                Box::new(of_type.map(|(_, e)| id(&e.resource.meta)))
            }
            Kind::Class(ty) => {
                Box::new(self.state.classes.values().filter(move |c| c.ty == ty).map(|c| id(&c.meta)))
            }
            Kind::Quota | Kind::ClusterQuota => {
                let cluster = kind == Kind::ClusterQuota;
                let of_scope =
                    self.state.ledger.quotas().filter(move |(key, _, _)| key.namespace.is_empty() == cluster);
                Box::new(of_scope.map(|(_, quota, _)| id(&quota.meta)))
            }
            Kind::Limits => Box::new(self.state.limits().map(|l| id(&l.meta))),
            Kind::Profile => Box::new(self.state.profiles.values().map(|p| id(&p.meta))),
            Kind::Namespace => Box::new(std::iter::empty()),
        }
    }

    /// Everything has been listed: look at every object once, then begin.
    pub(super) fn start(&mut self, now: Time) {
        if self.synced {
            return;
        }
        self.synced = true;
        self.tell_all_unreadable();
        TypeId::all().for_each(|ty| self.tell_defaults(ty));
        let classes: Vec<Class> = self.state.classes.values().cloned().collect();
        classes.iter().for_each(|class| self.tell_unchecked(class));
        let resources: Vec<ResourceId> = self.state.resources().map(|(id, _)| id).collect();
        let claims = self.take_unsettled();
        let classes: Vec<Target> =
            self.state.classes.keys().map(|(ty, n)| Target::Class(*ty, n.clone())).collect();
        self.dirty.extend(classes);
        for id in resources {
            let Some(resource) = self.state.resource(id).map(|entry| &entry.resource) else { continue };
            let target = Target::Resource(resource.ty, resource.meta.key.name.clone());
            if !self.busy.contains(&target) {
                self.dirty.insert(target);
                self.check_holders(id);
            }
        }
        for claim in claims {
            self.settle_claim(&claim, now);
        }
    }
}

/// What a class is told that declares nothing, with the fields to add.
const SIZES_NOT_CHECKED: &str = "it declares nothing of what it makes, so claims of any size and version are served and \
                                 nobody checks what they get: declare capacity, and version or versions, or let its \
                                 template take them (${resource.spec.capacity.storage})";

/// Whether a claim asks for something else than before: its status and bookkeeping do not count.
fn asks_differently(known: &Claim, claim: &Claim) -> bool {
    let steering = |c: &Claim| (c.priority, c.resource_name.clone(), c.profile.clone());
    // What a class refused may be a parameter, which is not among what is matched.
    let mended = !claim.status.refused_by.is_empty() && known.meta.generation != claim.meta.generation;
    known.wants != claim.wants || steering(known) != steering(claim) || mended
}
