//! The desired state of a database, from its LogicalDatabase, its claim and the time. The provider verifies against the
//! API that the claim was deleted before it takes anything away.

use conductor::api::common::ReclaimPolicy;
use conductor::model::Time;

/// The desired state of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DesiredState {
    /// Its claim uses it.
    Serve,
    /// It stays, and no user can log in.
    Retain,
    /// No user can log in, and it can be restored until then; the end is unknown before the quarantine begins.
    Quarantine(Option<Time>),
    /// It is dropped.
    Drop,
}

/// What decides what happens to a database without a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// Whether it is retained or deleted.
    pub reclaim_policy: ReclaimPolicy,
    /// For how long it can be restored.
    pub quarantine_ms: i64,
    /// When its quarantine began.
    pub quarantined_at: Option<Time>,
    /// Whether a user requested to restore it.
    pub is_undeleted: bool,
}

/// Decides the desired state of a database whose claim uses it, or no longer does.
pub fn find_desired_state(is_claimed: bool, end: &End, now: Time) -> DesiredState {
    match (is_claimed, end.reclaim_policy, end.quarantined_at) {
        (true, _, _) => DesiredState::Serve,
        (false, ReclaimPolicy::Retain, _) => DesiredState::Retain,
        (false, ReclaimPolicy::Delete, _) if end.is_undeleted => DesiredState::Retain,
        (false, ReclaimPolicy::Delete, None) => DesiredState::Quarantine(None),
        (false, ReclaimPolicy::Delete, Some(since)) => match since.plus_ms(end.quarantine_ms) {
            over if now >= over => DesiredState::Drop,
            over => DesiredState::Quarantine(Some(over)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_dropped_before_its_quarantine_is_over() {
        let end = |reclaim_policy, quarantined_at, is_undeleted| End {
            reclaim_policy,
            quarantine_ms: 100,
            quarantined_at,
            is_undeleted,
        };
        let (keep, delete) = (ReclaimPolicy::Retain, ReclaimPolicy::Delete);
        for (claimed, end, now, desired_state) in [
            (true, end(delete, Some(Time(0)), false), 500, DesiredState::Serve),
            (true, end(keep, None, false), 500, DesiredState::Serve),
            (false, end(keep, None, false), 500, DesiredState::Retain),
            (false, end(keep, Some(Time(0)), false), 500, DesiredState::Retain),
            (false, end(delete, None, false), 500, DesiredState::Quarantine(None)),
            (false, end(delete, Some(Time(450)), false), 500, DesiredState::Quarantine(Some(Time(550)))),
            (false, end(delete, Some(Time(400)), false), 500, DesiredState::Drop),
            (false, end(delete, Some(Time(400)), true), 500, DesiredState::Retain),
        ] {
            assert_eq!(
                find_desired_state(claimed, &end, Time(now)),
                desired_state,
                "{claimed} {end:?} {now}"
            );
        }
    }
}
