//! Writes in flight, and what became of those that failed: which targets must not be written, when each is retried, and
//! why the API refused. What a write contains is not known here.
//!
//! A target is *busy* from the moment a write to it is sent until the engine knows the object again: after a failure it
//! stays busy through the pause and the live read that follows.

use super::contests::Contests;
use super::{Effect, Target};
use crate::model::{Lookup, Revision, Time, WriteId};
use std::collections::{BTreeMap, BTreeSet};

/// First pause before the target of a failed write is read again; doubles with each further failure.
const RETRY_MS_FIRST: i64 = 500;
/// Longest pause.
const RETRY_MS_MAX: i64 = 30_000;
/// Unanswered writes in a row before the failure is reported.
const FAILURES_REPORTED: u32 = 3;

/// A write in flight.
#[derive(Clone, Debug)]
pub(in crate::engine) struct Flight {
    pub target: Target,
    pub effect: Effect,
    /// The revision that it was computed from, where it changes an existing object.
    pub from: Option<Revision>,
}

/// The writes of one engine.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Writes {
    /// Refusals that another client overwrites.
    pub contests: Contests,
    issued: u64,
    flights: BTreeMap<WriteId, Flight>,
    /// How many of the flights are to each target.
    flying: Lookup<Target, u32>,
    busy: Lookup<Target, ()>,
    failures: BTreeMap<Target, u32>,
    retries: BTreeSet<(Time, Target)>,
    /// The API's refusal of the last try.
    refusals: BTreeMap<(Target, Effect), String>,
}

impl Writes {
    /// Notes that a write is in flight, and numbers it. Its target is busy until the answer.
    pub fn send(&mut self, target: Target, effect: Effect, from: Option<Revision>) -> WriteId {
        self.issued += 1;
        let id = WriteId(self.issued);
        *self.flying.or_default(target.clone()) += 1;
        self.flights.insert(id, Flight { target: target.clone(), effect, from });
        self.busy.insert(target, ());
        id
    }

    /// Notes that a write was answered. `None` where its target was abandoned meanwhile.
    pub fn land(&mut self, id: WriteId) -> Option<Flight> {
        let flight = self.flights.remove(&id)?;
        if let Some(count) = self.flying.get_mut(&flight.target) {
            *count -= 1;
            if *count == 0 {
                self.flying.remove(&flight.target);
            }
        }
        self.busy.remove(&flight.target);
        Some(flight)
    }

    pub fn none_in_flight(&self) -> bool {
        self.flights.is_empty()
    }

    pub fn is_flying(&self, target: &Target) -> bool {
        self.flying.contains(target)
    }

    pub fn is_busy(&self, target: &Target) -> bool {
        self.busy.contains(target)
    }

    /// Keeps a target from being written until it is released.
    pub fn hold(&mut self, target: Target) {
        self.busy.insert(target, ());
    }

    pub fn release(&mut self, target: &Target) {
        self.busy.remove(target);
    }

    /// Releases a target that was read, unless a write to it is in flight: then its answer does.
    pub fn release_read(&mut self, target: &Target) {
        if !self.is_flying(target) {
            self.release(target);
        }
    }

    /// Forgets what is in flight to a deleted object: a late answer must not release the next object of its name.
    pub fn abandon(&mut self, target: &Target) {
        if self.busy.remove(target).is_some() {
            self.flights.retain(|_, flight| flight.target != *target);
            self.flying.remove(target);
        }
        self.refusals.remove(&(target.clone(), Effect::Change));
        self.refusals.remove(&(target.clone(), Effect::Deletion));
    }

    pub fn succeed(&mut self, target: &Target, effect: Effect) {
        self.forget_failures(target);
        self.refusals.remove(&(target.clone(), effect));
    }

    pub fn forget_failures(&mut self, target: &Target) {
        self.failures.remove(target);
    }

    /// The API refused the write: the reason is kept until a try succeeds.
    pub fn refuse(&mut self, target: Target, effect: Effect, why: String, now: Time) {
        self.refusals.insert((target.clone(), effect), why);
        self.hold_and_retry(target, now);
    }

    /// The API did not answer: the reason is kept only where that goes on.
    pub fn miss_answer(&mut self, target: Target, effect: Effect, why: String, now: Time) {
        if self.failures.get(&target).is_some_and(|failures| *failures + 1 >= FAILURES_REPORTED) {
            self.refusals.insert((target.clone(), effect), why);
        }
        self.hold_and_retry(target, now);
    }

    /// Why the API refused the last try.
    pub fn refusal(&self, target: Target, effect: Effect) -> Option<&str> {
        self.refusals.get(&(target, effect)).map(String::as_str)
    }

    /// Retries after a pause; until the target was read again, nothing is written to it.
    pub fn hold_and_retry(&mut self, target: Target, now: Time) {
        self.hold(target.clone());
        self.retry(target, now);
    }

    /// Retries after a pause that grows with every failure.
    pub fn retry(&mut self, target: Target, now: Time) {
        let failures = self.failures.entry(target.clone()).or_default();
        *failures += 1;
        let at = now.backed_off(*failures, RETRY_MS_FIRST, RETRY_MS_MAX);
        self.retry_at(at, target);
    }

    pub fn retry_at(&mut self, at: Time, target: Target) {
        self.retries.insert((at, target));
    }

    /// Takes the next target whose pause is over.
    pub fn pop_retry(&mut self, now: Time) -> Option<Target> {
        if self.next_retry()? > now {
            return None;
        }
        self.retries.pop_first().map(|(_, target)| target)
    }

    pub fn next_retry(&self) -> Option<Time> {
        self.retries.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Uid;

    fn target() -> Target {
        Target::Claim(Uid::from("claim"))
    }

    #[test]
    fn the_answer_of_an_abandoned_write_releases_nothing() {
        let mut writes = Writes::default();
        let old = writes.send(target(), Effect::Change, None);
        writes.abandon(&target());
        assert!(!writes.is_busy(&target()) && writes.none_in_flight());
        let new = writes.send(target(), Effect::Change, None);
        assert!(writes.land(old).is_none());
        assert!(writes.is_busy(&target()) && writes.is_flying(&target()));
        assert!(writes.land(new).is_some());
        assert!(!writes.is_busy(&target()) && !writes.is_flying(&target()));
    }

    #[test]
    fn a_read_does_not_release_a_target_with_a_write_in_flight() {
        let mut writes = Writes::default();
        let id = writes.send(target(), Effect::Change, None);
        writes.release_read(&target());
        assert!(writes.is_busy(&target()));
        writes.land(id);
        writes.hold(target());
        writes.release_read(&target());
        assert!(!writes.is_busy(&target()));
    }

    #[test]
    fn pauses_double_to_the_longest_and_begin_anew_after_success() {
        let mut writes = Writes::default();
        let mut pauses = Vec::new();
        for _ in 0..9 {
            writes.retry(target(), Time(0));
            let at = writes.next_retry().unwrap();
            assert_eq!(writes.pop_retry(Time(at.0 - 1)), None);
            assert_eq!(writes.pop_retry(at), Some(target()));
            pauses.push(at.0);
        }
        assert_eq!(pauses, [500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000, 30_000]);
        writes.succeed(&target(), Effect::Change);
        writes.retry(target(), Time(0));
        assert_eq!(writes.next_retry(), Some(Time(RETRY_MS_FIRST)));
    }

    #[test]
    fn a_lost_answer_is_reported_only_when_it_repeats() {
        let mut writes = Writes::default();
        for tries in 1..=FAILURES_REPORTED {
            writes.miss_answer(target(), Effect::Change, "timeout".to_owned(), Time(0));
            let refusal = writes.refusal(target(), Effect::Change);
            assert_eq!(refusal.is_some(), tries == FAILURES_REPORTED, "after {tries}");
        }
        writes.succeed(&target(), Effect::Change);
        assert_eq!(writes.refusal(target(), Effect::Change), None);
    }
}
