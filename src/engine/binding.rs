//! The states of a claim's binding.

use crate::model::Name;
use crate::predicates::Refusal;
use std::sync::Arc;

/// How far a claim's binding is, both sides considered.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// It waits; the refusal says why, once the claim has been decided about.
    Waiting(Option<Refused>),
    /// A resource was chosen for it; the write that commits the binding is in flight.
    Assumed {
        /// The resource's name.
        resource: Name,
        /// The class that it counts under.
        class: Option<Name>,
        /// The count of helpful events at the decision: after a later one a failed write is retried at once.
        since: u64,
    },
    /// A resource is being provisioned for it.
    Provisioning {
        /// The class that provisions it.
        class: Name,
        /// The resource's name.
        resource: Name,
    },
    /// The resource holds it.
    Bound {
        /// The resource's name.
        resource: Name,
    },
    /// Its resource was lost.
    Lost {
        /// The reason for its condition.
        reason: &'static str,
        /// The message for its condition.
        message: String,
    },
    /// It is being deleted.
    Leaving,
    /// It is bound to a resource in a namespace that this engine does not manage. Nothing is concluded about it and
    /// nothing is written to it: another controller manages it, or this one runs with a wrong system namespace.
    Unmanaged {
        /// The resource's namespace.
        namespace: Name,
        /// The resource's name.
        resource: Name,
    },
}

/// A binding without its details, to be counted by.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimState {
    /// It has a resource, or one was chosen for it.
    Bound,
    /// A resource is being provisioned for it.
    Provisioning,
    /// It waits: the reason, once it has been decided about.
    Waiting(Option<&'static str>),
    /// Its resource was lost.
    Lost,
    /// It is being deleted.
    Leaving,
    /// It is bound to a resource in a namespace that this engine does not manage.
    Unmanaged,
}

impl Binding {
    pub(super) fn state(&self) -> ClaimState {
        match self {
            Binding::Bound { .. } | Binding::Assumed { .. } => ClaimState::Bound,
            Binding::Provisioning { .. } => ClaimState::Provisioning,
            Binding::Waiting(refused) => ClaimState::Waiting(refused.as_ref().map(|refused| refused.reason)),
            Binding::Lost { .. } => ClaimState::Lost,
            Binding::Leaving => ClaimState::Leaving,
            Binding::Unmanaged { .. } => ClaimState::Unmanaged,
        }
    }

    /// The resource that holds the claim, if one does.
    pub(super) fn bound_to(&self) -> Option<&Name> {
        match self {
            Binding::Bound { resource } => Some(resource),
            Binding::Waiting(_)
            | Binding::Assumed { .. }
            | Binding::Provisioning { .. }
            | Binding::Lost { .. }
            | Binding::Leaving
            | Binding::Unmanaged { .. } => None,
        }
    }
}

/// The refusal of a claim, as its condition says it.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// The reason for its condition.
    pub reason: &'static str,
    /// What was refused, by which predicates, and the message.
    pub refusal: Arc<Refusal>,
}
