//! Where a claim stands, told from both sides. The resource's side is the truth: who it holds is bound,
//! whatever the claim's own fields say.

use super::{Binding, Engine, Target};
use crate::action::Action;
use crate::api::reasons;
use crate::cache::{Charge, Departure, ResourceEntry, ResourceId};
use crate::lifecycle::{cannot_be_made, was_never_made};
use crate::model::{
    Capacity, Claim, ClaimPhase, ClaimRef, Kind, Name, Quantity, ReclaimPolicy, Resource, ResourcePhase,
    Time, TypeId, Uid,
};
use crate::queue::Entry;

impl Engine {
    /// Settles where a claim stands and marks what must be written.
    pub(super) fn settle_claim(&mut self, uid: &Uid, now: Time) {
        let Some(claim) = self.state.claim(uid).cloned() else { return };
        let holders: Vec<ResourceId> = self.state.holders_of(uid).collect();
        // Before all else, deletion included: what this engine cannot see it must not end.
        if let Some(namespace) = self.unmanaged_namespace(&claim) {
            return self.leave_unmanaged(&claim, namespace);
        }
        self.dirty.insert(Target::Claim(uid.clone()));
        if claim.meta.deleting {
            return self.leave(uid, &holders);
        }
        if claim.status.phase == ClaimPhase::Lost {
            return match self.find_lost(&claim, &holders) {
                Some(id) => self.adopt(&claim, id, &holders, now),
                None => self.settle_lost(&claim, now),
            };
        }
        let holders = self.without_failed(&claim, holders);
        match self.choose_holder(&claim, &holders) {
            Some(id) if self.is_recorded(&claim, id) => self.adopt(&claim, id, &holders, now),
            // Bound by its own record to a resource that does not say so: that one has its data, and
            // another that claims to hold it never will.
            Some(_) => {
                self.let_go(&claim.meta.uid, &holders, None);
                self.settle_unheld(&claim, now);
            }
            None => self.settle_unheld(&claim, now),
        }
    }

    /// The namespace of the resource that a claim is bound to by its own record, where that is not the system namespace.
    fn unmanaged_namespace(&self, claim: &Claim) -> Option<Name> {
        claim.status.resource.as_ref()?;
        claim.status.resource_namespace.clone().filter(|namespace| *namespace != self.config.system_namespace)
    }

    /// Another controller's claim, or ours under a wrong system namespace: whether its resource exists cannot be judged here.
    fn leave_unmanaged(&mut self, claim: &Claim, namespace: Name) {
        let (uid, key) = (&claim.meta.uid, &claim.meta.key);
        let resource = claim.status.resource.clone().unwrap_or_default();
        let binding = Binding::Unmanaged { namespace: namespace.clone(), resource: resource.clone() };
        if self.bindings.get(uid) == Some(&binding) {
            return;
        }
        let message = format!(
            "bound to {resource} in namespace {namespace}, which this controller does not manage: its system namespace is \
             {}. The claim is left as it is",
            self.config.system_namespace
        );
        self.tell(Kind::Claim(claim.ty), key, uid, true, reasons::bound::NOT_MANAGED, message);
        self.drop_binding(uid);
        // What it holds counts all the same; of which class it is cannot be seen from here.
        let requests = claim.wants.as_ref().map(|wants| wants.requests.clone()).unwrap_or_default();
        self.charge(claim, None, requests);
        self.bindings.insert(uid.clone(), binding);
    }

    /// The resource that a lost claim was bound to, the same and no other of its name, if it exists and holds the claim.
    fn find_lost(&self, claim: &Claim, holders: &[ResourceId]) -> Option<ResourceId> {
        let lost = claim.status.resource_uid.as_ref()?;
        let is_lost = |id: &&ResourceId| {
            self.state.resource(**id).is_some_and(|entry| entry.resource.meta.uid == *lost)
        };
        holders.iter().find(is_lost).copied()
    }

    /// A lost claim that no resource holds. Where the same resource exists again without its reference, as after an older
    /// state was restored, the reference is put back as of a claim that is bound (rule 11): the UID says that the data is
    /// its own. Once others hold the resource, the data may be theirs, and that loss stays.
    fn settle_lost(&mut self, claim: &Claim, now: Time) {
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
        let entry = self.state.resource(self.state.find_resource(claim.ty, name)?)?;
        (entry.resource.meta.uid == *uid).then_some(entry)
    }

    /// Lets go of what was made for a claim and has failed for good, once the claim has it on record: its class is not
    /// tried again, and what was half made goes by its policy. Whoever was to share it is decided about anew.
    fn without_failed(&mut self, claim: &Claim, holders: Vec<ResourceId>) -> Vec<ResourceId> {
        let (failed, left): (Vec<_>, Vec<_>) =
            holders.into_iter().partition(|id| self.is_given_up(claim, *id));
        for id in failed {
            let how = self.loser_departure(id, &claim.meta.uid);
            self.depart(id, &claim.meta.uid, how);
        }
        left
    }

    fn is_given_up(&self, claim: &Claim, id: ResourceId) -> bool {
        let Some(resource) = self.state.resource(id).map(|entry| &entry.resource) else { return false };
        if claim.was_bound() {
            return false;
        }
        let made = resource.provisioned_for.as_ref() == Some(&claim.meta.uid);
        if !made {
            return resource.provisioned_for.is_some() && cannot_be_made(resource).is_some();
        }
        let class = resource.provisioned_by.as_ref();
        // Nothing need be on record of a class that is not there any more.
        let class_is_gone =
            || !class.is_some_and(|c| self.state.classes.contains_key(&(claim.ty, c.clone())));
        let failed = || cannot_be_made(resource).is_some() && class_is_gone();
        // On record, it is given up whatever it says now: it may be on its way out.
        claim.has_given_up(&resource.meta.uid) || failed()
    }

    /// Whether a holder is the one that the claim was bound to, or the claim was never bound.
    fn is_recorded(&self, claim: &Claim, id: ResourceId) -> bool {
        let recorded = claim.status.resource.as_ref().filter(|_| claim.status.phase == ClaimPhase::Bound);
        let name = self.state.resource(id).map(|e| &e.resource.meta.key.name);
        recorded.is_none() || recorded == name
    }

    /// Takes a claim off every holder but `keep`.
    fn let_go(&mut self, uid: &Uid, holders: &[ResourceId], keep: Option<ResourceId>) {
        for id in holders.iter().filter(|id| Some(**id) != keep) {
            let how = self.loser_departure(*id, uid);
            self.depart(*id, uid, how);
        }
    }

    /// The claim is being deleted: it is neither bound nor provisioned, and what holds it lets go.
    fn leave(&mut self, uid: &Uid, holders: &[ResourceId]) {
        self.drop_binding(uid);
        self.bindings.insert(uid.clone(), Binding::Leaving);
        for id in holders {
            self.depart(*id, uid, Departure::Gone);
        }
    }

    fn depart(&mut self, id: ResourceId, uid: &Uid, how: Departure) {
        self.state.set_departed(id, uid, Some(how));
        if let Some(entry) = self.state.resource(id) {
            self.dirty.insert(Target::Resource(entry.resource.ty, entry.resource.meta.key.name.clone()));
        }
    }

    /// Takes a claim out of whatever it was doing: queue, assumption, charge.
    pub(super) fn drop_binding(&mut self, uid: &Uid) {
        self.queue.remove(uid);
        self.unassume(uid);
        self.break_promise(uid);
        self.claims_to_keep.remove(uid);
        self.written_claims.remove(uid);
        let quotas = self.state.ledger.release(uid);
        self.dirty.extend(quotas.iter().cloned().map(Target::Quota));
        self.wake_for_quotas(&quotas);
    }

    /// What was to be made for a claim and others waited to look at can be seen by now, or will not be made any more.
    fn break_promise(&mut self, uid: &Uid) {
        let Some(Binding::Provisioning { class, resource }) = self.bindings.get(uid) else { return };
        let (class, resource) = (class.clone(), resource.clone());
        let is_maker = |ty: &TypeId| self.makers.get(&(*ty, resource.clone())) == Some(uid);
        if let Some(ty) = TypeId::all().find(is_maker) {
            self.end_promise(ty, &class, &resource);
        }
    }

    /// Those who waited to look at a resource look now.
    pub(super) fn end_promise(&mut self, ty: TypeId, class: &Name, resource: &Name) {
        let waited = self.state.making.end_promise(ty, class, resource);
        self.dirty.extend(waited.into_iter().map(Target::Claim));
    }

    /// Takes back what was assumed for a claim, and offers it to others.
    pub(super) fn unassume(&mut self, uid: &Uid) {
        let Some(Binding::Assumed { resource, .. }) = self.bindings.get(uid) else { return };
        let resource = resource.clone();
        for ty in TypeId::all() {
            if let Some(id) = self.state.find_resource(ty, &resource) {
                let before = self.state.index_of(ty).glance(id);
                self.state.forget(id, uid);
                self.wake_for_resource(id, before.as_ref());
            }
        }
    }

    fn lose(&mut self, claim: &Claim, reason: &'static str, message: String) {
        if let Some(lost) = claim.status.resource_uid.clone() {
            self.lost_to.entry(lost).or_default().insert(claim.meta.uid.clone());
        }
        self.drop_binding(&claim.meta.uid);
        self.bindings.insert(claim.meta.uid.clone(), Binding::Lost { reason, message });
    }

    /// Of the resources that hold a claim, the one that it is bound to: its own record first, then
    /// the name in its spec, then the first by name. Two can hold it after a crash between two tries.
    fn choose_holder(&self, claim: &Claim, holders: &[ResourceId]) -> Option<ResourceId> {
        let named = |id: &&ResourceId, name: Option<&Name>| {
            self.state.resource(**id).is_some_and(|e| Some(&e.resource.meta.key.name) == name)
        };
        let recorded = holders.iter().find(|id| named(id, claim.status.resource.as_ref()));
        let asked = || holders.iter().find(|id| named(id, claim.resource_name.as_ref()));
        let first =
            || holders.iter().min_by_key(|id| self.state.resource(**id).map(|e| &e.resource.meta.key.name));
        recorded.or_else(asked).or_else(first).copied()
    }

    /// The resource holds the claim: the bind is finished, without a second look at fitness.
    fn adopt(&mut self, claim: &Claim, id: ResourceId, holders: &[ResourceId], now: Time) {
        let uid = &claim.meta.uid;
        self.break_promise(uid);
        self.let_go(uid, holders, Some(id));
        self.state.set_departed(id, uid, None);
        let Some(entry) = self.state.resource(id) else { return };
        let resource = entry.resource.meta.key.name.clone();
        let made_for_it = entry.resource.provisioned_for.as_ref() == Some(uid);
        let failed = entry.resource.status.phase == Some(ResourcePhase::Failed);
        let usable = self.state.is_implemented(&entry.resource) && !failed;
        let waits = made_for_it && !usable || self.state.is_being_made(&entry.resource);
        let class = entry.resource.offer.as_ref().ok().and_then(|o| o.class.clone());
        let held = entry.resource.claim_refs.iter().find(|r| r.uid.as_ref() == Some(uid));
        let given = held.map(|r| r.requests.clone()).unwrap_or_default();
        let amounts = counted_amounts(entry, claim, given);
        self.dirty.insert(Target::Resource(claim.ty, resource.clone()));
        if matches!(self.bindings.get(uid), Some(Binding::Assumed { resource: r, .. }) if *r != resource) {
            self.unassume(uid);
        }
        self.charge(claim, class.clone(), amounts);
        let was_bound = claim.status.phase != ClaimPhase::Pending;
        if waits && !was_bound {
            self.enqueue_in_flight(claim, now);
            let class = class.unwrap_or_default();
            self.bindings.insert(uid.clone(), Binding::Provisioning { class, resource });
        } else {
            if self.queue.contains(uid) {
                self.stats.bound += 1;
                self.queue.pass_on(uid, &claim.meta.key.namespace);
                self.queue.settle(uid);
            }
            self.bindings.insert(uid.clone(), Binding::Bound { resource });
        }
    }

    /// A second resource that holds the claim was made for nobody else, or could not be made at all: where its policy
    /// says Delete, or nothing was ever made of it, it is reclaimed, otherwise it goes back to the others.
    fn loser_departure(&self, id: ResourceId, uid: &Uid) -> Departure {
        let is_useless = |resource: &Resource| {
            resource.provisioned_for.as_ref() == Some(uid) || cannot_be_made(resource).is_some()
        };
        let reclaimed =
            self.state.resource(id).is_some_and(|e| is_useless(&e.resource) && is_disposable(&e.resource));
        if reclaimed { Departure::Gone } else { Departure::Elsewhere }
    }

    pub(super) fn charge(&mut self, claim: &Claim, class: Option<Name>, amounts: Capacity) {
        let namespace = claim.meta.key.namespace.clone();
        let charge = Charge { namespace: namespace.clone(), class, engine: claim.group.clone(), amounts };
        let before = self.state.ledger.find_charge(&claim.meta.uid);
        if before == Some(&charge) {
            return;
        }
        // Charged less, or in another class, it leaves room for others.
        let frees = before.is_some_and(|before| {
            !charge.amounts.covers(&before.amounts)
                || (&before.class, &before.engine) != (&charge.class, &charge.engine)
        });
        self.state.ledger.charge(&claim.meta.uid, charge);
        let quotas = self.state.ledger.keys_for(&namespace);
        self.dirty.extend(quotas.iter().cloned().map(Target::Quota));
        if frees {
            self.wake_for_quotas(&quotas);
        }
    }

    /// No resource holds the claim.
    fn settle_unheld(&mut self, claim: &Claim, now: Time) {
        let uid = &claim.meta.uid;
        let in_progress = match self.bindings.get(uid) {
            // The binding alone does not tell: the reference may have been written and taken off again since.
            Some(Binding::Assumed { resource, .. }) => {
                let entry =
                    self.state.find_resource(claim.ty, resource).and_then(|id| self.state.resource(id));
                entry.is_some_and(|e| e.assumed.iter().any(|a| a.uid.as_ref() == Some(uid)))
            }
            // Once it is there and does not hold the claim, somebody has taken the reference off.
            Some(Binding::Provisioning { resource, .. }) => {
                self.state.find_resource(claim.ty, resource).is_none()
            }
            Some(
                Binding::Waiting(_)
                | Binding::Bound { .. }
                | Binding::Lost { .. }
                | Binding::Leaving
                | Binding::Unmanaged { .. },
            )
            | None => false,
        };
        if in_progress {
            return;
        }
        if let Some(Binding::Lost { .. }) = self.bindings.get(uid) {
            return;
        }
        if claim.was_bound() {
            return self.restore(claim, now);
        }
        // The write that says Bound is on its way, and may land: then what the claim was bound to is its own, and nothing
        // else is. The answer comes first; it settles the claim again.
        let is_being_told = matches!(self.bindings.get(uid), Some(Binding::Bound { .. }));
        if is_being_told && self.busy.contains(&Target::Claim(uid.clone())) {
            return;
        }
        if !self.queue.contains(uid) || !matches!(self.bindings.get(uid), Some(Binding::Waiting(_))) {
            // Whatever it had is gone, and what it was charged for that goes with it.
            self.retry_claim(uid, now);
        }
    }

    /// A claim that was bound, and whose resource does not say so: the reference is put back, if the
    /// resource is there and holds nobody else in its place. Otherwise the claim is lost.
    fn restore(&mut self, claim: &Claim, now: Time) {
        let Some(name) = claim.status.resource.as_ref().or(claim.resource_name.as_ref()).cloned() else {
            return self.lose(claim, reasons::bound::LOST, lost_message(claim));
        };
        let Some(id) = self.state.find_resource(claim.ty, &name) else {
            // Terminal, so never on the word of a cache.
            return self.ask_before_losing(claim, &name);
        };
        let Some(entry) = self.state.resource(id) else { return };
        // A resource that was deleted and made again under its name has other data in it.
        if claim.status.resource_uid.as_ref().is_some_and(|uid| *uid != entry.resource.meta.uid) {
            let message = format!(
                "resource {name} was replaced by another of that name; the claim is not bound to other data. {NEW_CLAIM}"
            );
            return self.lose(claim, reasons::bound::LOST, message);
        }
        if !has_room_for(entry, claim) {
            return self.lose(claim, reasons::bound::MISBOUND, misbound_message(entry, claim));
        }
        // What it was given, though it may ask for something else by now; where nobody remembers, what it asks for, as
        // far as that is there.
        let given = self.dropped.get(&claim.meta.uid).map(|dropped| dropped.requests.clone());
        let requests = given.unwrap_or_else(|| what_is_left_for(entry, claim));
        let class = entry.resource.offer.as_ref().ok().and_then(|o| o.class.clone());
        self.enqueue_in_flight(claim, now);
        self.give(claim, id, class, requests);
    }

    fn ask_before_losing(&mut self, claim: &Claim, name: &Name) {
        let key = crate::model::ObjectKey::new(self.config.system_namespace.clone(), name.clone());
        if self.missing.contains(&(claim.ty, name.clone())) {
            return self.lose(claim, reasons::bound::LOST, lost_message(claim));
        }
        self.doubted.entry((claim.ty, name.clone())).or_default().insert(claim.meta.uid.clone());
        self.break_promise(&claim.meta.uid);
        self.queue.remove(&claim.meta.uid);
        self.bindings.insert(claim.meta.uid.clone(), Binding::Bound { resource: name.clone() });
        self.read(Kind::Resource(claim.ty), key, None);
    }

    /// Gives a resource to a claim in memory; the write that commits it follows.
    pub(super) fn give(&mut self, claim: &Claim, id: ResourceId, class: Option<Name>, requests: Capacity) {
        self.break_promise(&claim.meta.uid);
        let Some(entry) = self.state.resource(id) else { return };
        let resource = entry.resource.meta.key.name.clone();
        let is_kept = entry.resource.claim_refs.iter().any(|r| r.uid.is_none() && r.claim == claim.meta.key);
        let reserved = is_kept || self.dropped.get(&claim.meta.uid).is_some_and(|dropped| dropped.reserved);
        let (key, uid) = (claim.meta.key.clone(), claim.meta.uid.clone());
        let amounts = counted_amounts(entry, claim, requests.clone());
        let claim_ref = ClaimRef { claim: key, uid: Some(uid.clone()), requests, reserved };
        self.state.assume(id, claim_ref);
        self.charge(claim, class.clone(), amounts);
        self.dirty.insert(Target::Resource(claim.ty, resource.clone()));
        self.bindings.insert(uid, Binding::Assumed { resource, class, since: self.helpful });
    }

    /// Puts a claim into the queue as one that is ready to be tried.
    pub(super) fn requeue(&mut self, uid: &Uid, now: Time) {
        let Some(claim) = self.state.claim(uid).cloned() else { return };
        match self.bindings.get(uid) {
            Some(Binding::Waiting(_)) | None => {}
            Some(Binding::Assumed { resource, .. })
                if self.state.find_resource(claim.ty, resource).is_none() => {}
            // What is under way, done or lost is not begun anew because the spec was edited.
            Some(
                Binding::Assumed { .. }
                | Binding::Provisioning { .. }
                | Binding::Lost { .. }
                | Binding::Leaving
                | Binding::Unmanaged { .. },
            ) => return,
            Some(Binding::Bound { .. }) => {
                if claim.status.phase == ClaimPhase::Bound {
                    return;
                }
            }
        }
        // What it had is gone, and what it was charged for that goes with it.
        self.drop_binding(uid);
        self.queue.add(entry(&claim, now));
        self.bindings.insert(uid.clone(), Binding::Waiting(None));
    }

    fn enqueue_in_flight(&mut self, claim: &Claim, now: Time) {
        let uid = &claim.meta.uid;
        if !self.queue.contains(uid) {
            self.queue.add(entry(claim, now));
        }
        // Parked or pausing, it is not to be tried once more while this is under way.
        self.queue.wake(uid);
        self.queue.take(uid);
    }

    /// Asks live after every holder of a resource that is not in the cache.
    pub(super) fn check_holders(&mut self, id: ResourceId) {
        let Some(entry) = self.state.resource(id) else { return };
        let ty = entry.resource.ty;
        let unknown =
            entry.resource.claim_refs.iter().filter_map(|r| Some((r.claim.clone(), r.uid.clone()?)));
        let unknown =
            unknown.filter(|(_, uid)| self.state.claim(uid).is_none() && !entry.departed.contains_key(uid));
        for (key, uid) in unknown.collect::<Vec<_>>() {
            self.read(Kind::Claim(ty), key, Some(uid));
        }
    }

    /// Asks for a live read, unless one is on its way.
    pub(super) fn read(&mut self, kind: Kind, key: crate::model::ObjectKey, about: Option<Uid>) {
        if !self.synced {
            return;
        }
        let asked = self.reads.get_mut(&(kind, key.clone()));
        match asked {
            Some(uids) => uids.extend(about),
            None => {
                self.reads.insert((kind, key.clone()), about.into_iter().collect());
                self.actions.push(Action::Read { kind, key });
            }
        }
    }
}

/// What quotas count of a resource that a claim was given some of.
fn counted_amounts(entry: &ResourceEntry, claim: &Claim, given: Capacity) -> Capacity {
    match &entry.resource.offer {
        Ok(offer) => offer.counted_for(&given, claim.is_exclusive()),
        Err(_) => given,
    }
}

/// Whether a resource without a claim is deleted: by its policy, or because there is nothing to retain.
fn is_disposable(resource: &Resource) -> bool {
    resource.reclaim == ReclaimPolicy::Delete || was_never_made(resource)
}

fn entry(claim: &Claim, now: Time) -> Entry {
    Entry {
        claim: claim.meta.uid.clone(),
        priority: claim.priority,
        since: claim.meta.created.unwrap_or(now),
        tie: claim.meta.key.clone(),
    }
}

/// The references of others than the claim. An earlier life of the claim is another.
fn others<'a>(entry: &'a ResourceEntry, claim: &Claim) -> impl Iterator<Item = &'a ClaimRef> {
    entry.refs().filter(|r| match &r.uid {
        Some(uid) => *uid != claim.meta.uid,
        None => r.claim != claim.meta.key,
    })
}

/// Whether a reference to the claim can be put back beside those of others. Nothing else is asked: it was this claim's.
fn has_room_for(entry: &ResourceEntry, claim: &Claim) -> bool {
    let slots = entry.resource.offer.as_ref().map_or(1, |offer| offer.max_claims as usize);
    others(entry, claim).count() < slots
}

/// What a claim asks for, no more of each amount that its resource lists than others leave.
fn what_is_left_for(entry: &ResourceEntry, claim: &Claim) -> Capacity {
    let asked = claim.wants.as_ref().map(|wants| wants.requests.clone()).unwrap_or_default();
    let Ok(offer) = &entry.resource.offer else { return asked };
    let taken = others(entry, claim).fold(Capacity::default(), |sum, r| sum.saturating_add(&r.requests));
    let (primary, left) = (claim.ty.rules().primary_capacity, offer.capacity.saturating_sub(&taken));
    let mut given = asked.clone();
    for (dim, want) in asked.iter().filter(|(dim, _)| offer.capacity.get(dim.name()) > Quantity::ZERO) {
        given.set(primary, dim.name(), want.min(left.get(dim.name())));
    }
    given
}

/// What a user can do about a lost claim, and what that costs.
const NEW_CLAIM: &str = "To start over with an empty resource, create a claim of another name; deleting this claim \
                         deletes the record of its data";

fn misbound_message(entry: &ResourceEntry, claim: &Claim) -> String {
    let name = &entry.resource.meta.key.name;
    let told = |r: &ClaimRef| match r.claim == claim.meta.key {
        true => "another claim of this name".to_owned(),
        false => r.claim.to_string(),
    };
    let holders: Vec<String> = others(entry, claim).map(told).collect();
    let holders = holders.join(", ");
    format!(
        "resource {name} is held by {holders}, and not by this claim any more. Its data is still in {name}. {NEW_CLAIM}"
    )
}

/// What a lost claim says: what was seen happen, where it says that already.
fn lost_message(claim: &Claim) -> String {
    let told = claim.status.conditions.iter().find(|c| &*c.kind == reasons::BOUND && !c.message.is_empty());
    // Earlier versions advised to delete the claim, without what that costs: what they wrote is not repeated.
    let told = told.filter(|told| told.message.contains(NEW_CLAIM));
    if let Some(told) = told.filter(|_| claim.status.phase == ClaimPhase::Lost) {
        return told.message.to_string();
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
