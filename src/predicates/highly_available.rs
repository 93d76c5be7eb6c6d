//! High availability, and the check of any other flag: a claim that says true needs a resource that says true.
//! One that says false, or nothing, takes either.

use super::{Check, Definition, Key, Shape, engine, resources};
use crate::model::types::{FieldRule, Rule};
use crate::model::{FieldValue, FieldWant};

pub(super) const HIGHLY_AVAILABLE: Definition = Definition {
    about: "A claim that wants high availability gets a resource that has it.",
    short_name: Some("high availability"),
    optional: true,
    field: Some(FieldRule {
        of: "RelationalDatabase",
        claim: "highly-available",
        resource: "highly-available",
        rule: Rule::Flag,
        recorded: Shape::Leaf,
    }),
    checks: &[Check {
        apply_remedy: |wants, case| {
            case.field.set(wants, FieldWant::Any);
            true
        },
        ..Check::new(
            Key::Attribute(accepts),
            |case| format!("it is not {}", case.field.resource()),
            |case| format!("drop {} from the claim", case.field.claim()),
        )
    }],
    relax: engine::relax,
    summary: |_, field, count| format!("{} {}", resources(count, "is not", "are not"), field.resource()),
    ..Definition::BASE
};

fn accepts(want: &FieldWant, have: &FieldValue) -> bool {
    match (want, have) {
        (FieldWant::Any, _) => true,
        (FieldWant::Flag, FieldValue::Flag(have)) => *have,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use crate::predicates::Predicate;
    use crate::predicates::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn only_a_claim_that_says_true_is_particular() {
        let flag = Predicate::HighlyAvailable;
        let single = resource(json!({"engine": "mysql"}));
        let double = resource(json!({"engine": "mysql", "highly-available": true}));
        check(flag, json!({"highly-available": true}), &double, None);
        check(flag, json!({"highly-available": true}), &single, Some("it is not highly-available"));
        check(flag, json!({"highly-available": false}), &double, None);
        check(flag, json!({}), &single, None);
    }
}
