//! What differs between two plans, as it is printed. Nothing is computed here.

use crate::plan::{Outcome, Place};
use serde::Serialize;
use std::sync::Arc;

/// Everything that differs, and nothing that does not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// By namespace, name, kind.
    pub claims: Vec<ChangedClaim>,
    /// By namespace, name.
    pub resources: Vec<ChangedResource>,
}

impl Difference {
    /// Whether nothing differs.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.resources.is_empty()
    }
}

/// What happens to a claim, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ClaimChange {
    /// Its resource would be gone for good.
    Lost,
    /// It was served and would wait.
    Waits,
    /// It would be given up: it is being deleted.
    Leaves,
    /// It is no longer there.
    Removed,
    /// It would be bound to another resource.
    Moved,
    /// It would be bound to a resource that exists.
    NewlyBound,
    /// A resource would be made for it.
    Provisioned,
    /// It was lost, or was being deleted, and waits like others.
    Returns,
    /// It is new.
    Added,
}

impl ClaimChange {
    /// For tables.
    pub fn words(self) -> &'static str {
        match self {
            ClaimChange::Lost => "lost",
            ClaimChange::Waits => "waits",
            ClaimChange::Leaves => "leaves",
            ClaimChange::Removed => "removed",
            ClaimChange::Moved => "moved",
            ClaimChange::NewlyBound => "newly bound",
            ClaimChange::Provisioned => "provisioned",
            ClaimChange::Returns => "returns",
            ClaimChange::Added => "added",
        }
    }
}

/// One claim that fares differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedClaim {
    /// Its kind.
    pub kind: &'static str,
    /// Where it is.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// What happens to it.
    pub change: ClaimChange,
    /// How it fared; absent where it was not there.
    pub before: Option<Fate>,
    /// How it would fare; absent where it is not there.
    pub after: Option<Fate>,
    /// The rule that flipped it.
    pub cause: Cause,
}

/// How a claim fares.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fate {
    /// In one word.
    pub outcome: Outcome,
    /// The resource that it is bound to.
    pub resource: Option<Place>,
    /// The class that one is made from, or that it counts under.
    pub class: Option<Arc<str>>,
    /// In one sentence.
    pub message: Arc<str>,
}

/// Why something differs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// A predicate of the plan, or one of Added, Gone, Deleted, Preference.
    pub rule: String,
    /// In words.
    pub message: String,
}

impl Cause {
    /// A rule and what it says.
    pub fn new(rule: impl Into<String>, message: impl Into<String>) -> Cause {
        Cause { rule: rule.into(), message: message.into() }
    }
}

/// What happens to a resource, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ResourceChange {
    /// Its last claim goes, and its policy destroys it.
    Deleted,
    /// Its last claim goes, and it is kept.
    Retained,
    /// It is no longer there.
    Gone,
    /// It was to be deleted or retained, and stays in use.
    Spared,
    /// It is new.
    Added,
    /// It takes part no longer, or again: its phase says how.
    Phase,
}

impl ResourceChange {
    /// For tables.
    pub fn words(self) -> &'static str {
        match self {
            ResourceChange::Deleted => "would be deleted",
            ResourceChange::Retained => "would be retained",
            ResourceChange::Gone => "gone",
            ResourceChange::Spared => "stays in use",
            ResourceChange::Added => "added",
            ResourceChange::Phase => "changes phase",
        }
    }
}

/// One resource that fares differently.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedResource {
    /// Where it is.
    pub namespace: Arc<str>,
    /// Its name.
    pub name: Arc<str>,
    /// What happens to it.
    pub change: ResourceChange,
    /// Its phase before; absent where it was not there.
    pub before: Option<&'static str>,
    /// Its phase after; absent where it is not there.
    pub after: Option<&'static str>,
    /// Who held it before, as `namespace/name`.
    pub held: Vec<String>,
}
