//! The claim's side of a binding: its status, its record of the resource, its protection.

use super::conditions::with_condition;
use crate::action::{Change, with_finalizer};
use crate::api::names::CLAIM_PROTECTION;
use crate::api::reasons;
use crate::model::{Claim, ClaimPhase, Kind, Name, ObjectKey, SpecRecord, Time, Uid};

/// What the claim's side should say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClaimSide<'a> {
    /// It waits.
    Pending {
        /// The reason for its condition.
        reason: &'static str,
        /// The message for its condition.
        message: &'a str,
    },
    /// A resource is being provisioned for it: it is protected first.
    Provisioning {
        /// The message for its condition.
        message: &'a str,
    },
    /// Both sides agree.
    Bound {
        /// Where the resource is.
        resource: &'a ObjectKey,
        /// The resource's UID.
        uid: &'a Uid,
        /// What the claim requests now and the resource does not have.
        drift: Option<&'a str>,
        /// What its spec said when it was bound.
        bound_spec: &'a SpecRecord,
        /// Whether the application can use it; `None` leaves the condition as it is.
        ready: Option<&'a ClaimReady>,
    },
    /// Its resource is lost.
    Lost {
        /// The reason for its condition.
        reason: &'static str,
        /// The message for its condition.
        message: &'a str,
    },
    /// It is being deleted; its finalizer is removed once nothing is left to do.
    Leaving {
        /// Whether nothing is left to do.
        may_go: bool,
    },
}

/// Whether an application can use what its claim is bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClaimReady {
    /// The Secret with the connection, once it is published; absent, it cannot.
    pub secret: Option<Name>,
    /// The reason for its condition.
    pub reason: &'static str,
    /// The message for its condition.
    pub message: String,
}

/// The next change of the claim, if its own side does not yet say what it should.
pub fn plan_claim(claim: &Claim, side: &ClaimSide<'_>, now: Time) -> Option<Change> {
    match side {
        ClaimSide::Pending { reason, message } => {
            plan_status(claim, ClaimPhase::Pending, None, (reason, message), None, now)
        }
        ClaimSide::Provisioning { message } => plan_spec(claim, None).or_else(|| {
            let why = (reasons::bound::PROVISIONING, *message);
            plan_status(claim, ClaimPhase::Pending, None, why, None, now)
        }),
        // Status first: the application waits for Bound, and not for our record in the spec.
        ClaimSide::Bound { resource, uid, drift, bound_spec, ready } => {
            let message = bound_message(&resource.name, *drift);
            let record = Some((*resource, *uid, *bound_spec));
            let reason = if drift.is_some() { reasons::bound::NOT_AS_ASKED } else { reasons::bound::BOUND };
            let why = (reason, message.as_str());
            plan_status(claim, ClaimPhase::Bound, record, why, *ready, now)
                .or_else(|| plan_spec(claim, Some(&resource.name)))
        }
        ClaimSide::Lost { reason, message } => {
            plan_status(claim, ClaimPhase::Lost, None, (reason, message), None, now)
        }
        ClaimSide::Leaving { may_go } => {
            let protected = claim.meta.has_finalizer(CLAIM_PROTECTION);
            (*may_go && protected).then(|| Change::ClaimSpec {
                resource_name: None,
                finalizers: with_finalizer(Kind::Claim(claim.ty), &claim.meta.finalizers, false),
            })
        }
    }
}

/// The message of a bound claim, with what it does not get.
pub fn bound_message(resource: &Name, drift: Option<&str>) -> String {
    match drift {
        Some(drift) => format!("bound to {resource}; what the claim requests now it does not get: {drift}"),
        None => format!("bound to {resource}"),
    }
}

fn plan_spec(claim: &Claim, resource: Option<&Name>) -> Option<Change> {
    let recorded = resource.is_none_or(|name| claim.resource_name.as_ref() == Some(name));
    let protected = claim.meta.has_finalizer(CLAIM_PROTECTION);
    (!recorded || !protected).then(|| Change::ClaimSpec {
        resource_name: resource.cloned(),
        finalizers: with_finalizer(Kind::Claim(claim.ty), &claim.meta.finalizers, true),
    })
}

fn plan_status(
    claim: &Claim,
    phase: ClaimPhase,
    resource: Option<(&ObjectKey, &Uid, &SpecRecord)>,
    (reason, message): (&str, &str),
    ready: Option<&ClaimReady>,
    now: Time,
) -> Option<Change> {
    let status = &claim.status;
    let is_bound = phase == ClaimPhase::Bound;
    let conditions = with_condition(&status.conditions, reasons::BOUND, is_bound, reason, message, now);
    let (conditions, binding) = match ready {
        Some(ClaimReady { secret, reason, message }) => {
            let is_ready = secret.is_some();
            (with_condition(&conditions, reasons::READY, is_ready, reason, message, now), secret.clone())
        }
        // Not set on a claim that never was ready; of one that was, it is no longer true.
        None if !is_bound && conditions.iter().any(|c| &*c.kind == reasons::READY) => {
            let why = reasons::ready::NOT_BOUND;
            (with_condition(&conditions, reasons::READY, false, why, "", now), status.binding.clone())
        }
        None => (conditions, status.binding.clone()),
    };
    // A lost claim keeps the name of what it lost.
    let recorded = match phase {
        ClaimPhase::Lost => true,
        ClaimPhase::Pending | ClaimPhase::Bound => {
            // One that was bound before this was recorded gets it with the next write of its status.
            let is_unrecorded = status.bound_spec.is_none() && status.phase == ClaimPhase::Bound;
            status.resource.as_ref() == resource.map(|(key, ..)| &key.name)
                && status.resource_uid.as_ref() == resource.map(|(_, uid, _)| uid)
                && (is_unrecorded || status.bound_spec.as_ref() == resource.map(|(_, _, spec)| spec))
        }
    };
    // Our record in the spec follows, and begins the next generation: it is observed already, so that the status need not
    // be written once more for it.
    let record_follows = resource.is_some_and(|(key, ..)| claim.resource_name.as_ref() != Some(&key.name));
    let generation = claim.meta.generation + i64::from(record_follows);
    let is_current = status.written
        && status.phase == phase
        && recorded
        && status.conditions == conditions
        && status.binding == binding
        && status.observed_generation == generation;
    (!is_current).then(|| Change::ClaimStatus {
        phase,
        resource: resource.map(|(key, uid, _)| (key.clone(), uid.clone())),
        conditions,
        observed_generation: generation,
        binding,
        bound_spec: resource.map(|(_, _, spec)| spec.clone()),
    })
}
