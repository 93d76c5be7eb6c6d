//! A refusal is an answer: which predicates said no, how often, and in a message that a user can act on.
//! Written once, shown everywhere: status, events, plans, explanations.

use super::Predicate;
use std::fmt;

/// One predicate's part in a refusal.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Which predicate.
    pub predicate: Predicate,
    /// How many it refused of what it checked; for quotas and limits, how many of those were exceeded.
    pub count: usize,
    /// What it checked.
    pub of: Considered,
    /// The message.
    pub message: String,
}

/// What a predicate checked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Considered {
    /// Resources that could serve the claim.
    Resources,
    /// Classes that could make one for it.
    Classes,
    /// The claim itself, against quotas and limits.
    Claim,
}

/// Why a claim was not served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    /// One line for the claim's status.
    pub message: String,
    /// Predicate by predicate, the most frequent first: of resources, then of classes, then of quotas.
    pub reasons: Vec<Reason>,
}

impl Refusal {
    /// A refusal for one reason.
    pub fn single(predicate: Predicate, message: impl Into<String>) -> Refusal {
        let message = message.into();
        let reason = Reason { predicate, count: 1, of: Considered::Resources, message: message.clone() };
        Refusal { message, reasons: vec![reason] }
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
