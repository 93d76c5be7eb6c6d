//! Capabilities: everything that the claim lists under `requests` is among what the resource can do.

use super::resources;
use crate::cache::Ask;
use crate::framework::{Asked, Filter, Seen};
use crate::model::types::FieldRule;
use crate::model::{FieldValue, FieldWant, Name, Predicate, Wants};

pub(super) struct Capabilities {
    pub at: usize,
    pub rule: &'static FieldRule,
}

impl Capabilities {
    fn missing<'a>(&self, ask: &Ask<'a>, seen: &Seen<'_>) -> Vec<&'a Name> {
        let FieldWant::Contains(want) = &ask.wants.fields[self.at] else { return Vec::new() };
        match &seen.offer.fields[self.at] {
            FieldValue::Set(have) => want.iter().filter(|w| have.binary_search(w).is_err()).collect(),
            _ => want.iter().collect(),
        }
    }
}

impl Filter for Capabilities {
    fn predicate(&self) -> Predicate {
        self.rule.predicate
    }

    fn lack(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String> {
        let missing = self.missing(ask, seen);
        (!missing.is_empty()).then(|| format!("it lacks {}", list(&missing)))
    }

    fn remedy(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> String {
        format!("drop {} from the claim's {}", list(&self.missing(ask, seen)), self.rule.claim)
    }

    fn mend(&self, wants: &mut Wants, seen: &Seen<'_>) -> bool {
        let (FieldWant::Contains(asked), FieldValue::Set(have)) =
            (&wants.fields[self.at], &seen.offer.fields[self.at])
        else {
            return false;
        };
        let left: Box<[Name]> = asked.iter().filter(|name| have.contains(name)).cloned().collect();
        wants.fields[self.at] = if left.is_empty() { FieldWant::Any } else { FieldWant::Contains(left) };
        true
    }

    fn relax(&self, asked: &mut Asked) {
        asked.wants.fields[self.at] = FieldWant::Any;
    }

    fn summary(&self, _ask: &Ask<'_>, count: usize) -> String {
        format!("{} a requested capability", resources(count, "lacks", "lack"))
    }
}

fn list(names: &[&Name]) -> String {
    names.iter().map(|n| &***n).collect::<Vec<_>>().join(", ")
}

#[cfg(test)]
mod tests {
    use crate::model::Predicate;
    use crate::plugins::testing::{check, filter, resource};
    use serde_json::json;

    #[test]
    fn every_requested_capability_must_be_there() {
        let capabilities = filter(Predicate::Capabilities);
        let db = resource(json!({"engine": "mysql", "capabilities": ["backup", "tls"]}));
        check(&*capabilities, json!({"requests": ["tls"]}), &db, None);
        check(&*capabilities, json!({"requests": []}), &db, None);
        check(
            &*capabilities,
            json!({"requests": ["tls", "pitr", "audit"]}),
            &db,
            Some("it lacks audit, pitr"),
        );
    }
}
