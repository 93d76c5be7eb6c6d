//! The rule that changed a claim's outcome. The plan in which the claim was refused names the predicate that refuses the
//! resource it has in the other plan; if none refuses, the claim's preference changed. Claims scheduled later do not
//! count: of two claims that swap resources, one prefers and the other is displaced.

use super::{Cause, Side};
use crate::plan::{Outcome, PlannedClaim};

/// Returns the cause of a claim's change.
pub(super) fn of_claim(
    was: Option<&PlannedClaim>,
    is: Option<&PlannedClaim>,
    before: Side<'_>,
    after: Side<'_>,
) -> Cause {
    match (was, is) {
        (_, None) => Cause::new("Gone", "the claim no longer exists"),
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
            None => Cause::new("Gone", format!("{} no longer exists", old.name)),
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
            Some(lacks) => first(lacks, "before: ").unwrap_or_else(|| former_refusal(was)),
        },
        (None, None, Outcome::Provision) => former_refusal(was),
        (None, None, Outcome::Pending | Outcome::Bound) => match refusal(is) {
            namespace_rule if matches!(namespace_rule.rule.as_str(), "Quota" | "Limits") => namespace_rule,
            // The class no longer provisions; its refusal is the last part of the message.
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

/// The refusal that no longer applies.
fn former_refusal(was: &PlannedClaim) -> Cause {
    let Cause { rule, message } = refusal(was);
    Cause { rule, message: format!("before: {message}") }
}

/// Why the claim waits: Quota or Limits if one refuses it, else the predicate that refuses most, else its class.
fn refusal(claim: &PlannedClaim) -> Cause {
    let namespace_rule = claim.reasons.iter().find(|r| matches!(r.predicate, "Quota" | "Limits"));
    match namespace_rule.or(claim.reasons.first()) {
        Some(reason) if namespace_rule.is_some() => Cause::new(reason.predicate, &*reason.message),
        Some(reason) => Cause::new(reason.predicate, &*claim.message),
        None => Cause::new("Class", &*claim.message),
    }
}
