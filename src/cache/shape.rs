//! A shape: all resources that no claim can tell apart but by capacity, state and name.
//! Static questions (class, engine, version, labels) are asked once per shape instead of once per resource.

use super::index::{ResourceId, Standing};
use crate::model::{Capacity, FieldValue, Labels, Name, Quantity};
use std::collections::BTreeSet;
use std::ops::Bound;
use std::sync::Arc;

/// What the resources of a shape have in common.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct ShapeKey {
    pub class: Option<Name>,
    /// The one namespace that these are open to; absent means all.
    pub namespace: Option<Name>,
    pub fields: Box<[FieldValue]>,
    /// Labels, without the keys that the index has demoted.
    pub labels: Labels,
}

/// A resource among others of its shape, ordered by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named {
    pub name: Name,
    pub id: ResourceId,
}

/// What a resource has left. The primary capacity stands apart because fit is judged by it first.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Free {
    pub primary: Quantity,
    /// The other capacities; absent where there are none.
    pub rest: Option<Arc<Capacity>>,
}

impl Free {
    pub fn of(capacity: &Capacity) -> Free {
        let (primary, rest) = capacity.split_primary();
        Free { primary, rest: (!rest.is_empty()).then(|| Arc::new(rest)) }
    }

    pub fn covers(&self, want: &Free) -> bool {
        let rest = match (&self.rest, &want.rest) {
            (_, None) => true,
            (None, Some(_)) => false,
            (Some(have), Some(want)) => have.covers(want),
        };
        rest && want.primary <= self.primary
    }
}

/// An offered resource in best-fit order: least left over first, then name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct OfferKey {
    pub free: Free,
    pub who: Who,
}

/// A resource, or a point before or after all resources that have the same left.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Who {
    Lowest,
    At(Named),
    Highest,
}

/// The members of one shape, by standing.
#[derive(Debug, Default)]
pub(super) struct Members {
    /// Offered, held by nobody.
    pub vacant: BTreeSet<OfferKey>,
    /// Offered, held by others already.
    pub shared: BTreeSet<OfferKey>,
    /// Not offered, by reason.
    withheld: [BTreeSet<Named>; Standing::WITHHELD.len()],
}

impl Members {
    pub fn len(&self) -> usize {
        self.vacant.len() + self.shared.len() + self.withheld.iter().map(BTreeSet::len).sum::<usize>()
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    pub fn withheld(&self, standing: Standing) -> Option<&BTreeSet<Named>> {
        standing.withheld_at().map(|at| &self.withheld[at])
    }

    pub fn insert(&mut self, named: Named, standing: Standing, free: &Free) {
        match standing {
            Standing::Vacant => self.vacant.insert(OfferKey { free: free.clone(), who: Who::At(named) }),
            Standing::Shared => self.shared.insert(OfferKey { free: free.clone(), who: Who::At(named) }),
            Standing::Phase | Standing::Cordoned | Standing::Reserved | Standing::Full => {
                standing.withheld_at().is_some_and(|at| self.withheld[at].insert(named))
            }
        };
    }

    pub fn remove(&mut self, named: Named, standing: Standing, free: &Free) {
        match standing {
            Standing::Vacant => self.vacant.remove(&OfferKey { free: free.clone(), who: Who::At(named) }),
            Standing::Shared => self.shared.remove(&OfferKey { free: free.clone(), who: Who::At(named) }),
            Standing::Phase | Standing::Cordoned | Standing::Reserved | Standing::Full => {
                standing.withheld_at().is_some_and(|at| self.withheld[at].remove(&named))
            }
        };
    }

    /// Every member, whatever its standing, in no meaningful order.
    pub fn all(&self) -> impl Iterator<Item = &Named> {
        let offered = self.vacant.iter().chain(&self.shared).filter_map(|key| match &key.who {
            Who::At(named) => Some(named),
            Who::Lowest | Who::Highest => None,
        });
        offered.chain(self.withheld.iter().flatten())
    }
}

/// The offered resources of `set` that cover `want`, best fit first. Where one amount left does not
/// do, every resource with that amount is skipped in one step.
pub(super) fn fitting<'a>(
    set: &'a BTreeSet<OfferKey>,
    want: &Free,
) -> impl Iterator<Item = (&'a Free, &'a Named)> {
    let start = OfferKey { free: Free { primary: want.primary, rest: None }, who: Who::Lowest };
    let mut cursor = set.range(start..);
    std::iter::from_fn(move || {
        loop {
            let key = cursor.next()?;
            if key.free.covers(want) {
                if let Who::At(named) = &key.who {
                    return Some((&key.free, named));
                }
            } else {
                cursor = set.range((Bound::Excluded(end_of(&key.free)), Bound::Unbounded));
            }
        }
    })
}

/// The first fitting resource of each distinct amount left.
pub(super) fn fitting_amounts<'a>(
    set: &'a BTreeSet<OfferKey>,
    want: &Free,
) -> impl Iterator<Item = (&'a Free, &'a Named)> {
    let mut next = fitting(set, want).next();
    std::iter::from_fn(move || {
        let found = next.take()?;
        let beyond = set.range((Bound::Excluded(end_of(found.0)), Bound::Unbounded));
        next = beyond
            .filter_map(|key| match &key.who {
                Who::At(named) if key.free.covers(want) => Some((&key.free, named)),
                Who::At(_) | Who::Lowest | Who::Highest => None,
            })
            .next();
        Some(found)
    })
}

fn end_of(free: &Free) -> OfferKey {
    OfferKey { free: free.clone(), who: Who::Highest }
}
