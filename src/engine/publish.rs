//! Connections on their way to claims: what is published is taken in, what is to be published is sent, answers are
//! settled. What that is, `lifecycle` says. No secret ever comes through here.
//!
//! Published Secrets are never listed: each is read by its name. The names that one may be under stand on record before
//! it is written, in the ConfigMap beside it, and afterwards in the claim's `status.binding`; a name leaves the record only
//! when nothing is there under it, and the ConfigMap goes after the last Secret. A name on record is read when the
//! controller starts, when somebody touches the claim and from time to time; until it is read, nothing is published or
//! let go of, and the claim keeps saying what it said.
//!
//! ```text
//! publish:   Service | ConfigMap (on record: the new name, and the old) | new Secret | status.binding, old Secret goes
//! withdraw:  Secrets, Service | ConfigMap | finalizer
//! ```
//!
//! A crash at any `|` leaves every Secret that may be there on record; the next life reads it and goes on from there.

use super::{Effect, Engine, Target};
use crate::action::Action;
use crate::api::names::CLAIM_PROTECTION;
use crate::api::reasons::{READY, ready as reason};
use crate::cache::Sight;
use crate::event::{Answer, PublishEvent};
use crate::lifecycle::{ClaimReady, Connecting, plan_connection};
use crate::model::{
    Claim, Kind, Name, Object, ObjectKey, Publication, PublishedView, Revision, Slot, Time, Uid,
};

/// Why a connection could not be published the last time it was tried. It stands until a try is answered: a retry that is
/// on its way has mended nothing yet.
#[derive(Clone, Debug)]
pub(super) struct Unpublished {
    digest: Name,
    reason: &'static str,
    message: String,
}

/// How a publication stands.
enum Publishing {
    /// It is as it should be, or nobody may say otherwise yet.
    Settled,
    /// It was sent, and nothing has gone wrong before.
    Sent,
    /// The last answer was no.
    Failed(Unpublished),
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
                self.secret_reads.remove(&(claim.clone(), key.name.clone()));
                self.failures.remove(&Target::Published(claim.clone(), Slot::Secret, key.clone()));
                // Of a claim that is gone nothing is kept.
                if self.state.claim(&claim).is_some() {
                    self.state.publications.read_secret(&claim, &key, found);
                }
                vec![claim]
            }
            PublishEvent::SecretRefused { claim, key } => {
                publications.refuse_secret(&claim, &key.name);
                self.secret_reads.remove(&(claim.clone(), key.name.clone()));
                self.read_later(Target::Published(claim.clone(), Slot::Secret, key), now);
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
        self.dirty.extend(news.into_iter().map(Target::Claim));
        if knows != knew {
            self.dirty.extend(self.state.claims().map(|claim| Target::Claim(claim.meta.uid.clone())));
        }
    }

    /// Somebody else has written on a claim: its Secret is looked at too, rather than from time to time only.
    pub(super) fn notice_touch(&mut self, object: &Object) {
        let (Kind::Claim(_), Some(uid)) = (object.kind, &object.metadata.uid) else { return };
        let uid = Uid::from(uid.as_str());
        let Some(known) = self.state.claim(&uid) else { return };
        let is_ours = self.busy.contains(&Target::Claim(uid.clone()));
        let revision = Revision::read(object.metadata.resource_version.as_deref());
        if self.synced && !is_ours && known.meta.revision.is_older_than(revision) {
            self.state.publications.doubt_secrets(&uid);
        }
    }

    /// Reads the Secrets that may be there for a claim and were not read yet. Says whether there are any.
    fn read_secrets(&mut self, claim: &Claim) -> bool {
        let uid = &claim.meta.uid;
        claim.status.binding.iter().for_each(|name| self.state.publications.expect_secret(uid, name));
        let unread = self.state.publications.unread_secrets(uid);
        for name in &unread {
            if self.secret_reads.insert((uid.clone(), name.clone())) {
                let key = ObjectKey::new(claim.meta.key.namespace.clone(), name.clone());
                self.actions.push(Action::ReadSecret { claim: uid.clone(), key });
            }
        }
        !unread.is_empty()
    }

    /// Whether an application can use what its claim is bound to; sends what is missing for that. Nothing while that is
    /// not known: the claim says what it said.
    pub(super) fn sync_connection(&mut self, claim: &Claim, resource: &Name) -> Option<ClaimReady> {
        if !self.config.makes_parts || claim.meta.deleting {
            return None;
        }
        // What is being published reads the Secret itself.
        let is_flying = self.flying.contains(&Target::Publication(claim.meta.uid.clone()));
        let is_unread = !is_flying && self.read_secrets(claim);
        // Where it may not be read, who has a connection keeps it; others are told what is in the way.
        let is_refused = self.state.publications.has_refused_secrets(&claim.meta.uid);
        if is_unread || (is_refused && claim.status.binding.is_some()) {
            return None;
        }
        self.compile_script(claim.ty, resource);
        let entry = self.state.resource(self.state.find_resource(claim.ty, resource)?)?;
        let (publications, view) = (&self.state.publications, self.view(entry));
        let connecting = plan_connection(entry, &view, publications, claim, &self.config.system_namespace);
        let is_unseen = view.parts.values().any(|p| matches!(p.sight, Sight::Unknown | Sight::InFlight));
        let has_told = claim.status.conditions.iter().any(|c| &*c.kind == READY);
        let published = self.published_secret(claim);
        let ready = |secret: Name| {
            let message = format!("published as Secret {secret}");
            ClaimReady { secret: Some(secret), reason: reason::CONNECTION_PUBLISHED, message }
        };
        let told = |reason, message| Some(ClaimReady { secret: None, reason, message });
        match connecting {
            Connecting::Not { source, reason: word, message } => {
                source.iter().for_each(|source| self.state.publications.note_user(source, &claim.meta.uid));
                // What was published stays: it was true, and nothing better is known. What was revoked is not true any more.
                match published.filter(|_| word != reason::LOGIN_REVOKED) {
                    Some(secret) => Some(ready(secret)),
                    // Of what has not been looked at yet, as after a start, nothing can be said.
                    None if is_unseen && has_told && word != reason::LOGIN_REVOKED => None,
                    None => told(word, message),
                }
            }
            Connecting::Known(publication) => {
                let source = publication.source.as_ref().map(|(key, ..)| key.name.clone());
                source.iter().for_each(|source| self.state.publications.note_user(source, &claim.meta.uid));
                match (self.publish(claim, publication), published) {
                    (Publishing::Settled, Some(secret)) => Some(ready(secret)),
                    // The answer tells. A controller that starts anew does not know what was said to the last try.
                    (Publishing::Sent, Some(_)) => None,
                    (Publishing::Failed(Unpublished { reason, message, .. }), _) => told(reason, message),
                    (Publishing::Settled | Publishing::Sent, None) => {
                        told(reason::PUBLISHING, "the connection is on its way".to_owned())
                    }
                }
            }
        }
    }

    /// The Secret that is published for a claim under the name that it asks for.
    fn published_secret(&self, claim: &Claim) -> Option<Name> {
        let wanted = claim.wanted_secret();
        let mut published = self.state.publications.of(&claim.meta.uid);
        let secret = published.find(|view| view.slot == Slot::Secret && view.key.name == *wanted);
        secret.map(|view| view.key.name.clone())
    }

    /// Publishes what is not published yet, and takes back what is no longer wanted.
    fn publish(&mut self, claim: &Claim, publication: Box<Publication>) -> Publishing {
        let uid = &claim.meta.uid;
        let target = Target::Publication(uid.clone());
        if !self.state.publications.is_listed() || !claim.meta.has_finalizer(CLAIM_PROTECTION) {
            return Publishing::Settled;
        }
        let digest = &publication.digest;
        let made: Vec<&PublishedView> =
            self.state.publications.of(uid).filter(|v| v.made_from.as_ref() == Some(digest)).collect();
        let together = made.iter().find(|view| view.slot == Slot::Secret).map(|view| view.together);
        if together == Some(made.len()) {
            self.unpublished.remove(uid);
            let old = self.state.publications.of(uid).filter(|v| v.made_from.as_ref() != Some(digest));
            let old: Vec<PublishedView> = old.cloned().collect();
            old.into_iter().for_each(|view| self.withdraw(&view));
            return Publishing::Settled;
        }
        let trouble = self.unpublished.get(uid).cloned();
        // Something new to say is not held up by what went wrong before.
        let is_same = trouble.as_ref().is_some_and(|trouble| trouble.digest == *digest);
        let waits = self.flying.contains(&target) || (is_same && self.busy.contains(&target));
        if !waits {
            self.publishing.insert(uid.clone(), (digest.clone(), publication.secret_name.clone()));
            let id = self.send(target, Effect::Change);
            self.actions.push(Action::Publish { id, publication });
        }
        trouble.map_or(Publishing::Sent, Publishing::Failed)
    }

    fn withdraw(&mut self, view: &PublishedView) {
        let PublishedView { slot, key, uid, claim, .. } = view;
        let target = Target::Published(claim.clone(), *slot, key.clone());
        if !self.busy.contains(&target) {
            let id = self.send(target, Effect::Destruction);
            self.actions.push(Action::Withdraw { id, slot: *slot, key: key.clone(), uid: uid.clone() });
        }
    }

    /// Takes back everything that was published for a claim. Says whether nothing is left.
    pub(super) fn withdraw_all(&mut self, claim: &Claim) -> bool {
        if !self.config.makes_parts {
            return true;
        }
        let uid = &claim.meta.uid;
        // After a restart, what is not listed yet may be there: a claim that went now would leave it behind.
        if !self.state.publications.is_known() || self.flying.contains(&Target::Publication(uid.clone())) {
            return false;
        }
        // Also where nothing is on record: the record is an object that anybody may have removed.
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
        self.dirty.insert(Target::Claim(uid.clone()));
        let (digest, secret) = self.publishing.remove(&uid).unwrap_or_default();
        // It may have come as far as the Secret; should the claim ask for another name now, this one is not forgotten.
        let is_settled = matches!(answer, Answer::Published(_) | Answer::Incomplete(_) | Answer::Taken(_));
        if !is_settled && self.state.claim(&uid).is_some() {
            self.state.publications.doubt_secret(&uid, &secret);
        }
        let (reason, message) = match answer {
            Answer::Published(views) => {
                self.failures.remove(&target);
                self.unpublished.remove(&uid);
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
        self.unpublished.insert(uid, Unpublished { digest, reason, message });
        self.retry_later(target, now);
    }

    pub(super) fn withdrawal_answered(&mut self, target: Target, answer: Answer, now: Time) {
        let Target::Published(claim, slot, key) = &target else { return };
        match answer {
            Answer::Deleted | Answer::Missing => {
                self.failures.remove(&target);
                let known = self.state.publications.of(claim).find(|v| v.slot == *slot && v.key == *key);
                if let Some(uid) = known.map(|view| view.uid.clone()) {
                    self.state.publications.remove(claim, *slot, key, &uid);
                }
                self.dirty.insert(Target::Claim(claim.clone()));
            }
            Answer::Published(_)
            | Answer::Incomplete(_)
            | Answer::Taken(_)
            | Answer::Written(_)
            | Answer::PartWritten(_)
            | Answer::Conflict
            | Answer::Exists
            | Answer::Invalid(_)
            | Answer::Unknown(_) => self.retry_later(target, now),
        }
    }

    /// A pause is over: what was in the way may be gone.
    pub(super) fn try_publishing_again(&mut self, target: &Target) {
        if let Target::Publication(claim) | Target::Published(claim, ..) = target {
            if !self.flying.contains(target) {
                self.busy.remove(target);
            }
            if self.state.claim(claim).is_none() {
                self.failures.remove(target);
            }
            if let Target::Published(_, Slot::Secret, key) = target {
                self.state.publications.ask_again(claim, &key.name);
            }
            self.dirty.insert(Target::Claim(claim.clone()));
        }
    }

    /// A claim is gone: nothing about it is of interest any more.
    pub(super) fn forget_published(&mut self, claim: &Uid) {
        self.state.publications.forget(claim);
        self.unpublished.remove(claim);
        self.publishing.remove(claim);
        self.secret_reads.retain(|(of, _)| of != claim);
        self.busy.remove(&Target::Publication(claim.clone()));
    }
}

/// Which share of the claims one is in, by its UID: the same in every round.
fn share(claim: &str, of: u32) -> u32 {
    let mixed = claim.bytes().fold(0_u32, |mix, byte| mix.wrapping_mul(31).wrapping_add(u32::from(byte)));
    mixed % of.max(1)
}
