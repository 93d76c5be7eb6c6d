//! The one task that owns the engine: events in, in batches; actions out, to whoever carries them out.
//! It never waits for a call, so it never stands still while the API does.

use super::clock::Clock;
use super::health::Health;
use super::home::Home;
use super::metrics::Metrics;
use super::notes::Teller;
use super::wire;
use super::writer::Job;
use conductor::action::Action;
use conductor::engine::{Config, Engine, Stats};
use conductor::event::{Answer, Event};
use conductor::model::{Kind, Name, Object, PartKind, Time};
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

/// Events taken from the inbox at a time.
const BATCH: usize = 1_024;
/// How often the owner shows that it lives when nothing happens.
const BEAT: Duration = Duration::from_secs(30);

/// What the owner is told.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are events, and one allocation each would cost more"
)]
pub(super) enum Message {
    /// Something happened.
    Event(Event),
    /// From now on we lead.
    Leading,
    /// A watch failed, for this reason, or is there again. Only whoever records is told.
    Watch(Kind, Option<String>),
}

/// The owner of the engine.
pub(super) struct Owner {
    engine: Engine,
    inbox: mpsc::Receiver<Message>,
    jobs: mpsc::UnboundedSender<Job>,
    follow: mpsc::UnboundedSender<PartKind>,
    teller: Teller,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    home: Home,
    clock: Clock,
    wake: Option<Time>,
    /// Kinds that have not been listed yet.
    unlisted: BTreeSet<Kind>,
    leading: bool,
    synced: bool,
    /// Since when we have seen a claim wait.
    waiting: HashMap<Name, Instant>,
    told: (Stats, u64),
}

impl Owner {
    pub fn new(
        config: Config,
        inbox: mpsc::Receiver<Message>,
        jobs: mpsc::UnboundedSender<Job>,
        follow: mpsc::UnboundedSender<PartKind>,
        teller: Teller,
        metrics: Arc<Metrics>,
        health: Arc<Health>,
    ) -> Owner {
        let home = Home::new(&config.system_namespace);
        Owner {
            engine: Engine::new(config),
            inbox,
            jobs,
            follow,
            teller,
            metrics,
            health,
            home,
            clock: Clock::new(),
            wake: None,
            unlisted: wire::kinds().into_iter().collect(),
            leading: false,
            synced: false,
            waiting: HashMap::new(),
            told: (Stats::default(), 0),
        }
    }

    /// Works until `halt`.
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
            self.metrics.follow(&self.engine, &mut self.told);
            let holds = self.home.is_terminating() && self.engine.state().resources().next().is_some();
            self.health.set_namespace(self.home.trouble(), holds);
            self.health.beat();
        }
    }

    fn until_wake(&mut self) -> Option<Duration> {
        let wake = self.wake?;
        let ms = wake.0.saturating_sub(self.clock.now().0);
        Some(Duration::from_millis(u64::try_from(ms).unwrap_or(0)))
    }

    fn take(&mut self, message: Message) {
        match message {
            Message::Leading => self.leading = true,
            Message::Watch(..) => {}
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
                self.follow_claims(&event);
                if let Some(note) = self.home.follow(&event) {
                    self.teller.tell(note);
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
        let now = self.clock.now();
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
            Action::Follow(kind) => {
                let _ = self.follow.send(kind);
                return;
            }
            Action::Part(action) => Job::Part { action, failures: 0 },
            Action::Publish { id, publication } => Job::Publish { id, publication },
            Action::Withdraw { id, slot, key, uid } => Job::Withdraw { id, slot, key, uid },
            Action::Tell(note) => return self.teller.tell(note),
            // The engine names the next time whenever it changes: only the last one counts.
            Action::WakeAt(at) => return self.wake = Some(at),
        };
        // The writer ends before us only when everything ends.
        let _ = self.jobs.send(job);
    }

    /// Takes the time from when a claim is first seen waiting until it is Bound.
    fn follow_claims(&mut self, event: &Event) {
        if !self.synced {
            return;
        }
        match event {
            Event::Seen(object) => self.follow_claim(object),
            Event::Answered { answer: Answer::Written(object), .. } => self.follow_claim(object),
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

    fn follow_claim(&mut self, object: &Object) {
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
