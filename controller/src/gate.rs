//! Whether we may write, asked before every write: open while we lead, shut by the clock when nobody renews.
//! It does not elect anybody, and it cannot call back what has been sent.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Shut,
    /// Until then, whether or not anybody gets round to shutting it: a process that was stopped and
    /// goes on must not write with the leadership of an hour ago.
    OpenUntil(Instant),
    Open,
}

/// Whether we may write.
#[derive(Clone, Debug)]
pub(super) struct Gate(Arc<Mutex<State>>);

impl Gate {
    /// A gate that is shut.
    pub fn new() -> Gate {
        Gate(Arc::new(Mutex::new(State::Shut)))
    }

    pub fn open(&self) {
        self.set(State::Open);
    }

    pub fn open_until(&self, end: Instant) {
        self.set(State::OpenUntil(end));
    }

    pub fn shut(&self) {
        self.set(State::Shut);
    }

    pub fn is_open(&self) -> bool {
        self.is_open_at(Instant::now())
    }

    fn is_open_at(&self, now: Instant) -> bool {
        match *self.0.lock().unwrap_or_else(PoisonError::into_inner) {
            State::Shut => false,
            State::OpenUntil(end) => now < end,
            State::Open => true,
        }
    }

    fn set(&self, state: State) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = state;
    }

    /// Shuts the gate when it goes out of scope, however that happens: whoever drops `run` has ended it.
    pub fn shut_on_drop(&self) -> ShutOnDrop {
        ShutOnDrop(self.clone())
    }
}

/// See [`Gate::shut_on_drop`].
#[derive(Debug)]
pub(super) struct ShutOnDrop(Gate);

impl Drop for ShutOnDrop {
    fn drop(&mut self) {
        self.0.shut();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    #[test]
    fn the_gate_shuts_itself_when_its_time_is_over() {
        let (gate, now) = (Gate::new(), Instant::now());
        assert!(!gate.is_open_at(now));
        gate.open_until(now + Duration::from_secs(10));
        assert!(gate.is_open_at(now + Duration::from_secs(9)));
        assert!(!gate.is_open_at(now + Duration::from_secs(10)));
        gate.open();
        assert!(gate.is_open_at(now + Duration::from_secs(1_000)));
        drop(gate.shut_on_drop());
        assert!(!gate.is_open_at(now));
    }
}
