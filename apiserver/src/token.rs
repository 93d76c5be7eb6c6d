//! Bearer tokens: which users may connect. They are compared by digest and never shown.

use super::call::User;
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::fmt;

/// Known tokens.
pub(super) struct Tokens(BTreeMap<[u8; 32], User>);

impl Tokens {
    pub fn new(known: impl IntoIterator<Item = (String, User)>) -> Tokens {
        Tokens(known.into_iter().map(|(token, user)| (digest(&token), user)).collect())
    }

    /// Whose token this is. Looked up by digest: how long it takes says nothing of how much was right.
    pub fn find(&self, token: &str) -> Option<User> {
        self.0.get(&digest(token)).cloned()
    }
}

impl fmt::Debug for Tokens {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} tokens", self.0.len())
    }
}

fn digest(token: &str) -> [u8; 32] {
    Sha256::digest(token.as_bytes()).into()
}

/// A random token.
pub(super) fn made_up() -> String {
    format!("{}{}", uuid::Uuid::new_v4().simple(), uuid::Uuid::new_v4().simple())
}
