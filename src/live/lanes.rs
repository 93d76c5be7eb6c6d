//! The order in which calls go out when there are more than may be on their way: what an application waits
//! for first. Nothing is dropped, and the last lane is never starved.

use super::writer::Job;
use crate::action::{Change, Write};
use crate::model::ClaimPhase;
use std::collections::VecDeque;

/// After so many calls from the lanes before it, the last lane has its turn.
const TURNS_BEFORE_LAST: u32 = 8;

/// Calls that wait for their turn.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: [VecDeque<Job>; 3],
    turns: u32,
}

impl Lanes {
    pub fn push(&mut self, job: Job) {
        let lane = lane(&job);
        self.lanes[lane].push_back(job);
    }

    pub fn pop(&mut self) -> Option<Job> {
        let [first, second, last] = &mut self.lanes;
        if self.turns >= TURNS_BEFORE_LAST && !last.is_empty() {
            self.turns = 0;
            return last.pop_front();
        }
        self.turns = self.turns.saturating_add(1);
        first.pop_front().or_else(|| second.pop_front()).or_else(|| last.pop_front())
    }

    pub fn len(&self) -> usize {
        self.lanes.iter().map(VecDeque::len).sum()
    }
}

/// A claim that only lacks the word Bound comes first: somebody waits for it. Then what other writes wait
/// for. What only people read, and our own records, come last: in a burst of claims this halves the time until
/// the last of them is Bound.
fn lane(job: &Job) -> usize {
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
        // One for every claim after a start; what they tell is nearly always that all is well.
        Job::ReadSecret { .. } => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Kind, ObjectKey, TypeId, Uid, WriteId};

    fn write(id: u64, change: Change) -> Job {
        let kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);
        let (key, uid) = (ObjectKey::new("a", "b"), Uid::from("u"));
        Job::Write(Write { id: WriteId(id), kind, key, uid, revision: None, change })
    }

    fn status(phase: ClaimPhase) -> Change {
        Change::ClaimStatus {
            phase,
            resource: None,
            conditions: Vec::new(),
            observed_generation: 0,
            binding: None,
        }
    }

    fn ids(lanes: &mut Lanes) -> Vec<u64> {
        let id = |job| if let Job::Write(write) = job { Some(write.id.0) } else { None };
        std::iter::from_fn(|| lanes.pop()).filter_map(id).collect()
    }

    #[test]
    fn what_applications_wait_for_goes_first() {
        let mut lanes = Lanes::default();
        lanes.push(write(1, status(ClaimPhase::Pending)));
        lanes.push(write(2, Change::ResourceSpec { claim_refs: Vec::new(), finalizers: Vec::new() }));
        lanes.push(write(3, status(ClaimPhase::Bound)));
        lanes.push(write(4, status(ClaimPhase::Bound)));
        assert_eq!(ids(&mut lanes), [3, 4, 2, 1]);
    }

    #[test]
    fn the_last_lane_has_its_turn() {
        let mut lanes = Lanes::default();
        lanes.push(write(100, status(ClaimPhase::Pending)));
        (0..20).for_each(|id| lanes.push(write(id, status(ClaimPhase::Bound))));
        let order = ids(&mut lanes);
        assert_eq!(order.iter().position(|id| *id == 100), Some(TURNS_BEFORE_LAST as usize), "{order:?}");
        assert_eq!(order.len(), 21);
    }
}
