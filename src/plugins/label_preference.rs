//! LabelPreference: listed labels add their weight; the heavier a resource, the better.

use crate::cache::{Ask, Candidate};
use crate::framework::{Scorer, normalise};
use crate::model::profile::LabelWeight;

pub(super) struct LabelPreference<'a> {
    pub labels: &'a [LabelWeight],
}

impl LabelPreference<'_> {
    fn weight(&self, candidate: &Candidate<'_>) -> i128 {
        let liked = |l: &&LabelWeight| match (candidate.label(&l.key), &l.value) {
            (Some(have), Some(want)) => have == &**want,
            (Some(_), None) => true,
            (None, _) => false,
        };
        self.labels.iter().filter(liked).map(|l| i128::from(l.weight)).sum()
    }
}

impl Scorer for LabelPreference<'_> {
    fn score(&self, _ask: &Ask<'_>, candidates: &[Candidate<'_>], scores: &mut [i64]) {
        let raw: Vec<i128> = candidates.iter().map(|c| self.weight(c)).collect();
        normalise(&raw, scores);
    }
}
