//! The state of a database's logins, without any password: which user is active, which rotation is pending, which
//! requests were carried out. The provider keeps the passwords in the same Secret.

use super::names::User;
use conductor::model::Time;

/// A rotation in progress.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pending {
    /// The user that gets a password.
    pub user: User,
    /// The rotation's number.
    pub generation: u64,
}

/// The state of a database's logins.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RotationState {
    /// The user that applications use.
    pub active: Option<User>,
    /// The number of its password.
    pub generation: u64,
    /// The last rotation; none before the first, and while every login is revoked.
    pub rotated_at: Option<Time>,
    /// The rotation in progress.
    pub pending: Option<Pending>,
    /// The number of the password in the login Secret; 0 for none.
    pub published: u64,
    /// The number of the password in the application's Secret; 0 where it holds none of ours.
    pub delivered: u64,
    /// The request that the last rotation answered.
    pub answered: Option<String>,
    /// The last hard request for which every login was revoked.
    pub revoked: Option<String>,
    /// The last request that was completed.
    pub done: Option<String>,
}

/// A user's request to rotate the login now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Identifies the request.
    pub token: String,
    /// Whether it also ends sessions and older passwords.
    pub is_hard: bool,
}

impl Request {
    /// Reads the value of the annotation.
    pub fn read(text: &str) -> Option<Request> {
        (!text.is_empty()).then(|| Request { token: text.to_owned(), is_hard: text.starts_with("hard") })
    }
}

impl RotationState {
    /// The request, unless it is done.
    pub fn open_request<'a>(&self, request: Option<&'a Request>) -> Option<&'a Request> {
        request.filter(|request| self.done.as_deref() != Some(&request.token))
    }
}
