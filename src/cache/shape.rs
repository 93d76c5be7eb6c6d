//! The resources of one shape, which no claim can tell apart but by capacity, state and name, in best-fit order.
//! The shape answers static questions (class, engine, version, labels), not this.

use super::index::ResourceId;
use super::ordered::{Ordered, Walk};
use crate::model::{Capacity, Name, Quantity};
use crate::predicates::{STANDINGS, Standing};
use std::collections::BTreeSet;
use std::sync::Arc;

/// A resource among others of its shape, ordered by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Named {
    pub name: Name,
    pub id: ResourceId,
}

/// What a resource has left. The primary capacity stands apart because fit is judged by it first.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
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

    /// Raises every amount to at least that of `other`.
    fn raise(&mut self, other: &Free) {
        self.primary = self.primary.max(other.primary);
        let rest = match (&self.rest, &other.rest) {
            (_, None) => return,
            (None, Some(rest)) => rest.clone(),
            (Some(ours), Some(theirs)) if ours.covers(theirs) => return,
            (Some(ours), Some(theirs)) => Arc::new(ours.larger_of_each(theirs)),
        };
        self.rest = Some(rest);
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

/// Offered resources in best-fit order, each with a note.
#[derive(Clone, Debug)]
pub(super) struct Offers<N = ()> {
    keys: Ordered<OfferKey, N>,
    /// No resource here has more left than this of anything; spares searches that must fail.
    ceiling: Free,
}

impl<N> Default for Offers<N> {
    fn default() -> Self {
        Offers { keys: Ordered::default(), ceiling: Free::default() }
    }
}

/// The members of one shape, by standing.
#[derive(Clone, Debug, Default)]
pub(super) struct Members {
    /// Offered, held by no claim.
    pub vacant: Offers,
    /// Offered, held by others already.
    pub shared: Offers,
    /// Not offered, by reason.
    withheld: [BTreeSet<Named>; STANDINGS],
}

impl Members {
    pub fn withheld(&self, place: u8) -> &BTreeSet<Named> {
        &self.withheld[usize::from(place)]
    }

    pub fn insert(&mut self, named: Named, standing: Standing, free: &Free) {
        match standing {
            Standing::Vacant => self.vacant.insert(named, free, ()),
            Standing::Shared => self.shared.insert(named, free, ()),
            Standing::Withheld(place) => drop(self.withheld[usize::from(place)].insert(named)),
        }
    }

    pub fn remove(&mut self, named: Named, standing: Standing, free: &Free) {
        match standing {
            Standing::Vacant => self.vacant.remove(named, free),
            Standing::Shared => self.shared.remove(named, free),
            Standing::Withheld(place) => drop(self.withheld[usize::from(place)].remove(&named)),
        }
    }

    /// Every member, whatever its standing, in no meaningful order.
    pub fn all(&self) -> impl Iterator<Item = &Named> {
        let offered =
            self.vacant.keys.iter().chain(self.shared.keys.iter()).filter_map(|(key, ())| match &key.who {
                Who::At(named) => Some(named),
                Who::Lowest | Who::Highest => None,
            });
        offered.chain(self.withheld.iter().flatten())
    }
}

impl<N> Offers<N> {
    pub fn insert(&mut self, named: Named, free: &Free, note: N) {
        self.ceiling.raise(free);
        self.keys.insert(OfferKey { free: free.clone(), who: Who::At(named) }, note);
    }

    pub fn remove(&mut self, named: Named, free: &Free) {
        self.keys.remove(&OfferKey { free: free.clone(), who: Who::At(named) });
        // Lowering it needs a look at all the others, so that is left until there are none.
        if self.keys.is_empty() {
            self.ceiling = Free::default();
        }
    }

    /// Whether one of them might cover `want`. Where not, none does.
    pub fn may_cover(&self, want: &Free) -> bool {
        self.ceiling.covers(want)
    }

    /// The offered resources from the first that could cover `want` on, best fit first; none where none can.
    pub fn from<'a>(&'a self, want: &Free) -> impl Iterator<Item = (&'a Free, &'a Named, &'a N)> {
        let offers = self.may_cover(want).then(|| self.keys.from(&start_of(want)));
        offers.into_iter().flatten().filter_map(|(key, note)| match &key.who {
            Who::At(named) => Some((&key.free, named, note)),
            Who::Lowest | Who::Highest => None,
        })
    }

    /// The offered resources that cover `want`, best fit first. Where many in a row have the same and too
    /// little left, the others who have it are skipped.
    pub fn fitting<'a>(&'a self, want: &Free) -> impl Iterator<Item = (&'a Free, &'a Named)> {
        const SKIP_AFTER: usize = 8;
        let mut cursor = self.may_cover(want).then(|| self.keys.from(&start_of(want)));
        let mut short: Option<(&Free, usize)> = None;
        std::iter::from_fn(move || {
            loop {
                let (key, _) = cursor.as_mut()?.next()?;
                if let (true, Who::At(named)) = (key.free.covers(want), &key.who) {
                    return Some((&key.free, named));
                }
                let before = short.filter(|(free, _)| **free == key.free).map_or(0, |(_, before)| before);
                short = Some((&key.free, before + 1));
                if before + 1 == SKIP_AFTER {
                    cursor = Some(self.beyond(&key.free));
                }
            }
        })
    }

    /// The first fitting resource of each distinct amount left.
    pub fn fitting_amounts<'a>(&'a self, want: &Free) -> impl Iterator<Item = (&'a Free, &'a Named)> {
        let mut next = self.fitting(want).next();
        std::iter::from_fn(move || {
            let found = next.take()?;
            next = self
                .beyond(found.0)
                .filter_map(|(key, _)| match &key.who {
                    Who::At(named) if key.free.covers(want) => Some((&key.free, named)),
                    Who::At(_) | Who::Lowest | Who::Highest => None,
                })
                .next();
            Some(found)
        })
    }

    /// Everything that has more left than `free`, in best-fit order.
    fn beyond(&self, free: &Free) -> Walk<'_, OfferKey, N> {
        self.keys.beyond(&OfferKey { free: free.clone(), who: Who::Highest })
    }
}

/// Nothing that covers `want` comes before this: who has at least as much of everything is not smaller.
fn start_of(want: &Free) -> OfferKey {
    OfferKey { free: want.clone(), who: Who::Lowest }
}
