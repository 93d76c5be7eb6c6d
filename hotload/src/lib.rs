//! Database pools that follow a mounted Secret.
//!
//! A kubelet delivers a Secret as files and swaps them all at once when it changes. This crate notices the change, tries
//! the new login, and from then on opens connections with it: the application keeps its pool, and its password changes
//! without a restart and without a failed query.
//!
//! ```no_run
//! # #[cfg(feature = "deadpool")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! let source = hotload::Source::open("/etc/connection").await?;
//! let pool = hotload::deadpool::pool(&source, 8);
//!
//! let client = pool.get().await?;
//! let row = client.query_one("SELECT current_user::text", &[]).await?;
//! println!("{} by login {}", row.get::<_, &str>(0), source.generation());
//! # Ok(())
//! # }
//! ```
//!
//! With `sqlx` the pool is sqlx's own [`PgPool`](::sqlx::PgPool) or [`MySqlPool`](::sqlx::MySqlPool):
//! `hotload::sqlx::postgres(&source, PgPoolOptions::new())?`.
//!
//! # Guarantees
//! - A login is adopted only after a connection with it has been opened and has answered. Until then, and when it does
//!   not work, the current one stays; the new one is retried with backoff.
//! - Files are read as they are at one moment. Half-written files are not tried, and a login that fails is not adopted.
//! - Graceful: a connection in use is left alone, and closes when it returns to the pool. The pool never exceeds its
//!   size, not even during a change.
//! - Forced: connections of earlier logins end at once, whatever they do.
//! - No password is in an error, an event of `tracing`, or the output of `Debug` and `Display`.
//!
//! # Assumptions
//! The earlier login keeps working until the new one has arrived, as Conductor's two alternating users do. The folder is
//! mounted as a whole: a kubelet never refreshes a file that is mounted by `subPath`.
//!
//! Deliberately absent: a proxy for other languages, metrics, and access to the Kubernetes API. An application needs
//! only its files.

mod adoption;
mod dsn;
mod error;
mod folder;
mod login;
mod probe;
mod source;
mod watch;

#[cfg(feature = "deadpool")]
pub mod deadpool;
#[cfg(feature = "sqlx")]
pub mod sqlx;
#[cfg(all(feature = "tls", feature = "deadpool"))]
mod tls;

pub use error::Error;
pub use login::{Engine, Login, SslMode};
pub use source::{Mode, Settings, Source};
