//! Whether this process may write. Every writer checks it before every write, and confirms it by the Lease before it
//! destroys anything. It elects no leader, and it cannot recall a request.

use super::lease::LeaseReader;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Follower,
    /// Expires by itself: a process that was suspended must not write with the leadership of an hour ago.
    LeaderUntil(Instant),
    Leader,
}

/// The leadership of this process, shared by clones.
#[derive(Clone)]
pub struct Leadership {
    state: Arc<Mutex<State>>,
    lease: Option<LeaseReader>,
}

impl std::fmt::Debug for Leadership {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Leadership").field(&self.leads()).finish()
    }
}

impl Leadership {
    /// Does not lead yet. Without a Lease no leader is elected.
    pub fn new(lease: Option<LeaseReader>) -> Leadership {
        Leadership { state: Arc::new(Mutex::new(State::Follower)), lease }
    }

    /// Leads until it resigns.
    pub fn lead(&self) {
        self.set(State::Leader);
    }

    /// Leads until then.
    pub fn lead_until(&self, end: Instant) {
        self.set(State::LeaderUntil(end));
    }

    /// Leads no more.
    pub fn resign(&self) {
        self.set(State::Follower);
    }

    /// Whether this process leads, as far as it knows.
    pub fn leads(&self) -> bool {
        self.leads_at(Instant::now())
    }

    /// Reads the Lease to confirm that this process leads. For what cannot be undone: the clock of a suspended process
    /// stands still, the API's does not.
    ///
    /// # Errors
    /// Another process holds the Lease, or it cannot be read.
    pub async fn confirm(&self) -> Result<(), String> {
        if let Some(lease) = &self.lease {
            lease.confirm().await?;
        }
        self.require()
    }

    /// As [`leads`](Leadership::leads), for writers.
    ///
    /// # Errors
    /// This process does not lead.
    pub fn require(&self) -> Result<(), String> {
        match self.leads() {
            true => Ok(()),
            false => Err("not sent: this process does not lead".to_owned()),
        }
    }

    fn leads_at(&self, now: Instant) -> bool {
        match *self.state.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Follower => false,
            State::LeaderUntil(end) => now < end,
            State::Leader => true,
        }
    }

    fn set(&self, state: State) {
        *self.state.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Resigns when the guard goes out of scope: dropping the controller's future ends its writes.
    pub fn resign_on_drop(&self) -> ResignOnDrop {
        ResignOnDrop(self.clone())
    }
}

/// See [`Leadership::resign_on_drop`].
#[derive(Debug)]
pub struct ResignOnDrop(Leadership);

impl Drop for ResignOnDrop {
    fn drop(&mut self) {
        self.0.resign();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn leadership_expires_by_itself() {
        let (leadership, now) = (Leadership::new(None), Instant::now());
        assert!(!leadership.leads_at(now));
        leadership.lead_until(now + Duration::from_secs(10));
        assert!(leadership.leads_at(now + Duration::from_secs(9)));
        assert!(!leadership.leads_at(now + Duration::from_secs(10)));
        leadership.lead();
        assert!(leadership.leads_at(now + Duration::from_secs(1_000)));
        drop(leadership.resign_on_drop());
        assert!(!leadership.leads_at(now));
    }
}
