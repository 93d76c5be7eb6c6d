//! A state that is planned once and replanned cheaply, each time with a few objects changed.
//!
//! ```text
//! objects -> engine that has seen them, undecided -+-> base plan: the state as it is
//!                                                  +-> clone + changes -> plan: the state as it would be
//! ```
//!
//! The clone decides every waiting claim again, in order, because a claim that goes first can displace all others. It
//! saves reading, identifying and feeding the objects, settling bound claims, and building and digesting the rows that no
//! change can affect.
//!
//! Some changes affect more than their own objects: which claim a reference without a UID means, what a holder takes
//! then returns `None`, and the caller plans from scratch.

use super::affected::{Outline, find_affected};
use super::claims::Subject;
use super::digest::RowDigests;
use super::identity::{self, Identified, identified, stand_in};
use super::plan_engine::PlanEngine;
use super::resources::{Holding, Known};
use super::{Options, Plan, Planned, claims, config, resources};
use crate::world::Stored;
use conductor::model::{Kind, Name, Object, ObjectKey, Revision, Time, Uid};
use std::collections::{BTreeMap, BTreeSet};

/// Plan from scratch if more than this fraction of all objects (a quarter) may be affected.
const SHARE_MAX: usize = 4;
/// Only objects this close to a change can become affected or unaffected.
const REACH: usize = 3;
/// Distance from a change within which objects are examined to find out.
const SIGHT: usize = 6;

/// Higher resource versions leave no room to count.
const REVISION_MAX: u64 = u64::MAX / 2;

/// A planned state.
pub struct BasePlan {
    options: Options,
    /// The objects as the caller passed them.
    given: Vec<Stored>,
    /// Outlines of the identified objects, sorted, with assigned UIDs.
    outlines: Vec<Outline>,
    /// For each outline: its index in `given`, and whether its UID came with the object.
    origins: Vec<usize>,
    own_uids: Vec<bool>,
    affected: Vec<bool>,
    /// Whether no two objects share a key or a UID.
    is_distinct: bool,
    /// Claims whose references state no requests.
    unstated: BTreeSet<Uid>,
    may_refuse: bool,
    links: Links,
    seen: PlanEngine,
    planned: Planned,
    plan: Plan,
    digests: RowDigests,
}

/// One object that differs from the base.
#[derive(Clone, Debug)]
pub struct ObjectChange {
    /// The object's kind.
    pub kind: Kind,
    /// The object's key.
    pub key: ObjectKey,
    /// The new object; `None` deletes it.
    pub object: Option<Object>,
}

impl BasePlan {
    /// Plans `objects`.
    pub fn new(objects: Vec<Object>, options: &Options) -> BasePlan {
        let given = objects.iter().map(Stored::packed).collect();
        let first_at = first_at(&objects);
        let Identified { objects, own_uids, is_distinct, unstated } = identified(objects);
        let outlines: Vec<Outline> = objects.iter().map(Outline::read).collect();
        // Higher than every revision seen, so that the engine does not take a changed object for a stale one.
        let revisions = objects.iter().map(|o| Revision::read(o.metadata.resource_version.as_deref()).0);
        let revision = revisions.max().unwrap_or(0);
        let is_distinct = is_distinct && revision < REVISION_MAX;
        let origins =
            outlines.iter().filter_map(|o| first_at.get(&(o.kind, o.key.clone())).copied()).collect();
        let may_refuse = outlines.iter().any(|o| o.has_schema);
        let affected = find_affected(&outlines.iter().collect::<Vec<_>>(), may_refuse);
        let (subjects, holdings) =
            (claims::subjects(&objects), resources::holdings(&objects, &options.system_namespace));
        let seen = PlanEngine::new(objects, &affected, config(options), revision);
        let plan_engine = seen.clone().run_until_idle(latest(&outlines));
        let mut planned = Planned { plan_engine, subjects, holdings, options: options.clone() };
        let mut plan = planned.plan_without_digest(None);
        for (at, subject) in planned.subjects.iter_mut().enumerate() {
            subject.row = subject.is_decided(&seen.engine).then_some(at);
        }
        for (at, holding) in planned.holdings.iter_mut().enumerate() {
            holding.row = (!seen.is_affected(holding.kind(), &holding.key)).then_some(at);
        }
        let digests = RowDigests::of(&plan);
        plan.digest = digests.digest(&plan);
        let mut links = Links::default();
        outlines.iter().enumerate().for_each(|(at, outline)| links.note(at, outline));
        let options = options.clone();
        BasePlan {
            options,
            given,
            outlines,
            origins,
            own_uids,
            affected,
            is_distinct,
            unstated,
            may_refuse,
            links,
            seen,
            planned,
            plan,
            digests,
        }
    }

    /// The state as it is, with its engine.
    pub fn planned(&self) -> &Planned {
        &self.planned
    }

    /// The plan of the state as it is.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// Returns the plan of a changed state, without its digest.
    pub(crate) fn plan_without_digest(&self, planned: &Planned) -> Plan {
        planned.plan_without_digest(Some(Known {
            plan: &self.plan,
            state: self.planned.plan_engine.engine.state(),
        }))
    }

    /// Returns the digest of a changed state's plan.
    pub(crate) fn digest(&self, plan: &Plan) -> String {
        self.digests.reusing(&self.plan, plan).digest(plan)
    }

    /// The settings it was planned with.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// All objects as the caller passed them, in the same order.
    pub fn objects(&self) -> impl Iterator<Item = Object> {
        self.given.iter().map(Stored::to_object)
    }

    /// Finds an object as the caller passed it; the first one if several share its key.
    pub fn find(&self, kind: Kind, key: &ObjectKey) -> Option<Object> {
        let at = self.links.at.get(&(kind, key.clone()))?;
        Some(self.given[self.origins[*at]].to_object())
    }

    /// Keys of everything in a namespace.
    pub fn places_in(&self, namespace: &str) -> impl Iterator<Item = (Kind, ObjectKey)> {
        let there = self.outlines.iter().filter(move |o| &*o.key.namespace == namespace);
        there.map(|o| (o.kind, o.key.clone()))
    }

    /// Returns an object with its assigned UID and complete references.
    fn identified(&self, at: usize) -> Object {
        let given = |at: usize| self.given[self.origins[at]].to_object();
        let mut object = given(at);
        object.metadata.uid = Some(self.outlines[at].uid.to_string());
        identity::complete_requests(&mut object, |uid| {
            let claim = given(*self.links.claims.get(uid)?);
            identity::requests(&claim).cloned()
        });
        object
    }

    /// Plans the state with these objects changed, each key at most once. Returns `None` if it must be planned from scratch.
    pub fn with(&self, replaced: Vec<ObjectChange>) -> Option<Planned> {
        let changes = self.changes(replaced)?;
        let near = Neighbourhood::around(self, &changes)?;
        let affected = near.affected(self, &changes);
        let mut plan_engine = self.seen.clone();
        for (at, is_affected) in &affected {
            match changes.by_place.get(at).map(|change| &change.object) {
                Some(Some(object)) => plan_engine.replace(object.clone(), *is_affected),
                Some(None) => plan_engine.remove(&self.outlines[*at]),
                None if self.affected[*at] != *is_affected => {
                    plan_engine.replace(self.identified(*at), *is_affected)
                }
                None => {}
            }
        }
        let plan_engine = plan_engine.run_until_idle(self.latest(&changes));
        let (subjects, holdings) = (self.subjects(&near, &changes), self.holdings(&near, &changes));
        Some(Planned { plan_engine, subjects, holdings, options: self.options.clone() })
    }

    /// Indexes the changes by position, new objects last, and assigns UIDs.
    fn changes(&self, replaced: Vec<ObjectChange>) -> Option<Changes> {
        let mut changes = Changes::default();
        let mut places = BTreeSet::new();
        for ObjectChange { kind, key, object } in replaced {
            let known = self.links.at.get(&(kind, key.clone())).copied();
            let at = known.unwrap_or(self.outlines.len() + changes.by_place.len());
            let own = object.as_ref().and_then(|o| o.metadata.uid.clone()).filter(|uid| !uid.is_empty());
            let is_same = match known {
                Some(at) if self.own_uids[at] => {
                    object.is_none() || own.as_deref() == Some(&*self.outlines[at].uid)
                }
                Some(_) | None => own.is_none(),
            };
            if !self.is_distinct || !is_same || !places.insert((kind, key.clone())) {
                return None;
            }
            let object = object.map(|mut object| {
                let uid = known.map(|at| self.outlines[at].uid.to_string());
                object.metadata.uid = Some(uid.unwrap_or_else(|| stand_in(&object)));
                object
            });
            if known.is_some() || object.is_some() {
                let outline = object.as_ref().map(Outline::read);
                outline.iter().for_each(|outline| changes.links.note(at, outline));
                changes.by_place.insert(at, Change { object, outline });
            }
        }
        let reaches_further = self.reaches_identity(&changes) || self.reaches_holders(&changes);
        (!reaches_further && self.may_refuse(&changes) == self.may_refuse).then_some(changes)
    }

    /// Whether a change can alter what a claim takes from a resource whose reference states no requests.
    fn reaches_holders(&self, changes: &Changes) -> bool {
        changes.by_place.iter().any(|(at, change)| {
            let is = change.outline.as_ref();
            let both = self.outlines.get(*at).into_iter().chain(is);
            let is_held =
                both.filter(|o| matches!(o.kind, Kind::Claim(_))).any(|o| self.unstated.contains(&o.uid));
            is_held || is.is_some_and(|o| o.names.iter().any(|named| named.is_unstated))
        })
    }

    /// Whether a change can give another UID to a claim that has none of its own.
    fn reaches_identity(&self, changes: &Changes) -> bool {
        let is_nameless = |place: &(Kind, ObjectKey)| match self.links.at.get(place) {
            Some(at) => !self.own_uids[*at],
            None => changes.links.at.contains_key(place),
        };
        let lives = |outline: &Outline| {
            let named = outline.names.iter().filter(|named| named.uid.is_some());
            named.filter_map(|named| named.claim.clone()).collect::<Vec<_>>()
        };
        changes.by_place.iter().any(|(at, change)| {
            let (was, is) = (self.outlines.get(*at), change.outline.as_ref());
            let named = was.into_iter().chain(is).flat_map(lives).any(|place| is_nameless(&place));
            let Some(outline) = was.or(is) else { return false };
            let place = (outline.kind, outline.key.clone());
            let by = self.links.named_at.get(&place).into_iter().flatten();
            named || (is_nameless(&place) && by.flat_map(|at| lives(&self.outlines[*at])).any(|p| p == place))
        })
    }

    fn may_refuse(&self, changes: &Changes) -> bool {
        let touched = changes.by_place.keys().filter_map(|at| self.outlines.get(*at)).any(|o| o.has_schema);
        let is = |c: &Change| c.outline.as_ref().is_some_and(|o| o.has_schema);
        match (self.may_refuse, touched) {
            (false, _) => changes.by_place.values().any(is),
            (true, false) => true,
            (true, true) => {
                let mut rest = self.kept(changes);
                changes.by_place.values().any(is) || rest.any(|o| o.has_schema)
            }
        }
    }

    fn latest(&self, changes: &Changes) -> Time {
        latest(self.kept(changes).chain(changes.by_place.values().filter_map(|c| c.outline.as_ref())))
    }

    /// Outlines of the objects that do not change.
    fn kept<'a>(&'a self, changes: &'a Changes) -> impl Iterator<Item = &'a Outline> {
        let all = self.outlines.iter().enumerate();
        all.filter(|(at, _)| !changes.by_place.contains_key(at)).map(|(_, outline)| outline)
    }

    fn subjects(&self, near: &Neighbourhood, changes: &Changes) -> Vec<Subject> {
        let is_claim = |o: &&Outline| matches!(o.kind, Kind::Claim(_));
        let place =
            |o: &Outline| self.planned.subjects.binary_search_by(|s| s.cmp_place(o.kind, &o.key)).ok();
        let known = |at| self.outlines.get(at).filter(is_claim).and_then(place);
        let replanned: BTreeSet<usize> = near.reach().filter_map(known).collect();
        let in_sight: BTreeSet<usize> = near.objects().filter_map(known).collect();
        let others = self.planned.subjects.iter().enumerate().filter(|(at, _)| !replanned.contains(at));
        let mut subjects: Vec<Subject> = others
            .map(|(at, subject)| match in_sight.contains(&at) {
                true => subject.without_row(),
                false => subject.clone(),
            })
            .collect();
        for outline in near.reach().filter_map(|at| changes.outline(self, at)).filter(is_claim) {
            let leaves = self.last_holder(changes, outline).filter(|_| outline.deleting);
            subjects.extend(Subject::new(outline, leaves));
        }
        claims::sort(&mut subjects);
        subjects
    }

    /// The resource that holds a claim; the last one if several do, as in a plan from scratch.
    fn last_holder(&self, changes: &Changes, claim: &Outline) -> Option<Name> {
        let mut near = BTreeSet::new();
        self.links.neighbours(claim, &mut near);
        changes.links.neighbours(claim, &mut near);
        let holders = near.into_iter().filter_map(|at| changes.outline(self, at));
        let holders = holders.filter(|o| o.holds().any(|uid| *uid == claim.uid));
        holders.max_by(|a, b| (a.kind, &a.key).cmp(&(b.kind, &b.key))).map(|o| o.key.name.clone())
    }

    fn holdings(&self, near: &Neighbourhood, changes: &Changes) -> Vec<Holding> {
        let mut holdings = self.planned.holdings.clone();
        let in_sight: BTreeSet<(Kind, &ObjectKey)> =
            near.objects().filter_map(|at| self.outlines.get(at)).map(|o| (o.kind, &o.key)).collect();
        for holding in &mut holdings {
            holding.row = holding.row.filter(|_| !in_sight.contains(&(holding.kind(), &holding.key)));
        }
        let known = changes.by_place.keys().filter_map(|at| self.outlines.get(*at));
        let known: BTreeSet<(Kind, &ObjectKey)> = known.map(|o| (o.kind, &o.key)).collect();
        holdings.retain(|holding| !known.contains(&(holding.kind(), &holding.key)));
        let new: Vec<Object> = changes.by_place.values().filter_map(|c| c.object.clone()).collect();
        holdings.extend(resources::holdings(&new, &self.options.system_namespace));
        resources::sort(&mut holdings);
        holdings
    }
}

/// Index of the first object with each key.
fn first_at(objects: &[Object]) -> BTreeMap<(Kind, ObjectKey), usize> {
    let mut first = BTreeMap::new();
    for (at, object) in objects.iter().enumerate() {
        first.entry((object.kind, crate::world::key_of(object))).or_insert(at);
    }
    first
}

/// Changes by the position of their object in the base, new objects last.
#[derive(Default)]
struct Changes {
    by_place: BTreeMap<usize, Change>,
    links: Links,
}

struct Change {
    object: Option<Object>,
    outline: Option<Outline>,
}

impl Changes {
    /// The outline after the changes; `None` if the object is deleted.
    fn outline<'a>(&'a self, base: &'a BasePlan, at: usize) -> Option<&'a Outline> {
        match self.by_place.get(&at) {
            Some(change) => change.outline.as_ref(),
            None => base.outlines.get(at),
        }
    }
}

/// Indexes of which object has which key, and which resources reference which claims.
#[derive(Default)]
struct Links {
    at: BTreeMap<(Kind, ObjectKey), usize>,
    claims: BTreeMap<Uid, usize>,
    named_at: BTreeMap<(Kind, ObjectKey), Vec<usize>>,
    held_by: BTreeMap<Uid, Vec<usize>>,
}

impl Links {
    fn note(&mut self, at: usize, outline: &Outline) {
        let place = (outline.kind, outline.key.clone());
        if let Kind::Claim(_) = outline.kind {
            self.claims.insert(outline.uid.clone(), at);
        }
        self.at.insert(place, at);
        for named in &outline.names {
            if let Some(place) = &named.claim {
                self.named_at.entry(place.clone()).or_default().push(at);
            }
            if let Some(uid) = &named.uid {
                self.held_by.entry(uid.clone()).or_default().push(at);
            }
        }
    }

    /// Adds the objects that this one references, those that reference it, and those that reference the same claims.
    fn neighbours(&self, outline: &Outline, found: &mut BTreeSet<usize>) {
        for named in &outline.names {
            found.extend(named.claim.as_ref().and_then(|place| self.at.get(place)));
            if let Some(uid) = &named.uid {
                found.extend(self.claims.get(uid));
                found.extend(self.held_by.get(uid).into_iter().flatten());
            }
        }
        if let Kind::Claim(_) = outline.kind {
            let place = (outline.kind, outline.key.clone());
            found.extend(self.named_at.get(&place).into_iter().flatten());
            found.extend(self.held_by.get(&outline.uid).into_iter().flatten());
        }
    }
}

fn latest<'a>(outlines: impl IntoIterator<Item = &'a Outline>) -> Time {
    identity::latest(outlines.into_iter().filter_map(|o| o.created))
}

/// The objects near a change, with their distance from it. A resource and the claims it references are neighbours.
struct Neighbourhood {
    distances: BTreeMap<usize, usize>,
}

impl Neighbourhood {
    /// Returns `None` if it grows so large that planning from scratch costs no more.
    fn around(base: &BasePlan, changes: &Changes) -> Option<Neighbourhood> {
        let mut distances: BTreeMap<usize, usize> = changes.by_place.keys().map(|at| (*at, 0)).collect();
        let mut edge: Vec<usize> = changes.by_place.keys().copied().collect();
        let most = changes.by_place.len() + base.outlines.len() / SHARE_MAX + SHARE_MAX;
        for distance in 1..=SIGHT {
            let mut next = BTreeSet::new();
            for at in edge {
                // Before the changes and after.
                for outline in base.outlines.get(at).into_iter().chain(changes.outline(base, at)) {
                    base.links.neighbours(outline, &mut next);
                    changes.links.neighbours(outline, &mut next);
                }
            }
            edge = next.into_iter().filter(|at| !distances.contains_key(at)).collect();
            distances.extend(edge.iter().map(|at| (*at, distance)));
            if distances.len() > most {
                return None;
            }
        }
        Some(Neighbourhood { distances })
    }

    fn objects(&self) -> impl Iterator<Item = usize> {
        self.distances.keys().copied()
    }

    fn reach(&self) -> impl Iterator<Item = usize> {
        self.distances.iter().filter(|(_, distance)| **distance <= REACH).map(|(at, _)| *at)
    }

    /// For each object within reach, whether it is affected after the changes.
    fn affected(&self, base: &BasePlan, changes: &Changes) -> Vec<(usize, bool)> {
        let there = self.objects().filter_map(|at| Some((at, changes.outline(base, at)?)));
        let (places, outlines): (Vec<usize>, Vec<&Outline>) = there.unzip();
        let affected = find_affected(&outlines, base.may_refuse);
        let affected: BTreeMap<usize, bool> = places.into_iter().zip(affected).collect();
        self.reach().map(|at| (at, affected.get(&at).copied().unwrap_or(false))).collect()
    }
}
