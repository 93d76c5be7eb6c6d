//! Counting why nothing fits: each resource under the first predicate that refuses it.
//! Whole classes, groups and shapes are counted by their size; single resources are looked at only
//! where a demoted label leaves no other way.

use super::find::Ask;
use super::index::{Group, Index, Shape, Standing, Versions};
use super::shape::Free;
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
                    _ => self.tally_group(group, ask, &mut tally),
                }
            }
        }
        tally
    }

    fn tally_group(&self, group: &Group, ask: &Ask<'_>, tally: &mut Tally) {
        let mine = group.by_namespace.get(ask.namespace);
        tally.add(Predicate::Sharing, group.restricted - mine.map_or(0, |versions| versions.total));
        for versions in [Some(&group.open), mine].into_iter().flatten() {
            self.tally_versions(versions, ask, tally);
        }
    }

    fn tally_versions(&self, versions: &Versions, ask: &Ask<'_>, tally: &mut Tally) {
        let range =
            self.version_field.map(|at| (&ask.wants.fields[at], self.ty.rules().fields[at].predicate));
        let versioned = versions.versions.iter().flat_map(|(v, ids)| ids.iter().map(move |id| (Some(v), id)));
        for (version, id) in versions.unversioned.iter().map(|id| (None, id)).chain(versioned) {
            let shape = &self.shapes[*id];
            match range {
                Some((FieldWant::Range(range), predicate)) if !version.is_some_and(|v| range.matches(v)) => {
                    tally.add(predicate, shape.members.len());
                }
                _ => self.tally_shape(shape, ask, tally),
            }
        }
    }

    fn tally_shape(&self, shape: &Shape, ask: &Ask<'_>, tally: &mut Tally) {
        if let Some(predicate) = self.shape_refusal(shape, ask) {
            return tally.add(predicate, shape.members.len());
        }
        if !self.residual(ask).is_empty() {
            let refusals = shape.members.all().filter_map(|named| self.first_refusal(ask, named.id));
            return refusals.for_each(|predicate| tally.add(predicate, 1));
        }
        for standing in Standing::WITHHELD {
            if let (Some(predicate), Some(names)) = (standing.predicate(), shape.members.withheld(standing)) {
                tally.add(predicate, names.len());
            }
        }
        let want = Free::of(&ask.wants.requests);
        let short = |set: &std::collections::BTreeSet<super::shape::OfferKey>| {
            set.len() - super::shape::fitting(set, &want).count()
        };
        tally.add(Predicate::Capacity, short(&shape.members.vacant));
        if ask.wants.exclusive {
            tally.add(Predicate::Sharing, shape.members.shared.len());
        } else {
            tally.add(Predicate::Capacity, short(&shape.members.shared));
        }
    }
}
