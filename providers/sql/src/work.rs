//! Who is looked at when: databases, and what stands on them, that something happened to or whose time has come, a few
//! at a time on each server and each by one at a time. One that fails is tried again with growing pauses, and holds up
//! nobody else; a server that hangs holds up its own.

use super::pass::{Next, Provider};
use super::trouble::Trouble;
use conductor::api::database::logical::ServerRef;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Databases at a time, and on one server.
const PARALLEL: usize = 64;
const PARALLEL_ON_SERVER: usize = super::pool::SESSIONS_MAX;
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Another wrote meanwhile: it is looked at again at once, nearly.
const PAUSE_CONFLICT: Duration = Duration::from_millis(200);
/// How often everything is looked at where nothing seems to happen.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
/// How long one who does not lead waits before it asks again.
const STAND_BY: Duration = Duration::from_secs(1);

/// What is worked on, one by one.
pub(super) trait Round: Clone + Send + Sync + 'static {
    /// What happens outside.
    type Wake: Send;
    /// What one of them is called.
    const WHAT: &'static str;

    /// Whom it concerns.
    fn concerned(&self, wake: &Self::Wake) -> BTreeSet<String>;
    /// Whether it may be our own doing: one that fails then keeps its pause.
    fn is_echo(wake: &Self::Wake) -> bool;
    /// One pass over one of them.
    fn pass(&self, id: &str) -> impl Future<Output = Result<Next, Trouble>> + Send;
    /// The server that it is on, where it has to do with one.
    fn server_of(&self, id: &str) -> Option<ServerRef>;
    /// What everything is done with.
    fn provider(&self) -> &Provider;
    /// After each turn of the queue.
    fn turned(&self) {}
}

/// The queue.
#[derive(Default)]
pub(super) struct Work {
    due: Due,
    /// With the server that each is on.
    running: BTreeMap<String, Option<ServerRef>>,
    /// Woken while they ran.
    again: BTreeSet<String>,
    failures: BTreeMap<String, u32>,
}

impl Work {
    /// Works until it is dropped.
    pub async fn run<R: Round>(mut self, round: R, mut wakes: mpsc::UnboundedReceiver<R::Wake>) {
        let mut passes = JoinSet::new();
        loop {
            let pause = self.start(&round, &mut passes);
            tokio::select! {
                wake = wakes.recv() => match wake {
                    Some(wake) => self.wake(&round, &wake),
                    None => return,
                },
                Some(done) = passes.join_next(), if !passes.is_empty() => {
                    if let Ok((id, outcome)) = done {
                        self.finished(&round, id, outcome);
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
            round.turned();
        }
    }

    fn wake<R: Round>(&mut self, round: &R, wake: &R::Wake) {
        for id in round.concerned(wake) {
            match self.running.contains_key(&id) {
                true => drop(self.again.insert(id)),
                // One that fails keeps its pause: what it waits for may be the server.
                false if self.failures.contains_key(&id) && R::is_echo(wake) => {}
                false => self.due.insert(id, Instant::now()),
            }
        }
    }

    /// Starts whoever is due; says for how long nobody is.
    fn start<R: Round>(
        &mut self,
        round: &R,
        passes: &mut JoinSet<(String, Result<Next, Trouble>)>,
    ) -> Duration {
        if !round.provider().desk.leadership.leads() {
            return STAND_BY;
        }
        let now = Instant::now();
        for id in self.due.at(now) {
            if self.running.len() >= PARALLEL {
                return LOOK_AGAIN;
            }
            let server = round.server_of(&id);
            let beside = self.running.values().filter(|running| **running == server).count();
            if server.is_some() && beside >= PARALLEL_ON_SERVER {
                continue;
            }
            self.due.remove(&id);
            self.running.insert(id.clone(), server);
            let round = round.clone();
            passes.spawn(async move {
                round.provider().world.wait_until_listed().await;
                let outcome = round.pass(&id).await;
                (id, outcome)
            });
        }
        self.due.after(now).map_or(LOOK_AGAIN, |next| next - now)
    }

    fn finished<R: Round>(&mut self, round: &R, id: String, outcome: Result<Next, Trouble>) {
        self.running.remove(&id);
        let woken = self.again.remove(&id);
        let pause = match &outcome {
            Ok(next) => {
                self.failures.remove(&id);
                match (woken, next) {
                    (true, _) => Some(Duration::ZERO),
                    (false, Next::Rest) => None,
                    (false, Next::After(pause)) => Some((*pause).min(LOOK_AGAIN)),
                }
            }
            Err(Trouble::Conflict) => Some(PAUSE_CONFLICT),
            Err(Trouble::NotLeading) => Some(STAND_BY),
            Err(trouble) => {
                round.provider().figures.failed(trouble.reason());
                let failures = self.failures.entry(id.clone()).or_default();
                *failures += 1;
                if failures.is_power_of_two() {
                    tracing::warn!(what = R::WHAT, id, failures, %trouble, "cannot go on, trying again");
                }
                let doubled = PAUSE_FIRST.saturating_mul(1 << (*failures - 1).min(12));
                Some(doubled.min(PAUSE_MAX))
            }
        };
        if let Some(pause) = pause {
            self.due.insert(id, Instant::now() + pause);
        }
    }
}

/// Who is looked at when: each once, in the order of time.
#[derive(Default)]
struct Due {
    times: BTreeMap<String, Instant>,
    order: BTreeSet<(Instant, String)>,
}

impl Due {
    fn insert(&mut self, id: String, at: Instant) {
        self.remove(&id);
        self.order.insert((at, id.clone()));
        self.times.insert(id, at);
    }

    fn remove(&mut self, id: &str) {
        if let Some((id, at)) = self.times.remove_entry(id) {
            self.order.remove(&(at, id));
        }
    }

    /// Those whose time has come.
    fn at(&self, now: Instant) -> Vec<String> {
        self.order.iter().take_while(|(at, _)| *at <= now).map(|(_, id)| id.clone()).collect()
    }

    /// When the next is due after that.
    fn after(&self, now: Instant) -> Option<Instant> {
        self.order.iter().map(|(at, _)| *at).find(|at| *at > now)
    }
}
