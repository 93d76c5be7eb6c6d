//! The index of one type's resources: class, then engine, then version, then attributes, then what is left.
//! Searching lives in `find`, counting refusals in `refusal_counts`.
//!
//! ```text
//! class -> group (engine) -> pool, open to all      -> cell (version) -> shape (attributes) -> best-fit order
//!                         -> pool, one namespace's  -> cell (version) -> shape (attributes) -> best-fit order
//!                                                      each cell besides: all its offers in best-fit order
//! ```

use super::attribute_index::{AttributeIndex, AttributesId};
use super::keys::Keys;
use super::shape::{Free, Members, Named, Offers};
use crate::model::{Capacity, FieldValue, Labels, Lookup, Name, Offer, TypeId, Version};
use crate::predicates::{STANDINGS, Standing};
use slab::Slab;
use smallvec::SmallVec;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// A resource's place in the cache, reused after it is gone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ResourceId(pub u32);

/// A resource at one moment, as claims at large see it.
#[derive(Clone, Debug)]
pub struct ResourceView {
    standing: Standing,
    free: Free,
    offer: Arc<Offer>,
}

impl ResourceView {
    /// Whether the resource is offered now, and in some way was not before.
    pub fn is_better_than(&self, before: Option<&ResourceView>) -> bool {
        let offered = matches!(self.standing, Standing::Vacant | Standing::Shared);
        let better = before.is_none_or(|before| {
            self.standing < before.standing || !before.free.covers(&self.free) || self.offer != before.offer
        });
        offered && better
    }
}

/// Above so many shapes in a group, the label with the most values stops separating shapes.
const SHAPES_PER_GROUP_MAX: usize = 256;
/// A label with no more values than this is never demoted: it is what shapes are for.
const VALUES_KEPT_MAX: usize = 16;

/// Every resource of one type.
#[derive(Clone, Debug)]
pub struct Index {
    pub(super) keys: Keys,
    pub(super) classes: BTreeMap<Option<Name>, ClassIndex>,
    pub(super) pools: Slab<Pool>,
    pub(super) cells: Slab<Cell>,
    pub(super) shapes: Slab<Shape>,
    pub(super) attributes: AttributeIndex,
    /// Boxed, so that one more never moves all the others.
    pub(super) members: Vec<Option<Box<Member>>>,
    pub(super) total: usize,
    /// Every label, and how many have which value of it.
    labels: BTreeMap<Name, Lookup<Name, u32>>,
    /// Labels that do not separate shapes; the resources with each value of them.
    pub(super) demoted: BTreeMap<Name, Lookup<Name, BTreeSet<ResourceId>>>,
    generation: u64,
}

pub(super) type PoolId = usize;
pub(super) type CellId = usize;
pub(super) type ShapeId = usize;

#[derive(Clone, Debug, Default)]
pub(super) struct ClassIndex {
    pub total: usize,
    pub groups: BTreeMap<FieldValue, Group>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct Group {
    pub total: usize,
    /// Resources that are open to listed namespaces only.
    pub restricted: usize,
    pub open: Option<PoolId>,
    pub by_namespace: BTreeMap<Name, PoolId>,
    shapes: usize,
}

/// Resources of one class and group that are open to the same namespaces.
#[derive(Clone, Debug, Default)]
pub(super) struct Pool {
    pub total: usize,
    pub unversioned: Option<CellId>,
    pub versions: BTreeMap<Arc<Version>, CellId>,
}

/// What is checked of an offered resource first.
#[derive(Clone, Debug)]
pub(super) struct OfferedBy {
    pub attributes: AttributesId,
    pub shared: bool,
}

/// The shapes of one version.
#[derive(Clone, Debug, Default)]
pub(super) struct Cell {
    pool: PoolId,
    /// The value of the ordered field; absent where the resource or its type has none.
    pub value: FieldValue,
    pub total: usize,
    /// Sorted by their attributes.
    pub shapes: Vec<Place>,
    pub offers: Offers<OfferedBy>,
}

/// A shape in its cell.
#[derive(Clone, Debug)]
pub(super) struct Place {
    pub attributes: AttributesId,
    pub shape: ShapeId,
    /// How many of its resources are of each standing.
    counts: [u32; 2 + STANDINGS],
}

fn place_of(standing: Standing) -> usize {
    match standing {
        Standing::Vacant => 0,
        Standing::Shared => 1,
        Standing::Withheld(place) => 2 + usize::from(place),
    }
}

impl Place {
    pub fn total(&self) -> usize {
        self.counts.iter().map(|count| *count as usize).sum()
    }

    pub fn count(&self, standing: Standing) -> usize {
        self.counts[place_of(standing)] as usize
    }
}

impl Cell {
    fn place_mut(&mut self, attributes: AttributesId) -> Option<&mut Place> {
        let at = self.shapes.binary_search_by_key(&attributes, |place| place.attributes).ok()?;
        self.shapes.get_mut(at)
    }
}

/// All resources that differ only by capacity, state and name.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    cell: CellId,
    attributes: AttributesId,
    pub members: Members,
}

/// One resource in the index.
#[derive(Clone, Debug)]
pub(super) struct Member {
    pub name: Name,
    pub offer: Arc<Offer>,
    pub standing: Standing,
    pub free: Free,
    pub taken: Capacity,
    pub held: u32,
    shapes: SmallVec<[ShapeId; 1]>,
}

impl Member {
    fn is_offered(&self) -> bool {
        matches!(self.standing, Standing::Vacant | Standing::Shared)
    }
}

impl Index {
    /// An empty index for one type.
    pub fn new(ty: TypeId) -> Index {
        Index {
            keys: Keys::of(ty),
            classes: BTreeMap::new(),
            pools: Slab::new(),
            cells: Slab::new(),
            shapes: Slab::new(),
            attributes: AttributeIndex::default(),
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

    /// What claims at large can see of a resource, to decide whether a change could help one.
    pub fn view(&self, id: ResourceId) -> Option<ResourceView> {
        let member = self.member(id)?;
        Some(ResourceView {
            standing: member.standing,
            free: member.free.clone(),
            offer: member.offer.clone(),
        })
    }

    pub(super) fn member(&self, id: ResourceId) -> Option<&Member> {
        self.members.get(id.0 as usize)?.as_deref()
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
        let (name, offer, taken) = (name.clone(), offer.clone(), taken.clone());
        let member =
            Member { name, offer: offer.clone(), standing, free, taken, held, shapes: SmallVec::new() };
        self.insert(id, Box::new(member));
        self.demote_if_crowded(&offer);
    }

    /// The offer is the same: only standing and what is left have moved.
    fn move_member(&mut self, id: ResourceId, standing: Standing, free: Free, taken: &Capacity, held: u32) {
        let Some(mut member) = self.members.get_mut(id.0 as usize).and_then(Option::take) else { return };
        if (member.standing, &member.free, member.held) != (standing, &free, held) {
            for shape in &member.shapes {
                self.withdraw(*shape, id, &member);
            }
            (member.standing, member.free, member.held) = (standing, free, held);
            member.taken = taken.clone();
            for shape in &member.shapes {
                self.list(*shape, id, &member);
            }
            self.generation += 1;
        }
        self.members[id.0 as usize] = Some(member);
    }

    /// Lists a resource in its shape, and in its cell where it is offered.
    fn list(&mut self, at: ShapeId, id: ResourceId, member: &Member) {
        let shape = &mut self.shapes[at];
        let cell = &mut self.cells[shape.cell];
        let named = Named { name: member.name.clone(), id };
        if member.is_offered() {
            let by = OfferedBy { attributes: shape.attributes, shared: member.standing == Standing::Shared };
            cell.offers.insert(named.clone(), &member.free, by);
        }
        if let Some(place) = cell.place_mut(shape.attributes) {
            place.counts[place_of(member.standing)] += 1;
        }
        shape.members.insert(named, member.standing, &member.free);
    }

    fn withdraw(&mut self, at: ShapeId, id: ResourceId, member: &Member) {
        let shape = &mut self.shapes[at];
        let cell = &mut self.cells[shape.cell];
        let named = Named { name: member.name.clone(), id };
        if member.is_offered() {
            cell.offers.remove(named.clone(), &member.free);
        }
        if let Some(place) = cell.place_mut(shape.attributes) {
            place.counts[place_of(member.standing)] -= 1;
        }
        shape.members.remove(named, member.standing, &member.free);
    }

    /// Takes a resource out.
    pub fn remove(&mut self, id: ResourceId) {
        if let Some(member) = self.members.get_mut(id.0 as usize).and_then(Option::take) {
            self.detach(id, &member);
            let offer = member.offer.clone();
            self.count_labels(id, &offer, -1);
        }
    }

    fn insert(&mut self, id: ResourceId, mut member: Box<Member>) {
        let offer = member.offer.clone();
        let group = self.group_mut(&offer);
        group.total += 1;
        group.restricted += usize::from(!offer.allowed_namespaces.is_empty());
        self.classes.entry(offer.class.clone()).or_default().total += 1;
        let labels = offer.labels.filtered(|label| !self.demoted.contains_key(label));
        let namespaces = offer.allowed_namespaces.iter().map(Some);
        let open_to_all = offer.allowed_namespaces.is_empty().then_some(None);
        for namespace in open_to_all.into_iter().chain(namespaces) {
            let cell = self.require_cell(&offer, namespace);
            let shape = self.require_shape(&offer, cell, &labels);
            self.list(shape, id, &member);
            member.shapes.push(shape);
        }
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
            self.withdraw(*shape, id, member);
            self.leave_shape(*shape, offer);
        }
        let group_value = self.group_value(offer);
        if let Some(class) = self.classes.get_mut(&offer.class) {
            class.total -= 1;
            if let Some(group) = class.groups.get_mut(&group_value) {
                group.total -= 1;
                group.restricted -= usize::from(!offer.allowed_namespaces.is_empty());
                if group.total == 0 {
                    class.groups.remove(&group_value);
                }
            }
            if class.total == 0 {
                self.classes.remove(&offer.class);
            }
        }
        self.total -= 1;
        self.generation += 1;
    }

    fn group_value(&self, offer: &Offer) -> FieldValue {
        self.keys.group.map_or(FieldValue::Absent, |group| offer.fields[group.field.at].clone())
    }

    fn group_mut(&mut self, offer: &Offer) -> &mut Group {
        let group_value = self.group_value(offer);
        self.classes.entry(offer.class.clone()).or_default().groups.entry(group_value).or_default()
    }

    fn require_cell(&mut self, offer: &Offer, namespace: Option<&Name>) -> CellId {
        let group = self.group_mut(offer);
        let known = match namespace {
            None => group.open,
            Some(namespace) => group.by_namespace.get(namespace).copied(),
        };
        let at = match known {
            Some(pool) => pool,
            None => {
                let at = self.pools.insert(Pool::default());
                let group = self.group_mut(offer);
                match namespace {
                    None => group.open = Some(at),
                    Some(namespace) => drop(group.by_namespace.insert(namespace.clone(), at)),
                }
                at
            }
        };
        let value = self.keys.range.map_or(FieldValue::Absent, |range| offer.fields[range.field.at].clone());
        let pool = &mut self.pools[at];
        pool.total += 1;
        let known = match &value {
            FieldValue::Version(version) => pool.versions.get(version).copied(),
            _ => pool.unversioned,
        };
        let cell = known.unwrap_or_else(|| {
            let cell = self.cells.insert(Cell { pool: at, value: value.clone(), ..Cell::default() });
            match value {
                FieldValue::Version(version) => drop(pool.versions.insert(version, cell)),
                _ => pool.unversioned = Some(cell),
            }
            cell
        });
        self.cells[cell].total += 1;
        cell
    }

    fn require_shape(&mut self, offer: &Offer, at: CellId, labels: &Labels) -> ShapeId {
        let attributes = self.attributes.add(&self.keys, &offer.fields, labels);
        let cell = &mut self.cells[at];
        match cell.shapes.binary_search_by_key(&attributes, |place| place.attributes) {
            Ok(place) => cell.shapes[place].shape,
            Err(place) => {
                let shape = self.shapes.insert(Shape { cell: at, attributes, members: Members::default() });
                cell.shapes.insert(place, Place { attributes, shape, counts: [0; 2 + STANDINGS] });
                self.group_mut(offer).shapes += 1;
                shape
            }
        }
    }

    /// Counts one resource less in a cell and its pool, after it was withdrawn; what is empty goes.
    fn leave_shape(&mut self, at: ShapeId, offer: &Offer) {
        let (cell_at, attributes) = (self.shapes[at].cell, self.shapes[at].attributes);
        self.attributes.release(attributes);
        let cell = &mut self.cells[cell_at];
        let pool_at = cell.pool;
        cell.total -= 1;
        let mut shapes = 0;
        if cell.place_mut(attributes).is_some_and(|place| place.total() == 0) {
            cell.shapes.retain(|place| place.attributes != attributes);
            self.shapes.remove(at);
            shapes = 1;
        }
        let pool = &mut self.pools[pool_at];
        pool.total -= 1;
        if cell.total == 0 {
            match self.cells.remove(cell_at).value {
                FieldValue::Version(version) => drop(pool.versions.remove(&version)),
                _ => pool.unversioned = None,
            }
        }
        let empty = pool.total == 0;
        let group = self.group_mut(offer);
        group.shapes -= shapes;
        if empty {
            group.open = group.open.filter(|open| *open != pool_at);
            group.by_namespace.retain(|_, pool| *pool != pool_at);
            self.pools.remove(pool_at);
        }
    }

    fn count_labels(&mut self, id: ResourceId, offer: &Offer, by: i32) {
        for (key, value) in offer.labels.iter() {
            let values = self.labels.entry(key.clone()).or_default();
            let count = values.or_default(value.clone());
            *count = count.saturating_add_signed(by);
            if *count == 0 {
                values.remove(value);
            }
            if let Some(postings) = self.demoted.get_mut(key) {
                let posting = postings.or_default(value.clone());
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
        let separating = self
            .labels
            .iter()
            .filter(|(key, values)| values.len() > VALUES_KEPT_MAX && !self.demoted.contains_key(*key));
        let Some(key) = separating.max_by_key(|(_, values)| values.len()).map(|(key, _)| key.clone()) else {
            return;
        };
        let mut postings: Lookup<Name, BTreeSet<ResourceId>> = Lookup::default();
        let mut members = std::mem::take(&mut self.members);
        for (at, member) in members.iter().enumerate() {
            let Some(member) = member else { continue };
            let id = ResourceId(at as u32);
            self.detach(id, member);
            if let Some((_, value)) = member.offer.labels.iter().find(|(k, _)| *k == key) {
                postings.or_default(value.clone()).insert(id);
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
