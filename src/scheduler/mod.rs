//! One cycle: a claim in, a decision out. Reads the cache and the profile, writes nothing.
//! Order of a decision: limits, the named or reserved resource, then class by class the quota and
//! each means (existing, shared, provisioned) until one serves that the quota has room for.

mod batch;
mod drift;
mod explain;
mod min_cost_flow;
mod provision;
mod refuse;
mod remedy_check;
mod request;

pub use batch::{Placement, place_together};
pub use drift::{TAKES_EFFECT, drift, spec_at_binding};
pub use explain::{Explanation, NearMiss, Nearest, explain, lacks};
pub use request::{Request, prepare};

use crate::cache::{Fit, Preference, ResourceId, State};
use crate::model::profile::Way;
use crate::model::{Class, ClassWant, Name, Offer, Profile, TypeId};
use crate::predicates::{
    Charge, ClassQuery, Holding, Predicate, Query, Refusal, missing, outside_limits,
    over_quota as over_limits, steps as steps_of,
};
use crate::queue::Wait;
use crate::scores;
use std::sync::Arc;

/// What is to become of a claim now.
#[derive(Clone, Debug, PartialEq)]
pub enum Decision {
    /// Bind it to this resource, counting as a claim of this class.
    Bind {
        /// The resource.
        resource: ResourceId,
        /// The class that the claim is charged under.
        class: Option<Name>,
    },
    /// Make it a resource of this class.
    Provision {
        /// The class.
        class: Name,
    },
    /// One that several claims can have is about to be made from this class: wait until it is indexed.
    Await {
        /// The class.
        class: Name,
        /// The resource.
        resource: Name,
    },
    /// The index offers a resource that a predicate refuses: the index is wrong about it, and it is not bound.
    Disagree {
        /// The resource.
        resource: ResourceId,
        /// What refuses it, and why.
        refusal: Arc<Refusal>,
    },
    /// Nothing can be done until something changes.
    Refuse {
        /// Why.
        refusal: Arc<Refusal>,
        /// What could help.
        wait: Wait,
    },
}

/// Refusals of equal requests, shared until the resources change.
#[derive(Clone, Debug, Default)]
pub struct Memo {
    refusals: refuse::Memo,
}

/// Decides about one claim.
pub fn schedule_one(state: &State, request: &Request<'_>, memo: &mut Memo) -> Decision {
    if let Some(refusal) = gate_limits(request) {
        return refuse(refusal, Wait::Limits(request.namespace().clone()));
    }
    match &request.claim.resource_name {
        Some(name) => by_name(state, request, name),
        None => by_match(state, request, memo),
    }
}

/// Whether a claim may be placed together with others on resources that no claim holds: its namespace's limits
/// let it pass, and its profile looks for such resources at all.
pub fn is_placeable(request: &Request<'_>) -> bool {
    let looks = |step: &Step| matches!(step, Step::Find { vacant: true, .. });
    gate_limits(request).is_none() && steps(&request.profile).iter().any(looks)
}

fn refuse(refusal: Refusal, wait: Wait) -> Decision {
    Decision::Refuse { refusal: Arc::new(refusal), wait }
}

fn gate_limits(request: &Request<'_>) -> Option<Refusal> {
    // Most namespaces have neither limits nor quotas: then there is nothing to add up.
    if request.bounds.is_empty() || !request.profile.asks(Predicate::Limits) {
        return None;
    }
    outside_limits(request.namespace(), &request.wants.requests, &request.bounds)
}

/// Whether quotas refuse a claim of a class whatever it would get: what it requests counts in any case.
fn gate_quota(state: &State, request: &Request<'_>, class: Option<&Name>) -> Option<Refusal> {
    if state.quota_usage.is_empty() {
        return None;
    }
    gate(state, request, &request.charge(class), None)
}

/// Whether quotas refuse the claim this resource.
pub fn gate_resource(state: &State, request: &Request<'_>, id: ResourceId) -> Option<Refusal> {
    if state.quota_usage.is_empty() {
        return None;
    }
    let resource = &state.resource(id)?.resource;
    let (offer, name) = (resource.offer.as_ref().ok()?, &resource.meta.key.name);
    let charge = charge_of_resource(request, offer);
    let is_alone = offer.is_held_alone(request.wants.exclusive);
    let holding = if is_alone { Holding::Resource(name) } else { Holding::PartOf(name) };
    gate(state, request, &charge, Some(holding))
}

/// What the claim would be charged if it were given a resource.
fn charge_of_resource(request: &Request<'_>, offer: &Offer) -> Charge {
    let amounts = offer.counted_for(&request.wants.requests, request.wants.exclusive);
    request.charge_for(offer.class.as_ref(), amounts)
}

/// Whether quotas refuse the claim what a class would make for it.
fn gate_made(state: &State, request: &Request<'_>, class: &Class) -> Option<Refusal> {
    if state.quota_usage.is_empty() {
        return None;
    }
    let (charge, name) = (request.charge_made(class)?, &class.meta.key.name);
    let is_alone = !class.makes_shared() || request.wants.exclusive;
    let recipe = class.recipe.as_ref().ok()?;
    let by_parameters: Vec<Name> = recipe.sized_by_parameters().cloned().collect();
    let holding = match (is_alone, by_parameters.is_empty()) {
        (true, true) => Holding::Made(name),
        (true, false) => Holding::MadeByParameters(name, &by_parameters),
        (false, _) => Holding::PartOfMade(name),
    };
    gate(state, request, &charge, Some(holding))
}

fn gate(
    state: &State,
    request: &Request<'_>,
    charge: &Charge,
    holding: Option<Holding<'_>>,
) -> Option<Refusal> {
    if !request.profile.asks(Predicate::Quota) {
        return None;
    }
    let overruns = state.quota_usage.overruns(charge, holding.is_some());
    over_limits(&overruns, &request.wants.requests, holding)
}

/// A claim that names its resource waits for that one, whatever else would fit.
fn by_name(state: &State, request: &Request<'_>, name: &Name) -> Decision {
    let wait = Wait::Resource(name.clone());
    let Some(id) = state.find_resource(request.claim.ty, name) else {
        return refuse(missing(name), wait);
    };
    if let Some(refusal) = request::named_refusal(state, request, id) {
        return refuse(refusal, wait);
    }
    let class = request::class_of(state, id);
    match gate_resource(state, request, id) {
        Some(refusal) => refuse(refusal, Wait::ResourceOrQuota(name.clone(), request.namespace().clone())),
        None => Decision::Bind { resource: id, class },
    }
}

fn by_match(state: &State, request: &Request<'_>, memo: &mut Memo) -> Decision {
    let mut refused = refuse::Refused::default();
    if let Some(id) = request::reserved_for(state, request) {
        let class = request::class_of(state, id);
        match gate_resource(state, request, id) {
            Some(refusal) => refused.quota.push(refusal),
            None => return Decision::Bind { resource: id, class },
        }
    }
    let headroom = request.headroom(state);
    for class in alternatives(state, request.claim.ty, &request.wants.class) {
        if let Some(refusal) = gate_quota(state, request, class.as_ref()) {
            refused.quota.push(refusal);
            continue;
        }
        refused.matched = true;
        let class_query = match request.wants.class {
            ClassWant::Any => ClassQuery::Any,
            ClassWant::Absent | ClassWant::Classless | ClassWant::Named(_) => {
                ClassQuery::Exactly(class.as_ref())
            }
        };
        let (namespace, wants) = (request.namespace(), &*request.wants);
        let query = Query { namespace, class: class_query, wants, headroom: headroom.as_ref() };
        for step in steps(&request.profile) {
            match step {
                Step::Find { vacant, shared } => {
                    if let Some(resource) = find(state, request, &query, vacant, shared) {
                        if let Some(refusal) = verify(state, &query, resource) {
                            return Decision::Disagree { resource, refusal: Arc::new(refusal) };
                        }
                        let class = request::class_of(state, resource);
                        return Decision::Bind { resource, class };
                    }
                    refused.quota.extend(over_quota(state, request, &query, vacant, shared));
                }
                Step::Provision => match provision::check(state, request, class.as_ref()) {
                    provision::Verdict::Makes(class) => {
                        return provision::make_or_join(state, request, class);
                    }
                    provision::Verdict::Refuses(predicate, why) => {
                        refused.classes.push((predicate, why));
                    }
                    provision::Verdict::NoClass => {}
                },
            }
        }
    }
    refused.into_decision(state, request, &mut memo.refusals)
}

/// Why the predicates refuse a resource that the index offers for `query`: nothing, unless the index is wrong about it.
/// They decide on the resource itself, not on what the index keeps of it.
pub fn verify(state: &State, query: &Query<'_>, id: ResourceId) -> Option<Refusal> {
    let Some((entry, candidate)) = request::candidate(state, id) else {
        let message = "the index offers a resource that does not exist or cannot be read".to_owned();
        return Some(Refusal::single(Predicate::ResourceName, message));
    };
    let ty = entry.resource.ty;
    let step = steps_of(ty).iter().find(|step| step.refuses(query, &candidate))?;
    let resource = request::describe(entry, candidate);
    let why = step.refusal(query, &resource).unwrap_or_default();
    let message =
        format!("the index offers resource {}, which {} refuses: {why}", resource.name, step.predicate);
    Some(Refusal::single(step.predicate, message))
}

/// The same for a resource that a claim was placed on together with others.
pub fn verify_placement(state: &State, request: &Request<'_>, id: ResourceId) -> Option<Refusal> {
    let classes = alternatives(state, request.claim.ty, &request.wants.class);
    verify(state, &refuse::query(request, &classes), id)
}

/// The refusal of the best fit that quotas alone keep from the claim.
fn over_quota(
    state: &State,
    request: &Request<'_>,
    query: &Query<'_>,
    vacant: bool,
    shared: bool,
) -> Option<Refusal> {
    query.headroom?;
    let found = find(state, request, &Query { headroom: None, ..*query }, vacant, shared)?;
    gate_resource(state, request, found)
}

/// The classes that a claim may be of, in order; an absent one stands for classless resources.
fn alternatives(state: &State, ty: TypeId, want: &ClassWant) -> Vec<Option<Name>> {
    match want {
        ClassWant::Classless | ClassWant::Any => vec![None],
        ClassWant::Named(names) => names.iter().cloned().map(Some).collect(),
        ClassWant::Absent => {
            let default = state.default_class(ty).map(|c| c.meta.key.name.clone());
            std::iter::once(None).chain(default.map(Some)).collect()
        }
    }
}

/// One thing to try.
#[derive(Clone, Copy)]
enum Step {
    Find { vacant: bool, shared: bool },
    Provision,
}

/// What a profile tries, in order. Unless it says otherwise, best fit chooses among resources that
/// no claim holds and shared ones alike, and a new one is made only where none fits.
fn steps(profile: &Profile) -> Vec<Step> {
    if profile.order.is_empty() {
        return vec![Step::Find { vacant: true, shared: true }, Step::Provision];
    }
    let step = |means: &Way| match means {
        Way::Existing => Step::Find { vacant: true, shared: false },
        Way::Share => Step::Find { vacant: false, shared: true },
        Way::Provision => Step::Provision,
    };
    profile.order.iter().map(step).collect()
}

/// Whether a profile lets claims share at all.
fn shares(profile: &Profile) -> bool {
    profile.order.is_empty() || profile.order.contains(&Way::Share)
}

fn find(
    state: &State,
    request: &Request<'_>,
    query: &Query<'_>,
    vacant: bool,
    shared: bool,
) -> Option<ResourceId> {
    let index = state.index_of(request.claim.ty);
    let prefer = Preference { newest: request.profile.prefer_newest };
    if request.profile.scores.is_empty() {
        return index.find_best(query, vacant, shared, prefer).map(|found| found.resource);
    }
    best_scored(&index.candidates(query, vacant, shared), query, &request.profile)
}

/// The candidate with the highest weighted sum of scores; best fit breaks ties.
fn best_scored(candidates: &[Fit<'_>], query: &Query<'_>, profile: &Profile) -> Option<ResourceId> {
    let mut sums = vec![0i64; candidates.len()];
    let mut scores = vec![0i64; candidates.len()];
    for weighted in &profile.scores {
        scores::scorer(&weighted.score).score(query, candidates, &mut scores);
        sums.iter_mut().zip(&scores).for_each(|(sum, score)| *sum += score * i64::from(weighted.weight));
    }
    let prefer = Preference { newest: profile.prefer_newest };
    let best =
        candidates.iter().zip(&sums).min_by(|(a, x), (b, y)| y.cmp(x).then_with(|| a.compare(b, prefer)));
    best.map(|(candidate, _)| candidate.resource)
}
