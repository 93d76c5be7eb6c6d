//! Counting why nothing fits: each resource under the first predicate that refuses it.
//! Whole classes, groups and shapes are counted by their size; single resources are looked at only
//! where a demoted label leaves no other way.

use super::find::{Ask, Search};
use super::index::{Cell, Group, Index, Pool, Standing};
use super::shape::Offers;
use crate::model::{FieldWant, Predicate};
use std::collections::BTreeMap;

/// How many resources there are, and how many each predicate refused. The counts add up to the total.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tally {
    /// All resources of the type.
    pub total: usize,
    /// Refusals, each resource counted once.
    pub refused: BTreeMap<Predicate, usize>,
}

impl Tally {
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
    /// Counts the refusals of `ask` over all resources. Resources that would fit are in no count.
    pub fn tally(&self, ask: &Ask<'_>) -> Tally {
        let mut tally = Tally { total: self.total, refused: BTreeMap::new() };
        let search = self.search(ask);
        let group_field =
            self.group_field.map(|at| (&ask.wants.fields[at], self.ty.rules().fields[at].predicate));
        for (name, class) in &self.classes {
            if !ask.class.accepts(name.as_ref()) {
                tally.add(Predicate::Class, class.total);
                continue;
            }
            for (engine, group) in &class.groups {
                match group_field {
                    Some((FieldWant::Name(want), predicate)) if engine.as_ref() != Some(want) => {
                        tally.add(predicate, group.total);
                    }
                    _ => self.tally_group(group, &search, &mut tally),
                }
            }
        }
        tally
    }

    fn tally_group(&self, group: &Group, search: &Search<'_>, tally: &mut Tally) {
        let mine = group.by_namespace.get(search.ask.namespace).map(|at| &self.pools[*at]);
        tally.add(Predicate::Sharing, group.restricted - mine.map_or(0, |pool| pool.total));
        for pool in group.open.map(|at| &self.pools[at]).into_iter().chain(mine) {
            self.tally_pool(pool, search, tally);
        }
    }

    fn tally_pool(&self, pool: &Pool, search: &Search<'_>, tally: &mut Tally) {
        let range =
            self.version_field.map(|at| (&search.ask.wants.fields[at], self.ty.rules().fields[at].predicate));
        let mut counts = Counts::new(search, self.looks.len());
        let versioned = pool.versions.iter().map(|(version, cell)| (Some(version), *cell));
        for (version, cell) in pool.unversioned.map(|cell| (None, cell)).into_iter().chain(versioned) {
            match range {
                Some((FieldWant::Range(range), predicate)) if !version.is_some_and(|v| range.matches(v)) => {
                    tally.add(predicate, self.cells[cell].total);
                }
                _ => self.tally_cell(&self.cells[cell], search, &mut counts, tally),
            }
        }
        counts.add_to(search, tally);
    }

    fn tally_cell(&self, cell: &Cell, search: &Search<'_>, counts: &mut Counts, tally: &mut Tally) {
        let may_fit = cell.offers.may_cover(&search.want);
        for place in &cell.shapes {
            match counts.verdict(search, place.look) {
                Some(question) => counts.questions[question] += place.total(),
                None if !search.residual.is_empty() => {
                    let members = self.shapes[place.shape].members.all();
                    let refusals = members.filter_map(|named| self.first_refusal(search.ask, named.id));
                    refusals.for_each(|predicate| tally.add(predicate, 1));
                }
                None => {
                    for (count, standing) in counts.withheld.iter_mut().zip(Standing::WITHHELD) {
                        *count += place.count(standing);
                    }
                    let fit =
                        |offers: &Offers| if may_fit { offers.fitting(&search.want).count() } else { 0 };
                    let members = &self.shapes[place.shape].members;
                    counts.short += place.count(Standing::Vacant) - fit(&members.vacant);
                    if search.ask.wants.exclusive {
                        counts.shared += place.count(Standing::Shared);
                    } else {
                        counts.short += place.count(Standing::Shared) - fit(&members.shared);
                    }
                }
            }
        }
    }
}

/// Refusals in one pool, before they are put under their predicates.
struct Counts {
    /// For each look the first question that refuses it, or [`PASSES`]; empty where there are too many looks.
    verdicts: Vec<u8>,
    /// By the question about looks that is the first to refuse.
    questions: Vec<usize>,
    withheld: [usize; Standing::WITHHELD.len()],
    /// Too little left.
    short: usize,
    /// Held by others, and the claim wants no company.
    shared: usize,
}

const PASSES: u8 = u8::MAX;
/// Above so many looks, not each of them is asked in advance.
const LOOKS_ASKED_MAX: usize = 4096;

impl Counts {
    fn new(search: &Search<'_>, looks: usize) -> Counts {
        let questions = search.accepted.questions.len();
        let in_advance = looks <= LOOKS_ASKED_MAX && questions < usize::from(PASSES);
        let verdict = |look: u32| search.accepted.first_refusal(look).map_or(PASSES, |at| at as u8);
        Counts {
            verdicts: if in_advance { (0..looks as u32).map(verdict).collect() } else { Vec::new() },
            questions: vec![0; questions],
            withheld: [0; Standing::WITHHELD.len()],
            short: 0,
            shared: 0,
        }
    }

    fn verdict(&self, search: &Search<'_>, look: u32) -> Option<usize> {
        match self.verdicts.get(look as usize) {
            Some(&PASSES) => None,
            Some(question) => Some(usize::from(*question)),
            None => search.accepted.first_refusal(look),
        }
    }

    fn add_to(self, search: &Search<'_>, tally: &mut Tally) {
        for ((predicate, _), count) in search.accepted.questions.iter().zip(self.questions) {
            tally.add(*predicate, count);
        }
        for (standing, count) in Standing::WITHHELD.into_iter().zip(self.withheld) {
            standing.predicate().into_iter().for_each(|predicate| tally.add(predicate, count));
        }
        tally.add(Predicate::Capacity, self.short);
        tally.add(Predicate::Sharing, self.shared);
    }
}
