//! A refusal that another client overwrites as often as it is written, as a second controller with another system
//! namespace does: each would correct the other at once, thousands of times a second. After a few times it is written
//! again only after pauses that grow. What a claim says is all that this is about: nothing else is written twice here.

use super::{Binding, Engine, Target};
use crate::api::reasons;
use crate::model::{Claim, Kind, Name, Time, Uid};

/// So often a refusal is corrected at once: somebody may have edited it by hand.
const AT_ONCE: u32 = 3;
const PAUSE_MS_FIRST: i64 = 1_000;
const PAUSE_MS_MAX: i64 = 600_000;

/// What was written to a claim in place of something else.
#[derive(Clone, Debug)]
pub(super) struct Contest {
    message: Name,
    /// Whether it was seen on the claim since.
    landed: bool,
    /// How often it was overwritten.
    lost: u32,
    /// When it may be written again.
    until: Time,
}

impl Engine {
    /// Forgets what was contested of a claim that is refused no longer: what this engine writes to it then is no other
    /// client's.
    pub(super) fn end_contest(&mut self, uid: &Uid) {
        let may_be_refused = matches!(self.bindings.get(uid), None | Some(Binding::Waiting(_)));
        if !self.contests.is_empty() && !may_be_refused {
            self.contests.remove(uid);
        }
    }

    /// Whether the refusal of a claim is not to be written now, because another client overwrites it again and again.
    /// Asked where it is to be written, and where it is there already.
    pub(super) fn is_contested(&mut self, claim: &Claim, message: &str, now: Time) -> bool {
        let bound = claim.status.conditions.iter().find(|condition| &*condition.kind == reasons::BOUND);
        let Some(shown) = bound.map(|bound| bound.message.clone()) else { return false };
        let uid = &claim.meta.uid;
        let contest = self.contests.get_mut(uid).filter(|contest| &*contest.message == message);
        if *shown == *message {
            contest.into_iter().for_each(|contest| contest.landed = true);
            return false;
        }
        let Some(contest) = contest else {
            let first = Contest { message: message.into(), landed: false, lost: 0, until: now };
            self.contests.insert(uid.clone(), first);
            return false;
        };
        if contest.landed {
            contest.landed = false;
            contest.lost += 1;
            if contest.lost > AT_ONCE {
                let doubled = PAUSE_MS_FIRST.checked_shl((contest.lost - AT_ONCE - 1).min(16));
                contest.until = now.plus_ms(doubled.unwrap_or(PAUSE_MS_MAX).min(PAUSE_MS_MAX));
                self.retries.insert((contest.until, Target::Claim(uid.clone())));
            }
            if contest.lost == AT_ONCE + 1 {
                let message = "another client changes the status of this claim each time that this controller writes it: \
                               look for a second controller with another system namespace. It is written again with \
                               growing pauses"
                    .to_owned();
                self.tell(Kind::Claim(claim.ty), &claim.meta.key, uid, true, "StatusContested", message);
            }
        }
        self.contests.get(uid).is_some_and(|contest| now < contest.until)
    }
}
