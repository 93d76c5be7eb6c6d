//! How many more of this claim: copies of it are planned after every claim of their priority that waits, and those that
//! are served are counted. Copies ask the same, so the first that is refused is refused for all after it. A claim of lower
//! priority that would be served without them and is not with them is named: its place is not free.

use super::{Edit, EditError, Target};
use crate::plan::{API_VERSION, Options, Outcome, Plan, Planned, PlannedClaim, PlannedReason};
use conductor::model::{Kind, Object};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many more of a claim would be served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fit {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Fit`.
    pub kind: &'static str,
    /// The claim, as `namespace/name`.
    pub claim: String,
    /// How many were tried.
    pub tried: usize,
    /// How many of them would be served.
    pub fits: usize,
    /// How many of them would be served if no other claim had to wait for it.
    pub free: usize,
    /// Claims that would be served without them, and wait with them.
    pub displaced: Vec<Displaced>,
    /// Whether all that were tried would be, so that there may be room for more.
    pub at_least: bool,
    /// How many existing resources would take them.
    pub bound: usize,
    /// How many resources would be made for them.
    pub provision: usize,
    /// Where they would go, by resource, and by class where one would be made.
    pub places: Vec<FitPlace>,
    /// What the first that is not served is told.
    pub limit: Option<Limit>,
}

/// One place that takes copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FitPlace {
    /// The resource that exists.
    pub resource: Option<Arc<str>>,
    /// The class that resources would be made from.
    pub class: Option<Arc<str>>,
    /// How many it takes.
    pub claims: usize,
}

/// A claim that waits for the sake of copies, which come before it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Displaced {
    /// The claim, as `namespace/name`.
    pub claim: String,
    /// The resource that it would have got.
    pub resource: Option<Arc<str>>,
    /// The class from which one would have been made for it.
    pub class: Option<Arc<str>>,
}

/// What stands in the way of one more.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// In one sentence.
    pub message: Arc<str>,
    /// Predicate by predicate.
    pub reasons: Arc<[PlannedReason]>,
}

/// Tries `tried` more claims like `like`.
///
/// # Errors
/// There is no such claim.
pub fn fit(objects: Vec<Object>, like: &Target, tried: usize, options: &Options) -> Result<Fit, EditError> {
    let known = objects.len();
    let lowest = lowest_priority(&objects);
    // Copies of the lowest priority come after every other claim, and take nothing from one.
    let comes_last = priority(&objects[like.find(&objects)?]) <= lowest;
    let before = (!comes_last).then(|| objects.clone());
    let mut with_copies = objects;
    Edit::Copies { like: like.clone(), count: tried }.make(&mut with_copies)?;
    let copies: BTreeSet<String> =
        with_copies[known..].iter().filter_map(|o| o.metadata.name.clone()).collect();
    let plan = Planned::new(with_copies, options).plan();
    let displaced = match &before {
        Some(before) => displaced(&Planned::new(before.clone(), options).plan(), &plan),
        None => Vec::new(),
    };
    let (mut resources, mut classes): (BTreeMap<Arc<str>, usize>, BTreeMap<Arc<str>, usize>) =
        Default::default();
    let mut limit = None;
    let is_copy = |name: &str| copies.contains(name);
    let of_namespace = plan.claims.iter().filter(|c| c.namespace == like.key.namespace);
    for claim in of_namespace.filter(|c| is_copy(&c.name)) {
        match (claim.outcome, &claim.resource, &claim.class) {
            (Outcome::Bound, Some(resource), _) => *resources.entry(resource.name.clone()).or_default() += 1,
            (Outcome::Provision, _, Some(class)) => *classes.entry(class.clone()).or_default() += 1,
            _ => drop(limit.get_or_insert_with(|| Limit {
                message: claim.message.clone(),
                reasons: claim.reasons.clone(),
            })),
        }
    }
    let (bound, provision): (usize, usize) = (resources.values().sum(), classes.values().sum());
    let free = match before.filter(|_| !displaced.is_empty()) {
        None => bound + provision,
        Some(mut with_copies) => {
            Edit::Copies { like: like.clone(), count: tried }.make(&mut with_copies)?;
            for copy in &mut with_copies[known..] {
                copy.body["spec"]["priority"] = lowest.into();
            }
            let plan = Planned::new(with_copies, options).plan();
            let of_namespace = plan.claims.iter().filter(|c| c.namespace == like.key.namespace);
            let free = of_namespace.filter(|c| is_copy(&c.name) && is_served(c)).count();
            free.min(bound + provision)
        }
    };
    let made =
        classes.into_iter().map(|(name, claims)| FitPlace { resource: None, class: Some(name), claims });
    let taken =
        resources.into_iter().map(|(name, claims)| FitPlace { resource: Some(name), class: None, claims });
    Ok(Fit {
        api_version: API_VERSION,
        kind: "Fit",
        claim: like.key.to_string(),
        tried,
        fits: bound + provision,
        free,
        displaced,
        at_least: bound + provision == tried,
        bound,
        provision,
        places: taken.chain(made).collect(),
        limit,
    })
}

fn is_served(claim: &PlannedClaim) -> bool {
    matches!(claim.outcome, Outcome::Bound | Outcome::Provision)
}

/// Claims that are served in one plan and not in the other.
fn displaced(without: &Plan, with: &Plan) -> Vec<Displaced> {
    let place = |claim: &PlannedClaim| (claim.kind, claim.namespace.clone(), claim.name.clone());
    let waiting: BTreeSet<_> = with.claims.iter().filter(|c| !is_served(c)).map(place).collect();
    let lose = without.claims.iter().filter(|c| is_served(c) && waiting.contains(&place(c)));
    let displaced = lose.map(|claim| Displaced {
        claim: format!("{}/{}", claim.namespace, claim.name),
        resource: claim.resource.as_ref().map(|resource| resource.name.clone()),
        class: claim.class.clone().filter(|_| claim.resource.is_none()),
    });
    displaced.collect()
}

fn priority(claim: &Object) -> i64 {
    claim.body.pointer("/spec/priority").and_then(Value::as_i64).unwrap_or(0)
}

/// The lowest priority of all claims.
fn lowest_priority(objects: &[Object]) -> i64 {
    objects.iter().filter(|o| matches!(o.kind, Kind::Claim(_))).map(priority).min().unwrap_or(0)
}
