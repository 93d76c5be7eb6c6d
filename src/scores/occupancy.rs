//! Spread and Pack: how many claims hold a resource already, fewest or most best.

use super::{Scorer, normalise};
use crate::cache::Fit;
use crate::predicates::Query;

pub(super) struct Occupancy {
    pub pack: bool,
}

impl Scorer for Occupancy {
    fn score(&self, _ask: &Query<'_>, candidates: &[Fit<'_>], scores: &mut [i64]) {
        let held = |c: &Fit<'_>| i128::from(c.held);
        let raw: Vec<i128> = candidates.iter().map(|c| if self.pack { held(c) } else { -held(c) }).collect();
        normalise(&raw, scores);
    }
}
