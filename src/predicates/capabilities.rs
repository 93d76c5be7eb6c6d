//! Capabilities, and the check of any other set: everything that the claim lists is among what the resource can do.

use super::{Case, Check, Definition, Key, Shape, engine, resources};
use crate::model::types::{FieldRule, Rule};
use crate::model::{FieldValue, FieldWant, Name, Wants};

pub(super) const CAPABILITIES: Definition = Definition {
    about: "The resource has every capability that the claim requests.",
    field: Some(FieldRule {
        of: "RelationalDatabase",
        claim: "requests",
        resource: "capabilities",
        rule: Rule::Contains,
        recorded: Shape::NAMES,
    }),
    ..BY_SET
};

/// A predicate over a field that is a set. Its definition adds the field.
pub(crate) const BY_SET: Definition = Definition {
    optional: true,
    checks: &[Check { apply_remedy, ..Check::new(Key::Attribute(accepts), refusal, remedy) }],
    relax: engine::relax,
    summary: |_, _, count| format!("{} a requested capability", resources(count, "lacks", "lack")),
    ..Definition::BASE
};

fn accepts(want: &FieldWant, have: &FieldValue) -> bool {
    match (want, have) {
        (FieldWant::Any, _) => true,
        (FieldWant::Contains(want), FieldValue::Set(have)) => {
            want.iter().all(|w| have.binary_search(w).is_ok())
        }
        _ => false,
    }
}

fn refusal(case: &Case<'_>) -> String {
    format!("it lacks {}", missing(case))
}

fn remedy(case: &Case<'_>) -> String {
    format!("drop {} from the claim's {}", missing(case), case.field.claim())
}

fn apply_remedy(wants: &mut Wants, case: &Case<'_>) -> bool {
    let (FieldWant::Contains(wanted), FieldValue::Set(have)) = (case.want(), case.have()) else {
        return false;
    };
    let left: Box<[Name]> = wanted.iter().filter(|name| have.contains(name)).cloned().collect();
    case.field.set(wants, if left.is_empty() { FieldWant::Any } else { FieldWant::Contains(left) });
    true
}

fn missing(case: &Case<'_>) -> String {
    let FieldWant::Contains(want) = case.want() else { return String::new() };
    let has = |name: &&Name| match case.have() {
        FieldValue::Set(have) => have.binary_search(name).is_ok(),
        _ => false,
    };
    want.iter().filter(|name| !has(name)).map(|name| &**name).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::predicates::Predicate;
    use crate::predicates::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn the_resource_has_every_requested_capability() {
        let capabilities = Predicate::Capabilities;
        let db = resource(json!({"engine": "mysql", "capabilities": ["backup", "tls"]}));
        check(capabilities, json!({"requests": ["tls"]}), &db, None);
        check(capabilities, json!({"requests": []}), &db, None);
        check(capabilities, json!({"requests": ["tls", "pitr", "audit"]}), &db, Some("it lacks audit, pitr"));
    }
}
