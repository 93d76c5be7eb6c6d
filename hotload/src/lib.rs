//! Database connections that follow a mounted Secret. A kubelet delivers a Secret as files and replaces them all at once
//! when it changes; this crate notices, tries the new login, and from then on opens connections with it. Connections of
//! the login before are replaced when they are next taken from the pool, or ended at once where that is asked for.
//!
//! ```no_run
//! # async fn example() -> Result<(), hotload::Error> {
//! let source = hotload::Source::open("/etc/connection", hotload::Mode::Graceful).await?;
//! let pool = hotload::pool(&source, 8)?;
//! let client = pool.get().await.map_err(|error| hotload::Error::Pool(error.to_string()))?;
//! client.simple_query("SELECT 1").await?;
//! # Ok(())
//! # }
//! ```
//!
//! Deliberately absent: file system notifications. What a kubelet delivers, it delivers once a minute by swapping a
//! symbolic link; looking twice a second costs a few reads, sees renames, deletions and half-written files alike, and
//! works on every file system.

mod files;
mod pool;
mod source;

pub use files::Login;
pub use pool::{Connection, Manager, Pool, pool};
pub use source::{Mode, Source};

/// What can go wrong. None of it holds a password.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder has no login: a file is missing or cannot be read.
    #[error("{0}")]
    Incomplete(String),
    /// The server refuses, or cannot be reached.
    #[error("the database cannot be reached: {0}")]
    Database(#[from] tokio_postgres::Error),
    /// The pool cannot be made, or has nothing to give.
    #[error("the pool: {0}")]
    Pool(String),
}
