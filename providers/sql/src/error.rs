//! The errors of a reconcile: what happened, and what to do if that is known. An error never contains a statement or a
//! password.

use std::time::Duration;

/// The reason of a new login that the server refused.
pub(super) const LOGIN_REFUSED: &str = "LoginRefused";

/// The reason of an invalid object.
pub(super) const INVALID: &str = "Invalid";

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
            Error::Unreachable(_) => "ServerUnreachable",
            Error::Credentials(_) => "AdministratorRefused",
            Error::Refused(_) => "ServerRefuses",
            Error::Crowded(_) => "ConnectionLimit",
            Error::LoginRefused(_) => LOGIN_REFUSED,
            Error::WrongServer(_) => "WrongServer",
            Error::Api(_) => "ApiUnavailable",
            Error::Conflict => "Conflict",
            Error::Invalid(_) => INVALID,
            Error::NotLeading => "NotLeading",
        }
    }
}
