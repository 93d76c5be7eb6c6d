//! The errors of a reconcile: what happened, and what to do if that is known. An error never contains a statement or a
//! password.

use conductor::api::reasons::provider as reason;
pub(super) use conductor::api::reasons::provider::{INVALID, LOGIN_REFUSED};
use std::time::Duration;

/// Why a reconcile failed. It is retried with backoff.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Error {
    /// The server does not answer, or not in time.
    #[error("{0}")]
    Unreachable(String),
    /// The server refuses the administrator's login.
    #[error("{0}")]
    Credentials(String),
    /// The server refuses a statement: a right is missing, it is full, it is read-only.
    #[error("{0}")]
    Refused(String),
    /// The login is valid, and its connection limit is reached.
    #[error("{0}")]
    Crowded(String),
    /// The server refuses a new login for an application, which is not published.
    #[error("{0}")]
    LoginRefused(String),
    /// Another server than the recorded one answers, and is left unchanged.
    #[error("{0}")]
    WrongServer(String),
    /// The API refuses or does not answer.
    #[error("the API: {0}")]
    Api(String),
    /// Another client changed the object.
    #[error("another client changed it; retrying")]
    Conflict,
    /// The object of the server or the claim is invalid.
    #[error("{0}")]
    Invalid(String),
    /// This process no longer leads.
    #[error("another process leads now")]
    NotLeading,
}

impl Error {
    /// A server that did not answer in time.
    pub(super) fn silent(place: &str, within: Duration) -> Error {
        Error::Unreachable(format!("server {place} did not answer within {} s", within.as_secs()))
    }

    /// The reason for conditions and metrics.
    pub fn reason(&self) -> &'static str {
        match self {
            Error::Unreachable(_) => reason::SERVER_UNREACHABLE,
            Error::Credentials(_) => reason::ADMINISTRATOR_REFUSED,
            Error::Refused(_) => reason::SERVER_REFUSES,
            Error::Crowded(_) => reason::CONNECTION_LIMIT,
            Error::LoginRefused(_) => LOGIN_REFUSED,
            Error::WrongServer(_) => reason::WRONG_SERVER,
            Error::Api(_) => reason::API_UNAVAILABLE,
            Error::Conflict => reason::CONFLICT,
            Error::Invalid(_) => INVALID,
            Error::NotLeading => reason::NOT_LEADING,
        }
    }
}
