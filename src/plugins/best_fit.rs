//! BestFit: the less a resource would have left over, the better. The default order does the same without a score.

use crate::cache::{Ask, Candidate};
use crate::framework::{Scorer, normalise};

pub(super) struct BestFit;

impl Scorer for BestFit {
    fn score(&self, _ask: &Ask<'_>, candidates: &[Candidate<'_>], scores: &mut [i64]) {
        let raw: Vec<i128> = candidates.iter().map(|c| -c.free_primary.nanos()).collect();
        normalise(&raw, scores);
    }
}
