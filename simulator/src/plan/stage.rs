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
//! - resources in a phase that the engine may turn into a better one (a mended `Failed`, a `Released` whose
//!   references were cleared, a `Creating` without a template).
//!
//! These are put into a [`World`], where every write to them is carried out and answered as a cluster would.
//! Claims that those resources name are there too, so that a live read finds them.
//! For every other object no write can do more than confirm: `claimRefs` that were assumed, the phase Bound or
//! Available that follows, a finalizer added, a claim's status, a quota's sums. Those go unanswered.
//! Live reads are answered from the world: all other reads ask after what the input does not hold.
//!
//! Creates are not carried out: the claim's outcome is Provision, and nobody shares what does not exist yet.
//! Time stands still: safety flushes and pauses after failures have no place here.

use super::identity::claim_refs;
use crate::world::World;
use conductor::action::{Action, Write};
use conductor::engine::{Config, Engine};
use conductor::event::Event;
use conductor::model::{Kind, Object, ObjectKey, ResourcePhase, Time};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// The engine after it has decided everything, at the time that it was told.
pub(super) struct Stage {
    pub engine: Engine,
    pub now: Time,
    world: World,
}

impl Stage {
    /// Shows `objects`, identified and in order, to a new engine and lets it settle.
    pub fn settle(objects: Vec<Object>, config: Config, now: Time) -> Stage {
        let moving = find_moving(&objects);
        let config = Config { makes_parts: false, ..config };
        let mut stage = Stage { engine: Engine::new(config), now, world: World::new() };
        for (object, moves) in objects.into_iter().zip(moving) {
            let seen = if moves { stage.world.put(object) } else { Event::Seen(object) };
            stage.engine.handle(seen, now);
        }
        stage.run();
        stage
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
                if self.world.get(*kind, key).is_some() { self.world.carry_out(&action) } else { Vec::new() }
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

/// For each object whether a write to it, or a read of it, can change what is decided.
fn find_moving(objects: &[Object]) -> Vec<bool> {
    let staying = staying_claims(objects);
    let shared = held_twice(objects);
    let may_refuse = objects.iter().any(has_schema);
    let moves = |o: &Object| match o.kind {
        Kind::Claim(_) if may_refuse => true,
        Kind::Claim(_) | Kind::Class(_) => o.metadata.deletion_timestamp.is_some(),
        Kind::Resource(_) => {
            let name = o.metadata.name.as_deref();
            let stays = |uid: &str| staying.get(uid).is_some_and(|at| at.is_none() || *at == name);
            let unsettled = |uid: &str| !stays(uid) || shared.contains(uid);
            o.metadata.deletion_timestamp.is_some() || !has_plain_phase(o) || holders(o).any(unsettled)
        }
        Kind::Quota | Kind::ClusterQuota | Kind::Limits | Kind::Profile | Kind::Namespace => false,
    };
    let mut moving: Vec<bool> = objects.iter().map(moves).collect();
    let asked = claims_named_by(objects.iter().zip(&moving).filter(|(_, moves)| **moves).map(|(o, _)| o));
    for (object, moves) in objects.iter().zip(&mut moving).filter(|(o, _)| matches!(o.kind, Kind::Claim(_))) {
        *moves |= !asked.is_empty() && asked.contains(&(object.kind, crate::world::key_of(object)));
    }
    moving
}

/// Whether a class may refuse a claim's parameters: the engine reads the claim for that, just before it makes something.
fn has_schema(object: &Object) -> bool {
    let says = |pointer: &str| object.body.pointer(pointer).is_some();
    matches!(object.kind, Kind::Class(_)) && (says("/parameterSchema") || says("/spec/parameterSchema"))
}

/// The claims that are not being deleted, by UID, with the resource that each was bound to by its own record.
fn staying_claims(objects: &[Object]) -> BTreeMap<&str, Option<&str>> {
    let claims = objects.iter().filter(|o| matches!(o.kind, Kind::Claim(_)));
    let staying = claims.filter(|o| o.metadata.deletion_timestamp.is_none());
    fn recorded(o: &Object) -> Option<&str> {
        o.body.pointer("/status/resourceRef/name").and_then(Value::as_str)
    }
    staying.filter_map(|o| Some((o.metadata.uid.as_deref()?, recorded(o)))).collect()
}

fn holders(resource: &Object) -> impl Iterator<Item = &str> {
    claim_refs(resource).filter_map(|r| r.get("uid")?.as_str())
}

/// The UIDs that more than one resource holds, or one resource twice.
fn held_twice(objects: &[Object]) -> BTreeSet<&str> {
    let mut times: BTreeMap<&str, usize> = BTreeMap::new();
    for resource in objects.iter().filter(|o| matches!(o.kind, Kind::Resource(_))) {
        holders(resource).for_each(|uid| *times.entry(uid).or_default() += 1);
    }
    times.into_iter().filter(|(_, times)| *times > 1).map(|(uid, _)| uid).collect()
}

/// Whether nothing but a claim can change the resource's phase.
fn has_plain_phase(resource: &Object) -> bool {
    let word = resource.body.get("status").and_then(|s| s.get("phase")).and_then(Value::as_str);
    match word.and_then(ResourcePhase::find) {
        None | Some(ResourcePhase::Available | ResourcePhase::Bound) => true,
        Some(
            ResourcePhase::Pending
            | ResourcePhase::Creating
            | ResourcePhase::Released
            | ResourcePhase::Failed
            | ResourcePhase::Deleting,
        ) => false,
    }
}

fn claims_named_by<'a>(resources: impl Iterator<Item = &'a Object>) -> BTreeSet<(Kind, ObjectKey)> {
    let mut named = BTreeSet::new();
    for resource in resources {
        let Kind::Resource(ty) = resource.kind else { continue };
        for claim_ref in claim_refs(resource) {
            let text = |field: &str| claim_ref.get(field).and_then(Value::as_str);
            if let (Some(namespace), Some(name)) = (text("namespace"), text("name")) {
                named.insert((Kind::Claim(ty), ObjectKey::new(namespace, name)));
            }
        }
    }
    named
}
