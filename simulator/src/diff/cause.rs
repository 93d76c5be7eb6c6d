//! The rule that flipped a claim: asked of the side on which it was refused, about the resource that it has on
//! the other. Only the scheduler's own predicates answer; where none refuses, it was a preference. Claims that came after
//! it stood in nobody's way: of two that change places, one prefers, and the other is displaced.

use super::{Cause, Side};
use crate::plan::{Outcome, PlannedClaim};

/// Why a claim fares differently.
pub(super) fn of_claim(
    was: Option<&PlannedClaim>,
    is: Option<&PlannedClaim>,
    before: Side<'_>,
    after: Side<'_>,
) -> Cause {
    match (was, is) {
        (_, None) => Cause::new("Gone", "the claim is no longer there"),
        (None, Some(is)) => match is.outcome {
            Outcome::Pending | Outcome::Lost => refusal(is),
            Outcome::Bound | Outcome::Provision => Cause::new("Added", &*is.message),
        },
        (Some(_), Some(is)) if is.leaving => Cause::new("Deleted", &*is.message),
        (Some(was), Some(is)) => flipped(was, is, before, after),
    }
}

fn flipped(was: &PlannedClaim, is: &PlannedClaim, before: Side<'_>, after: Side<'_>) -> Cause {
    match (&was.resource, &is.resource, is.outcome) {
        (_, _, Outcome::Lost) => Cause::new("Gone", &*is.message),
        (Some(_), Some(new), _) if after.planned.names_resource(place(is)) => {
            Cause::new("ResourceName", format!("the claim names {}", new.name))
        }
        (Some(old), _, _) => match after.planned.lacks(place(is), &old.name) {
            None => Cause::new("Gone", format!("{} is no longer there", old.name)),
            Some(lacks) => first(lacks, "").unwrap_or_else(|| match (&is.resource, is.outcome) {
                (Some(new), _) => {
                    Cause::new("Preference", format!("{} fits too; {} is preferred", old.name, new.name))
                }
                (None, Outcome::Pending) => refusal(is),
                (None, _) => Cause::new("Preference", &*is.message),
            }),
        },
        (None, Some(new), _) => match before.planned.lacks(place(was), &new.name) {
            None => Cause::new("Added", format!("{} is new", new.name)),
            Some(lacks) => first(lacks, "before: ").unwrap_or_else(|| mended(was)),
        },
        (None, None, Outcome::Provision) => mended(was),
        (None, None, Outcome::Pending | Outcome::Bound) => match refusal(is) {
            gate if matches!(gate.rule.as_str(), "Quota" | "Limits") => gate,
            // A class that would have made one makes none: what it says of that comes last.
            _ => Cause::new("Class", is.message.rsplit("; ").next().unwrap_or(&is.message)),
        },
    }
}

fn place(claim: &PlannedClaim) -> (&str, &str, &str) {
    (claim.kind, &claim.namespace, &claim.name)
}

fn first(lacks: Vec<(&'static str, String)>, when: &str) -> Option<Cause> {
    let (predicate, message) = lacks.into_iter().next()?;
    Some(Cause::new(predicate, format!("{when}{message}")))
}

/// What the claim was told, which no longer holds.
fn mended(was: &PlannedClaim) -> Cause {
    let Cause { rule, message } = refusal(was);
    Cause { rule, message: format!("before: {message}") }
}

/// What the claim is told: the first gate that refuses it, else the predicate that refused most, else its class.
fn refusal(claim: &PlannedClaim) -> Cause {
    let gate = claim.reasons.iter().find(|r| matches!(r.predicate, "Quota" | "Limits"));
    match gate.or(claim.reasons.first()) {
        Some(reason) if gate.is_some() => Cause::new(reason.predicate, &*reason.message),
        Some(reason) => Cause::new(reason.predicate, &*claim.message),
        None => Cause::new("Class", &*claim.message),
    }
}
