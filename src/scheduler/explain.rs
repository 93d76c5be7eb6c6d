//! Why not, in full: counts per predicate, the candidates that came nearest, and the smallest changes that
//! would serve the claim. Asked by people, not by decisions: each answer is a few searches of the index,
//! one per question taken out of the ask.

use super::request::{is_asked_of_kept, seen, seen_as_own};
use super::trial::{asking, name_of, remedied, served, with_more_quota, within_limits};
use super::{Memo, Request, alternatives, refuse, schedule_one};
use crate::cache::{Ask, Preference, ResourceId, State};
use crate::framework::{Asked, Filter, Refusal, Seen};
use crate::model::{ClassWant, FieldWant, Name, Predicate, Wants};
use crate::plugins;

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
    /// The change, in words.
    pub change: String,
    /// The resource that it would be bound to; absent where one would be made.
    pub binds: Option<Name>,
}

/// How many near misses and changes are told.
const TOLD_MAX: usize = 5;

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
    explained.near_misses.truncate(TOLD_MAX);
    explained.nearest.truncate(TOLD_MAX);
    Some(explained)
}

/// Everything that the resource of a name lacks for `request`, predicate by predicate: nothing where it would
/// serve, absent where there is no such resource that can be read.
pub fn lacks(state: &State, request: &Request<'_>, name: &Name) -> Option<Vec<(Predicate, String)>> {
    let id = state.find_resource(request.claim.ty, name)?;
    let classes = alternatives(state, request.claim.ty, &request.wants.class);
    let ask = refuse::ask(request, &classes);
    inspect(state, request, &ask, id).map(|(miss, _)| miss.lacks)
}

/// A claim whose resource is named: what that resource lacks, and what would mend it.
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
    let ask = refuse::ask(request, &classes);
    let Some((miss, nearest)) = inspect(state, request, &ask, id) else { return };
    explained.nearest.extend(nearest);
    explained.near_misses.push(miss);
}

fn without_name(request: &Request<'_>) -> crate::model::Claim {
    crate::model::Claim { resource_name: None, ..request.claim.clone() }
}

fn explain_match(state: &State, request: &Request<'_>, explained: &mut Explanation) {
    let ty = request.claim.ty;
    let classes = alternatives(state, ty, &request.wants.class);
    let asked = Asked {
        namespace: request.namespace().clone(),
        classes: (request.wants.class != ClassWant::Any).then(|| classes.clone()),
        wants: (*request.wants).clone(),
    };
    let found = state.index_of(ty).find_best(&asked.ask(), true, true, prefer(request)).map(|f| f.resource);
    explain_gates(state, request, explained);
    if found.is_some() {
        return;
    }
    let mut looked_at: Vec<ResourceId> = state.reserved_for(ty, &request.claim.meta.key).collect();
    // Not in the order in which they came to be known: the same state is always told in the same words.
    looked_at.sort_by_cached_key(|id| name_of(state, *id));
    for (miss, nearest) in looked_at.iter().filter_map(|id| inspect_kept(state, request, &asked.ask(), *id)) {
        explained.nearest.extend(nearest);
        explained.near_misses.push(miss);
    }
    let mut near: Vec<(Nearest, Predicate)> = Vec::new();
    for filter in plugins::filters(ty) {
        for id in nearest_past(state, request, &asked, &*filter).into_iter().flatten() {
            if looked_at.contains(&id) {
                continue;
            }
            looked_at.push(id);
            let Some((miss, nearest)) = inspect(state, request, &asked.ask(), id) else { continue };
            near.extend(nearest.map(|nearest| (nearest, filter.predicate())));
            explained.near_misses.push(miss);
        }
    }
    near.sort_by_key(|(_, predicate)| {
        (!plugins::is_authors_business(*predicate), *predicate == Predicate::Engine)
    });
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

/// The resource that would serve if `filter` did not ask, the one that needs the least change of its kind. Where sharing
/// is in the way there are two: one that is taken, one that is not open to the claim's namespace.
fn nearest_past(
    state: &State,
    request: &Request<'_>,
    asked: &Asked,
    filter: &dyn Filter,
) -> [Option<ResourceId>; 2] {
    let index = state.index_of(request.claim.ty);
    let mut relaxed = asked.clone();
    filter.relax(&mut relaxed);
    let candidates = match filter.predicate() {
        Predicate::Phase | Predicate::Cordoned | Predicate::Reserved => {
            return [index.find_withheld(&asked.ask(), filter.predicate()), None];
        }
        Predicate::Sharing => {
            let ask = asked.ask();
            return [index.find_withheld(&ask, Predicate::Sharing), index.find_closed(&ask, prefer(request))];
        }
        _ => index.candidates(&relaxed.ask(), true, true),
    };
    let best = match filter.predicate() {
        Predicate::Capacity => candidates.iter().min_by_key(|c| {
            let lacking = c.free().find_lacking(&request.wants.requests);
            (lacking.map(|(_, have, want)| want.saturating_sub(have)), c.name.clone())
        }),
        Predicate::Version => nearest_version(request, &candidates),
        _ => candidates.iter().min_by(|a, b| a.compare(b, prefer(request))),
    };
    [best.map(|c| c.resource), None]
}

/// The candidate whose version lies nearest to the claim's range, the newer side first.
fn nearest_version<'c, 'a>(
    request: &Request<'_>,
    candidates: &'c [crate::cache::Candidate<'a>],
) -> Option<&'c crate::cache::Candidate<'a>> {
    let at = request.claim.ty.rules().version_field()?;
    let FieldWant::Range(range) = &request.wants.fields[at] else { return None };
    let mut versions: Vec<_> = candidates.iter().filter_map(|c| c.version).collect();
    versions.sort();
    versions.dedup();
    let distance = |c: &&crate::cache::Candidate<'_>| {
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
    let told = candidates.iter().filter(|c| c.version.is_some());
    told.min_by(|a, b| distance(a).cmp(&distance(b)).then_with(|| a.compare(b, prefer(request))))
}

/// Everything that one resource lacks; where it is one thing, the change that would mend it and serve the claim.
fn inspect(
    state: &State,
    request: &Request<'_>,
    ask: &Ask<'_>,
    id: ResourceId,
) -> Option<(NearMiss, Option<Nearest>)> {
    let entry = state.resource(id)?;
    let offer = entry.resource.offer.as_ref().ok()?;
    inspect_seen(state, request, ask, (id, &seen(state, entry, offer)), |_| true)
}

/// The same of a resource that is kept for the claim, and is asked less.
fn inspect_kept(
    state: &State,
    request: &Request<'_>,
    ask: &Ask<'_>,
    id: ResourceId,
) -> Option<(NearMiss, Option<Nearest>)> {
    let entry = state.resource(id)?;
    let offer = entry.resource.offer.as_ref().ok().filter(|_| !entry.resource.meta.deleting)?;
    let seen = seen_as_own(state, request, entry, offer, false);
    inspect_seen(state, request, ask, (id, &seen), is_asked_of_kept)
}

fn inspect_seen(
    state: &State,
    request: &Request<'_>,
    ask: &Ask<'_>,
    (id, seen): (ResourceId, &Seen<'_>),
    asks: impl Fn(Predicate) -> bool,
) -> Option<(NearMiss, Option<Nearest>)> {
    let filters = plugins::filters(request.claim.ty);
    let filters = filters.iter().filter(|f| asks(f.predicate()));
    let lacking: Vec<_> = filters.filter_map(|f| Some((f, f.lack(ask, seen)?))).collect();
    let nearest = match lacking.as_slice() {
        [(only, _)] => remedied(state, request, id, &***only, seen)
            .map(|binds| Nearest { change: only.remedy(ask, seen), binds }),
        _ => None,
    };
    let lacks = lacking.into_iter().map(|(filter, lack)| (filter.predicate(), lack)).collect();
    Some((NearMiss { resource: seen.name.clone(), lacks }, nearest))
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
