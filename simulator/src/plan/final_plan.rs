//! The plan of an engine that is already idle, such as the one at the end of a replay. If nothing is in flight and no
//! object can still change, a new engine would reach the same decisions, so this one's are read directly. Otherwise
//! the caller plans the objects from scratch.

use super::claims::{self, Subject};
use super::plan_engine::PlanEngine;
use super::resources::{self, Holding};
use super::{Options, Planned};
use conductor::cache::{ResourceEntry, State};
use conductor::engine::Engine;
use conductor::model::{ClaimRef, ResourcePhase, Time};
use conductor::queue::Lengths;

impl Planned {
    /// Returns the plan of everything `engine` knows, or `None` if a new engine might decide more.
    pub(crate) fn from_idle(engine: Engine, now: Time, options: &Options) -> Option<Planned> {
        if !is_final(&engine) {
            return None;
        }
        let state = engine.state();
        let mut subjects: Vec<Subject> = state.claims().map(Subject::of).collect();
        claims::sort(&mut subjects);
        let mut holdings: Vec<Holding> =
            state.resources().map(|(_, entry)| Holding::of(&entry.resource)).collect();
        resources::sort(&mut holdings);
        let plan_engine = PlanEngine::idle(engine, options.system_namespace.clone(), now);
        Some(Planned { plan_engine, subjects, holdings, options: options.clone() })
    }
}

/// Whether nothing is in flight and no object can change without a user.
fn is_final(engine: &Engine) -> bool {
    let state = engine.state();
    let Lengths { active, backoff, in_flight, parked: _ } = engine.queue_lengths();
    engine.is_idle()
        && active + backoff + in_flight == 0
        && state.claims().all(|claim| !claim.meta.deleting)
        && state.classes.values().all(|class| !class.meta.deleting)
        && state.resources().all(|(_, entry)| is_steady(state, entry))
}

/// Whether a resource and its holders stay as they are, and each reference states its requests.
fn is_steady(state: &State, entry: &ResourceEntry) -> bool {
    let resource = &entry.resource;
    let has_plain_phase =
        matches!(resource.status.phase, None | Some(ResourcePhase::Available | ResourcePhase::Bound));
    let stays = |reference: &ClaimRef| {
        let Some(uid) = &reference.uid else { return true };
        state.claim(uid).is_some_and(|claim| {
            let asks_nothing = claim.wants.as_ref().is_ok_and(|wants| wants.requests.is_empty());
            claim.status.resource.as_ref() == Some(&resource.meta.key.name)
                && (asks_nothing || !reference.requests.is_empty())
        })
    };
    has_plain_phase
        && !resource.meta.deleting
        && !resource.has_unreadable_refs
        && entry.assumed.is_empty()
        && entry.departed.is_empty()
        && resource.claim_refs.iter().all(stays)
}
