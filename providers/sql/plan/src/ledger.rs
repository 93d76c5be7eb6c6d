//! What is known of a database's passwords without knowing any: which user is in use, which change is on its way,
//! which requests have been carried out. The passwords stand beside it in the Secret that the provider keeps.

use super::names::User;
use conductor::model::Time;

/// A change of the login that is on its way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The user that gets a password.
    pub user: User,
    /// The count of the change.
    pub generation: u64,
}

/// How the logins of a database stand.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ledger {
    /// The user that applications use.
    pub active: Option<User>,
    /// The count of its password.
    pub generation: u64,
    /// When it was last changed; not known before the first change, and while every login is revoked.
    pub rotated_at: Option<Time>,
    /// What is on its way.
    pub pending: Option<Pending>,
    /// The password that the login Secret holds, by count; 0 where there is none.
    pub published: u64,
    /// The password that the application's own Secret holds, by count; 0 where it holds none of ours.
    pub delivered: u64,
    /// The request that the last change answered.
    pub answered: Option<String>,
    /// The hard request that every login was last revoked for.
    pub revoked: Option<String>,
    /// The request that was last carried out to its end.
    pub done: Option<String>,
}

/// Somebody wants the login changed now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Tells requests apart.
    pub token: String,
    /// Whether sessions and older passwords end with it.
    pub is_hard: bool,
}

impl Request {
    /// Reads the annotation.
    pub fn read(text: &str) -> Option<Request> {
        (!text.is_empty()).then(|| Request { token: text.to_owned(), is_hard: text.starts_with("hard") })
    }
}

impl Ledger {
    /// The request, unless it has been carried out.
    pub fn open_request<'a>(&self, request: Option<&'a Request>) -> Option<&'a Request> {
        request.filter(|request| self.done.as_deref() != Some(&request.token))
    }
}
