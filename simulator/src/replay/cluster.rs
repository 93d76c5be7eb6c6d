//! The cluster and the engine of a replay. Users' changes go in, the engine's writes land at once, time is virtual.
//! Decisions are derived from the engine's writes, in the recording's form.

use super::series::Holdings;
use super::user_changes;
use crate::plan::{Options as PlanOptions, Plan, Planned};
use crate::record::{Verdict, is_decision};
use crate::world::{WatchEcho, World};
use conductor::action::{Action, Change, Write};
use conductor::api::names::PROVISIONED_FOR;
use conductor::api::reasons;
use conductor::engine::{Binding, Config, Engine};
use conductor::event::{Answer, Event};
use conductor::model::{
    ClaimPhase, ClaimRef, Kind, Lookup, Name, Object, ObjectKey, Revision, Time, TypeId, Uid,
};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

/// An input of the engine.
enum Input {
    Event(Event),
    /// A write of its own was executed as predicted and made this revision.
    Done(Write, Revision),
}

/// A cluster and its controller.
pub(super) struct ReplayCluster {
    pub world: World,
    pub engine: Engine,
    config: Config,
    pub now: Time,
    wakes: BTreeSet<Time>,
    pub writes: u64,
    /// Whether the engine sees its own writes on the watch.
    echo: WatchEcho,
    /// Held resources, by class.
    pub holdings: Holdings,
    /// Decisions about each claim, in order, with their time.
    pub decided: Lookup<Uid, Vec<(Verdict, Time)>>,
    /// Resources that are being provisioned, with the time at which they become ready.
    pub making: BTreeMap<(Time, Name), Kind>,
    /// Objects whose name is still taken by an earlier object; created once that is deleted.
    waiting: BTreeMap<(Kind, ObjectKey), Object>,
    /// How long provisioning takes if the recording does not say; `None` to wait for the recording.
    pub latency_ms: Option<i64>,
    /// Objects written without unpacking them, until the test checks them.
    #[cfg(test)]
    unseen: Vec<(Kind, ObjectKey)>,
}

impl ReplayCluster {
    /// Starts an engine on a cluster with these objects.
    pub fn start(objects: Vec<Object>, config: Config, now: Time, echo: WatchEcho) -> ReplayCluster {
        let mut world = World::compact();
        for object in objects {
            world.put(object);
        }
        let mut cluster = ReplayCluster {
            world,
            engine: Engine::new(config.clone()),
            config,
            now,
            wakes: BTreeSet::new(),
            writes: 0,
            echo,
            holdings: Holdings::default(),
            decided: Lookup::default(),
            making: BTreeMap::new(),
            waiting: BTreeMap::new(),
            latency_ms: None,
            #[cfg(test)]
            unseen: Vec::new(),
        };
        cluster.list();
        cluster
    }

    /// Starts another cluster with other objects, under the same settings and at the same time.
    pub fn beside(&self, objects: Vec<Object>) -> ReplayCluster {
        ReplayCluster::start(objects, self.config.clone(), self.now, self.echo)
    }

    /// Starts a new engine, which knows only what the cluster holds.
    pub fn restart(&mut self) {
        self.engine = Engine::new(self.config.clone());
        self.wakes.clear();
        self.list();
    }

    fn list(&mut self) {
        self.holdings = Holdings::default();
        let mut events: Vec<Event> = self.world.objects().cloned().map(Event::Seen).collect();
        self.world.pack();
        events.push(Event::Synced);
        self.deliver(events);
    }

    /// Consumes the cluster and returns the plan of its objects, and the objects if the caller wants them. The plan is read
    /// from the engine if that is idle. Not in thorough mode, which verifies this shortcut: it plans from scratch.
    pub fn plan(self, end: Option<&mut Vec<Object>>) -> Plan {
        let ReplayCluster { world, engine, decided, config, now, echo, .. } = self;
        drop(decided);
        let options =
            PlanOptions { system_namespace: config.system_namespace, absent_phase_is_available: false };
        let is_distinct = TypeId::all().map(|ty| world.count(Kind::Claim(ty))).sum::<usize>()
            == engine.state().claim_count();
        let idle = match echo {
            WatchEcho::Off if is_distinct => Planned::from_idle(engine, now, &options),
            WatchEcho::Off | WatchEcho::On => None,
        };
        match (idle, end) {
            (Some(planned), None) => planned.plan(),
            (idle, end) => {
                let objects = world.into_objects_side_by_side();
                end.into_iter().for_each(|end| end.clone_from(&objects));
                idle.unwrap_or_else(|| Planned::new(objects, &options)).plan()
            }
        }
    }

    /// Advances the clock, waking the engine and completing provisionings at their times.
    pub fn advance(&mut self, until: Time) {
        loop {
            let wake = self.wakes.first().copied();
            let made = self.making.first_key_value().map(|((at, _), _)| *at);
            let Some(next) = wake.into_iter().chain(made).min().filter(|at| *at <= until) else { break };
            self.now = self.now.max(next);
            if made == Some(next) {
                if let Some(((_, name), kind)) = self.making.pop_first() {
                    self.made(kind, &name, "Available");
                }
            } else {
                self.wakes.remove(&next);
                self.deliver(vec![Event::Tick]);
            }
        }
        self.now = self.now.max(until);
    }

    /// Completes a provisioning, in phase Available or Failed.
    pub fn made(&mut self, kind: Kind, name: &str, phase: &str) {
        let key = self.resource_key(name);
        let event = self.world.edit(kind, &key, |object| {
            if object.body.pointer("/status/phase").is_none_or(|p| p == "Creating" || p == "Pending") {
                object.body["status"]["phase"] = Value::from(phase);
            }
        });
        self.deliver(event.into_iter().collect());
    }

    /// Creates an object. If an earlier object has its name, the API refuses; it is then created once that is deleted.
    pub fn put(&mut self, object: Object) {
        let place = (object.kind, crate::world::key_of(&object));
        let earlier = self.world.get(place.0, &place.1);
        if earlier.is_some_and(|known| known.metadata.uid != object.metadata.uid) {
            self.waiting.insert(place, object);
            return;
        }
        let event = self.world.put(object);
        self.deliver(vec![event]);
    }

    pub fn edit(&mut self, kind: Kind, key: &ObjectKey, edit: impl FnOnce(&mut Object)) {
        if let Some(waiting) = self.waiting.get_mut(&(kind, key.clone())) {
            return edit(waiting);
        }
        let event = self.world.edit(kind, key, edit);
        self.deliver(event.into_iter().collect());
    }

    /// Deletes an object as a user does: finalizers keep it, as in the API.
    pub fn delete(&mut self, kind: Kind, key: &ObjectKey) {
        if self.waiting.remove(&(kind, key.clone())).is_some() {
            return;
        }
        let event = self.world.delete(kind, key);
        self.deliver(event.into_iter().collect());
    }

    /// Deletes an object that the recording deletes. It stays while our engine's finalizer holds it, because this engine may
    /// have bound it to a claim.
    pub fn release(&mut self, kind: Kind, key: &ObjectKey) {
        let is_waiting = self.waiting.contains_key(&(kind, key.clone()));
        let has_others = self.world.get(kind, key).is_some_and(|o| o.metadata.finalizers.is_some());
        if has_others && !is_waiting {
            let event = self.world.edit(kind, key, user_changes::keep_own_finalizers);
            self.deliver(event.into_iter().collect());
        }
        self.delete(kind, key);
    }

    /// Removes an object whatever its finalizers.
    pub fn remove(&mut self, kind: Kind, key: &ObjectKey) {
        if let Some(object) = self.world.get(kind, key)
            && object.metadata.finalizers.is_some()
        {
            // Without an event: the recording has none either.
            let _ = self.world.edit(kind, key, |object| object.metadata.finalizers = None);
        }
        self.delete(kind, key);
    }

    /// Drops an object that waits for its name; the caller restores the recorded one.
    pub fn forget_waiting(&mut self, kind: Kind, key: &ObjectKey) {
        self.waiting.remove(&(kind, key.clone()));
    }

    fn deliver(&mut self, events: Vec<Event>) {
        let mut pending: VecDeque<Input> = events.into_iter().map(Input::Event).collect();
        while let Some(inputs) = pending.pop_front() {
            self.look_at(&inputs);
            let actions = match inputs {
                Input::Event(event) => self.engine.handle(event, self.now),
                Input::Done(write, revision) => self.engine.written_as_planned(write, revision, self.now),
            };
            for action in actions {
                self.carry_out(action, &mut pending);
            }
            self.create_waiting(&mut pending);
        }
        #[cfg(test)]
        self.check_views();
    }

    /// Creates an object whose name has become free.
    fn create_waiting(&mut self, inputs: &mut VecDeque<Input>) {
        let free = self.waiting.keys().find(|(kind, key)| self.world.get(*kind, key).is_none()).cloned();
        if let Some(object) = free.and_then(|place| self.waiting.remove(&place)) {
            inputs.push_back(Input::Event(self.world.put(object)));
        }
    }

    /// Updates the count of held resources.
    fn look_at(&mut self, inputs: &Input) {
        let event = match inputs {
            Input::Event(event) => event,
            Input::Done(Write { kind, key, change: Change::ResourceSpec { claim_refs, .. }, .. }, _) => {
                return self.holdings.hold(*kind, key, !claim_refs.is_empty());
            }
            Input::Done(..) => return,
        };
        match event {
            Event::Seen(object) => self.holdings.see(object),
            Event::Answered { answer: Answer::Written(object), .. } => self.holdings.see(object),
            Event::Gone(gone) => self.holdings.forget(gone.kind, &gone.key),
            _ => {}
        }
    }

    fn carry_out(&mut self, action: Action, inputs: &mut VecDeque<Input>) {
        match action {
            Action::Emit(_) => {}
            Action::WakeAt(at) if at <= self.now => inputs.push_back(Input::Event(Event::Tick)),
            Action::WakeAt(at) => drop(self.wakes.insert(at)),
            action => {
                self.writes += u64::from(action.write_id().is_some());
                if let Some(bumps_generation) = self.foresees(&action) {
                    return self.write(action, bumps_generation, inputs);
                }
                self.note(&action, false);
                self.hand_over(&action, inputs);
            }
        }
    }

    /// Whether the engine predicts the object after its own write, so that no watch need show it.
    fn foresees(&self, action: &Action) -> Option<bool> {
        match action {
            Action::Write(write) if self.echo == WatchEcho::Off => self.engine.predict_write(write),
            _ => None,
        }
    }

    fn write(&mut self, action: Action, bumps_generation: bool, inputs: &mut VecDeque<Input>) {
        self.note(&action, true);
        match action {
            Action::Write(write) => match self.world.write_unseen(&write, bumps_generation) {
                Some(revision) => {
                    #[cfg(test)]
                    self.unseen.push((write.kind, write.key.clone()));
                    inputs.push_back(Input::Done(write, revision));
                }
                None => self.hand_over(&Action::Write(write), inputs),
            },
            action => self.hand_over(&action, inputs),
        }
    }

    fn hand_over(&mut self, action: &Action, inputs: &mut VecDeque<Input>) {
        inputs.extend(self.world.carry_out_with(action, self.echo).into_iter().map(Input::Event));
    }

    /// Compares the engine's predictions with the objects.
    #[cfg(test)]
    fn check_views(&mut self) {
        use conductor::model::{Claim, Resource};
        let state = self.engine.state();
        for (kind, key) in std::mem::take(&mut self.unseen) {
            let Some(object) = self.world.get(kind, &key) else { continue };
            match kind {
                Kind::Claim(ty) => {
                    assert_eq!(state.find_claim(ty, &key).map(|c| &**c), Some(&Claim::read(ty, object)))
                }
                Kind::Resource(ty) => {
                    let known = state.find_resource(ty, &key.name).and_then(|id| state.resource(id));
                    assert_eq!(known.map(|e| &e.resource), Some(&Resource::read(ty, object)));
                }
                _ => {}
            }
        }
    }

    /// Derives decisions from a write before it lands.
    fn note(&mut self, action: &Action, foreseen: bool) {
        match action {
            Action::Write(Write { kind, key, uid, change, .. }) => match change {
                Change::ResourceSpec { claim_refs, .. } => {
                    for uid in self.new_holders(*kind, key, claim_refs, foreseen) {
                        self.decide(uid, Verdict::Bind { resource: key.name.to_string() });
                    }
                }
                Change::ClaimStatus { phase, conditions, .. } => {
                    let refused =
                        conditions.iter().find(|c| &*c.kind == reasons::BOUND && &*c.status != "True");
                    let Some(reason) = refused.map(|c| c.reason.to_string()) else { return };
                    if !is_decision(&reason) {
                        return;
                    }
                    self.decide(
                        uid.clone(),
                        match phase {
                            ClaimPhase::Lost => Verdict::Lost { reason },
                            ClaimPhase::Pending | ClaimPhase::Bound => Verdict::Refuse { reason },
                        },
                    );
                }
                Change::ResourceStatus { .. }
                | Change::ResourceRecipe { .. }
                | Change::ClaimRefusals { .. }
                | Change::ClaimSpec { .. }
                | Change::ClassFinalizers { .. }
                | Change::QuotaStatus { .. } => {}
            },
            Action::Create { object, .. } => self.note_made(object),
            _ => {}
        }
    }

    /// UIDs that a resource does not reference yet and is about to, compared with the object, or with the engine's view of it
    /// if that is known to match.
    fn new_holders(&self, kind: Kind, key: &ObjectKey, refs: &[ClaimRef], foreseen: bool) -> Vec<Uid> {
        let uids = refs.iter().filter_map(|r| r.uid.clone());
        if let (Kind::Resource(ty), true) = (kind, foreseen) {
            let state = self.engine.state();
            let known = state.find_resource(ty, &key.name).and_then(|id| state.resource(id));
            let known = known.map(|entry| entry.resource.claim_refs.as_slice()).unwrap_or_default();
            return uids.filter(|uid| !known.iter().any(|r| r.uid.as_ref() == Some(uid))).collect();
        }
        let before = self.world.get(kind, key).map(holders).unwrap_or_default();
        uids.filter(|uid| !before.contains(&**uid)).collect()
    }

    fn note_made(&mut self, object: &Object) {
        let made_for = object.metadata.annotations.as_ref().and_then(|a| a.get(PROVISIONED_FOR));
        let Some(uid) = made_for else { return };
        let class = object.body.pointer("/spec/class").and_then(Value::as_str).unwrap_or_default();
        self.decide(Uid::from(uid.as_str()), Verdict::Provision { class: class.to_owned() });
        if let (Some(ms), Some(name)) = (self.latency_ms, object.metadata.name.as_deref()) {
            self.making.insert((self.now.plus_ms(ms), Name::from(name)), object.kind);
        }
    }

    fn decide(&mut self, uid: Uid, verdict: Verdict) {
        let now = self.now;
        let decided = self.decided.or_default(uid);
        if decided.last().is_none_or(|(last, _)| *last != verdict) {
            decided.push((verdict, now));
        }
    }

    /// The system namespace.
    pub fn system(&self) -> &Name {
        &self.config.system_namespace
    }

    /// The key of a resource.
    pub fn resource_key(&self, name: &str) -> ObjectKey {
        ObjectKey::new(self.config.system_namespace.clone(), name)
    }

    /// The engine's decision about a claim in the recording's form; `None` if it has not decided.
    pub fn verdict(&self, uid: &Uid) -> Option<Verdict> {
        match self.engine.binding(uid)? {
            Binding::Bound { resource } | Binding::Assumed { resource, .. } => {
                Some(Verdict::Bind { resource: resource.to_string() })
            }
            Binding::Provisioning { class, .. } => Some(Verdict::Provision { class: class.to_string() }),
            Binding::Waiting(refused) => {
                refused.as_ref().map(|r| Verdict::Refuse { reason: r.reason.to_owned() })
            }
            Binding::Lost { reason, .. } => Some(Verdict::Lost { reason: (*reason).to_owned() }),
            Binding::Leaving | Binding::Unmanaged { .. } => None,
        }
    }
}

/// UIDs in a resource's references.
pub(super) fn holders(resource: &Object) -> BTreeSet<String> {
    let refs = resource.body.pointer("/spec/claimRefs").and_then(Value::as_array).into_iter().flatten();
    refs.filter_map(|r| r.get("uid")?.as_str().map(str::to_owned)).collect()
}
