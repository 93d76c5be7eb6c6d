//! A resource as a claim saw it at its turn: without the claims that got it later. Turns follow the queue's order:
//! priority, then creation time, then key. A claim that was refused and retried later counts as if it had been served
//! at its first turn.

use conductor::cache::{ResourceEntry, State};
use conductor::model::{Claim, ClaimRef, Name, ObjectKey, Time};
use conductor::predicates::{Candidate, ClassQuery, Predicate, Query, steps};
use conductor::scheduler::Request;
use std::borrow::Cow;
use std::cmp::Reverse;

/// A resource at a claim's turn.
pub(super) struct ResourceAtTurn<'a> {
    state: &'a State,
    request: &'a Request<'a>,
    entry: ResourceEntry,
}

impl<'a> ResourceAtTurn<'a> {
    /// Returns `None` if there is no such resource. Bindings in the input precede all decisions of the plan; among
    /// themselves (`is_bound`: the claim has one too) they follow the queue's order.
    pub fn of(
        state: &'a State,
        request: &'a Request<'a>,
        resource: &Name,
        now: Time,
        is_bound: bool,
    ) -> Option<ResourceAtTurn<'a>> {
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
        Some(ResourceAtTurn { state, request, entry })
    }

    /// Whether a refusal of now applied then. Only claims come and go during a plan.
    pub fn lacks(&self, predicate: Predicate) -> bool {
        let (Ok(offer), Some(standing)) = (&self.entry.resource.offer, self.state.standing(&self.entry))
        else {
            return true;
        };
        if !matches!(predicate, Predicate::Reserved | Predicate::Sharing | Predicate::Capacity) {
            return true;
        }
        let free = Cow::Owned(offer.capacity.saturating_sub(&self.entry.taken()));
        let candidate = Candidate { offer, standing, free };
        let (namespace, wants) = (self.request.namespace(), &*self.request.wants);
        let query = Query { namespace, class: ClassQuery::Any, wants, headroom: None };
        let mut checks = steps(self.entry.resource.ty).iter().filter(|step| step.predicate == predicate);
        checks.any(|step| step.refuses(&query, &candidate))
    }
}

/// Sorts claims by turn, earliest first.
fn turn(claim: &Claim, now: Time) -> (Reverse<i32>, Time, &ObjectKey) {
    (Reverse(claim.priority), claim.meta.created.unwrap_or(now), &claim.meta.key)
}
