//! Randomness for names and pauses, where it must only differ between processes. Nothing secret is made of it.

use std::hash::{BuildHasher, Hasher, RandomState};
use std::time::Duration;

/// A number that is another one each time.
pub(super) fn number() -> u64 {
    // The standard library seeds each state anew.
    RandomState::new().build_hasher().finish()
}

/// A pause between half and all of `most`, so that many who failed together do not try together.
pub(super) fn pause(most: Duration) -> Duration {
    let part = (number() % 1_000) as u32;
    most / 2 + most / 2 * part / 1_000
}

/// The pause after so many failures: doubling from `first` to `most`, and never the same for all.
pub(super) fn backoff(failures: u32, first: Duration, most: Duration) -> Duration {
    pause(first.saturating_mul(1 << failures.saturating_sub(1).min(16)).min(most))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_a_bound_and_never_vanish() {
        let (first, most) = (Duration::from_millis(100), Duration::from_secs(5));
        for (failures, up_to) in [(0, 100), (1, 100), (2, 200), (4, 800), (7, 5_000), (1_000, 5_000)] {
            let pause = backoff(failures, first, most);
            let up_to = Duration::from_millis(up_to);
            assert!(pause >= up_to / 2 && pause <= up_to, "{failures}: {pause:?}");
        }
    }
}
