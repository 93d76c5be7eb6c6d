//! Version: the resource's version lies in the claim's range. A resource without one fits no claim that wants one.

use super::definition::Field;
use super::{Case, Check, Definition, Key, Query, Shape, engine, resources};
use crate::model::types::{FieldRule, Rule};
use crate::model::{FieldValue, FieldWant, VersionRange, Wants};
use std::sync::Arc;

pub(super) const VERSION: Definition = Definition {
    about: "The version lies in the claim's range. A bare version is its release line.",
    optional: true,
    field: Some(FieldRule {
        of: "RelationalDatabase",
        claim: "version",
        resource: "version",
        rule: Rule::VersionRange,
        recorded: Shape::Leaf,
    }),
    checks: &[Check { apply_remedy, ..Check::new(Key::Range { accepts, within }, refusal, remedy) }],
    relax: engine::relax,
    summary,
    ..Definition::BASE
};

fn accepts(want: &FieldWant, have: &FieldValue) -> bool {
    match (want, have) {
        (FieldWant::Any, _) => true,
        (FieldWant::Range(range), FieldValue::Version(version)) => range.matches(version),
        _ => false,
    }
}

fn within(want: &FieldWant) -> Option<&VersionRange> {
    match want {
        FieldWant::Range(range) => Some(range),
        _ => None,
    }
}

fn refusal(case: &Case<'_>) -> String {
    match case.have() {
        FieldValue::Version(version) => format!("its version {version} is not in {}", wanted(case.want())),
        _ => format!("it has no version, and {} is requested", wanted(case.want())),
    }
}

fn remedy(case: &Case<'_>) -> String {
    match (case.want(), case.have()) {
        (FieldWant::Range(range), FieldValue::Version(version)) => {
            format!("widen the claim's version to {}", range.widen_hint(version))
        }
        _ => "give the resource's version".to_owned(),
    }
}

fn apply_remedy(wants: &mut Wants, case: &Case<'_>) -> bool {
    let (FieldWant::Range(range), FieldValue::Version(version)) = (case.want(), case.have()) else {
        return false;
    };
    let Ok(widened) = VersionRange::parse(&range.widen_hint(version)) else { return false };
    case.field.set(wants, FieldWant::Range(Arc::new(widened)));
    true
}

fn summary(query: &Query<'_>, field: &Field, count: usize) -> String {
    let have = resources(count, "has no version", "have no version");
    format!("{have} in {}", wanted(field.want(query.wants)))
}

fn wanted(want: &FieldWant) -> String {
    within(want).map_or_else(|| "any".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use crate::predicates::Predicate;
    use crate::predicates::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn a_bare_version_is_its_release_line() {
        let db = resource(json!({"engine": "mysql", "version": "5.6.51"}));
        check(Predicate::Version, json!({"version": 5.6}), &db, None);
        check(Predicate::Version, json!({"version": ">= 5.6"}), &db, None);
        check(Predicate::Version, json!({"version": "5.7"}), &db, Some("its version 5.6.51 is not in 5.7"));
    }

    #[test]
    fn a_resource_without_a_version_fits_only_claims_that_want_none() {
        let db = resource(json!({"engine": "mysql"}));
        check(Predicate::Version, json!({}), &db, None);
        check(
            Predicate::Version,
            json!({"version": "*"}),
            &db,
            Some("it has no version, and * is requested"),
        );
    }
}
