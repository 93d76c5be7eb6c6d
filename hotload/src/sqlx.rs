//! sqlx pools that follow a source. The pool is sqlx's own type: new connections use the current login, and those of an
//! earlier one are closed when they return to the pool, or when they are next acquired.
//!
//! sqlx does not report which login a connection uses, only its age. A connection that was opened during an adoption is
//! therefore replaced once more, when every attempt with the earlier login must have ended.
//!
//! A forced change ends sessions at the server, by the login that owns them, as every user may: sqlx cannot close a
//! connection that is in use.

mod engine;
mod freshness;

pub use engine::Followed;

use crate::error::chain;
use crate::source::Adopted;
use crate::{Error, Login, Source};
use freshness::Freshness;
use sqlx::pool::PoolOptions;
use sqlx::{ConnectOptions, Connection, MySql, MySqlPool, PgPool, Pool, Postgres};
use std::sync::Arc;
use std::time::Duration;

/// How long ending sessions at the server may take.
const END_WITHIN: Duration = Duration::from_secs(5);

/// A pool for PostgreSQL. It follows the source until it is closed.
///
/// The hooks `after_connect`, `before_acquire` and `after_release` of the options are used by this crate: sqlx has one of each.
///
/// # Errors
/// The login is for another engine.
pub fn postgres(source: &Source, options: PoolOptions<Postgres>) -> Result<PgPool, Error> {
    pool(source, options)
}

/// A pool for MySQL or MariaDB. It follows the source until it is closed.
///
/// The hooks `after_connect`, `before_acquire` and `after_release` of the options are used by this crate: sqlx has one of each.
///
/// # Errors
/// The login is for another engine.
pub fn mysql(source: &Source, options: PoolOptions<MySql>) -> Result<MySqlPool, Error> {
    pool(source, options)
}

/// A pool for either engine.
///
/// # Errors
/// The login is for another engine.
pub fn pool<DB: Followed>(source: &Source, options: PoolOptions<DB>) -> Result<Pool<DB>, Error> {
    let mut adoptions = source.adoptions();
    let first = adoptions.borrow_and_update().clone();
    let connect = DB::connect_options(&first.login)?;
    // No attempt that began before an adoption lasts longer than this.
    let window = options.get_acquire_timeout() + Duration::from_secs(1);
    let fresh = Arc::new(Freshness::new(&first.login, window));
    let pool = hooked(options, &fresh).connect_lazy_with(connect);
    let maintainer = Maintainer { pool: pool.clone(), fresh, adopted: first };
    tokio::spawn(async move { maintainer.pool.close_event().do_until(maintainer.run(adoptions)).await });
    Ok(pool)
}

/// Tries a login: connects, sends one query, disconnects.
///
/// # Errors
/// The server or the driver refuses the login.
pub(crate) async fn connect_once<DB: Followed>(login: &Login) -> Result<(), String> {
    let options = DB::connect_options(login).map_err(|error| error.to_string())?;
    let mut connection = options.connect().await.map_err(|error| chain(&error))?;
    let answer = connection.ping().await.map_err(|error| chain(&error));
    let _ = connection.close_hard().await;
    answer
}

fn hooked<DB: Followed>(options: PoolOptions<DB>, fresh: &Arc<Freshness>) -> PoolOptions<DB> {
    let [opened, taken, given] = [(); 3].map(|()| Arc::clone(fresh));
    options
        .after_connect(move |connection, _| {
            let fresh = Arc::clone(&opened);
            Box::pin(async move {
                let session = DB::session(connection).await?;
                fresh.opened(session).map_err(sqlx::Error::Configuration)
            })
        })
        .before_acquire(move |_, known| {
            let is_fresh = taken.is_fresh(known.age);
            Box::pin(async move { Ok(is_fresh) })
        })
        .after_release(move |_, known| {
            let is_fresh = given.is_fresh(known.age);
            Box::pin(async move { Ok(is_fresh) })
        })
}

/// Maintains one pool.
struct Maintainer<DB: Followed> {
    pool: Pool<DB>,
    fresh: Arc<Freshness>,
    adopted: Adopted,
}

impl<DB: Followed> Maintainer<DB> {
    async fn run(&self, mut adoptions: tokio::sync::watch::Receiver<Adopted>) {
        let mut before = self.adopted.clone();
        let mut window_ends = None;
        loop {
            tokio::select! {
                changed = adoptions.changed() => if changed.is_err() { return },
                () = sleep_until(window_ends) => {
                    window_ends = None;
                    self.close_idle();
                    continue;
                }
            }
            let now = adoptions.borrow_and_update().clone();
            if now.generation != before.generation {
                window_ends = self.adopt(&now.login);
                self.close_idle();
            }
            if now.floor > before.floor {
                self.end_sessions(&before.login, &now.login).await;
            }
            before = now;
        }
    }

    fn adopt(&self, login: &Login) -> Option<tokio::time::Instant> {
        match DB::connect_options(login) {
            Ok(options) => {
                // In this order: a connection in between counts as old, and is replaced.
                self.pool.set_connect_options(options);
                Some(self.fresh.adopt(login))
            }
            // The login itself works, so the pool lacks a feature for it; the current login stays.
            Err(error) => {
                tracing::warn!(%error, "the pool cannot use the new login");
                None
            }
        }
    }

    /// Acquires idle connections and returns them, which closes stale ones.
    fn close_idle(&self) {
        let idle: Vec<_> = (0..self.pool.num_idle()).map_while(|_| self.pool.try_acquire()).collect();
        drop(idle);
    }

    /// Ends sessions by the earlier login, or by the new one if the server refuses the earlier one by now.
    async fn end_sessions(&self, before: &Login, now: &Login) {
        let sessions = self.fresh.take_older(now.username());
        for login in [before, now] {
            let outcome =
                tokio::time::timeout(END_WITHIN, end_as::<DB>(login, before.username(), &sessions)).await;
            match outcome {
                Ok(Ok(ended)) => {
                    tracing::info!(ended, "ended sessions of earlier logins");
                    return;
                }
                Ok(Err(reason)) => tracing::debug!(%login, %reason, "cannot end sessions"),
                Err(_) => tracing::debug!(%login, "cannot end sessions in time"),
            }
        }
        tracing::warn!("cannot end sessions of earlier logins; each ends when it returns to the pool");
    }
}

async fn end_as<DB: Followed>(login: &Login, user: &str, sessions: &[u64]) -> Result<usize, String> {
    let options = DB::connect_options(login).map_err(|error| error.to_string())?;
    let mut connection = options.connect().await.map_err(|error| chain(&error))?;
    let ended = DB::end(&mut connection, user, sessions).await.map_err(|error| chain(&error));
    let _ = connection.close_hard().await;
    ended
}

async fn sleep_until(end: Option<tokio::time::Instant>) {
    match end {
        Some(end) => tokio::time::sleep_until(end).await,
        None => std::future::pending().await,
    }
}
