//! Phase: only a resource that is Available, or Bound with room, can be claimed.

use super::{Actor, Case, Check, Definition, Key, Occupancy, Occupants, resources};
use crate::model::ResourcePhase;

pub(super) const PHASE: Definition = Definition {
    about: "The resource is Available, or Bound with room for another claim.",
    actor: Actor::Administrator,
    // A claim that names its resource, or waits for one that is being provisioned, does not wait for the phase.
    is_skipped_for: |_| true,
    checks: &[Check {
        holders_after_remedy,
        ..Check::new(Key::Standing { withholds, joins: |_| true }, refusal, remedy)
    }],
    summary: |_, _, count| resources(count, "is not Available", "are not Available"),
    ..Definition::BASE
};

fn withholds(occupancy: &Occupancy<'_>) -> bool {
    let is_claimable = match occupancy.phase {
        Some(ResourcePhase::Available | ResourcePhase::Bound) => true,
        // What has no template exists from the start, whatever its status says.
        None | Some(ResourcePhase::Pending | ResourcePhase::Creating) => occupancy.is_implemented,
        Some(ResourcePhase::Released | ResourcePhase::Failed | ResourcePhase::Deleting) => false,
    };
    occupancy.is_deleting || occupancy.is_released || !is_claimable
}

fn refusal(case: &Case<'_>) -> String {
    format!("it is {}, not Available", case.resource.phase)
}

fn remedy(case: &Case<'_>) -> String {
    let name = case.resource.name;
    match case.resource.phase {
        "Released" => {
            format!("keep {name}, with its last claim's data, for this claim: name it in claimRefs")
        }
        "Failed" => format!("repair {name}, which is Failed"),
        phase => format!("wait until {name}, now {phase}, is Available"),
    }
}

fn holders_after_remedy(occupants: &Occupants<'_>, case: &Case<'_>) -> Option<usize> {
    // A released one is to be kept for the claim: then neither a cordon nor claims that were deleted are in its way.
    let is_released = case.resource.phase == ResourcePhase::Released.name();
    let has_room = occupants.are_accepted() && !case.resource.candidate.offer.cordoned && occupants.has_room;
    (!occupants.is_deleting && (is_released || has_room)).then_some(occupants.count)
}

#[cfg(test)]
mod tests {
    use crate::model::ResourcePhase;
    use crate::predicates::Predicate;
    use crate::predicates::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn a_resource_in_another_phase_is_refused_with_its_phase() {
        let mut db = resource(json!({"engine": "mysql"}));
        check(Predicate::Phase, json!({}), &db, None);
        db.phase = Some(ResourcePhase::Released);
        check(Predicate::Phase, json!({}), &db, Some("it is Released, not Available"));
    }
}
