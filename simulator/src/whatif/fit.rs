//! How many more of this claim: copies of it are planned after everybody who waits, and those that are served
//! are counted. Copies ask the same, so the first that is refused is refused for all after it.

use super::{Edit, EditError, Target};
use crate::plan::{API_VERSION, Options, Outcome, Planned, PlannedReason};
use conductor::model::Object;
use serde::Serialize;
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
    let mut with_copies = objects;
    let known = with_copies.len();
    Edit::Copies { like: like.clone(), count: tried }.make(&mut with_copies)?;
    let copies: BTreeSet<String> =
        with_copies[known..].iter().filter_map(|o| o.metadata.name.clone()).collect();
    let plan = Planned::new(with_copies, options).plan();
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
    let (bound, provision) = (resources.values().sum(), classes.values().sum());
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
        at_least: bound + provision == tried,
        bound,
        provision,
        places: taken.chain(made).collect(),
        limit,
    })
}
