//! Who is looked at when: databases that something happened to, or whose time has come, a few at a time and each by
//! one at a time. One that fails is tried again with growing pauses, and holds up nobody else.

use super::pass::{Next, Provider};
use super::trouble::Trouble;
use super::world::Wake;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Databases at a time.
const PARALLEL: usize = 16;
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);
/// Another wrote meanwhile: it is looked at again at once, nearly.
const PAUSE_CONFLICT: Duration = Duration::from_millis(200);
/// How often everything is looked at where nothing seems to happen.
const LOOK_AGAIN: Duration = Duration::from_secs(600);
/// How long one who does not lead waits before it asks again.
const STAND_BY: Duration = Duration::from_secs(1);

/// The queue.
#[derive(Default)]
pub(super) struct Work {
    due: BTreeMap<String, Instant>,
    running: BTreeSet<String>,
    /// Woken while they ran.
    again: BTreeSet<String>,
    failures: BTreeMap<String, u32>,
}

impl Work {
    /// Works until it is dropped.
    pub async fn run(mut self, provider: Provider, mut wakes: mpsc::UnboundedReceiver<Wake>) {
        let mut passes = JoinSet::new();
        loop {
            let pause = self.start(&provider, &mut passes);
            tokio::select! {
                wake = wakes.recv() => match wake {
                    Some(wake) => self.wake(&provider, &wake),
                    None => return,
                },
                Some(done) = passes.join_next(), if !passes.is_empty() => {
                    if let Ok((id, outcome)) = done {
                        self.finished(&provider, id, outcome);
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
            provider.figures.on_record(provider.world.record_count());
        }
    }

    fn wake(&mut self, provider: &Provider, wake: &Wake) {
        for id in provider.world.concerned(wake) {
            match self.running.contains(&id) {
                true => drop(self.again.insert(id)),
                // One that fails keeps its pause: what it waits for may be the server.
                false if self.failures.contains_key(&id) && matches!(wake, Wake::Record(_)) => {}
                false => drop(self.due.insert(id, Instant::now())),
            }
        }
    }

    /// Starts whoever is due; says for how long nobody is.
    fn start(
        &mut self,
        provider: &Provider,
        passes: &mut JoinSet<(String, Result<Next, Trouble>)>,
    ) -> Duration {
        if !provider.desk.leader.leads() {
            return STAND_BY;
        }
        let now = Instant::now();
        let mut due: Vec<(Instant, String)> = self.due.iter().map(|(id, at)| (*at, id.clone())).collect();
        due.sort();
        for (at, id) in due {
            if at > now {
                return at - now;
            }
            if self.running.len() >= PARALLEL {
                break;
            }
            self.due.remove(&id);
            self.running.insert(id.clone());
            let provider = provider.clone();
            passes.spawn(async move {
                let outcome = provider.pass(&id).await;
                (id, outcome)
            });
        }
        LOOK_AGAIN
    }

    fn finished(&mut self, provider: &Provider, id: String, outcome: Result<Next, Trouble>) {
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
                provider.figures.failed(trouble.reason());
                let failures = self.failures.entry(id.clone()).or_default();
                *failures += 1;
                if failures.is_power_of_two() {
                    tracing::warn!(database = id, failures, %trouble, "cannot go on, trying again");
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
