//! Changes tried before they are told: one that is named serves the claim, with the resource that it names.
//! Nothing is written; a trial is one more decision over the same cache.

use super::explain::Nearest;
use super::{
    Decision, Memo, Request, Step, charge_of_resource, gate_limits, gate_resource, schedule_one, steps,
};
use crate::cache::{Overrun, ResourceEntry, ResourceId, State};
use crate::framework::{Filter, Seen};
use crate::model::{FieldWant, Name, Predicate, ResourcePhase, Wants};
use crate::plugins;
use std::sync::Arc;

/// What the claim would get: the resource's name, absent where one would be made. Nothing where it is refused.
pub(super) fn served(state: &State, request: &Request<'_>) -> Option<Option<Name>> {
    match schedule_one(state, request, &mut Memo::default()) {
        Decision::Bind { resource, .. } => Some(name_of(state, resource)),
        Decision::Provision { .. } | Decision::Await { .. } => Some(None),
        Decision::Refuse { .. } => None,
    }
}

/// The name of a resource.
pub(super) fn name_of(state: &State, id: ResourceId) -> Option<Name> {
    Some(state.resource(id)?.resource.meta.key.name.clone())
}

/// The same claim asking for something else. What it leaves out is filled in as it would be.
pub(super) fn asking<'a>(request: &Request<'a>, wants: Wants) -> Request<'a> {
    let primary = request.claim.ty.rules().primary_capacity;
    let requests = plugins::apply_defaults(primary, &wants.requests, &request.bounds);
    let group = match request.claim.ty.rules().group_field().map(|at| &wants.fields[at]) {
        Some(FieldWant::Name(name)) => Some(name.clone()),
        _ => request.group.clone(),
    };
    Request { wants: Arc::new(Wants { requests, ..wants }), group, ..request.clone() }
}

/// Asking for what the namespace's limits allow.
pub(super) fn within_limits(state: &State, request: &Request<'_>) -> Option<Nearest> {
    let refusal = gate_limits(state, request)?;
    let primary = request.claim.ty.rules().primary_capacity;
    let mut wants = (*request.wants).clone();
    for bounds in &request.bounds {
        for (name, min) in bounds.min.iter().filter(|(name, min)| request.wants.requests.get(name) < *min) {
            wants.requests.set(primary, name, *min);
        }
        for (name, max) in bounds.max.iter().filter(|(name, max)| request.wants.requests.get(name) > *max) {
            wants.requests.set(primary, name, *max);
        }
    }
    let binds = served(state, &asking(request, wants))?;
    let change = format!("ask for what the limits of namespace {} allow ({refusal})", request.namespace());
    Some(Nearest { change, binds })
}

/// Raising every quota that stands between the claim and what it would get without quotas.
pub(super) fn with_more_quota(state: &State, request: &Request<'_>) -> Option<Nearest> {
    let mut profile = (*request.profile).clone();
    profile.disabled.push(Predicate::Quota);
    let unasked = Request { profile: Arc::new(profile), ..request.clone() };
    let (binds, charge) = match schedule_one(state, &unasked, &mut Memo::default()) {
        Decision::Bind { resource, .. } => {
            let offer = state.resource(resource)?.resource.offer.as_ref().ok()?;
            (name_of(state, resource), charge_of_resource(request, offer))
        }
        Decision::Provision { class } | Decision::Await { class, .. } => {
            let class = state.classes.get(&(request.claim.ty, class))?;
            (None, request.charge_made(class)?)
        }
        Decision::Refuse { .. } => return None,
    };
    let overruns = state.ledger.overruns(&charge, true);
    // No quota is high enough for what cannot be counted.
    if overruns.iter().any(Overrun::is_uncounted) {
        return None;
    }
    let raise = overruns.iter().map(|overrun| {
        let scope = overrun.scope.as_ref().map(|s| format!(" for {s}")).unwrap_or_default();
        let quota = plugins::quota_name(&overrun.quota);
        format!("raise {} of {quota}{scope} by {}", overrun.what, overrun.missing())
    });
    let change = raise.collect::<Vec<_>>().join(" and ");
    (!overruns.is_empty()).then_some(Nearest { change, binds })
}

/// What the claim would get if the remedy of a resource's only lack were followed.
pub(super) fn remedied(
    state: &State,
    request: &Request<'_>,
    id: ResourceId,
    filter: &dyn Filter,
    seen: &Seen<'_>,
) -> Option<Option<Name>> {
    let mut wants = (*request.wants).clone();
    if filter.mend(&mut wants, seen) {
        return served(state, &asking(request, wants));
    }
    // The resource is what would change. Nothing else fits, so the claim would get it, if nothing else is in the way.
    let entry = state.resource(id)?;
    if is_out_of_reach(entry, filter.predicate()) {
        return None;
    }
    // Released, it is nobody's.
    let held = if filter.predicate() == Predicate::Reserved { 0 } else { entry.refs().count() };
    let company = held == 0 || !request.wants.exclusive;
    let room = match filter.predicate() {
        Predicate::Cordoned => company && has_room(state, entry, seen),
        // A released one is to be kept for the claim: then no cordon is in its way, nor those who are gone.
        Predicate::Phase if seen.phase != ResourcePhase::Released.name() => {
            company && !seen.offer.cordoned && has_room(state, entry, seen)
        }
        Predicate::Sharing => company,
        _ => true,
    };
    let tried = |step: &Step| match step {
        Step::Find { vacant, shared } => {
            if held == 0 {
                *vacant
            } else {
                *shared
            }
        }
        Step::Provision => false,
    };
    let looked_for = request.claim.resource_name.is_some() || steps(&request.profile).iter().any(tried);
    let admitted = gate_limits(state, request).is_none() && gate_resource(state, request, id).is_none();
    (room && looked_for && admitted).then(|| Some(seen.name.clone()))
}

/// Whether a resource that is offered takes one more claim beside those who have it and those it is kept for.
fn has_room(state: &State, entry: &ResourceEntry, seen: &Seen<'_>) -> bool {
    let held = entry.refs().count();
    let is_alone = entry.refs().any(|reference| state.is_exclusive(reference));
    held == 0 || (held < seen.offer.max_claims as usize && !is_alone)
}

/// Whether a resource can be had by nobody else, whatever is changed: one that a claim holds is Released or deleted when
/// that lets it go, and one that is being deleted goes.
fn is_out_of_reach(entry: &ResourceEntry, lacks: Predicate) -> bool {
    let resource = &entry.resource;
    match lacks {
        Predicate::Reserved => resource.holders().next().is_some(),
        Predicate::Phase => resource.meta.deleting || resource.status.phase == Some(ResourcePhase::Deleting),
        _ => false,
    }
}
