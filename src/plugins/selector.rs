//! Selector: the resource's labels match what the claim selects.

use super::resources;
use crate::cache::Ask;
use crate::framework::{Asked, Filter, Seen};
use crate::model::{self, Predicate, Wants};

pub(super) struct Selector;

impl Filter for Selector {
    fn predicate(&self) -> Predicate {
        Predicate::Selector
    }

    fn lack(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String> {
        let label = |key: &str| seen.offer.labels.get(key);
        let failing = ask.wants.selector.requirements().iter().filter(|r| !r.matches(label(&r.key)));
        let failing: Vec<String> = failing.map(ToString::to_string).collect();
        (!failing.is_empty()).then(|| format!("its labels do not match {}", failing.join(", ")))
    }

    fn remedy(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> String {
        let label = |key: &str| seen.offer.labels.get(key);
        let failing = ask.wants.selector.requirements().iter().filter(|r| !r.matches(label(&r.key)));
        let failing: Vec<String> = failing.map(ToString::to_string).collect();
        format!("drop {} from the claim's selector", failing.join(", "))
    }

    fn mend(&self, wants: &mut Wants, seen: &Seen<'_>) -> bool {
        wants.selector = wants.selector.kept(|r| r.matches(seen.offer.labels.get(&r.key)));
        true
    }

    fn relax(&self, asked: &mut Asked) {
        asked.wants.selector = model::Selector::default();
    }

    fn summary(&self, ask: &Ask<'_>, count: usize) -> String {
        format!("{} {}", resources(count, "does not match", "do not match"), ask.wants.selector)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::{check, labelled};
    use serde_json::json;

    #[test]
    fn every_expression_must_hold() {
        let db = labelled(json!({"engine": "mysql"}), json!({"env": "dev", "tier": "gold"}));
        let want = |operator: &str, key: &str, values: &[&str]| json!({"selector": {"matchExpressions": [{"key": key, "operator": operator, "values": values}]}});
        check(&Selector, json!({"selector": {"matchLabels": {"env": "dev"}}}), &db, None);
        check(&Selector, want("In", "env", &["dev", "test"]), &db, None);
        check(&Selector, want("NotIn", "region", &["eu"]), &db, None);
        check(&Selector, want("DoesNotExist", "region", &[]), &db, None);
        check(&Selector, want("Exists", "tier", &[]), &db, None);
        assert!(
            Selector
                .lack(&crate::plugins::testing::Want::new(want("In", "env", &["prod"])).ask(), &db.seen())
                .is_some()
        );
        assert!(
            Selector
                .lack(&crate::plugins::testing::Want::new(want("Exists", "region", &[])).ask(), &db.seen())
                .is_some()
        );
    }
}
