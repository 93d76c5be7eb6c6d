//! Refusals that another client overwrites as often as they are written, as a second controller with another system
//! namespace does: each would correct the other at once, thousands of times a second. After a few times a refusal is
//! written again only after pauses that grow. Only refusals are contested: nothing else is written twice.

use crate::model::{Name, Time, Uid};
use std::collections::BTreeMap;

/// So often a refusal is corrected at once: a user may have edited it by hand.
const AT_ONCE: u32 = 3;
const PAUSE_MS_FIRST: i64 = 1_000;
const PAUSE_MS_MAX: i64 = 600_000;

/// Refusals that were written over another message, by claim.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Contests {
    of: BTreeMap<Uid, Contest>,
}

#[derive(Clone, Debug)]
struct Contest {
    message: Name,
    /// Whether it was seen on the claim since.
    landed: bool,
    /// How often it was overwritten.
    lost: u32,
    /// When it may be written again.
    until: Time,
}

/// Whether a refusal may be written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(in crate::engine) struct Contested {
    /// Another client overwrites it again and again: not now.
    pub waits: bool,
    /// A pause has begun, which ends then.
    pub paused_until: Option<Time>,
    /// This is the first pause: the user should know.
    pub is_first_pause: bool,
}

impl Contests {
    pub fn is_empty(&self) -> bool {
        self.of.is_empty()
    }

    pub fn forget(&mut self, claim: &Uid) {
        self.of.remove(claim);
    }

    /// Judges a refusal that is to be written to a claim, or is there already. `shown` is the message on the claim.
    pub fn judge(&mut self, claim: &Uid, shown: &str, message: &str, now: Time) -> Contested {
        let contest = self.of.get_mut(claim).filter(|contest| &*contest.message == message);
        if shown == message {
            contest.into_iter().for_each(|contest| contest.landed = true);
            return Contested::default();
        }
        let Some(contest) = contest else {
            let first = Contest { message: message.into(), landed: false, lost: 0, until: now };
            self.of.insert(claim.clone(), first);
            return Contested::default();
        };
        let mut contested = Contested::default();
        if contest.landed {
            contest.landed = false;
            contest.lost += 1;
            if contest.lost > AT_ONCE {
                contest.until = now.backed_off(contest.lost - AT_ONCE, PAUSE_MS_FIRST, PAUSE_MS_MAX);
                contested.paused_until = Some(contest.until);
            }
            contested.is_first_pause = contest.lost == AT_ONCE + 1;
        }
        Contested { waits: now < contest.until, ..contested }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_that_is_overwritten_too_often_waits_longer() {
        let (mut contests, claim) = (Contests::default(), Uid::from("orders"));
        let mut now = Time(0);
        let mut overwrite = |now: Time| {
            contests.judge(&claim, "ours", "ours", now);
            contests.judge(&claim, "theirs", "ours", now)
        };
        for _ in 0..=AT_ONCE {
            assert_eq!(overwrite(now), Contested::default());
        }
        for (nth, pause) in [1_000, 2_000, 4_000].into_iter().enumerate() {
            let contested = overwrite(now);
            let until = now.plus_ms(pause);
            let is_first_pause = nth == 0;
            assert_eq!(contested, Contested { waits: true, paused_until: Some(until), is_first_pause });
            now = until;
        }
    }
}
