//! Searching the index: the best resource for an ask, or every distinct candidate for scoring.
//! Only shapes whose static answers are yes are opened; within one, the first fit is the best fit.

use super::index::{Index, Member, ResourceId, Shape, ShapeId, Standing, Versions};
use super::shape::{Free, Named, fitting, fitting_amounts};
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

impl Index {
    /// The best fit among resources that nobody holds (`vacant`) and that others hold (`shared`).
    pub fn find_best(&self, ask: &Ask<'_>, vacant: bool, shared: bool, prefer: Preference) -> Option<Found> {
        let want = Free::of(&ask.wants.requests);
        let residual = self.residual(ask);
        let shared = shared && !ask.wants.exclusive;
        let mut best: Option<Candidate<'_>> = None;
        let mut consider = |id: ResourceId| {
            if let Some(candidate) = self.candidate(id)
                && best.as_ref().is_none_or(|best| candidate.compare(best, prefer).is_lt())
            {
                best = Some(candidate);
            }
        };
        if let Some(posting) = self.short_posting(&residual) {
            let wanted = |id: &ResourceId| match self.standing(*id) {
                Some(Standing::Vacant) => vacant,
                Some(Standing::Shared) => shared,
                _ => false,
            };
            let fits = |id: &ResourceId| wanted(id) && self.first_refusal(ask, *id).is_none();
            posting.into_iter().filter(fits).for_each(consider);
        } else {
            self.each_matching_shape(ask, |shape| {
                let sets = [(vacant, &shape.members.vacant), (shared, &shape.members.shared)];
                for (_, set) in sets.into_iter().filter(|(wanted, _)| *wanted) {
                    let mut fits = fitting(set, &want);
                    if let Some((_, named)) =
                        fits.find(|(_, named)| self.passes_residual(&residual, named.id))
                    {
                        consider(named.id);
                    }
                }
            });
        }
        let shared = |c: &Candidate<'_>| c.member.standing == Standing::Shared;
        best.map(|candidate| Found { resource: candidate.resource, shared: shared(&candidate) })
    }

    /// Every candidate that scores could tell apart: the first by name of each amount left in each
    /// shape, and every shared one.
    pub fn candidates(&self, ask: &Ask<'_>, vacant: bool, shared: bool) -> Vec<Candidate<'_>> {
        let want = Free::of(&ask.wants.requests);
        let residual = self.residual(ask);
        let mut found = Vec::new();
        self.each_matching_shape(ask, |shape| {
            let mut add = |named: &Named| found.extend(self.candidate(named.id));
            if vacant && residual.is_empty() {
                fitting_amounts(&shape.members.vacant, &want).for_each(|(_, named)| add(named));
            } else if vacant {
                let fits = fitting(&shape.members.vacant, &want);
                fits.filter(|(_, n)| self.passes_residual(&residual, n.id)).for_each(|(_, named)| add(named));
            }
            if shared && !ask.wants.exclusive {
                let fits = fitting(&shape.members.shared, &want);
                fits.filter(|(_, n)| self.passes_residual(&residual, n.id)).for_each(|(_, named)| add(named));
            }
        });
        found
    }

    /// The `most` best fits among resources that nobody holds, best first.
    pub fn vacant_fits(&self, ask: &Ask<'_>, most: usize, prefer: Preference) -> Vec<Candidate<'_>> {
        let want = Free::of(&ask.wants.requests);
        let residual = self.residual(ask);
        let mut found = Vec::new();
        self.each_matching_shape(ask, |shape| {
            let fits = fitting(&shape.members.vacant, &want);
            let fits = fits.filter(|(_, n)| self.passes_residual(&residual, n.id));
            found.extend(fits.take(most).filter_map(|(_, n)| self.candidate(n.id)));
        });
        found.sort_by(|a, b| a.compare(b, prefer));
        found.truncate(most);
        found
    }

    /// The first by name among resources that `predicate` alone keeps from `ask`: not offered, not
    /// open to the namespace, or held by others where the claim wants no company.
    pub fn find_withheld<'a>(&'a self, ask: &Ask<'_>, predicate: Predicate) -> Option<ResourceId> {
        let want = Free::of(&ask.wants.requests);
        let residual = self.residual(ask);
        let mut first: Option<&Named> = None;
        let mut consider = |named: &'a Named| {
            let capable = self.member(named.id).is_some_and(|m| Free::of(&m.offer.capacity).covers(&want));
            if capable && self.passes_residual(&residual, named.id) && first.is_none_or(|known| named < known)
            {
                first = Some(named);
            }
        };
        self.each_matching_shape(ask, |shape| {
            let standings = Standing::WITHHELD.into_iter().filter(|s| s.predicate() == Some(predicate));
            standings.filter_map(|s| shape.members.withheld(s)).flatten().for_each(&mut consider);
            if predicate == Predicate::Sharing && ask.wants.exclusive {
                fitting(&shape.members.shared, &want).for_each(|(_, named)| consider(named));
            }
        });
        first.map(|named| named.id)
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

    /// Visits every shape whose static answers to `ask` are yes, as far as shapes can tell.
    pub(super) fn each_matching_shape<'a>(&'a self, ask: &Ask<'_>, mut visit: impl FnMut(&'a Shape)) {
        let group_want = self.group_field.map(|at| &ask.wants.fields[at]);
        let mut visit_class = |class: &'a super::index::ClassIndex| match group_want {
            Some(FieldWant::Name(name)) => {
                if let Some(group) = class.groups.get(&Some(name.clone())) {
                    self.each_in_group(group, ask, &mut visit);
                }
            }
            _ => class.groups.values().for_each(|group| self.each_in_group(group, ask, &mut visit)),
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

    fn each_in_group<'a>(
        &'a self,
        group: &'a super::index::Group,
        ask: &Ask<'_>,
        visit: &mut impl FnMut(&'a Shape),
    ) {
        for versions in [Some(&group.open), group.by_namespace.get(ask.namespace)].into_iter().flatten() {
            self.each_in_versions(versions, ask, visit);
        }
    }

    fn each_in_versions<'a>(
        &'a self,
        versions: &'a Versions,
        ask: &Ask<'_>,
        visit: &mut impl FnMut(&'a Shape),
    ) {
        let mut open = |ids: &[ShapeId]| {
            for id in ids {
                let shape = &self.shapes[*id];
                if self.shape_refusal(shape, ask).is_none() {
                    visit(shape);
                }
            }
        };
        match self.version_field.map(|at| &ask.wants.fields[at]) {
            Some(FieldWant::Range(range)) => {
                for interval in range.intervals() {
                    let bounds = (interval.lower.as_ref(), interval.upper.as_ref());
                    for (version, ids) in versions.versions.range::<Version, _>(bounds) {
                        if range.matches(version) {
                            open(ids);
                        }
                    }
                }
            }
            _ => {
                open(&versions.unversioned);
                versions.versions.values().for_each(|ids| open(ids));
            }
        }
    }

    /// The first of the fields after the version, then the selector, that refuses a whole shape.
    pub(super) fn shape_refusal(&self, shape: &Shape, ask: &Ask<'_>) -> Option<Predicate> {
        for at in self.later_fields().filter(|at| Some(*at) != self.version_field) {
            if !ask.wants.fields[at].accepts(&shape.key.fields[at]) {
                return Some(self.ty.rules().fields[at].predicate);
            }
        }
        let told = |r: &&Requirement| !self.demoted.contains_key(&r.key);
        let mut requirements = ask.wants.selector.requirements().iter().filter(told);
        requirements.any(|r| !r.matches(shape.key.labels.get(&r.key))).then_some(Predicate::Selector)
    }

    /// The requirements that shapes cannot answer, because their label does not tell shapes apart.
    pub(super) fn residual<'a>(&self, ask: &Ask<'a>) -> Vec<&'a Requirement> {
        if self.demoted.is_empty() {
            return Vec::new();
        }
        ask.wants.selector.requirements().iter().filter(|r| self.demoted.contains_key(&r.key)).collect()
    }

    pub(super) fn passes_residual(&self, residual: &[&Requirement], id: ResourceId) -> bool {
        residual.is_empty()
            || self.member(id).is_some_and(|m| residual.iter().all(|r| r.matches(m.offer.labels.get(&r.key))))
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
