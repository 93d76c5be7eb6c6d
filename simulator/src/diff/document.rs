//! The differences between two plans, as printed. Nothing is computed here.

#![allow(missing_docs, reason = "the fields are named as in the printed document")]

use crate::plan::{Outcome, ResourceRef};
use serde::Serialize;
use std::sync::Arc;

/// All differences between two plans.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// Sorted by namespace, name, kind.
    pub claims: Vec<ChangedClaim>,
    /// Sorted by namespace, name.
    pub resources: Vec<ChangedResource>,
}

impl Difference {
    /// Whether the plans agree.
    pub fn is_empty(&self) -> bool {
        self.claims.is_empty() && self.resources.is_empty()
    }
}

/// How a claim's outcome changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ClaimChange {
    /// Its resource no longer exists.
    Lost,
    /// It was served and now waits.
    Waits,
    /// It is being deleted.
    Leaves,
    /// It no longer exists.
    Removed,
    /// It is bound to another resource.
    Moved,
    /// It is bound to an existing resource.
    NewlyBound,
    /// A class provisions a resource for it.
    Provisioned,
    /// It was lost or being deleted, and now waits.
    Returns,
    /// It is new.
    Added,
}

impl ClaimChange {
    /// The text for tables.
    pub fn label(self) -> &'static str {
        match self {
            ClaimChange::Lost => "lost",
            ClaimChange::Waits => "waits",
            ClaimChange::Leaves => "being deleted",
            ClaimChange::Removed => "removed",
            ClaimChange::Moved => "moved",
            ClaimChange::NewlyBound => "newly bound",
            ClaimChange::Provisioned => "provisioned",
            ClaimChange::Returns => "returns",
            ClaimChange::Added => "added",
        }
    }
}

/// A claim whose outcome changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedClaim {
    pub kind: &'static str,
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// How its outcome changes.
    pub change: ClaimChange,
    /// Its result before; `None` if it did not exist.
    pub before: Option<ClaimResult>,
    /// Its result after; `None` if it no longer exists.
    pub after: Option<ClaimResult>,
    /// The rule that changed it.
    pub cause: Cause,
}

/// A claim's result in one plan.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ClaimResult {
    pub outcome: Outcome,
    /// The resource that it is bound to.
    pub resource: Option<ResourceRef>,
    /// The class that provisions its resource, or that its binding counts under.
    pub class: Option<Arc<str>>,
    pub message: Arc<str>,
}

/// Why a claim's outcome changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Cause {
    /// A predicate, or one of Added, Gone, Deleted, Preference.
    pub rule: String,
    pub message: String,
}

impl Cause {
    /// A cause from its rule and message.
    pub fn new(rule: impl Into<String>, message: impl Into<String>) -> Cause {
        Cause { rule: rule.into(), message: message.into() }
    }
}

/// How a resource changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub enum ResourceChange {
    /// Its last claim leaves, and its reclaim policy deletes it.
    Deleted,
    /// Its last claim leaves, and its reclaim policy retains it.
    Retained,
    /// It no longer exists.
    Gone,
    /// It was to be deleted or retained, and now stays in use.
    Spared,
    /// It is new.
    Added,
    /// Its phase changes other than between Bound and Available.
    Phase,
}

impl ResourceChange {
    /// The text for tables.
    pub fn label(self) -> &'static str {
        match self {
            ResourceChange::Deleted => "would be deleted",
            ResourceChange::Retained => "would be retained",
            ResourceChange::Gone => "removed",
            ResourceChange::Spared => "stays in use",
            ResourceChange::Added => "added",
            ResourceChange::Phase => "changes phase",
        }
    }
}

/// A resource that changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChangedResource {
    pub namespace: Arc<str>,
    pub name: Arc<str>,
    /// How it changes.
    pub change: ResourceChange,
    /// Its phase before; `None` if it did not exist.
    pub before: Option<&'static str>,
    /// Its phase after; `None` if it no longer exists.
    pub after: Option<&'static str>,
    /// Claims that held it before, as `namespace/name`.
    pub held: Vec<String>,
}
