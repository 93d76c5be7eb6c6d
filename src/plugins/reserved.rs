//! Reserved: the resource is held by one claim, or kept for one by an administrator.

use super::resources;
use crate::cache::{Ask, Standing};
use crate::framework::{Filter, Seen};
use crate::model::Predicate;

pub(super) struct Reserved;

impl Filter for Reserved {
    fn predicate(&self) -> Predicate {
        Predicate::Reserved
    }

    fn lack(&self, _ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String> {
        (seen.standing == Standing::Reserved).then(|| format!("{} has it", seen.holders.join(", ")))
    }

    fn remedy(&self, _ask: &Ask<'_>, seen: &Seen<'_>) -> String {
        format!("release {}, which {} has", seen.name, seen.holders.join(", "))
    }

    fn summary(&self, _ask: &Ask<'_>, count: usize) -> String {
        resources(
            count,
            "is held by or reserved for another claim",
            "are held by or reserved for other claims",
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn a_resource_that_another_claim_has_is_refused_with_its_name() {
        let mut db = resource(json!({"engine": "mysql"}));
        check(&Reserved, json!({}), &db, None);
        (db.standing, db.holders) = (Standing::Reserved, vec!["team-b/orders".to_owned()]);
        check(&Reserved, json!({}), &db, Some("team-b/orders has it"));
    }
}
