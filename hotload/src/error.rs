//! What can go wrong, in words for the one who has to mend it. None of it holds a password.

use std::fmt::Write;
use std::time::Duration;

/// What can go wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The folder holds no login: a file is missing, empty, or not what it should be.
    #[error("{0}")]
    Incomplete(String),
    /// The files changed while they were read. They are read again by itself.
    #[error("folder {0}: its files are being written")]
    Unsettled(String),
    /// The server refuses the login, or cannot be reached.
    #[error("login {login}: {reason}")]
    Refused {
        /// Who wanted to log in where, without the password.
        login: String,
        /// What the driver says.
        reason: String,
    },
    /// The server does not answer.
    #[error("login {login}: no answer within {within:?}")]
    NoAnswer {
        /// Who wanted to log in where, without the password.
        login: String,
        /// How long was waited.
        within: Duration,
    },
    /// The login needs something that this build has not got.
    #[error("{0}")]
    Unsupported(String),
    /// The driver, while a pool opened a connection.
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
        let words = error.to_string();
        // Some print their cause themselves.
        if !text.contains(&words) {
            let _ = write!(text, ": {words}");
        }
        cause = error.source();
    }
    text
}
