//! Sharing: which namespaces may have a resource, whether a slot is left, and whether the claim tolerates others.
//! Capacity decides separately.

use super::{Actor, Case, Check, Definition, Key, Occupants, Recorded, Shape, resources};

pub(super) const SHARING: Definition = Definition {
    about: "The resource is open to the claim's namespace and has a slot left, and an exclusive claim has it alone.",
    actor: Actor::Administrator,
    recorded: &[
        Recorded::claim("exclusive", Shape::Leaf),
        Recorded::resource(
            "sharing",
            Shape::Fields(&[("maxClaims", Shape::Leaf), ("allowedNamespaces", Shape::NAMES)]),
        ),
    ],
    // What others hold is never taken from them.
    is_skipped_for: |_| false,
    checks: &[ACCESS, SLOTS],
    summary: |query, _, count| {
        let are = resources(count, "is", "are");
        format!("{are} full, held by others, or not open to namespace {}", query.namespace)
    },
    ..Definition::BASE
};

/// Whether the resource is open to the claim's namespace.
const ACCESS: Check = Check {
    holders_after_remedy: in_company,
    ..Check::new(
        Key::Namespaces(|namespace, open_to| open_to.is_empty() || open_to.iter().any(|n| **n == *namespace)),
        |case| format!("it is not open to namespace {}", case.query.namespace),
        |case| format!("add {} to the allowedNamespaces of {}", case.query.namespace, case.resource.name),
    )
};

/// Whether a shared resource has room for one more, and the claim for others.
const SLOTS: Check = Check {
    apply_remedy: |wants, case| {
        wants.exclusive &= is_full(case);
        !is_full(case)
    },
    holders_after_remedy: in_company,
    ..Check::new(
        Key::Standing {
            withholds: |occupancy| occupancy.holders >= occupancy.offer.max_claims as usize,
            joins: |wants| !wants.exclusive,
        },
        |case| match is_full(case) {
            true => format!("all {} of its slots are taken", case.resource.candidate.offer.max_claims),
            false => "others hold it, and the claim is exclusive".to_owned(),
        },
        |case| match is_full(case) {
            true => {
                let slots = case.resource.candidate.offer.max_claims;
                format!("raise sharing.maxClaims of {} above {slots}", case.resource.name)
            }
            false => "drop exclusive from the claim".to_owned(),
        },
    )
};

fn is_full(case: &Case<'_>) -> bool {
    case.resource.candidate.standing != super::Standing::Shared
}

fn in_company(occupants: &Occupants<'_>, _: &Case<'_>) -> Option<usize> {
    occupants.are_accepted().then_some(occupants.count)
}

#[cfg(test)]
mod tests {
    use crate::predicates::Predicate;
    use crate::predicates::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn a_resource_is_open_to_all_or_to_the_listed_namespaces() {
        check(Predicate::Sharing, json!({}), &resource(json!({"engine": "mysql"})), None);
        let listed =
            |names: &[&str]| resource(json!({"engine": "mysql", "sharing": {"allowedNamespaces": names}}));
        check(Predicate::Sharing, json!({}), &listed(&["team-a", "x"]), None);
        check(Predicate::Sharing, json!({}), &listed(&["x"]), Some("it is not open to namespace team-a"));
    }

    #[test]
    fn an_exclusive_claim_refuses_a_resource_that_others_hold() {
        let mut db = resource(json!({"engine": "mysql", "sharing": {"maxClaims": 3}}));
        db.hold("team-b", "one");
        check(Predicate::Sharing, json!({}), &db, None);
        let refusal = "others hold it, and the claim is exclusive";
        check(Predicate::Sharing, json!({"exclusive": true}), &db, Some(refusal));
        db.hold("team-b", "two");
        db.hold("team-b", "three");
        check(Predicate::Sharing, json!({}), &db, Some("all 3 of its slots are taken"));
    }
}
