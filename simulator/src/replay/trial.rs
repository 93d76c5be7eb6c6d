//! Which of two resources the rules prefer, asked of the production scheduler with nothing else to give: as the recording
//! has the two, and as they were before what the live engine was writing to them at that time. A live engine decides from
//! what it has decided before, written or not; the replay took those decisions in another order.

use super::causes::InFlight;
use super::input;
use super::stage::Stage;
use crate::record::{Recorded, Verdict, into_object};
use conductor::model::{Claim, Kind, Object, ObjectKey, TypeId, Uid};
use serde_json::Value;
use std::collections::BTreeMap;

/// Of so many bindings at one time every order is tried; of more, the order in which they were written.
const REORDERED_MAX: usize = 3;
/// Longer histories of one resource are not tried further back.
const VERSIONS_MAX: usize = 7;

/// What a trial may look at: the replay, the recording, and what the live engine did lately.
#[derive(Clone, Copy)]
pub(super) struct Seen<'a> {
    pub stage: &'a Stage,
    pub truth: &'a Recorded,
    pub flight: &'a InFlight,
}

/// One claim, what the live engine gave it, and what the replay gave it.
pub(super) struct Trial {
    ty: TypeId,
    /// Without anything that an engine wrote.
    claim: Object,
    uid: Uid,
    /// What the live engine gave it, as it may have been then. What the live engine decided before about this one stands
    /// in it: one write tells all of a resource's claims.
    chosen: String,
    versions: Vec<Version>,
    /// What the replay gave it. What the live engine decided before about that may be written later.
    given: String,
    /// Bindings since then may have been under way.
    since: u64,
}

impl Trial {
    /// As the recording has the claim right after the live engine served it.
    pub fn new(seen: Seen<'_>, claim: &Claim, chosen: &str, given: &str, since: u64) -> Option<Trial> {
        let kind = Kind::Claim(claim.ty);
        let bare = input::wishes(kind, seen.truth.get(kind, &claim.meta.key)?);
        let mut trial = Trial {
            ty: claim.ty,
            claim: into_object(kind, bare).ok()?,
            uid: claim.meta.uid.clone(),
            chosen: chosen.to_owned(),
            versions: Vec::new(),
            given: given.to_owned(),
            since,
        };
        trial.versions = trial.versions_of(chosen, seen);
        Some(trial)
    }

    /// Whether news of a resource may change the answer.
    pub fn concerns(&self, resource: &str) -> bool {
        self.given == resource
    }

    /// Why the live engine gave the one, where the rules prefer it to the other in a state that the live engine may have
    /// decided from.
    pub fn explain(&self, seen: Seen<'_>) -> Option<String> {
        let given = self.versions_of(&self.given, seen);
        let mut pairs = self.versions.iter().flat_map(|one| given.iter().map(move |other| (one, other)));
        let is_preferred = pairs.any(|(one, other)| self.prefers(seen.stage, one, other));
        is_preferred.then(|| {
            format!("{} fits better than {} as the recording has them by then", self.chosen, self.given)
        })
    }

    fn prefers(&self, stage: &Stage, one: &Version, other: &Version) -> bool {
        let namespace = self.claim.metadata.namespace.as_deref().unwrap_or_default();
        let its_own = stage.world.get(Kind::Namespace, &ObjectKey::new("", namespace));
        let limits = stage.world.of(Kind::Limits);
        let limits = limits.filter(|limits| limits.metadata.namespace.as_deref() == Some(namespace));
        let of_all = [Kind::Profile, Kind::Class(self.ty)].into_iter().flat_map(|kind| stage.world.of(kind));
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
        stage.beside(objects).verdict(&self.uid).is_some_and(is_chosen)
    }

    /// A resource without this claim: as the recording has it, and without each of what was bound to it lately.
    fn versions_of(&self, name: &str, seen: Seen<'_>) -> Vec<Version> {
        let Seen { stage, truth, flight } = seen;
        let (kind, key) = (Kind::Resource(self.ty), stage.resource_key(name));
        let Some(recorded) = truth.get(kind, &key) else { return Vec::new() };
        let held: Vec<&str> = super::uids(&recorded).filter(|uid| *uid != &*self.uid).collect();
        let lately: Vec<&str> = flight.bound_to(name, self.since).filter(|uid| held.contains(uid)).collect();
        let without = removals(&lately).into_iter();
        without.filter_map(|without| self.version(&recorded, &without, seen)).collect()
    }

    fn version(&self, recorded: &Value, without: &[&str], seen: Seen<'_>) -> Option<Version> {
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
                holders.push((text(held, "uid"), self.holder(&key, &text(held, "uid"), seen)?));
            }
        }
        Some(Version { resource, holders })
    }

    /// A claim that holds one of the two. One that is about to leave holds it still.
    fn holder(&self, key: &ObjectKey, uid: &str, Seen { stage, truth, .. }: Seen<'_>) -> Option<Object> {
        let kind = Kind::Claim(self.ty);
        let recorded = truth.get(kind, key).and_then(|value| into_object(kind, value).ok());
        let here = || stage.world.get(kind, key).cloned();
        let is_it = |object: &Object| object.metadata.uid.as_deref() == Some(uid);
        let mut holder = recorded.filter(is_it).or_else(|| here().filter(is_it))?;
        holder.metadata.deletion_timestamp = None;
        Some(holder)
    }
}

/// A resource at some time, and the claims that it names then.
struct Version {
    resource: Object,
    holders: Vec<(String, Object)>,
}

/// What may not have been there yet, of what was bound one after the other: nothing first.
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
