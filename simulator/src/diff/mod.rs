//! Compares two plans: what differs, and which rule causes it. What-if, comparison and gate use it. Nothing is planned
//! here.

mod cause;
mod document;

pub use document::{
    Cause, ChangedClaim, ChangedResource, ClaimChange, ClaimResult, Difference, ResourceChange,
};

use crate::plan::{Outcome, Plan, Planned, PlannedClaim, PlannedResource};
use std::cmp::Ordering;

/// A plan with its engine, which explains the causes.
#[derive(Clone, Copy)]
pub struct Side<'a> {
    /// The engine and its input.
    pub planned: &'a Planned,
    /// The plan.
    pub plan: &'a Plan,
}

/// Returns the differences from `before` to `after`.
///
/// # Guarantees
/// Omits claims and resources with the same result in both plans; a different message alone is no difference.
pub fn diff(before: Side<'_>, after: Side<'_>) -> Difference {
    let claims = pairs(&before.plan.claims, &after.plan.claims, PlannedClaim::cmp_place);
    let claims = claims.filter_map(|(was, is)| {
        let change = claim_change(was, is)?;
        let some = was.or(is)?;
        Some(ChangedClaim {
            kind: some.kind,
            namespace: some.namespace.clone(),
            name: some.name.clone(),
            change,
            before: was.map(fate),
            after: is.map(fate),
            cause: cause::of_claim(was, is, before, after),
        })
    });
    let resources = pairs(&before.plan.resources, &after.plan.resources, PlannedResource::cmp_place);
    let resources = resources.filter_map(|(was, is)| {
        let change = resource_change(was, is)?;
        let some = was.or(is)?;
        Some(ChangedResource {
            namespace: some.namespace.clone(),
            name: some.name.clone(),
            change,
            before: was.map(|r| r.phase),
            after: is.map(|r| r.phase),
            held: was.map(|r| r.claims.iter().map(ToString::to_string).collect()).unwrap_or_default(),
        })
    });
    Difference { claims: claims.collect(), resources: resources.collect() }
}

fn fate(claim: &PlannedClaim) -> ClaimResult {
    ClaimResult {
        outcome: claim.outcome,
        resource: claim.resource.clone(),
        class: claim.class.clone(),
        message: claim.message.clone(),
    }
}

/// Pairs up the items of two sorted lists.
fn pairs<'a, T>(
    before: &'a [T],
    after: &'a [T],
    order: fn(&T, &T) -> Ordering,
) -> impl Iterator<Item = (Option<&'a T>, Option<&'a T>)> {
    let (mut was, mut is) = (before.iter().peekable(), after.iter().peekable());
    std::iter::from_fn(move || {
        let first = match (was.peek(), is.peek()) {
            (None, None) => return None,
            (Some(_), None) => Ordering::Less,
            (None, Some(_)) => Ordering::Greater,
            (Some(a), Some(b)) => order(a, b),
        };
        Some(match first {
            Ordering::Less => (was.next(), None),
            Ordering::Greater => (None, is.next()),
            Ordering::Equal => (was.next(), is.next()),
        })
    })
}

fn claim_change(was: Option<&PlannedClaim>, is: Option<&PlannedClaim>) -> Option<ClaimChange> {
    let (was, is) = match (was, is) {
        (None, None) => return None,
        (None, Some(_)) => return Some(ClaimChange::Added),
        (Some(_), None) => return Some(ClaimChange::Removed),
        (Some(was), Some(is)) => (was, is),
    };
    if is.leaving {
        return (!was.leaving).then_some(ClaimChange::Leaves);
    }
    match (was.outcome, is.outcome) {
        (Outcome::Bound, Outcome::Bound) => (was.resource != is.resource).then_some(ClaimChange::Moved),
        (_, Outcome::Bound) => Some(ClaimChange::NewlyBound),
        (Outcome::Provision, Outcome::Provision) => {
            (was.class != is.class).then_some(ClaimChange::Provisioned)
        }
        (_, Outcome::Provision) => Some(ClaimChange::Provisioned),
        (Outcome::Lost, Outcome::Lost) => None,
        (_, Outcome::Lost) => Some(ClaimChange::Lost),
        (Outcome::Bound | Outcome::Provision, Outcome::Pending) => Some(ClaimChange::Waits),
        (Outcome::Lost, Outcome::Pending) => Some(ClaimChange::Returns),
        (Outcome::Pending, Outcome::Pending) => was.leaving.then_some(ClaimChange::Returns),
    }
}

fn resource_change(was: Option<&PlannedResource>, is: Option<&PlannedResource>) -> Option<ResourceChange> {
    let (was, is) = match (was, is) {
        (None, None) => return None,
        (None, Some(_)) => return Some(ResourceChange::Added),
        (Some(_), None) => return Some(ResourceChange::Gone),
        (Some(was), Some(is)) => (was, is),
    };
    match (was.reclaim, is.reclaim) {
        (a, b) if a == b => {
            // Changes between Bound and Available follow from the claims.
            let follows = |phase: &str| matches!(phase, "Bound" | "Available");
            (was.phase != is.phase && !(follows(was.phase) && follows(is.phase)))
                .then_some(ResourceChange::Phase)
        }
        (_, Some("Delete")) => Some(ResourceChange::Deleted),
        (_, Some(_)) => Some(ResourceChange::Retained),
        (_, None) => Some(ResourceChange::Spared),
    }
}
