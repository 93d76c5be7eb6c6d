//! The engine, and a [`World`] that holds the part of the input which the engine's writes can change.
//!
//! A plan needs the engine's decisions, not its writes: a decision counts as soon as it is assumed. Most writes are
//! therefore left unanswered, and planning 100,000 claims costs no more than deciding about them. Only writes that free
//! something for other claims must take effect. The input alone shows which objects they concern:
//!
//! - claims and classes that are being deleted: removing their finalizer deletes them;
//! - resources that are being deleted;
//! - resources with a holder that is not among the claims, is being deleted, is held twice, or records another resource:
//!   the engine removes the reference, which frees a slot and capacity, and releases the resource with the last one;
//! - claims whose parameters a class may reject, because the engine reads them live;
//! - resources in a phase that the engine may improve (a repaired `Failed`, a `Released` that is reserved for a claim, a
//!   `Creating` without a template).
//!
//! These objects live in the `World`, which executes and answers every write to them as a cluster would, together with
//! the claims that those resources reference, so that live reads find them.
//! Writes to all other objects only confirm a decision: assumed `claimRefs`, the phase that follows, an added finalizer,
//! a claim's status, a quota's usage. They go unanswered, and the engine skips most of them, by
//! `Engine::leave_alone`.
//! The world answers live reads; what it does not hold does not exist.
//!
//! Creates are not executed: the claim's outcome is Provision, and no other claim shares a resource that does not exist.
//! The clock stands still, so there are no resyncs and no backoff.

use super::affected::Outline;
use super::identity::claim_refs;
use crate::world::World;
use conductor::action::{Action, Write};
use conductor::engine::{Config, Engine};
use conductor::event::{Event, Gone};
use conductor::model::{Claim, Kind, Name, Object, ObjectKey, Revision, Time, Uid};
use std::collections::{BTreeMap, VecDeque};

/// The engine with its clock and the world that answers it.
#[derive(Clone)]
pub(super) struct PlanEngine {
    pub engine: Engine,
    pub now: Time,
    world: World,
    /// Namespace of the resources that take part.
    home: Name,
    /// Holders of each affected resource in the input, before any decision.
    held: BTreeMap<Kind, BTreeMap<Name, Box<[Uid]>>>,
}

impl PlanEngine {
    /// Feeds `objects`, identified and sorted, to a new engine. `affected`: which of them can change; revisions count
    /// up from `revision`.
    pub fn new(objects: Vec<Object>, affected: &[bool], config: Config, revision: u64) -> PlanEngine {
        let mut plan_engine = PlanEngine {
            home: config.system_namespace.clone(),
            engine: Engine::new(config),
            now: Time::default(),
            world: World::starting_at(revision),
            held: BTreeMap::new(),
        };
        for (object, is_affected) in objects.into_iter().zip(affected) {
            let place = (object.kind, crate::world::key_of(&object));
            plan_engine.note_holders(&object, &place.1, *is_affected);
            let seen = if *is_affected { plan_engine.world.put(object) } else { Event::Seen(object) };
            plan_engine.engine.handle(seen, plan_engine.now);
            plan_engine.leave_alone(place, *is_affected);
        }
        let PlanEngine { engine, now, world, home, held: _ } = &mut plan_engine;
        let stands = |kind, key: &ObjectKey| world.get(kind, key).is_none();
        let is_steady = |claim: &Claim, resource: &Name| {
            let resource = ObjectKey::new(home.clone(), resource.clone());
            stands(Kind::Claim(claim.ty), &claim.meta.key) && stands(Kind::Resource(claim.ty), &resource)
        };
        engine.presettle(is_steady, *now);
        plan_engine
    }

    /// Wraps an engine that has already decided everything.
    pub fn idle(engine: Engine, home: Name, now: Time) -> PlanEngine {
        PlanEngine { engine, now, world: World::new(), home, held: BTreeMap::new() }
    }

    /// Whether writes to this object take effect.
    pub fn is_affected(&self, kind: Kind, key: &ObjectKey) -> bool {
        self.world.get(kind, key).is_some()
    }

    /// Whether a resource held a claim in the input; `None` if the resource is not affected.
    pub fn held_before(&self, kind: Kind, resource: &Name, claim: &Uid) -> Option<bool> {
        let holders = self.held.get(&kind)?.get(resource)?;
        Some(holders.contains(claim))
    }

    /// Remembers the holders of an affected resource: later its references include what the plan wrote.
    fn note_holders(&mut self, object: &Object, key: &ObjectKey, is_affected: bool) {
        if !matches!(object.kind, Kind::Resource(_)) || key.namespace != self.home {
            return;
        }
        let held = self.held.entry(object.kind).or_default();
        if is_affected {
            let uids = claim_refs(object).filter_map(|claim_ref| claim_ref.get("uid")?.as_str());
            held.insert(key.name.clone(), uids.map(Uid::from).collect());
        } else {
            held.remove(&key.name);
        }
    }

    /// Adds or replaces an object before any decision.
    pub fn replace(&mut self, mut object: Object, is_affected: bool) {
        let place = (object.kind, crate::world::key_of(&object));
        self.note_holders(&object, &place.1, is_affected);
        let seen = if is_affected {
            self.world.put(object)
        } else {
            self.world.forget(object.kind, &crate::world::key_of(&object));
            object.metadata.resource_version = Some(self.world.advance().to_string());
            Event::Seen(object)
        };
        self.engine.handle(seen, self.now);
        self.leave_alone(place, is_affected);
    }

    /// The engine need not write to a resource that is not affected: nothing would answer.
    fn leave_alone(&mut self, (kind, key): (Kind, ObjectKey), is_affected: bool) {
        match kind {
            Kind::Resource(ty) if !is_affected && key.namespace == self.home => {
                self.engine.leave_alone(ty, key.name);
            }
            _ => {}
        }
    }

    /// Removes an object before any decision.
    pub fn remove(&mut self, Outline { kind, key, uid, .. }: &Outline) {
        self.world.forget(*kind, key);
        if let Some(held) = self.held.get_mut(kind).filter(|_| key.namespace == self.home) {
            held.remove(&key.name);
        }
        let (key, uid, revision) = (key.clone(), uid.clone(), Revision::default());
        self.engine.handle(Event::Gone(Gone { kind: *kind, key, uid, revision }), self.now);
    }

    /// Runs the engine until it has decided everything.
    pub fn run_until_idle(mut self, now: Time) -> PlanEngine {
        self.now = now;
        self.run();
        self
    }

    fn run(&mut self) {
        let mut pending = VecDeque::from([Event::Synced]);
        while let Some(event) = pending.pop_front() {
            for action in self.engine.handle(event, self.now) {
                pending.extend(self.carry_out(action));
            }
        }
    }

    fn carry_out(&mut self, action: Action) -> Vec<Event> {
        match &action {
            Action::Read { .. } => self.world.carry_out(&action),
            Action::WakeAt(at) if *at <= self.now => vec![Event::Tick],
            Action::Write(Write { kind, key, .. }) | Action::Delete { kind, key, .. } => {
                if self.is_affected(*kind, key) { self.world.carry_out(&action) } else { Vec::new() }
            }
            Action::WakeAt(_)
            | Action::Create { .. }
            | Action::Watch(_)
            | Action::Part(_)
            | Action::ReadSecret { .. }
            | Action::Publish { .. }
            | Action::Withdraw { .. }
            | Action::Emit(_) => Vec::new(),
        }
    }
}
