//! Spread and Pack: how many claims hold a resource already, fewest or most best.

use crate::cache::{Ask, Candidate};
use crate::framework::{Scorer, normalise};

pub(super) struct Occupancy {
    pub pack: bool,
}

impl Scorer for Occupancy {
    fn score(&self, _ask: &Ask<'_>, candidates: &[Candidate<'_>], scores: &mut [i64]) {
        let held = |c: &Candidate<'_>| i128::from(c.held);
        let raw: Vec<i128> = candidates.iter().map(|c| if self.pack { held(c) } else { -held(c) }).collect();
        normalise(&raw, scores);
    }
}
