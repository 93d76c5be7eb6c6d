//! Which connections use the current login, by their age; and the open sessions, in case they must be ended. It holds no
//! connections: sqlx reports their ages.

use crate::Login;
use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::time::Instant;

/// A session at the server.
#[derive(Clone, Debug, PartialEq)]
pub struct Session {
    /// The user of the session.
    pub user: String,
    /// The server's number for it.
    pub number: u64,
}

/// Most sessions that are remembered.
const SESSIONS_MAX: usize = 4096;

/// The connections of a pool.
pub(super) struct Freshness {
    window: Duration,
    known: Mutex<Known>,
}

struct Known {
    user: String,
    /// The user of the earlier login, if there was one.
    user_before: Option<String>,
    /// When the login was adopted; none for the first login.
    since: Option<Instant>,
    /// Sessions in the order in which they were opened. sqlx does not report when one is closed, so the oldest are dropped
    /// when there are more than any pool holds.
    sessions: VecDeque<Session>,
}

impl Freshness {
    pub(super) fn new(login: &Login, window: Duration) -> Freshness {
        let known = Known {
            user: login.username().to_owned(),
            user_before: None,
            since: None,
            sessions: VecDeque::new(),
        };
        Freshness { window, known: Mutex::new(known) }
    }

    /// Records an adoption; returns when every attempt with the earlier login has ended.
    pub(super) fn adopt(&self, login: &Login) -> Instant {
        let mut known = self.known();
        let before = std::mem::replace(&mut known.user, login.username().to_owned());
        known.user_before = Some(before);
        let now = Instant::now();
        known.since = Some(now);
        now + self.window
    }

    /// Whether a connection of this age uses the current login, or may use it.
    pub(super) fn is_fresh(&self, age: Duration) -> bool {
        let Some(since) = self.known().since else { return true };
        let elapsed = since.elapsed();
        match elapsed > self.window {
            // A connection opened within the window may have begun before it.
            true => age < elapsed - self.window,
            false => age <= elapsed,
        }
    }

    /// Adds a session, unless it belongs to the earlier login because the login changed while it was opened.
    pub(super) fn opened(&self, session: Session) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        let mut known = self.known();
        let is_late = session.user != known.user && Some(&session.user) == known.user_before.as_ref();
        if is_late {
            return Err("the login changed while the connection was opened".into());
        }
        known.sessions.push_back(session);
        if known.sessions.len() > SESSIONS_MAX {
            known.sessions.pop_front();
        }
        Ok(())
    }

    /// Removes and returns the sessions of earlier logins. With one user and changing passwords, these are all.
    pub(super) fn take_older(&self, user: &str) -> Vec<u64> {
        let mut known = self.known();
        let is_alone = known.user_before.as_deref() == Some(user);
        let (older, newer) =
            std::mem::take(&mut known.sessions).into_iter().partition(|one| is_alone || one.user != user);
        known.sessions = newer;
        let older: VecDeque<Session> = older;
        older.into_iter().map(|one| one.number).collect()
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    const WINDOW: Duration = Duration::from_secs(30);

    fn login(user: &str) -> Login {
        let files = BTreeMap::from([("uri".to_owned(), format!("postgres://{user}:p@h/d"))]);
        Login::from_files(&files, None).expect("it is complete")
    }

    #[tokio::test(start_paused = true)]
    async fn older_connections_are_stale_and_recent_ones_replaced_once() {
        let seconds = Duration::from_secs;
        let fresh = Freshness::new(&login("a"), WINDOW);
        assert!(fresh.is_fresh(seconds(1000)));
        fresh.adopt(&login("b"));
        tokio::time::advance(seconds(10)).await;
        assert!(!fresh.is_fresh(seconds(11)));
        assert!(fresh.is_fresh(seconds(9)));
        tokio::time::advance(seconds(30)).await;
        // Opened one second after the change, and two seconds after the window.
        assert!(!fresh.is_fresh(seconds(39)));
        assert!(fresh.is_fresh(seconds(8)));
    }

    #[tokio::test]
    async fn sessions_of_earlier_logins_are_returned_once() {
        let session = |user: &str, number| Session { user: user.to_owned(), number };
        let fresh = Freshness::new(&login("a"), WINDOW);
        fresh.opened(session("a", 1)).expect("it is current");
        fresh.adopt(&login("b"));
        fresh.opened(session("a", 2)).expect_err("it is late");
        fresh.opened(session("b", 3)).expect("it is current");
        // A pooler in between may log in as another user.
        fresh.opened(session("pooler", 4)).expect("it is not of the earlier login");
        assert_eq!(fresh.take_older("b"), [1, 4]);
        assert_eq!(fresh.take_older("b"), [] as [u64; 0]);
    }
}
