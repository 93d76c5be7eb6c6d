//! What a write changes, and what is reconciled as one object.

use crate::cache::QuotaKey;
use crate::model::{Name, ObjectKey, PartId, Slot, TypeId, Uid};

/// One object that is reconciled: at most one write to it is in flight.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(in crate::engine) enum Target {
    Claim(Uid),
    Resource(TypeId, Name),
    Class(TypeId, Name),
    Quota(QuotaKey),
    Part(PartId),
    /// The objects that are published for a claim, together.
    Publication(Uid),
    /// One published object of a claim, while it is withdrawn.
    Published(Uid, Slot, ObjectKey),
}

/// What a write does to its target.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::engine) enum Effect {
    /// It creates or changes the object.
    Change,
    /// It deletes the object.
    Deletion,
}
