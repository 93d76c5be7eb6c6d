//! Tries changes before they are shown: each serves the claim, with the resource that it names.
//! Nothing is written; a check is one more decision over the same cache.

use super::explain::Nearest;
use super::{
    Decision, Memo, Request, Step, charge_of_resource, gate_limits, gate_resource, schedule_one, steps,
};
use crate::cache::{ResourceEntry, ResourceId, State};
use crate::model::{FieldWant, Name, ResourcePhase, Wants};
use crate::predicates::{self, Case, Described, Occupants, Overrun, Predicate, Query};
use std::sync::Arc;

/// What the claim would get: the resource's name, absent where one would be made. Nothing where it is refused.
pub(super) fn served(state: &State, request: &Request<'_>) -> Option<Option<Name>> {
    match schedule_one(state, request, &mut Memo::default()) {
        Decision::Bind { resource, .. } => Some(name_of(state, resource)),
        Decision::Provision { .. } | Decision::Await { .. } => Some(None),
        Decision::Refuse { .. } | Decision::Disagree { .. } => None,
    }
}

/// The name of a resource.
pub(super) fn name_of(state: &State, id: ResourceId) -> Option<Name> {
    Some(state.resource(id)?.resource.meta.key.name.clone())
}

/// The same claim with other wants. What it leaves out is filled in as it would be.
pub(super) fn asking<'a>(request: &Request<'a>, wants: Wants) -> Request<'a> {
    let primary = request.claim.ty.rules().primary_capacity;
    let requests = predicates::apply_defaults(primary, &wants.requests, &request.bounds);
    let group = match request.claim.ty.rules().group_field().map(|at| &wants.fields[at]) {
        Some(FieldWant::Name(name)) => Some(name.clone()),
        _ => request.group.clone(),
    };
    Request { wants: Arc::new(Wants { requests, ..wants }), group, ..request.clone() }
}

/// Requesting what the limits of the namespace allow.
pub(super) fn within_limits(state: &State, request: &Request<'_>) -> Option<Nearest> {
    let refusal = gate_limits(request)?;
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
    let change = format!("request what the limits of namespace {} allow ({refusal})", request.namespace());
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
        Decision::Refuse { .. } | Decision::Disagree { .. } => return None,
    };
    let overruns = state.quota_usage.overruns(&charge, true);
    // No quota is high enough for what cannot be counted.
    if overruns.iter().any(Overrun::is_uncounted) {
        return None;
    }
    let raise = overruns.iter().map(|overrun| {
        let scope = overrun.scope.as_ref().map(|s| format!(" for {s}")).unwrap_or_default();
        let quota = predicates::quota_name(&overrun.quota);
        format!("raise {} of {quota}{scope} by {}", overrun.what, overrun.missing())
    });
    let change = raise.collect::<Vec<_>>().join(" and ");
    (!overruns.is_empty()).then_some(Nearest { change, binds })
}

/// What the claim would get if the remedy of a resource's only refusal were applied.
pub(super) fn remedied(
    state: &State,
    request: &Request<'_>,
    (query, id, resource): (&Query<'_>, ResourceId, &Described<'_>),
    step: &predicates::Step,
) -> Option<Option<Name>> {
    let case = Case { query, resource, field: step.field() };
    let mut wants = (*request.wants).clone();
    if (step.check.apply_remedy)(&mut wants, &case) {
        return served(state, &asking(request, wants));
    }
    // The resource is what would change. Nothing else fits, so the claim would get it, if nothing else is in the way.
    let entry = state.resource(id)?;
    let occupants = Occupants {
        count: entry.refs().count(),
        is_held: entry.resource.holders().next().is_some(),
        has_room: has_room(state, entry, resource),
        is_deleting: entry.resource.meta.deleting
            || entry.resource.status.phase == Some(ResourcePhase::Deleting),
        wants: &request.wants,
    };
    let held = (step.check.holders_after_remedy)(&occupants, &case)?;
    let finds = |step: &Step| match step {
        Step::Find { vacant, shared } => {
            if held == 0 {
                *vacant
            } else {
                *shared
            }
        }
        Step::Provision => false,
    };
    let looked_for = request.claim.resource_name.is_some() || steps(&request.profile).iter().any(finds);
    let admitted = gate_limits(request).is_none() && gate_resource(state, request, id).is_none();
    (looked_for && admitted).then(|| Some(resource.name.clone()))
}

/// Whether a resource that is offered takes one more claim beside those who have it and those it is kept for.
fn has_room(state: &State, entry: &ResourceEntry, resource: &Described<'_>) -> bool {
    let held = entry.refs().count();
    let is_alone = entry.refs().any(|reference| state.is_exclusive(reference));
    held == 0 || (held < resource.candidate.offer.max_claims as usize && !is_alone)
}
