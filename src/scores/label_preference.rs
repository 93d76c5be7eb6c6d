//! LabelPreference: listed labels add their weight; the heavier a resource, the better.

use super::{Scorer, normalise};
use crate::cache::Fit;
use crate::model::profile::LabelWeight;
use crate::predicates::Query;

pub(super) struct LabelPreference<'a> {
    pub labels: &'a [LabelWeight],
}

impl LabelPreference<'_> {
    fn weight(&self, candidate: &Fit<'_>) -> i128 {
        let liked = |l: &&LabelWeight| match (candidate.label(&l.key), &l.value) {
            (Some(have), Some(want)) => have == &**want,
            (Some(_), None) => true,
            (None, _) => false,
        };
        self.labels.iter().filter(liked).map(|l| i128::from(l.weight)).sum()
    }
}

impl Scorer for LabelPreference<'_> {
    fn score(&self, _ask: &Query<'_>, candidates: &[Fit<'_>], scores: &mut [i64]) {
        let raw: Vec<i128> = candidates.iter().map(|c| self.weight(c)).collect();
        normalise(&raw, scores);
    }
}
