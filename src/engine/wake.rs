//! Waking claims that an event can help: the first of each equivalence group that could match now.

use super::Engine;
use crate::cache::{ClassQuery, Query, QuotaKey, ResourceId, ResourceView};
use crate::model::{FieldValue, Name, TypeId};
use crate::queue::{EquivalenceKey, Wait};

impl Engine {
    pub(super) fn wake_all(&mut self) {
        self.queue.count_helpful_event();
        let groups: Vec<EquivalenceKey> = self.queue.groups().all().cloned().collect();
        self.queue.wake_groups(groups);
    }

    /// Other limits may let a claim pass, and other defaults change what it requests: every group of the namespace begins
    /// anew.
    pub(super) fn wake_for_limits(&mut self, namespace: &Name) {
        self.queue.count_helpful_event();
        let groups: Vec<EquivalenceKey> = self.queue.groups().all().cloned().collect();
        for group in groups {
            self.queue.wake_in_namespaces(&group, [&**namespace]);
        }
    }

    pub(super) fn wake_for_class(&mut self, ty: TypeId, name: &Name, was_default: Option<Name>) {
        self.queue.count_helpful_event();
        let mut groups = self.queue.groups().for_class(ty, name);
        let default = self.state.default_class(ty).map(|c| c.meta.key.name.clone());
        if default.as_ref() == Some(name) || default != was_default {
            groups.extend(self.queue.groups().for_default_class(ty).cloned());
            // A claim that names its resource and no class is of the default class too.
            groups.extend(self.queue.groups().naming_no_class(ty).cloned());
        }
        self.queue.wake_groups(groups);
    }

    /// Wakes the first claim of every group that waits for one of these quotas.
    pub(super) fn wake_for_quotas(&mut self, quotas: &[QuotaKey]) {
        if quotas.is_empty() {
            return;
        }
        self.queue.count_helpful_event();
        let concerned = |namespace: &Name| {
            quotas.iter().any(|quota| quota.namespace.is_empty() || quota.namespace == *namespace)
        };
        for namespace in self.queue.groups().namespaces_over_quota().into_iter().filter(concerned) {
            self.wake_waiting_for(&Wait::Quota(namespace));
        }
    }

    /// Wakes the first claim of every group that waits for this.
    pub(super) fn wake_waiting_for(&mut self, wait: &Wait) {
        let groups = self.queue.groups().waiting_for(wait);
        self.queue.wake_groups(groups);
    }

    /// Wakes the claims that a resource can help now, where it could not before.
    pub(super) fn wake_for_resource(&mut self, id: ResourceId, before: Option<&ResourceView>) {
        let Some(entry) = self.state.resource(id) else { return };
        let (ty, name) = (entry.resource.ty, entry.resource.meta.key.name.clone());
        for reserved in entry.resource.claim_refs.iter().filter(|r| r.uid.is_none()) {
            if let Some(claim) = self.state.find_claim(ty, &reserved.claim) {
                self.queue.wake(&claim.meta.uid);
            }
        }
        self.wake_waiting_for(&Wait::Resource(name));
        let index = self.state.index_of(ty);
        if index.view(id).is_none_or(|now| !now.is_better_than(before)) {
            return;
        }
        self.queue.count_helpful_event();
        let groups = self.groups_for(ty, id);
        let offer = self.state.resource(id).and_then(|e| e.resource.offer.as_ref().ok());
        let restricted = offer.map_or(&[][..], |offer| &offer.allowed_namespaces[..]);
        for group in groups {
            if restricted.is_empty() {
                self.queue.wake_groups([group]);
            } else {
                self.queue.wake_in_namespaces(&group, restricted.iter().map(|n| &**n));
            }
        }
    }

    /// The groups whose claims this resource fits.
    fn groups_for(&self, ty: TypeId, id: ResourceId) -> Vec<EquivalenceKey> {
        let Some(Ok(offer)) = self.state.resource(id).map(|e| e.resource.offer.as_ref()) else {
            return Vec::new();
        };
        let name = ty.rules().group_field().and_then(|at| match &offer.fields[at] {
            FieldValue::Name(name) => Some(name),
            _ => None,
        });
        let groups = self.queue.groups();
        let default = self.state.default_class(ty).map(|c| &c.meta.key.name);
        let is_default = offer.class.is_some() && offer.class.as_ref() == default;
        let defaulting = is_default.then(|| groups.for_default_class(ty));
        let groups = groups.for_resource(ty, offer.class.as_ref(), name);
        let groups = groups.chain(defaulting.into_iter().flatten());
        let namespace = offer.allowed_namespaces.first().cloned().unwrap_or_default();
        let helped = groups.filter(|group| {
            let class = ClassQuery::Any;
            let ask = Query { namespace: &namespace, class, wants: &group.wants, headroom: None };
            self.state.index_of(ty).first_refusal(&ask, id).is_none()
        });
        helped.cloned().collect()
    }
}
