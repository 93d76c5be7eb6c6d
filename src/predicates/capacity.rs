//! Capacity: every requested quantity is left on the resource. A quantity it does not list counts as none.

use super::{Case, Check, Definition, Key, Pairing, Recorded, Shape, resources};
use crate::model::{self, Dim, Quantity, Wants};

pub(super) const CAPACITY: Definition = Definition {
    about: "Every amount that the claim requests is left on the resource.",
    optional: true,
    recorded: &[
        Recorded::claim("resources", Shape::Fields(&[("requests", Shape::QUANTITIES)])),
        Recorded::resource("capacity", Shape::QUANTITIES),
    ],
    is_skipped_for: |pairing| matches!(pairing, Pairing::Named { is_mutual: true, is_shared: false, .. }),
    checks: &[Check {
        apply_remedy,
        ..Check::new(Key::Capacity(|have, want| have.covers(want)), refusal, remedy)
    }],
    relax: |query, _| query.wants.requests = model::Capacity::default(),
    summary: |query, _, count| {
        format!("{} {} left", resources(count, "does not have", "do not have"), query.wants.requests)
    },
    ..Definition::BASE
};

fn refusal(case: &Case<'_>) -> String {
    let lacking = case.resource.candidate.free.find_lacking(&case.query.wants.requests);
    lacking.map_or_else(String::new, |(what, have, want)| {
        format!("it has {what} {have} left, and {want} is requested")
    })
}

fn remedy(case: &Case<'_>) -> String {
    let free = &case.resource.candidate.free;
    let short: Vec<String> = (case.query.wants.requests.iter())
        .filter(|(what, want)| free.get(what.name()) < *want)
        .map(|(what, _)| format!("{what} {}", free.get(what.name())))
        .collect();
    format!("request no more than {}", short.join(" and "))
}

fn apply_remedy(wants: &mut Wants, case: &Case<'_>) -> bool {
    let free = &case.resource.candidate.free;
    let cut = |(what, want): (&Dim, Quantity)| (what.clone(), want.min(free.get(what.name())));
    let cut: Vec<(Dim, Quantity)> = wants.requests.iter().map(cut).collect();
    let primary = cut.iter().find(|(what, _)| what.is_primary()).map_or("", |(what, _)| what.name());
    wants.requests =
        model::Capacity::from_entries(primary, cut.iter().map(|(what, want)| (what.name(), *want)));
    true
}

#[cfg(test)]
mod tests {
    use crate::predicates::Predicate;
    use crate::predicates::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn every_requested_quantity_must_be_left() {
        let capacity = Predicate::Capacity;
        let db = resource(json!({"engine": "mysql", "capacity": {"storage": "50Gi", "connections": 100}}));
        let want = |storage: &str, connections: u32| json!({"resources": {"requests": {"storage": storage, "connections": connections}}});
        check(capacity, want("50Gi", 100), &db, None);
        check(capacity, want("51200Mi", 0), &db, None);
        check(capacity, want("51Gi", 1), &db, Some("it has storage 50Gi left, and 51Gi is requested"));
        check(capacity, want("1Gi", 101), &db, Some("it has connections 100 left, and 101 is requested"));
        let iops = json!({"resources": {"requests": {"iops": 1}}});
        check(capacity, iops, &db, Some("it has iops 0 left, and 1 is requested"));
    }
}
