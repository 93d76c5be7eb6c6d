//! What a predicate decides on: a claim's query on one side, a resource on the other.

use super::{Headroom, Predicate, steps};
use crate::model::{Capacity, Name, ObjectKey, Offer, ResourcePhase, TypeId, Wants};
use std::borrow::Cow;

/// What a claim looks for: its wants, from its namespace, in one class.
#[derive(Clone, Copy, Debug)]
pub struct Query<'a> {
    /// The claim's namespace.
    pub namespace: &'a str,
    /// The class that is searched.
    pub class: ClassQuery<'a>,
    /// Everything else.
    pub wants: &'a Wants,
    /// What quotas leave, where they limit what the claim may hold. Only searches for a fit apply it: why a resource
    /// does not fit is another question.
    pub headroom: Option<&'a Headroom>,
}

/// Which class is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassQuery<'a> {
    /// Every class, and none.
    Any,
    /// This class, or where absent the resources that have none.
    Exactly(Option<&'a Name>),
    /// Any of these; an absent one stands for the resources that have none.
    OneOf(&'a [Option<Name>]),
}

/// A resource, as far as predicates decide on it.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// What it offers.
    pub offer: &'a Offer,
    /// How it stands to claims at large.
    pub standing: Standing,
    /// What it has left.
    pub free: Cow<'a, Capacity>,
}

/// A resource with what only sentences mention.
#[derive(Clone, Debug)]
pub struct Described<'a> {
    /// What predicates decide on.
    pub candidate: Candidate<'a>,
    /// Its name.
    pub name: &'a Name,
    /// Its phase, as its status shows it.
    pub phase: &'static str,
    /// The claims that hold it or have it reserved.
    pub holders: Vec<&'a ObjectKey>,
}

impl Described<'_> {
    /// The claims that hold it or have it reserved, as `namespace/name`.
    pub fn holder_names(&self) -> String {
        self.holders.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    }
}

/// How a resource stands to claims at large, whatever they want.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Offered, and no claim holds it.
    Vacant,
    /// Offered, and other claims hold it too.
    Shared,
    /// Not offered, by this one of the checks that key on a standing.
    Withheld(u8),
}

impl Standing {
    /// The predicate that withholds a resource of this standing.
    pub fn predicate(self, ty: TypeId) -> Option<Predicate> {
        let Standing::Withheld(place) = self else { return None };
        steps(ty).iter().find(|step| step.withheld() == Some(place)).map(|step| step.predicate)
    }
}

/// What decides how a resource stands to claims at large.
#[derive(Clone, Copy, Debug)]
pub struct Occupancy<'a> {
    /// What it offers.
    pub offer: &'a Offer,
    /// Whether an administrator has marked it unschedulable.
    pub is_cordoned: bool,
    /// The phase in its status.
    pub phase: Option<ResourcePhase>,
    /// Whether what it stands for exists.
    pub is_implemented: bool,
    /// Whether it is being deleted.
    pub is_deleting: bool,
    /// Whether every claim that held it was deleted.
    pub is_released: bool,
    /// How many claims hold it or have it reserved.
    pub holders: usize,
    /// Whether what one of its holders has is for that claim alone.
    pub is_exclusive: bool,
}
