//! ResourceName: a claim that names its resource waits for that one. Fit is asked by the other filters.

use crate::framework::Refusal;
use crate::model::{Name, Predicate};

/// The refusal of a claim whose named resource does not exist.
pub fn missing(name: &Name) -> Refusal {
    Refusal::single(
        Predicate::ResourceName,
        format!("resource {name} does not exist; the claim waits for it"),
    )
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
