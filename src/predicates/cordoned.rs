//! Cordoned: an administrator has marked the resource unschedulable. Its claims stay; no new one comes.

use super::{Actor, Check, Definition, Key, Pairing, Recorded, Shape, resources};

pub(super) const CORDONED: Definition = Definition {
    about: "No administrator has marked the resource unschedulable.",
    actor: Actor::Administrator,
    recorded: &[Recorded::resource("unschedulable", Shape::Leaf)],
    is_skipped_for: |pairing| matches!(pairing, Pairing::Reserved | Pairing::Named { is_mutual: true, .. }),
    checks: &[Check {
        holders_after_remedy: |occupants, _| {
            (occupants.are_accepted() && occupants.has_room).then_some(occupants.count)
        },
        ..Check::new(
            Key::Standing { withholds: |occupancy| occupancy.is_cordoned, joins: |_| true },
            |_| "it is unschedulable".to_owned(),
            |case| format!("take unschedulable off {}", case.resource.name),
        )
    }],
    summary: |_, _, count| resources(count, "is unschedulable", "are unschedulable"),
    ..Definition::BASE
};

#[cfg(test)]
mod tests {
    use crate::predicates::Predicate;
    use crate::predicates::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn a_cordoned_resource_takes_no_new_claim() {
        check(Predicate::Cordoned, json!({}), &resource(json!({"engine": "mysql"})), None);
        let cordoned = resource(json!({"engine": "mysql", "unschedulable": true}));
        check(Predicate::Cordoned, json!({}), &cordoned, Some("it is unschedulable"));
    }
}
