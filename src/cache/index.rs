//! The index of one type's resources: class, then engine, then version, then shape, then what is left.
//! A decision walks shapes, never resources. Searching lives in `find`, counting refusals in `tally`.
//!
//! ```text
//! class -> group (engine) -> open to all      -> version -> shapes -> best-fit order
//!                         -> one namespace's  -> version -> shapes -> best-fit order
//! ```

use super::shape::{Free, Members, Named, ShapeKey};
use crate::model::{Capacity, FieldValue, Name, Offer, Predicate, TypeId, Version};
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A resource's place in the cache, reused after it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub u32);

/// How a resource stands to claims at large, before one asks whether it fits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Standing {
    /// Offered, and nobody holds it.
    Vacant,
    /// Offered, and others hold it too.
    Shared,
    /// In a phase in which nothing can claim it.
    Phase,
    /// Taken off the market by an administrator.
    Cordoned,
    /// Reserved for one claim, or held by it.
    Reserved,
    /// Shared, and every slot is taken.
    Full,
}

impl Standing {
    /// The standings that are not offered, in the order in which they are asked.
    pub const WITHHELD: [Standing; 4] =
        [Standing::Phase, Standing::Cordoned, Standing::Reserved, Standing::Full];

    pub(super) fn withheld_at(self) -> Option<usize> {
        Standing::WITHHELD.iter().position(|s| *s == self)
    }

    /// The predicate that refuses a resource of this standing, where it is refused at all.
    pub fn predicate(self) -> Option<Predicate> {
        match self {
            Standing::Vacant | Standing::Shared => None,
            Standing::Phase => Some(Predicate::Phase),
            Standing::Cordoned => Some(Predicate::Cordoned),
            Standing::Reserved => Some(Predicate::Reserved),
            Standing::Full => Some(Predicate::Sharing),
        }
    }
}

/// A resource at one moment, as claims at large see it.
#[derive(Clone, Debug)]
pub struct Glance {
    standing: Standing,
    free: Free,
    offer: Arc<Offer>,
}

impl Glance {
    /// Whether the resource is offered now, and in some way was not before.
    pub fn is_better_than(&self, before: Option<&Glance>) -> bool {
        let offered = matches!(self.standing, Standing::Vacant | Standing::Shared);
        let better = before.is_none_or(|before| {
            self.standing < before.standing || !before.free.covers(&self.free) || self.offer != before.offer
        });
        offered && better
    }
}

/// Above so many shapes in a group, the label with the most values stops telling shapes apart.
const SHAPES_PER_GROUP_MAX: usize = 256;
/// A label with no more values than this is never demoted: it is what shapes are for.
const VALUES_KEPT_MAX: usize = 16;

/// Every resource of one type.
#[derive(Debug)]
pub struct Index {
    pub(super) ty: TypeId,
    /// Where the type has a name that groups are made of (the engine).
    pub(super) group_field: Option<usize>,
    /// Where the type has a version.
    pub(super) version_field: Option<usize>,
    pub(super) classes: BTreeMap<Option<Name>, ClassIndex>,
    pub(super) shapes: Vec<Shape>,
    shape_ids: BTreeMap<ShapeKey, ShapeId>,
    free_shapes: Vec<ShapeId>,
    pub(super) members: Vec<Option<Member>>,
    pub(super) total: usize,
    labels: BTreeMap<Name, BTreeMap<Name, u32>>,
    /// Labels that do not tell shapes apart; who has which value of them.
    pub(super) demoted: BTreeMap<Name, BTreeMap<Name, BTreeSet<ResourceId>>>,
    generation: u64,
}

pub(super) type ShapeId = usize;

#[derive(Debug, Default)]
pub(super) struct ClassIndex {
    pub total: usize,
    pub groups: BTreeMap<Option<Name>, Group>,
}

#[derive(Debug, Default)]
pub(super) struct Group {
    pub total: usize,
    /// Resources that are open to listed namespaces only.
    pub restricted: usize,
    pub open: Versions,
    pub by_namespace: BTreeMap<Name, Versions>,
    shapes: usize,
}

/// Shapes by version.
#[derive(Debug, Default)]
pub(super) struct Versions {
    pub total: usize,
    pub unversioned: Vec<ShapeId>,
    pub versions: BTreeMap<Version, Vec<ShapeId>>,
}

#[derive(Debug)]
pub(super) struct Shape {
    pub key: ShapeKey,
    pub version: Option<Version>,
    pub members: Members,
}

/// One resource in the index.
#[derive(Debug)]
pub(super) struct Member {
    pub name: Name,
    pub offer: Arc<Offer>,
    pub standing: Standing,
    pub free: Free,
    pub taken: Capacity,
    pub held: u32,
    shapes: SmallVec<[ShapeId; 1]>,
}

impl Index {
    /// An empty index for one type.
    pub fn new(ty: TypeId) -> Index {
        Index {
            ty,
            group_field: ty.rules().group_field(),
            version_field: ty.rules().version_field(),
            classes: BTreeMap::new(),
            shapes: Vec::new(),
            shape_ids: BTreeMap::new(),
            free_shapes: Vec::new(),
            members: Vec::new(),
            total: 0,
            labels: BTreeMap::new(),
            demoted: BTreeMap::new(),
            generation: 0,
        }
    }

    /// How many resources there are.
    pub fn len(&self) -> usize {
        self.total
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.total == 0
    }

    /// Counts every change: equal generations mean equal answers.
    pub fn generation(&self) -> u64 {
        self.generation
    }

    /// The name of an indexed resource.
    pub fn name(&self, id: ResourceId) -> Option<&Name> {
        self.member(id).map(|m| &m.name)
    }

    /// How an indexed resource stands to claims at large.
    pub fn standing(&self, id: ResourceId) -> Option<Standing> {
        self.member(id).map(|m| m.standing)
    }

    /// What claims at large can see of a resource, to tell whether a change could help one.
    pub fn glance(&self, id: ResourceId) -> Option<Glance> {
        let member = self.member(id)?;
        Some(Glance { standing: member.standing, free: member.free.clone(), offer: member.offer.clone() })
    }

    pub(super) fn member(&self, id: ResourceId) -> Option<&Member> {
        self.members.get(id.0 as usize)?.as_ref()
    }

    /// Puts a resource in its place, or moves it there.
    pub fn place(
        &mut self,
        id: ResourceId,
        name: &Name,
        offer: &Arc<Offer>,
        standing: Standing,
        taken: &Capacity,
        held: u32,
    ) {
        let free = Free::of(&offer.capacity.saturating_sub(taken));
        if let Some(member) = self.member(id)
            && Arc::ptr_eq(&member.offer, offer)
            && member.name == *name
        {
            return self.move_member(id, standing, free, taken, held);
        }
        self.remove(id);
        self.count_labels(id, offer, 1);
        self.insert(
            id,
            Member {
                name: name.clone(),
                offer: offer.clone(),
                standing,
                free,
                taken: taken.clone(),
                held,
                shapes: SmallVec::new(),
            },
        );
        self.demote_if_crowded(offer);
    }

    /// The offer is the same: only standing and what is left have moved.
    fn move_member(&mut self, id: ResourceId, standing: Standing, free: Free, taken: &Capacity, held: u32) {
        let Some(member) = self.members.get_mut(id.0 as usize).and_then(Option::as_mut) else { return };
        if (member.standing, &member.free, member.held) == (standing, &free, held) {
            return;
        }
        let named = Named { name: member.name.clone(), id };
        for shape in &member.shapes {
            let members = &mut self.shapes[*shape].members;
            members.remove(named.clone(), member.standing, &member.free);
            members.insert(named.clone(), standing, &free);
        }
        (member.standing, member.free, member.held) = (standing, free, held);
        member.taken = taken.clone();
        self.generation += 1;
    }

    /// Takes a resource out.
    pub fn remove(&mut self, id: ResourceId) {
        if let Some(member) = self.members.get_mut(id.0 as usize).and_then(Option::take) {
            self.detach(id, &member);
            let offer = member.offer.clone();
            self.count_labels(id, &offer, -1);
        }
    }

    fn insert(&mut self, id: ResourceId, mut member: Member) {
        let offer = member.offer.clone();
        let namespaces: SmallVec<[Option<Name>; 1]> = if offer.allowed_namespaces.is_empty() {
            SmallVec::from_buf([None])
        } else {
            offer.allowed_namespaces.iter().cloned().map(Some).collect()
        };
        let restricted = !offer.allowed_namespaces.is_empty();
        for namespace in namespaces {
            let shape = self.require_shape(&offer, namespace);
            let named = Named { name: member.name.clone(), id };
            self.shapes[shape].members.insert(named, member.standing, &member.free);
            member.shapes.push(shape);
            self.versions_mut(&offer, shape).total += 1;
        }
        let group_name = self.group_name(&offer.fields);
        let class = self.classes.entry(offer.class.clone()).or_default();
        class.total += 1;
        let group = class.groups.entry(group_name).or_default();
        group.total += 1;
        group.restricted += usize::from(restricted);
        let at = id.0 as usize;
        if self.members.len() <= at {
            self.members.resize_with(at + 1, || None);
        }
        self.members[at] = Some(member);
        self.total += 1;
        self.generation += 1;
    }

    fn detach(&mut self, id: ResourceId, member: &Member) {
        let offer = &member.offer;
        for shape in &member.shapes {
            let named = Named { name: member.name.clone(), id };
            self.shapes[*shape].members.remove(named, member.standing, &member.free);
            self.versions_mut(offer, *shape).total -= 1;
            if self.shapes[*shape].members.is_empty() {
                self.drop_shape(*shape);
            }
        }
        let group_name = self.group_name(&offer.fields);
        if let Some(class) = self.classes.get_mut(&offer.class) {
            class.total -= 1;
            if let Some(group) = class.groups.get_mut(&group_name) {
                group.total -= 1;
                group.restricted -= usize::from(!offer.allowed_namespaces.is_empty());
                if group.total == 0 {
                    class.groups.remove(&group_name);
                }
            }
            if class.total == 0 {
                self.classes.remove(&offer.class);
            }
        }
        self.total -= 1;
        self.generation += 1;
    }

    pub(super) fn group_name(&self, fields: &[FieldValue]) -> Option<Name> {
        match self.group_field.map(|at| &fields[at]) {
            Some(FieldValue::Name(name)) => Some(name.clone()),
            _ => None,
        }
    }

    fn version_of(&self, fields: &[FieldValue]) -> Option<Version> {
        match self.version_field.map(|at| &fields[at]) {
            Some(FieldValue::Version(version)) => Some((**version).clone()),
            _ => None,
        }
    }

    fn require_shape(&mut self, offer: &Offer, namespace: Option<Name>) -> ShapeId {
        let demoted = &self.demoted;
        let key = ShapeKey {
            class: offer.class.clone(),
            namespace,
            fields: offer.fields.clone(),
            labels: offer.labels.filtered(|label| !demoted.contains_key(label)),
        };
        if let Some(id) = self.shape_ids.get(&key) {
            return *id;
        }
        let version = self.version_of(&key.fields);
        let shape = Shape { key: key.clone(), version: version.clone(), members: Members::default() };
        let id = match self.free_shapes.pop() {
            Some(id) => {
                self.shapes[id] = shape;
                id
            }
            None => {
                self.shapes.push(shape);
                self.shapes.len() - 1
            }
        };
        let versions = self.versions_mut(offer, id);
        match version {
            Some(version) => versions.versions.entry(version).or_default().push(id),
            None => versions.unversioned.push(id),
        }
        self.group_mut(offer).shapes += 1;
        self.shape_ids.insert(key, id);
        id
    }

    fn drop_shape(&mut self, id: ShapeId) {
        let key = self.shapes[id].key.clone();
        let version = self.shapes[id].version.clone();
        self.shape_ids.remove(&key);
        self.free_shapes.push(id);
        let group_name = self.group_name(&key.fields);
        let Some(group) = self.classes.get_mut(&key.class).and_then(|c| c.groups.get_mut(&group_name)) else {
            return;
        };
        group.shapes -= 1;
        let versions = match &key.namespace {
            None => &mut group.open,
            Some(namespace) => group.by_namespace.entry(namespace.clone()).or_default(),
        };
        match version {
            Some(version) => {
                if let Some(ids) = versions.versions.get_mut(&version) {
                    ids.retain(|shape| *shape != id);
                    if ids.is_empty() {
                        versions.versions.remove(&version);
                    }
                }
            }
            None => versions.unversioned.retain(|shape| *shape != id),
        }
        if let Some(namespace) = &key.namespace
            && versions.total == 0
        {
            group.by_namespace.remove(namespace);
        }
    }

    fn group_mut(&mut self, offer: &Offer) -> &mut Group {
        let group_name = self.group_name(&offer.fields);
        self.classes.entry(offer.class.clone()).or_default().groups.entry(group_name).or_default()
    }

    fn versions_mut(&mut self, offer: &Offer, shape: ShapeId) -> &mut Versions {
        let namespace = self.shapes[shape].key.namespace.clone();
        let group = self.group_mut(offer);
        match namespace {
            None => &mut group.open,
            Some(namespace) => group.by_namespace.entry(namespace).or_default(),
        }
    }

    fn count_labels(&mut self, id: ResourceId, offer: &Offer, by: i32) {
        for (key, value) in offer.labels.iter() {
            let values = self.labels.entry(key.clone()).or_default();
            let count = values.entry(value.clone()).or_default();
            *count = count.saturating_add_signed(by);
            if *count == 0 {
                values.remove(value);
            }
            if let Some(postings) = self.demoted.get_mut(key) {
                let posting = postings.entry(value.clone()).or_default();
                if by > 0 {
                    posting.insert(id);
                } else {
                    posting.remove(&id);
                }
            }
        }
    }

    /// A label that is nearly unique (an instance's name, a ticket) would make a shape of every
    /// resource. Once a group is crowded, the label with the most values is kept beside the shapes instead.
    fn demote_if_crowded(&mut self, offer: &Offer) {
        if self.group_mut(offer).shapes <= SHAPES_PER_GROUP_MAX {
            return;
        }
        let telling = self
            .labels
            .iter()
            .filter(|(key, values)| values.len() > VALUES_KEPT_MAX && !self.demoted.contains_key(*key));
        let Some(key) = telling.max_by_key(|(_, values)| values.len()).map(|(key, _)| key.clone()) else {
            return;
        };
        let mut postings: BTreeMap<Name, BTreeSet<ResourceId>> = BTreeMap::new();
        let mut members = std::mem::take(&mut self.members);
        for (at, member) in members.iter().enumerate() {
            let Some(member) = member else { continue };
            let id = ResourceId(at as u32);
            self.detach(id, member);
            if let Some((_, value)) = member.offer.labels.iter().find(|(k, _)| *k == key) {
                postings.entry(value.clone()).or_default().insert(id);
            }
        }
        self.demoted.insert(key, postings);
        for (at, member) in members.iter_mut().enumerate() {
            if let Some(mut member) = member.take() {
                member.shapes.clear();
                self.insert(ResourceId(at as u32), member);
            }
        }
    }
}
