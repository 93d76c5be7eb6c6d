//! A plan read off an engine that rests. Whoever has just played a history through one need not show all of it to
//! another: where nothing is under way and nothing can change, that one would decide what stands already. Where
//! anything might, nothing is said here, and the objects are planned as any others are.

use super::claims::{self, Subject};
use super::resources::{self, Holding};
use super::stage::Stage;
use super::{Options, Planned};
use conductor::cache::{ResourceEntry, State};
use conductor::engine::Engine;
use conductor::model::{ClaimRef, ResourcePhase, Time};
use conductor::queue::Lengths;

impl Planned {
    /// The plan over what `engine` knows, made under the same options; nothing where a new engine might decide more.
    pub(crate) fn at_rest(engine: Engine, now: Time, options: &Options) -> Option<Planned> {
        if !rests(&engine) {
            return None;
        }
        let state = engine.state();
        let mut subjects: Vec<Subject> = state.claims().map(Subject::of).collect();
        claims::sort(&mut subjects);
        let mut holdings: Vec<Holding> =
            state.resources().map(|(_, entry)| Holding::of(&entry.resource)).collect();
        resources::sort(&mut holdings);
        let stage = Stage::resting(engine, options.system_namespace.clone(), now);
        Some(Planned { stage, subjects, holdings, options: options.clone() })
    }
}

/// Whether nothing is on its way, and no object can change but by somebody's wish.
fn rests(engine: &Engine) -> bool {
    let state = engine.state();
    let Lengths { active, backoff, in_flight, parked: _ } = engine.queue_lengths();
    engine.is_idle()
        && active + backoff + in_flight == 0
        && state.claims().all(|claim| !claim.meta.deleting)
        && state.classes.values().all(|class| !class.meta.deleting)
        && state.resources().all(|(_, entry)| is_steady(state, entry))
}

/// Whether a resource stays as it is, with those who hold it, and each of them says what it takes.
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
