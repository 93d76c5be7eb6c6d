//! Version preference: candidates ranked by version, newest or oldest best. One without a version ranks oldest.

use super::{Scorer, normalise};
use crate::cache::Fit;
use crate::model::Version;
use crate::predicates::Query;

pub(super) struct VersionPreference {
    pub newest: bool,
}

impl Scorer for VersionPreference {
    fn score(&self, _ask: &Query<'_>, candidates: &[Fit<'_>], scores: &mut [i64]) {
        let mut versions: Vec<Option<&Version>> = candidates.iter().map(|c| c.version).collect();
        versions.sort();
        versions.dedup();
        let rank = |c: &Fit<'_>| versions.binary_search(&c.version).map_or(0, |at| at as i128);
        let raw: Vec<i128> =
            candidates.iter().map(|c| if self.newest { rank(c) } else { -rank(c) }).collect();
        normalise(&raw, scores);
    }
}
