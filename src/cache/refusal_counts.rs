//! Counting why nothing fits: each resource under the first predicate that refuses it.
//! Whole classes, groups and shapes are counted by their size; single resources are checked only
//! where a demoted label leaves no other way.

use super::find::Search;
use super::index::{Cell, Group, Index, Pool};
use super::shape::Offers;
use crate::predicates::{Predicate, Query, STANDINGS, Standing};
use std::collections::BTreeMap;

/// How many resources there are, and how many each predicate refused. The counts add up to the total.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RefusalCounts {
    /// All resources of the type.
    pub total: usize,
    /// Refusals, each resource counted once.
    pub refused: BTreeMap<Predicate, usize>,
}

impl RefusalCounts {
    /// Counts one resource under another predicate than before.
    pub fn recount(&mut self, from: Predicate, to: Predicate) {
        if let Some(count) = self.refused.get_mut(&from) {
            *count -= 1;
            self.refused.retain(|_, count| *count > 0);
            self.add(to, 1);
        }
    }

    fn add(&mut self, predicate: Predicate, count: usize) {
        if count > 0 {
            *self.refused.entry(predicate).or_default() += count;
        }
    }
}

impl Index {
    /// Counts the refusals of `query` over all resources. Resources that would fit are in no count.
    pub fn count_refusals(&self, query: &Query<'_>) -> RefusalCounts {
        let mut counts = RefusalCounts { total: self.total, refused: BTreeMap::new() };
        let search = self.search(query);
        let (predicate, accepts) = self.keys.class;
        for (name, class) in &self.classes {
            if !accepts(&query.class, name.as_ref()) {
                counts.add(predicate, class.total);
                continue;
            }
            for (value, group) in &class.groups {
                match self.keys.group.map(|key| key.field) {
                    Some(key) if !key.accepts(query.wants, value) => counts.add(key.predicate, group.total),
                    _ => self.count_group(group, &search, &mut counts),
                }
            }
        }
        counts
    }

    fn count_group(&self, group: &Group, search: &Search<'_>, counts: &mut RefusalCounts) {
        let own = group.by_namespace.get(search.query.namespace).map(|at| &self.pools[*at]);
        counts.add(self.keys.namespaces, group.restricted - own.map_or(0, |pool| pool.total));
        for pool in group.open.map(|at| &self.pools[at]).into_iter().chain(own) {
            self.count_pool(pool, search, counts);
        }
    }

    fn count_pool(&self, pool: &Pool, search: &Search<'_>, counts: &mut RefusalCounts) {
        let mut of_pool = PoolCounts::new(search, self.attributes.len());
        let range = self.keys.range.map(|key| key.field);
        for cell in pool.unversioned.iter().chain(pool.versions.values()).map(|at| &self.cells[*at]) {
            match range {
                Some(key) if !key.accepts(search.query.wants, &cell.value) => {
                    counts.add(key.predicate, cell.total)
                }
                _ => self.count_cell(cell, search, &mut of_pool, counts),
            }
        }
        self.add_pool(of_pool, search, counts);
    }

    fn count_cell(
        &self,
        cell: &Cell,
        search: &Search<'_>,
        of_pool: &mut PoolCounts,
        counts: &mut RefusalCounts,
    ) {
        let may_fit = cell.offers.may_cover(&search.want);
        for place in &cell.shapes {
            match of_pool.verdict(search, place.attributes) {
                Some(question) => of_pool.questions[question] += place.total(),
                None if !search.residual.is_empty() => {
                    let members = self.shapes[place.shape].members.all();
                    let refusals = members.filter_map(|named| self.first_refusal(search.query, named.id));
                    refusals.for_each(|predicate| counts.add(predicate, 1));
                }
                None => {
                    for (at, count) in of_pool.withheld.iter_mut().enumerate() {
                        *count += place.count(Standing::Withheld(at as u8));
                    }
                    let fit =
                        |offers: &Offers| if may_fit { offers.fitting(&search.want).count() } else { 0 };
                    let members = &self.shapes[place.shape].members;
                    of_pool.short += place.count(Standing::Vacant) - fit(&members.vacant);
                    match search.shared_refusal {
                        Some(_) => of_pool.shared += place.count(Standing::Shared),
                        None => of_pool.short += place.count(Standing::Shared) - fit(&members.shared),
                    }
                }
            }
        }
    }

    fn add_pool(&self, of_pool: PoolCounts, search: &Search<'_>, counts: &mut RefusalCounts) {
        for ((predicate, _), count) in search.accepted.questions.iter().zip(of_pool.questions) {
            counts.add(*predicate, count);
        }
        for (place, predicate) in self.keys.withheld() {
            counts.add(predicate, of_pool.withheld[usize::from(place)]);
        }
        counts.add(self.keys.capacity, of_pool.short);
        search.shared_refusal.into_iter().for_each(|predicate| counts.add(predicate, of_pool.shared));
    }
}

/// Refusals in one pool, before they are added under their predicates.
struct PoolCounts {
    /// For each of the attributes the first question that refuses them, or [`PASSES`]; empty where there are too many.
    verdicts: Vec<u8>,
    /// By the first question that refuses.
    questions: Vec<usize>,
    withheld: [usize; STANDINGS],
    /// Too little left.
    short: usize,
    /// Held by others, where the claim does not join them.
    shared: usize,
}

const PASSES: u8 = u8::MAX;
/// With more distinct attributes than this, they are not all evaluated in advance.
const ATTRIBUTES_MAX: usize = 4096;

impl PoolCounts {
    fn new(search: &Search<'_>, attributes: usize) -> PoolCounts {
        let questions = search.accepted.questions.len();
        let in_advance = attributes <= ATTRIBUTES_MAX && questions < usize::from(PASSES);
        let verdict = |at: usize| search.accepted.first_refusal(at).map_or(PASSES, |question| question as u8);
        PoolCounts {
            verdicts: if in_advance { (0..attributes).map(verdict).collect() } else { Vec::new() },
            questions: vec![0; questions],
            withheld: [0; STANDINGS],
            short: 0,
            shared: 0,
        }
    }

    fn verdict(&self, search: &Search<'_>, attributes: usize) -> Option<usize> {
        match self.verdicts.get(attributes) {
            Some(&PASSES) => None,
            Some(question) => Some(usize::from(*question)),
            None => search.accepted.first_refusal(attributes),
        }
    }
}
