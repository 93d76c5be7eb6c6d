//! Pauses between retries, with jitter. Two functions instead of the crate backon: its builders are iterators that own
//! their state, and our callers keep a count of failures already, for their logs.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// The bounds of the pauses of one kind of retry.
#[derive(Clone, Copy, Debug)]
pub struct Backoff {
    /// The pause after the first failure.
    pub first: Duration,
    /// The longest pause.
    pub max: Duration,
}

impl Backoff {
    /// The pause after this many failures: doubled with each, with jitter.
    pub fn pause(&self, failures: u32) -> Duration {
        jitter(self.first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(self.max))
    }
}

/// A pause between half of `max` and `max`, so that clients that failed together do not retry together.
pub fn jitter(max: Duration) -> Duration {
    let part = (random() % 1_000) as u32;
    max / 2 + max / 2 * part / 1_000
}

/// A random number. Not for secrets: it only has to differ between processes.
pub fn random() -> u64 {
    // The standard library seeds each state anew.
    RandomState::new().build_hasher().finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_never_vanish() {
        let backoff = Backoff { first: Duration::from_millis(100), max: Duration::from_secs(5) };
        for (failures, up_to) in [(0, 100), (1, 100), (2, 200), (4, 800), (7, 5_000), (1_000, 5_000)] {
            let pause = backoff.pause(failures);
            let up_to = Duration::from_millis(up_to);
            assert!(pause >= up_to / 2 && pause <= up_to, "{failures}: {pause:?}");
        }
    }
}
