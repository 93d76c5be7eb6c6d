//! Why `run` ended although nobody asked it to. Failures of single calls are not here: they are answers.

use std::net::SocketAddr;

/// Why the controller cannot begin or go on.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The Lease is somebody else's, or could not be renewed in time. Nothing is written any more; start
    /// again to stand by.
    #[error("lost the lease {lease}: {why}; nothing is written any more, start again to stand by")]
    LeaseLost {
        /// Namespace and name of the Lease.
        lease: String,
        /// What happened to it.
        why: String,
    },
    /// The address for health and metrics cannot be had.
    #[error("cannot listen on {address}: {error}; choose another address, or none")]
    Listen {
        /// The address that was asked for.
        address: SocketAddr,
        /// What the system said.
        error: std::io::Error,
    },
    /// A part of the controller ended by itself. That is a bug.
    #[error("the {part} ended unexpectedly: {why}; this is a bug in conductor, please report it")]
    PartEnded {
        /// Which part.
        part: &'static str,
        /// How.
        why: String,
    },
    /// A list that `get` or `explain` needs cannot be had.
    #[error("cannot list {what}: {why}")]
    List {
        /// Which kind.
        what: String,
        /// What the API said, and what to do about it.
        why: String,
    },
    /// What an administrator asked for cannot be done.
    #[error("{what}: {why}")]
    Refused {
        /// Which object, and what was to be done to it.
        what: String,
        /// What the API said.
        why: String,
    },
    /// No cluster is known, or it cannot be reached with what is known of it.
    #[error("{0}")]
    Connect(String),
}
