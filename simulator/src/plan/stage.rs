//! The engine and the part of the input that can change under it. Nothing here decides.
//!
//! A plan needs the engine's decisions, not its writes: a decision stands as soon as it is assumed. So most
//! writes are left unanswered, and a plan over 100,000 claims costs what deciding costs. What must take effect is
//! what frees something for others. Which objects that can concern is known from the input alone:
//!
//! - claims and classes that are being deleted: their protection goes, and they with it;
//! - resources that are being deleted;
//! - resources with a holder that is not among the claims, is being deleted, is held twice, or was bound to
//!   another resource by its own record: the reference goes, its slot and its capacity are free, and the
//!   last one's going releases the resource;
//! - claims whose parameters a class may refuse, so that the engine can read them;
//! - resources in a phase that the engine may turn into a better one (a mended `Failed`, a `Released` that is
//!   kept for a claim, a `Creating` without a template).
//!
//! These are put into a [`World`], where every write to them is carried out and answered as a cluster would.
//! Claims that those resources name are there too, so that a live read finds them.
//! For every other object no write can do more than confirm: `claimRefs` that were assumed, the phase Bound or
//! Available that follows, a finalizer added, a claim's status, a quota's sums. Those go unanswered; what would only be
//! written to a resource that stands still, or to a claim that is bound to one, is not asked for in the first place.
//! Live reads are answered from the world: all other reads ask after what the input does not hold.
//!
//! Creates are not carried out: the claim's outcome is Provision, and nobody shares what does not exist yet.
//! Time stands still: safety flushes and pauses after failures have no place here.

use super::identity::claim_refs;
use super::moving::Outline;
use crate::world::World;
use conductor::action::{Action, Write};
use conductor::engine::{Config, Engine};
use conductor::event::{Event, Gone};
use conductor::model::{Claim, Kind, Name, Object, ObjectKey, Revision, Time, Uid};
use std::collections::{BTreeMap, VecDeque};

/// The engine, at the time that it was told, and what answers it.
#[derive(Clone)]
pub(super) struct Stage {
    pub engine: Engine,
    pub now: Time,
    world: World,
    /// Where resources are that take part.
    home: Name,
    /// Of the resources that can change whom each held, before anything was decided.
    held: BTreeMap<Kind, BTreeMap<Name, Box<[Uid]>>>,
}

impl Stage {
    /// Shows `objects`, identified and in order, to a new engine. `moving` says of each whether it can change; what
    /// changes is counted from `revision` on.
    pub fn see(objects: Vec<Object>, moving: &[bool], config: Config, revision: u64) -> Stage {
        let mut stage = Stage {
            home: config.system_namespace.clone(),
            engine: Engine::new(config),
            now: Time::default(),
            world: World::starting_at(revision),
            held: BTreeMap::new(),
        };
        for (object, moves) in objects.into_iter().zip(moving) {
            let place = (object.kind, crate::world::key_of(&object));
            stage.note_holders(&object, &place.1, *moves);
            let seen = if *moves { stage.world.put(object) } else { Event::Seen(object) };
            stage.engine.handle(seen, stage.now);
            stage.leave_alone(place, *moves);
        }
        let Stage { engine, now, world, home, held: _ } = &mut stage;
        let stands = |kind, key: &ObjectKey| world.get(kind, key).is_none();
        let is_steady = |claim: &Claim, resource: &Name| {
            let resource = ObjectKey::new(home.clone(), resource.clone());
            stands(Kind::Claim(claim.ty), &claim.meta.key) && stands(Kind::Resource(claim.ty), &resource)
        };
        engine.settle_early(is_steady, *now);
        stage
    }

    /// An engine that has decided everything already.
    pub fn resting(engine: Engine, home: Name, now: Time) -> Stage {
        Stage { engine, now, world: World::new(), home, held: BTreeMap::new() }
    }

    /// Whether what is written to an object is carried out.
    pub fn moves(&self, kind: Kind, key: &ObjectKey) -> bool {
        self.world.get(kind, key).is_some()
    }

    /// Whether a resource held a claim before anything was decided; nothing where it cannot change.
    pub fn held_before(&self, kind: Kind, resource: &Name, claim: &Uid) -> Option<bool> {
        let holders = self.held.get(&kind)?.get(resource)?;
        Some(holders.contains(claim))
    }

    /// Keeps in mind whom a resource holds that can change: afterwards its references tell what was written.
    fn note_holders(&mut self, object: &Object, key: &ObjectKey, moves: bool) {
        if !matches!(object.kind, Kind::Resource(_)) || key.namespace != self.home {
            return;
        }
        let held = self.held.entry(object.kind).or_default();
        if moves {
            let uids = claim_refs(object).filter_map(|claim_ref| claim_ref.get("uid")?.as_str());
            held.insert(key.name.clone(), uids.map(Uid::from).collect());
        } else {
            held.remove(&key.name);
        }
    }

    /// Shows an object in place of another of its place, or a new one, before anything is decided.
    pub fn show(&mut self, mut object: Object, moves: bool) {
        let place = (object.kind, crate::world::key_of(&object));
        self.note_holders(&object, &place.1, moves);
        let seen = if moves {
            self.world.put(object)
        } else {
            self.world.forget(object.kind, &crate::world::key_of(&object));
            object.metadata.resource_version = Some(self.world.advance().to_string());
            Event::Seen(object)
        };
        self.engine.handle(seen, self.now);
        self.leave_alone(place, moves);
    }

    /// What is written to a resource that does not move goes unanswered: it is not asked for either.
    fn leave_alone(&mut self, (kind, key): (Kind, ObjectKey), moves: bool) {
        match kind {
            Kind::Resource(ty) if !moves && key.namespace == self.home => {
                self.engine.leave_alone(ty, key.name);
            }
            _ => {}
        }
    }

    /// Takes an object away, before anything is decided.
    pub fn lose(&mut self, Outline { kind, key, uid, .. }: &Outline) {
        self.world.forget(*kind, key);
        if let Some(held) = self.held.get_mut(kind).filter(|_| key.namespace == self.home) {
            held.remove(&key.name);
        }
        let (key, uid, revision) = (key.clone(), uid.clone(), Revision::default());
        self.engine.handle(Event::Gone(Gone { kind: *kind, key, uid, revision }), self.now);
    }

    /// Lets the engine decide everything.
    pub fn settled(mut self, now: Time) -> Stage {
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
                if self.moves(*kind, key) { self.world.carry_out(&action) } else { Vec::new() }
            }
            Action::WakeAt(_)
            | Action::Create { .. }
            | Action::Follow(_)
            | Action::Part(_)
            | Action::ReadSecret { .. }
            | Action::Publish { .. }
            | Action::Withdraw { .. }
            | Action::Tell(_) => Vec::new(),
        }
    }
}
