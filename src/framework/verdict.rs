//! A refusal is an answer: which predicates said no, how often, and in words a user can act on.
//! Written once, shown everywhere: status, events, plans, explanations.

use crate::model::Predicate;
use std::fmt;

/// One predicate's part in a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Which predicate.
    pub predicate: Predicate,
    /// How many resources it refused; for quotas and limits, how many of those were exceeded.
    pub count: usize,
    /// In words.
    pub message: String,
}

/// Why a claim was not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// One line for the claim's status.
    pub message: String,
    /// Predicate by predicate, the most frequent first.
    pub reasons: Vec<Reason>,
}

impl Refusal {
    /// A refusal for one reason.
    pub fn single(predicate: Predicate, message: impl Into<String>) -> Refusal {
        let message = message.into();
        Refusal { message: message.clone(), reasons: vec![Reason { predicate, count: 1, message }] }
    }

    /// The predicate that refused most.
    pub fn main_predicate(&self) -> Option<Predicate> {
        self.reasons.first().map(|r| r.predicate)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}
