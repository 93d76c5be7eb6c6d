//! Quota: what a namespace, or a set of them, may claim in sum. A claim over quota waits and blocks nobody.

use crate::cache::{Overrun, QuotaKey};
use crate::framework::{Admission, Considered, Gate, Reason, Refusal};
use crate::model::Predicate;

pub(super) struct Quota;

impl Gate for Quota {
    fn predicate(&self) -> Predicate {
        Predicate::Quota
    }

    fn refuse(&self, admission: &Admission<'_>) -> Option<Refusal> {
        let overruns = admission.ledger.overruns(admission.charge);
        let sentences: Vec<String> = overruns.iter().map(sentence).collect();
        let message = sentences.join("; ");
        let (predicate, count, of) = (Predicate::Quota, overruns.len(), Considered::Claim);
        let reason = Reason { predicate, count, of, message: message.clone() };
        (!overruns.is_empty()).then(|| Refusal { message, reasons: vec![reason] })
    }
}

fn sentence(overrun: &Overrun) -> String {
    let Overrun { quota, what, scope, used, asked, limit } = overrun;
    let scope = scope.as_ref().map(|s| format!(" for {s}")).unwrap_or_default();
    format!("over {}{scope}: {what} {used} of {limit} used, {asked} more asked", quota_name(quota))
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
        let requests = Capacity::parse("storage", &json!({"storage": storage})).unwrap();
        Charge { namespace: Name::from("team-a"), class: class.map(Name::from), engine: None, requests }
    }

    fn refusal(ledger: &Ledger, charge: &Charge) -> Option<String> {
        Quota.refuse(&Admission { charge, bounds: &[], ledger }).map(|r| r.message)
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
