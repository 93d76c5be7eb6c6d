//! Limits: what a single claim of a namespace may request, and what it requests where it says nothing.

use super::{Considered, Definition, Predicate, Reason, Refusal};
use crate::model::quota::Bounds;
use crate::model::{Capacity, Name};

pub(super) const LIMITS: Definition = Definition {
    about: "The claim's requests are within the limits of its namespace.",
    optional: true,
    ..Definition::BASE
};

/// Why the limits of a namespace refuse a claim that requests this much.
pub fn outside_limits(namespace: &Name, requests: &Capacity, bounds: &[Bounds]) -> Option<Refusal> {
    let mut broken = Vec::new();
    for bounds in bounds {
        for (name, min) in bounds.min.iter().filter(|(name, min)| requests.get(name) < *min) {
            broken.push(format!("{name} {} is below the least allowed, {min}", requests.get(name)));
        }
        for (name, max) in bounds.max.iter().filter(|(name, max)| requests.get(name) > *max) {
            broken.push(format!("{name} {} is above the most allowed, {max}", requests.get(name)));
        }
    }
    let message = format!("outside the limits of namespace {namespace}: {}", broken.join("; "));
    let (predicate, count, of) = (Predicate::Limits, broken.len(), Considered::Claim);
    let reason = Reason { predicate, count, of, message: message.clone() };
    (!broken.is_empty()).then(|| Refusal { message, reasons: vec![reason] })
}

/// The requests of a claim with the defaults of its namespace filled in. The claim itself is not altered.
pub fn apply_defaults(primary: &str, requests: &Capacity, bounds: &[Bounds]) -> Capacity {
    let mut filled = requests.clone();
    for (name, quantity) in bounds.iter().flat_map(|b| &b.default) {
        if filled.get(name).is_zero() {
            filled.set(primary, name, *quantity);
        }
    }
    filled
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Name, Quantity};

    fn named(pairs: &[(&str, &str)]) -> Vec<(Name, Quantity)> {
        pairs.iter().map(|(n, q)| (Name::from(*n), Quantity::parse(q).unwrap())).collect()
    }

    fn refusal(storage: &str) -> Option<String> {
        let bounds = [Bounds {
            min: named(&[("storage", "1Gi")]),
            max: named(&[("storage", "10Gi")]),
            default: named(&[("storage", "2Gi")]),
        }];
        let asked = Capacity::parse("storage", &serde_json::json!({"storage": storage})).unwrap();
        let requests = apply_defaults("storage", &asked, &bounds);
        outside_limits(&Name::from("team-a"), &requests, &bounds).map(|r| r.message)
    }

    #[test]
    fn a_refusal_outside_min_and_max_names_both_numbers() {
        assert_eq!(refusal("1Gi"), None);
        assert_eq!(refusal("10Gi"), None);
        let over = "outside the limits of namespace team-a: storage 11Gi is above the most allowed, 10Gi";
        assert_eq!(refusal("11Gi").as_deref(), Some(over));
        let under = "outside the limits of namespace team-a: storage 512Mi is below the least allowed, 1Gi";
        assert_eq!(refusal("512Mi").as_deref(), Some(under));
    }

    #[test]
    fn a_claim_that_says_nothing_asks_the_default() {
        assert_eq!(refusal("0"), None);
    }
}
