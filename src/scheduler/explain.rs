//! Why not, in full: counts per predicate, the candidates that came nearest, and the smallest changes that
//! would serve the claim. RelaxedQuery by people, not by decisions: each answer is a few searches of the index,
//! one per question taken out of the ask.

use super::remedy_check::{asking, name_of, remedied, served, with_more_quota, within_limits};
use super::request::{applies_to_kept, candidate, describe, describe_as_own};
use super::{Memo, Request, alternatives, refuse, schedule_one};
use crate::cache::{Fit, Preference, ResourceId, State};
use crate::model::{ClassWant, FieldWant, Name, Wants};
use crate::predicates::{self, Actor, Described, Key, Predicate, Query, Refusal, RelaxedQuery, Step};

/// Everything there is to say about a claim that is not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Explanation {
    /// Why it is refused.
    pub refusal: Refusal,
    /// The resources that lack least, best first.
    pub near_misses: Vec<NearMiss>,
    /// Changes of which each alone would serve it, the claim's own first.
    pub nearest: Vec<Nearest>,
}

/// A resource that almost fits.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NearMiss {
    /// Its name.
    pub resource: Name,
    /// What it lacks, predicate by predicate.
    pub lacks: Vec<(Predicate, String)>,
}

/// A change that would serve the claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Nearest {
    /// The change.
    pub change: String,
    /// The resource that it would be bound to; absent where one would be made.
    pub binds: Option<Name>,
}

/// How many near misses and changes are shown.
const SHOWN_MAX: usize = 5;

/// Explains why `request` is refused, or nothing where it is not.
pub fn explain(state: &State, request: &Request<'_>) -> Option<Explanation> {
    let super::Decision::Refuse { refusal, .. } = schedule_one(state, request, &mut Memo::default()) else {
        return None;
    };
    let mut explained =
        Explanation { refusal: (*refusal).clone(), near_misses: Vec::new(), nearest: Vec::new() };
    match &request.claim.resource_name {
        Some(name) => explain_named(state, request, name, &mut explained),
        None => explain_match(state, request, &mut explained),
    }
    explained.near_misses.truncate(SHOWN_MAX);
    explained.nearest.truncate(SHOWN_MAX);
    Some(explained)
}

/// Everything that the resource of a name lacks for `request`, predicate by predicate: nothing where it would
/// serve, absent where there is no such resource that can be read.
pub fn lacks(state: &State, request: &Request<'_>, name: &Name) -> Option<Vec<(Predicate, String)>> {
    let id = state.find_resource(request.claim.ty, name)?;
    let classes = alternatives(state, request.claim.ty, &request.wants.class);
    let query = refuse::query(request, &classes);
    inspect(state, request, &query, id).map(|(miss, _)| miss.lacks)
}

/// A claim whose resource is named: what that resource lacks, and what would fix it.
fn explain_named(state: &State, request: &Request<'_>, name: &Name, explained: &mut Explanation) {
    let Some(id) = state.find_resource(request.claim.ty, name) else {
        let free = Request { claim: &without_name(request), ..request.clone() };
        if let Some(binds) = served(state, &free) {
            let change = "drop resourceName from the claim".to_owned();
            explained.nearest.push(Nearest { change, binds });
        }
        return;
    };
    explain_gates(state, request, explained);
    let classes = alternatives(state, request.claim.ty, &request.wants.class);
    let query = refuse::query(request, &classes);
    let Some((miss, nearest)) = inspect(state, request, &query, id) else { return };
    explained.nearest.extend(nearest);
    explained.near_misses.push(miss);
}

fn without_name(request: &Request<'_>) -> crate::model::Claim {
    crate::model::Claim { resource_name: None, ..request.claim.clone() }
}

fn explain_match(state: &State, request: &Request<'_>, explained: &mut Explanation) {
    let ty = request.claim.ty;
    let classes = alternatives(state, ty, &request.wants.class);
    let asked = RelaxedQuery {
        namespace: request.namespace().clone(),
        classes: (request.wants.class != ClassWant::Any).then(|| classes.clone()),
        wants: (*request.wants).clone(),
    };
    let found = state.index_of(ty).find_best(&asked.query(), true, true, prefer(request)).map(|f| f.resource);
    explain_gates(state, request, explained);
    if found.is_some() {
        return;
    }
    let mut inspected: Vec<ResourceId> = state.reserved_for(ty, &request.claim.meta.key).collect();
    // Not in the order in which they became known: the same state always gives the same message.
    inspected.sort_by_cached_key(|id| name_of(state, *id));
    for (miss, nearest) in inspected.iter().filter_map(|id| inspect_kept(state, request, &asked.query(), *id))
    {
        explained.nearest.extend(nearest);
        explained.near_misses.push(miss);
    }
    let mut near: Vec<(Nearest, Actor)> = Vec::new();
    for step in predicates::steps(ty) {
        for id in nearest_past(state, request, &asked, step).into_iter().flatten() {
            if inspected.contains(&id) {
                continue;
            }
            inspected.push(id);
            let Some((miss, nearest)) = inspect(state, request, &asked.query(), id) else { continue };
            near.extend(nearest.map(|nearest| (nearest, step.definition.actor)));
            explained.near_misses.push(miss);
        }
    }
    near.sort_by_key(|(_, actor)| *actor);
    explained.nearest.extend(near.into_iter().map(|(nearest, _)| nearest));
    explain_classes(state, request, &classes, explained);
}

fn prefer(request: &Request<'_>) -> Preference {
    Preference { newest: request.profile.prefer_newest }
}

/// What limits and quotas stand in the way, where they do.
fn explain_gates(state: &State, request: &Request<'_>, explained: &mut Explanation) {
    explained.nearest.extend(within_limits(state, request));
    explained.nearest.extend(with_more_quota(state, request));
}

/// The resource that would serve without this check, the one that needs the least change of its kind. Where namespaces
/// are in the way there are two: one that is taken, one that is not open to the claim's namespace.
fn nearest_past(
    state: &State,
    request: &Request<'_>,
    asked: &RelaxedQuery,
    step: &Step,
) -> [Option<ResourceId>; 2] {
    let index = state.index_of(request.claim.ty);
    let withheld = || index.find_withheld(&asked.query(), step.predicate);
    let mut relaxed = asked.clone();
    step.relax(&mut relaxed);
    let fits = |relaxed: &RelaxedQuery| index.candidates(&relaxed.query(), true, true).into_iter();
    let best = match step.check.key {
        Key::Standing { .. } => withheld(),
        Key::Namespaces(_) => return [withheld(), index.find_closed(&asked.query(), prefer(request))],
        Key::Capacity(_) => {
            let nearest = fits(&relaxed).min_by_key(|fit| {
                let lacking = fit.free().find_lacking(&request.wants.requests);
                (lacking.map(|(_, have, want)| want.saturating_sub(have)), fit.name.clone())
            });
            nearest.map(|fit| fit.resource)
        }
        Key::Range { .. } => {
            let fits: Vec<Fit<'_>> = fits(&relaxed).collect();
            nearest_version(request, &fits).map(|fit| fit.resource)
        }
        Key::Class(_) | Key::Group { .. } | Key::Attribute(_) | Key::Labels(_) => {
            fits(&relaxed).min_by(|a, b| a.compare(b, prefer(request))).map(|fit| fit.resource)
        }
    };
    [best, None]
}

/// The candidate whose version lies nearest to the claim's range, the newer side first.
fn nearest_version<'c, 'a>(request: &Request<'_>, candidates: &'c [Fit<'a>]) -> Option<&'c Fit<'a>> {
    let at = request.claim.ty.rules().version_field()?;
    let FieldWant::Range(range) = &request.wants.fields[at] else { return None };
    let mut versions: Vec<_> = candidates.iter().filter_map(|c| c.version).collect();
    versions.sort();
    versions.dedup();
    let distance = |c: &&Fit<'_>| {
        let version = c.version?;
        let place = versions.binary_search(&version).ok()?;
        let above = range.is_below(version);
        // Versions on the near side of this one, towards the range.
        let between = if above {
            versions[..place].iter().filter(|v| range.is_below(v)).count()
        } else {
            versions[place + 1..].iter().filter(|v| !range.is_below(v)).count()
        };
        Some((between, !above))
    };
    let known = candidates.iter().filter(|c| c.version.is_some());
    known.min_by(|a, b| distance(a).cmp(&distance(b)).then_with(|| a.compare(b, prefer(request))))
}

/// Everything that one resource lacks; where it is one thing, the change that would fix it and serve the claim.
fn inspect(
    state: &State,
    request: &Request<'_>,
    query: &Query<'_>,
    id: ResourceId,
) -> Option<(NearMiss, Option<Nearest>)> {
    let (entry, candidate) = candidate(state, id)?;
    Some(inspect_described(state, request, query, (id, &describe(entry, candidate)), |_| true))
}

/// The same of a resource that is kept for the claim, to which fewer checks apply.
fn inspect_kept(
    state: &State,
    request: &Request<'_>,
    query: &Query<'_>,
    id: ResourceId,
) -> Option<(NearMiss, Option<Nearest>)> {
    let entry = state.resource(id)?;
    let offer = entry.resource.offer.as_ref().ok().filter(|_| !entry.resource.meta.deleting)?;
    let resource = describe_as_own(state, request, entry, offer, false);
    Some(inspect_described(state, request, query, (id, &resource), applies_to_kept))
}

fn inspect_described(
    state: &State,
    request: &Request<'_>,
    query: &Query<'_>,
    (id, resource): (ResourceId, &Described<'_>),
    applies: impl Fn(&Step) -> bool,
) -> (NearMiss, Option<Nearest>) {
    let steps = predicates::steps(request.claim.ty).iter().filter(|step| applies(step));
    let refusing: Vec<_> = steps.filter_map(|step| Some((step, step.refusal(query, resource)?))).collect();
    let nearest = match refusing.as_slice() {
        [(only, _)] => remedied(state, request, (query, id, resource), only)
            .map(|binds| Nearest { change: only.remedy(query, resource), binds }),
        _ => None,
    };
    let lacks = refusing.into_iter().map(|(step, refusal)| (step.predicate, refusal)).collect();
    (NearMiss { resource: resource.name.clone(), lacks }, nearest)
}

/// The classes that would make a resource if the claim were of them.
fn explain_classes(
    state: &State,
    request: &Request<'_>,
    asked: &[Option<Name>],
    explained: &mut Explanation,
) {
    let others = state.classes.values().filter(|c| c.ty == request.claim.ty);
    for class in others.map(|c| &c.meta.key.name).filter(|name| !asked.contains(&Some((*name).clone()))) {
        let wants = Wants { class: ClassWant::Named([class.clone()].into()), ..(*request.wants).clone() };
        if served(state, &asking(request, wants)) == Some(None) {
            let change = format!("set the claim's class to {class}, which makes a new one");
            explained.nearest.push(Nearest { change, binds: None });
        }
    }
}
