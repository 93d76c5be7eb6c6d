//! The objects themselves: as last seen or written, with what is assumed on top.
//! Keyed by UID, so a name that is used again is a new object; older revisions never replace newer ones.

use super::index::{Index, ResourceId};
use super::parts::Parts;
use super::publications::Publications;
use super::quota_usage::QuotaUsage;
use super::shared_pending::SharedPending;
use crate::model::quota::Bounds;
use crate::model::{
    Capacity, Claim, ClaimRef, Class, FieldWant, Labels, Limits, Lookup, Name, ObjectKey, ProfileObject,
    Resource, ResourcePhase, TypeId, Uid, VersionRange,
};
use crate::predicates::{Occupancy, QuotaKey, Standing, standing_of};
use smallvec::SmallVec;
use std::collections::BTreeMap;
use std::sync::Arc;

/// A resource, and what the engine has decided about it but not yet read back.
#[derive(Clone, Debug)]
pub struct ResourceEntry {
    /// As last seen or written.
    pub resource: Resource,
    /// Claims that have been given this resource; each stays until its reference is read back,
    /// or the write's answer says that it never will be.
    pub assumed: Vec<ClaimRef>,
    /// Holders that no longer hold it.
    pub departed: BTreeMap<Uid, Departure>,
}

/// How a holder left.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Departure {
    /// It is gone or being deleted: the resource is to be reclaimed.
    Gone,
    /// It is bound to another resource: this one never was its own.
    Elsewhere,
}

impl ResourceEntry {
    /// Every reference of the resource, seen or assumed.
    pub fn refs(&self) -> impl Iterator<Item = &ClaimRef> {
        let seen = self.resource.claim_refs.iter().filter(|seen| {
            // An assumed reference that fills a reservation stands in its place.
            !(seen.uid.is_none() && self.assumed.iter().any(|a| a.claim == seen.claim))
        });
        let is_seen = |a: &&ClaimRef| !self.resource.claim_refs.iter().any(|seen| seen.uid == a.uid);
        seen.chain(self.assumed.iter().filter(is_seen))
    }

    /// Whether a claim that is still there holds it, seen or assumed.
    pub fn has_live_holder(&self) -> bool {
        self.refs().any(|r| r.uid.as_ref().is_some_and(|uid| !self.departed.contains_key(uid)))
    }

    /// Whether it was held, and every holder is gone.
    pub fn is_released(&self) -> bool {
        let mut held = self.refs().filter_map(|r| r.uid.as_ref()).peekable();
        let all_gone =
            held.peek().is_some() && held.all(|uid| self.departed.get(uid) == Some(&Departure::Gone));
        // A reference that cannot be read may still hold it.
        all_gone && !self.resource.has_unreadable_refs
    }

    /// Whether more claims have it, seen and assumed, than it has slots or capacity for. What the only
    /// claim of a resource asks is not held against its capacity: an administrator may have joined them.
    pub fn is_overdrawn(&self) -> bool {
        let Ok(offer) = &self.resource.offer else { return false };
        let crowded = self.refs().count() > offer.max_claims as usize;
        crowded || (offer.max_claims > 1 && offer.capacity.find_lacking(&self.taken()).is_some())
    }

    /// What its references take together.
    pub fn taken(&self) -> Capacity {
        self.refs().fold(Capacity::default(), |sum, r| sum.saturating_add(&self.counted(r)))
    }

    /// What one of its references counts for. A reservation counts in full until the claim that fills it is
    /// read back: should that claim go before, the reservation is there again; and claims that wait for what it
    /// leaves over is woken by the reading.
    pub fn counted(&self, reference: &ClaimRef) -> Capacity {
        let fills = |seen: &&ClaimRef| seen.uid.is_none() && seen.claim == reference.claim;
        match self.resource.claim_refs.iter().find(fills) {
            Some(kept) => {
                reference.requests.saturating_add(&kept.requests.saturating_sub(&reference.requests))
            }
            None => reference.requests.clone(),
        }
    }
}

/// What the engine knows, and the indexes over it.
#[derive(Clone, Debug)]
pub struct State {
    /// Whether a resource without a written phase counts as Available even where it has a template.
    absent_phase_is_available: bool,
    /// Apart, so that one more never moves all the others, and a copy of the state copies none until it changes it.
    resources: Vec<Option<Arc<ResourceEntry>>>,
    free_ids: Vec<ResourceId>,
    /// Resources by name, type by type.
    names: Vec<Lookup<Name, ResourceId>>,
    claims: Lookup<Uid, Arc<Claim>>,
    /// How many of them are exclusive: mostly none, and then no reference is checked.
    exclusive_claims: usize,
    /// Version ranges that claims request: many request the same, and a range is not small.
    ranges: Lookup<Name, Arc<VersionRange>>,
    /// Claims by where they are, type by type.
    claim_keys: Vec<Lookup<ObjectKey, Uid>>,
    /// Classes by name.
    pub classes: BTreeMap<(TypeId, Name), Class>,
    /// Scheduling profiles by name.
    pub profiles: BTreeMap<Name, ProfileObject>,
    limits: BTreeMap<(Name, Name), Limits>,
    /// Quotas and what is charged to them.
    pub quota_usage: QuotaUsage,
    /// What classes are making that several claims can have.
    pub shared_pending: SharedPending,
    /// The objects that implement resources.
    pub parts: Parts,
    /// What is published for claims.
    pub publications: Publications,
    indexes: Vec<Index>,
    /// Resources that hold a claim, by the claim's UID.
    holders: Lookup<Uid, ResourceIds>,
    /// Resources that are kept for a claim by name.
    reserved: BTreeMap<(TypeId, ObjectKey), ResourceIds>,
    class_use: BTreeMap<(TypeId, Name), usize>,
}

/// Ranges beyond this many are not shared: few claims would use them.
const RANGES_SHARED_MAX: usize = 4096;

/// Sorted; nearly always one.
type ResourceIds = SmallVec<[ResourceId; 2]>;

impl State {
    /// Knows nothing yet.
    pub fn new(absent_phase_is_available: bool) -> State {
        State {
            absent_phase_is_available,
            resources: Vec::new(),
            free_ids: Vec::new(),
            names: TypeId::all().map(|_| Lookup::default()).collect(),
            claims: Lookup::default(),
            exclusive_claims: 0,
            ranges: Lookup::default(),
            claim_keys: TypeId::all().map(|_| Lookup::default()).collect(),
            classes: BTreeMap::new(),
            profiles: BTreeMap::new(),
            limits: BTreeMap::new(),
            quota_usage: QuotaUsage::default(),
            shared_pending: SharedPending::default(),
            parts: Parts::default(),
            publications: Publications::default(),
            indexes: TypeId::all().map(Index::new).collect(),
            holders: Lookup::default(),
            reserved: BTreeMap::new(),
            class_use: BTreeMap::new(),
        }
    }

    /// The index of a type's resources.
    pub fn index_of(&self, ty: TypeId) -> &Index {
        &self.indexes[usize::from(ty.0)]
    }

    /// The index of a type's resources, for tests that put something wrong into it.
    #[cfg(test)]
    pub(crate) fn index_mut(&mut self, ty: TypeId) -> &mut Index {
        &mut self.indexes[usize::from(ty.0)]
    }

    /// A resource by its place.
    pub fn resource(&self, id: ResourceId) -> Option<&ResourceEntry> {
        self.resources.get(id.0 as usize)?.as_deref()
    }

    /// A resource by its name.
    pub fn find_resource(&self, ty: TypeId, name: &Name) -> Option<ResourceId> {
        self.names[usize::from(ty.0)].get(name).copied()
    }

    /// What is known of the resource of this name.
    pub fn resource_named(&self, ty: TypeId, name: &Name) -> Option<&ResourceEntry> {
        self.resource(self.find_resource(ty, name)?)
    }

    /// Every resource, by type and name.
    pub fn resources(&self) -> impl Iterator<Item = (ResourceId, &ResourceEntry)> {
        let named = self.names.iter().flat_map(Lookup::sorted);
        named.filter_map(|(_, id)| Some((*id, self.resource(*id)?)))
    }

    /// Takes in a resource, new or changed.
    pub fn set_resource(&mut self, mut resource: Resource) -> ResourceId {
        let names = &mut self.names[usize::from(resource.ty.0)];
        let name = &resource.meta.key.name;
        let id = match names.get(name) {
            Some(id) => *id,
            None => {
                let id = self.free_ids.pop().unwrap_or(ResourceId(self.resources.len() as u32));
                if id.0 as usize == self.resources.len() {
                    self.resources.push(None);
                }
                names.insert(name.clone(), id);
                id
            }
        };
        let old = self.resources[id.0 as usize].take();
        if let Some(old) = &old {
            self.forget_references(id, &old.resource);
            // Most changes are of the status: keeping the old offer spares the index a move between shapes.
            if old.resource.offer == resource.offer {
                resource.offer = old.resource.offer.clone();
            }
            if old.resource.template == resource.template {
                resource.template = old.resource.template.clone();
            }
        }
        let (mut assumed, mut departed) = match old {
            Some(old) if old.resource.meta.uid == resource.meta.uid => {
                let ResourceEntry { assumed, departed, .. } = Arc::unwrap_or_clone(old);
                (assumed, departed)
            }
            _ => (Vec::new(), BTreeMap::new()),
        };
        assumed.retain(|a| !resource.claim_refs.iter().any(|seen| seen.uid == a.uid));
        departed.retain(|uid, _| resource.claim_refs.iter().any(|seen| seen.uid.as_ref() == Some(uid)));
        self.note_references(id, &resource);
        self.resources[id.0 as usize] = Some(Arc::new(ResourceEntry { resource, assumed, departed }));
        self.reindex(id);
        id
    }

    /// Forgets a resource that is gone.
    pub fn remove_resource(&mut self, id: ResourceId) -> Option<ResourceEntry> {
        let entry = self.resources.get_mut(id.0 as usize)?.take()?;
        self.forget_references(id, &entry.resource);
        self.names[usize::from(entry.resource.ty.0)].remove(&entry.resource.meta.key.name);
        self.indexes[usize::from(entry.resource.ty.0)].remove(id);
        self.shared_pending.place(id, None);
        self.free_ids.push(id);
        Some(Arc::unwrap_or_clone(entry))
    }

    fn note_references(&mut self, id: ResourceId, resource: &Resource) {
        for claim_ref in &resource.claim_refs {
            match &claim_ref.uid {
                Some(uid) => add_to(self.holders.or_default(uid.clone()), id),
                None => {
                    let reserved = self.reserved.entry((resource.ty, claim_ref.claim.clone()));
                    add_to(reserved.or_default(), id);
                }
            }
        }
        self.parts.note_user(resource);
        if let Some(class) = class_of(resource) {
            *self.class_use.entry((resource.ty, class.clone())).or_default() += 1;
        }
    }

    fn forget_references(&mut self, id: ResourceId, resource: &Resource) {
        for claim_ref in &resource.claim_refs {
            match &claim_ref.uid {
                Some(uid) => {
                    if self.holders.get_mut(uid).is_some_and(|ids| is_empty_without(ids, id)) {
                        self.holders.remove(uid);
                    }
                }
                None => {
                    let key = (resource.ty, claim_ref.claim.clone());
                    if self.reserved.get_mut(&key).is_some_and(|ids| is_empty_without(ids, id)) {
                        self.reserved.remove(&key);
                    }
                }
            }
        }
        self.parts.forget_user(resource);
        if let Some(class) = class_of(resource) {
            let key = (resource.ty, class.clone());
            if let Some(count) = self.class_use.get_mut(&key) {
                *count -= 1;
                if *count == 0 {
                    self.class_use.remove(&key);
                }
            }
        }
    }

    /// How many resources are of a class.
    pub fn class_use(&self, ty: TypeId, class: &Name) -> usize {
        self.class_use.get(&(ty, class.clone())).copied().unwrap_or(0)
    }

    fn entry_mut(&mut self, id: ResourceId) -> Option<&mut ResourceEntry> {
        self.resources.get_mut(id.0 as usize)?.as_mut().map(Arc::make_mut)
    }

    /// Gives a resource to a claim in memory, ahead of the write.
    pub fn assume(&mut self, id: ResourceId, claim_ref: ClaimRef) {
        if let Some(entry) = self.entry_mut(id) {
            entry.assumed.retain(|a| a.uid != claim_ref.uid);
            entry.assumed.push(claim_ref);
            self.reindex(id);
        }
    }

    /// Takes back what was assumed for a claim.
    pub fn forget(&mut self, id: ResourceId, claim: &Uid) {
        if let Some(entry) = self.entry_mut(id) {
            entry.assumed.retain(|a| a.uid.as_ref() != Some(claim));
            self.reindex(id);
        }
    }

    /// Notes that a holder has left, or, where `how` is absent, that it is there after all.
    pub fn set_departed(&mut self, id: ResourceId, claim: &Uid, how: Option<Departure>) {
        if self.resource(id).is_none_or(|entry| entry.departed.get(claim).copied() == how) {
            return;
        }
        let Some(entry) = self.entry_mut(id) else { return };
        match how {
            Some(how) => entry.departed.insert(claim.clone(), how),
            None => entry.departed.remove(claim),
        };
        self.reindex(id);
    }

    /// The resources that hold a claim, as read from the resources.
    pub fn holders_of(&self, claim: &Uid) -> impl Iterator<Item = ResourceId> {
        self.holders.get(claim).into_iter().flatten().copied()
    }

    /// The resources that an administrator keeps for a claim.
    pub fn reserved_for(&self, ty: TypeId, claim: &ObjectKey) -> impl Iterator<Item = ResourceId> {
        self.reserved.get(&(ty, claim.clone())).into_iter().flatten().copied()
    }

    /// A claim by its UID.
    pub fn claim(&self, uid: &Uid) -> Option<&Arc<Claim>> {
        self.claims.get(uid)
    }

    /// A claim by where it is.
    pub fn find_claim(&self, ty: TypeId, key: &ObjectKey) -> Option<&Arc<Claim>> {
        self.claims.get(self.claim_keys[usize::from(ty.0)].get(key)?)
    }

    /// Every claim, by UID.
    pub fn claims(&self) -> impl Iterator<Item = &Claim> {
        self.claims.sorted().into_iter().map(|(_, claim)| &**claim)
    }

    /// How many claims there are.
    pub fn claim_count(&self) -> usize {
        self.claims.len()
    }

    /// Takes in a claim, new or changed.
    pub fn set_claim(&mut self, mut claim: Claim) {
        if let Some(wants) = claim.wants.as_mut().ok().and_then(Arc::get_mut) {
            wants.fields.iter_mut().for_each(|want| self.share_range(want));
        }
        let keys = &mut self.claim_keys[usize::from(claim.ty.0)];
        keys.insert(claim.meta.key.clone(), claim.meta.uid.clone());
        let (uid, is_exclusive) = (claim.meta.uid.clone(), claim.is_exclusive());
        let old = self.claims.insert(uid.clone(), Arc::new(claim));
        self.note_exclusive(&uid, old.is_some_and(|old| old.is_exclusive()), is_exclusive);
    }

    fn share_range(&mut self, want: &mut FieldWant) {
        let FieldWant::Range(range) = want else { return };
        // By text, not by meaning: messages repeat a range as its author wrote it.
        if let Some(known) = self.ranges.get(range.text()) {
            *range = known.clone();
        } else if self.ranges.len() < RANGES_SHARED_MAX {
            self.ranges.insert(Name::from(range.text()), range.clone());
        }
    }

    /// Forgets a claim that is gone.
    pub fn remove_claim(&mut self, uid: &Uid) -> Option<Arc<Claim>> {
        let claim = self.claims.remove(uid)?;
        let keys = &mut self.claim_keys[usize::from(claim.ty.0)];
        if keys.get(&claim.meta.key) == Some(uid) {
            keys.remove(&claim.meta.key);
        }
        self.note_exclusive(uid, claim.is_exclusive(), false);
        Some(claim)
    }

    /// An exclusive claim has its resource alone.
    fn note_exclusive(&mut self, uid: &Uid, was: bool, is: bool) {
        if was == is {
            return;
        }
        self.exclusive_claims = if is { self.exclusive_claims + 1 } else { self.exclusive_claims - 1 };
        for id in self.holders_of(uid).collect::<ResourceIds>() {
            self.reindex(id);
        }
    }

    /// Whether a reference is that of an exclusive claim.
    pub fn is_exclusive(&self, reference: &ClaimRef) -> bool {
        let claim = reference.uid.as_ref().filter(|_| self.exclusive_claims > 0);
        claim.and_then(|uid| self.claim(uid)).is_some_and(|claim| claim.is_exclusive())
    }

    /// The default class: of several, the newest, then by name.
    pub fn default_class(&self, ty: TypeId) -> Option<&Class> {
        let of_type = self.classes.values().filter(|c| c.ty == ty && c.is_default && !c.meta.deleting);
        of_type.max_by(|a, b| {
            let newest = a.meta.created.cmp(&b.meta.created);
            newest.then_with(|| b.meta.key.name.cmp(&a.meta.key.name))
        })
    }

    /// The bounds of a namespace, in the order of their names.
    pub fn bounds(&self, namespace: &Name) -> Vec<Bounds> {
        let first = (namespace.clone(), Name::from(""));
        let own = self.limits.range(first..).take_while(|((ns, _), _)| ns == namespace);
        own.filter_map(|(_, limits)| limits.bounds.as_ref().ok().cloned()).collect()
    }

    /// Takes in limits, or forgets them.
    pub fn set_limits(&mut self, key: &ObjectKey, limits: Option<Limits>) {
        let key = (key.namespace.clone(), key.name.clone());
        match limits {
            Some(limits) => self.limits.insert(key, limits),
            None => self.limits.remove(&key),
        };
    }

    /// Every limits object.
    pub fn limits(&self) -> impl Iterator<Item = &Limits> {
        self.limits.values()
    }

    /// One namespace's limits object.
    pub fn find_limits(&self, key: &ObjectKey) -> Option<&Limits> {
        self.limits.get(&(key.namespace.clone(), key.name.clone()))
    }

    /// Takes in the labels of a namespace, or forgets them.
    pub fn set_namespace(&mut self, name: Name, labels: Option<Labels>) -> Vec<QuotaKey> {
        self.quota_usage.set_namespace(name, labels)
    }

    /// How a resource stands to claims at large; nothing where what it offers cannot be read.
    pub fn standing(&self, entry: &ResourceEntry) -> Option<Standing> {
        let resource = &entry.resource;
        let offer = resource.offer.as_ref().ok()?;
        let occupancy = Occupancy {
            offer,
            is_cordoned: offer.cordoned,
            phase: resource.status.phase,
            is_implemented: self.is_implemented(resource),
            is_deleting: resource.meta.deleting,
            is_released: entry.is_released(),
            holders: entry.refs().count(),
            is_exclusive: entry.refs().any(|r| self.is_exclusive(r)),
        };
        Some(standing_of(resource.ty, &occupancy))
    }

    /// Whether what the resource stands for exists. Without a template it does: the administrator says so.
    pub fn is_implemented(&self, resource: &Resource) -> bool {
        match resource.status.phase {
            Some(ResourcePhase::Pending | ResourcePhase::Creating) => !resource.has_template(),
            None => !resource.has_template() || self.absent_phase_is_available,
            Some(
                ResourcePhase::Available
                | ResourcePhase::Bound
                | ResourcePhase::Released
                | ResourcePhase::Failed
                | ResourcePhase::Deleting,
            ) => true,
        }
    }

    /// The class that is making a resource, where that is not ready yet and has room for more claims.
    fn open_while_made(&self, entry: &ResourceEntry) -> Option<(TypeId, Name)> {
        let resource = &entry.resource;
        let class = resource.provisioned_by.as_ref().filter(|_| self.is_being_made(resource))?;
        let offer = resource.offer.as_ref().ok()?;
        let has_room = entry.refs().count() < offer.max_claims as usize;
        let is_alone = entry.refs().any(|r| self.is_exclusive(r));
        let stays = !is_alone && !resource.meta.deleting && !entry.is_released() && entry.has_live_holder();
        (stays && has_room && !offer.cordoned).then(|| (resource.ty, class.clone()))
    }

    /// Whether a resource was made from a class and what it stands for is not there yet.
    pub fn is_being_made(&self, resource: &Resource) -> bool {
        resource.provisioned_for.is_some() && !self.is_implemented(resource)
    }

    /// Indexes a resource as if it were new: the index may be wrong about it.
    pub fn reindex_afresh(&mut self, id: ResourceId) {
        let Some(ty) = self.resource(id).map(|entry| entry.resource.ty) else { return };
        self.indexes[usize::from(ty.0)].remove(id);
        self.reindex(id);
    }

    fn reindex(&mut self, id: ResourceId) {
        let Some(entry) = self.resource(id) else { return };
        let open = self.open_while_made(entry);
        self.shared_pending.place(id, open);
        let Some(entry) = self.resource(id) else { return };
        let (ty, name) = (entry.resource.ty, entry.resource.meta.key.name.clone());
        let (Ok(offer), Some(standing)) = (entry.resource.offer.clone(), self.standing(entry)) else {
            return self.indexes[usize::from(ty.0)].remove(id);
        };
        let held = entry.refs().count() as u32;
        let taken = entry.taken();
        self.indexes[usize::from(ty.0)].place(id, &name, &offer, standing, &taken, held);
    }
}

fn class_of(resource: &Resource) -> Option<&Name> {
    resource.offer.as_ref().ok()?.class.as_ref()
}

fn add_to(ids: &mut ResourceIds, id: ResourceId) {
    if let Err(at) = ids.binary_search(&id) {
        ids.insert(at, id);
    }
}

/// Takes `id` out, and says whether none is left.
fn is_empty_without(ids: &mut ResourceIds, id: ResourceId) -> bool {
    ids.retain(|known| *known != id);
    ids.is_empty()
}
