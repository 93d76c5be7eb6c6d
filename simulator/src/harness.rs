//! A world and an engine in a loop: the world executes the engine's actions, and its answers and watch events go back,
//! in order, until both are idle. Time is virtual. Not here: faults; a test that injects them drives both by hand.

use crate::world::World;
use conductor::action::{Action, Note};
use conductor::engine::{Config, Engine};
use conductor::event::Event;
use conductor::model::{Kind, Object, ObjectKey, Time};
use std::collections::{BTreeSet, VecDeque};

/// A cluster and its controller.
#[derive(Debug)]
pub struct Harness {
    /// The cluster.
    pub world: World,
    /// The controller's engine.
    pub engine: Engine,
    now: Time,
    wakes: BTreeSet<Time>,
    writes: usize,
    notes: Vec<Note>,
    /// Watch events since the last `take_shown`.
    shown: Vec<Event>,
}

impl Harness {
    /// Starts a controller on a cluster and runs it until idle.
    pub fn start(world: World, config: Config, now: Time) -> Harness {
        let mut harness = Harness {
            world,
            engine: Engine::new(config),
            now,
            wakes: BTreeSet::new(),
            writes: 0,
            notes: Vec::new(),
            shown: Vec::new(),
        };
        let mut events: Vec<Event> = harness.world.objects().cloned().map(Event::Seen).collect();
        events.extend(harness.world.published());
        events.push(Event::Synced);
        harness.deliver(events);
        harness
    }

    /// Replaces the controller by a new one that knows only what the cluster holds, as after a crash.
    pub fn restart(self, config: Config) -> Harness {
        Harness::start(self.world, config, self.now)
    }

    /// Puts an object into the cluster and runs until idle.
    pub fn put(&mut self, object: Object) {
        let event = self.world.put(object);
        self.deliver(vec![event]);
    }

    /// Edits an object and runs until idle.
    pub fn edit(&mut self, kind: Kind, key: &ObjectKey, edit: impl FnOnce(&mut Object)) {
        let event = self.world.edit(kind, key, edit);
        self.deliver(event.into_iter().collect());
    }

    /// Deletes an object and runs until idle.
    pub fn delete(&mut self, kind: Kind, key: &ObjectKey) {
        let event = self.world.delete(kind, key);
        self.deliver(event.into_iter().collect());
    }

    /// Edits the cluster's parts or their kinds and runs until idle.
    pub fn touch_parts<E: IntoIterator<Item = Event>>(&mut self, touch: impl FnOnce(&mut World) -> E) {
        let events = touch(&mut self.world);
        self.deliver(events.into_iter().collect());
    }

    /// Advances the clock, waking the controller at the times it requested.
    pub fn advance(&mut self, ms: i64) {
        let until = self.now.plus_ms(ms);
        while let Some(next) = self.wakes.first().copied().filter(|at| *at <= until) {
            self.wakes.remove(&next);
            self.now = self.now.max(next);
            self.deliver(vec![Event::Tick]);
        }
        self.now = until;
    }

    /// Number of writes, creates and deletes that the controller has sent.
    pub fn writes(&self) -> usize {
        self.writes
    }

    /// Events that the controller has recorded, in order.
    pub fn notes(&self) -> &[Note] {
        &self.notes
    }

    /// Returns the watch events since the last call, in order.
    pub fn take_shown(&mut self) -> Vec<Event> {
        std::mem::take(&mut self.shown)
    }

    /// The virtual time.
    pub fn now(&self) -> Time {
        self.now
    }

    fn deliver(&mut self, events: Vec<Event>) {
        let mut pending = VecDeque::from(events);
        while let Some(event) = pending.pop_front() {
            if let Event::Seen(_) | Event::Gone(_) = &event {
                self.shown.push(event.clone());
            }
            for action in self.engine.handle(event, self.now) {
                pending.extend(self.carry_out(action));
            }
        }
    }

    fn carry_out(&mut self, action: Action) -> Vec<Event> {
        match action {
            Action::Emit(note) => {
                self.notes.push(note);
                Vec::new()
            }
            Action::WakeAt(at) if at <= self.now => vec![Event::Tick],
            Action::WakeAt(at) => {
                self.wakes.insert(at);
                Vec::new()
            }
            action => {
                self.writes += usize::from(action.write_id().is_some());
                self.world.carry_out(&action)
            }
        }
    }
}
