//! What is to become of a database, from its record, its claim and the time. Whether the claim is really gone is
//! asked live before anything is taken away; that is the provider's.

use conductor::api::common::ReclaimPolicy;
use conductor::model::Time;

/// What is to become of a database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Goal {
    /// Its claim uses it.
    Serve,
    /// It stays, and nobody logs in.
    Retain,
    /// Nobody logs in, and it can still be had back until then; until when is not known before it begins.
    Quarantine(Option<Time>),
    /// It goes.
    Drop,
}

/// What a record says of the end of its database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct End {
    /// What becomes of it.
    pub policy: ReclaimPolicy,
    /// For how long it can be had back.
    pub quarantine_ms: i64,
    /// Since when it is in quarantine.
    pub quarantined_at: Option<Time>,
    /// Whether somebody has asked for it back.
    pub is_undeleted: bool,
}

/// What is to become of a database whose claim uses it, or does not any more.
pub fn find_goal(is_claimed: bool, end: &End, now: Time) -> Goal {
    match (is_claimed, end.policy, end.quarantined_at) {
        (true, _, _) => Goal::Serve,
        (false, ReclaimPolicy::Retain, _) => Goal::Retain,
        (false, ReclaimPolicy::Delete, _) if end.is_undeleted => Goal::Retain,
        (false, ReclaimPolicy::Delete, None) => Goal::Quarantine(None),
        (false, ReclaimPolicy::Delete, Some(since)) => match since.plus_ms(end.quarantine_ms) {
            over if now >= over => Goal::Drop,
            over => Goal::Quarantine(Some(over)),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_dropped_before_its_quarantine_is_over() {
        let end = |policy, quarantined_at, is_undeleted| End {
            policy,
            quarantine_ms: 100,
            quarantined_at,
            is_undeleted,
        };
        let (keep, delete) = (ReclaimPolicy::Retain, ReclaimPolicy::Delete);
        for (claimed, end, now, goal) in [
            (true, end(delete, Some(Time(0)), false), 500, Goal::Serve),
            (true, end(keep, None, false), 500, Goal::Serve),
            (false, end(keep, None, false), 500, Goal::Retain),
            (false, end(keep, Some(Time(0)), false), 500, Goal::Retain),
            (false, end(delete, None, false), 500, Goal::Quarantine(None)),
            (false, end(delete, Some(Time(450)), false), 500, Goal::Quarantine(Some(Time(550)))),
            (false, end(delete, Some(Time(400)), false), 500, Goal::Drop),
            (false, end(delete, Some(Time(400)), true), 500, Goal::Retain),
        ] {
            assert_eq!(find_goal(claimed, &end, Time(now)), goal, "{claimed} {end:?} {now}");
        }
    }
}
