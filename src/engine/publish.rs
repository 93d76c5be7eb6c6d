//! Connections on their way to claims: what is published is taken in, what is to be published is sent, answers are
//! settled. What that is, `lifecycle` says. No secret ever comes through here.

use super::{Effect, Engine, Target};
use crate::action::Action;
use crate::api::names::CLAIM_PROTECTION;
use crate::api::reasons::ready as reason;
use crate::event::{Answer, PublishEvent};
use crate::lifecycle::{ClaimReady, Connecting, plan_connection};
use crate::model::{Claim, Name, Publication, PublishedView, Slot, Time, Uid};

/// Why a connection could not be published the last time it was tried.
#[derive(Clone, Debug)]
pub(super) struct Unpublished {
    digest: Name,
    reason: &'static str,
    message: String,
}

impl Engine {
    pub(super) fn observe_published(&mut self, event: PublishEvent) {
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

    /// Whether an application can use what its claim is bound to; sends what is missing for that.
    pub(super) fn sync_connection(&mut self, claim: &Claim, resource: &Name) -> Option<ClaimReady> {
        if !self.config.makes_parts || claim.meta.deleting {
            return None;
        }
        self.compile_script(claim.ty, resource);
        let entry = self.state.resource(self.state.find_resource(claim.ty, resource)?)?;
        let publications = &self.state.publications;
        let connecting =
            plan_connection(entry, &self.view(entry), publications, claim, &self.config.system_namespace);
        let published = self.published_secret(claim);
        let ready = |secret: Name| {
            let message = format!("published as Secret {secret}");
            ClaimReady { secret: Some(secret), reason: reason::CONNECTION_PUBLISHED, message }
        };
        let told = |reason, message| Some(ClaimReady { secret: None, reason, message });
        match connecting {
            Connecting::Not { source, reason, message } => {
                source.iter().for_each(|source| self.state.publications.note_user(source, &claim.meta.uid));
                // What was published stays: it was true, and nothing better is known.
                match published {
                    Some(secret) => Some(ready(secret)),
                    None => told(reason, message),
                }
            }
            Connecting::Known(publication) => {
                let source = publication.source.as_ref().map(|(key, ..)| key.name.clone());
                source.iter().for_each(|source| self.state.publications.note_user(source, &claim.meta.uid));
                let trouble = self.publish(claim, publication);
                match (trouble, published) {
                    (None, Some(secret)) => Some(ready(secret)),
                    (Some(Unpublished { reason, message, .. }), _) => told(reason, message),
                    (None, None) => told(reason::PUBLISHING, "the connection is on its way".to_owned()),
                }
            }
        }
    }

    /// The Secret that is published for a claim under the name that it asks for.
    fn published_secret(&self, claim: &Claim) -> Option<Name> {
        let wanted = claim.secret_name.as_ref().unwrap_or(&claim.meta.key.name);
        let mut published = self.state.publications.of(&claim.meta.uid);
        let secret = published.find(|view| view.slot == Slot::Secret && view.key.name == *wanted);
        secret.map(|view| view.key.name.clone())
    }

    /// Publishes what is not published yet, and takes back what is no longer wanted. Gives what stood in the way the
    /// last time, where that was the same.
    fn publish(&mut self, claim: &Claim, publication: Box<Publication>) -> Option<Unpublished> {
        let uid = &claim.meta.uid;
        let target = Target::Publication(uid.clone());
        if !self.state.publications.is_listed() || !claim.meta.has_finalizer(CLAIM_PROTECTION) {
            return None;
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
            return None;
        }
        let trouble = self.unpublished.get(uid).filter(|trouble| trouble.digest == *digest).cloned();
        // Something new to say is not held up by what went wrong before.
        let waits = self.flying.contains(&target) || (trouble.is_some() && self.busy.contains(&target));
        if !waits {
            self.unpublished.remove(uid);
            self.publishing.insert(uid.clone(), digest.clone());
            let id = self.send(target, Effect::Change);
            self.actions.push(Action::Publish { id, publication });
        }
        trouble
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
    pub(super) fn withdraw_all(&mut self, claim: &Uid) -> bool {
        // After a restart, what is not listed yet may be there: a claim that went now would leave it behind.
        let unknown = self.config.makes_parts && !self.state.publications.is_known();
        if unknown || self.flying.contains(&Target::Publication(claim.clone())) {
            return false;
        }
        let left: Vec<PublishedView> = self.state.publications.of(claim).cloned().collect();
        left.iter().for_each(|view| self.withdraw(view));
        left.is_empty()
    }

    pub(super) fn publication_answered(&mut self, uid: Uid, answer: Answer, now: Time) {
        let target = Target::Publication(uid.clone());
        self.dirty.insert(Target::Claim(uid.clone()));
        let digest = self.publishing.remove(&uid).unwrap_or_default();
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

    /// A pause is over: what is published is not read, it is watched.
    pub(super) fn try_publishing_again(&mut self, target: &Target) {
        if let Target::Publication(claim) | Target::Published(claim, ..) = target {
            self.busy.remove(target);
            self.unpublished.remove(claim);
            self.dirty.insert(Target::Claim(claim.clone()));
        }
    }

    /// A claim is gone: nothing about it is of interest any more.
    pub(super) fn forget_published(&mut self, claim: &Uid) {
        self.state.publications.forget(claim);
        self.unpublished.remove(claim);
        self.publishing.remove(claim);
        self.busy.remove(&Target::Publication(claim.clone()));
    }
}
