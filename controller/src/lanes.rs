//! The order in which calls go out when there are more than may be on their way: what an application waits
//! for first. Nothing is dropped, and no lane is starved.

use super::writer::Job;
use conductor::action::{Change, Write};
use conductor::model::ClaimPhase;
use std::collections::VecDeque;

/// After so many calls from the lanes before it, the last of those that somebody waits for has its turn.
const TURNS_BEFORE_LAST: u32 = 8;
/// Calls that nobody waits for, on their way while others are. An API server that is busy is as slow as it has calls:
/// in a burst these would take half of what it can do from the claims that are not Bound yet.
const PATIENT_BESIDE_OTHERS: usize = 1;
/// The same while there are no others; one that comes meanwhile finds the API server not too busy.
const PATIENT_ALONE: usize = 4;

/// Calls that wait for their turn.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    lanes: [VecDeque<Job>; 3],
    patient: VecDeque<Job>,
    turns: u32,
}

/// Calls that are on their way.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Flying {
    pub patient: usize,
    pub others: usize,
}

impl Flying {
    pub fn count(&mut self, patient: bool) -> &mut usize {
        if patient { &mut self.patient } else { &mut self.others }
    }
}

impl Lanes {
    pub fn push(&mut self, job: Job) {
        match is_patient(&job) {
            true => self.patient.push_back(job),
            false => self.lanes[lane(&job)].push_back(job),
        }
    }

    /// The next call, and whether it is one that nobody waits for.
    pub fn pop(&mut self, flying: Flying) -> Option<(Job, bool)> {
        let is_calm = flying.others == 0 && self.lanes.iter().all(VecDeque::is_empty);
        let most = if is_calm { PATIENT_ALONE } else { PATIENT_BESIDE_OTHERS };
        if flying.patient < most
            && let Some(job) = self.patient.pop_front()
        {
            return Some((job, true));
        }
        self.pop_awaited().map(|job| (job, false))
    }

    fn pop_awaited(&mut self) -> Option<Job> {
        let [first, second, last] = &mut self.lanes;
        if self.turns >= TURNS_BEFORE_LAST && !last.is_empty() {
            self.turns = 0;
            return last.pop_front();
        }
        self.turns = self.turns.saturating_add(1);
        first.pop_front().or_else(|| second.pop_front()).or_else(|| last.pop_front())
    }

    pub fn len(&self) -> usize {
        self.patient.len() + self.lanes.iter().map(VecDeque::len).sum::<usize>()
    }
}

fn is_patient(job: &Job) -> bool {
    matches!(job, Job::Write(Write { may_wait: true, .. }))
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
    use conductor::model::{Kind, ObjectKey, TypeId, Uid, WriteId};

    fn write(id: u64, change: Change) -> Job {
        let kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);
        let (key, uid) = (ObjectKey::new("a", "b"), Uid::from("u"));
        Job::Write(Write { id: WriteId(id), kind, key, uid, revision: None, may_wait: false, change })
    }

    fn patient(id: u64) -> Job {
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

    fn ids(lanes: &mut Lanes) -> Vec<u64> {
        let id = |job| if let Job::Write(write) = job { Some(write.id.0) } else { None };
        std::iter::from_fn(|| lanes.pop(Flying::default())).filter_map(|(job, _)| id(job)).collect()
    }

    /// Calls in a row.
    const ROUND: usize = 32;

    /// What goes out until no more may, with so many on their way already.
    fn sent(lanes: &mut Lanes, mut flying: Flying) -> Flying {
        for _ in 0..ROUND {
            let Some((_, patient)) = lanes.pop(flying) else { break };
            *flying.count(patient) += 1;
        }
        flying
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

    #[test]
    fn what_nobody_waits_for_stands_back_and_is_never_starved() {
        let mut lanes = Lanes::default();
        (0..20).for_each(|id| lanes.push(patient(id)));
        let calm = sent(&mut lanes, Flying::default());
        assert_eq!((calm.patient, calm.others), (PATIENT_ALONE, 0));
        let busy = sent(&mut lanes, Flying { patient: 0, others: 30 });
        assert_eq!((busy.patient, busy.others), (PATIENT_BESIDE_OTHERS, 30));
        (100..140).for_each(|id| lanes.push(write(id, status(ClaimPhase::Bound))));
        let burst = sent(&mut lanes, Flying::default());
        assert_eq!((burst.patient, burst.others), (PATIENT_BESIDE_OTHERS, ROUND - PATIENT_BESIDE_OTHERS));
        assert_eq!(lanes.len(), 60 - PATIENT_ALONE - PATIENT_BESIDE_OTHERS - ROUND);
    }
}
