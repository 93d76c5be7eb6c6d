//! Live reads in flight: of objects, of parts and of published Secrets, and the checks before a deletion, which need
//! several of them. Each object is read once at a time, however many steps need the answer.

use crate::model::{Kind, Name, ObjectKey, PartKey, PartKind, Revision, TypeId, Uid};
use std::collections::{BTreeMap, BTreeSet};

/// The live reads of one engine.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct LiveReads {
    /// Objects, and the UIDs under that name that are in doubt.
    objects: BTreeMap<(Kind, ObjectKey), BTreeSet<Uid>>,
    /// Parts, and the UIDs under that name that are in doubt.
    parts: BTreeMap<PartKey, BTreeSet<Uid>>,
    /// Published Secrets, by their claim and their name.
    secrets: BTreeSet<(Uid, Name)>,
    checks: BTreeMap<(TypeId, Name), Check>,
}

/// The reads that must agree before a resource or its part is deleted.
#[derive(Clone, Debug)]
struct Check {
    /// The resource as it was read.
    revision: Option<Revision>,
    /// The claims that are still to be read.
    claims: BTreeSet<ObjectKey>,
    /// The part that is still to be read.
    part: Option<PartKey>,
}

/// How far the reads before a deletion are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::engine) enum DeletionCheck {
    /// They must be requested: none are under way, or the resource has changed since.
    Due,
    /// Some are not answered yet.
    Waits,
    /// Everything was read, and the resource is as it was read. Returned once per check.
    Passed,
}

impl LiveReads {
    pub fn none_in_flight(&self) -> bool {
        self.objects.is_empty() && self.parts.is_empty() && self.secrets.is_empty()
    }

    /// Notes that an object is to be read. Returns whether the read must be sent.
    pub fn request_object(&mut self, kind: Kind, key: &ObjectKey, doubted: Option<Uid>) -> bool {
        let mut is_new = false;
        let uids = self.objects.entry((kind, key.clone())).or_insert_with(|| {
            is_new = true;
            BTreeSet::new()
        });
        uids.extend(doubted);
        is_new
    }

    /// The UIDs in doubt under a name that was read; `None` where the engine requested no read.
    pub fn answer_object(&mut self, kind: Kind, key: &ObjectKey) -> Option<BTreeSet<Uid>> {
        self.objects.remove(&(kind, key.clone()))
    }

    /// Notes that a part is to be read. Returns whether the read must be sent.
    pub fn request_part(&mut self, key: &PartKey, doubted: Option<Uid>) -> bool {
        let is_new = !self.is_part_requested(key);
        self.parts.entry(key.clone()).or_default().extend(doubted);
        is_new
    }

    pub fn is_part_requested(&self, key: &PartKey) -> bool {
        self.parts.contains_key(key)
    }

    /// The UIDs in doubt under the name of a part that was read; `None` where the engine requested no read.
    pub fn answer_part(&mut self, key: &PartKey) -> Option<BTreeSet<Uid>> {
        self.parts.remove(key)
    }

    /// Reads of a kind that is not available are not answered.
    pub fn forget_parts_of(&mut self, kind: &PartKind) {
        self.parts.retain(|key, _| key.kind != *kind);
    }

    /// Notes that a published Secret is to be read. Returns whether the read must be sent.
    pub fn request_secret(&mut self, claim: &Uid, name: &Name) -> bool {
        self.secrets.insert((claim.clone(), name.clone()))
    }

    pub fn answer_secret(&mut self, claim: &Uid, name: &Name) {
        self.secrets.remove(&(claim.clone(), name.clone()));
    }

    pub fn forget_secrets_of(&mut self, claim: &Uid) {
        self.secrets.retain(|(of, _)| of != claim);
    }

    /// Begins a check: the resource, `claims` and `part` must be read before something is deleted.
    pub fn begin_check(
        &mut self,
        ty: TypeId,
        resource: &Name,
        claims: BTreeSet<ObjectKey>,
        part: Option<PartKey>,
    ) {
        self.checks.insert((ty, resource.clone()), Check { revision: None, claims, part });
    }

    /// How far the check of a resource is, which is of `revision` in the cache.
    pub fn check(&mut self, ty: TypeId, resource: &Name, revision: Revision) -> DeletionCheck {
        let place = (ty, resource.clone());
        match self.checks.get(&place) {
            Some(Check { revision: None, .. }) => DeletionCheck::Waits,
            Some(check) if !check.claims.is_empty() || check.part.is_some() => DeletionCheck::Waits,
            Some(check) if check.revision == Some(revision) => {
                self.checks.remove(&place);
                DeletionCheck::Passed
            }
            Some(_) | None => DeletionCheck::Due,
        }
    }

    pub fn forget_check(&mut self, ty: TypeId, resource: &Name) {
        self.checks.remove(&(ty, resource.clone()));
    }

    /// A resource was read for its check.
    pub fn check_resource(&mut self, ty: TypeId, resource: &Name, revision: Revision) {
        if let Some(check) = self.checks.get_mut(&(ty, resource.clone())) {
            check.revision = Some(revision);
        }
    }

    /// A claim was read. Returns the resources whose checks waited for it.
    pub fn check_claim(&mut self, ty: TypeId, claim: &ObjectKey) -> impl Iterator<Item = &Name> {
        let of_type = self.checks.iter_mut().filter(move |((of, _), _)| *of == ty);
        of_type.filter_map(|((_, resource), check)| check.claims.remove(claim).then_some(resource))
    }

    /// A part was read for the check of its resource.
    pub fn check_part(&mut self, ty: TypeId, resource: &Name, key: &PartKey) {
        if let Some(check) = self.checks.get_mut(&(ty, resource.clone())) {
            check.part.take_if(|part| part == key);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

    #[test]
    fn an_object_is_read_once_for_all_who_doubt_it() {
        let mut reads = LiveReads::default();
        let (kind, key) = (Kind::Claim(TYPE), ObjectKey::new(Name::from("shop"), Name::from("orders")));
        assert!(reads.request_object(kind, &key, Some(Uid::from("a"))));
        assert!(!reads.request_object(kind, &key, Some(Uid::from("b"))));
        assert!(!reads.none_in_flight());
        assert_eq!(reads.answer_object(kind, &key), Some(BTreeSet::from([Uid::from("a"), Uid::from("b")])));
        assert_eq!(reads.answer_object(kind, &key), None);
        assert!(reads.none_in_flight());
    }

    #[test]
    fn a_check_passes_once_when_all_was_read_at_one_revision() {
        let mut reads = LiveReads::default();
        let (name, seen, later) = (Name::from("pg"), Revision(7), Revision(8));
        let claim = ObjectKey::new(Name::from("shop"), Name::from("orders"));
        assert_eq!(reads.check(TYPE, &name, seen), DeletionCheck::Due);
        reads.begin_check(TYPE, &name, BTreeSet::from([claim.clone()]), None);
        reads.check_resource(TYPE, &name, seen);
        assert_eq!(reads.check(TYPE, &name, seen), DeletionCheck::Waits, "the claim is not read");
        assert_eq!(reads.check_claim(TYPE, &claim).collect::<Vec<_>>(), [&name]);
        assert_eq!(reads.check(TYPE, &name, later), DeletionCheck::Due, "the resource has changed since");
        assert_eq!(reads.check(TYPE, &name, seen), DeletionCheck::Passed);
        assert_eq!(reads.check(TYPE, &name, seen), DeletionCheck::Due, "passed once");
    }
}
