//! Selector: the resource's labels match what the claim selects.

use super::{Case, Check, Definition, Key, Pairing, Recorded, Shape, resources};
use crate::model::Selector;

pub(super) const SELECTOR: Definition = Definition {
    about: "The labels match the claim's selector.",
    optional: true,
    recorded: &[Recorded::claim("selector", Shape::SELECTOR)],
    is_skipped_for: |pairing| matches!(pairing, Pairing::Reserved | Pairing::Named { .. }),
    checks: &[Check {
        apply_remedy: |wants, case| {
            let labels = &case.resource.candidate.offer.labels;
            wants.selector = wants.selector.kept(|r| r.matches(labels.get(&r.key)));
            true
        },
        ..Check::new(
            Key::Labels(|requirement, label| requirement.matches(label)),
            |case| format!("its labels do not match {}", failing(case)),
            |case| format!("drop {} from the claim's selector", failing(case)),
        )
    }],
    relax: |query, _| query.wants.selector = Selector::default(),
    summary: |query, _, count| {
        format!("{} {}", resources(count, "does not match", "do not match"), query.wants.selector)
    },
    ..Definition::BASE
};

fn failing(case: &Case<'_>) -> String {
    let labels = &case.resource.candidate.offer.labels;
    let requirements = case.query.wants.selector.requirements().iter();
    let failing = requirements.filter(|r| !r.matches(labels.get(&r.key)));
    failing.map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::predicates::Predicate;
    use crate::predicates::testing::{check, labelled, refusal};
    use serde_json::json;

    #[test]
    fn every_expression_must_hold() {
        let selector = Predicate::Selector;
        let db = labelled(json!({"engine": "mysql"}), json!({"env": "dev", "tier": "gold"}));
        let want = |operator: &str, key: &str, values: &[&str]| json!({"selector": {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}});
        check(selector, json!({"selector": {"matchLabels": {"env": "dev"}}}), &db, None);
        check(selector, want("In", "env", &["dev", "test"]), &db, None);
        check(selector, want("NotIn", "region", &["eu"]), &db, None);
        check(selector, want("DoesNotExist", "region", &[]), &db, None);
        check(selector, want("Exists", "tier", &[]), &db, None);
        assert!(refusal(selector, want("In", "env", &["prod"]), &db).is_some());
        assert!(refusal(selector, want("Exists", "region", &[]), &db).is_some());
    }
}
