//! Engine, and any other field that is a name: equal without case, spellings of one thing being one.

use super::resources;
use crate::cache::Ask;
use crate::framework::{Asked, Filter, Seen};
use crate::model::types::FieldRule;
use crate::model::{FieldValue, FieldWant, Predicate, Wants};

pub(super) struct Engine {
    pub at: usize,
    pub rule: &'static FieldRule,
}

impl Filter for Engine {
    fn predicate(&self) -> Predicate {
        self.rule.predicate
    }

    fn lack(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String> {
        let (want, have) = (&ask.wants.fields[self.at], &seen.offer.fields[self.at]);
        (!want.accepts(have))
            .then(|| format!("its {} is {}, not {}", self.rule.resource, shown(have), asked(want)))
    }

    fn remedy(&self, _ask: &Ask<'_>, seen: &Seen<'_>) -> String {
        match &seen.offer.fields[self.at] {
            FieldValue::Name(name) => format!("set the claim's {} to {name}", self.rule.claim),
            _ => format!("give the resource's {}", self.rule.resource),
        }
    }

    fn mend(&self, wants: &mut Wants, seen: &Seen<'_>) -> bool {
        let FieldValue::Name(name) = &seen.offer.fields[self.at] else { return false };
        wants.fields[self.at] = FieldWant::Name(name.clone());
        true
    }

    fn relax(&self, asked: &mut Asked) {
        asked.wants.fields[self.at] = FieldWant::Any;
    }

    fn summary(&self, ask: &Ask<'_>, count: usize) -> String {
        let have = resources(count, "has another", "have another");
        format!("{have} {} than {}", self.rule.resource, asked(&ask.wants.fields[self.at]))
    }
}

fn shown(value: &FieldValue) -> &str {
    match value {
        FieldValue::Name(name) => name,
        _ => "not given",
    }
}

fn asked(want: &FieldWant) -> &str {
    match want {
        FieldWant::Name(name) => name,
        _ => "any",
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Predicate;
    use crate::plugins::testing::{check, filter, resource};
    use serde_json::json;

    #[test]
    fn engines_compare_without_case_and_postgres_is_postgresql() {
        let engine = filter(Predicate::Engine);
        let db = resource(json!({"engine": "PostgreSQL"}));
        check(&*engine, json!({"engine": "postgres"}), &db, None);
        check(&*engine, json!({"engine": " POSTGRESQL "}), &db, None);
        check(&*engine, json!({}), &db, None);
        check(&*engine, json!({"engine": "mysql"}), &db, Some("its engine is postgresql, not mysql"));
    }
}
