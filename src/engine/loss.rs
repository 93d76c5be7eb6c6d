//! Claims that were bound and whose resource does not hold them: the reference is restored where the same resource exists
//! and has room, else the claim is Lost. A missing resource is read live first, and many at once are withheld.

use super::{Binding, Engine};
use crate::api::reasons;
use crate::cache::{ResourceEntry, ResourceId};
use crate::model::{
    Capacity, Claim, ClaimPhase, ClaimRef, Kind, Name, ObjectKey, Quantity, Time, TypeId, Uid,
};

impl Engine {
    /// The resource that a lost claim was bound to, the same and no other of its name, if it exists and holds the claim.
    pub(super) fn find_lost(&self, claim: &Claim, holders: &[ResourceId]) -> Option<ResourceId> {
        let lost = claim.status.resource_uid.as_ref()?;
        let is_lost = |id: &&ResourceId| {
            self.state.resource(**id).is_some_and(|entry| entry.resource.meta.uid == *lost)
        };
        holders.iter().find(is_lost).copied()
    }

    /// A lost claim that no resource holds. Where the same resource exists again without its reference, as after an older
    /// state was restored, the reference is restored as of a claim that is bound (rule 11): the UID proves that the data
    /// is its own. Once others hold the resource, the data may be theirs, and that loss stays.
    pub(super) fn settle_lost(&mut self, claim: &Claim, now: Time) {
        let bound = claim.status.conditions.iter().find(|condition| &*condition.kind == reasons::BOUND);
        if bound.is_some_and(|bound| &*bound.reason == reasons::bound::MISBOUND) {
            return self.lose(claim, reasons::bound::MISBOUND, lost_message(claim));
        }
        let Some(entry) = self.find_same(claim) else {
            return self.lose(claim, reasons::bound::LOST, lost_message(claim));
        };
        if !has_room_for(entry, claim) {
            return self.lose(claim, reasons::bound::MISBOUND, misbound_message(entry, claim));
        }
        if matches!(self.bindings.get(&claim.meta.uid), Some(Binding::Lost { .. })) {
            self.bindings.remove(&claim.meta.uid);
        }
        self.settle_unheld(claim, now);
    }

    /// The resource that a claim is on record with, not another of its name.
    fn find_same(&self, claim: &Claim) -> Option<&ResourceEntry> {
        let (name, uid) = (claim.status.resource.as_ref()?, claim.status.resource_uid.as_ref()?);
        let entry = self.state.resource_named(claim.ty, name)?;
        (entry.resource.meta.uid == *uid).then_some(entry)
    }

    /// A claim that was bound, and whose resource does not say so: the reference is restored, if the resource exists and
    /// holds no other in its place. Otherwise the claim is lost.
    pub(super) fn restore(&mut self, claim: &Claim, now: Time) {
        let Some(name) = claim.status.resource.as_ref().or(claim.resource_name.as_ref()).cloned() else {
            return self.lose(claim, reasons::bound::LOST, lost_message(claim));
        };
        let Some(id) = self.state.find_resource(claim.ty, &name) else {
            return self.read_before_losing(claim, &name);
        };
        let Some(entry) = self.state.resource(id) else { return };
        // A resource that was deleted and created again under its name has other data in it.
        if claim.status.resource_uid.as_ref().is_some_and(|uid| *uid != entry.resource.meta.uid) {
            let message = format!(
                "resource {name} was replaced by another of that name; the claim is not bound to other data. {NEW_CLAIM}"
            );
            return self.lose(claim, reasons::bound::LOST, message);
        }
        if !has_room_for(entry, claim) {
            return self.lose(claim, reasons::bound::MISBOUND, misbound_message(entry, claim));
        }
        // What it was given, though it may request something else by now; where that is not known any more, what it
        // requests, as far as that exists.
        let given = self.losses.dropped_ref(&claim.meta.uid).map(|dropped| dropped.requests.clone());
        let requests = given.unwrap_or_else(|| what_is_left_for(entry, claim));
        let class = entry.resource.offer.as_ref().ok().and_then(|o| o.class.clone());
        self.enqueue_in_flight(claim, now);
        self.assume_binding(claim, id, class, requests);
    }

    /// A loss is terminal, so it is never concluded from the cache alone.
    fn read_before_losing(&mut self, claim: &Claim, name: &Name) {
        if self.losses.is_declared(claim.ty, name) {
            return self.lose(claim, reasons::bound::LOST, lost_message(claim));
        }
        let uid = &claim.meta.uid;
        self.losses.doubt(claim.ty, name, uid);
        self.break_promise(uid);
        self.queue.remove(uid);
        self.bindings.insert(uid.clone(), Binding::Bound { resource: name.clone() });
        let key = ObjectKey::new(self.config.system_namespace.clone(), name.clone());
        self.read(Kind::Resource(claim.ty), key, None);
    }

    fn lose(&mut self, claim: &Claim, reason: &'static str, message: String) {
        if let Some(lost) = claim.status.resource_uid.clone() {
            self.losses.remember(lost, &claim.meta.uid);
        }
        self.drop_binding(&claim.meta.uid);
        self.bindings.insert(claim.meta.uid.clone(), Binding::Lost { reason, message });
    }

    /// A live read has shown whether a resource exists: claims that were bound to it are settled with that.
    pub(super) fn resolve_doubts(&mut self, ty: TypeId, name: &Name, is_missing: bool, now: Time) {
        if is_missing {
            self.losses.not_found(ty, name);
        } else {
            self.losses.found(ty, name).iter().for_each(|uid| self.settle_claim(uid, now));
        }
        let state = &self.state;
        let is_bound = |uid: &Uid| state.claim(uid).is_some_and(|claim| !claim.meta.deleting);
        let exists = |(ty, name): &(TypeId, Name)| state.find_resource(*ty, name).is_some();
        for (place, claims) in self.losses.judge(self.config.lost_at_once_max, is_bound, exists) {
            self.losses.declare(Some(place));
            claims.iter().for_each(|uid| self.settle_claim(uid, now));
            self.losses.declare(None);
        }
        self.report_withheld();
    }

    fn report_withheld(&mut self) {
        let (withheld, missing) = self.losses.report_withheld();
        for (name, uid) in withheld {
            let Some(claim) = self.state.claim(&uid) else { continue };
            let message = format!(
                "resource {name} was not found, as were {} others at the same time: too many to be called Lost. The \
                 claim keeps its status. Check that the system namespace, the CRDs and the backup that the cluster was \
                 restored from are right; `--lost-at-once-max` accepts the loss",
                missing - 1
            );
            let reason = reasons::event::RESOURCES_MISSING;
            self.work.emit(Kind::Claim(claim.ty), &claim.meta, true, reason, message);
        }
    }

    /// Reads every holder of a resource that is not in the cache.
    pub(super) fn check_holders(&mut self, id: ResourceId) {
        let Some(entry) = self.state.resource(id) else { return };
        let ty = entry.resource.ty;
        let holders =
            entry.resource.claim_refs.iter().filter_map(|r| Some((r.claim.clone(), r.uid.clone()?)));
        let unknown =
            holders.filter(|(_, uid)| self.state.claim(uid).is_none() && !entry.departed.contains_key(uid));
        for (key, uid) in unknown.collect::<Vec<_>>() {
            self.read(Kind::Claim(ty), key, Some(uid));
        }
    }
}

/// The references of others than the claim. An earlier claim of its name is another.
fn others<'a>(entry: &'a ResourceEntry, claim: &Claim) -> impl Iterator<Item = &'a ClaimRef> {
    entry.refs().filter(|r| match &r.uid {
        Some(uid) => *uid != claim.meta.uid,
        None => r.claim != claim.meta.key,
    })
}

/// Whether a reference to the claim can be restored beside those of others. Nothing else is checked: it was this claim's.
fn has_room_for(entry: &ResourceEntry, claim: &Claim) -> bool {
    let slots = entry.resource.offer.as_ref().map_or(1, |offer| offer.max_claims as usize);
    others(entry, claim).count() < slots
}

/// What a claim requests, no more of each amount that its resource lists than others leave.
fn what_is_left_for(entry: &ResourceEntry, claim: &Claim) -> Capacity {
    let requested = claim.wants.as_ref().map(|wants| wants.requests.clone()).unwrap_or_default();
    let Ok(offer) = &entry.resource.offer else { return requested };
    let taken = others(entry, claim).fold(Capacity::default(), |sum, r| sum.saturating_add(&r.requests));
    let (primary, left) = (claim.ty.rules().primary_capacity, offer.capacity.saturating_sub(&taken));
    let mut given = requested.clone();
    for (dim, want) in requested.iter().filter(|(dim, _)| offer.capacity.get(dim.name()) > Quantity::ZERO) {
        given.set(primary, dim.name(), want.min(left.get(dim.name())));
    }
    given
}

/// What a user can do about a lost claim, and what that costs.
const NEW_CLAIM: &str = "To start over with an empty resource, create a claim of another name; deleting this claim \
                         deletes the record of its data";

fn misbound_message(entry: &ResourceEntry, claim: &Claim) -> String {
    let name = &entry.resource.meta.key.name;
    let named = |r: &ClaimRef| match r.claim == claim.meta.key {
        true => "another claim of this name".to_owned(),
        false => r.claim.to_string(),
    };
    let holders: Vec<String> = others(entry, claim).map(named).collect();
    let holders = holders.join(", ");
    format!(
        "resource {name} is held by {holders}, and not by this claim any more. Its data is still in {name}. {NEW_CLAIM}"
    )
}

/// The message of a lost claim: what was seen happen, where it says that already.
fn lost_message(claim: &Claim) -> String {
    let shown = claim.status.conditions.iter().find(|c| &*c.kind == reasons::BOUND && !c.message.is_empty());
    // Earlier versions advised to delete the claim, without what that costs: their message is not repeated.
    let shown = shown.filter(|shown| shown.message.contains(NEW_CLAIM));
    if let Some(shown) = shown.filter(|_| claim.status.phase == ClaimPhase::Lost) {
        return shown.message.to_string();
    }
    match claim.status.resource.as_ref().or(claim.resource_name.as_ref()) {
        Some(name) => {
            format!(
                "resource {name} was deleted; the claim is not bound to other data. It is bound again if the same \
                 resource returns. {NEW_CLAIM}"
            )
        }
        None => format!("the claim was bound and its resource is not known. {NEW_CLAIM}"),
    }
}
