//! Errors before a test begins, with what to fix on the machine.

use std::path::{Path, PathBuf};
use std::process::ExitStatus;

/// Why the control plane cannot start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The build script failed.
    #[error(
        "building the control plane failed ({status}); it needs Go 1.26 or newer and the Go module proxy"
    )]
    Build {
        /// How it ended.
        status: ExitStatus,
    },
    /// A program could not be run.
    #[error("cannot run {what}: {error}")]
    Run {
        /// Which one.
        what: String,
        /// Why.
        error: std::io::Error,
    },
    /// A file could not be written.
    #[error("cannot write {}: {error}", path.display())]
    File {
        /// Which one.
        path: PathBuf,
        /// Why.
        error: std::io::Error,
    },
    /// etcd refused a request.
    #[error("etcd refused: {answer}")]
    Etcd {
        /// What it said instead.
        answer: String,
    },
    /// No port is free.
    #[error("no free loopback port: {0}")]
    Port(std::io::Error),
    /// The certificate could not be made.
    #[error("cannot make a certificate: {0}")]
    Certificate(#[from] rcgen::Error),
    /// A part did not come up.
    #[error("{part} did not become ready; the end of its log:\n{log}")]
    NotReady {
        /// Which one.
        part: &'static str,
        /// The end of its log.
        log: String,
    },
}

impl Error {
    pub(crate) fn file(path: &Path, error: std::io::Error) -> Error {
        Error::File { path: path.to_owned(), error }
    }
}
