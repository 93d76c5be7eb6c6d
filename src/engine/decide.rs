//! Taking ready claims from the queue through one scheduling cycle each, or a batch of them through one together.

use super::memory::Target;
use super::{Binding, Engine, Refused};
use crate::api::reasons;
use crate::api::reasons::bound as reason;
use crate::cache::ResourceId;
use crate::lifecycle::{cannot_be_made, provisioned_name};
use crate::model::profile::BatchMode;
use crate::model::{Claim, Class, Kind, Name, Time, Uid};
use crate::predicates::{Considered, Predicate, Refusal};
use crate::queue::{EquivalenceKey, Wait};
use crate::scheduler::{
    Decision, Placement, Request, gate_resource, is_placeable, place_together, prepare, schedule_one,
    verify_placement,
};
use std::sync::Arc;

/// At most so many claims are placed together.
const BATCH_MAX: usize = 512;

impl Engine {
    /// Decides about claims until none is ready or the budget is spent.
    pub(super) fn decide(&mut self, budget: &mut usize, now: Time) {
        while *budget > 0
            && let Some(uid) = self.queue.pop()
        {
            if self.places_together(&uid) {
                let placed = self.decide_together(uid, now);
                *budget = budget.saturating_sub(placed);
            } else {
                *budget -= 1;
                self.decide_one(&uid, now);
            }
        }
    }

    fn decide_one(&mut self, uid: &Uid, now: Time) {
        let Some(claim) = self.state.claim(uid).cloned() else { return self.queue.remove(uid) };
        self.stats.decisions += 1;
        match prepare(&self.state, &claim) {
            Err(refused) => {
                let (refusal, group) = *refused;
                let reason = condition_reason(&group.wait, &refusal);
                self.refuse(&claim, reason, Arc::new(refusal), group, now);
            }
            Ok(request) => {
                let decision = schedule_one(&self.state, &request, &mut self.memo);
                self.carry_out(&request, decision, now);
            }
        }
    }

    fn carry_out(&mut self, request: &Request<'_>, decision: Decision, now: Time) {
        match decision {
            Decision::Bind { resource, class } => self.bind(request, resource, class),
            Decision::Provision { class } => self.provision(request, class),
            Decision::Await { class, resource } => self.await_resource(request, class, resource),
            Decision::Disagree { resource, refusal } => {
                self.report_disagreement(request, resource, refusal, now);
            }
            Decision::Refuse { refusal, wait } => {
                let group = request.equivalence_key(wait);
                let reason = match condition_reason(&group.wait, &refusal) {
                    reason::NO_MATCH if request.alone => reason::PROVISIONING_FAILED,
                    reason => reason,
                };
                self.refuse(request.claim, reason, refusal, group, now);
            }
        }
    }

    fn bind(&mut self, request: &Request<'_>, resource: ResourceId, class: Option<Name>) {
        self.assume_binding(request.claim, resource, class, request.wants.requests.clone());
        self.queue.pass_on(&request.claim.meta.uid, request.namespace());
    }

    /// The index offers a resource that a predicate refuses. The disagreement is counted and reported, and the resource is
    /// indexed anew. The claim is not bound: it waits for a resource to change.
    fn report_disagreement(
        &mut self,
        request: &Request<'_>,
        resource: ResourceId,
        refusal: Arc<Refusal>,
        now: Time,
    ) {
        self.stats.index_disagreements += 1;
        let (claim, message) = (request.claim, refusal.message.clone());
        self.work.emit(Kind::Claim(claim.ty), &claim.meta, true, "IndexDisagreement", message);
        self.state.reindex_afresh(resource);
        self.refuse(claim, reason::NO_MATCH, refusal, request.equivalence_key(Wait::Match), now);
    }

    fn provision(&mut self, request: &Request<'_>, class: Name) {
        let claim = request.claim;
        if let Some(made) = self.find_made(claim, &class) {
            return self.bind(request, made, Some(class));
        }
        let of_class = self.state.classes.get(&(claim.ty, class.clone()));
        let charge = of_class.and_then(|of_class| request.charge_made(of_class));
        let amounts = charge.map_or_else(|| request.wants.requests.clone(), |charge| charge.amounts);
        self.charge(claim, Some(class.clone()), amounts);
        let resource = provisioned_name(claim, &class);
        let shared = self.state.classes.get(&(claim.ty, class.clone())).is_some_and(Class::makes_shared);
        if shared && !claim.is_exclusive() {
            self.state.shared_pending.promise(claim.ty, &class, &resource);
        }
        self.provisioning.begin(claim.ty, &resource, &claim.meta.uid);
        self.bindings.insert(claim.meta.uid.clone(), Binding::Provisioning { class, resource });
        self.work.touch(Target::Claim(claim.meta.uid.clone()));
        self.queue.pass_on(&claim.meta.uid, request.namespace());
    }

    /// A resource is about to be provisioned for another claim and may serve this one too: it counts as one that is
    /// provisioned for, and is decided about anew as soon as that resource exists, or will not be created.
    fn await_resource(&mut self, request: &Request<'_>, class: Name, resource: Name) {
        let claim = request.claim;
        let uid = claim.meta.uid.clone();
        self.charge(claim, Some(class.clone()), request.wants.requests.clone());
        self.state.shared_pending.wait(claim.ty, &class, &resource, uid.clone());
        self.bindings.insert(uid.clone(), Binding::Provisioning { class, resource });
        self.queue.pass_on(&uid, request.namespace());
        self.work.touch(Target::Claim(uid));
    }

    /// The resource that was provisioned for this claim before and that no claim holds: a create that is retried meets
    /// itself.
    fn find_made(&self, claim: &Claim, class: &Name) -> Option<ResourceId> {
        let id = self.state.find_resource(claim.ty, &provisioned_name(claim, class))?;
        let entry = self.state.resource(id)?;
        let ours = entry.resource.provisioned_for.as_ref() == Some(&claim.meta.uid);
        let usable = !entry.resource.meta.deleting && cannot_be_made(&entry.resource).is_none();
        (ours && usable && entry.refs().next().is_none()).then_some(id)
    }

    pub(super) fn refuse(
        &mut self,
        claim: &Claim,
        reason: &'static str,
        refusal: Arc<Refusal>,
        group: EquivalenceKey,
        now: Time,
    ) {
        let uid = &claim.meta.uid;
        if let Some(predicate) = refusal.main_predicate() {
            *self.stats.refusals.entry(predicate).or_default() += 1;
        }
        let known = match self.bindings.get(uid) {
            Some(Binding::Waiting(Some(known))) => Some(known.reason),
            _ => None,
        };
        // In a burst of offers each claim that waits is next in line once: a write each for counts that hold for moments.
        if known != Some(reason) || !self.queue.is_next_in_line(uid) {
            self.bindings.insert(uid.clone(), Binding::Waiting(Some(Refused { reason, refusal })));
            self.work.touch(Target::Claim(uid.clone()));
        }
        self.queue.park(uid, group, &claim.meta.key.namespace, now);
    }

    fn places_together(&self, uid: &Uid) -> bool {
        // Only a profile can request it, and most clusters have none.
        if self.state.profiles.is_empty() {
            return false;
        }
        let Some(claim) = self.state.claim(uid) else { return false };
        let profile = prepare(&self.state, claim).map(|request| request.profile.batch);
        profile == Ok(BatchMode::Optimal) && claim.resource_name.is_none()
    }

    /// Takes every ready claim that is placed together, up to a bound, and decides about them at once.
    /// Those that get no place are then decided about one by one: they may share, or be provisioned for.
    fn decide_together(&mut self, first: Uid, now: Time) -> usize {
        let upcoming: Vec<Uid> = self.queue.upcoming().take(BATCH_MAX - 1).cloned().collect();
        let mut batch = vec![first];
        batch.extend(upcoming.into_iter().filter(|uid| self.places_together(uid)));
        for uid in &batch[1..] {
            self.queue.take(uid);
        }
        let claims: Vec<Arc<Claim>> = batch.iter().filter_map(|uid| self.state.claim(uid).cloned()).collect();
        let requests: Vec<Request<'_>> = claims.iter().filter_map(|c| prepare(&self.state, c).ok()).collect();
        let placed = match self.admit(&requests) {
            admitted if admitted.len() < 2 => Vec::new(),
            admitted => match place_together(&self.state, &admitted) {
                Placement::Together(placed) => placed,
                Placement::OneByOne(why) => {
                    self.stats.batches_given_up += 1;
                    let first = admitted[0].claim;
                    let message = format!("placed one by one: {why}");
                    self.work.emit(
                        Kind::Claim(first.ty),
                        &first.meta,
                        false,
                        reasons::event::BATCH_TOO_LARGE,
                        message,
                    );
                    Vec::new()
                }
            },
        };
        for (uid, resource) in placed {
            let request = requests.iter().find(|r| r.claim.meta.uid == uid);
            // Each is within quotas, together they may not be; a claim that is over quota then is decided about alone.
            let is_within = |request: &&Request<'_>| gate_resource(&self.state, request, resource).is_none();
            if let Some(request) = request.filter(is_within) {
                if verify_placement(&self.state, request, resource).is_some() {
                    // Decided alone, the claim waits and reports why, unless the index has something else for it.
                    self.stats.index_disagreements += 1;
                    continue;
                }
                self.stats.decisions += 1;
                let class =
                    self.state.resource(resource).and_then(|e| e.resource.offer.as_ref().ok()?.class.clone());
                self.bind(request, resource, class);
            }
        }
        for uid in &batch {
            if matches!(self.bindings.get(uid), Some(Binding::Waiting(_))) {
                self.decide_one(uid, now);
            }
        }
        batch.len()
    }

    /// The requests that limits allow and quotas allow jointly, in the order of the queue, and that no resource is kept for.
    fn admit<'a>(&mut self, requests: &[Request<'a>]) -> Vec<Request<'a>> {
        let mut admitted = Vec::new();
        for request in requests {
            let charge = request.charge(request.first_class());
            let kept = self.state.reserved_for(request.claim.ty, &request.claim.meta.key).next().is_some();
            let checks_quota = request.profile.asks(Predicate::Quota);
            let placeable = !kept && is_placeable(request);
            if placeable && (!checks_quota || self.state.quota_usage.overruns(&charge, false).is_empty()) {
                self.state.quota_usage.charge(&request.claim.meta.uid, charge);
                admitted.push(request.clone());
            }
        }
        // Charged only to count them together; each is charged again when it is bound.
        for request in &admitted {
            self.state.quota_usage.release(&request.claim.meta.uid);
        }
        admitted
    }
}

/// Whether a resource exists, or a class that would provision one, that a quota alone keeps from the claim.
fn is_quota_alone(refusal: &Refusal) -> bool {
    refusal
        .reasons
        .iter()
        .any(|reason| reason.predicate == Predicate::Quota && reason.of != Considered::Claim)
}

/// The reason for a refusal on the claim's condition.
fn condition_reason(wait: &Wait, refusal: &Refusal) -> &'static str {
    match wait {
        Wait::MatchOrQuota(_) if is_quota_alone(refusal) => reason::QUOTA_EXCEEDED,
        Wait::Match | Wait::MatchOrQuota(_) => reason::NO_MATCH,
        Wait::Quota(_) | Wait::ResourceOrQuota(..) => reason::QUOTA_EXCEEDED,
        Wait::Limits(_) => reason::LIMITS_EXCEEDED,
        Wait::Itself(_) | Wait::Profile(_) => reason::INVALID_SPEC,
        Wait::Resource(_) => match refusal.main_predicate() {
            Some(Predicate::ResourceName) => reason::WAITING_FOR_RESOURCE,
            Some(Predicate::Reserved | Predicate::Sharing) => reason::RESOURCE_TAKEN,
            _ => reason::RESOURCE_MISMATCH,
        },
    }
}
