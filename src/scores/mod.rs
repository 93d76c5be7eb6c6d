//! Preferences among the resources that fit: one file per score, and the registry that a profile chooses from.
//! The kube-scheduler's Score point. What fits is not decided here.

mod best_fit;
mod label_preference;
mod occupancy;
mod version_preference;

use crate::cache::Fit;
use crate::model::profile::Score;
use crate::predicates::Query;

/// A preference among resources that fit.
pub trait Scorer: Sync {
    /// Adds nothing itself: writes 0 to 100 for each candidate, higher is better.
    fn score(&self, ask: &Query<'_>, candidates: &[Fit<'_>], scores: &mut [i64]);
}

/// The scorer behind a score of a profile.
pub fn scorer(score: &Score) -> Box<dyn Scorer + '_> {
    match score {
        Score::BestFit => Box::new(best_fit::BestFit),
        Score::NewestVersion => Box::new(version_preference::VersionPreference { newest: true }),
        Score::OldestVersion => Box::new(version_preference::VersionPreference { newest: false }),
        Score::Spread => Box::new(occupancy::Occupancy { pack: false }),
        Score::Pack => Box::new(occupancy::Occupancy { pack: true }),
        Score::LabelPreference(labels) => Box::new(label_preference::LabelPreference { labels }),
    }
}

/// Spreads raw values over 0 to 100: the highest gets 100, the lowest 0, all alike get 100.
pub fn normalise(raw: &[i128], scores: &mut [i64]) {
    let (Some(low), Some(high)) = (raw.iter().min(), raw.iter().max()) else { return };
    let span = high.saturating_sub(*low);
    for (score, value) in scores.iter_mut().zip(raw) {
        let above = value.saturating_sub(*low);
        // Scaled down before it is scaled up where the numbers are very large.
        let share = above.checked_mul(100).map_or_else(|| above / (span / 100).max(1), |a| a / span.max(1));
        *score = if span == 0 { 100 } else { i64::try_from(share).unwrap_or(100) };
    }
}
