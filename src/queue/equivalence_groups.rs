//! Equivalence groups: parked claims that are alike in all that matters for a match, one behind the other.
//! What does not help the first of a group helps none of it, so an event wakes one claim per group.

use super::Turn;
use crate::model::{ClassWant, FieldWant, Name, TypeId, Uid, Wants};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What makes claims alike: what they request, and what they wait for.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct EquivalenceKey {
    /// Their type.
    pub ty: TypeId,
    /// What they wait for.
    pub wait: Wait,
    /// What they request.
    pub wants: Arc<Wants>,
    /// The profile that they chose.
    pub profile: Option<Name>,
    /// The only claim of the group, where an obstacle is known that concerns this one and no other.
    pub alone: Option<Uid>,
}

/// What could help the claims of a group.
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

/// The claims of one group.
#[derive(Clone, Debug, Default)]
pub struct Group {
    all: BTreeSet<Turn>,
    by_namespace: BTreeMap<Name, BTreeSet<Turn>>,
}

/// Every group that has a claim in it.
#[derive(Clone, Debug, Default)]
pub struct EquivalenceGroups {
    groups: BTreeMap<EquivalenceKey, Group>,
    /// Groups that wait for a match, by the class and the group name that would help.
    matching: BTreeMap<(TypeId, ClassName, Option<Name>), BTreeSet<EquivalenceKey>>,
    /// EquivalenceGroups whose claims name no class, by type: the default class is theirs too.
    defaulting: BTreeMap<TypeId, BTreeSet<EquivalenceKey>>,
    /// Groups whose profile does not check the class, by type.
    anywhere: BTreeMap<TypeId, BTreeSet<EquivalenceKey>>,
}

/// A class by which groups are looked up.
type ClassName = Option<Name>;

impl EquivalenceGroups {
    pub(super) fn insert(&mut self, key: &EquivalenceKey, namespace: &str, turn: Turn) {
        if !self.groups.contains_key(key) {
            self.register(key, true);
        }
        let group = self.groups.entry(key.clone()).or_default();
        group.by_namespace.entry(Name::from(namespace)).or_default().insert(turn.clone());
        group.all.insert(turn);
    }

    pub(super) fn remove(&mut self, key: &EquivalenceKey, namespace: &str, turn: &Turn) {
        let Some(group) = self.groups.get_mut(key) else { return };
        group.all.remove(turn);
        if let Some(turns) = group.by_namespace.get_mut(namespace) {
            turns.remove(turn);
            if turns.is_empty() {
                group.by_namespace.remove(namespace);
            }
        }
        if group.all.is_empty() {
            self.groups.remove(key);
            self.register(key, false);
        }
    }

    /// The first claim of a group, or the first of one namespace.
    pub fn head(&self, key: &EquivalenceKey, namespace: Option<&str>) -> Option<Uid> {
        let group = self.groups.get(key)?;
        let turns = match namespace {
            Some(namespace) => group.by_namespace.get(namespace)?,
            None => &group.all,
        };
        turns.first().map(|turn| turn.claim.clone())
    }

    /// The groups that a resource of this class and group name could help.
    pub fn for_resource(
        &self,
        ty: TypeId,
        class: Option<&Name>,
        group_name: Option<&Name>,
    ) -> impl Iterator<Item = &EquivalenceKey> {
        let of_group = |name: Option<&Name>| self.matching.get(&(ty, class.cloned(), name.cloned()));
        let named = group_name.and_then(|name| of_group(Some(name)));
        of_group(None).into_iter().chain(named).chain(self.anywhere.get(&ty)).flatten()
    }

    /// The groups whose claims would take anything of this class.
    pub fn for_class(&self, ty: TypeId, class: &Name) -> Vec<EquivalenceKey> {
        let first = (ty, Some(class.clone()), None);
        let of_class =
            self.matching.range(first..).take_while(|((t, c, _), _)| *t == ty && c.as_ref() == Some(class));
        of_class.flat_map(|(_, groups)| groups).cloned().collect()
    }

    /// The groups whose claims name no class.
    pub fn for_default_class(&self, ty: TypeId) -> impl Iterator<Item = &EquivalenceKey> {
        self.defaulting.get(&ty).into_iter().flatten()
    }

    /// The groups whose claims name a resource and no class. It scans all groups: a default class seldom changes.
    pub fn naming_no_class(&self, ty: TypeId) -> impl Iterator<Item = &EquivalenceKey> {
        let names = |wait: &Wait| matches!(wait, Wait::Resource(_) | Wait::ResourceOrQuota(..));
        let of_type = self.groups.keys().filter(move |key| key.ty == ty && names(&key.wait));
        of_type.filter(|key| key.wants.class == ClassWant::Absent)
    }

    /// The groups that wait for one thing, in all types.
    pub fn waiting_for(&self, wait: &Wait) -> Vec<EquivalenceKey> {
        let mut found = self.waiting_exactly(wait);
        if let Wait::Quota(namespace) = wait {
            found.extend(self.waiting_exactly(&Wait::MatchOrQuota(namespace.clone())));
        }
        found.extend(self.waiting_for_either(wait));
        found
    }

    /// The groups that wait for this one thing or another. Those whose resource is too large for their quota are few, so
    /// a quota scans all of them.
    fn waiting_for_either(&self, wait: &Wait) -> Vec<EquivalenceKey> {
        let nameless = Name::from("");
        let (resource, namespace) = match wait {
            Wait::Resource(name) => (name, None),
            Wait::Quota(namespace) => (&nameless, Some(namespace)),
            _ => return Vec::new(),
        };
        let first = Wait::ResourceOrQuota(resource.clone(), nameless.clone());
        let is_wanted = |(key, _): &(&EquivalenceKey, &Group)| match (&key.wait, namespace) {
            (Wait::ResourceOrQuota(_, of), Some(namespace)) => of == namespace,
            _ => true,
        };
        let is_in_range = |key: &EquivalenceKey| match &key.wait {
            Wait::ResourceOrQuota(of, _) => namespace.is_some() || of == resource,
            _ => false,
        };
        let of_type = |ty: TypeId| {
            let groups = self.groups.range(first_key(ty, first.clone())..);
            let groups = groups.take_while(move |(key, _)| key.ty == ty && is_in_range(key));
            groups.filter(is_wanted).map(|(key, _)| key.clone()).collect::<Vec<_>>()
        };
        TypeId::all().flat_map(of_type).collect()
    }

    fn waiting_exactly(&self, wait: &Wait) -> Vec<EquivalenceKey> {
        let of_type = |ty: TypeId| {
            let groups = self.groups.range(first_key(ty, wait.clone())..);
            groups.take_while(move |(key, _)| key.ty == ty && key.wait == *wait).map(|(key, _)| key.clone())
        };
        TypeId::all().flat_map(of_type).collect()
    }

    /// The namespaces in which claims wait for quota.
    pub fn namespaces_over_quota(&self) -> BTreeSet<Name> {
        let namespace = |key: &EquivalenceKey| match &key.wait {
            Wait::Quota(namespace) | Wait::MatchOrQuota(namespace) | Wait::ResourceOrQuota(_, namespace) => {
                Some(namespace.clone())
            }
            Wait::Match | Wait::Resource(_) | Wait::Limits(_) | Wait::Profile(_) | Wait::Itself(_) => None,
        };
        self.groups.keys().filter_map(namespace).collect()
    }

    /// Every group.
    pub fn all(&self) -> impl Iterator<Item = &EquivalenceKey> {
        self.groups.keys()
    }

    /// How many groups have claims.
    pub fn len(&self) -> usize {
        self.groups.len()
    }

    /// Whether nothing is parked.
    pub fn is_empty(&self) -> bool {
        self.groups.is_empty()
    }

    fn register(&mut self, key: &EquivalenceKey, add: bool) {
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

/// What comes before every group of a type that waits for this.
fn first_key(ty: TypeId, wait: Wait) -> EquivalenceKey {
    EquivalenceKey { ty, wait, wants: Arc::new(Wants::least()), profile: None, alone: None }
}

fn update<K: Ord + Clone>(
    map: &mut BTreeMap<K, BTreeSet<EquivalenceKey>>,
    at: K,
    group: &EquivalenceKey,
    add: bool,
) {
    if add {
        map.entry(at).or_default().insert(group.clone());
    } else if let Some(groups) = map.get_mut(&at) {
        groups.remove(group);
        if groups.is_empty() {
            map.remove(&at);
        }
    }
}

/// The group name (the engine) that a claim requests, if any.
pub(crate) fn group_name(ty: TypeId, wants: &Wants) -> Option<Name> {
    let at = ty.rules().group_field()?;
    match &wants.fields[at] {
        FieldWant::Name(name) => Some(name.clone()),
        FieldWant::Any | FieldWant::Range(_) | FieldWant::Flag | FieldWant::Contains(_) => None,
    }
}
