//! The one task that owns the engine: takes events in batches and passes actions on to the writer, the watches and the
//! event recorder. It waits for no call, so a slow API does not stop it.

use super::events::EventRecorder;
use super::health::Health;
use super::metrics::Metrics;
use super::rest;
use super::system_namespace::SystemNamespace;
use super::writer::Job;
use conductor::action::Action;
use conductor::engine::{Config, Engine, Stats};
use conductor::event::{Answer, Event};
use conductor::model::{Kind, Name, Object, PartKind, Time};
use conductor_runtime::clock::MonotonicClock;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Events taken from the inbox at a time.
const BATCH: usize = 1_024;
/// How often the event loop reports that it lives when nothing happens.
const BEAT: Duration = Duration::from_secs(30);

/// The input of the event loop.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are events, and one allocation each would cost more"
)]
pub(super) enum Message {
    /// An event for the engine.
    Event(Event),
    /// From now on this process leads.
    Leading,
}

/// The task and the state that it owns.
pub(super) struct EventLoop {
    engine: Engine,
    inbox: mpsc::Receiver<Message>,
    jobs: mpsc::UnboundedSender<Job>,
    follow: mpsc::UnboundedSender<PartKind>,
    recorder: EventRecorder,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    system_namespace: SystemNamespace,
    clock: MonotonicClock,
    wake: Option<Time>,
    /// Kinds that have not been listed yet.
    unlisted: BTreeSet<Kind>,
    leading: bool,
    synced: bool,
    /// Since when each claim waits.
    waiting: HashMap<Name, Instant>,
    counted: (Stats, u64),
}

impl EventLoop {
    pub fn new(
        config: Config,
        inbox: mpsc::Receiver<Message>,
        jobs: mpsc::UnboundedSender<Job>,
        follow: mpsc::UnboundedSender<PartKind>,
        recorder: EventRecorder,
        metrics: Arc<Metrics>,
        health: Arc<Health>,
    ) -> EventLoop {
        let system_namespace = SystemNamespace::new(&config.system_namespace);
        EventLoop {
            engine: Engine::new(config),
            inbox,
            jobs,
            follow,
            recorder,
            metrics,
            health,
            system_namespace,
            clock: MonotonicClock::default(),
            wake: None,
            unlisted: rest::kinds().into_iter().collect(),
            leading: false,
            synced: false,
            waiting: HashMap::new(),
            counted: (Stats::default(), 0),
        }
    }

    /// Runs until `halt`.
    pub async fn run(mut self, halt: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH);
        loop {
            let pause = self.until_wake();
            tokio::select! {
                biased;
                () = halt.cancelled() => return,
                count = self.inbox.recv_many(&mut batch, BATCH) => if count == 0 { return },
                () = tokio::time::sleep(pause.unwrap_or(BEAT).min(BEAT)) => {}
            }
            for message in batch.drain(..) {
                self.take(message);
            }
            if self.until_wake() == Some(Duration::ZERO) {
                self.wake = None;
                self.handle(Event::Tick);
            }
            self.metrics.update(&self.engine, &mut self.counted);
            let holds =
                self.system_namespace.is_terminating() && self.engine.state().resources().next().is_some();
            self.health.set_namespace(self.system_namespace.trouble(), holds);
            self.health.beat();
        }
    }

    fn until_wake(&mut self) -> Option<Duration> {
        let wake = self.wake?;
        let ms = wake.0.saturating_sub(self.clock.now_ms());
        Some(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Leading => self.leading = true,
            Message::Event(event) => {
                let listed = match &event {
                    Event::Listed { kind, .. } => Some(*kind),
                    Event::Seen(_)
                    | Event::Gone(_)
                    | Event::Synced
                    | Event::Answered { .. }
                    | Event::Read { .. }
                    | Event::Part(_)
                    | Event::Publish(_)
                    | Event::Tick => None,
                };
                self.observe_claims(&event);
                if let Some(note) = self.system_namespace.observe(&event) {
                    self.recorder.record(note);
                }
                self.handle(event);
                if listed.is_some_and(|kind| self.unlisted.remove(&kind)) {
                    self.health.set_unlisted(self.unlisted.iter().map(|kind| kind.name()).collect());
                }
            }
        }
        if self.leading && self.unlisted.is_empty() && !self.synced {
            self.synced = true;
            let state = self.engine.state();
            let (claims, resources) = (state.claim_count(), state.resources().count());
            tracing::info!(claims, resources, "everything is listed and this process leads: deciding");
            self.handle(Event::Synced);
        }
    }

    fn handle(&mut self, event: Event) {
        let (begun, decided) = (Instant::now(), self.engine.stats().decisions);
        let now = Time(self.clock.now_ms());
        let actions = self.engine.handle(event, now);
        self.metrics.decided(self.engine.stats().decisions - decided, begun.elapsed());
        actions.into_iter().for_each(|action| self.pass_on(action));
    }

    fn pass_on(&mut self, action: Action) {
        let job = match action {
            Action::Write(write) => Job::Write(write),
            Action::Create { id, object } => Job::Create { id, object },
            Action::Delete { id, kind, key, uid, revision } => Job::Delete { id, kind, key, uid, revision },
            Action::Read { kind, key } => Job::Read { kind, key, failures: 0 },
            Action::ReadSecret { claim, key } => Job::ReadSecret { claim, key, failures: 0 },
            Action::Watch(kind) => {
                let _ = self.follow.send(kind);
                return;
            }
            Action::Part(action) => Job::Part { action, failures: 0 },
            Action::Publish { id, publication } => Job::Publish { id, publication },
            Action::Withdraw { id, slot, key, uid } => Job::Withdraw { id, slot, key, uid },
            Action::Emit(note) => return self.recorder.record(note),
            // The engine names the next time whenever it changes: only the last one counts.
            Action::WakeAt(at) => return self.wake = Some(at),
        };
        // The writer ends before this task only when everything ends.
        let _ = self.jobs.send(job);
    }

    /// Measures the time from the first sight of an unbound claim until it is Bound.
    fn observe_claims(&mut self, event: &Event) {
        if !self.synced {
            return;
        }
        match event {
            Event::Seen(object) => self.observe_claim(object),
            Event::Answered { answer: Answer::Written(object), .. } => self.observe_claim(object),
            Event::Gone(gone) => {
                self.waiting.remove(&gone.uid);
            }
            Event::Listed { .. }
            | Event::Synced
            | Event::Answered { .. }
            | Event::Read { .. }
            | Event::Part(_)
            | Event::Publish(_)
            | Event::Tick => {}
        }
    }

    fn observe_claim(&mut self, object: &Object) {
        let (Kind::Claim(_), Some(uid)) = (object.kind, object.metadata.uid.as_deref()) else { return };
        let phase = object.body.pointer("/status/phase").and_then(serde_json::Value::as_str);
        match phase {
            Some("Bound" | "Lost") => {
                if let Some(since) = self.waiting.remove(uid).filter(|_| phase == Some("Bound")) {
                    self.metrics.claim_bound(since.elapsed());
                }
            }
            Some(_) | None => {
                if !self.waiting.contains_key(uid) {
                    self.waiting.insert(Name::from(uid), Instant::now());
                }
            }
        }
    }
}
