//! Engine, and the check of any other field that is a name: equal without case, spellings of one thing being one.

use super::definition::Field;
use super::{Actor, Case, Check, Definition, Key, Query, RelaxedQuery, Shape, resources};
use crate::model::types::{FieldRule, Rule};
use crate::model::{FieldValue, FieldWant, Name, Wants};

pub(super) const ENGINE: Definition = Definition {
    about: "The engine is the one that the claim names, without case; postgres is postgresql.",
    // Another engine is the last thing that an application changes.
    actor: Actor::Application,
    field: Some(FieldRule {
        of: "RelationalDatabase",
        claim: "engine",
        resource: "engine",
        rule: Rule::Name { aliases: &[("postgres", "postgresql")] },
        recorded: Shape::Leaf,
    }),
    checks: &[Check { key: Key::Group { accepts, only }, ..NAME }],
    ..BY_NAME
};

/// A predicate over a field that is a name. Its definition adds the field.
pub(crate) const BY_NAME: Definition =
    Definition { optional: true, checks: &[NAME], relax, summary, ..Definition::BASE };

/// The same, for the field that resources are grouped by.
#[cfg(test)]
pub(crate) const BY_GROUP: Definition =
    Definition { checks: &[Check { key: Key::Group { accepts, only }, ..NAME }], ..BY_NAME };

const NAME: Check = Check { apply_remedy, ..Check::new(Key::Attribute(accepts), refusal, remedy) };

fn accepts(want: &FieldWant, have: &FieldValue) -> bool {
    match (want, have) {
        (FieldWant::Any, _) => true,
        (FieldWant::Name(want), FieldValue::Name(have)) => want == have,
        _ => false,
    }
}

fn only(want: &FieldWant) -> Option<&Name> {
    match want {
        FieldWant::Name(name) => Some(name),
        _ => None,
    }
}

fn refusal(case: &Case<'_>) -> String {
    let have = match case.have() {
        FieldValue::Name(name) => name,
        _ => "not given",
    };
    format!("its {} is {have}, not {}", case.field.resource(), wanted(case.want()))
}

fn remedy(case: &Case<'_>) -> String {
    match case.have() {
        FieldValue::Name(name) => format!("set the claim's {} to {name}", case.field.claim()),
        _ => format!("give the resource's {}", case.field.resource()),
    }
}

fn apply_remedy(wants: &mut Wants, case: &Case<'_>) -> bool {
    let FieldValue::Name(name) = case.have() else { return false };
    case.field.set(wants, FieldWant::Name(name.clone()));
    true
}

/// Takes any field out of a query.
pub(super) fn relax(query: &mut RelaxedQuery, at: Option<usize>) {
    Field { at, rule: None }.set(&mut query.wants, FieldWant::Any);
}

fn summary(query: &Query<'_>, field: &Field, count: usize) -> String {
    let have = resources(count, "has another", "have another");
    format!("{have} {} than {}", field.resource(), wanted(field.want(query.wants)))
}

fn wanted(want: &FieldWant) -> &str {
    only(want).map_or("any", |name| &**name)
}

#[cfg(test)]
mod tests {
    use crate::predicates::Predicate;
    use crate::predicates::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn engines_compare_without_case_and_postgres_is_postgresql() {
        let db = resource(json!({"engine": "PostgreSQL"}));
        check(Predicate::Engine, json!({"engine": "postgres"}), &db, None);
        check(Predicate::Engine, json!({"engine": " POSTGRESQL "}), &db, None);
        check(Predicate::Engine, json!({}), &db, None);
        check(
            Predicate::Engine,
            json!({"engine": "mysql"}),
            &db,
            Some("its engine is postgresql, not mysql"),
        );
    }
}
