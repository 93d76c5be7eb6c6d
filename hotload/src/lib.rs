//! Database pools that follow a mounted Secret.
//!
//! A kubelet delivers a Secret as files and swaps them all at once when it changes. This crate notices, tries the new
//! login, and from then on opens connections with it: an application keeps its pool, and its password is changed
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
//! With `sqlx` the pool is sqlx's own [`PgPool`](::sqlx::PgPool) or [`MySqlPool`](::sqlx::MySqlPool), to be passed on
//! as any other: `hotload::sqlx::postgres(&source, PgPoolOptions::new())?`.
//!
//! # Guarantees
//! - A login is adopted only after a connection with it has been opened and has answered. Until then, and when it does
//!   not work, the one before stays; it is tried again, ever more slowly.
//! - Files are of one moment. What is half written is not tried, and what cannot log in is not adopted.
//! - Graceful: a connection that is in use is left alone, and closed when it is given back. The pool never holds more
//!   connections than it may, in the middle of a change neither.
//! - Forced: connections of earlier logins end at once, whatever they do.
//! - No password is in an error, an event of `tracing`, or what `Debug` and `Display` print.
//!
//! # Assumptions
//! The login before works a little longer than the new one takes to arrive, which is what Conductor's two alternating
//! users are for. The folder is mounted as a whole: a kubelet never refreshes a file that is mounted by `subPath`.
//!
//! Deliberately absent: a proxy for other languages, metrics, and any way to the Kubernetes API. An application needs
//! nothing but its files.

mod desk;
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
