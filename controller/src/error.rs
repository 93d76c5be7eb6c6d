//! Why `run` ended by itself, and why a command failed. Failed calls of the controller are answers, not errors.

use conductor_runtime::elector::LeaseLost;
use std::net::SocketAddr;

/// Why the controller cannot start or continue.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// This process does not lead any more.
    #[error(transparent)]
    LeaseLost(#[from] LeaseLost),
    /// The address for health and metrics is not available.
    #[error("cannot listen on {address}: {error}; choose another address, or none")]
    Listen {
        /// The requested address.
        address: SocketAddr,
        /// The error of the operating system.
        error: std::io::Error,
    },
    /// A part of the controller ended by itself. That is a bug.
    #[error("the {part} ended unexpectedly: {why}; this is a bug in conductor, please report it")]
    PartEnded {
        /// The name of the part.
        part: &'static str,
        /// How it ended.
        why: String,
    },
    /// A list that a command requires is not available.
    #[error("cannot list {what}: {why}")]
    List {
        /// The kind.
        what: String,
        /// The API's message, and what to do.
        why: String,
    },
    /// The API refused a request of an administrator.
    #[error("{what}: {why}")]
    Refused {
        /// The failed request and its object.
        what: String,
        /// The API's message.
        why: String,
    },
}
