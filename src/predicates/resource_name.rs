//! ResourceName: a claim that names its resource waits for that one. The other predicates decide whether it fits.

use super::{Definition, Predicate, Refusal};
use crate::model::Name;

pub(super) const RESOURCE_NAME: Definition =
    Definition { about: "The resource that the claim names exists and can be read.", ..Definition::BASE };

/// The refusal of a claim whose named resource does not exist.
pub fn missing(name: &Name) -> Refusal {
    let message = format!("resource {name} does not exist; the claim waits for it");
    Refusal::single(Predicate::ResourceName, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_resource_is_named() {
        let refusal = missing(&Name::from("db-1"));
        assert_eq!(refusal.message, "resource db-1 does not exist; the claim waits for it");
        assert_eq!(refusal.main_predicate(), Some(Predicate::ResourceName));
    }
}
