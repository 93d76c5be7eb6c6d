//! How many more claims like this one fit: plans copies of it, after all waiting claims of the same priority, and counts
//! those that are served. Copies have equal requests, so when one is refused, so are all after it. Claims of lower
//! priority that lose their resource to copies are listed as displaced.

use super::{Edit, EditError, Target};
use crate::plan::{API_VERSION, Options, Outcome, Plan, Planned, PlannedClaim, PlannedReason};
use conductor::model::{Kind, Object};
use serde::Serialize;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// How many more claims like one would be served.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fit {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub claim: String,
    /// Number of copies tried.
    pub tried: usize,
    /// How many of them would be served.
    pub fits: usize,
    /// How many of them would be served without displacing another claim.
    pub free: usize,
    /// Claims that are served without the copies and wait with them.
    pub displaced: Vec<Displaced>,
    /// Whether all copies would be served, so that even more may fit.
    pub at_least: bool,
    /// How many of them get existing resources.
    pub bound: usize,
    /// For how many of them a class provisions a resource.
    pub provision: usize,
    /// Where they go, by resource or class.
    pub places: Vec<FitPlace>,
    /// Why the first of the others is refused.
    pub limit: Option<Limit>,
}

/// A resource or class that serves copies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct FitPlace {
    /// The existing resource.
    pub resource: Option<Arc<str>>,
    /// The class that provisions resources.
    pub class: Option<Arc<str>>,
    /// How many copies it serves.
    pub claims: usize,
}

/// A claim that waits because copies come before it.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Displaced {
    pub claim: String,
    /// The resource that it loses.
    pub resource: Option<Arc<str>>,
    /// The class that would have provisioned one for it.
    pub class: Option<Arc<str>>,
}

/// Why no further copy is served.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Limit {
    /// The refusal in a sentence.
    pub message: Arc<str>,
    /// The refusal by predicate.
    pub reasons: Arc<[PlannedReason]>,
}

/// Plans `tried` copies of a claim.
///
/// # Errors
/// There is no such claim, or there are too many copies.
pub fn fit(objects: Vec<Object>, like: &Target, tried: usize, options: &Options) -> Result<Fit, EditError> {
    let known = objects.len();
    let lowest = lowest_priority(&objects);
    // Copies of the lowest priority come last and displace no claim.
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

/// Claims that are served in one plan but not in the other.
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

fn lowest_priority(objects: &[Object]) -> i64 {
    objects.iter().filter(|o| matches!(o.kind, Kind::Claim(_))).map(priority).min().unwrap_or(0)
}
