//! Class: a claim that names a class gets resources of that class only, and one that names none gets
//! classless ones. Which class is the default is the scheduler's business.

use super::{Case, Check, ClassQuery, Definition, Key, Pairing, Recorded, Shape, resources};
use crate::model::{ClassWant, Name};

pub(super) const CLASS: Definition = Definition {
    about: "The claim's class is the resource's. A claim without a class takes classless resources.",
    optional: true,
    recorded: &[
        Recorded::claim("class", Shape::Name),
        Recorded::claim("classes", Shape::NAMES),
        Recorded::resource("class", Shape::Name),
    ],
    is_skipped_for: |pairing| match *pairing {
        Pairing::Reserved => true,
        Pairing::Named { is_mutual, is_classless, .. } => is_mutual || is_classless,
        Pairing::Provisioning => false,
    },
    checks: &[Check {
        apply_remedy: |wants, case| {
            let named =
                case.resource.candidate.offer.class.clone().map(|class| ClassWant::Named([class].into()));
            wants.class = named.unwrap_or(ClassWant::Classless);
            true
        },
        ..Check::new(Key::Class(accepts), refusal, remedy)
    }],
    relax: |query, _| query.forget_class(),
    summary: |query, _, count| format!("{} {}", resources(count, "is not", "are not"), wanted(&query.class)),
    ..Definition::BASE
};

fn accepts(query: &ClassQuery<'_>, class: Option<&Name>) -> bool {
    match query {
        ClassQuery::Any => true,
        ClassQuery::Exactly(wanted) => *wanted == class,
        ClassQuery::OneOf(names) => names.iter().any(|name| name.as_ref() == class),
    }
}

fn refusal(case: &Case<'_>) -> String {
    let class = case.resource.candidate.offer.class.as_ref();
    format!("it is {}, not {}", one(class), wanted(&case.query.class))
}

fn remedy(case: &Case<'_>) -> String {
    match &case.resource.candidate.offer.class {
        Some(class) => format!("set the claim's class to {class}"),
        None => "set the claim's class to \"\" (classless)".to_owned(),
    }
}

fn one(class: Option<&Name>) -> String {
    class.map_or_else(|| "classless".to_owned(), |class| format!("of class {class}"))
}

fn wanted(query: &ClassQuery<'_>) -> String {
    match query {
        ClassQuery::Any => "of any class".to_owned(),
        ClassQuery::Exactly(class) => one(*class),
        ClassQuery::OneOf(classes) => {
            let classes: Vec<String> = classes.iter().map(|c| one(c.as_ref())).collect();
            classes.join(" or ")
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::predicates::Predicate;
    use crate::predicates::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn only_resources_of_the_named_class_pass() {
        let fast = resource(json!({"engine": "mysql", "class": "fast"}));
        let plain = resource(json!({"engine": "mysql"}));
        check(Predicate::Class, json!({"class": "fast"}), &fast, None);
        check(
            Predicate::Class,
            json!({"class": "slow"}),
            &fast,
            Some("it is of class fast, not of class slow"),
        );
        check(Predicate::Class, json!({"class": "fast"}), &plain, Some("it is classless, not of class fast"));
    }

    #[test]
    fn a_claim_without_a_class_takes_classless_resources_only() {
        let fast = resource(json!({"engine": "mysql", "class": "fast"}));
        let plain = resource(json!({"engine": "mysql"}));
        check(Predicate::Class, json!({}), &plain, None);
        check(Predicate::Class, json!({"class": ""}), &plain, None);
        check(Predicate::Class, json!({}), &fast, Some("it is of class fast, not classless"));
    }
}
