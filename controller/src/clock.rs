//! The time that the engine is told: the wall's, but never backwards. It asks the clocks; nothing else does.

use conductor::model::Time;
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Tells the time.
#[derive(Debug)]
pub(super) struct Clock {
    last: Time,
    at: Instant,
}

impl Clock {
    pub fn new() -> Clock {
        Clock { last: wall(), at: Instant::now() }
    }

    /// The time now.
    pub fn now(&mut self) -> Time {
        let at = Instant::now();
        self.last = advance(self.last, at.duration_since(self.at).as_millis(), wall());
        self.at = at;
        self.last
    }
}

/// A wall clock that is put back must not hold up every pause by an hour: time then goes on from where it was.
fn advance(last: Time, elapsed_ms: u128, wall: Time) -> Time {
    last.plus_ms(i64::try_from(elapsed_ms).unwrap_or(i64::MAX)).max(wall)
}

fn wall() -> Time {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    Time(i64::try_from(since.as_millis()).unwrap_or(i64::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn time_follows_the_wall_but_never_goes_back() {
        assert_eq!(advance(Time(1_000), 10, Time(1_010)), Time(1_010));
        assert_eq!(advance(Time(1_000), 10, Time(90_000)), Time(90_000), "put forward");
        assert_eq!(advance(Time(90_000), 10, Time(2_000)), Time(90_010), "put back");
    }
}
