//! Connections on their way to claims: what is being published, and what could not be. What exists already is in the cache.

use crate::model::{Name, Uid};
use std::collections::BTreeMap;

/// Why the last try to publish a connection failed. It stands until a try is answered: a retry in flight has repaired
/// nothing yet.
#[derive(Clone, Debug)]
pub(in crate::engine) struct PublishFailure {
    pub digest: Name,
    pub reason: &'static str,
    pub message: String,
}

/// The publications of one engine, by claim.
#[derive(Clone, Debug, Default)]
pub(in crate::engine) struct Publishing {
    /// The digest of what is being published, and the name of its Secret.
    sent: BTreeMap<Uid, (Name, Name)>,
    failures: BTreeMap<Uid, PublishFailure>,
}

impl Publishing {
    pub fn send(&mut self, claim: &Uid, digest: &Name, secret: &Name) {
        self.sent.insert(claim.clone(), (digest.clone(), secret.clone()));
    }

    /// The digest and the Secret's name of the try that was answered.
    pub fn answer(&mut self, claim: &Uid) -> (Name, Name) {
        self.sent.remove(claim).unwrap_or_default()
    }

    pub fn fail(&mut self, claim: Uid, failure: PublishFailure) {
        self.failures.insert(claim, failure);
    }

    pub fn failure(&self, claim: &Uid) -> Option<&PublishFailure> {
        self.failures.get(claim)
    }

    pub fn succeed(&mut self, claim: &Uid) {
        self.failures.remove(claim);
    }

    pub fn forget(&mut self, claim: &Uid) {
        self.failures.remove(claim);
        self.sent.remove(claim);
    }
}
