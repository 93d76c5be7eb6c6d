//! A claim made ready for a decision: its profile found, switched-off questions taken out, defaults filled in.
//! Also the two short cuts past matching: the resource that a claim names, and the one kept for it.

use super::refuse;
use crate::api::names::DEFAULT_PROFILE;
use crate::cache::{ResourceEntry, ResourceId, State};
use crate::model::quota::Bounds;
use crate::model::{Capacity, Claim, ClaimRef, Class, ClassWant, Name, Offer, Profile, ResourcePhase, Wants};
use crate::predicates::{
    self, Candidate, Charge, ClassQuery, Described, Headroom, Occupancy, Pairing, Predicate, Query, Refusal,
    RelaxedQuery, Step, standing_of, steps,
};
use crate::queue::{EquivalenceKey, Wait};
use std::borrow::Cow;
use std::sync::Arc;

/// A claim, ready to be decided about.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// What is wanted in the end.
    pub wants: Arc<Wants>,
    /// The group (the engine) that quotas count it under, also where the profile switches it off.
    pub group: Option<Name>,
    /// The profile that applies.
    pub profile: Arc<Profile>,
    /// The bounds of its namespace.
    pub bounds: Vec<Bounds>,
    /// Whether something is known that stands in the way of this claim and of no other.
    pub alone: bool,
}

impl Request<'_> {
    /// The claim's namespace.
    pub fn namespace(&self) -> &Name {
        &self.claim.meta.key.namespace
    }

    /// What the claim would be charged as one of `class` for what it requests.
    pub fn charge(&self, class: Option<&Name>) -> Charge {
        self.charge_for(class, self.wants.requests.clone())
    }

    /// What the claim would be charged as one of `class` for these amounts.
    pub fn charge_for(&self, class: Option<&Name>, amounts: Capacity) -> Charge {
        let (namespace, engine) = (self.namespace().clone(), self.group.clone());
        Charge { namespace, class: class.cloned(), engine, amounts }
    }

    /// What the claim would be charged if the class made a resource for it; nothing where it does not.
    pub fn charge_made(&self, class: &Class) -> Option<Charge> {
        let amounts = class.counted_for(class.recipe.as_ref().ok()?, &self.wants).ok()?;
        Some(self.charge_for(Some(&class.meta.key.name), amounts))
    }

    /// What quotas leave for the claim, where any limits it and the profile applies quotas.
    pub(super) fn headroom(&self, state: &State) -> Option<Headroom> {
        if state.quota_usage.is_empty() || !self.profile.asks(Predicate::Quota) {
            return None;
        }
        state.quota_usage.headroom(self.namespace(), self.group.as_ref())
    }

    /// The first class that the claim names, if it names any.
    pub fn first_class(&self) -> Option<&Name> {
        match &self.wants.class {
            ClassWant::Named(names) => names.first(),
            ClassWant::Absent | ClassWant::Classless | ClassWant::Any => None,
        }
    }

    /// The key of the group that the claim is parked in while it waits for `wait`.
    pub fn equivalence_key(&self, wait: Wait) -> EquivalenceKey {
        EquivalenceKey {
            ty: self.claim.ty,
            wait,
            wants: self.wants.clone(),
            profile: self.claim.profile.clone(),
            alone: self.alone.then(|| self.claim.meta.uid.clone()),
        }
    }
}

/// Makes a claim ready.
///
/// # Errors
/// The refusal of a claim that cannot be scheduled: its spec or its profile cannot be read.
pub fn prepare<'a>(state: &State, claim: &'a Claim) -> Result<Request<'a>, Box<(Refusal, EquivalenceKey)>> {
    let itself = |wait| EquivalenceKey {
        ty: claim.ty,
        wait,
        wants: Arc::new(Wants::least()),
        profile: claim.profile.clone(),
        alone: None,
    };
    let wants = claim.wants.as_ref().map_err(|error| {
        let refusal = Refusal { message: error.to_string(), reasons: Vec::new() };
        Box::new((refusal, itself(Wait::Itself(claim.meta.uid.clone()))))
    })?;
    let profile = find_profile(state, claim).map_err(|(name, why)| {
        Box::new((Refusal { message: why, reasons: Vec::new() }, itself(Wait::Profile(name))))
    })?;
    let bounds = state.bounds(&claim.meta.key.namespace);
    let wants = fill_in(claim, wants, &profile, &bounds);
    let alone = !claim.status.refused_by.is_empty();
    Ok(Request { claim, wants, group: claim.group.clone(), profile, bounds, alone })
}

pub(super) fn find_profile(state: &State, claim: &Claim) -> Result<Arc<Profile>, (Name, String)> {
    let name = claim.profile.as_deref().unwrap_or(DEFAULT_PROFILE);
    match (state.profiles.get(name), &claim.profile) {
        (Some(object), _) => match &object.profile {
            Ok(profile) => Ok(profile.clone()),
            Err(error) => Err((name.into(), format!("scheduling profile {name} cannot be read: {error}"))),
        },
        (None, None) => Ok(Arc::default()),
        (None, Some(_)) => Err((name.into(), format!("scheduling profile {name} does not exist"))),
    }
}

/// Defaults in, switched-off questions out. Shares the claim's own wants where neither changes them.
fn fill_in(claim: &Claim, wants: &Arc<Wants>, profile: &Profile, bounds: &[Bounds]) -> Arc<Wants> {
    if profile.disabled.is_empty() && bounds.is_empty() {
        return wants.clone();
    }
    let primary = claim.ty.rules().primary_capacity;
    let requests = predicates::apply_defaults(primary, &wants.requests, bounds);
    if profile.disabled.is_empty() && requests == wants.requests {
        return wants.clone();
    }
    let mut relaxed = RelaxedQuery {
        namespace: claim.meta.key.namespace.clone(),
        classes: Some(Vec::new()),
        wants: Wants { requests, ..(**wants).clone() },
    };
    predicates::relax_for(profile, claim.ty, &mut relaxed);
    Arc::new(relaxed.wants)
}

/// A resource as predicates decide on it; nothing where it does not exist or cannot be read.
pub(super) fn candidate(state: &State, id: ResourceId) -> Option<(&ResourceEntry, Candidate<'_>)> {
    let entry = state.resource(id)?;
    let offer = &**entry.resource.offer.as_ref().ok()?;
    let taken = entry.taken();
    let free = match taken.is_empty() {
        true => Cow::Borrowed(&offer.capacity),
        false => Cow::Owned(offer.capacity.saturating_sub(&taken)),
    };
    Some((entry, Candidate { offer, standing: state.standing(entry)?, free }))
}

/// The same with what sentences mention.
pub(super) fn describe<'a>(entry: &'a ResourceEntry, candidate: Candidate<'a>) -> Described<'a> {
    let holders = entry.refs().map(|r| &r.claim).collect();
    Described { candidate, name: &entry.resource.meta.key.name, phase: phase_word(entry), holders }
}

fn phase_word(entry: &ResourceEntry) -> &'static str {
    if entry.resource.meta.deleting {
        "Deleting"
    } else if entry.is_released() {
        "Released"
    } else {
        entry.resource.status.phase.map_or("Pending", |phase| phase.name())
    }
}

/// The class of a resource.
pub(super) fn class_of(state: &State, id: ResourceId) -> Option<Name> {
    state.resource(id)?.resource.offer.as_ref().ok()?.class.clone()
}

/// The resource that an administrator keeps for this claim, if it can serve: it wins over selector,
/// class and phase, and over a tighter fit. Of several, the best fit.
pub(super) fn reserved_for(state: &State, request: &Request<'_>) -> Option<ResourceId> {
    let claim = request.claim;
    let kept = state.reserved_for(claim.ty, &claim.meta.key);
    let able = kept.filter(|id| kept_refusal(state, request, *id).is_none());
    able.min_by_key(|id| {
        let entry = state.resource(*id);
        entry.map(|e| {
            let capacity = e.resource.offer.as_ref().map(|o| o.capacity.clone()).unwrap_or_default();
            (capacity, e.resource.meta.key.name.clone())
        })
    })
}

/// Whether a check applies to a resource that is kept for a claim.
pub(super) fn applies_to_kept(step: &Step) -> bool {
    !(step.definition.is_skipped_for)(&Pairing::Reserved)
}

/// Why a resource that is kept for a claim cannot serve it.
pub(super) fn kept_refusal(state: &State, request: &Request<'_>, id: ResourceId) -> Option<Refusal> {
    first_refusal(state, request, id, &Pairing::Reserved)
}

/// Why the resource that a claim names cannot be had. Where the resource names the claim too, both sides have said what
/// they want: only what would take something from others applies.
pub(super) fn named_refusal(state: &State, request: &Request<'_>, id: ResourceId) -> Option<Refusal> {
    let is_classless = class_of(state, id).is_none();
    let is_mutual = state.reserved_for(request.claim.ty, &request.claim.meta.key).any(|kept| kept == id);
    let is_shared =
        state.resource(id).is_some_and(|e| e.resource.offer.as_ref().is_ok_and(|o| o.max_claims > 1));
    first_refusal(state, request, id, &Pairing::Named { is_mutual, is_classless, is_shared })
}

/// Why a resource that is being provisioned does not serve a claim. That it is not ready yet does not count.
pub(super) fn while_made_refusal(state: &State, request: &Request<'_>, id: ResourceId) -> Option<Refusal> {
    first_refusal(state, request, id, &Pairing::Provisioning)
}

/// What a resource has left, and its name: the order in which the best fit comes first.
pub(super) fn left_over(state: &State, id: ResourceId) -> Option<(Capacity, Name)> {
    let entry = state.resource(id)?;
    let capacity = entry.resource.offer.as_ref().map(|offer| offer.capacity.clone()).unwrap_or_default();
    Some((capacity.saturating_sub(&entry.taken()), entry.resource.meta.key.name.clone()))
}

/// The first refusal of a resource to a claim that is paired with it. The claim's own reservation does not count
/// against it, and what is being deleted is never given.
fn first_refusal(state: &State, request: &Request<'_>, id: ResourceId, pairing: &Pairing) -> Option<Refusal> {
    let entry = state.resource(id)?;
    let name = &entry.resource.meta.key.name;
    let offer = match &entry.resource.offer {
        Ok(offer) => offer,
        Err(error) => {
            return Some(Refusal::single(
                Predicate::ResourceName,
                format!("resource {name} cannot be read: {error}"),
            ));
        }
    };
    if entry.resource.meta.deleting {
        return Some(Refusal::single(Predicate::Phase, format!("resource {name}: it is being deleted")));
    }
    let applies = |step: &&Step| !(step.definition.is_skipped_for)(pairing);
    let has_cordon = !(Predicate::Cordoned.definition().is_skipped_for)(pairing);
    let resource = describe_as_own(state, request, entry, offer, has_cordon);
    let classes = super::alternatives(state, request.claim.ty, &request.wants.class);
    let class =
        if request.wants.class == ClassWant::Any { ClassQuery::Any } else { ClassQuery::OneOf(&classes) };
    let query = Query { namespace: request.namespace(), class, wants: &request.wants, headroom: None };
    let mut applied = steps(request.claim.ty).iter().filter(applies);
    let (predicate, refusal) =
        applied.find_map(|step| Some((step.predicate, step.refusal(&query, &resource)?)))?;
    Some(refuse::of_resource(name, predicate, &refusal))
}

/// A resource as the claim sees it that it is kept for, or that names it: the claim's own reservation is not in its way.
pub(super) fn describe_as_own<'a>(
    state: &State,
    request: &Request<'_>,
    entry: &'a ResourceEntry,
    offer: &'a Offer,
    has_cordon: bool,
) -> Described<'a> {
    let own = |r: &ClaimRef| r.claim == request.claim.meta.key && r.uid.is_none();
    let others: Vec<_> = entry.refs().filter(|r| !own(r)).collect();
    // Kept for more claims than it can have, it is for those who come first: no claim waits for one that is only expected.
    let is_overbooked = others.len() >= offer.max_claims as usize && entry.refs().any(own);
    let in_the_way: Vec<_> = others.iter().filter(|r| r.uid.is_some() || !is_overbooked).collect();
    // After a restart the status knows first that the last holder was deleted; its data still exists.
    let says_so = entry.resource.says_released();
    let is_released = entry.is_released() || (says_so && entry.resource.holders().next().is_some());
    // A cordon that does not apply must not hide that others hold the resource.
    let occupancy = Occupancy {
        offer,
        is_cordoned: offer.cordoned && has_cordon,
        phase: Some(ResourcePhase::Available),
        is_implemented: true,
        is_deleting: false,
        is_released: false,
        holders: in_the_way.len(),
        is_exclusive: is_released || in_the_way.iter().any(|r| state.is_exclusive(r)),
    };
    // What others take, not what is left plus the claim's own: where the references together exceed the
    // capacity, adding the own one back would promise more than the resource ever had.
    let taken = others.iter().fold(Capacity::default(), |sum, r| sum.saturating_add(&entry.counted(r)));
    let free = Cow::Owned(offer.capacity.saturating_sub(&taken));
    let standing = standing_of(request.claim.ty, &occupancy);
    let holders = in_the_way.iter().map(|r| &r.claim).collect();
    Described { holders, ..describe(entry, Candidate { offer, standing, free }) }
}
