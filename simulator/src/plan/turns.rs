//! A resource as a claim found it when it was its turn: without those who were given it afterwards. Turns are not kept, they
//! are told from the claims as the queue tells them: priority, then time, then place. A claim that was refused and tried
//! again later counts as if it had been served at its first turn.

use conductor::cache::{ResourceEntry, Standing, State};
use conductor::model::{Claim, ClaimRef, Name, ObjectKey, Predicate, Time};
use conductor::scheduler::Request;
use std::cmp::Reverse;

/// A resource at the turn of a claim.
pub(super) struct Then<'a> {
    state: &'a State,
    request: &'a Request<'a>,
    entry: ResourceEntry,
}

impl<'a> Then<'a> {
    /// Nothing where there is no such resource. Bindings that were given are older than what a plan decides; among
    /// themselves, which `is_bound` says the claim is too, they came in turn.
    pub fn of(
        state: &'a State,
        request: &'a Request<'a>,
        resource: &Name,
        now: Time,
        is_bound: bool,
    ) -> Option<Then<'a>> {
        let mut entry = state.resource(state.find_resource(request.claim.ty, resource)?)?.clone();
        let own = turn(request.claim, now);
        let came_before = |r: &ClaimRef| {
            let holder = r.uid.as_ref().and_then(|uid| state.claim(uid));
            holder.is_none_or(|holder| turn(holder, now) <= own)
        };
        entry.assumed.retain(came_before);
        if is_bound {
            entry.resource.claim_refs.retain(|r| came_before(r));
        }
        Some(Then { state, request, entry })
    }

    /// Whether what is lacking now was lacking then. Only claims come and go during a plan: all else was as it is.
    pub fn lacks(&self, predicate: Predicate) -> bool {
        let Ok(offer) = &self.entry.resource.offer else { return true };
        let wants = &self.request.wants;
        let standing = self.state.standing(&self.entry);
        match predicate {
            Predicate::Reserved => standing == Standing::Reserved,
            Predicate::Sharing => {
                let is_crowded = standing == Standing::Shared && wants.exclusive;
                is_crowded || standing == Standing::Full || !offer.is_open_to(self.request.namespace())
            }
            Predicate::Capacity => {
                let free = offer.capacity.saturating_sub(&self.entry.taken());
                free.find_lacking(&wants.requests).is_some()
            }
            _ => true,
        }
    }
}

/// Whose turn it is first: the less, the earlier.
fn turn(claim: &Claim, now: Time) -> (Reverse<i32>, Time, &ObjectKey) {
    (Reverse(claim.priority), claim.meta.created.unwrap_or(now), &claim.meta.key)
}
