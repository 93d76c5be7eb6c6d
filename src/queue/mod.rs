//! Claims that wait: ready to be tried, backing off after a failed write, or parked until something helps.
//! Every method takes `now`; nothing here knows why a claim was refused beyond what could wake it.
//!
//! ```text
//!            add / wake / flush
//!   parked  ------------------->  active  --pop-->  in flight
//!     ^                             ^                  |
//!     |  refused                    |  time            |  write failed
//!     +-----------------------------|------------------+
//!                                backoff <-------------+
//! ```

mod equivalence_groups;

pub use equivalence_groups::{EquivalenceGroups, EquivalenceKey, Group, Wait};

use crate::model::{Claim, Lookup, ObjectKey, Time, Uid};
use std::collections::BTreeSet;

/// First pause after a failed write; doubles with each further failure.
const BACKOFF_MS_FIRST: i64 = 1_000;
/// Longest pause between tries.
const BACKOFF_MS_MAX: i64 = 10_000;
/// Parked claims are tried again after this long, in case an event that should have woken them did not.
const FLUSH_AFTER_MS: i64 = 5 * 60 * 1_000;
/// The same for the next in line, refused because another was served: by then it has its own, or gets the current counts.
const NEXT_IN_LINE_AFTER_MS: i64 = 2_000;

/// The order of the queue: higher priority, then the longer wait since the last try, then the longer wait in all (a
/// controller that starts tries every claim at one moment), then the UID so that order never depends on chance.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Turn {
    priority: std::cmp::Reverse<i32>,
    since: Time,
    age: Time,
    /// By where they are, so that a plan does not depend on generated UIDs.
    tie: ObjectKey,
    claim: Uid,
}

#[derive(Clone, Debug)]
struct Waiting {
    /// Its turn in its group: there all claims are alike, so the one that waits longest stays first however often it was
    /// tried.
    group_turn: Turn,
    /// When it was last refused; a claim that was just tried goes behind its peers.
    turn_since: Time,
    failures: u32,
    place: Place,
    /// Set when the safety flush, not an event, brought it back.
    flushed: bool,
    /// The group that an event took it from: its next is woken unless it is refused in the same way.
    woken_from: Option<EquivalenceKey>,
    /// Set when it was woken because another of its group was served, not because of an event.
    next_in_line: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Place {
    Active,
    Backoff(Time),
    /// Until then at the latest.
    Parked(EquivalenceKey, Time),
    InFlight,
}

/// All claims that are not settled.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    /// Boxed, so that the table stays small however it grows.
    claims: Lookup<Uid, Box<Waiting>>,
    active: BTreeSet<Turn>,
    backoff: BTreeSet<(Time, Uid)>,
    parked_until: BTreeSet<(Time, Uid)>,
    groups: EquivalenceGroups,
    bound_after_flush: u64,
    helpful_events: u64,
}

/// How many claims wait, by how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lengths {
    /// Ready to be tried.
    pub active: usize,
    /// Pausing after a failed write.
    pub backoff: usize,
    /// Waiting for something to change.
    pub parked: usize,
    /// Being tried: a write is in flight.
    pub in_flight: usize,
}

impl Queue {
    /// How many claims wait, by how.
    pub fn lengths(&self) -> Lengths {
        let (active, backoff, parked) = (self.active.len(), self.backoff.len(), self.parked_until.len());
        Lengths { active, backoff, parked, in_flight: self.claims.len() - active - backoff - parked }
    }

    /// Whether the queue holds this claim.
    pub fn contains(&self, claim: &Uid) -> bool {
        self.claims.contains(claim)
    }

    /// Claims that bound only because of the safety flush: each is a wake-up that was missed.
    pub fn bound_after_flush(&self) -> u64 {
        self.bound_after_flush
    }

    /// How many events could help a claim that waits: a write that fails after one is retried at once.
    pub fn helpful_events(&self) -> u64 {
        self.helpful_events
    }

    /// Counts an event that could help a claim that waits.
    pub fn count_helpful_event(&mut self) {
        self.helpful_events += 1;
    }

    /// Adds a claim, ready to be tried. One that is queued already is tried anew.
    pub fn add(&mut self, claim: &Claim, now: Time) {
        let uid = &claim.meta.uid;
        self.remove(uid);
        let since = claim.meta.created.unwrap_or(now);
        let group_turn = Turn {
            priority: std::cmp::Reverse(claim.priority),
            since,
            age: since,
            tie: claim.meta.key.clone(),
            claim: uid.clone(),
        };
        let waiting = Waiting {
            group_turn,
            turn_since: since,
            failures: 0,
            place: Place::Active,
            flushed: false,
            woken_from: None,
            next_in_line: false,
        };
        self.active.insert(waiting.turn());
        self.claims.insert(uid.clone(), Box::new(waiting));
    }

    /// Forgets a claim: it was settled or deleted.
    pub fn remove(&mut self, claim: &Uid) {
        if let Some(waiting) = self.claims.remove(claim) {
            self.leave(&waiting);
        }
    }

    /// Forgets a claim because it was served.
    pub fn settle(&mut self, claim: &Uid) {
        if let Some(waiting) = self.claims.get(claim)
            && waiting.flushed
        {
            self.bound_after_flush += 1;
        }
        self.remove(claim);
    }

    /// The claim whose turn it is; it is in flight until it is parked, fails, settles or is removed.
    pub fn pop(&mut self) -> Option<Uid> {
        let turn = self.active.pop_first()?;
        if let Some(waiting) = self.claims.get_mut(&turn.claim) {
            waiting.place = Place::InFlight;
        }
        Some(turn.claim)
    }

    /// The claims whose turn comes next, in order, without taking them.
    pub fn upcoming(&self) -> impl Iterator<Item = &Uid> {
        self.active.iter().map(|turn| &turn.claim)
    }

    /// Takes one active claim out of turn, to be tried together with others.
    pub fn take(&mut self, claim: &Uid) -> bool {
        let Some(waiting) = self.claims.get_mut(claim).filter(|w| w.place == Place::Active) else {
            return false;
        };
        self.active.remove(&waiting.turn());
        waiting.place = Place::InFlight;
        true
    }

    /// Whether a claim is tried only because another of its group was served. In a burst it is served next: its refusal is
    /// no news yet.
    pub fn is_next_in_line(&self, claim: &Uid) -> bool {
        self.claims.get(claim).is_some_and(|waiting| waiting.next_in_line)
    }

    /// Parks a refused claim until something that `group` waits for happens. Where it was woken from another group, the
    /// next of that one is woken instead.
    pub fn park(&mut self, claim: &Uid, group: EquivalenceKey, namespace: &str, now: Time) {
        let Some(mut waiting) = self.claims.remove(claim) else { return };
        self.leave(&waiting);
        waiting.turn_since = now;
        waiting.flushed = false;
        let woken_from = waiting.woken_from.take();
        let after =
            if std::mem::take(&mut waiting.next_in_line) { NEXT_IN_LINE_AFTER_MS } else { FLUSH_AFTER_MS };
        let until = now.plus_ms(after);
        waiting.place = Place::Parked(group.clone(), until);
        self.groups.insert(&group, namespace, waiting.group_turn.clone());
        self.parked_until.insert((until, claim.clone()));
        self.claims.insert(claim.clone(), waiting);
        if let Some(from) = woken_from
            && from != group
        {
            self.wake_next(&from, namespace);
        }
    }

    /// Continues with the group that a claim was woken from, once the claim has been served.
    pub fn pass_on(&mut self, claim: &Uid, namespace: &str) {
        let from = self.claims.get_mut(claim).and_then(|w| w.woken_from.take());
        if let Some(from) = from {
            self.wake_next(&from, namespace);
        }
    }

    /// Delays a claim whose write failed. With `replay`, something happened meanwhile that could help it: then it is
    /// retried at once.
    pub fn back_off(&mut self, claim: &Uid, replay: bool, now: Time) {
        let Some(mut waiting) = self.claims.remove(claim) else { return };
        self.leave(&waiting);
        waiting.failures += 1;
        waiting.turn_since = now;
        if replay {
            waiting.place = Place::Active;
            self.active.insert(waiting.turn());
        } else {
            let ready = now.backed_off(waiting.failures, BACKOFF_MS_FIRST, BACKOFF_MS_MAX);
            waiting.place = Place::Backoff(ready);
            self.backoff.insert((ready, claim.clone()));
        }
        self.claims.insert(claim.clone(), waiting);
    }

    /// Makes a parked or pausing claim ready.
    pub fn wake(&mut self, claim: &Uid) {
        let Some(mut waiting) = self.claims.remove(claim) else { return };
        waiting.next_in_line = false;
        if matches!(waiting.place, Place::Parked(..) | Place::Backoff(_)) {
            self.leave(&waiting);
            if let Place::Parked(group, _) = &waiting.place {
                waiting.woken_from = Some(group.clone());
            }
            waiting.place = Place::Active;
            self.active.insert(waiting.turn());
        }
        self.claims.insert(claim.clone(), waiting);
    }

    /// Wakes the first claim of every group that `keys` names.
    pub fn wake_groups(&mut self, keys: impl IntoIterator<Item = EquivalenceKey>) {
        for group in keys {
            if let Some(head) = self.groups.head(&group, None) {
                self.wake(&head);
            }
        }
    }

    /// Wakes the first claim of a group among those of some namespaces.
    pub fn wake_in_namespaces<'a>(
        &mut self,
        group: &EquivalenceKey,
        namespaces: impl IntoIterator<Item = &'a str>,
    ) {
        for namespace in namespaces {
            if let Some(head) = self.groups.head(group, Some(namespace)) {
                self.wake(&head);
            }
        }
    }

    fn wake_next(&mut self, group: &EquivalenceKey, namespace: &str) {
        // The first of the group, and the first of the namespace where that is another: what was left may be
        // open to this namespace only. Both are looked up before either is woken, or two would be of one.
        let first = self.groups.head(group, None);
        let own = self.groups.head(group, Some(namespace)).filter(|own| first.as_ref() != Some(own));
        for claim in first.into_iter().chain(own) {
            self.wake(&claim);
            if let Some(waiting) = self.claims.get_mut(&claim) {
                waiting.next_in_line = true;
            }
        }
    }

    /// The parked groups.
    pub fn groups(&self) -> &EquivalenceGroups {
        &self.groups
    }

    /// Moves claims whose pause is over, or that have been parked too long, to the ready ones.
    pub fn tick(&mut self, now: Time) {
        while let Some((ready, claim)) = self.backoff.first().cloned().filter(|(ready, _)| *ready <= now) {
            self.backoff.remove(&(ready, claim.clone()));
            self.wake(&claim);
        }
        while let Some((until, claim)) = self.parked_until.first().cloned().filter(|(until, _)| *until <= now)
        {
            self.parked_until.remove(&(until, claim.clone()));
            self.wake(&claim);
            if let Some(waiting) = self.claims.get_mut(&claim) {
                waiting.flushed = true;
                // The whole group is flushed: none is woken instead of another.
                waiting.woken_from = None;
            }
        }
    }

    /// When `tick` has something to do next, if ever.
    pub fn next_tick(&self) -> Option<Time> {
        let pause_ends = self.backoff.first().map(|(ready, _)| *ready);
        let flush = self.parked_until.first().map(|(until, _)| *until);
        pause_ends.into_iter().chain(flush).min()
    }

    fn leave(&mut self, waiting: &Waiting) {
        let turn = &waiting.group_turn;
        match &waiting.place {
            Place::Active => {
                self.active.remove(&waiting.turn());
            }
            Place::Backoff(ready) => {
                self.backoff.remove(&(*ready, turn.claim.clone()));
            }
            Place::Parked(group, until) => {
                self.parked_until.remove(&(*until, turn.claim.clone()));
                self.groups.remove(group, &turn.tie.namespace, turn);
            }
            Place::InFlight => {}
        }
    }
}

impl Waiting {
    fn turn(&self) -> Turn {
        Turn { since: self.turn_since, ..self.group_turn.clone() }
    }
}
