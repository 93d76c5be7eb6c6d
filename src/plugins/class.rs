//! Class: a claim that names a class gets resources of that class only, and one that names none gets
//! classless ones. Which class is the default is the scheduler's business.

use super::resources;
use crate::cache::{Ask, ClassAsk};
use crate::framework::{Asked, Filter, Seen};
use crate::model::{ClassWant, Name, Predicate, Wants};

pub(super) struct Class;

impl Filter for Class {
    fn predicate(&self) -> Predicate {
        Predicate::Class
    }

    fn lack(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String> {
        let class = seen.offer.class.as_ref();
        (!ask.class.accepts(class)).then(|| format!("it is {}, not {}", one(class), asked(ask)))
    }

    fn remedy(&self, _ask: &Ask<'_>, seen: &Seen<'_>) -> String {
        match &seen.offer.class {
            Some(class) => format!("set the claim's class to {class}"),
            None => "set the claim's class to \"\" (classless)".to_owned(),
        }
    }

    fn mend(&self, wants: &mut Wants, seen: &Seen<'_>) -> bool {
        let named = seen.offer.class.clone().map(|class| ClassWant::Named([class].into()));
        wants.class = named.unwrap_or(ClassWant::Classless);
        true
    }

    fn relax(&self, asked: &mut Asked) {
        asked.forget_class();
    }

    fn summary(&self, ask: &Ask<'_>, count: usize) -> String {
        format!("{} {}", resources(count, "is not", "are not"), asked(ask))
    }
}

fn one(class: Option<&Name>) -> String {
    class.map_or_else(|| "classless".to_owned(), |class| format!("of class {class}"))
}

fn asked(ask: &Ask<'_>) -> String {
    match ask.class {
        ClassAsk::Any => "of any class".to_owned(),
        ClassAsk::Exactly(class) => one(class),
        ClassAsk::OneOf(classes) => {
            let classes: Vec<String> = classes.iter().map(|c| one(c.as_ref())).collect();
            classes.join(" or ")
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn only_resources_of_the_named_class_pass() {
        let fast = resource(json!({"engine": "mysql", "class": "fast"}));
        let plain = resource(json!({"engine": "mysql"}));
        check(&Class, json!({"class": "fast"}), &fast, None);
        check(&Class, json!({"class": "slow"}), &fast, Some("it is of class fast, not of class slow"));
        check(&Class, json!({"class": "fast"}), &plain, Some("it is classless, not of class fast"));
    }

    #[test]
    fn a_claim_without_a_class_takes_classless_resources_only() {
        let fast = resource(json!({"engine": "mysql", "class": "fast"}));
        let plain = resource(json!({"engine": "mysql"}));
        check(&Class, json!({}), &plain, None);
        check(&Class, json!({"class": ""}), &plain, None);
        check(&Class, json!({}), &fast, Some("it is of class fast, not classless"));
    }
}
