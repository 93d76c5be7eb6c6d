//! The embedded Kubernetes API held against the real one. A check is a short script of raw requests; it is sent to
//! kube-apiserver and to the embedded API, and the answers must be the same once times, ids and revisions are
//! taken out. There are no stored answers: the real API gives its own at every run.

pub mod check;
pub mod commands;
pub mod compare;
pub mod normal;
pub mod run;
pub mod side;

use std::path::PathBuf;

/// A path of this package.
pub fn here(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(path)
}
