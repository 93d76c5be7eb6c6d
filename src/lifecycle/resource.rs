//! The resource's side of a binding: who holds it, its phase, and its end.
//! `claimRefs`, written under the resource's revision, is the one commit point of a binding.

use super::conditions::{reason_of, with_condition};
use super::part::{Implementation, Says};
use crate::action::{Change, with_finalizer};
use crate::api::names::RESOURCE_PROTECTION;
use crate::api::reasons::{self, resource as reason};
use crate::cache::{Departure, ResourceEntry};
use crate::model::{ClaimRef, Kind, Name, ReclaimPolicy, Record, Resource, ResourcePhase, Time};

/// What a resource needs next.
#[derive(Clone, Debug, PartialEq)]
pub enum Step {
    /// Nothing.
    Rest,
    /// This write.
    Write(Box<Change>),
    /// Its destruction, after everything has been read live once more.
    Destroy,
}

/// The next step of a resource, from how its implementation stands. `trouble` is what the API said to the
/// last try to destroy it.
pub fn plan_resource(
    entry: &ResourceEntry,
    implementation: &Implementation,
    trouble: Option<&str>,
    now: Time,
) -> Step {
    let change = plan_references(entry, implementation);
    // Not called Released first: there is nothing to retain, whatever the policy.
    if change.is_none()
        && entry.is_released()
        && !entry.resource.meta.deleting
        && was_never_made(&entry.resource)
    {
        return Step::Destroy;
    }
    if let Some(change) = change.or_else(|| plan_status(entry, implementation, trouble, now)) {
        return Step::Write(Box::new(change));
    }
    let resource = &entry.resource;
    let failed_to = reason_of(&resource.status.conditions, reasons::READY) == Some(reason::RECLAIM_FAILED)
        || failed_for_good(resource).is_some();
    let released = match resource.status.phase {
        Some(ResourcePhase::Released) => entry.is_released(),
        // A destruction that failed is tried again.
        Some(ResourcePhase::Failed) => entry.is_released() && failed_to,
        Some(
            ResourcePhase::Pending
            | ResourcePhase::Creating
            | ResourcePhase::Available
            | ResourcePhase::Bound
            | ResourcePhase::Deleting,
        )
        | None => false,
    };
    let delete = resource.reclaim == ReclaimPolicy::Delete && !resource.meta.deleting;
    if released && delete { Step::Destroy } else { Step::Rest }
}

fn plan_references(entry: &ResourceEntry, implementation: &Implementation) -> Option<Change> {
    let resource = &entry.resource;
    // The list is written whole: what cannot be read in it would be lost.
    if resource.has_unreadable_refs {
        return None;
    }
    let refs = desired_references(entry);
    let held = refs.iter().any(|r| r.uid.is_some());
    let protected = resource.meta.has_finalizer(RESOURCE_PROTECTION);
    let protect = if resource.meta.deleting {
        // Kept while claims hold it; once none does and its implementation is deleted, it is removed.
        protected && (entry.has_live_holder() || implementation.protects)
    } else {
        protected || held || implementation.protects
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

fn plan_status(
    entry: &ResourceEntry,
    implementation: &Implementation,
    trouble: Option<&str>,
    now: Time,
) -> Option<Change> {
    let resource = &entry.resource;
    let desired = desired_status(entry, implementation, trouble)?;
    let Desired { phase, ready } = past_deadline(resource, desired, now);
    let status = &resource.status;
    let conditions = match ready {
        Some(Ready { status: ready, reason, message }) => {
            with_condition(&status.conditions, reasons::READY, ready, reason, &message, now)
        }
        None => status.conditions.clone(),
    };
    let allocated = if entry.is_released() { Default::default() } else { resource.held_capacity() };
    let generation = resource.meta.generation;
    let record = implementation.record.clone();
    let recorded = record.as_ref().is_none_or(|r| status.implementation == Record::Ours(r.clone()));
    // Only what differs is written: a report that is missing for the moment removes nothing. A resource that is deleted
    // needs none, and a CRD from before the field, which keeps no version, must not hold it up.
    let version = implementation.version.clone().filter(|_| !resource.meta.deleting);
    let version = version.filter(|version| status.version.as_ref() != Some(version));
    let is_current = status.phase == Some(phase)
        && version.is_none()
        && status.allocated == allocated
        && status.conditions == conditions
        && recorded
        && status.observed_generation == generation;
    (!is_current).then(|| {
        let was_taken = status.allocated.iter().map(|(dim, _)| dim.name());
        let no_longer = was_taken.filter(|name| allocated.get(name).is_zero()).map(Name::from).collect();
        Change::ResourceStatus {
            phase,
            allocated,
            no_longer,
            conditions,
            observed_generation: generation,
            version,
            implementation: record,
        }
    })
}

struct Desired {
    phase: ResourcePhase,
    /// The condition; `None` leaves it as it is.
    ready: Option<Ready>,
}

struct Ready {
    status: bool,
    reason: &'static str,
    message: String,
}

fn says(phase: ResourcePhase, status: bool, reason: &'static str, message: String) -> Option<Desired> {
    Some(Desired { phase, ready: Some(Ready { status, reason, message }) })
}

/// What the status should say; `None` where that is not known yet.
fn desired_status(
    entry: &ResourceEntry,
    implementation: &Implementation,
    trouble: Option<&str>,
) -> Option<Desired> {
    let resource = &entry.resource;
    let live = entry.has_live_holder();
    if let Err(error) = &resource.offer {
        let phase = if live { ResourcePhase::Bound } else { ResourcePhase::Failed };
        return says(phase, false, reason::INVALID_SPEC, error.to_string());
    }
    if resource.meta.deleting && !live {
        return desired_end(resource.status.phase, implementation);
    }
    if has_failed(resource) {
        return None;
    }
    if entry.is_released() {
        return desired_release(resource, trouble);
    }
    if resource.is_withdrawn() {
        return None;
    }
    let is_held = live && resource.holders().next().is_some();
    let held = if is_held { ResourcePhase::Bound } else { ResourcePhase::Available };
    let is_offered = resource.is_offered();
    match &implementation.says {
        Says::Ready if resource.meta.deleting => says(held, true, reason::AVAILABLE, stays_for(entry)),
        Says::Ready => says(held, true, reason::AVAILABLE, String::new()),
        Says::Failed { reason, message } => says(ResourcePhase::Failed, false, reason, message.clone()),
        // No claim is unbound because an implementation is not ready for a while: the condition says so.
        Says::NotReady { reason, message } if is_offered => says(held, false, reason, message.clone()),
        Says::NotReady { reason, message } => says(ResourcePhase::Creating, false, reason, message.clone()),
        Says::Nothing if is_offered => Some(Desired { phase: held, ready: None }),
        Says::Nothing => None,
    }
}

/// Why a resource that is being deleted still exists.
fn stays_for(entry: &ResourceEntry) -> String {
    let holders: Vec<String> = entry.resource.holders().map(|holder| holder.claim.to_string()).collect();
    format!("its deletion waits until {} releases it", holders.join(", "))
}

/// A resource that has not become ready in the time that its class gives it has failed.
fn past_deadline(resource: &Resource, desired: Desired, now: Time) -> Desired {
    let is_over = resource.deadline().is_some_and(|deadline| now >= deadline);
    match desired {
        Desired { phase: ResourcePhase::Creating, ready: Some(Ready { message, .. }) } if is_over => {
            let message = format!("it was not ready in the time that its class gives it: {message}");
            let ready = Ready { status: false, reason: reason::DEADLINE_EXCEEDED, message };
            Desired { phase: ResourcePhase::Failed, ready: Some(ready) }
        }
        desired => desired,
    }
}

/// Why a resource has failed to be provisioned, where waiting does not help.
pub fn failed_for_good(resource: &Resource) -> Option<&str> {
    let ready = resource.status.conditions.iter().find(|c| &*c.kind == reasons::READY)?;
    let for_good = [reason::DEADLINE_EXCEEDED, reason::IMPLEMENTATION_FAILED].contains(&&*ready.reason);
    (resource.status.phase == Some(ResourcePhase::Failed) && for_good).then_some(&*ready.message)
}

/// Why a class will never provision this resource: it has failed for good, or its templates cannot be rendered before any
/// part was created. Once a part exists, its outputs may still change what they render to.
pub fn cannot_be_made(resource: &Resource) -> Option<&str> {
    failed_for_good(resource).or_else(|| {
        let ready = resource.status.conditions.iter().find(|c| &*c.kind == reasons::READY)?;
        let is_new =
            matches!(resource.status.phase, None | Some(ResourcePhase::Pending | ResourcePhase::Creating));
        let nothing_made = resource.status.implementation.parts().iter().all(|part| part.uid.is_none());
        let unmakeable = resource.provisioned_for.is_some() && is_new && nothing_made;
        (unmakeable && &*ready.reason == reason::TEMPLATE_ERROR).then_some(&*ready.message)
    })
}

/// Whether nothing was ever created for a resource that a class provisions: its condition says why, and no part is
/// recorded, as every part is before it is created. That its status lacks a record is not enough: a backup restores none.
pub fn was_never_made(resource: &Resource) -> bool {
    let is_new =
        matches!(resource.status.phase, None | Some(ResourcePhase::Pending | ResourcePhase::Creating));
    let reason = reason_of(&resource.status.conditions, reasons::READY);
    resource.provisioned_for.is_some()
        && is_new
        && matches!(resource.status.implementation, Record::Absent)
        && reason.and_then(reasons::provisioning_obstacle).is_some()
}

fn desired_end(phase: Option<ResourcePhase>, implementation: &Implementation) -> Option<Desired> {
    match &implementation.says {
        Says::Failed { reason, message } => says(ResourcePhase::Failed, false, reason, message.clone()),
        Says::Nothing | Says::Ready | Says::NotReady { .. } => {
            let message = match (implementation.waits.as_str(), implementation.protects) {
                ("", false) => String::new(),
                // What it waits for is not known for the moment: the message may still be true.
                ("", true) if phase == Some(ResourcePhase::Deleting) => {
                    return Some(Desired { phase: ResourcePhase::Deleting, ready: None });
                }
                ("", true) => "its implementation is settled first".to_owned(),
                (waits, _) => format!("it waits for {waits}"),
            };
            says(ResourcePhase::Deleting, false, reason::DELETING, message)
        }
    }
}

fn desired_release(resource: &Resource, trouble: Option<&str>) -> Option<Desired> {
    let failed = |message| says(ResourcePhase::Failed, false, reason::RECLAIM_FAILED, message);
    match (&resource.reclaim, trouble) {
        (ReclaimPolicy::Unknown(policy), _) => failed(format!(
            "reclaimPolicy {policy} is not known; nothing is destroyed. Write Retain or Delete"
        )),
        (ReclaimPolicy::Delete, Some(why)) => {
            failed(format!("it cannot be deleted: {why}. It is tried again"))
        }
        (ReclaimPolicy::Delete, None) | (ReclaimPolicy::Retain, _) => {
            let message =
                format!("its last claim is gone; policy {}{}", resource.reclaim.name(), stays(resource));
            says(ResourcePhase::Released, false, reason::RELEASED, message)
        }
    }
}

/// Where the implementation of a retained resource is.
fn stays(resource: &Resource) -> String {
    match retained_parts(resource) {
        Some(parts) => format!(". Its implementation stays: {parts}"),
        None => String::new(),
    }
}

/// The objects that outlive a resource whose policy is to retain them, for users; `None` where there are none.
pub fn retained_parts(resource: &Resource) -> Option<String> {
    let parts = resource.status.implementation.parts();
    let named: Vec<String> = parts.iter().map(|part| part.key.to_string()).collect();
    let retained = resource.reclaim != ReclaimPolicy::Delete && !named.is_empty();
    retained.then(|| named.join(", "))
}

/// Failed stays, except where the failure is derived from what is seen, and derived again: a spec that could not be read,
/// an implementation that was deleted, an unknown policy, a failed deletion.
fn has_failed(resource: &Resource) -> bool {
    let is_derived = match reason_of(&resource.status.conditions, reasons::READY) {
        Some(reason::INVALID_SPEC | reason::IMPLEMENTATION_GONE | reason::IMPLEMENTATION_FAILED) => true,
        Some(reason::RECLAIM_FAILED) => !matches!(resource.reclaim, ReclaimPolicy::Unknown(_)),
        _ => false,
    };
    resource.status.phase == Some(ResourcePhase::Failed) && !is_derived
}
