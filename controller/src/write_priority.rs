//! The order of calls when more wait than may be in flight: first those that an application waits for. Drops none and
//! starves none.

use super::writer::Job;
use conductor::action::{Change, Write};
use conductor::model::ClaimPhase;
use std::collections::VecDeque;

/// After this many calls of higher priority, the lowest priority has its turn.
const TURNS_BEFORE_LAST: u32 = 8;
/// Deferred calls in flight beside others. A busy API server slows down with every call: in a burst these would take
/// half of its capacity from the claims that are not Bound yet.
const DEFERRED_BESIDE_OTHERS: usize = 1;
/// Deferred calls in flight without others, few enough that the API server still answers the next other call quickly.
const DEFERRED_ALONE: usize = 4;

/// Waiting calls.
#[derive(Debug, Default)]
pub(super) struct WriteQueue {
    levels: [VecDeque<Job>; 3],
    deferred: VecDeque<Job>,
    turns: u32,
}

/// Calls in flight.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct InFlight {
    pub deferred: usize,
    pub others: usize,
}

impl InFlight {
    pub fn count(&mut self, deferred: bool) -> &mut usize {
        if deferred { &mut self.deferred } else { &mut self.others }
    }
}

impl WriteQueue {
    pub fn push(&mut self, job: Job) {
        match is_deferred(&job) {
            true => self.deferred.push_back(job),
            false => self.levels[priority(&job)].push_back(job),
        }
    }

    /// The next call, and whether it is a deferred one.
    pub fn pop(&mut self, in_flight: InFlight) -> Option<(Job, bool)> {
        let is_calm = in_flight.others == 0 && self.levels.iter().all(VecDeque::is_empty);
        let most = if is_calm { DEFERRED_ALONE } else { DEFERRED_BESIDE_OTHERS };
        if in_flight.deferred < most
            && let Some(job) = self.deferred.pop_front()
        {
            return Some((job, true));
        }
        self.pop_urgent().map(|job| (job, false))
    }

    fn pop_urgent(&mut self) -> Option<Job> {
        let [first, second, last] = &mut self.levels;
        if self.turns >= TURNS_BEFORE_LAST && !last.is_empty() {
            self.turns = 0;
            return last.pop_front();
        }
        self.turns = self.turns.saturating_add(1);
        first.pop_front().or_else(|| second.pop_front()).or_else(|| last.pop_front())
    }

    pub fn len(&self) -> usize {
        self.deferred.len() + self.levels.iter().map(VecDeque::len).sum::<usize>()
    }
}

fn is_deferred(job: &Job) -> bool {
    matches!(job, Job::Write(Write { may_wait: true, .. }))
}

/// First claims that only lack the phase Bound, because their users wait; then writes that other writes wait for; last
/// what only people read, and our own records. In a burst this halves the time until the last claim is Bound.
fn priority(job: &Job) -> usize {
    match job {
        Job::Write(Write { change, .. }) => match change {
            Change::ClaimStatus { phase: ClaimPhase::Bound, .. } => 0,
            Change::ResourceSpec { .. } | Change::ClaimSpec { resource_name: None, .. } => 1,
            Change::ClaimStatus { .. }
            | Change::ClaimSpec { resource_name: Some(_), .. }
            | Change::ResourceStatus { .. }
            | Change::ClaimRefusals { .. }
            | Change::ResourceRecipe { .. }
            | Change::ClassFinalizers { .. }
            | Change::QuotaStatus { .. } => 2,
        },
        Job::Create { .. } | Job::Delete { .. } | Job::Read { .. } | Job::Part { .. } => 1,
        Job::Publish { .. } | Job::Withdraw { .. } => 1,
        // One for every claim after a start; nearly all find nothing to do.
        Job::ReadSecret { .. } => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::model::{Kind, ObjectKey, TypeId, Uid, WriteId};

    fn write(id: u64, change: Change) -> Job {
        let kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);
        let (key, uid) = (ObjectKey::new("a", "b"), Uid::from("u"));
        Job::Write(Write { id: WriteId(id), kind, key, uid, revision: None, may_wait: false, change })
    }

    fn deferred(id: u64) -> Job {
        let Job::Write(write) = write(id, status(ClaimPhase::Bound)) else { unreachable!() };
        Job::Write(Write { may_wait: true, ..write })
    }

    fn status(phase: ClaimPhase) -> Change {
        Change::ClaimStatus {
            phase,
            resource: None,
            conditions: Vec::new(),
            observed_generation: 0,
            binding: None,
            bound_spec: None,
        }
    }

    fn ids(queue: &mut WriteQueue) -> Vec<u64> {
        let id = |job| if let Job::Write(write) = job { Some(write.id.0) } else { None };
        std::iter::from_fn(|| queue.pop(InFlight::default())).filter_map(|(job, _)| id(job)).collect()
    }

    /// Calls in a row.
    const ROUND: usize = 32;

    /// The calls in flight after all that may have been sent.
    fn sent(queue: &mut WriteQueue, mut in_flight: InFlight) -> InFlight {
        for _ in 0..ROUND {
            let Some((_, deferred)) = queue.pop(in_flight) else { break };
            *in_flight.count(deferred) += 1;
        }
        in_flight
    }

    #[test]
    fn what_applications_wait_for_goes_first() {
        let mut queue = WriteQueue::default();
        queue.push(write(1, status(ClaimPhase::Pending)));
        queue.push(write(2, Change::ResourceSpec { claim_refs: Vec::new(), finalizers: Vec::new() }));
        queue.push(write(3, status(ClaimPhase::Bound)));
        queue.push(write(4, status(ClaimPhase::Bound)));
        assert_eq!(ids(&mut queue), [3, 4, 2, 1]);
    }

    #[test]
    fn the_lowest_priority_has_its_turn() {
        let mut queue = WriteQueue::default();
        queue.push(write(100, status(ClaimPhase::Pending)));
        (0..20).for_each(|id| queue.push(write(id, status(ClaimPhase::Bound))));
        let order = ids(&mut queue);
        assert_eq!(order.iter().position(|id| *id == 100), Some(TURNS_BEFORE_LAST as usize), "{order:?}");
        assert_eq!(order.len(), 21);
    }

    #[test]
    fn deferred_calls_have_low_priority_and_are_never_starved() {
        let mut queue = WriteQueue::default();
        (0..20).for_each(|id| queue.push(deferred(id)));
        let calm = sent(&mut queue, InFlight::default());
        assert_eq!((calm.deferred, calm.others), (DEFERRED_ALONE, 0));
        let busy = sent(&mut queue, InFlight { deferred: 0, others: 30 });
        assert_eq!((busy.deferred, busy.others), (DEFERRED_BESIDE_OTHERS, 30));
        (100..140).for_each(|id| queue.push(write(id, status(ClaimPhase::Bound))));
        let burst = sent(&mut queue, InFlight::default());
        assert_eq!((burst.deferred, burst.others), (DEFERRED_BESIDE_OTHERS, ROUND - DEFERRED_BESIDE_OTHERS));
        assert_eq!(queue.len(), 60 - DEFERRED_ALONE - DEFERRED_BESIDE_OTHERS - ROUND);
    }
}
