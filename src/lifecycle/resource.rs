//! The resource's side of a binding: who holds it, its phase, and its end.
//! `claimRefs`, written under the resource's revision, is the one commit point of a binding.

use super::conditions::{reason_of, with_condition};
use crate::action::{Change, with_finalizer};
use crate::api::names::RESOURCE_PROTECTION;
use crate::api::reasons::{self, resource as reason};
use crate::cache::{Departure, ResourceEntry};
use crate::model::{ClaimRef, Kind, ReclaimPolicy, Resource, ResourcePhase, Time};

/// What a resource needs next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// This write. The revision guards it where landing on a newer one would be wrong.
    Write {
        /// The change.
        change: Change,
        /// Whether the write is tied to the revision that it was computed from.
        guarded: bool,
    },
    /// Its destruction, after everything has been read live once more.
    Destroy,
}

/// The next step of a resource.
///
/// `implemented` says whether what it stands for exists.
pub fn plan_resource(entry: &ResourceEntry, implemented: bool, now: Time) -> Step {
    if let Some(change) = plan_references(entry) {
        return Step::Write { change, guarded: true };
    }
    if let Some(change) = plan_status(entry, implemented, now) {
        return Step::Write { change, guarded: false };
    }
    let delete = entry.resource.reclaim == ReclaimPolicy::Delete;
    let released = entry.resource.status.phase == Some(ResourcePhase::Released) && entry.is_released();
    if released && delete && !entry.resource.meta.deleting { Step::Destroy } else { Step::Rest }
}

fn plan_references(entry: &ResourceEntry) -> Option<Change> {
    let resource = &entry.resource;
    let refs = desired_references(entry);
    let held = refs.iter().any(|r| r.uid.is_some());
    let protected = resource.meta.has_finalizer(RESOURCE_PROTECTION);
    let protect = if resource.meta.deleting {
        // Not removed under its users; once nobody uses it, it may go.
        protected && entry.has_live_holder()
    } else {
        protected || held
    };
    (refs != resource.claim_refs || protect != protected).then(|| Change::ResourceSpec {
        claim_refs: refs,
        finalizers: with_finalizer(Kind::Resource(resource.ty), &resource.meta.finalizers, protect),
    })
}

/// Who should hold the resource: those who do, without those who left, with those it was given to.
fn desired_references(entry: &ResourceEntry) -> Vec<ClaimRef> {
    let reclaimed = entry.is_released();
    let mut refs = Vec::new();
    for seen in &entry.resource.claim_refs {
        let departure = seen.uid.as_ref().and_then(|uid| entry.departed.get(uid));
        match departure {
            // A reservation is filled by the claim that it names.
            None if seen.uid.is_none() && entry.assumed.iter().any(|a| a.claim == seen.claim) => {}
            None => refs.push(seen.clone()),
            // The last one's reference stays: it says whose data this is.
            Some(Departure::Gone) if reclaimed => refs.push(seen.clone()),
            Some(Departure::Gone) => {}
            // Ours is cleared whole; an administrator's keeps its name and loses only the UID.
            Some(Departure::Elsewhere) if seen.reserved => {
                refs.push(ClaimRef { uid: None, reserved: false, ..seen.clone() });
            }
            Some(Departure::Elsewhere) => {}
        }
    }
    let known = |a: &&ClaimRef| !entry.resource.claim_refs.iter().any(|seen| seen.uid == a.uid);
    refs.extend(entry.assumed.iter().filter(known).cloned());
    refs
}

fn plan_status(entry: &ResourceEntry, implemented: bool, now: Time) -> Option<Change> {
    let resource = &entry.resource;
    let Desired { phase, ready, reason, message } = desired_status(entry, implemented)?;
    let status = &resource.status;
    let conditions = with_condition(&status.conditions, reasons::READY, ready, reason, &message, now);
    let allocated = if entry.is_released() { Default::default() } else { resource.held_capacity() };
    let generation = resource.meta.generation;
    let is_current = status.phase == Some(phase)
        && status.allocated == allocated
        && status.conditions == conditions
        && status.observed_generation == generation;
    (!is_current).then_some(Change::ResourceStatus {
        phase,
        allocated,
        conditions,
        observed_generation: generation,
    })
}

struct Desired {
    phase: ResourcePhase,
    ready: bool,
    reason: &'static str,
    message: String,
}

/// What the status should say, or nothing where it is not ours to say yet.
fn desired_status(entry: &ResourceEntry, implemented: bool) -> Option<Desired> {
    let resource = &entry.resource;
    let says = |phase, ready, reason, message: String| Some(Desired { phase, ready, reason, message });
    let live = entry.has_live_holder();
    if let Err(error) = &resource.offer {
        let phase = if live { ResourcePhase::Bound } else { ResourcePhase::Failed };
        return says(phase, false, reason::INVALID_SPEC, error.to_string());
    }
    if resource.meta.deleting && !live {
        return says(ResourcePhase::Deleting, false, reason::DELETING, String::new());
    }
    if has_failed(resource) {
        return None;
    }
    if entry.is_released() {
        return match &resource.reclaim {
            ReclaimPolicy::Unknown(word) => {
                let message = format!(
                    "reclaimPolicy {word} is not known; nothing is destroyed. Write Retain or Delete"
                );
                says(ResourcePhase::Failed, false, reason::RECLAIM_FAILED, message)
            }
            ReclaimPolicy::Retain | ReclaimPolicy::Delete => {
                let message = format!("its last claim is gone; policy {}", resource.reclaim.name());
                says(ResourcePhase::Released, false, reason::RELEASED, message)
            }
        };
    }
    if !implemented {
        return None;
    }
    let held = resource.holders().next().is_some() && live;
    let phase = if held { ResourcePhase::Bound } else { ResourcePhase::Available };
    says(phase, true, reason::AVAILABLE, String::new())
}

/// Failed is not flipped, except where the failure was ours to tell and has been mended since: a spec
/// that could not be read, or a policy that nobody knew.
fn has_failed(resource: &Resource) -> bool {
    let mended = match reason_of(&resource.status.conditions, reasons::READY) {
        Some(reason::INVALID_SPEC) => true,
        Some(reason::RECLAIM_FAILED) => !matches!(resource.reclaim, ReclaimPolicy::Unknown(_)),
        _ => false,
    };
    resource.status.phase == Some(ResourcePhase::Failed) && !mended
}
