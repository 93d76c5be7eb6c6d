//! What the API said: to a write, or to a live read. An answer that nobody can be sure of is settled by reading.

use super::{Binding, Effect, Engine, Flight, Target};
use crate::api::reasons;
use crate::cache::{Departure, ResourceId};
use crate::event::Answer;
use crate::model::WriteId;
use crate::model::inputs;
use crate::model::{Kind, Name, Object, ObjectKey, PartId, Revision, Time, TypeId, Uid};

/// First pause before a failed write is looked at again; doubles with each further failure.
const RETRY_MS_FIRST: i64 = 500;
/// Longest pause.
const RETRY_MS_MAX: i64 = 30_000;
/// Writes in a row that nobody answered before people are told.
const FAILURES_TOLD: u32 = 3;

impl Engine {
    pub(super) fn answered(&mut self, id: WriteId, answer: Answer, now: Time) {
        let Some(Flight { target, effect, from }) = self.landed(id) else { return };
        let target = match target {
            Target::Part(part) => return self.part_answered(part, effect, answer, now),
            Target::Publication(claim) => return self.publication_answered(claim, answer, now),
            published @ Target::Published(..) => return self.withdrawal_answered(published, answer, now),
            target @ (Target::Claim(_) | Target::Resource(..) | Target::Class(..) | Target::Quota(_)) => {
                target
            }
        };
        if let Target::Resource(ty, name) = &target {
            self.dirty_maker(*ty, name);
        }
        match answer {
            // It was done and nothing is different: the object says something that is read here as something else. Written
            // again at once, it would be written for ever.
            Answer::Written(object) if from.is_some_and(|from| is_still(from, &object)) => {
                self.observe(&object, now);
                self.tell_idle(&target);
                self.retry_later(target, now);
            }
            Answer::Written(object) => {
                self.succeeded(&target, effect);
                self.observe(&object, now);
                self.dirty.insert(target);
            }
            Answer::PartWritten(_) | Answer::Published(_) | Answer::Incomplete(_) | Answer::Taken(_) => {
                self.free(target);
            }
            Answer::Deleted => {
                self.succeeded(&target, effect);
                self.read_target(&target);
            }
            Answer::Conflict | Answer::Missing | Answer::Exists => {
                self.stats.conflicts += 1;
                self.give_back(&target, now);
                self.read_target(&target);
            }
            Answer::Invalid(why) => {
                self.tell_refused(&target, &why);
                self.give_back(&target, now);
                self.refused(target, effect, why, now);
            }
            // It may have been done: what is assumed stays until a read tells.
            Answer::Unknown(why) => self.unanswered(target, effect, why, now),
        }
    }

    pub(super) fn succeeded(&mut self, target: &Target, effect: Effect) {
        self.failures.remove(target);
        self.troubles.remove(&(target.clone(), effect));
    }

    /// The API said no: that is noted, and tried again later.
    pub(super) fn refused(&mut self, target: Target, effect: Effect, why: String, now: Time) {
        self.troubles.insert((target.clone(), effect), why);
        self.retry_later(target, now);
    }

    /// The API did not say: that is noted only where it goes on.
    pub(super) fn unanswered(&mut self, target: Target, effect: Effect, why: String, now: Time) {
        if self.failures.get(&target).is_some_and(|failures| *failures + 1 >= FAILURES_TOLD) {
            self.troubles.insert((target.clone(), effect), why);
        }
        self.retry_later(target, now);
    }

    /// A create is over, one way or the other: the claim it was for is looked at again.
    pub(super) fn dirty_maker(&mut self, ty: TypeId, name: &Name) {
        if let Some(uid) = self.makers.get(&(ty, name.clone())) {
            self.dirty.insert(Target::Claim(uid.clone()));
        }
    }

    /// A write on a resource did not land: what was assumed of it and is not on it goes back to the queue.
    fn give_back(&mut self, target: &Target, now: Time) {
        let Target::Resource(ty, name) = target else { return };
        let Some(id) = self.state.find_resource(*ty, name) else { return };
        let assumed = self.state.resource(id).map(|e| e.assumed.clone()).unwrap_or_default();
        // Taken before anything is given back: what we give back ourselves is news to others, and no
        // reason for the same claim to try the same write again without a pause.
        let helpful = self.helpful;
        assumed.into_iter().filter_map(|a| a.uid).for_each(|uid| self.take_back(id, &uid, helpful, now));
    }

    /// Takes a resource back that was assumed for a claim, and decides what becomes of the claim.
    /// `helpful` is the count of helpful events before anything was taken back.
    fn take_back(&mut self, id: ResourceId, uid: &Uid, helpful: u64, now: Time) {
        let (since, resource) = match self.bindings.get(uid) {
            Some(Binding::Assumed { since, resource, .. }) => (*since, resource.clone()),
            _ => return self.state.forget(id, uid),
        };
        self.unassume(uid);
        // Also where its binding names another resource: what is taken back here is taken back.
        self.state.forget(id, uid);
        let Some(claim) = self.state.claim(uid) else { return };
        if claim.was_bound() {
            // Its data is there and nowhere else. It keeps its charge and is settled once the resource
            // has been read; as a claim that waits it could be given other data.
            self.doubted.entry((claim.ty, resource.clone())).or_default().insert(uid.clone());
            self.queue.remove(uid);
            self.bindings.insert(uid.clone(), Binding::Bound { resource });
            return;
        }
        let quotas = self.state.ledger.release(uid);
        self.dirty.extend(quotas.iter().cloned().map(Target::Quota));
        self.bindings.insert(uid.clone(), Binding::Waiting(None));
        self.queue.back_off(uid, helpful > since, now);
        self.wake_for_quotas(&quotas);
    }

    pub(super) fn retry_later(&mut self, target: Target, now: Time) {
        // Until it has been read again nothing more is written to it.
        self.busy.insert(target.clone(), ());
        self.read_later(target, now);
    }

    /// Reads a target again after a pause that grows with every failure.
    pub(super) fn read_later(&mut self, target: Target, now: Time) {
        let failures = self.failures.entry(target.clone()).or_default();
        *failures += 1;
        let pause =
            RETRY_MS_FIRST.checked_shl((*failures - 1).min(16)).unwrap_or(RETRY_MS_MAX).min(RETRY_MS_MAX);
        self.retries.insert((now.plus_ms(pause), target));
    }

    fn tell_idle(&mut self, target: &Target) {
        let message =
            "the API took our write and nothing changed: it is tried again with growing pauses".to_owned();
        self.tell_of_write(target, "WriteWithoutEffect", message);
    }

    /// Tells whoever the write was for that the API does not accept it.
    pub(super) fn tell_refused(&mut self, target: &Target, why: &str) {
        self.tell_of_write(target, "WriteRefused", format!("the API refused our write: {why}"));
    }

    fn tell_of_write(&mut self, target: &Target, reason: &'static str, message: String) {
        let (kind, meta) = match target {
            Target::Claim(uid) => match self.state.claim(uid) {
                Some(claim) => (Kind::Claim(claim.ty), claim.meta.clone()),
                None => return,
            },
            Target::Resource(ty, name) | Target::Part(PartId { ty, resource: name, .. }) => {
                let entry = self.state.find_resource(*ty, name).and_then(|id| self.state.resource(id));
                let maker = self.makers.get(&(*ty, name.clone())).and_then(|uid| self.state.claim(uid));
                match (entry, maker) {
                    (Some(entry), _) => (Kind::Resource(*ty), entry.resource.meta.clone()),
                    (None, Some(claim)) => (Kind::Claim(*ty), claim.meta.clone()),
                    (None, None) => return,
                }
            }
            Target::Class(..) | Target::Quota(_) | Target::Publication(_) | Target::Published(..) => return,
        };
        self.tell(kind, &meta.key, &meta.uid, true, reason, message);
    }

    /// Reads what a target stands for, live. It stays busy until the answer.
    pub(super) fn read_target(&mut self, target: &Target) {
        let system = &self.config.system_namespace;
        let (kind, key) = match target {
            Target::Claim(uid) => match self.state.claim(uid) {
                Some(claim) => (Kind::Claim(claim.ty), claim.meta.key.clone()),
                None => {
                    self.busy.remove(target);
                    return;
                }
            },
            Target::Resource(ty, name) => (Kind::Resource(*ty), ObjectKey::new(system.clone(), name.clone())),
            Target::Class(ty, name) => (Kind::Class(*ty), ObjectKey::new(system.clone(), name.clone())),
            Target::Quota(key) => {
                let kind = if key.namespace.is_empty() { Kind::ClusterQuota } else { Kind::Quota };
                (kind, ObjectKey::new(key.namespace.clone(), key.name.clone()))
            }
            Target::Part(part) => return self.read_part_again(&part.clone()),
            Target::Publication(_) | Target::Published(..) => return self.try_publishing_again(target),
        };
        self.busy.insert(target.clone(), ());
        self.read(kind, key, None);
    }

    pub(super) fn read_answered(&mut self, kind: Kind, key: &ObjectKey, found: Option<Object>, now: Time) {
        let Some(asked) = self.reads.remove(&(kind, key.clone())) else { return };
        match found {
            Some(object) => {
                self.keep_written(&object);
                self.observe(&object, now);
            }
            None => {
                if let Some(uid) = self.known_uid(kind, key) {
                    self.observe_gone(kind, key, &uid, now);
                }
            }
        }
        match kind {
            Kind::Claim(ty) => self.claim_read(ty, key, &asked, now),
            Kind::Resource(ty) => self.resource_read(ty, &key.name, now),
            Kind::Class(ty) => self.free(Target::Class(ty, key.name.clone())),
            Kind::Quota | Kind::ClusterQuota => {
                let quota =
                    crate::cache::QuotaKey { namespace: key.namespace.clone(), name: key.name.clone() };
                self.free(Target::Quota(quota));
            }
            Kind::Limits | Kind::Profile | Kind::Namespace => {}
        }
    }

    pub(super) fn free(&mut self, target: Target) {
        if !self.flying.contains(&target) {
            self.busy.remove(&target);
        }
        self.dirty.insert(target);
    }

    /// Keeps a claim as it is written, where a resource is about to be made from it.
    fn keep_written(&mut self, object: &Object) {
        let (Kind::Claim(_), Some(uid)) = (object.kind, object.metadata.uid.as_deref()) else { return };
        if self.claims_to_keep.remove(uid) {
            self.written_claims.insert(Uid::from(uid), inputs::of_claim(object));
        }
    }

    fn known_uid(&self, kind: Kind, key: &ObjectKey) -> Option<Uid> {
        match kind {
            Kind::Claim(ty) => self.state.find_claim(ty, key).map(|c| c.meta.uid.clone()),
            Kind::Resource(ty) => {
                let id = self.state.find_resource(ty, &key.name)?;
                self.state.resource(id).map(|e| e.resource.meta.uid.clone())
            }
            Kind::Class(ty) => self.state.classes.get(&(ty, key.name.clone())).map(|c| c.meta.uid.clone()),
            Kind::Quota | Kind::ClusterQuota => {
                let quota =
                    crate::cache::QuotaKey { namespace: key.namespace.clone(), name: key.name.clone() };
                self.state.ledger.find_quota(&quota).map(|(q, _)| q.meta.uid.clone())
            }
            Kind::Limits | Kind::Profile | Kind::Namespace => None,
        }
    }

    /// A claim was read live. Holders that asked for another life of that name, or for one that is
    /// not there, have lost their claim.
    fn claim_read(
        &mut self,
        ty: TypeId,
        key: &ObjectKey,
        asked: &std::collections::BTreeSet<Uid>,
        now: Time,
    ) {
        for uid in asked {
            let alive = self.state.claim(uid).is_some_and(|claim| !claim.meta.deleting);
            let holders: Vec<_> = self.state.holders_of(uid).collect();
            for id in holders {
                if alive {
                    self.state.set_departed(id, uid, None);
                } else {
                    self.state.set_departed(id, uid, Some(Departure::Gone));
                }
                if let Some(entry) = self.state.resource(id) {
                    self.dirty.insert(Target::Resource(ty, entry.resource.meta.key.name.clone()));
                }
            }
        }
        for ((of, name), check) in &mut self.destroys {
            if *of == ty && check.claims.remove(key) {
                self.dirty.insert(Target::Resource(ty, name.clone()));
            }
        }
        if let Some(claim) = self.state.find_claim(ty, key) {
            let uid = claim.meta.uid.clone();
            self.free(Target::Claim(uid.clone()));
            self.settle_claim(&uid, now);
        }
    }

    fn resource_read(&mut self, ty: TypeId, name: &Name, now: Time) {
        let found = self.state.find_resource(ty, name).and_then(|id| self.state.resource(id));
        let revision = found.map(|e| e.resource.meta.revision);
        if let (Some(check), Some(revision)) = (self.destroys.get_mut(&(ty, name.clone())), revision) {
            check.revision = Some(revision);
        }
        self.free(Target::Resource(ty, name.clone()));
        self.dirty_maker(ty, name);
        self.resolve_doubts(ty, name, revision.is_none(), now);
    }

    /// A live read has told whether a resource is there: claims that were bound to it are settled with that.
    fn resolve_doubts(&mut self, ty: TypeId, name: &Name, missing: bool, now: Time) {
        let key = (ty, name.clone());
        let claims = self.doubted.remove(&key).unwrap_or_default();
        if !missing {
            self.absent.remove(&key);
            claims.iter().for_each(|uid| self.settle_claim(uid, now));
        } else if !claims.is_empty() {
            self.absent.entry(key).or_default().extend(claims);
        }
        // Judged together: the first answer must not decide before the last is here.
        if self.doubted.is_empty() {
            self.judge_absent(now);
        }
    }

    /// Declares the claims of missing resources lost, or withholds that and reports it where too many are missing at once.
    fn judge_absent(&mut self, now: Time) {
        let mut absent = std::mem::take(&mut self.absent);
        absent.retain(|(ty, name), claims| {
            claims.retain(|uid| self.state.claim(uid).is_some_and(|claim| !claim.meta.deleting));
            !claims.is_empty() && self.state.find_resource(*ty, name).is_none()
        });
        self.withheld.retain(|uid| absent.values().any(|claims| claims.contains(uid)));
        if absent.len() > self.config.lost_at_once_max {
            self.absent = absent;
            return self.report_withheld();
        }
        self.withheld.clear();
        for (key, claims) in absent {
            self.missing.insert(key.clone());
            claims.iter().for_each(|uid| self.settle_claim(uid, now));
            self.missing.remove(&key);
        }
    }

    fn report_withheld(&mut self) {
        let count = self.absent.len();
        let absent =
            self.absent.iter().flat_map(|((_, name), claims)| claims.iter().map(move |uid| (name, uid)));
        let new: Vec<_> = absent.filter(|(_, uid)| !self.withheld.contains(*uid)).collect();
        let new: Vec<(Name, Uid)> = new.into_iter().map(|(name, uid)| (name.clone(), uid.clone())).collect();
        for (name, uid) in new {
            let Some(claim) = self.state.claim(&uid) else { continue };
            let (ty, key) = (claim.ty, claim.meta.key.clone());
            let message = format!(
                "resource {name} was not found, as were {} others at the same time: too many to be called Lost. The \
                 claim keeps its status. Check that the system namespace, the CRDs and the backup that the cluster was \
                 restored from are right; `--lost-at-once-max` accepts the loss",
                count - 1
            );
            self.tell(Kind::Claim(ty), &key, &uid, true, reasons::bound::RESOURCES_MISSING, message);
            self.withheld.insert(uid);
        }
    }
}

/// Whether an object is of the revision that it was before a write.
fn is_still(from: Revision, object: &Object) -> bool {
    from != Revision::default() && from == Revision::read(object.metadata.resource_version.as_deref())
}
