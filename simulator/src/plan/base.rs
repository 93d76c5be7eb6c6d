//! A state that was planned once and is asked again and again, each time with a few objects changed.
//!
//! ```text
//! objects -> seen by an engine, nothing decided -+-> planned: the state as it is
//!                                                +-> a copy, told of the changes -> planned: the state as it would be
//! ```
//!
//! The copy decides about every claim that waits anew, in order: one that comes in front of others moves all of them, and
//! only deciding tells. What is spared is reading, identifying and showing the objects, settling the claims that are bound,
//! and writing down and digesting what becomes of those that no change is near to. Some changes reach further than the
//! objects that they change: which claim a reference without a life means, what a holder takes of a resource that does not
//! say it, or whether classes may refuse claims at all.
//! Such a change is not made here; whoever asks plans anew.

use super::claims::Subject;
use super::identity::{self, Identified, identified, stand_in};
use super::moving::{Outline, find_moving};
use super::resources::{Holding, Known};
use super::seal::Seals;
use super::stage::Stage;
use super::{Options, Plan, Planned, claims, config, resources};
use crate::world::Stored;
use conductor::model::{Kind, Name, Object, ObjectKey, Revision, Time, Uid};
use std::collections::{BTreeMap, BTreeSet};

/// A neighbourhood larger than this share of all objects is not looked at alone.
const SHARE_MAX: usize = 4;
/// As far from a change as this an object can begin to move, or cease to.
const REACH: usize = 3;
/// As far from a change as this is looked to tell.
const SIGHT: usize = 6;

/// Beyond this there is no room to count on.
const REVISION_MAX: u64 = u64::MAX / 2;

/// A state that was planned.
pub struct Base {
    options: Options,
    /// As they were given.
    given: Vec<Stored>,
    /// What they say of themselves, in the order of their places, with the UID that each goes by.
    outlines: Vec<Outline>,
    /// Of each where it stands among those given, and whether its UID is its own, and not made up here.
    origins: Vec<usize>,
    own_uids: Vec<bool>,
    moving: Vec<bool>,
    /// Whether each place and each UID is one object's.
    is_distinct: bool,
    /// The claims that a resource holds without saying what they take.
    unsaid: BTreeSet<Uid>,
    may_refuse: bool,
    links: Links,
    seen: Stage,
    planned: Planned,
    plan: Plan,
    seals: Seals,
}

/// One object that is otherwise than in the base.
#[derive(Clone, Debug)]
pub struct Replaced {
    /// Its kind.
    pub kind: Kind,
    /// Where it is.
    pub key: ObjectKey,
    /// As it would be; nothing where it would be gone.
    pub object: Option<Object>,
}

impl Base {
    /// Lets the engine decide about `objects`.
    pub fn new(objects: Vec<Object>, options: &Options) -> Base {
        let given = objects.iter().map(Stored::folded).collect();
        let first_at = first_at(&objects);
        let Identified { objects, own_uids, is_distinct, unsaid } = identified(objects);
        let outlines: Vec<Outline> = objects.iter().map(Outline::read).collect();
        // Later than everything, so that what is shown again is not taken for something older.
        let revisions = objects.iter().map(|o| Revision::read(o.metadata.resource_version.as_deref()).0);
        let revision = revisions.max().unwrap_or(0);
        let is_distinct = is_distinct && revision < REVISION_MAX;
        let origins =
            outlines.iter().filter_map(|o| first_at.get(&(o.kind, o.key.clone())).copied()).collect();
        let may_refuse = outlines.iter().any(|o| o.has_schema);
        let moving = find_moving(&outlines.iter().collect::<Vec<_>>(), may_refuse);
        let (subjects, holdings) =
            (claims::subjects(&objects), resources::holdings(&objects, &options.system_namespace));
        let seen = Stage::see(objects, &moving, config(options), revision);
        let stage = seen.clone().settled(latest(&outlines));
        let mut planned = Planned { stage, subjects, holdings, options: options.clone() };
        let mut plan = planned.unsealed_plan(None);
        for (at, subject) in planned.subjects.iter_mut().enumerate() {
            subject.row = subject.is_settled(&seen.engine).then_some(at);
        }
        for (at, holding) in planned.holdings.iter_mut().enumerate() {
            holding.row = (!seen.moves(holding.kind(), &holding.key)).then_some(at);
        }
        let seals = Seals::of(&plan);
        plan.digest = seals.digest(&plan);
        let mut links = Links::default();
        outlines.iter().enumerate().for_each(|(at, outline)| links.note(at, outline));
        let options = options.clone();
        Base {
            options,
            given,
            outlines,
            origins,
            own_uids,
            moving,
            is_distinct,
            unsaid,
            may_refuse,
            links,
            seen,
            planned,
            plan,
            seals,
        }
    }

    /// The state as it is.
    pub fn planned(&self) -> &Planned {
        &self.planned
    }

    /// Its plan.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The plan of the state with something otherwise, without its digest.
    pub(crate) fn unsealed_plan(&self, planned: &Planned) -> Plan {
        planned.unsealed_plan(Some(Known { plan: &self.plan, state: self.planned.stage.engine.state() }))
    }

    /// The digest of such a plan.
    pub(crate) fn digest(&self, plan: &Plan) -> String {
        self.seals.beside(&self.plan, plan).digest(plan)
    }

    /// What it was planned under.
    pub fn options(&self) -> &Options {
        &self.options
    }

    /// Every object, as and in the order in which it was given.
    pub fn objects(&self) -> impl Iterator<Item = Object> {
        self.given.iter().map(Stored::to_object)
    }

    /// The object at a place, as it was given; of several the first.
    pub fn find(&self, kind: Kind, key: &ObjectKey) -> Option<Object> {
        let at = self.links.at.get(&(kind, key.clone()))?;
        Some(self.given[self.origins[*at]].to_object())
    }

    /// The places of everything that is in a namespace.
    pub fn places_in(&self, namespace: &str) -> impl Iterator<Item = (Kind, ObjectKey)> {
        let there = self.outlines.iter().filter(move |o| &*o.key.namespace == namespace);
        there.map(|o| (o.kind, o.key.clone()))
    }

    /// An object under the UID that it goes by, its references complete.
    fn identified(&self, at: usize) -> Object {
        let given = |at: usize| self.given[self.origins[at]].to_object();
        let mut object = given(at);
        object.metadata.uid = Some(self.outlines[at].uid.to_string());
        identity::say(&mut object, |uid| {
            let claim = given(*self.links.claims.get(uid)?);
            identity::requests(&claim).cloned()
        });
        object
    }

    /// The state with these objects otherwise, each place at most once; nothing where that must be planned anew.
    pub fn with(&self, replaced: Vec<Replaced>) -> Option<Planned> {
        let changes = self.changes(replaced)?;
        let near = Neighbourhood::around(self, &changes)?;
        let moving = near.moving(self, &changes);
        let mut stage = self.seen.clone();
        for (at, moves) in &moving {
            match changes.by_place.get(at).map(|change| &change.object) {
                Some(Some(object)) => stage.show(object.clone(), *moves),
                Some(None) => stage.lose(&self.outlines[*at]),
                None if self.moving[*at] != *moves => stage.show(self.identified(*at), *moves),
                None => {}
            }
        }
        let stage = stage.settled(self.latest(&changes));
        let (subjects, holdings) = (self.subjects(&near, &changes), self.holdings(&near, &changes));
        Some(Planned { stage, subjects, holdings, options: self.options.clone() })
    }

    /// The changes by the place among the objects, new ones after all others, each object with its UID.
    fn changes(&self, replaced: Vec<Replaced>) -> Option<Changes> {
        let mut changes = Changes::default();
        let mut places = BTreeSet::new();
        for Replaced { kind, key, object } in replaced {
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

    /// Whether a change could make a claim take something else of a resource that does not say what it takes.
    fn reaches_holders(&self, changes: &Changes) -> bool {
        changes.by_place.iter().any(|(at, change)| {
            let is = change.outline.as_ref();
            let both = self.outlines.get(*at).into_iter().chain(is);
            let is_held =
                both.filter(|o| matches!(o.kind, Kind::Claim(_))).any(|o| self.unsaid.contains(&o.uid));
            is_held || is.is_some_and(|o| o.names.iter().any(|named| named.is_unsaid))
        })
    }

    /// Whether a change could make a claim that has no UID of its own another one than it is in the base.
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

    /// What does not change.
    fn kept<'a>(&'a self, changes: &'a Changes) -> impl Iterator<Item = &'a Outline> {
        let all = self.outlines.iter().enumerate();
        all.filter(|(at, _)| !changes.by_place.contains_key(at)).map(|(_, outline)| outline)
    }

    fn subjects(&self, near: &Neighbourhood, changes: &Changes) -> Vec<Subject> {
        let is_claim = |o: &&Outline| matches!(o.kind, Kind::Claim(_));
        let place =
            |o: &Outline| self.planned.subjects.binary_search_by(|s| s.cmp_place(o.kind, &o.key)).ok();
        let known = |at| self.outlines.get(at).filter(is_claim).and_then(place);
        let told_anew: BTreeSet<usize> = near.reach().filter_map(known).collect();
        let in_sight: BTreeSet<usize> = near.objects().filter_map(known).collect();
        let others = self.planned.subjects.iter().enumerate().filter(|(at, _)| !told_anew.contains(at));
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

    /// Who holds a claim: of several the last, as where all are looked through in order.
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

/// Where each place is first among the objects.
fn first_at(objects: &[Object]) -> BTreeMap<(Kind, ObjectKey), usize> {
    let mut first = BTreeMap::new();
    for (at, object) in objects.iter().enumerate() {
        first.entry((object.kind, crate::world::key_of(object))).or_insert(at);
    }
    first
}

/// Changes by the place among the objects of the base, new ones after all others.
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
    /// As an object is after the changes; nothing where it is gone.
    fn outline<'a>(&'a self, base: &'a Base, at: usize) -> Option<&'a Outline> {
        match self.by_place.get(&at) {
            Some(change) => change.outline.as_ref(),
            None => base.outlines.get(at),
        }
    }
}

/// Who is where, and who names whom.
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

    /// Whom an object names, and who names it or the same.
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

/// The objects around a change, with their distance from it. Claims and resources are neighbours that name one another.
struct Neighbourhood {
    /// In the order of the objects.
    distances: BTreeMap<usize, usize>,
}

impl Neighbourhood {
    /// Nothing where it is so large that the whole may as well be looked at.
    fn around(base: &Base, changes: &Changes) -> Option<Neighbourhood> {
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

    /// Of each object that a change can reach, whether it moves after the changes.
    fn moving(&self, base: &Base, changes: &Changes) -> Vec<(usize, bool)> {
        let there = self.objects().filter_map(|at| Some((at, changes.outline(base, at)?)));
        let (places, outlines): (Vec<usize>, Vec<&Outline>) = there.unzip();
        let moving = find_moving(&outlines, base.may_refuse);
        let moving: BTreeMap<usize, bool> = places.into_iter().zip(moving).collect();
        self.reach().map(|at| (at, moving.get(&at).copied().unwrap_or(false))).collect()
    }
}
