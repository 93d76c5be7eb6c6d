//! Predicting what an object is after a write, from what it was before: a replay, which stores every write itself, need
//! not show the object again, and nothing is parsed twice. A controller never calls this: it gets the object with the
//! answer. Where the result is not certain, nothing is predicted, and the object is read.

use super::Engine;
use super::memory::{Flight, Target};
use crate::action::{Action, Change, Write};
use crate::model::{Claim, ClaimPhase, ClaimStatus, Kind, Resource, ResourceStatus, Revision, Time};

impl Engine {
    /// Whether a write begins a new generation of its object, where the engine can predict the object. `None` where it
    /// cannot; then [`Engine::written_as_planned`] must not be called.
    pub fn predict_write(&self, write: &Write) -> Option<bool> {
        match write.kind {
            Kind::Claim(_) => {
                let known = self.state.claim(&write.uid)?;
                let is_known = known.meta.key == write.key && write.revision == Some(known.meta.revision);
                if is_known { predict_claim(known, &write.change) } else { None }
            }
            Kind::Resource(ty) => {
                let known = &self.state.resource_named(ty, &write.key.name)?.resource;
                let is_known = known.meta.uid == write.uid && write.revision == Some(known.meta.revision);
                if is_known { predict_resource(known, &write.change) } else { None }
            }
            Kind::Class(_)
            | Kind::Quota
            | Kind::ClusterQuota
            | Kind::Limits
            | Kind::Profile
            | Kind::Namespace => None,
        }
    }

    /// A [predicted](Engine::predict_write) write was done on the very revision that it was computed from, and led to
    /// `revision`: the same as if its answer had shown the object. What cannot be predicted after all is read.
    pub fn written_as_planned(&mut self, write: Write, revision: Revision, now: Time) -> Vec<Action> {
        let declares = self.predict_write(&write);
        if let Some(Flight { target, effect, .. }) = self.writes.land(write.id) {
            if let Target::Resource(ty, name) = &target {
                self.touch_owner(*ty, name);
            }
            self.writes.succeed(&target, effect);
            match declares {
                Some(declares) => {
                    self.observe_change(write, revision, i64::from(declares), now);
                    self.work.touch(target);
                }
                None => self.read_target(&target),
            }
        }
        self.run_queue(now)
    }

    fn observe_change(&mut self, write: Write, revision: Revision, generations: i64, now: Time) {
        if let Kind::Resource(ty) = write.kind {
            let entry = self.state.resource_named(ty, &write.key.name);
            if let Some(mut resource) = entry.and_then(|e| resource_after(&e.resource, write.change)) {
                resource.meta.revision = revision;
                resource.meta.generation += generations;
                self.observe_resource(resource, now);
            }
        } else if let Some(known) = self.state.claim(&write.uid)
            && let Some(mut claim) = claim_after(known, write.change)
        {
            claim.meta.revision = revision;
            claim.meta.generation += generations;
            self.observe_claim(claim, now);
        }
    }
}

fn predict_claim(known: &Claim, change: &Change) -> Option<bool> {
    // Of a spec that cannot be read nothing is known, not even the name of the resource.
    if known.meta.deleting || known.wants.is_err() {
        return None;
    }
    match change {
        Change::ClaimStatus { .. } => Some(false),
        Change::ClaimSpec { resource_name, .. } => {
            Some(resource_name.is_some() && *resource_name != known.resource_name)
        }
        Change::ClaimRefusals { .. }
        | Change::ResourceSpec { .. }
        | Change::ResourceRecipe { .. }
        | Change::ResourceStatus { .. }
        | Change::ClassFinalizers { .. }
        | Change::QuotaStatus { .. } => None,
    }
}

fn predict_resource(known: &Resource, change: &Change) -> Option<bool> {
    // Scripts are computed from more than is kept here.
    if known.meta.deleting || known.offer.is_err() || known.script.is_some() {
        return None;
    }
    match change {
        // Alike in meaning, they may be spelled otherwise: then only the object shows whether it is a new generation.
        Change::ResourceSpec { claim_refs, .. } => (*claim_refs != known.claim_refs).then_some(true),
        Change::ResourceStatus { implementation: None, version: None, .. } => Some(false),
        Change::ResourceStatus { .. }
        | Change::ResourceRecipe { .. }
        | Change::ClaimSpec { .. }
        | Change::ClaimStatus { .. }
        | Change::ClaimRefusals { .. }
        | Change::ClassFinalizers { .. }
        | Change::QuotaStatus { .. } => None,
    }
}

fn claim_after(known: &Claim, change: Change) -> Option<Claim> {
    let mut claim = known.clone();
    match change {
        Change::ClaimStatus { phase, resource, conditions, observed_generation, binding, bound_spec } => {
            let kept = claim.status.bound_spec.take().filter(|_| phase == ClaimPhase::Lost);
            let refused_by = std::mem::take(&mut claim.status.refused_by);
            let (resource_namespace, resource, resource_uid) = match (phase, resource) {
                // A lost claim keeps the record of what it lost.
                (ClaimPhase::Lost, _) => {
                    let ClaimStatus { resource_namespace, resource, resource_uid, .. } = &claim.status;
                    (resource_namespace.clone(), resource.clone(), resource_uid.clone())
                }
                (_, Some((key, uid))) => (Some(key.namespace), Some(key.name), Some(uid)),
                (_, None) => (None, None, None),
            };
            claim.status = ClaimStatus {
                written: true,
                phase,
                resource,
                resource_namespace,
                resource_uid,
                binding,
                observed_generation,
                bound_spec: kept.or(bound_spec),
                refused_by,
                conditions,
            };
        }
        Change::ClaimSpec { resource_name, finalizers } => {
            claim.resource_name = resource_name.or(claim.resource_name);
            claim.meta.finalizers = finalizers.into();
        }
        _ => return None,
    }
    Some(claim)
}

fn resource_after(known: &Resource, change: Change) -> Option<Resource> {
    let mut resource = known.clone();
    match change {
        Change::ResourceSpec { claim_refs, finalizers } => {
            resource.claim_refs = claim_refs;
            resource.meta.finalizers = finalizers.into();
        }
        Change::ResourceStatus {
            phase,
            allocated,
            no_longer: _,
            conditions,
            observed_generation,
            version: None,
            implementation: None,
        } => {
            let ResourceStatus { implementation, version, .. } = resource.status;
            let phase = Some(phase);
            resource.status =
                ResourceStatus { phase, allocated, observed_generation, conditions, implementation, version };
        }
        _ => return None,
    }
    Some(resource)
}
