//! Searching the index: the best resource for an ask, or every distinct candidate for scoring.
//!
//! Two ways lead to the best fit of a cell. Where much fits, it is soon met in the cell's own best-fit order.
//! Where little does, only the shapes whose static answers are yes are opened, and the first fit of each compared.

use super::Headroom;
use super::index::{Cell, CellId, ClassIndex, Index, Member, Pool, ResourceId, Shape, Standing};
use super::looks::Accepted;
use super::shape::{Free, Named};
use crate::model::selector::Requirement;
use crate::model::{FieldWant, Name, Predicate, Version, Wants};
use std::cmp::Ordering;
use std::collections::BTreeSet;

/// What a search looks for: a claim's wants, from its namespace, in one class.
#[derive(Clone, Copy, Debug)]
pub struct Ask<'a> {
    /// The claim's namespace.
    pub namespace: &'a str,
    /// The class that is searched.
    pub class: ClassAsk<'a>,
    /// Everything else.
    pub wants: &'a Wants,
    /// What quotas leave, where they limit what the claim may hold. Only searches for a fit heed it: why a resource
    /// does not fit is another question.
    pub headroom: Option<&'a Headroom>,
}

/// Which class is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClassAsk<'a> {
    /// Every class, and none.
    Any,
    /// This class, or where absent the resources that have none.
    Exactly(Option<&'a Name>),
    /// Any of these; an absent one stands for the resources that have none.
    OneOf(&'a [Option<Name>]),
}

/// What is better among fits that leave equally much.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Preference {
    /// The newest version rather than the oldest.
    pub newest: bool,
}

/// The resource that a search ended with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Which one.
    pub resource: ResourceId,
    /// Whether others hold it too.
    pub shared: bool,
}

/// One of the resources that fit, as scores see it.
#[derive(Clone, Debug)]
pub struct Candidate<'a> {
    /// Which one.
    pub resource: ResourceId,
    /// Its name.
    pub name: &'a Name,
    /// Its version.
    pub version: Option<&'a Version>,
    /// How many claims hold it.
    pub held: u32,
    /// What it has of the primary capacity before this claim.
    pub free_primary: crate::model::Quantity,
    pub(super) free: &'a Free,
    member: &'a Member,
}

impl<'a> Candidate<'a> {
    /// Everything it has left.
    pub fn free(&self) -> crate::model::Capacity {
        let capacity = &self.member.offer.capacity;
        capacity.saturating_sub(&self.member.taken)
    }

    /// The value of one of its labels.
    pub fn label(&self, key: &str) -> Option<&'a str> {
        self.member.offer.labels.get(key)
    }

    /// Best fit: least left over, then version by preference, then name.
    pub fn compare(&self, other: &Candidate<'_>, prefer: Preference) -> Ordering {
        (self.free.cmp(other.free))
            .then_with(|| version_order(self.version, other.version, prefer))
            .then_with(|| self.name.cmp(other.name))
    }
}

fn version_order(a: Option<&Version>, b: Option<&Version>, prefer: Preference) -> Ordering {
    if prefer.newest { b.cmp(&a) } else { a.cmp(&b) }
}

/// An ask made ready: what each look and each resource is held against.
pub(super) struct Search<'a> {
    pub ask: &'a Ask<'a>,
    pub want: Free,
    pub accepted: Accepted,
    /// The requirements that looks cannot answer, because their label does not tell shapes apart.
    pub residual: Vec<&'a Requirement>,
}

/// What may be found: resources that nobody holds, resources that others hold.
#[derive(Clone, Copy)]
struct Either {
    vacant: bool,
    shared: bool,
}

/// The best of what has been considered.
struct Best<'a> {
    candidate: Option<Candidate<'a>>,
    prefer: Preference,
}

impl<'a> Best<'a> {
    fn consider(&mut self, candidate: Option<Candidate<'a>>) {
        if let Some(candidate) = candidate
            && self.candidate.as_ref().is_none_or(|best| candidate.compare(best, self.prefer).is_lt())
        {
            self.candidate = Some(candidate);
        }
    }
}

/// So many offers of a cell are looked at one by one before its shapes are opened instead.
const WALK_MAX: usize = 256;

impl Index {
    pub(super) fn search<'a>(&self, ask: &'a Ask<'a>) -> Search<'a> {
        let demoted = |r: &Requirement| self.demoted.contains_key(&r.key);
        let requirements = ask.wants.selector.requirements().iter();
        Search {
            ask,
            want: Free::of(&ask.wants.requests),
            accepted: self.looks.accepted(ask.wants, |r| !demoted(r)),
            residual: requirements.filter(|r| demoted(r)).collect(),
        }
    }

    /// The best fit among resources that nobody holds (`vacant`) and that others hold (`shared`).
    pub fn find_best(&self, ask: &Ask<'_>, vacant: bool, shared: bool, prefer: Preference) -> Option<Found> {
        let search = self.search(ask);
        let either = Either { vacant, shared: shared && !ask.wants.exclusive };
        let mut best = Best { candidate: None, prefer };
        if let Some(posting) = self.short_posting(&search.residual) {
            let wanted = |id: &ResourceId| match self.standing(*id) {
                Some(Standing::Vacant) => either.vacant,
                Some(Standing::Shared) => either.shared,
                _ => false,
            };
            let fits = |id: &ResourceId| {
                wanted(id) && self.first_refusal(ask, *id).is_none() && self.is_within_quotas(ask, *id)
            };
            posting.into_iter().filter(fits).for_each(|id| best.consider(self.candidate(id)));
        } else if !search.accepted.all.is_empty() {
            self.each_pool(ask, |pool| {
                self.each_cell_in_range(pool, &search, |cell| {
                    self.best_of_cell(&self.cells[cell], &search, either, &mut best);
                });
            });
        }
        let shared = |c: &Candidate<'_>| c.member.standing == Standing::Shared;
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
                    fits.for_each(|id| best.consider(self.candidate(id)));
                });
            }
            // The look first: it is at hand, while the other capacities are a jump away.
            let wanted = if by.shared { either.shared } else { either.vacant };
            if !wanted || !search.accepted.all.contains(by.look) {
                continue;
            }
            if known.is_some_and(|known| known < free) {
                return;
            }
            if free.covers(&search.want) && self.passes(search, named.id) {
                return best.consider(self.candidate(named.id));
            }
        }
    }

    /// The first fit of a shape among those that nobody holds, and among those that others hold.
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

    /// Every candidate that scores could tell apart: the first by name of each amount left in each
    /// shape, and every shared one.
    pub fn candidates(&self, ask: &Ask<'_>, vacant: bool, shared: bool) -> Vec<Candidate<'_>> {
        let search = self.search(ask);
        let passes = |named: &Named| self.passes(&search, named.id);
        let is_asked_of_each = !search.residual.is_empty() || ask.headroom.is_some();
        let mut found = Vec::new();
        self.each_matching_shape(&search, |shape| {
            let mut add = |named: &Named| found.extend(self.candidate(named.id));
            if vacant && !is_asked_of_each {
                shape.members.vacant.fitting_amounts(&search.want).for_each(|(_, named)| add(named));
            } else if vacant {
                let fits = shape.members.vacant.fitting(&search.want);
                fits.filter(|(_, named)| passes(named)).for_each(|(_, named)| add(named));
            }
            if shared && !ask.wants.exclusive {
                let fits = shape.members.shared.fitting(&search.want);
                fits.filter(|(_, named)| passes(named)).for_each(|(_, named)| add(named));
            }
        });
        found
    }

    /// The `most` best fits among resources that nobody holds, best first.
    pub fn vacant_fits(&self, ask: &Ask<'_>, most: usize, prefer: Preference) -> Vec<Candidate<'_>> {
        let search = self.search(ask);
        let mut found = Vec::new();
        self.each_matching_shape(&search, |shape| {
            let fits = shape.members.vacant.fitting(&search.want);
            let fits = fits.filter(|(_, n)| self.passes(&search, n.id));
            found.extend(fits.take(most).filter_map(|(_, n)| self.candidate(n.id)));
        });
        found.sort_by(|a, b| a.compare(b, prefer));
        found.truncate(most);
        found
    }

    /// The first by name among resources that `predicate` alone keeps from `ask`: not offered, or held by others
    /// where the claim wants no company.
    pub fn find_withheld<'a>(&'a self, ask: &Ask<'_>, predicate: Predicate) -> Option<ResourceId> {
        let search = self.search(ask);
        let mut first: Option<&Named> = None;
        let mut consider = |named: &'a Named| {
            let fits = |m: &Member| m.offer.capacity.covers(&ask.wants.requests);
            if first.is_none_or(|known| named < known)
                && self.member(named.id).is_some_and(fits)
                && self.passes_residual(&search.residual, named.id)
            {
                first = Some(named);
            }
        };
        self.each_matching_shape(&search, |shape| {
            let standings = Standing::WITHHELD.into_iter().filter(|s| s.predicate() == Some(predicate));
            standings.filter_map(|s| shape.members.withheld(s)).flatten().for_each(&mut consider);
            if predicate == Predicate::Sharing && ask.wants.exclusive {
                shape.members.shared.fitting(&search.want).for_each(|(_, named)| consider(named));
            }
        });
        first.map(|named| named.id)
    }

    /// The best fit among resources that are open to other namespaces only, for an `ask` that nothing else fits. Where
    /// those are many, only the first by name are asked: it is one remedy of several.
    pub fn find_closed(&self, ask: &Ask<'_>, prefer: Preference) -> Option<ResourceId> {
        const NAMESPACES_MAX: usize = 64;
        let groups = self.classes.values().flat_map(|class| class.groups.values());
        let others: BTreeSet<&Name> = groups.flat_map(|group| group.by_namespace.keys()).collect();
        let mut best = Best { candidate: None, prefer };
        for namespace in others.into_iter().filter(|other| ***other != *ask.namespace).take(NAMESPACES_MAX) {
            let found = self.find_best(&Ask { namespace, ..*ask }, true, true, prefer);
            best.consider(found.and_then(|found| self.candidate(found.resource)));
        }
        best.candidate.map(|candidate| candidate.resource)
    }

    pub(super) fn candidate(&self, id: ResourceId) -> Option<Candidate<'_>> {
        let member = self.member(id)?;
        let version = self.version_field.and_then(|at| match &member.offer.fields[at] {
            crate::model::FieldValue::Version(version) => Some(&**version),
            _ => None,
        });
        Some(Candidate {
            resource: id,
            name: &member.name,
            version,
            held: member.held,
            free_primary: member.free.primary,
            free: &member.free,
            member,
        })
    }

    /// The first predicate that refuses this resource to `ask`, in the order in which they are asked.
    pub fn first_refusal(&self, ask: &Ask<'_>, id: ResourceId) -> Option<Predicate> {
        let member = self.member(id)?;
        let offer = &member.offer;
        let refuses = |at: &usize| !ask.wants.fields[*at].accepts(&offer.fields[*at]);
        let field = |at: usize| self.ty.rules().fields[at].predicate;
        if !ask.class.accepts(offer.class.as_ref()) {
            return Some(Predicate::Class);
        }
        if let Some(at) = self.group_field.filter(refuses) {
            return Some(field(at));
        }
        if !offer.is_open_to(ask.namespace) {
            return Some(Predicate::Sharing);
        }
        if let Some(at) = self.later_fields().find(refuses) {
            return Some(field(at));
        }
        if !ask.wants.selector.matches(|key| offer.labels.get(key)) {
            return Some(Predicate::Selector);
        }
        if let Some(predicate) = member.standing.predicate() {
            return Some(predicate);
        }
        if member.standing == Standing::Shared && ask.wants.exclusive {
            return Some(Predicate::Sharing);
        }
        (!member.free.covers(&Free::of(&ask.wants.requests))).then_some(Predicate::Capacity)
    }

    /// The fields that are asked once class and group are settled: the version, then the rest.
    pub(super) fn later_fields(&self) -> impl Iterator<Item = usize> {
        let rest = (0..self.ty.rules().fields.len())
            .filter(|at| Some(*at) != self.group_field && Some(*at) != self.version_field);
        self.version_field.into_iter().chain(rest)
    }

    /// Visits every shape whose static answers are yes, as far as shapes can tell.
    fn each_matching_shape<'a>(&'a self, search: &Search<'_>, mut visit: impl FnMut(&'a Shape)) {
        if !search.accepted.all.is_empty() {
            self.each_pool(search.ask, |pool| {
                self.each_cell_in_range(pool, search, |cell| {
                    self.each_shape_of_cell(&self.cells[cell], search, &mut visit);
                });
            });
        }
    }

    /// Visits the pools of the class and group asked that are open to the namespace.
    fn each_pool<'a>(&'a self, ask: &Ask<'_>, mut visit: impl FnMut(&'a Pool)) {
        let mut visit_group = |group: &'a super::index::Group| {
            let pools = group.open.iter().chain(group.by_namespace.get(ask.namespace));
            pools.for_each(|at| visit(&self.pools[*at]));
        };
        let group_want = self.group_field.map(|at| &ask.wants.fields[at]);
        let mut visit_class = |class: &'a ClassIndex| match group_want {
            Some(FieldWant::Name(name)) => {
                class.groups.get(&Some(name.clone())).into_iter().for_each(&mut visit_group);
            }
            _ => class.groups.values().for_each(&mut visit_group),
        };
        match ask.class {
            ClassAsk::Any => self.classes.values().for_each(&mut visit_class),
            ClassAsk::Exactly(name) => {
                self.classes.get(&name.cloned()).into_iter().for_each(&mut visit_class)
            }
            ClassAsk::OneOf(names) => {
                names.iter().filter_map(|n| self.classes.get(n)).for_each(&mut visit_class)
            }
        }
    }

    fn each_shape_of_cell<'a>(&'a self, cell: &Cell, search: &Search<'_>, mut visit: impl FnMut(&'a Shape)) {
        let accepted = cell.shapes.iter().filter(|place| search.accepted.all.contains(place.look));
        accepted.for_each(|place| visit(&self.shapes[place.shape]));
    }

    fn each_cell_in_range(&self, pool: &Pool, search: &Search<'_>, mut visit: impl FnMut(CellId)) {
        match self.version_field.map(|at| &search.ask.wants.fields[at]) {
            Some(FieldWant::Range(range)) => {
                for interval in range.intervals() {
                    let bounds = (interval.lower.as_ref(), interval.upper.as_ref());
                    let within = pool.versions.range::<Version, _>(bounds);
                    within.filter(|(v, _)| range.matches(v)).for_each(|(_, cell)| visit(*cell));
                }
            }
            _ => pool.unversioned.iter().chain(pool.versions.values()).for_each(|cell| visit(*cell)),
        }
    }

    pub(super) fn passes_residual(&self, residual: &[&Requirement], id: ResourceId) -> bool {
        residual.is_empty()
            || self.member(id).is_some_and(|m| residual.iter().all(|r| r.matches(m.offer.labels.get(&r.key))))
    }

    /// Whether a resource that fits as far as the index can tell passes what is asked of each one.
    fn passes(&self, search: &Search<'_>, id: ResourceId) -> bool {
        self.passes_residual(&search.residual, id) && self.is_within_quotas(search.ask, id)
    }

    fn is_within_quotas(&self, ask: &Ask<'_>, id: ResourceId) -> bool {
        ask.headroom.is_none_or(|headroom| {
            let offer = self.member(id).map(|member| &member.offer);
            offer.is_some_and(|offer| headroom.allows(offer, &ask.wants.requests, ask.wants.exclusive))
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

impl ClassAsk<'_> {
    /// Whether a resource of `class` is asked for.
    pub fn accepts(&self, class: Option<&Name>) -> bool {
        match self {
            ClassAsk::Any => true,
            ClassAsk::Exactly(wanted) => *wanted == class,
            ClassAsk::OneOf(names) => names.iter().any(|name| name.as_ref() == class),
        }
    }
}
