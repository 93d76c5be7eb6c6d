//! Publishing connections to claims: updates of published objects are observed, publications are sent, answers are
//! settled. `lifecycle` computes the publications. No secret value ever reaches the engine.
//!
//! Published Secrets are never listed: each is read by its name. Its possible names are recorded before it is written, in
//! the ConfigMap beside it, and afterwards in the claim's `status.binding`; a name leaves the record only when no Secret
//! of that name exists, and the ConfigMap is deleted after the last Secret. A recorded name is read when the controller
//! starts, when another client writes to the claim and from time to time; until it is read, nothing is published or
//! deleted, and the claim's condition stays.
//!
//! ```text
//! publish:   Service | ConfigMap (records the new name, and the old) | new Secret | status.binding, old Secret deleted
//! withdraw:  Secrets, Service | ConfigMap | finalizer
//! ```
//!
//! A crash at any `|` leaves every Secret that may exist on record; the next leader reads the record and continues.

use super::Engine;
use super::memory::{Effect, PublishFailure, Target};
use crate::action::Action;
use crate::api::names::CLAIM_PROTECTION;
use crate::api::reasons::{READY, ready as reason};
use crate::cache::Sight;
use crate::event::{Answer, PublishEvent};
use crate::lifecycle::{ClaimReady, Connecting, plan_connection};
use crate::model::{
    Claim, Kind, Name, Object, ObjectKey, Publication, PublishedView, Revision, Slot, Time, Uid,
};

/// The state of a publication.
enum Published {
    /// It is as it should be, as far as is known.
    Settled,
    /// It was sent, and no try has failed before.
    Sent,
    /// The last try failed.
    Failed(PublishFailure),
}

impl Engine {
    pub(super) fn observe_published(&mut self, event: PublishEvent, now: Time) {
        let publications = &mut self.state.publications;
        let knew = (publications.is_listed(), publications.is_known());
        let news: Vec<Uid> = match event {
            PublishEvent::Listed { slot, published, revision } => {
                publications.list(slot, published, revision).into_iter().collect()
            }
            PublishEvent::Refused(slot) => {
                publications.refuse(slot);
                Vec::new()
            }
            PublishEvent::SecretRead { claim, key, found } => {
                self.reads.answer_secret(&claim, &key.name);
                self.writes.forget_failures(&Target::Published(claim.clone(), Slot::Secret, key.clone()));
                // Of a deleted claim nothing is kept.
                if self.state.claim(&claim).is_some() {
                    self.state.publications.read_secret(&claim, &key, found);
                }
                vec![claim]
            }
            PublishEvent::SecretRefused { claim, key } => {
                publications.refuse_secret(&claim, &key.name);
                self.reads.answer_secret(&claim, &key.name);
                self.writes.retry(Target::Published(claim.clone(), Slot::Secret, key), now);
                vec![claim]
            }
            PublishEvent::Recheck { turn, of } => {
                let claims: Vec<Uid> =
                    publications.claims().filter(|c| share(c, of) == turn).cloned().collect();
                claims.into_iter().filter(|claim| self.state.publications.doubt_secrets(claim)).collect()
            }
            PublishEvent::Seen(view) => {
                let claim = view.claim.clone();
                if publications.set(view) { vec![claim] } else { Vec::new() }
            }
            PublishEvent::Gone(view) => {
                publications.remove(&view.claim, view.slot, &view.key, &view.uid);
                vec![view.claim]
            }
            PublishEvent::SourcesListed(sources) => publications.list_sources(sources).into_iter().collect(),
            PublishEvent::SourceSeen(source) => {
                let name = source.name.clone();
                publications.set_source(source);
                publications.users_of(&name)
            }
            PublishEvent::SourceGone(source) => {
                publications.remove_source(&source.name, &source.uid);
                publications.users_of(&source.name)
            }
        };
        let knows = (self.state.publications.is_listed(), self.state.publications.is_known());
        self.work.touch_all(news.into_iter().map(Target::Claim));
        if knows != knew {
            self.work.touch_all(self.state.claims().map(|claim| Target::Claim(claim.meta.uid.clone())));
        }
    }

    /// Another client has written to a claim: its Secret is read too, rather than from time to time only.
    pub(super) fn notice_touch(&mut self, object: &Object) {
        let (Kind::Claim(_), Some(uid)) = (object.kind, &object.metadata.uid) else { return };
        let uid = Uid::from(uid.as_str());
        let Some(known) = self.state.claim(&uid) else { return };
        let is_ours = self.writes.is_busy(&Target::Claim(uid.clone()));
        let revision = Revision::read(object.metadata.resource_version.as_deref());
        if self.bindings.is_started() && !is_ours && known.meta.revision.is_older_than(revision) {
            self.state.publications.doubt_secrets(&uid);
        }
    }

    /// Reads the Secrets that may exist for a claim and were not read yet. Returns whether there are any.
    fn read_secrets(&mut self, claim: &Claim) -> bool {
        let uid = &claim.meta.uid;
        claim.status.binding.iter().for_each(|name| self.state.publications.expect_secret(uid, name));
        let unread = self.state.publications.unread_secrets(uid);
        for name in &unread {
            if self.reads.request_secret(uid, name) {
                let key = ObjectKey::new(claim.meta.key.namespace.clone(), name.clone());
                self.work.push(Action::ReadSecret { claim: uid.clone(), key });
            }
        }
        !unread.is_empty()
    }

    /// Whether an application can use what its claim is bound to; sends what is missing for that. `None` while that is not
    /// known: the claim's condition stays.
    pub(super) fn reconcile_connection(&mut self, claim: &Claim, resource: &Name) -> Option<ClaimReady> {
        if !self.config.makes_parts || claim.meta.deleting {
            return None;
        }
        // What is being published reads the Secret itself.
        let is_flying = self.writes.is_flying(&Target::Publication(claim.meta.uid.clone()));
        let is_unread = !is_flying && self.read_secrets(claim);
        // Where it may not be read, a claim with a connection keeps it; for others the condition says what is in the way.
        let is_refused = self.state.publications.has_refused_secrets(&claim.meta.uid);
        if is_unread || (is_refused && claim.status.binding.is_some()) {
            return None;
        }
        self.compile_script(claim.ty, resource);
        let entry = self.state.resource_named(claim.ty, resource)?;
        let (publications, view) = (&self.state.publications, self.view(entry));
        let connecting = plan_connection(entry, &view, publications, claim, &self.config.system_namespace);
        let is_unseen = view.parts.values().any(|p| matches!(p.sight, Sight::Unknown | Sight::InFlight));
        let has_condition = claim.status.conditions.iter().any(|c| &*c.kind == READY);
        let published = self.published_secret(claim);
        let ready = |secret: Name| {
            let message = format!("published as Secret {secret}");
            ClaimReady { secret: Some(secret), reason: reason::CONNECTION_PUBLISHED, message }
        };
        let unready = |reason, message| Some(ClaimReady { secret: None, reason, message });
        match connecting {
            Connecting::Not { source, reason: why, message } => {
                source.iter().for_each(|source| self.state.publications.note_user(source, &claim.meta.uid));
                // What was published stays: it was true, and nothing better is known. What was revoked is not true any more.
                match published.filter(|_| why != reason::LOGIN_REVOKED) {
                    Some(secret) => Some(ready(secret)),
                    // What was not seen yet, as after a start, proves nothing.
                    None if is_unseen && has_condition && why != reason::LOGIN_REVOKED => None,
                    None => unready(why, message),
                }
            }
            Connecting::Known(publication) => {
                let source = publication.source.as_ref().map(|(key, ..)| key.name.clone());
                source.iter().for_each(|source| self.state.publications.note_user(source, &claim.meta.uid));
                match (self.publish(claim, publication), published) {
                    (Published::Settled, Some(secret)) => Some(ready(secret)),
                    // The answer decides. A controller that starts anew does not know the last answer.
                    (Published::Sent, Some(_)) => None,
                    (Published::Failed(PublishFailure { reason, message, .. }), _) => {
                        unready(reason, message)
                    }
                    (Published::Settled | Published::Sent, None) => {
                        unready(reason::PUBLISHING, "the connection is on its way".to_owned())
                    }
                }
            }
        }
    }

    /// The Secret that is published for a claim under the name that it requests.
    fn published_secret(&self, claim: &Claim) -> Option<Name> {
        let wanted = claim.wanted_secret();
        let mut published = self.state.publications.of(&claim.meta.uid);
        let secret = published.find(|view| view.slot == Slot::Secret && view.key.name == *wanted);
        secret.map(|view| view.key.name.clone())
    }

    /// Publishes what is not published yet, and withdraws what is no longer wanted.
    fn publish(&mut self, claim: &Claim, publication: Box<Publication>) -> Published {
        let uid = &claim.meta.uid;
        let target = Target::Publication(uid.clone());
        if !self.state.publications.is_listed() || !claim.meta.has_finalizer(CLAIM_PROTECTION) {
            return Published::Settled;
        }
        let digest = &publication.digest;
        let made: Vec<&PublishedView> =
            self.state.publications.of(uid).filter(|v| v.made_from.as_ref() == Some(digest)).collect();
        let together = made.iter().find(|view| view.slot == Slot::Secret).map(|view| view.together);
        if together == Some(made.len()) {
            self.publishing.succeed(uid);
            let old = self.state.publications.of(uid).filter(|v| v.made_from.as_ref() != Some(digest));
            let old: Vec<PublishedView> = old.cloned().collect();
            old.into_iter().for_each(|view| self.withdraw(&view));
            return Published::Settled;
        }
        let failure = self.publishing.failure(uid).cloned();
        // A new connection is not held up by what went wrong before.
        let is_same = failure.as_ref().is_some_and(|failure| failure.digest == *digest);
        let waits = self.writes.is_flying(&target) || (is_same && self.writes.is_busy(&target));
        if !waits {
            self.publishing.send(uid, digest, &publication.secret_name);
            let id = self.writes.send(target, Effect::Change, None);
            self.work.push(Action::Publish { id, publication });
        }
        failure.map_or(Published::Sent, Published::Failed)
    }

    fn withdraw(&mut self, view: &PublishedView) {
        let PublishedView { slot, key, uid, claim, .. } = view;
        let target = Target::Published(claim.clone(), *slot, key.clone());
        if !self.writes.is_busy(&target) {
            let id = self.writes.send(target, Effect::Deletion, None);
            self.work.push(Action::Withdraw { id, slot: *slot, key: key.clone(), uid: uid.clone() });
        }
    }

    /// Withdraws everything that was published for a claim. Returns whether nothing is left.
    pub(super) fn withdraw_all(&mut self, claim: &Claim) -> bool {
        if !self.config.makes_parts {
            return true;
        }
        let uid = &claim.meta.uid;
        // After a restart, what is not listed yet may exist: a claim that was deleted now would leave it behind.
        if !self.state.publications.is_known() || self.writes.is_flying(&Target::Publication(uid.clone())) {
            return false;
        }
        // Also where nothing is recorded: another client may have deleted the record.
        if claim.meta.has_finalizer(CLAIM_PROTECTION) {
            self.state.publications.expect_secret(uid, claim.wanted_secret());
        }
        let unread = self.read_secrets(claim);
        let left: Vec<PublishedView> = self.state.publications.of(uid).cloned().collect();
        // The record goes last.
        let secrets_left = unread || left.iter().any(|view| view.slot == Slot::Secret);
        let may_go = |view: &&PublishedView| view.slot != Slot::Config || !secrets_left;
        left.iter().filter(may_go).for_each(|view| self.withdraw(view));
        left.is_empty() && !unread
    }

    pub(super) fn publication_answered(&mut self, uid: Uid, answer: Answer, now: Time) {
        let target = Target::Publication(uid.clone());
        self.work.touch(Target::Claim(uid.clone()));
        let (digest, secret) = self.publishing.answer(&uid);
        // The Secret may have been written; if the claim requests another name now, this one is not forgotten.
        let is_settled = matches!(answer, Answer::Published(_) | Answer::Incomplete(_) | Answer::Taken(_));
        if !is_settled && self.state.claim(&uid).is_some() {
            self.state.publications.doubt_secret(&uid, &secret);
        }
        let (reason, message) = match answer {
            Answer::Published(views) => {
                self.writes.forget_failures(&target);
                self.publishing.succeed(&uid);
                for view in views {
                    self.state.publications.set(view);
                }
                return;
            }
            Answer::Incomplete(why) => (reason::CONNECTION_INCOMPLETE, why),
            Answer::Taken(why) => (reason::SECRET_CONFLICT, why),
            Answer::Invalid(why) => (reason::CONNECTION_INCOMPLETE, format!("the API refuses it: {why}")),
            Answer::Conflict | Answer::Missing | Answer::Exists => {
                (reason::PUBLISHING, "it is tried again".to_owned())
            }
            Answer::Unknown(why) => (reason::PUBLISHING, format!("it is tried again: {why}")),
            Answer::Written(_) | Answer::PartWritten(_) | Answer::Deleted => return,
        };
        self.publishing.fail(uid, PublishFailure { digest, reason, message });
        self.writes.hold_and_retry(target, now);
    }

    pub(super) fn withdrawal_answered(&mut self, target: Target, answer: Answer, now: Time) {
        let Target::Published(claim, slot, key) = &target else { return };
        match answer {
            Answer::Deleted | Answer::Missing => {
                self.writes.forget_failures(&target);
                let known = self.state.publications.of(claim).find(|v| v.slot == *slot && v.key == *key);
                if let Some(uid) = known.map(|view| view.uid.clone()) {
                    self.state.publications.remove(claim, *slot, key, &uid);
                }
                self.work.touch(Target::Claim(claim.clone()));
            }
            Answer::Published(_)
            | Answer::Incomplete(_)
            | Answer::Taken(_)
            | Answer::Written(_)
            | Answer::PartWritten(_)
            | Answer::Conflict
            | Answer::Exists
            | Answer::Invalid(_)
            | Answer::Unknown(_) => self.writes.hold_and_retry(target, now),
        }
    }

    /// A pause is over: what was in the way may be gone.
    pub(super) fn try_publishing_again(&mut self, target: &Target) {
        if let Target::Publication(claim) | Target::Published(claim, ..) = target {
            self.writes.release_read(target);
            if self.state.claim(claim).is_none() {
                self.writes.forget_failures(target);
            }
            if let Target::Published(_, Slot::Secret, key) = target {
                self.state.publications.ask_again(claim, &key.name);
            }
            self.work.touch(Target::Claim(claim.clone()));
        }
    }

    /// A claim was deleted.
    pub(super) fn forget_published(&mut self, claim: &Uid) {
        self.state.publications.forget(claim);
        self.publishing.forget(claim);
        self.reads.forget_secrets_of(claim);
        self.writes.release(&Target::Publication(claim.clone()));
    }
}

/// Which share of the claims one is in, by its UID: the same in every round.
fn share(claim: &str, of: u32) -> u32 {
    let mixed = claim.bytes().fold(0_u32, |mix, byte| mix.wrapping_mul(31).wrapping_add(u32::from(byte)));
    mixed % of.max(1)
}
