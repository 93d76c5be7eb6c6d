//! Lanes: parked claims that are alike in all that matters for a match, one behind the other.
//! What does not help the first of a lane helps none of it, so an event wakes one claim per lane.

use super::Turn;
use crate::model::{ClassWant, FieldWant, Name, TypeId, Uid, Wants};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What makes claims alike: what they ask, and what they wait for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LaneKey {
    /// Their type.
    pub ty: TypeId,
    /// What they wait for.
    pub wait: Wait,
    /// What they ask for.
    pub wants: Arc<Wants>,
    /// The profile that they chose.
    pub profile: Option<Name>,
    /// The only claim of the lane, where something is known that stands in the way of this one and of no other.
    pub alone: Option<Uid>,
}

/// What could help the claims of a lane.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Wait {
    /// A resource that fits, or a class that makes one.
    Match,
    /// The resource of this name.
    Resource(Name),
    /// More quota, for claims of this namespace.
    Quota(Name),
    /// A match in one class, or more quota for another, for claims of this namespace.
    MatchOrQuota(Name),
    /// The resource of this name to hold less, or more quota for claims of this namespace.
    ResourceOrQuota(Name, Name),
    /// Other limits in this namespace.
    Limits(Name),
    /// A readable profile of this name.
    Profile(Name),
    /// Nothing but a change of the claim itself.
    Itself(Name),
}

/// The claims of one lane.
#[derive(Clone, Debug, Default)]
pub struct Lane {
    all: BTreeSet<Turn>,
    by_namespace: BTreeMap<Name, BTreeSet<Turn>>,
}

/// Every lane that has a claim in it.
#[derive(Clone, Debug, Default)]
pub struct Lanes {
    lanes: BTreeMap<LaneKey, Lane>,
    /// Lanes that wait for a match, by the class and the group name that would help.
    matching: BTreeMap<(TypeId, ClassName, Option<Name>), BTreeSet<LaneKey>>,
    /// Lanes whose claims name no class, by type: the default class is theirs too.
    defaulting: BTreeMap<TypeId, BTreeSet<LaneKey>>,
    /// Lanes whose profile does not ask for the class, by type.
    anywhere: BTreeMap<TypeId, BTreeSet<LaneKey>>,
}

/// A class by which lanes are looked up.
type ClassName = Option<Name>;

impl Lanes {
    pub(super) fn insert(&mut self, key: &LaneKey, namespace: &str, turn: Turn) {
        if !self.lanes.contains_key(key) {
            self.register(key, true);
        }
        let lane = self.lanes.entry(key.clone()).or_default();
        lane.by_namespace.entry(Name::from(namespace)).or_default().insert(turn.clone());
        lane.all.insert(turn);
    }

    pub(super) fn remove(&mut self, key: &LaneKey, namespace: &str, turn: &Turn) {
        let Some(lane) = self.lanes.get_mut(key) else { return };
        lane.all.remove(turn);
        if let Some(turns) = lane.by_namespace.get_mut(namespace) {
            turns.remove(turn);
            if turns.is_empty() {
                lane.by_namespace.remove(namespace);
            }
        }
        if lane.all.is_empty() {
            self.lanes.remove(key);
            self.register(key, false);
        }
    }

    /// The first claim of a lane, or the first of one namespace.
    pub fn head(&self, key: &LaneKey, namespace: Option<&str>) -> Option<Uid> {
        let lane = self.lanes.get(key)?;
        let turns = match namespace {
            Some(namespace) => lane.by_namespace.get(namespace)?,
            None => &lane.all,
        };
        turns.first().map(|turn| turn.claim.clone())
    }

    /// The lanes that a resource of this class and group name could help.
    pub fn for_resource(
        &self,
        ty: TypeId,
        class: Option<&Name>,
        group: Option<&Name>,
    ) -> impl Iterator<Item = &LaneKey> {
        let of_group = |group: Option<&Name>| self.matching.get(&(ty, class.cloned(), group.cloned()));
        let named = group.and_then(|group| of_group(Some(group)));
        of_group(None).into_iter().chain(named).chain(self.anywhere.get(&ty)).flatten()
    }

    /// The lanes whose claims would take anything of this class.
    pub fn for_class(&self, ty: TypeId, class: &Name) -> Vec<LaneKey> {
        let first = (ty, Some(class.clone()), None);
        let of_class =
            self.matching.range(first..).take_while(|((t, c, _), _)| *t == ty && c.as_ref() == Some(class));
        of_class.flat_map(|(_, lanes)| lanes).cloned().collect()
    }

    /// The lanes whose claims name no class.
    pub fn for_default_class(&self, ty: TypeId) -> impl Iterator<Item = &LaneKey> {
        self.defaulting.get(&ty).into_iter().flatten()
    }

    /// The lanes whose claims name a resource and no class. They are all looked at: a default class seldom changes.
    pub fn naming_no_class(&self, ty: TypeId) -> impl Iterator<Item = &LaneKey> {
        let names = |wait: &Wait| matches!(wait, Wait::Resource(_) | Wait::ResourceOrQuota(..));
        let of_type = self.lanes.keys().filter(move |key| key.ty == ty && names(&key.wait));
        of_type.filter(|key| key.wants.class == ClassWant::Absent)
    }

    /// The lanes that wait for one thing, in all types.
    pub fn waiting_for(&self, wait: &Wait) -> Vec<LaneKey> {
        let mut found = self.waiting_exactly(wait);
        if let Wait::Quota(namespace) = wait {
            found.extend(self.waiting_exactly(&Wait::MatchOrQuota(namespace.clone())));
        }
        found.extend(self.waiting_for_either(wait));
        found
    }

    /// The lanes that wait for this one thing or another. Those whose resource is too large for their quota are few, so
    /// all of them are looked at for a quota.
    fn waiting_for_either(&self, wait: &Wait) -> Vec<LaneKey> {
        let nameless = Name::from("");
        let (resource, namespace) = match wait {
            Wait::Resource(name) => (name, None),
            Wait::Quota(namespace) => (&nameless, Some(namespace)),
            _ => return Vec::new(),
        };
        let first = Wait::ResourceOrQuota(resource.clone(), nameless.clone());
        let is_wanted = |(key, _): &(&LaneKey, &Lane)| match (&key.wait, namespace) {
            (Wait::ResourceOrQuota(_, of), Some(namespace)) => of == namespace,
            _ => true,
        };
        let is_in_range = |key: &LaneKey| match &key.wait {
            Wait::ResourceOrQuota(of, _) => namespace.is_some() || of == resource,
            _ => false,
        };
        let of_type = |ty: TypeId| {
            let lanes = self.lanes.range(first_lane(ty, first.clone())..);
            let lanes = lanes.take_while(move |(key, _)| key.ty == ty && is_in_range(key));
            lanes.filter(is_wanted).map(|(key, _)| key.clone()).collect::<Vec<_>>()
        };
        TypeId::all().flat_map(of_type).collect()
    }

    fn waiting_exactly(&self, wait: &Wait) -> Vec<LaneKey> {
        let of_type = |ty: TypeId| {
            let lanes = self.lanes.range(first_lane(ty, wait.clone())..);
            lanes.take_while(move |(key, _)| key.ty == ty && key.wait == *wait).map(|(key, _)| key.clone())
        };
        TypeId::all().flat_map(of_type).collect()
    }

    /// The namespaces in which claims wait for quota.
    pub fn namespaces_over_quota(&self) -> BTreeSet<Name> {
        let namespace = |key: &LaneKey| match &key.wait {
            Wait::Quota(namespace) | Wait::MatchOrQuota(namespace) | Wait::ResourceOrQuota(_, namespace) => {
                Some(namespace.clone())
            }
            Wait::Match | Wait::Resource(_) | Wait::Limits(_) | Wait::Profile(_) | Wait::Itself(_) => None,
        };
        self.lanes.keys().filter_map(namespace).collect()
    }

    /// Every lane.
    pub fn all(&self) -> impl Iterator<Item = &LaneKey> {
        self.lanes.keys()
    }

    /// How many lanes have claims.
    pub fn len(&self) -> usize {
        self.lanes.len()
    }

    /// Whether nothing is parked.
    pub fn is_empty(&self) -> bool {
        self.lanes.is_empty()
    }

    fn register(&mut self, key: &LaneKey, add: bool) {
        match key.wait {
            Wait::Match | Wait::MatchOrQuota(_) => {}
            Wait::Resource(_)
            | Wait::Quota(_)
            | Wait::ResourceOrQuota(..)
            | Wait::Limits(_)
            | Wait::Profile(_)
            | Wait::Itself(_) => return,
        }
        let group = group_name(key.ty, &key.wants);
        let classes: Vec<ClassName> = match &key.wants.class {
            ClassWant::Absent | ClassWant::Classless => vec![None],
            ClassWant::Named(names) => names.iter().cloned().map(Some).collect(),
            ClassWant::Any => Vec::new(),
        };
        for class in classes {
            update(&mut self.matching, (key.ty, class, group.clone()), key, add);
        }
        match key.wants.class {
            ClassWant::Absent => update(&mut self.defaulting, key.ty, key, add),
            ClassWant::Any => update(&mut self.anywhere, key.ty, key, add),
            ClassWant::Classless | ClassWant::Named(_) => {}
        }
    }
}

/// What comes before every lane of a type that waits for this.
fn first_lane(ty: TypeId, wait: Wait) -> LaneKey {
    LaneKey { ty, wait, wants: Arc::new(Wants::least()), profile: None, alone: None }
}

fn update<K: Ord + Clone>(map: &mut BTreeMap<K, BTreeSet<LaneKey>>, at: K, lane: &LaneKey, add: bool) {
    if add {
        map.entry(at).or_default().insert(lane.clone());
    } else if let Some(lanes) = map.get_mut(&at) {
        lanes.remove(lane);
        if lanes.is_empty() {
            map.remove(&at);
        }
    }
}

/// The group name (the engine) that a claim asks for, if any.
pub(crate) fn group_name(ty: TypeId, wants: &Wants) -> Option<Name> {
    let at = ty.rules().group_field()?;
    match &wants.fields[at] {
        FieldWant::Name(name) => Some(name.clone()),
        FieldWant::Any | FieldWant::Range(_) | FieldWant::Flag | FieldWant::Contains(_) => None,
    }
}
