//! Cordoned: an administrator has marked the resource unschedulable. Its claims stay; no new one comes.

use super::resources;
use crate::cache::{Ask, Standing};
use crate::framework::{Filter, Seen};
use crate::model::Predicate;

pub(super) struct Cordoned;

impl Filter for Cordoned {
    fn predicate(&self) -> Predicate {
        Predicate::Cordoned
    }

    fn lack(&self, _ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String> {
        (seen.standing == Standing::Cordoned).then(|| "it is unschedulable".to_owned())
    }

    fn remedy(&self, _ask: &Ask<'_>, seen: &Seen<'_>) -> String {
        format!("take unschedulable off {}", seen.name)
    }

    fn summary(&self, _ask: &Ask<'_>, count: usize) -> String {
        resources(count, "is unschedulable", "are unschedulable")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn a_cordoned_resource_takes_no_new_claim() {
        let mut db = resource(json!({"engine": "mysql"}));
        check(&Cordoned, json!({}), &db, None);
        db.standing = Standing::Cordoned;
        check(&Cordoned, json!({}), &db, Some("it is unschedulable"));
    }
}
