//! The claims that hold a resource, and which of them an update of it concerns. What becomes of them is settled elsewhere.

use super::{Binding, Engine};
use crate::cache::ResourceId;
use crate::model::{ClaimRef, Name, Resource, Uid};
use std::collections::{BTreeMap, BTreeSet};

impl Engine {
    pub(super) fn holders(&self, id: ResourceId, but: impl Fn(&Uid) -> bool) -> BTreeSet<Uid> {
        let entry = self.state.resource(id);
        let uids = entry.into_iter().flat_map(|e| e.refs()).filter_map(|r| r.uid.as_ref());
        uids.filter(|uid| !but(uid)).cloned().collect()
    }

    /// The holders for whom nothing changes with this update of their resource: settled, referenced as before, and all
    /// that concerns them unchanged. A shared resource changes with each of its claims, and need not disturb the others.
    pub(super) fn steady_holders(&self, id: ResourceId, new: &Resource) -> Vec<Uid> {
        let Some(entry) = self.state.resource(id).filter(|entry| is_alike_to_holders(&entry.resource, new))
        else {
            return Vec::new();
        };
        let name = &new.meta.key.name;
        let is_settled = |uid: &Uid| self.is_bound_to(uid, name) && !entry.departed.contains_key(uid);
        let mut steady = Vec::new();
        for (at, known) in entry.resource.claim_refs.iter().enumerate() {
            let is_named = new.claim_refs.get(at) == Some(known) || new.claim_refs.contains(known);
            steady.extend(known.uid.as_ref().filter(|uid| is_named && is_settled(uid)).cloned());
        }
        if self.losses.has_doubts(new.ty, name) { Vec::new() } else { steady }
    }

    fn is_bound_to(&self, claim: &Uid, resource: &Name) -> bool {
        self.bindings.get(claim).and_then(Binding::bound_to) == Some(resource)
    }

    /// The references of claims that are bound to a resource and that this update removes.
    pub(super) fn dropped_refs(&self, id: ResourceId, new: &Resource) -> BTreeMap<Uid, ClaimRef> {
        let Some(entry) = self.state.resource(id) else { return BTreeMap::new() };
        let known = entry.resource.claim_refs.iter().enumerate();
        let mut moved = known.filter(|(at, known)| new.claim_refs.get(*at) != Some(known)).peekable();
        if moved.peek().is_none() {
            return BTreeMap::new();
        }
        let named: BTreeSet<&Uid> = new.claim_refs.iter().filter_map(|r| r.uid.as_ref()).collect();
        let name = &new.meta.key.name;
        let unnamed = moved.filter_map(|(_, known)| Some((known.uid.clone()?, known)));
        let dropped = unnamed.filter(|(uid, _)| !named.contains(uid) && self.is_bound_to(uid, name));
        dropped.map(|(uid, known)| (uid, known.clone())).collect()
    }
}

/// Whether an update changes nothing that a claim which is bound to the resource depends on: other holders, what is left
/// of it and its bookkeeping do not count.
fn is_alike_to_holders(old: &Resource, new: &Resource) -> bool {
    let Resource {
        ty,
        meta,
        offer,
        claim_refs: _,
        has_unreadable_refs,
        reclaim,
        template,
        script,
        provisioned_for,
        provisioned_by,
        is_server,
        status,
    } = old;
    let is_offered = old.is_offered() && new.is_offered();
    let status_is_alike = status.implementation == new.status.implementation
        && (is_offered || (status.phase, &status.conditions) == (new.status.phase, &new.status.conditions));
    (*ty, &meta.key, &meta.uid, meta.deleting) == (new.ty, &new.meta.key, &new.meta.uid, new.meta.deleting)
        && *offer == new.offer
        && (*has_unreadable_refs, *is_server) == (new.has_unreadable_refs, new.is_server)
        && (reclaim, template, script) == (&new.reclaim, &new.template, &new.script)
        && (provisioned_for, provisioned_by) == (&new.provisioned_for, &new.provisioned_by)
        && status_is_alike
}
