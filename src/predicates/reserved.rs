//! Reserved: the resource is held by one claim, or kept for one by an administrator.

use super::{Actor, Check, Definition, Key, Occupancy, Recorded, Shape, resources};

pub(super) const RESERVED: Definition = Definition {
    about: "No other claim holds the resource for itself, and no administrator keeps it for another claim.",
    actor: Actor::Administrator,
    recorded: &[
        Recorded::claim("resourceName", Shape::Name),
        Recorded::resource("claimRefs", Shape::Each(&HOLDER)),
    ],
    // What others hold is never taken from them.
    is_skipped_for: |_| false,
    checks: &[Check {
        // One that a claim holds is Released or deleted once that claim releases it; one that is only kept is free then.
        holders_after_remedy: |occupants, _| (!occupants.is_held).then_some(0),
        ..Check::new(
            Key::Standing { withholds, joins: |_| true },
            |case| format!("{} has it", case.resource.holder_names()),
            |case| format!("release {}, which {} has", case.resource.name, case.resource.holder_names()),
        )
    }],
    summary: |_, _, count| {
        resources(
            count,
            "is held by or reserved for another claim",
            "are held by or reserved for other claims",
        )
    },
    ..Definition::BASE
};

const HOLDER: Shape = Shape::Fields(&[
    ("namespace", Shape::Name),
    ("name", Shape::Name),
    ("uid", Shape::Leaf),
    ("requests", Shape::QUANTITIES),
    ("reserved", Shape::Leaf),
]);

fn withholds(occupancy: &Occupancy<'_>) -> bool {
    occupancy.holders > 0 && (occupancy.offer.max_claims == 1 || occupancy.is_exclusive)
}

#[cfg(test)]
mod tests {
    use crate::predicates::Predicate;
    use crate::predicates::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn a_resource_that_another_claim_has_is_refused_with_its_name() {
        let mut db = resource(json!({"engine": "mysql"}));
        check(Predicate::Reserved, json!({}), &db, None);
        db.hold("team-b", "orders");
        check(Predicate::Reserved, json!({}), &db, Some("team-b/orders has it"));
    }
}
