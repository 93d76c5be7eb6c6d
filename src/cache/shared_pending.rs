//! Shared resources that classes are making: those that are there already, not ready and with room, and those that are
//! only decided on. The scheduler checks here before it provisions another; what fits which claim is not known here.

use super::index::ResourceId;
use crate::model::{Name, TypeId, Uid};
use std::collections::{BTreeMap, BTreeSet};

/// A class by its type and name.
type ClassKey = (TypeId, Name);

/// What classes are making for several claims.
#[derive(Clone, Debug, Default)]
pub struct SharedPending {
    /// Those that are indexed, by class.
    open: BTreeMap<ClassKey, BTreeSet<ResourceId>>,
    /// Under which class each of those stands.
    classes: BTreeMap<ResourceId, ClassKey>,
    /// Those that were not seen yet, by class and name, with the claims that wait for them.
    promised: BTreeMap<ClassKey, BTreeMap<Name, BTreeSet<Uid>>>,
}

impl SharedPending {
    /// Notes that a resource is being made by a class and has room, or, without a class, that this is not so.
    pub(super) fn place(&mut self, id: ResourceId, class: Option<ClassKey>) {
        if self.classes.get(&id) == class.as_ref() {
            return;
        }
        if let Some(old) = self.classes.remove(&id)
            && let Some(open) = self.open.get_mut(&old)
        {
            open.remove(&id);
            if open.is_empty() {
                self.open.remove(&old);
            }
        }
        if let Some(class) = class {
            self.open.entry(class.clone()).or_default().insert(id);
            self.classes.insert(id, class);
        }
    }

    /// What a class is making that still has room.
    pub fn open(&self, ty: TypeId, class: &Name) -> impl Iterator<Item = ResourceId> {
        self.open.get(&(ty, class.clone())).into_iter().flatten().copied()
    }

    /// Notes that a class is to make a resource of this name.
    pub fn promise(&mut self, ty: TypeId, class: &Name, resource: &Name) {
        self.promised.entry((ty, class.clone())).or_default().entry(resource.clone()).or_default();
    }

    /// A resource that a class is to make and that was not seen yet.
    pub fn find_promised(&self, ty: TypeId, class: &Name) -> Option<&Name> {
        self.promised.get(&(ty, class.clone()))?.keys().next()
    }

    /// Whether a class is still to make this one.
    pub fn is_promised(&self, ty: TypeId, class: &Name, resource: &Name) -> bool {
        self.promised.get(&(ty, class.clone())).is_some_and(|names| names.contains_key(resource))
    }

    /// Notes that a claim waits until it can look at what is promised.
    pub fn wait(&mut self, ty: TypeId, class: &Name, resource: &Name, claim: Uid) {
        let promised = self.promised.get_mut(&(ty, class.clone()));
        if let Some(waiting) = promised.and_then(|names| names.get_mut(resource)) {
            waiting.insert(claim);
        }
    }

    /// A promise is kept or taken back: the claims that waited for that. One that no longer does may be among them.
    pub fn end_promise(&mut self, ty: TypeId, class: &Name, resource: &Name) -> BTreeSet<Uid> {
        let key = (ty, class.clone());
        let Some(names) = self.promised.get_mut(&key) else { return BTreeSet::new() };
        let waited = names.remove(resource).unwrap_or_default();
        if names.is_empty() {
            self.promised.remove(&key);
        }
        waited
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

    #[test]
    fn a_resource_stands_under_one_class_and_goes_when_it_has_no_room() {
        let (mut making, id) = (SharedPending::default(), ResourceId(7));
        let (small, large) = (Name::from("small"), Name::from("large"));
        let open = |making: &SharedPending, class: &Name| making.open(TYPE, class).collect::<Vec<_>>();
        making.place(id, Some((TYPE, small.clone())));
        assert_eq!(open(&making, &small), [id]);
        making.place(id, Some((TYPE, large.clone())));
        assert_eq!((open(&making, &small), open(&making, &large)), (vec![], vec![id]));
        making.place(id, None);
        assert_eq!(open(&making, &large), []);
    }

    #[test]
    fn the_end_of_a_promise_returns_each_waiting_claim_once() {
        let (mut making, class, resource) = (SharedPending::default(), Name::from("c"), Name::from("r"));
        making.wait(TYPE, &class, &resource, Uid::from("nothing was promised"));
        assert_eq!(making.find_promised(TYPE, &class), None);
        making.promise(TYPE, &class, &resource);
        making.wait(TYPE, &class, &resource, Uid::from("b"));
        making.promise(TYPE, &class, &resource);
        assert_eq!(making.find_promised(TYPE, &class), Some(&resource));
        assert_eq!(making.end_promise(TYPE, &class, &resource), [Uid::from("b")].into());
        assert!(!making.is_promised(TYPE, &class, &resource));
        assert_eq!(making.end_promise(TYPE, &class, &resource), [].into());
    }
}
