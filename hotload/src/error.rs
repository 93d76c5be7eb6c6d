//! Errors, with what to do about them. None contains a password.

use std::fmt::Write;
use std::time::Duration;

/// Why a login cannot be read or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder holds no login: a file is missing, empty or invalid.
    #[error("{0}")]
    Incomplete(String),
    /// The files changed while they were read. The source reads them again.
    #[error("folder {0}: its files are being written")]
    Unsettled(String),
    /// The server refuses the login, or cannot be reached.
    #[error("login {login}: {reason}")]
    Refused {
        /// The login, without its password.
        login: String,
        /// The driver's message.
        reason: String,
    },
    /// The server does not respond.
    #[error("login {login}: no response within {within:?}")]
    NoAnswer {
        /// The login, without its password.
        login: String,
        /// The time limit.
        within: Duration,
    },
    /// The login needs a feature that this build does not have.
    #[error("{0}")]
    Unsupported(String),
    /// The driver could not open a connection of the pool.
    #[cfg(feature = "deadpool")]
    #[error("{}", chain(.0))]
    Postgres(#[from] deadpool_postgres::tokio_postgres::Error),
}

/// An error with its causes: drivers keep what matters in the last of them.
#[cfg_attr(
    not(any(feature = "deadpool", feature = "sqlx")),
    expect(dead_code, reason = "no driver is built")
)]
pub(crate) fn chain(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let message = error.to_string();
        // Some errors print their cause themselves.
        if !text.contains(&message) {
            let _ = write!(text, ": {message}");
        }
        cause = error.source();
    }
    text
}
