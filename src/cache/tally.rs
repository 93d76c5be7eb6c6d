//! Counting why nothing fits: each resource under the first predicate that refuses it.
//! Whole classes, groups and shapes are counted by their size; single resources are looked at only
//! where a demoted label leaves no other way.

use super::find::{Ask, Search};
use super::index::{CellId, Group, Index, Pool, Shape, Standing};
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
        let mut questions = vec![0; search.accepted.questions.len()];
        let versioned = pool.versions.iter().map(|(version, cell)| (Some(version), *cell));
        for (version, cell) in pool.unversioned.map(|cell| (None, cell)).into_iter().chain(versioned) {
            match range {
                Some((FieldWant::Range(range), predicate)) if !version.is_some_and(|v| range.matches(v)) => {
                    tally.add(predicate, self.cells[cell].total);
                }
                _ => self.tally_cell(cell, search, &mut questions, tally),
            }
        }
        for ((predicate, _), count) in search.accepted.questions.iter().zip(questions) {
            tally.add(*predicate, count);
        }
    }

    /// Counts, for each question about looks, the resources that it is the first to refuse; the rest of the
    /// cell goes to the tally at once.
    fn tally_cell(&self, cell: CellId, search: &Search<'_>, questions: &mut [usize], tally: &mut Tally) {
        for place in &self.cells[cell].shapes {
            match search.accepted.first_refusal(place.look) {
                Some(question) => questions[question] += place.total,
                None => self.tally_shape(&self.shapes[place.shape], search, tally),
            }
        }
    }

    fn tally_shape(&self, shape: &Shape, search: &Search<'_>, tally: &mut Tally) {
        if !search.residual.is_empty() {
            let refusals = shape.members.all().filter_map(|named| self.first_refusal(search.ask, named.id));
            return refusals.for_each(|predicate| tally.add(predicate, 1));
        }
        for standing in Standing::WITHHELD {
            if let (Some(predicate), Some(names)) = (standing.predicate(), shape.members.withheld(standing)) {
                tally.add(predicate, names.len());
            }
        }
        let short = |offers: &Offers| offers.len() - offers.fitting(&search.want).count();
        tally.add(Predicate::Capacity, short(&shape.members.vacant));
        if search.ask.wants.exclusive {
            tally.add(Predicate::Sharing, shape.members.shared.len());
        } else {
            tally.add(Predicate::Capacity, short(&shape.members.shared));
        }
    }
}
