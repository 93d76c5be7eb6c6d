//! Which of two resources the rules prefer for a claim, decided by the scheduler on a small cluster: both resources as
//! recorded, and as they were before the bindings that the live engine had in flight. The live engine had decided those in
//! another order than the replay.

use super::causes::InFlight;
use super::cluster::ReplayCluster;
use super::user_changes;
use crate::record::{RecordedObjects, Verdict, into_object};
use conductor::model::{Claim, Kind, Object, ObjectKey, TypeId, Uid};
use serde_json::Value;
use std::collections::BTreeMap;

/// Up to this many bindings in flight, all their combinations are tried; of more, only the order of their writes.
const REORDERED_MAX: usize = 3;
/// Maximum number of versions tried per resource beyond that.
const VERSIONS_MAX: usize = 7;

/// The replay, the recording, and what the live engine did recently.
#[derive(Clone, Copy)]
pub(super) struct Evidence<'a> {
    pub cluster: &'a ReplayCluster,
    pub truth: &'a RecordedObjects,
    pub flight: &'a InFlight,
}

/// A claim, the live engine's choice, and the replay's.
pub(super) struct PreferenceCheck {
    ty: TypeId,
    /// The claim without the engine's fields.
    claim: Object,
    uid: Uid,
    /// The live engine's choice, and versions of it from about that time. Earlier decisions about it are in the recorded
    /// state, because one write carries all of a resource's references.
    chosen: String,
    versions: Vec<Version>,
    /// The replay's choice. Earlier decisions of the live engine about it may be written later.
    given: String,
    /// Bindings since this time may have been in flight.
    since: u64,
}

impl PreferenceCheck {
    /// Takes the claim as recorded right after the live engine served it.
    pub fn new(
        evidence: Evidence<'_>,
        claim: &Claim,
        chosen: &str,
        given: &str,
        since: u64,
    ) -> Option<PreferenceCheck> {
        let kind = Kind::Claim(claim.ty);
        let bare = user_changes::user_part(kind, evidence.truth.get(kind, &claim.meta.key)?);
        let mut preference = PreferenceCheck {
            ty: claim.ty,
            claim: into_object(kind, bare).ok()?,
            uid: claim.meta.uid.clone(),
            chosen: chosen.to_owned(),
            versions: Vec::new(),
            given: given.to_owned(),
            since,
        };
        preference.versions = preference.versions_of(chosen, evidence);
        Some(preference)
    }

    /// Whether a binding to this resource may change the answer.
    pub fn concerns(&self, resource: &str) -> bool {
        self.given == resource
    }

    /// The explanation, if the rules prefer the live engine's choice in a state that it may have decided from.
    pub fn explain(&self, evidence: Evidence<'_>) -> Option<String> {
        let given = self.versions_of(&self.given, evidence);
        let mut pairs = self.versions.iter().flat_map(|one| given.iter().map(move |other| (one, other)));
        let is_preferred = pairs.any(|(one, other)| self.prefers(evidence.cluster, one, other));
        is_preferred
            .then(|| format!("{} fits better than {} in their recorded state", self.chosen, self.given))
    }

    fn prefers(&self, cluster: &ReplayCluster, one: &Version, other: &Version) -> bool {
        let namespace = self.claim.metadata.namespace.as_deref().unwrap_or_default();
        let its_own = cluster.world.get(Kind::Namespace, &ObjectKey::new("", namespace));
        let limits = cluster.world.of(Kind::Limits);
        let limits = limits.filter(|limits| limits.metadata.namespace.as_deref() == Some(namespace));
        let of_all =
            [Kind::Profile, Kind::Class(self.ty)].into_iter().flat_map(|kind| cluster.world.of(kind));
        let rules = of_all.chain(its_own).chain(limits).cloned();
        let holders: BTreeMap<&str, &Object> = [one, other]
            .into_iter()
            .flat_map(|v| v.holders.iter().map(|(uid, o)| (uid.as_str(), o)))
            .collect();
        let holders = holders.into_values().cloned();
        let resources = [one.resource.clone(), other.resource.clone()];
        let objects = rules.chain(holders).chain(resources).chain([self.claim.clone()]).collect();
        let is_chosen =
            |verdict: Verdict| matches!(verdict, Verdict::Bind { resource } if resource == self.chosen);
        cluster.beside(objects).verdict(&self.uid).is_some_and(is_chosen)
    }

    /// Versions of a resource without this claim: as recorded, and without its recent bindings.
    fn versions_of(&self, name: &str, evidence: Evidence<'_>) -> Vec<Version> {
        let Evidence { cluster, truth, flight } = evidence;
        let (kind, key) = (Kind::Resource(self.ty), cluster.resource_key(name));
        let Some(recorded) = truth.get(kind, &key) else { return Vec::new() };
        let held: Vec<&str> = super::uids(&recorded).filter(|uid| *uid != &*self.uid).collect();
        let lately: Vec<&str> = flight.bound_to(name, self.since).filter(|uid| held.contains(uid)).collect();
        let without = removals(&lately).into_iter();
        without.filter_map(|without| self.version(&recorded, &without, evidence)).collect()
    }

    fn version(&self, recorded: &Value, without: &[&str], evidence: Evidence<'_>) -> Option<Version> {
        let mut resource = into_object(Kind::Resource(self.ty), recorded.clone()).ok()?;
        let mut holders = Vec::new();
        if let Some(refs) = resource.body.pointer_mut("/spec/claimRefs").and_then(Value::as_array_mut) {
            let text =
                |r: &Value, field: &str| r.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            refs.retain(|r| {
                let uid = text(r, "uid");
                uid != *self.uid && !without.contains(&uid.as_str())
            });
            for held in refs.iter().filter(|r| !text(r, "uid").is_empty()) {
                let key = ObjectKey::new(text(held, "namespace"), text(held, "name"));
                holders.push((text(held, "uid"), self.holder(&key, &text(held, "uid"), evidence)?));
            }
        }
        Some(Version { resource, holders })
    }

    /// A claim that holds one of the resources, also if it is being deleted.
    fn holder(
        &self,
        key: &ObjectKey,
        uid: &str,
        Evidence { cluster, truth, .. }: Evidence<'_>,
    ) -> Option<Object> {
        let kind = Kind::Claim(self.ty);
        let recorded = truth.get(kind, key).and_then(|value| into_object(kind, value).ok());
        let here = || cluster.world.get(kind, key).cloned();
        let is_it = |object: &Object| object.metadata.uid.as_deref() == Some(uid);
        let mut holder = recorded.filter(is_it).or_else(|| here().filter(is_it))?;
        holder.metadata.deletion_timestamp = None;
        Some(holder)
    }
}

/// A resource at some time with its holders.
struct Version {
    resource: Object,
    holders: Vec<(String, Object)>,
}

/// Which of the recent bindings, in order, may not have existed yet: first none of them.
fn removals<'a>(lately: &[&'a str]) -> Vec<Vec<&'a str>> {
    if lately.len() <= REORDERED_MAX {
        let all = 0..1_usize << lately.len();
        let chosen = |mask: usize| {
            lately.iter().enumerate().filter(move |(at, _)| mask >> at & 1 == 1).map(|(_, uid)| *uid)
        };
        return all.map(|mask| chosen(mask).collect()).collect();
    }
    let shortest = lately.len().saturating_sub(VERSIONS_MAX);
    (shortest..=lately.len()).rev().map(|from| lately[from..].to_vec()).collect()
}
