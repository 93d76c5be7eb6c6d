//! Capacity: every requested quantity is left on the resource. A quantity it does not list counts as none.

use super::resources;
use crate::cache::Ask;
use crate::framework::{Asked, Filter, Seen};
use crate::model::{self, Dim, Predicate, Quantity, Wants};

pub(super) struct Capacity;

impl Filter for Capacity {
    fn predicate(&self) -> Predicate {
        Predicate::Capacity
    }

    fn lack(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> Option<String> {
        let (what, have, want) = seen.free.find_lacking(&ask.wants.requests)?;
        Some(format!("it has {what} {have} left, and {want} is asked"))
    }

    fn remedy(&self, ask: &Ask<'_>, seen: &Seen<'_>) -> String {
        let short: Vec<String> = (ask.wants.requests.iter())
            .filter(|(what, want)| seen.free.get(what.name()) < *want)
            .map(|(what, _)| format!("{what} {}", seen.free.get(what.name())))
            .collect();
        format!("ask for no more than {}", short.join(" and "))
    }

    fn mend(&self, wants: &mut Wants, seen: &Seen<'_>) -> bool {
        let cut = |(what, want): (&Dim, Quantity)| (what.clone(), want.min(seen.free.get(what.name())));
        let cut: Vec<(Dim, Quantity)> = wants.requests.iter().map(cut).collect();
        let primary = cut.iter().find(|(what, _)| what.is_primary()).map_or("", |(what, _)| what.name());
        wants.requests =
            model::Capacity::from_entries(primary, cut.iter().map(|(what, want)| (what.name(), *want)));
        true
    }

    fn relax(&self, asked: &mut Asked) {
        asked.wants.requests = model::Capacity::default();
    }

    fn summary(&self, ask: &Ask<'_>, count: usize) -> String {
        format!("{} {} left", resources(count, "does not have", "do not have"), ask.wants.requests)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plugins::testing::{check, resource};
    use serde_json::json;

    #[test]
    fn every_requested_quantity_must_be_left() {
        let db = resource(json!({"engine": "mysql", "capacity": {"storage": "50Gi", "connections": 100}}));
        let want = |storage: &str, connections: u32| json!({"resources": {"requests": {"storage": storage, "connections": connections}}});
        check(&Capacity, want("50Gi", 100), &db, None);
        check(&Capacity, want("51200Mi", 0), &db, None);
        check(&Capacity, want("51Gi", 1), &db, Some("it has storage 50Gi left, and 51Gi is asked"));
        check(&Capacity, want("1Gi", 101), &db, Some("it has connections 100 left, and 101 is asked"));
        let iops = json!({"resources": {"requests": {"iops": 1}}});
        check(&Capacity, iops, &db, Some("it has iops 0 left, and 1 is asked"));
    }
}
