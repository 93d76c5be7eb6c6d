//! The outcome of each resource: its phase, its holders, and whether it is released and reclaimed.
//! The phase is the one the engine would write in the end; tests compare it with a cluster in memory.

use super::document::{Holder, Plan, PlannedResource};
use conductor::cache::{ResourceEntry, State};
use conductor::model::{Kind, Object, ObjectKey, ReclaimPolicy, Resource, ResourcePhase, TypeId};

/// A resource of the input.
#[derive(Clone)]
pub(super) struct Holding {
    ty: TypeId,
    pub key: ObjectKey,
    /// The phase in its status.
    phase: Option<ResourcePhase>,
    reclaim: ReclaimPolicy,
    deleting: bool,
    /// Its row in the base plan, if only newly assumed claims can change it.
    pub row: Option<usize>,
}

/// The base plan and its engine's state.
#[derive(Clone, Copy)]
pub(super) struct Known<'a> {
    pub plan: &'a Plan,
    pub state: &'a State,
}

/// All resources in the system namespace, sorted by namespace and name.
pub(super) fn holdings(objects: &[Object], system_namespace: &str) -> Vec<Holding> {
    let ours = objects.iter().filter(|o| o.metadata.namespace.as_deref() == Some(system_namespace));
    let mut holdings: Vec<Holding> = ours.filter_map(Holding::read).collect();
    sort(&mut holdings);
    holdings
}

pub(super) fn sort(holdings: &mut [Holding]) {
    holdings.sort_by(|a, b| (&a.key, a.ty).cmp(&(&b.key, b.ty)));
}

impl Holding {
    fn read(object: &Object) -> Option<Holding> {
        let Kind::Resource(ty) = object.kind else { return None };
        let text = |path: &str| object.body.pointer(path).and_then(serde_json::Value::as_str);
        Some(Holding {
            ty,
            key: crate::world::key_of(object),
            phase: text("/status/phase").and_then(ResourcePhase::find),
            reclaim: ReclaimPolicy::read(text("/spec/reclaimPolicy")),
            deleting: object.metadata.deletion_timestamp.is_some(),
            row: None,
        })
    }

    /// From the engine's view.
    pub fn of(resource: &Resource) -> Holding {
        Holding {
            ty: resource.ty,
            key: resource.meta.key.clone(),
            phase: resource.status.phase,
            reclaim: resource.reclaim.clone(),
            deleting: resource.meta.deleting,
            row: None,
        }
    }

    pub fn kind(&self) -> Kind {
        Kind::Resource(self.ty)
    }

    pub fn plan(&self, state: &State, known: Option<Known<'_>>) -> PlannedResource {
        let entry = state.find_resource(self.ty, &self.key.name).and_then(|id| state.resource(id));
        let row = |phase: ResourcePhase, claims, reclaim| PlannedResource {
            namespace: self.key.namespace.clone(),
            name: self.key.name.clone(),
            phase: phase.name(),
            claims,
            reclaim,
        };
        match entry {
            Some(entry) => {
                let phase = phase_of(state, entry);
                let known = known.and_then(|known| self.claims_beside(entry, known));
                let reclaim = self.reclaim_in(phase).filter(|_| entry.is_released());
                row(phase, known.unwrap_or_else(|| claims_of(state, entry)), reclaim)
            }
            // Deleted by the end of the plan, by request or by its reclaim policy.
            None if self.deleting => row(ResourcePhase::Deleting, Vec::new(), None),
            None => row(ResourcePhase::Released, Vec::new(), Some("Delete")),
        }
    }

    /// Its holders, if they differ from the base plan only in newly assumed claims.
    fn claims_beside(&self, entry: &ResourceEntry, known: Known<'_>) -> Option<Vec<Holder>> {
        let row = known.plan.resources.get(self.row?)?;
        let before = known.state.resource(known.state.find_resource(self.ty, &self.key.name)?)?;
        if !before.departed.is_empty() || !entry.departed.is_empty() {
            return None;
        }
        let mut claims = row.claims.clone();
        for given in &before.assumed {
            let at = claims.iter().position(|holder| holder.0 == given.claim)?;
            claims.swap_remove(at);
        }
        claims.extend(entry.assumed.iter().map(|given| Holder(given.claim.clone())));
        claims.sort_unstable();
        Some(claims)
    }

    /// The reclaim policy, if the plan releases or deletes the resource.
    fn reclaim_in(&self, phase: ResourcePhase) -> Option<&'static str> {
        match (phase, &self.reclaim) {
            (ResourcePhase::Released, ReclaimPolicy::Delete) => Some("Delete"),
            (ResourcePhase::Released, ReclaimPolicy::Retain | ReclaimPolicy::Unknown(_)) => {
                (self.phase != Some(ResourcePhase::Released)).then_some("Retain")
            }
            (
                ResourcePhase::Pending
                | ResourcePhase::Creating
                | ResourcePhase::Available
                | ResourcePhase::Bound
                | ResourcePhase::Failed
                | ResourcePhase::Deleting,
                _,
            ) => None,
        }
    }
}

fn phase_of(state: &State, entry: &ResourceEntry) -> ResourcePhase {
    let Resource { meta, offer, status, reclaim, .. } = &entry.resource;
    let live = entry.has_live_holder();
    let written = status.phase.unwrap_or(ResourcePhase::Available);
    match (live, written) {
        (true, _) if offer.is_err() => ResourcePhase::Bound,
        (false, _) if offer.is_err() => ResourcePhase::Failed,
        (false, _) if meta.deleting => ResourcePhase::Deleting,
        // The engine has repaired by now what it can.
        (_, ResourcePhase::Failed) => ResourcePhase::Failed,
        _ if entry.is_released() && matches!(reclaim, ReclaimPolicy::Unknown(_)) => ResourcePhase::Failed,
        _ if entry.is_released() => ResourcePhase::Released,
        (false, _) if entry.resource.is_withdrawn() => written,
        _ if !state.is_implemented(&entry.resource) => written,
        (true, _) => ResourcePhase::Bound,
        (false, _) => ResourcePhase::Available,
    }
}

/// Its holders, sorted, without departed claims and reservations.
fn claims_of(state: &State, entry: &ResourceEntry) -> Vec<Holder> {
    let live = entry.refs().filter_map(|r| Some((r, r.uid.as_ref()?)));
    let live = live.filter(|(_, uid)| !entry.departed.contains_key(*uid));
    let key = |uid| state.claim(uid).map(|claim| &claim.meta.key);
    let mut claims: Vec<Holder> = live.map(|(r, uid)| Holder(key(uid).unwrap_or(&r.claim).clone())).collect();
    claims.sort_unstable();
    claims
}
