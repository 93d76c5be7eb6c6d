//! High availability, and any other flag: a claim that says true needs a resource that says true.
//! One that says false, or nothing, takes either.

use super::resources;
use crate::cache::Ask;
use crate::framework::{Asked, Filter, Seen};
use crate::model::types::FieldRule;
use crate::model::{FieldWant, Predicate, Wants};

pub(super) struct HighlyAvailable {
    pub at: usize,
    pub rule: &'static FieldRule,
}

impl Filter for HighlyAvailable {
    fn predicate(&self) -> Predicate {
        self.rule.predicate
    }

    fn lack(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String> {
        let passes = ask.wants.fields[self.at].accepts(&seen.offer.fields[self.at]);
        (!passes).then(|| format!("it is not {}", self.rule.resource))
    }

    fn remedy(&self, _ask: &Ask<'_>, _seen: &Seen<'_>) -> String {
        format!("drop {} from the claim", self.rule.claim)
    }

    fn mend(&self, wants: &mut Wants, _seen: &Seen<'_>) -> bool {
        wants.fields[self.at] = FieldWant::Any;
        true
    }

    fn relax(&self, asked: &mut Asked) {
        asked.wants.fields[self.at] = FieldWant::Any;
    }

    fn summary(&self, _ask: &Ask<'_>, count: usize) -> String {
        format!("{} {}", resources(count, "is not", "are not"), self.rule.resource)
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Predicate;
    use crate::plugins::testing::{check, filter, resource};
    use serde_json::json;

    #[test]
    fn only_a_claim_that_says_true_is_particular() {
        let flag = filter(Predicate::HighlyAvailable);
        let single = resource(json!({"engine": "mysql"}));
        let double = resource(json!({"engine": "mysql", "highly-available": true}));
        check(&*flag, json!({"highly-available": true}), &double, None);
        check(&*flag, json!({"highly-available": true}), &single, Some("it is not highly-available"));
        check(&*flag, json!({"highly-available": false}), &double, None);
        check(&*flag, json!({}), &single, None);
    }
}
