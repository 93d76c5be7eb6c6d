//! A work queue of keys: each key is in work at most once, a few at a time in each group, and in the order in which they
//! are due. A key that fails is retried with backoff and delays no other; a group that hangs delays its own keys only.

use super::backoff::Backoff;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// The outcome of work on a key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing is left to do until the key is woken.
    Done,
    /// Succeeded; due again after this pause.
    After(Duration),
    /// Neither succeeded nor failed; due again after this pause.
    Retry(Duration),
    /// Failed, for this reason; due again after the backoff.
    Failed(String),
}

/// The bounds of a queue.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Keys in work at a time.
    pub parallel: usize,
    /// Keys in work at a time in one group.
    pub parallel_in_group: usize,
    /// The longest pause of a key that is due again.
    pub resync: Duration,
    /// How often a worker that may not start checks again.
    pub standby: Duration,
    /// The pauses after failures.
    pub backoff: Backoff,
}

/// Works on the keys of a queue.
pub trait Worker: Clone + Send + Sync + 'static {
    /// What wakes keys.
    type Wake: Send;
    /// What keys share, such as a server.
    type Group: PartialEq + Send;
    /// The name of a key's object in logs.
    const WHAT: &'static str;

    /// The keys to wake.
    fn keys(&self, wake: &Self::Wake) -> BTreeSet<String>;
    /// Whether our own write may have caused it: a key that fails then keeps its pause.
    fn is_echo(wake: &Self::Wake) -> bool;
    /// The group of a key, if it has one.
    fn group(&self, key: &str) -> Option<Self::Group>;
    /// Whether work may start.
    fn may_start(&self) -> bool;
    /// Works on one key.
    fn work(&self, key: String) -> impl Future<Output = Outcome> + Send;
    /// Called after each turn of the queue.
    fn turned(&self) {}
}

/// The queue.
pub struct WorkQueue<G> {
    limits: Limits,
    due: Due,
    /// The keys in work, with their groups.
    running: BTreeMap<String, Option<G>>,
    /// Keys that were woken while in work.
    again: BTreeSet<String>,
    failures: BTreeMap<String, u32>,
}

impl<G: PartialEq + Send> WorkQueue<G> {
    /// An empty queue.
    pub fn new(limits: Limits) -> WorkQueue<G> {
        WorkQueue {
            limits,
            due: Due::default(),
            running: BTreeMap::new(),
            again: BTreeSet::new(),
            failures: BTreeMap::new(),
        }
    }

    /// Runs until it is dropped or `wakes` is closed.
    pub async fn run<W>(mut self, worker: W, mut wakes: mpsc::UnboundedReceiver<W::Wake>)
    where
        W: Worker<Group = G>,
    {
        let mut tasks = JoinSet::new();
        loop {
            let pause = self.start(&worker, &mut tasks);
            tokio::select! {
                wake = wakes.recv() => match wake {
                    Some(wake) => {
                        let is_echo = W::is_echo(&wake);
                        worker.keys(&wake).into_iter().for_each(|key| self.wake(key, is_echo, Instant::now()));
                    }
                    None => return,
                },
                Some(done) = tasks.join_next(), if !tasks.is_empty() => {
                    if let Ok((key, outcome)) = done {
                        self.finish(W::WHAT, key, outcome, Instant::now());
                    }
                }
                () = tokio::time::sleep(pause) => {}
            }
            worker.turned();
        }
    }

    fn wake(&mut self, key: String, is_echo: bool, now: Instant) {
        match self.running.contains_key(&key) {
            true => drop(self.again.insert(key)),
            // A key that fails keeps its pause: it may wait for its group.
            false if self.failures.contains_key(&key) && is_echo => {}
            false => self.due.insert(key, now),
        }
    }

    /// Starts the keys that are due; returns the pause until the next one is.
    fn start<W>(&mut self, worker: &W, tasks: &mut JoinSet<(String, Outcome)>) -> Duration
    where
        W: Worker<Group = G>,
    {
        if !worker.may_start() {
            return self.limits.standby;
        }
        let now = Instant::now();
        for key in self.due.at(now) {
            if self.running.len() >= self.limits.parallel {
                return self.limits.resync;
            }
            if self.admit(&key, worker.group(&key)) {
                let worker = worker.clone();
                tasks.spawn(async move {
                    let outcome = worker.work(key.clone()).await;
                    (key, outcome)
                });
            }
        }
        self.due.after(now).map_or(self.limits.resync, |next| next - now)
    }

    /// Takes a key into work, unless its group is full.
    fn admit(&mut self, key: &str, group: Option<G>) -> bool {
        let beside = self.running.values().filter(|running| **running == group).count();
        if group.is_some() && beside >= self.limits.parallel_in_group {
            return false;
        }
        self.due.remove(key);
        self.running.insert(key.to_owned(), group);
        true
    }

    fn finish(&mut self, what: &str, key: String, outcome: Outcome, now: Instant) {
        self.running.remove(&key);
        let woken = self.again.remove(&key);
        if matches!(outcome, Outcome::Done | Outcome::After(_)) {
            self.failures.remove(&key);
        }
        let pause = match outcome {
            Outcome::Done | Outcome::After(_) if woken => Duration::ZERO,
            Outcome::Done => return,
            Outcome::After(pause) => pause.min(self.limits.resync),
            Outcome::Retry(pause) => pause,
            Outcome::Failed(why) => {
                let failures = self.failures.entry(key.clone()).or_default();
                *failures += 1;
                if failures.is_power_of_two() {
                    tracing::warn!(what, id = key, failures, trouble = why, "cannot continue, retrying");
                }
                self.limits.backoff.pause(*failures)
            }
        };
        self.due.insert(key, now + pause);
    }
}

/// When each key is due, each key once.
#[derive(Default)]
struct Due {
    times: BTreeMap<String, Instant>,
    order: BTreeSet<(Instant, String)>,
}

impl Due {
    fn insert(&mut self, key: String, at: Instant) {
        self.remove(&key);
        self.order.insert((at, key.clone()));
        self.times.insert(key, at);
    }

    fn remove(&mut self, key: &str) {
        if let Some((key, at)) = self.times.remove_entry(key) {
            self.order.remove(&(at, key));
        }
    }

    /// The keys that are due.
    fn at(&self, now: Instant) -> Vec<String> {
        self.order.iter().take_while(|(at, _)| *at <= now).map(|(_, key)| key.clone()).collect()
    }

    /// When the next key is due after that.
    fn after(&self, now: Instant) -> Option<Instant> {
        self.order.iter().map(|(at, _)| *at).find(|at| *at > now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: Limits = Limits {
        parallel: 3,
        parallel_in_group: 1,
        resync: Duration::from_secs(600),
        standby: Duration::from_secs(1),
        backoff: Backoff { first: Duration::from_secs(8), max: Duration::from_secs(60) },
    };

    fn queue() -> (WorkQueue<&'static str>, Instant) {
        (WorkQueue::new(LIMITS), Instant::now())
    }

    #[test]
    fn a_key_is_in_work_once_and_runs_again_where_it_was_woken() {
        let (mut queue, now) = queue();
        queue.wake("a".to_owned(), false, now);
        assert_eq!(queue.due.at(now), ["a"]);
        assert!(queue.admit("a", None));
        queue.wake("a".to_owned(), false, now);
        assert!(queue.due.at(now).is_empty(), "it is in work");
        queue.finish("key", "a".to_owned(), Outcome::Done, now);
        assert_eq!(queue.due.at(now), ["a"], "it was woken meanwhile");
        assert!(queue.admit("a", None));
        queue.finish("key", "a".to_owned(), Outcome::Done, now);
        assert!(queue.due.at(now + LIMITS.resync).is_empty());
    }

    #[test]
    fn a_full_group_delays_its_own_keys_only() {
        let (mut queue, now) = queue();
        ["a", "b", "c"].into_iter().for_each(|key| queue.wake(key.to_owned(), false, now));
        assert!(queue.admit("a", Some("one")));
        assert!(!queue.admit("b", Some("one")));
        assert!(queue.admit("c", Some("two")));
        assert_eq!(queue.due.at(now), ["b"]);
        queue.finish("key", "a".to_owned(), Outcome::Done, now);
        assert!(queue.admit("b", Some("one")));
    }

    #[test]
    fn a_failed_key_keeps_its_pause_for_echoes_and_none_for_news() {
        let (mut queue, now) = queue();
        queue.wake("a".to_owned(), false, now);
        assert!(queue.admit("a", None));
        queue.finish("key", "a".to_owned(), Outcome::Failed("full".to_owned()), now);
        queue.wake("a".to_owned(), true, now);
        assert!(queue.due.at(now + Duration::from_secs(3)).is_empty(), "half of the pause at least");
        assert_eq!(queue.due.at(now + Duration::from_secs(8)), ["a"]);
        queue.wake("a".to_owned(), false, now);
        assert_eq!(queue.due.at(now), ["a"]);
    }
}
