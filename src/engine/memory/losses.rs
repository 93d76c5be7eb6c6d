//! Resources that bound claims lack: in doubt until a live read, missing until all doubts are settled, then lost, or
//! withheld where too many are missing at once. Terminal, so never concluded from the cache alone.

use crate::model::{ClaimRef, Name, TypeId, Uid};
use std::collections::{BTreeMap, BTreeSet};

type Place = (TypeId, Name);

/// What bound claims may have lost.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Losses {
    /// Claims that are bound to a resource which is not in the cache: it is being read.
    doubted: BTreeMap<Place, BTreeSet<Uid>>,
    /// Resources that live reads did not find, with their claims, until all doubts are settled.
    missing: BTreeMap<Place, BTreeSet<Uid>>,
    /// The missing resource whose claims are declared lost right now.
    declared: Option<Place>,
    /// Claims whose loss is withheld and was reported.
    withheld: BTreeSet<Uid>,
    /// Lost claims by the UID of what they lost: they are settled again when it returns.
    lost: BTreeMap<Uid, BTreeSet<Uid>>,
    /// References that this update took off a resource, of claims that are bound to it; empty between events.
    dropped_refs: BTreeMap<Uid, ClaimRef>,
}

impl Losses {
    pub fn doubt(&mut self, ty: TypeId, resource: &Name, claim: &Uid) {
        self.doubted.entry((ty, resource.clone())).or_default().insert(claim.clone());
    }

    /// Whether the resource of this claim is being read.
    pub fn is_doubted(&self, ty: TypeId, resource: &Name, claim: &Uid) -> bool {
        self.doubted.get(&(ty, resource.clone())).is_some_and(|claims| claims.contains(claim))
    }

    pub fn has_doubts(&self, ty: TypeId, resource: &Name) -> bool {
        self.doubted.contains_key(&(ty, resource.clone()))
    }

    /// A live read found the resource. Returns the claims that doubted it.
    pub fn found(&mut self, ty: TypeId, resource: &Name) -> BTreeSet<Uid> {
        let place = (ty, resource.clone());
        self.missing.remove(&place);
        self.doubted.remove(&place).unwrap_or_default()
    }

    /// A live read did not find the resource.
    pub fn not_found(&mut self, ty: TypeId, resource: &Name) {
        let place = (ty, resource.clone());
        if let Some(claims) = self.doubted.remove(&place) {
            self.missing.entry(place).or_default().extend(claims);
        }
    }

    /// Takes the missing resources whose claims are lost: none while a resource is in doubt, or while more than `most` are
    /// missing. They are judged together, because the first answer must not decide before the last.
    pub fn judge(
        &mut self,
        most: usize,
        is_bound: impl Fn(&Uid) -> bool,
        exists: impl Fn(&Place) -> bool,
    ) -> BTreeMap<Place, BTreeSet<Uid>> {
        if !self.doubted.is_empty() {
            return BTreeMap::new();
        }
        let missing = &mut self.missing;
        missing.retain(|place, claims| {
            claims.retain(&is_bound);
            !claims.is_empty() && !exists(place)
        });
        self.withheld.retain(|uid| missing.values().any(|claims| claims.contains(uid)));
        if missing.len() > most {
            return BTreeMap::new();
        }
        self.withheld.clear();
        std::mem::take(missing)
    }

    /// The claims whose loss is withheld since the last call, with their resources, and how many resources are missing.
    pub fn report_withheld(&mut self) -> (Vec<(Name, Uid)>, usize) {
        if !self.doubted.is_empty() {
            return (Vec::new(), 0);
        }
        let all =
            self.missing.iter().flat_map(|((_, name), claims)| claims.iter().map(move |uid| (name, uid)));
        let new = all.filter(|(_, uid)| !self.withheld.contains(*uid));
        let new: Vec<(Name, Uid)> = new.map(|(name, uid)| (name.clone(), uid.clone())).collect();
        self.withheld.extend(new.iter().map(|(_, uid)| uid.clone()));
        (new, self.missing.len())
    }

    pub fn withheld(&self) -> usize {
        self.withheld.len()
    }

    /// Marks the missing resource whose claims are declared lost from now on; `None` ends that.
    pub fn declare(&mut self, place: Option<Place>) {
        self.declared = place;
    }

    pub fn is_declared(&self, ty: TypeId, resource: &Name) -> bool {
        self.declared.as_ref().is_some_and(|(of, name)| *of == ty && name == resource)
    }

    /// Remembers which resource a claim lost.
    pub fn remember(&mut self, resource: Uid, claim: &Uid) {
        self.lost.entry(resource).or_default().insert(claim.clone());
    }

    /// A resource is seen. Returns the claims that lost it.
    pub fn returned(&mut self, resource: &Uid) -> BTreeSet<Uid> {
        self.lost.remove(resource).unwrap_or_default()
    }

    pub fn forget(&mut self, resource: &Uid, claim: &Uid) {
        if let Some(claims) = self.lost.get_mut(resource) {
            claims.remove(claim);
            if claims.is_empty() {
                self.lost.remove(resource);
            }
        }
    }

    /// Keeps the references that an update took off a resource while its claims are settled.
    pub fn set_dropped_refs(&mut self, dropped: BTreeMap<Uid, ClaimRef>) {
        self.dropped_refs = dropped;
    }

    pub fn dropped_ref(&self, claim: &Uid) -> Option<&ClaimRef> {
        self.dropped_refs.get(claim)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

    fn doubted(resources: &[&str]) -> Losses {
        let mut losses = Losses::default();
        for name in resources {
            losses.doubt(TYPE, &Name::from(*name), &Uid::from(*name));
        }
        losses
    }

    fn judge(losses: &mut Losses, most: usize) -> Vec<Name> {
        losses.judge(most, |_| true, |_| false).into_keys().map(|(_, name)| name).collect()
    }

    #[test]
    fn nothing_is_lost_before_the_last_doubt_is_settled() {
        let mut losses = doubted(&["a", "b"]);
        losses.not_found(TYPE, &Name::from("a"));
        assert_eq!(judge(&mut losses, 1), [""; 0].map(Name::from));
        assert_eq!(losses.report_withheld(), (Vec::new(), 0));
        assert_eq!(losses.found(TYPE, &Name::from("b")), BTreeSet::from([Uid::from("b")]));
        assert_eq!(judge(&mut losses, 1), [Name::from("a")]);
    }

    #[test]
    fn too_many_losses_at_once_are_withheld_and_reported_once() {
        let mut losses = doubted(&["a", "b"]);
        ["a", "b"].iter().for_each(|name| losses.not_found(TYPE, &Name::from(*name)));
        assert_eq!(judge(&mut losses, 1), [""; 0].map(Name::from));
        let (reported, missing) = losses.report_withheld();
        assert_eq!((reported.len(), missing, losses.withheld()), (2, 2, 2));
        assert_eq!(losses.report_withheld().0, Vec::new());
        // One of them is found: the other is a plain loss.
        losses.found(TYPE, &Name::from("b"));
        assert_eq!(judge(&mut losses, 1), [Name::from("a")]);
        assert_eq!(losses.withheld(), 0);
    }

    #[test]
    fn a_returning_resource_names_the_claims_that_lost_it() {
        let mut losses = Losses::default();
        let (resource, kept, deleted) = (Uid::from("r"), Uid::from("kept"), Uid::from("deleted"));
        [&kept, &deleted].into_iter().for_each(|claim| losses.remember(resource.clone(), claim));
        losses.forget(&resource, &deleted);
        assert_eq!(losses.returned(&resource), BTreeSet::from([kept]));
        assert_eq!(losses.returned(&resource), BTreeSet::new());
    }
}
