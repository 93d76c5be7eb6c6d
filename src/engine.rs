//! The engine: one event in, actions out. It composes cache, queue, scheduler and lifecycle; it holds no client and
//! reads no clock, and the loop closes only through the API, as events.
//!
//! ```text
//! handle -> observe    update the cache; find out whom the change concerns
//!        -> settle     derive the binding of each such claim from both sides
//!        -> decide     take claims from the queue and choose a resource or a class for each
//!        -> reconcile  plan at most one write for each object that was touched
//!        -> actions
//! ```
//!
//! An object with a write in flight waits for the answer. What the engine remembers beside the cache and the queue is in
//! [`memory`], one type per concern.

mod answer;
mod assume;
mod binding;
mod binding_state;
mod config;
mod decide;
mod emit;
mod holders;
mod loss;
mod memory;
mod observe;
mod observe_policy;
mod parts;
mod predict_write;
mod presettle;
mod provision;
mod publish;
mod read;
mod reconcile;
mod relist;
#[cfg(test)]
mod tests;
mod wake;

pub use binding::{Binding, ClaimState, Refused};
pub use config::Config;

use crate::action::Action;
use crate::cache::State;
use crate::event::Event;
use crate::model::{Time, Uid};
use crate::predicates::Predicate;
use crate::queue::{Lengths, Queue};
use crate::scheduler::Memo;
use memory::{Bindings, LiveReads, Losses, Provisioning, Publishing, Tombstones, Worklist, Writes};
use std::collections::BTreeMap;

/// Counts for metrics and reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Decisions made.
    pub decisions: u64,
    /// Claims bound.
    pub bound: u64,
    /// Refusals by the predicate that refused most.
    pub refusals: BTreeMap<Predicate, u64>,
    /// Writes that met a newer object.
    pub conflicts: u64,
    /// Batches that were placed one by one because together would have taken too long.
    pub batches_given_up: u64,
    /// Resources that the index offered and a predicate refused. They are not bound.
    pub index_disagreements: u64,
}

/// The engine. One task owns it; nothing in it is shared. A clone continues independently: what-if plans use one.
#[derive(Clone, Debug)]
pub struct Engine {
    config: Config,
    state: State,
    queue: Queue,
    memo: Memo,
    bindings: Bindings,
    writes: Writes,
    reads: LiveReads,
    tombstones: Tombstones,
    losses: Losses,
    provisioning: Provisioning,
    publishing: Publishing,
    work: Worklist,
    stats: Stats,
}

impl Engine {
    /// An engine that has seen nothing.
    pub fn new(config: Config) -> Engine {
        Engine {
            state: State::new(config.absent_phase_is_available),
            config,
            queue: Queue::default(),
            memo: Memo::default(),
            bindings: Bindings::default(),
            writes: Writes::default(),
            reads: LiveReads::default(),
            tombstones: Tombstones::default(),
            losses: Losses::default(),
            provisioning: Provisioning::default(),
            publishing: Publishing::default(),
            work: Worklist::default(),
            stats: Stats::default(),
        }
    }

    /// Handles one event and returns what must be done next.
    ///
    /// # Guarantees
    /// The same events at the same times lead to the same actions. Before [`Event::Synced`] there are none but
    /// Kubernetes Events. At most one write per object is in flight.
    pub fn handle(&mut self, event: Event, now: Time) -> Vec<Action> {
        match event {
            Event::Seen(object) => {
                self.notice_touch(&object);
                self.observe(&object, now);
            }
            Event::Gone(gone) => self.observe_gone(gone.kind, &gone.key, &gone.uid, now),
            Event::Listed { kind, objects, revision } => self.observe_list(kind, objects, revision, now),
            Event::Synced => self.start(now),
            Event::Answered { id, answer } => self.answered(id, answer, now),
            Event::Read { kind, key, found } => self.read_answered(kind, &key, found, now),
            Event::Part(event) => self.observe_parts(event, now),
            Event::Publish(event) => self.observe_published(event, now),
            Event::Tick => self.tick(now),
        }
        self.run_queue(now)
    }

    /// The second half of a turn: decides and reconciles until nothing is left or the budget is spent.
    fn run_queue(&mut self, now: Time) -> Vec<Action> {
        if self.bindings.is_started() {
            let mut budget = self.config.decisions_per_turn;
            loop {
                self.decide(&mut budget, now);
                if !self.reconcile_all(now) && (budget == 0 || self.queue.lengths().active == 0) {
                    break;
                }
            }
            let more = (self.queue.lengths().active > 0).then_some(now);
            let times = more.into_iter().chain(self.writes.next_retry()).chain(self.queue.next_tick());
            self.work.schedule(times.min(), more.is_some());
        }
        self.work.take_actions()
    }

    fn tick(&mut self, now: Time) {
        self.work.wake();
        self.queue.tick(now);
        while let Some(target) = self.writes.pop_retry(now) {
            self.read_target(&target);
        }
    }

    /// The cluster as last seen, and what is assumed on top.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How far a claim's binding is.
    pub fn binding(&self, claim: &Uid) -> Option<&Binding> {
        self.bindings.get(claim)
    }

    /// How many claims are in each state.
    pub fn count_claims(&self) -> BTreeMap<ClaimState, usize> {
        self.bindings.count()
    }

    /// How many claims keep their status although their resource was not found, because too many were missing at once.
    pub fn withheld_losses(&self) -> usize {
        self.losses.withheld()
    }

    /// How many claims wait, by how.
    pub fn queue_lengths(&self) -> Lengths {
        self.queue.lengths()
    }

    /// Claims that were bound only because of the safety flush.
    pub fn bound_after_flush(&self) -> u64 {
        self.queue.bound_after_flush()
    }

    /// Counts for metrics and reports.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Whether nothing is in flight and nothing is ready: only an event can change anything.
    pub fn is_idle(&self) -> bool {
        self.writes.none_in_flight()
            && self.reads.none_in_flight()
            && self.queue.lengths().active == 0
            && self.work.is_empty()
    }

    /// Checks that no claim is forgotten: each has a binding, and is queued exactly while it is not settled. The tests and
    /// the simulator call it after every step.
    ///
    /// # Errors
    /// The first claim that is not accounted for. That is a bug in the engine.
    pub fn audit(&self) -> Result<(), String> {
        for claim in self.state.claims() {
            let queued = self.queue.contains(&claim.meta.uid);
            let binding = self.bindings.get(&claim.meta.uid);
            let unsettled = match binding {
                None => return Err(format!("claim {} has no binding state", claim.meta.key)),
                Some(Binding::Waiting(_) | Binding::Assumed { .. } | Binding::Provisioning { .. }) => true,
                Some(
                    Binding::Bound { .. }
                    | Binding::Lost { .. }
                    | Binding::Leaving
                    | Binding::Unmanaged { .. },
                ) => false,
            };
            if queued != unsettled {
                return Err(format!("claim {}: queued is {queued}, binding is {binding:?}", claim.meta.key));
            }
        }
        if self.bindings.len() != self.state.claim_count() {
            return Err(format!("{} bindings for {} claims", self.bindings.len(), self.state.claim_count()));
        }
        Ok(())
    }
}
