//! Searching the index: the best fit of a query, or every distinct fit for scoring.
//!
//! Two ways lead to the best fit of a cell. Where much fits, it is soon met in the cell's own best-fit order.
//! Where little does, only the shapes whose static answers are yes are opened, and the first fit of each compared.

use super::attribute_index::Accepted;
use super::index::{Cell, CellId, ClassIndex, Group, Index, Member, Pool, ResourceId, Shape};
use super::shape::{Free, Named};
use crate::model::selector::Requirement;
use crate::model::{Capacity, FieldValue, Name, Quantity, Version};
use crate::predicates::{Candidate, ClassQuery, Predicate, Query, Standing};
use std::borrow::Cow;
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// What is better among fits that leave equally much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// The newest version rather than the oldest.
    pub newest: bool,
}

/// The resource that a search ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// The resource.
    pub resource: ResourceId,
    /// Whether others hold it too.
    pub shared: bool,
}

/// One of the resources that fit, as scores see it.
#[derive(Clone, Debug)]
pub struct Fit<'a> {
    /// The resource.
    pub resource: ResourceId,
    /// Its name.
    pub name: &'a Name,
    /// Its version.
    pub version: Option<&'a Version>,
    /// How many claims hold it.
    pub held: u32,
    /// What it has of the primary capacity before this claim.
    pub free_primary: Quantity,
    pub(super) free: &'a Free,
    member: &'a Member,
}

impl<'a> Fit<'a> {
    /// Everything it has left.
    pub fn free(&self) -> Capacity {
        let capacity = &self.member.offer.capacity;
        capacity.saturating_sub(&self.member.taken)
    }

    /// The value of one of its labels.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        self.member.offer.labels.get(key)
    }

    /// Best fit: least left over, then version by preference, then name.
    pub fn compare(&self, other: &Fit<'_>, prefer: Preference) -> Ordering {
        (self.free.cmp(other.free))
            .then_with(|| version_order(self.version, other.version, prefer))
            .then_with(|| self.name.cmp(other.name))
    }
}

fn version_order(a: Option<&Version>, b: Option<&Version>, prefer: Preference) -> Ordering {
    if prefer.newest { b.cmp(&a) } else { a.cmp(&b) }
}

/// A query made ready: what attributes and resources are compared with.
pub(super) struct Search<'a> {
    pub query: &'a Query<'a>,
    pub want: Free,
    pub accepted: Accepted,
    /// The requirements of which each resource is checked, because their label does not separate shapes.
    pub residual: Vec<&'a Requirement>,
    /// The predicate that keeps the claim from resources that others hold, where one does.
    pub shared_refusal: Option<Predicate>,
}

/// What may be found: resources that no claim holds, resources that others hold.
#[derive(Clone, Copy)]
struct Either {
    vacant: bool,
    shared: bool,
}

/// The best of what has been considered.
struct Best<'a> {
    candidate: Option<Fit<'a>>,
    prefer: Preference,
}

impl<'a> Best<'a> {
    fn consider(&mut self, candidate: Option<Fit<'a>>) {
        if let Some(candidate) = candidate
            && self.candidate.as_ref().is_none_or(|best| candidate.compare(best, self.prefer).is_lt())
        {
            self.candidate = Some(candidate);
        }
    }
}

/// After so many offers of a cell, its shapes are opened instead.
const WALK_MAX: usize = 256;

impl Index {
    pub(super) fn search<'a>(&self, query: &'a Query<'a>) -> Search<'a> {
        let demoted = |r: &Requirement| self.demoted.contains_key(&r.key);
        let requirements = query.wants.selector.requirements().iter();
        Search {
            query,
            want: Free::of(&query.wants.requests),
            accepted: self.attributes.accepted(&self.keys, query.wants, |r| !demoted(r)),
            residual: requirements.filter(|r| demoted(r)).collect(),
            shared_refusal: self.keys.refuses_shared(query.wants),
        }
    }

    /// The best fit among resources that no claim holds (`vacant`) and that others hold (`shared`).
    pub fn find_best(
        &self,
        query: &Query<'_>,
        vacant: bool,
        shared: bool,
        prefer: Preference,
    ) -> Option<Found> {
        let search = self.search(query);
        let either = Either { vacant, shared: shared && search.shared_refusal.is_none() };
        let mut best = Best { candidate: None, prefer };
        if let Some(posting) = self.short_posting(&search.residual) {
            let wanted = |id: &ResourceId| match self.standing(*id) {
                Some(Standing::Vacant) => either.vacant,
                Some(Standing::Shared) => either.shared,
                _ => false,
            };
            let fits = |id: &ResourceId| {
                wanted(id) && self.first_refusal(query, *id).is_none() && self.is_within_quotas(query, *id)
            };
            posting.into_iter().filter(fits).for_each(|id| best.consider(self.fit(id)));
        } else if !search.accepted.all.is_empty() {
            self.each_pool(query, |pool| {
                self.each_cell_in_range(pool, &search, |cell| {
                    self.best_of_cell(&self.cells[cell], &search, either, &mut best);
                });
            });
        }
        let shared = |c: &Fit<'_>| c.member.standing == Standing::Shared;
        best.candidate.map(|candidate| Found { resource: candidate.resource, shared: shared(&candidate) })
    }

    /// Considers the best fit of a cell. Its offers are gone through best fit first until one fits or none
    /// can be better than what is known; where what fits is rare, its shapes are opened instead.
    fn best_of_cell<'a>(&'a self, cell: &Cell, search: &Search<'_>, either: Either, best: &mut Best<'a>) {
        for (step, (free, named, by)) in cell.offers.from(&search.want).enumerate() {
            let known = best.candidate.as_ref().map(|best| best.free);
            if known.is_some_and(|known| known.primary < free.primary) {
                return;
            }
            if step == WALK_MAX {
                return self.each_shape_of_cell(cell, search, |shape| {
                    let fits = self.first_fits(shape, search, either);
                    fits.for_each(|id| best.consider(self.fit(id)));
                });
            }
            // The attributes first: they are at hand, while the other capacities are a jump away.
            let wanted = if by.shared { either.shared } else { either.vacant };
            if !wanted || !search.accepted.all.contains(by.attributes) {
                continue;
            }
            if known.is_some_and(|known| known < free) {
                return;
            }
            if free.covers(&search.want) && self.passes(search, named.id) {
                return best.consider(self.fit(named.id));
            }
        }
    }

    /// The first fit of a shape among those that no claim holds, and among those that others hold.
    fn first_fits<'a>(
        &'a self,
        shape: &'a Shape,
        search: &'a Search<'_>,
        either: Either,
    ) -> impl Iterator<Item = ResourceId> {
        let sets = [(either.vacant, &shape.members.vacant), (either.shared, &shape.members.shared)];
        sets.into_iter().filter(|(wanted, _)| *wanted).filter_map(|(_, offers)| {
            let mut fits = offers.fitting(&search.want);
            fits.find(|(_, named)| self.passes(search, named.id)).map(|(_, named)| named.id)
        })
    }

    /// Every fit that scores could rank differently: the first by name of each amount left in each
    /// shape, and every shared one.
    pub fn candidates(&self, query: &Query<'_>, vacant: bool, shared: bool) -> Vec<Fit<'_>> {
        let search = self.search(query);
        let passes = |named: &Named| self.passes(&search, named.id);
        let is_each_checked = !search.residual.is_empty() || query.headroom.is_some();
        let mut found = Vec::new();
        self.each_matching_shape(&search, |shape| {
            let mut add = |named: &Named| found.extend(self.fit(named.id));
            if vacant && !is_each_checked {
                shape.members.vacant.fitting_amounts(&search.want).for_each(|(_, named)| add(named));
            } else if vacant {
                let fits = shape.members.vacant.fitting(&search.want);
                fits.filter(|(_, named)| passes(named)).for_each(|(_, named)| add(named));
            }
            if shared && search.shared_refusal.is_none() {
                let fits = shape.members.shared.fitting(&search.want);
                fits.filter(|(_, named)| passes(named)).for_each(|(_, named)| add(named));
            }
        });
        found
    }

    /// The `most` best fits among resources that no claim holds, best first.
    pub fn vacant_fits(&self, query: &Query<'_>, most: usize, prefer: Preference) -> Vec<Fit<'_>> {
        let search = self.search(query);
        let mut found = Vec::new();
        self.each_matching_shape(&search, |shape| {
            let fits = shape.members.vacant.fitting(&search.want);
            let fits = fits.filter(|(_, n)| self.passes(&search, n.id));
            found.extend(fits.take(most).filter_map(|(_, n)| self.fit(n.id)));
        });
        found.sort_by(|a, b| a.compare(b, prefer));
        found.truncate(most);
        found
    }

    /// The first by name among resources that `predicate` alone keeps from `query`: not offered, or held by others
    /// where the claim wants no company.
    pub fn find_withheld<'a>(&'a self, query: &Query<'_>, predicate: Predicate) -> Option<ResourceId> {
        let search = self.search(query);
        let mut first: Option<&Named> = None;
        let mut consider = |named: &'a Named| {
            let fits = |m: &Member| m.offer.capacity.covers(&query.wants.requests);
            if first.is_none_or(|known| named < known)
                && self.member(named.id).is_some_and(fits)
                && self.passes_residual(&search.residual, named.id)
            {
                first = Some(named);
            }
        };
        self.each_matching_shape(&search, |shape| {
            let standings = self.keys.withheld().filter(|(_, by)| *by == predicate);
            standings.flat_map(|(place, _)| shape.members.withheld(place)).for_each(&mut consider);
            if search.shared_refusal == Some(predicate) {
                shape.members.shared.fitting(&search.want).for_each(|(_, named)| consider(named));
            }
        });
        first.map(|named| named.id)
    }

    /// The best fit among resources that are open to other namespaces only, for a `query` that nothing else fits. Where
    /// those are many, only the first by name are searched: it is one remedy of several.
    pub fn find_closed(&self, query: &Query<'_>, prefer: Preference) -> Option<ResourceId> {
        const NAMESPACES_MAX: usize = 64;
        let groups = self.classes.values().flat_map(|class| class.groups.values());
        let others: BTreeSet<&Name> = groups.flat_map(|group| group.by_namespace.keys()).collect();
        let mut best = Best { candidate: None, prefer };
        for namespace in others.into_iter().filter(|other| ***other != *query.namespace).take(NAMESPACES_MAX)
        {
            let found = self.find_best(&Query { namespace, ..*query }, true, true, prefer);
            best.consider(found.and_then(|found| self.fit(found.resource)));
        }
        best.candidate.map(|candidate| candidate.resource)
    }

    pub(super) fn fit(&self, id: ResourceId) -> Option<Fit<'_>> {
        let member = self.member(id)?;
        let version = self.keys.range.and_then(|range| match &member.offer.fields[range.field.at] {
            FieldValue::Version(version) => Some(&**version),
            _ => None,
        });
        Some(Fit {
            resource: id,
            name: &member.name,
            version,
            held: member.held,
            free_primary: member.free.primary,
            free: &member.free,
            member,
        })
    }

    /// The first predicate that refuses this resource to `query`, as the index knows it.
    pub fn first_refusal(&self, query: &Query<'_>, id: ResourceId) -> Option<Predicate> {
        let Member { offer, standing, taken, .. } = self.member(id)?;
        let free = match taken.is_empty() {
            true => Cow::Borrowed(&offer.capacity),
            false => Cow::Owned(offer.capacity.saturating_sub(taken)),
        };
        self.keys.first_refusal(query, &Candidate { offer, standing: *standing, free })
    }

    /// Visits every shape whose static answers are yes, as far as shapes decide.
    fn each_matching_shape<'a>(&'a self, search: &Search<'_>, mut visit: impl FnMut(&'a Shape)) {
        if !search.accepted.all.is_empty() {
            self.each_pool(search.query, |pool| {
                self.each_cell_in_range(pool, search, |cell| {
                    self.each_shape_of_cell(&self.cells[cell], search, &mut visit);
                });
            });
        }
    }

    /// Visits the pools of the classes and groups that the query accepts, and that are open to its namespace.
    fn each_pool<'a>(&'a self, query: &Query<'_>, mut visit: impl FnMut(&'a Pool)) {
        let mut visit_group = |group: &'a Group| {
            let pools = group.open.iter().chain(group.by_namespace.get(query.namespace));
            pools.for_each(|at| visit(&self.pools[*at]));
        };
        let mut visit_class = |class: &'a ClassIndex| {
            let Some(key) = self.keys.group else {
                return class.groups.values().for_each(&mut visit_group);
            };
            let accepted = |value: &FieldValue| key.field.accepts(query.wants, value);
            match (key.only)(&query.wants.fields[key.field.at]) {
                Some(name) => {
                    let value = FieldValue::Name(name.clone());
                    let group = class.groups.get(&value).filter(|_| accepted(&value));
                    group.into_iter().for_each(&mut visit_group);
                }
                None => {
                    let groups = class.groups.iter().filter(|(value, _)| accepted(value));
                    groups.for_each(|(_, group)| visit_group(group));
                }
            }
        };
        let accepts = |class: Option<&Name>| (self.keys.class.1)(&query.class, class);
        let mut visit_named = |name: Option<&Name>| {
            let class = self.classes.get(&name.cloned()).filter(|_| accepts(name));
            class.into_iter().for_each(&mut visit_class);
        };
        match query.class {
            ClassQuery::Any => self.classes.values().for_each(visit_class),
            ClassQuery::Exactly(name) => visit_named(name),
            ClassQuery::OneOf(names) => names.iter().for_each(|name| visit_named(name.as_ref())),
        }
    }

    fn each_shape_of_cell<'a>(&'a self, cell: &Cell, search: &Search<'_>, mut visit: impl FnMut(&'a Shape)) {
        let accepted = cell.shapes.iter().filter(|place| search.accepted.all.contains(place.attributes));
        accepted.for_each(|place| visit(&self.shapes[place.shape]));
    }

    fn each_cell_in_range(&self, pool: &Pool, search: &Search<'_>, mut visit: impl FnMut(CellId)) {
        let wants = search.query.wants;
        let within = self.keys.range.map(|key| (key, (key.within)(&wants.fields[key.field.at])));
        let accepted = |cell: &CellId| {
            self.keys.range.is_none_or(|key| key.field.accepts(wants, &self.cells[*cell].value))
        };
        let Some((_, Some(range))) = within else {
            let cells = pool.unversioned.iter().chain(pool.versions.values());
            return cells.filter(|cell| accepted(cell)).for_each(|cell| visit(*cell));
        };
        for interval in range.intervals() {
            let bounds = (interval.lower.as_ref(), interval.upper.as_ref());
            let within = pool.versions.range::<Version, _>(bounds).map(|(_, cell)| cell);
            within.filter(|cell| accepted(cell)).for_each(|cell| visit(*cell));
        }
    }

    pub(super) fn passes_residual(&self, residual: &[&Requirement], id: ResourceId) -> bool {
        residual.is_empty()
            || self
                .member(id)
                .is_some_and(|m| residual.iter().all(|r| (self.keys.labels.1)(r, m.offer.labels.get(&r.key))))
    }

    /// Whether a resource that fits as far as the index decides passes what is checked for each one.
    fn passes(&self, search: &Search<'_>, id: ResourceId) -> bool {
        self.passes_residual(&search.residual, id) && self.is_within_quotas(search.query, id)
    }

    fn is_within_quotas(&self, query: &Query<'_>, id: ResourceId) -> bool {
        query.headroom.is_none_or(|headroom| {
            let offer = self.member(id).map(|member| &member.offer);
            offer.is_some_and(|offer| headroom.allows(offer, &query.wants.requests, query.wants.exclusive))
        })
    }

    /// The resources that a residual requirement lists by value, where they are few.
    pub(super) fn short_posting(&self, residual: &[&Requirement]) -> Option<BTreeSet<ResourceId>> {
        const POSTING_MAX: usize = 4096;
        let listed = residual.iter().filter(|r| r.lists_values()).map(|r| {
            let postings = self.demoted.get(&r.key);
            let of_value = move |value| postings.and_then(|p| p.get(value));
            let sets: Vec<&BTreeSet<ResourceId>> = r.values.iter().filter_map(of_value).collect();
            (sets.iter().map(|s| s.len()).sum::<usize>(), sets)
        });
        let (size, sets) = listed.min_by_key(|(size, _)| *size)?;
        (size <= POSTING_MAX).then(|| sets.into_iter().flatten().copied().collect())
    }
}
