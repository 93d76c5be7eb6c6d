//! Phase: only a resource that is Available, or Bound with room, can be claimed.

use super::resources;
use crate::cache::{Ask, Standing};
use crate::framework::{Filter, Seen};
use crate::model::Predicate;

pub(super) struct Phase;

impl Filter for Phase {
    fn predicate(&self) -> Predicate {
        Predicate::Phase
    }

    fn lack(&self, _ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String> {
        (seen.standing == Standing::Phase).then(|| format!("it is {}, not Available", seen.phase))
    }

    fn remedy(&self, _ask: &Ask<'_>, seen: &Seen<'_>) -> String {
        match seen.phase {
            "Released" => {
                let name = seen.name;
                format!("keep {name}, with its last claim's data, for this claim: name it in claimRefs")
            }
            "Failed" => format!("mend {}, which is Failed", seen.name),
            phase => format!("wait until {}, now {phase}, is Available", seen.name),
        }
    }

    fn summary(&self, _ask: &Ask<'_>, count: usize) -> String {
        resources(count, "is not Available", "are not Available")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn a_resource_in_another_phase_is_refused_with_its_phase() {
        let mut db = resource(json!({"engine": "mysql"}));
        check(&Phase, json!({}), &db, None);
        (db.standing, db.phase) = (Standing::Phase, "Released");
        check(&Phase, json!({}), &db, Some("it is Released, not Available"));
    }
}
