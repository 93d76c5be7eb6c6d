//! The wall clock in milliseconds, as it is and as a clock that never runs backwards. Controllers read time only here.

use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Milliseconds since 1970.
pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
}

/// Follows the wall clock forwards and never backwards.
#[derive(Debug)]
pub struct MonotonicClock {
    last_ms: i64,
    at: Instant,
}

impl Default for MonotonicClock {
    fn default() -> Self {
        MonotonicClock { last_ms: now_ms(), at: Instant::now() }
    }
}

impl MonotonicClock {
    /// Milliseconds since 1970.
    pub fn now_ms(&mut self) -> i64 {
        let at = Instant::now();
        self.last_ms = advance(self.last_ms, at.duration_since(self.at).as_millis(), now_ms());
        self.at = at;
        self.last_ms
    }
}

/// A wall clock that is set back must not prolong every pause by an hour: time then continues from the last value.
fn advance(last_ms: i64, elapsed_ms: u128, wall_ms: i64) -> i64 {
    last_ms.saturating_add(i64::try_from(elapsed_ms).unwrap_or(i64::MAX)).max(wall_ms)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_follows_the_wall_but_never_goes_back() {
        assert_eq!(advance(1_000, 10, 1_010), 1_010);
        assert_eq!(advance(1_000, 10, 90_000), 90_000, "set forward");
        assert_eq!(advance(90_000, 10, 2_000), 90_010, "set back");
    }
}
