//! BestFit: the less a resource would have left over, the better. The default order does the same without a score.

use super::{Scorer, normalise};
use crate::cache::Fit;
use crate::predicates::Query;

pub(super) struct BestFit;

impl Scorer for BestFit {
    fn score(&self, _ask: &Query<'_>, candidates: &[Fit<'_>], scores: &mut [i64]) {
        let raw: Vec<i128> = candidates.iter().map(|c| -c.free_primary.nanos()).collect();
        normalise(&raw, scores);
    }
}
