//! The engine: one event in, actions out. It alone composes the rooms: cache, queue, scheduler, lifecycle.
//! It holds no client and asks no clock; the loop closes only through the API, as events.
//!
//! Every turn ends the same way: decide about claims whose turn it is, then bring every object that
//! was touched one step closer to what it should be. An object with a write on its way waits for the answer.

mod answer;
mod contest;
mod decide;
mod early;
mod foresee;
mod holders;
mod observe;
mod parts;
mod provision;
mod publish;
mod settle;
mod sync;
#[cfg(test)]
mod tests;

use crate::action::{Action, Note};
use crate::cache::{QuotaKey, State};
use crate::event::Event;
use crate::framework::Refusal;
use crate::model::{
    AllowedKinds, ClaimRef, FieldError, Kind, Lookup, Name, ObjectKey, PartId, PartKey, Predicate, Revision,
    Slot, Time, TypeId, Uid, WriteId,
};
use crate::queue::{Lengths, Queue};
use crate::scheduler::Memo;
use crate::template::{Adapters, Blueprint};
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

/// What an engine is told once.
#[derive(Clone, Debug)]
pub struct Config {
    /// Where resources and classes live; those elsewhere are not ours.
    pub system_namespace: Name,
    /// Whether a resource with a template and without a phase counts as Available. True for plans over
    /// manifests; on a cluster an unwritten phase means that nobody has made it yet.
    pub absent_phase_is_available: bool,
    /// Whether implementations are made, watched and removed. False for plans, which have no cluster to make
    /// them in: there a resource's phase tells whether it is implemented.
    pub makes_parts: bool,
    /// How many claims are decided about in one turn before events are looked at again.
    pub decisions_per_turn: usize,
    /// How many resources of bound claims may be found missing at once for their claims to become Lost. More at once
    /// point to a fault of the cluster, a restored backup or a deleted CRD rather than to as many losses: then the
    /// claims keep their status, and the loss is reported.
    pub lost_at_once_max: usize,
    /// What is known of well-known kinds of implementation.
    pub adapters: Arc<Adapters>,
    /// The kinds of which parts may be made.
    pub allowed_kinds: AllowedKinds,
}

impl Default for Config {
    fn default() -> Self {
        Config {
            system_namespace: Name::from("conductor-system"),
            absent_phase_is_available: false,
            makes_parts: true,
            decisions_per_turn: 1_000,
            lost_at_once_max: usize::MAX,
            adapters: Adapters::shipped(),
            allowed_kinds: AllowedKinds::default(),
        }
    }
}

/// How far a claim's binding has come, both sides considered.
#[derive(Clone, Debug, PartialEq)]
pub enum Binding {
    /// It waits; the refusal says why, once it has been tried.
    Waiting(Option<Refused>),
    /// It has been given a resource; the write that commits it is on its way.
    Assumed {
        /// The resource's name.
        resource: Name,
        /// The class that it counts under.
        class: Option<Name>,
        /// The count of helpful events when it was decided: a later one is replayed if the write fails.
        since: u64,
    },
    /// A resource is being made for it.
    Provisioning {
        /// From this class.
        class: Name,
        /// Under this name.
        resource: Name,
    },
    /// The resource holds it.
    Bound {
        /// The resource's name.
        resource: Name,
    },
    /// Its resource is gone for good.
    Lost {
        /// One word.
        reason: &'static str,
        /// A sentence.
        message: String,
    },
    /// It is being deleted.
    Leaving,
    /// It is bound to a resource in a namespace that this engine does not manage. Nothing is concluded about it and
    /// nothing is written to it: another controller manages it, or this one runs with a wrong system namespace.
    Unmanaged {
        /// The resource's namespace.
        namespace: Name,
        /// The resource's name.
        resource: Name,
    },
}

/// Where a claim stands, in one word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Stand {
    /// It has a resource, or has been given one.
    Bound,
    /// A resource is being made for it.
    Provisioning,
    /// It waits: the word for why, once it has been tried.
    Waiting(Option<&'static str>),
    /// Its resource is gone for good.
    Lost,
    /// It is being deleted.
    Leaving,
    /// It is bound to a resource in a namespace that this engine does not manage.
    Unmanaged,
}

impl Binding {
    fn stand(&self) -> Stand {
        match self {
            Binding::Bound { .. } | Binding::Assumed { .. } => Stand::Bound,
            Binding::Provisioning { .. } => Stand::Provisioning,
            Binding::Waiting(refused) => Stand::Waiting(refused.as_ref().map(|refused| refused.reason)),
            Binding::Lost { .. } => Stand::Lost,
            Binding::Leaving => Stand::Leaving,
            Binding::Unmanaged { .. } => Stand::Unmanaged,
        }
    }
}

/// A refusal as it stands on the claim.
#[derive(Clone, Debug, PartialEq)]
pub struct Refused {
    /// One word.
    pub reason: &'static str,
    /// Everything else.
    pub refusal: Arc<Refusal>,
}

/// What is brought up to date as one thing.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Target {
    Claim(Uid),
    Resource(TypeId, Name),
    Class(TypeId, Name),
    Quota(QuotaKey),
    Part(PartId),
    /// What is published for a claim.
    Publication(Uid),
    /// One thing that was published for a claim, and is taken back.
    Published(Uid, Slot, ObjectKey),
}

/// A write that is on its way.
#[derive(Clone, Debug)]
struct Flight {
    target: Target,
    effect: Effect,
    /// The revision that it was computed from, where it changes an object that is there.
    from: Option<Revision>,
}

/// What a write is to bring about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Effect {
    /// Something is made or changed.
    Change,
    /// Something is destroyed.
    Destruction,
}

/// The live reads that must agree before a resource or its part is destroyed.
#[derive(Clone, Debug)]
struct DestroyCheck {
    /// The resource as read.
    revision: Option<Revision>,
    /// The claims that are still to be read.
    claims: BTreeSet<ObjectKey>,
    /// The part that is still to be read.
    part: Option<PartKey>,
}

/// Figures for people who watch.
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
}

/// UIDs of objects that are gone: a late echo of one must not bring it back.
const TOMBSTONES_MAX: usize = 65_536;

/// The engine. One task owns it; nothing in it is shared. A copy goes its own way from where it was made: what-if
/// asks one.
#[derive(Clone, Debug)]
pub struct Engine {
    config: Config,
    state: State,
    queue: Queue,
    memo: Memo,
    bindings: Lookup<Uid, Binding>,
    synced: bool,
    /// The claims that the start has still to settle, where others were settled before it.
    late: Option<BTreeSet<Uid>>,
    writes: u64,
    flights: BTreeMap<WriteId, Flight>,
    /// How many of the flights are to each target.
    flying: Lookup<Target, u32>,
    busy: Lookup<Target, ()>,
    dirty: BTreeSet<Target>,
    failures: BTreeMap<Target, u32>,
    retries: BTreeSet<(Time, Target)>,
    reads: BTreeMap<(Kind, ObjectKey), BTreeSet<Uid>>,
    /// Parts that are being read, and the lives of that name that are in doubt.
    part_reads: BTreeMap<PartKey, BTreeSet<Uid>>,
    /// Secrets of claims that are being read, by the claim and their name.
    secret_reads: BTreeSet<(Uid, Name)>,
    /// What the API said to the last try, where it was no.
    troubles: BTreeMap<(Target, Effect), String>,
    destroys: BTreeMap<(TypeId, Name), DestroyCheck>,
    gone: BTreeSet<Uid>,
    gone_order: VecDeque<Uid>,
    /// Who a resource is being made for, by the resource's name.
    makers: BTreeMap<(TypeId, Name), Uid>,
    /// Connections that are being published, by their digest and the name of their Secret, and those that could not be.
    publishing: BTreeMap<Uid, (Name, Name)>,
    unpublished: BTreeMap<Uid, publish::Unpublished>,
    /// What resources are made from, compiled, by its text: resources of one class share it.
    blueprints: BTreeMap<String, Arc<Result<Blueprint, FieldError>>>,
    /// Claims to be kept as written when they are read, and those that were, until their resource is made.
    claims_to_keep: BTreeSet<Uid>,
    written_claims: BTreeMap<Uid, serde_json::Value>,
    /// Claims that were bound to a resource that is not in the cache: a live read tells whether it is lost.
    doubted: BTreeMap<(TypeId, Name), BTreeSet<Uid>>,
    /// Refusals that were written over something else, by their claim.
    contests: BTreeMap<Uid, contest::Contest>,
    /// Lost claims by the UID of what they lost: they are settled again when it is seen.
    lost_to: BTreeMap<Uid, BTreeSet<Uid>>,
    /// References that a resource had until a moment ago, of claims that are bound to it; empty between turns.
    dropped: BTreeMap<Uid, ClaimRef>,
    /// Resources that live reads found missing, with the claims that are bound to them, until all that are in doubt
    /// have been read: how many they are decides whether the claims are lost.
    absent: BTreeMap<(TypeId, Name), BTreeSet<Uid>>,
    /// Claims whose loss is withheld and was reported.
    withheld: BTreeSet<Uid>,
    /// Resources whose claims are just being declared lost; empty between turns.
    missing: BTreeSet<(TypeId, Name)>,
    helpful: u64,
    stats: Stats,
    actions: Vec<Action>,
    next_wake: Option<Time>,
}

impl Engine {
    /// An engine that has seen nothing.
    pub fn new(config: Config) -> Engine {
        Engine {
            state: State::new(config.absent_phase_is_available),
            config,
            queue: Queue::default(),
            memo: Memo::default(),
            bindings: Lookup::default(),
            synced: false,
            late: None,
            writes: 0,
            flights: BTreeMap::new(),
            flying: Lookup::default(),
            busy: Lookup::default(),
            dirty: BTreeSet::new(),
            failures: BTreeMap::new(),
            retries: BTreeSet::new(),
            reads: BTreeMap::new(),
            part_reads: BTreeMap::new(),
            secret_reads: BTreeSet::new(),
            troubles: BTreeMap::new(),
            destroys: BTreeMap::new(),
            gone: BTreeSet::new(),
            gone_order: VecDeque::new(),
            makers: BTreeMap::new(),
            contests: BTreeMap::new(),
            lost_to: BTreeMap::new(),
            publishing: BTreeMap::new(),
            unpublished: BTreeMap::new(),
            blueprints: BTreeMap::new(),
            claims_to_keep: BTreeSet::new(),
            written_claims: BTreeMap::new(),
            doubted: BTreeMap::new(),
            dropped: BTreeMap::new(),
            absent: BTreeMap::new(),
            withheld: BTreeSet::new(),
            missing: BTreeSet::new(),
            helpful: 0,
            stats: Stats::default(),
            actions: Vec::new(),
            next_wake: None,
        }
    }

    /// Takes in what happened and says what is to be done about it.
    ///
    /// # Guarantees
    /// The same events at the same times give the same actions. Nothing is asked for before
    /// [`Event::Synced`]. At most one write per object is on its way at any time.
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
        self.rest(now)
    }

    /// The end of a turn.
    fn rest(&mut self, now: Time) -> Vec<Action> {
        if self.synced {
            self.run(now);
        }
        std::mem::take(&mut self.actions)
    }

    fn run(&mut self, now: Time) {
        let mut budget = self.config.decisions_per_turn;
        loop {
            self.decide(&mut budget, now);
            if !self.sync_dirty(now) && (budget == 0 || self.queue.lengths().active == 0) {
                break;
            }
        }
        let more = (self.queue.lengths().active > 0).then_some(now);
        let retry = self.retries.first().map(|(at, _)| *at);
        let next = more.into_iter().chain(retry).chain(self.queue.next_tick()).min();
        if next != self.next_wake || more.is_some() {
            self.next_wake = next;
            self.actions.extend(next.map(Action::WakeAt));
        }
    }

    fn tick(&mut self, now: Time) {
        self.next_wake = None;
        self.queue.tick(now);
        while let Some((at, target)) = self.retries.first().cloned().filter(|(at, _)| *at <= now) {
            self.retries.remove(&(at, target.clone()));
            self.read_target(&target);
        }
    }

    /// What the engine knows.
    pub fn state(&self) -> &State {
        &self.state
    }

    /// How far a claim has come.
    pub fn binding(&self, claim: &Uid) -> Option<&Binding> {
        self.bindings.get(claim)
    }

    /// How many claims stand where.
    pub fn count_claims(&self) -> BTreeMap<Stand, usize> {
        self.bindings.count_by(Binding::stand)
    }

    /// How many claims keep their status although their resource was not found, because too many were missing at once.
    pub fn withheld_losses(&self) -> usize {
        self.withheld.len()
    }

    /// How many claims wait where.
    pub fn queue_lengths(&self) -> Lengths {
        self.queue.lengths()
    }

    /// Claims that bound only because of the safety flush.
    pub fn bound_after_flush(&self) -> u64 {
        self.queue.bound_after_flush()
    }

    /// Figures for people who watch.
    pub fn stats(&self) -> &Stats {
        &self.stats
    }

    /// Whether nothing is on its way and nothing is ready: only an event can change anything.
    pub fn is_idle(&self) -> bool {
        self.flights.is_empty()
            && self.reads.is_empty()
            && self.part_reads.is_empty()
            && self.secret_reads.is_empty()
            && self.queue.lengths().active == 0
            && self.dirty.is_empty()
    }

    /// Checks that no claim is forgotten: each has a binding, and is queued exactly while it is not settled.
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

    /// Notes that a write to `target` is on its way; until its answer the target is left alone.
    fn send(&mut self, target: Target, effect: Effect) -> WriteId {
        self.writes += 1;
        let id = WriteId(self.writes);
        *self.flying.or_default(target.clone()) += 1;
        self.flights.insert(id, Flight { target: target.clone(), effect, from: None });
        self.busy.insert(target, ());
        id
    }

    /// Notes that a write has been answered; says which one it was.
    fn landed(&mut self, id: WriteId) -> Option<Flight> {
        let flight = self.flights.remove(&id)?;
        if let Some(count) = self.flying.get_mut(&flight.target) {
            *count -= 1;
            if *count == 0 {
                self.flying.remove(&flight.target);
            }
        }
        self.busy.remove(&flight.target);
        Some(flight)
    }

    fn tell(
        &mut self,
        kind: Kind,
        key: &ObjectKey,
        uid: &Uid,
        warning: bool,
        reason: &'static str,
        message: String,
    ) {
        let note = Note { kind, key: key.clone(), uid: uid.clone(), warning, reason, message };
        self.actions.push(Action::Tell(note));
    }
}
