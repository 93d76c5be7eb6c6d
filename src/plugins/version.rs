//! Version: the resource's version lies in the claim's range. A resource without one fits no claim that asks.

use super::resources;
use crate::cache::Ask;
use crate::framework::{Asked, Filter, Seen};
use crate::model::types::FieldRule;
use crate::model::{FieldValue, FieldWant, Predicate, VersionRange, Wants};
use std::sync::Arc;

pub(super) struct Version {
    pub at: usize,
    pub rule: &'static FieldRule,
}

impl Filter for Version {
    fn predicate(&self) -> Predicate {
        self.rule.predicate
    }

    fn lack(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String> {
        let (want, have) = (&ask.wants.fields[self.at], &seen.offer.fields[self.at]);
        (!want.accepts(have)).then(|| match have {
            FieldValue::Version(version) => format!("its version {version} is not in {}", asked(want)),
            _ => format!("it has no version, and {} is asked", asked(want)),
        })
    }

    fn remedy(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> String {
        match (&ask.wants.fields[self.at], &seen.offer.fields[self.at]) {
            (FieldWant::Range(range), FieldValue::Version(version)) => {
                format!("widen the claim's version to {}", range.widen_hint(version))
            }
            _ => "give the resource's version".to_owned(),
        }
    }

    fn mend(&self, wants: &mut Wants, seen: &Seen<'_>) -> bool {
        let (FieldWant::Range(range), FieldValue::Version(version)) =
            (&wants.fields[self.at], &seen.offer.fields[self.at])
        else {
            return false;
        };
        let Ok(widened) = VersionRange::parse(&range.widen_hint(version)) else { return false };
        wants.fields[self.at] = FieldWant::Range(Arc::new(widened));
        true
    }

    fn relax(&self, asked: &mut Asked) {
        asked.wants.fields[self.at] = FieldWant::Any;
    }

    fn summary(&self, ask: &Ask<'_>, count: usize) -> String {
        let have = resources(count, "has no version", "have no version");
        format!("{have} in {}", asked(&ask.wants.fields[self.at]))
    }
}

fn asked(want: &FieldWant) -> String {
    match want {
        FieldWant::Range(range) => range.to_string(),
        _ => "any".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use crate::model::Predicate;
    use crate::plugins::testing::{check, filter, resource};
    use serde_json::json;

    #[test]
    fn a_bare_version_is_its_release_line() {
        let version = filter(Predicate::Version);
        let db = resource(json!({"engine": "mysql", "version": "5.6.51"}));
        check(&*version, json!({"version": 5.6}), &db, None);
        check(&*version, json!({"version": ">= 5.6"}), &db, None);
        check(&*version, json!({"version": "5.7"}), &db, Some("its version 5.6.51 is not in 5.7"));
    }

    #[test]
    fn a_resource_without_a_version_fits_only_claims_that_ask_for_none() {
        let version = filter(Predicate::Version);
        let db = resource(json!({"engine": "mysql"}));
        check(&*version, json!({}), &db, None);
        check(&*version, json!({"version": "*"}), &db, Some("it has no version, and * is asked"));
    }
}
