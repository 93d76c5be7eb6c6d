//! Parts as last seen, the kinds they are of, and which resource each name belongs to.
//! Only a live read confirms that a part is gone: a watch by label reports the same when a part loses its label.

use crate::model::part::WhyMissing;
use crate::model::{Name, PartId, PartKey, PartKind, PartView, Resource, Revision, Uid};
use std::collections::{BTreeMap, BTreeSet};

/// What is known of the objects that implement resources.
#[derive(Clone, Debug, Default)]
pub struct Parts {
    kinds: BTreeMap<PartKind, KindSight>,
    known: BTreeMap<PartKey, Known>,
    /// Whose part has, or will have, a name.
    users: BTreeMap<PartKey, PartId>,
}

/// How a kind that is followed stands.
#[derive(Clone, Debug, PartialEq, Eq)]
enum KindSight {
    Asked,
    Listed,
    Missing(WhyMissing),
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Known {
    There(PartView),
    /// A live read has found nothing.
    Gone,
}

/// What is known of one resource's part.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sight<'a> {
    /// Nothing yet: its kind has not been listed.
    Unknown,
    /// Nothing for the moment: a write or a read about it is on its way.
    InFlight,
    /// Its kind cannot be had.
    KindMissing(&'a WhyMissing),
    /// It has not been seen.
    Absent {
        /// Whether a live read has said so.
        confirmed: bool,
    },
    /// An object of its name is there that is not this resource's.
    Taken,
    /// It is there.
    Present(&'a PartView),
}

impl Parts {
    /// Notes that a kind is to be followed. Says whether that is new.
    pub fn follow(&mut self, kind: &PartKind) -> bool {
        if self.kinds.contains_key(kind) {
            return false;
        }
        self.kinds.insert(kind.clone(), KindSight::Asked);
        true
    }

    /// Whether a kind is followed.
    pub fn is_followed(&self, kind: &PartKind) -> bool {
        self.kinds.contains_key(kind)
    }

    /// Whether a kind is followed and cannot be had.
    pub fn is_missing(&self, kind: &PartKind) -> bool {
        matches!(self.kinds.get(kind), Some(KindSight::Missing(_)))
    }

    /// Notes that a kind has been listed, or why it cannot be.
    pub fn set_kind(&mut self, kind: &PartKind, missing: Option<WhyMissing>) {
        let sight = missing.map_or(KindSight::Listed, KindSight::Missing);
        self.kinds.insert(kind.clone(), sight);
    }

    /// What is known of the part at `key` to the resource `owner`.
    pub fn sight(&self, key: &PartKey, owner: &Uid) -> Sight<'_> {
        match self.kinds.get(&key.kind) {
            None | Some(KindSight::Asked) => return Sight::Unknown,
            Some(KindSight::Missing(why)) => return Sight::KindMissing(why),
            Some(KindSight::Listed) => {}
        }
        match self.known.get(key) {
            None => Sight::Absent { confirmed: false },
            Some(Known::Gone) => Sight::Absent { confirmed: true },
            Some(Known::There(part)) if part.owner.as_ref() == Some(owner) => Sight::Present(part),
            Some(Known::There(_)) => Sight::Taken,
        }
    }

    /// The part at `key`, whichever resource it belongs to.
    pub fn find(&self, key: &PartKey) -> Option<&PartView> {
        match self.known.get(key)? {
            Known::There(part) => Some(part),
            Known::Gone => None,
        }
    }

    /// Takes in a part, unless a newer state of it is known.
    pub fn set(&mut self, part: PartView) {
        let known = self.find(&part.key);
        if !known.is_some_and(|known| part.revision.is_older_than(known.revision)) {
            self.known.insert(part.key.clone(), Known::There(part));
        }
    }

    /// Notes that a live read has found nothing at `key`.
    pub fn set_gone(&mut self, key: &PartKey) {
        self.known.insert(key.clone(), Known::Gone);
    }

    /// Forgets what is known of `key`: something is about to change it.
    pub fn forget(&mut self, key: &PartKey) {
        self.known.remove(key);
    }

    /// The known parts of a kind that a list of `revision` should have had and has not.
    pub fn missing_from(
        &self,
        kind: &PartKind,
        listed: &BTreeSet<&str>,
        revision: Revision,
    ) -> Vec<(PartKey, Uid)> {
        let of_kind = self.known.range(first_of(kind)..).take_while(|(key, _)| key.kind == *kind);
        let there = of_kind.filter_map(|(key, _)| self.find(key));
        let unlisted = there.filter(|part| !listed.contains(&*part.uid));
        // What we wrote after the list was taken is not missing from it.
        let missing = unlisted.filter(|part| !revision.is_older_than(part.revision));
        missing.map(|part| (part.key.clone(), part.uid.clone())).collect()
    }

    /// Whose part has a name.
    pub fn user_of(&self, key: &PartKey) -> Option<&PartId> {
        self.users.get(key)
    }

    /// Whose parts are, or will be, of a kind.
    pub fn users_of_kind(&self, kind: &PartKind) -> Vec<PartId> {
        let of_kind = self.users.range(first_of(kind)..).take_while(|(key, _)| key.kind == *kind);
        of_kind.map(|(_, id)| id.clone()).collect()
    }

    /// Notes the names of a resource's parts: the recorded ones, and those that its templates would have.
    pub(super) fn note_user(&mut self, resource: &Resource) {
        for (part, key) in names_of(resource) {
            self.users.insert(key.clone(), PartId::new(resource.ty, &resource.meta.key.name, part));
        }
    }

    /// Forgets the names of a resource's parts. What is known of the parts themselves stays: they may be retained.
    pub(super) fn forget_user(&mut self, resource: &Resource) {
        for (_, key) in names_of(resource) {
            self.users.remove(key);
        }
    }
}

/// Keys are ordered by kind first: this one comes before all of its kind.
fn first_of(kind: &PartKind) -> PartKey {
    PartKey { kind: kind.clone(), namespace: Name::from(""), name: Name::from("") }
}

/// A template that was edited since its part was recorded gives it another name.
fn names_of(resource: &Resource) -> impl Iterator<Item = (&Name, &PartKey)> {
    resource.parts().chain(resource.template.objects().iter().map(|part| (&part.id, &part.key)))
}
