//! Pools of sqlx that follow a source. The pool is sqlx's own type: new connections are opened with the login of now,
//! and those of an earlier one are closed when they are given back, or found stale when they are next taken.
//!
//! sqlx does not say which login a connection was made with, only its age. A connection that was opened while a login
//! was adopted is therefore replaced once more, when every attempt with the earlier login must have ended.
//!
//! A forced change ends sessions at the server, asked by the login that they belong to, which every user may: sqlx
//! gives no way to close a connection that is in use.

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
/// The hooks `after_connect`, `before_acquire` and `after_release` of the options are taken: sqlx has room for one each.
///
/// # Errors
/// The login is for another engine.
pub fn postgres(source: &Source, options: PoolOptions<Postgres>) -> Result<PgPool, Error> {
    pool(source, options)
}

/// A pool for MySQL or MariaDB. It follows the source until it is closed.
///
/// The hooks `after_connect`, `before_acquire` and `after_release` of the options are taken: sqlx has room for one each.
///
/// # Errors
/// The login is for another engine.
pub fn mysql(source: &Source, options: PoolOptions<MySql>) -> Result<MySqlPool, Error> {
    pool(source, options)
}

/// A pool for either.
///
/// # Errors
/// The login is for another engine.
pub fn pool<DB: Followed>(source: &Source, options: PoolOptions<DB>) -> Result<Pool<DB>, Error> {
    let mut told = source.told();
    let first = told.borrow_and_update().clone();
    let connect = DB::connect_options(&first.login)?;
    // Nothing that began before an adoption lasts longer than this.
    let window = options.get_acquire_timeout() + Duration::from_secs(1);
    let fresh = Arc::new(Freshness::new(&first.login, window));
    let pool = hooked(options, &fresh).connect_lazy_with(connect);
    let tender = Tender { pool: pool.clone(), fresh, adopted: first };
    tokio::spawn(async move { tender.pool.close_event().do_until(tender.tend(told)).await });
    Ok(pool)
}

/// Tries a login: connects, asks one question, goes.
///
/// # Errors
/// What the server or the driver says.
pub(crate) async fn knock<DB: Followed>(login: &Login) -> Result<(), String> {
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

/// Looks after one pool.
struct Tender<DB: Followed> {
    pool: Pool<DB>,
    fresh: Arc<Freshness>,
    adopted: Adopted,
}

impl<DB: Followed> Tender<DB> {
    async fn tend(&self, mut told: tokio::sync::watch::Receiver<Adopted>) {
        let mut before = self.adopted.clone();
        let mut window_ends = None;
        loop {
            tokio::select! {
                changed = told.changed() => if changed.is_err() { return },
                () = sleep_until(window_ends) => {
                    window_ends = None;
                    self.close_idle();
                    continue;
                }
            }
            let now = told.borrow_and_update().clone();
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
                // In this order: a connection between the two is taken for old, and replaced.
                self.pool.set_connect_options(options);
                Some(self.fresh.adopt(login))
            }
            // It has logged in, so this is about how the pool is built; the login before is kept.
            Err(error) => {
                tracing::warn!(%error, "the pool cannot use a new login");
                None
            }
        }
    }

    /// Takes what is idle and gives it back, by which what is stale is closed.
    fn close_idle(&self) {
        let idle: Vec<_> = (0..self.pool.num_idle()).map_while(|_| self.pool.try_acquire()).collect();
        drop(idle);
    }

    /// Asked by the earlier login, or where it is refused by now, by the new one.
    async fn end_sessions(&self, before: &Login, now: &Login) {
        let sessions = self.fresh.take_older(now.username());
        for login in [before, now] {
            let asked =
                tokio::time::timeout(END_WITHIN, end_as::<DB>(login, before.username(), &sessions)).await;
            match asked {
                Ok(Ok(ended)) => {
                    tracing::info!(ended, "sessions of earlier logins were ended");
                    return;
                }
                Ok(Err(reason)) => tracing::debug!(%login, %reason, "sessions were not ended"),
                Err(_) => tracing::debug!(%login, "sessions were not ended in time"),
            }
        }
        tracing::warn!("sessions of earlier logins could not be ended; each ends when it is given back");
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
