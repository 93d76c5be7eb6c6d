//! Quota: what a namespace, or a set of them, may claim in sum. A claim over quota waits and blocks no other. What a claim
//! requests counts, and of what it does not request, what it would hold. What cannot be counted is refused.

use crate::cache::{Overrun, QuotaKey};
use crate::framework::{Admission, Considered, Gate, Holding, Reason, Refusal};
use crate::model::Predicate;

pub(super) struct Quota;

impl Gate for Quota {
    fn predicate(&self) -> Predicate {
        Predicate::Quota
    }

    fn refuse(&self, admission: &Admission<'_>) -> Option<Refusal> {
        let overruns = admission.ledger.overruns(admission.charge, admission.holding.is_some());
        let sentences: Vec<String> = overruns.iter().map(|overrun| sentence(overrun, admission)).collect();
        let message = sentences.join("; ");
        let of = match admission.holding {
            Some(Holding::Resource(_) | Holding::PartOf(_)) => Considered::Resources,
            Some(Holding::Made(_) | Holding::MadeByParameters(..) | Holding::PartOfMade(_)) => {
                Considered::Classes
            }
            None => Considered::Claim,
        };
        let (predicate, count) = (Predicate::Quota, overruns.len());
        let reason = Reason { predicate, count, of, message: message.clone() };
        (!overruns.is_empty()).then(|| Refusal { message, reasons: vec![reason] })
    }
}

fn sentence(overrun: &Overrun, admission: &Admission<'_>) -> String {
    let Overrun { quota, what, scope, used, added, limit } = overrun;
    let scope = scope.as_ref().map(|s| format!(" for {s}")).unwrap_or_default();
    let quota = quota_name(quota);
    let is_asked = &**what == CLAIMS || !admission.requests.get(what).is_zero();
    let more = match admission.holding {
        Some(holding) if overrun.is_uncounted() => {
            return format!("{quota}{scope} limits {what}, and {}", uncounted(holding, what));
        }
        Some(Holding::Resource(name)) if !is_asked => format!("resource {name} has {added}"),
        Some(Holding::Made(class) | Holding::MadeByParameters(class, _)) if !is_asked => {
            format!("class {class} makes {added}")
        }
        _ => format!("{added} more asked"),
    };
    format!("over {quota}{scope}: {what} {used} of {limit} used, {more}")
}

/// What a limit on the number of claims is called.
const CLAIMS: &str = "claims";

/// Why an amount cannot be counted, with what to do about it.
fn uncounted(holding: Holding<'_>, what: &str) -> String {
    match holding {
        Holding::Resource(name) => {
            format!("resource {name} lists none that could be counted: add spec.capacity.{what} to it")
        }
        Holding::MadeByParameters(class, amounts) if amounts.iter().any(|amount| **amount == *what) => {
            format!(
                "parameters may decide how much class {class} makes: declare one size in its capacity.{what}, or let its \
             template take ${{resource.spec.capacity.{what}}} alone"
            )
        }
        Holding::Made(class) | Holding::MadeByParameters(class, _) => {
            format!("class {class} declares none that could be counted: add capacity.{what} to it")
        }
        Holding::PartOf(name) => format!(
            "the claim requests none of the shared resource {name} that could be counted: add \
             spec.resources.requests.{what} to the claim"
        ),
        Holding::PartOfMade(class) => format!(
            "the claim requests none of the shared resource that class {class} makes: add \
             spec.resources.requests.{what} to the claim"
        ),
    }
}

/// The quota as an operator would call it.
pub fn quota_name(quota: &QuotaKey) -> String {
    match &*quota.namespace {
        "" => format!("cluster quota {}", quota.name),
        namespace => format!("quota {namespace}/{}", quota.name),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cache::{Charge, Ledger};
    use crate::model::{self, Capacity, Kind, Name, Object, Uid};
    use serde_json::json;

    fn ledger(limits: serde_json::Value) -> Ledger {
        let metadata = serde_json::from_value(json!({"namespace": "team-a", "name": "dbs"})).unwrap();
        let body = json!({"spec": {"limits": limits}});
        let mut ledger = Ledger::default();
        ledger.set_quota(model::Quota::read(&Object { kind: Kind::Quota, metadata, body }));
        ledger
    }

    fn charge(class: Option<&str>, storage: &str) -> Charge {
        let amounts = Capacity::parse("storage", &json!({"storage": storage})).unwrap();
        Charge { namespace: Name::from("team-a"), class: class.map(Name::from), engine: None, amounts }
    }

    fn refusal(ledger: &Ledger, charge: &Charge) -> Option<String> {
        refusal_of(ledger, charge, &charge.amounts, None)
    }

    fn refusal_of(
        ledger: &Ledger,
        charge: &Charge,
        requests: &Capacity,
        holding: Option<Holding<'_>>,
    ) -> Option<String> {
        Quota.refuse(&Admission { charge, requests, holding, bounds: &[], ledger }).map(|r| r.message)
    }

    #[test]
    fn what_is_not_requested_counts_as_held_or_is_refused() {
        let mut ledger = ledger(json!([{"requests": {"storage": "50Gi"}}]));
        ledger.charge(&Uid::from("u1"), charge(None, "30Gi"));
        let (db, small) = (Name::from("db-1"), Name::from("small"));
        for (holding, storage, expected) in [
            (None, "0", None),
            (Some(Holding::Resource(&db)), "20Gi", None),
            (
                Some(Holding::Resource(&db)),
                "25Gi",
                Some("over quota team-a/dbs: storage 30Gi of 50Gi used, resource db-1 has 25Gi"),
            ),
            (
                Some(Holding::Made(&small)),
                "25Gi",
                Some("over quota team-a/dbs: storage 30Gi of 50Gi used, class small makes 25Gi"),
            ),
            (
                Some(Holding::PartOf(&db)),
                "25Gi",
                Some("over quota team-a/dbs: storage 30Gi of 50Gi used, 25Gi more asked"),
            ),
            (
                Some(Holding::Resource(&db)),
                "0",
                Some(
                    "quota team-a/dbs limits storage, and resource db-1 lists none that could be counted: add \
                     spec.capacity.storage to it",
                ),
            ),
            (
                Some(Holding::Made(&small)),
                "0",
                Some(
                    "quota team-a/dbs limits storage, and class small declares none that could be counted: add \
                     capacity.storage to it",
                ),
            ),
            (
                Some(Holding::PartOf(&db)),
                "0",
                Some(
                    "quota team-a/dbs limits storage, and the claim requests none of the shared resource db-1 that could \
                     be counted: add spec.resources.requests.storage to the claim",
                ),
            ),
            (
                Some(Holding::PartOfMade(&small)),
                "0",
                Some(
                    "quota team-a/dbs limits storage, and the claim requests none of the shared resource that class small \
                     makes: add spec.resources.requests.storage to the claim",
                ),
            ),
        ] {
            let none = Capacity::default();
            let refused = refusal_of(&ledger, &charge(None, storage), &none, holding);
            assert_eq!(refused.as_deref(), expected, "{holding:?}");
        }
        let asked = charge(None, "25Gi");
        let refused = refusal_of(&ledger, &asked, &asked.amounts, Some(Holding::Resource(&db)));
        let expected = "over quota team-a/dbs: storage 30Gi of 50Gi used, 25Gi more asked";
        assert_eq!(refused.as_deref(), Some(expected));
    }

    #[test]
    fn a_claim_over_quota_is_told_the_numbers() {
        let mut ledger = ledger(json!([{"claims": 2, "requests": {"storage": "50Gi"}}]));
        assert_eq!(refusal(&ledger, &charge(None, "50Gi")), None);
        ledger.charge(&Uid::from("u1"), charge(None, "30Gi"));
        let over = "over quota team-a/dbs: storage 30Gi of 50Gi used, 25Gi more asked";
        assert_eq!(refusal(&ledger, &charge(None, "25Gi")).as_deref(), Some(over));
        assert_eq!(refusal(&ledger, &charge(None, "20Gi")), None);
        ledger.charge(&Uid::from("u2"), charge(None, "0"));
        let over = "over quota team-a/dbs: claims 2 of 2 used, 1 more asked";
        assert_eq!(refusal(&ledger, &charge(None, "0")).as_deref(), Some(over));
        ledger.release(&Uid::from("u2"));
        assert_eq!(refusal(&ledger, &charge(None, "0")), None);
    }

    #[test]
    fn a_limit_of_a_class_counts_that_class_only() {
        let mut ledger = ledger(json!([{"class": "fast", "claims": 1}]));
        ledger.charge(&Uid::from("u1"), charge(Some("fast"), "0"));
        let over = "over quota team-a/dbs for fast: claims 1 of 1 used, 1 more asked";
        assert_eq!(refusal(&ledger, &charge(Some("fast"), "0")).as_deref(), Some(over));
        assert_eq!(refusal(&ledger, &charge(Some("slow"), "0")), None);
        assert_eq!(refusal(&ledger, &charge(None, "0")), None);
    }
}
