//! Ranges of database versions: `5.6`, `>= 13, < 15`, `5.7 || >= 8.0`. A bare version is its release line. Not semver, which
//! reads 5.6 as "5.6 or later" and vendor suffixes as pre-releases.

mod comparator;
mod hint;
mod interval;
#[cfg(test)]
mod tests;

use super::version::{require_text, tidy};
use super::{ValueError, Version};
use comparator::{Comparator, Problem};
pub use interval::Interval;
use serde_json::Value;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::ops::Bound;
use std::sync::Arc;

/// Alternatives, each a list of comparisons combined with AND.
///
/// # Guarantees
/// Every alternative can match a version: parsing refuses contradictions. A pre-release matches only if a comparison of the
/// same alternative names a pre-release of the same numbers: `>= 17rc1` matches 17rc2 and 18, not 18beta1.
///
/// Ranges are equal if they are spelled alike, apart from spaces, commas and wildcards.
#[derive(Clone, Debug)]
pub struct VersionRange {
    text: Arc<str>,
    canonical: Arc<str>,
    alternatives: Vec<Alternative>,
    intervals: Vec<Interval>,
}

#[derive(Clone, Debug)]
struct Alternative {
    comparators: Vec<Comparator>,
    intervals: Vec<Interval>,
}

const FIX: &str = "write a release line like 15 or 5.6, or a range like `>= 13, < 15`";

impl VersionRange {
    /// Parses a range.
    ///
    /// # Errors
    /// The text is not a range, or no version can match it.
    pub fn parse(text: &str) -> Result<VersionRange, ValueError> {
        let refuse = |(problem, fix): Problem| ValueError::new(text, problem, fix.unwrap_or(FIX.to_owned()));
        let clean = tidy(text).map_err(|problem| refuse((problem, None)))?;
        let parts = clean.split("||").map(|part| Alternative::parse(part.trim()));
        let alternatives = parts.collect::<Result<Vec<_>, _>>().map_err(refuse)?;
        let texts: Vec<String> = alternatives.iter().map(Alternative::to_string).collect();
        let all = alternatives.iter().flat_map(|alternative| alternative.intervals.iter().cloned());
        Ok(VersionRange {
            intervals: interval::unite(all.collect()),
            canonical: texts.join(" || ").into(),
            text: clean.as_str().into(),
            alternatives,
        })
    }

    /// Parses a JSON string or number: `version: 5.6` in YAML is a number.
    ///
    /// # Errors
    /// The value is neither, or its text is not a range.
    pub fn from_json(value: &Value) -> Result<VersionRange, ValueError> {
        VersionRange::parse(&require_text(value, "a version or a range", FIX)?)
    }

    /// The range as written.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// Whether the range matches the version.
    pub fn matches(&self, version: &Version) -> bool {
        self.alternatives.iter().any(|alternative| alternative.matches(version))
    }

    /// The intervals in the order of versions that an index scans.
    ///
    /// # Guarantees
    /// Every matching version is in one of them; they are sorted and disjoint. Not every version in them matches:
    /// [`VersionRange::matches`] decides.
    pub fn intervals(&self) -> &[Interval] {
        &self.intervals
    }

    /// Whether every version of the range is older than `version`.
    pub fn is_below(&self, version: &Version) -> bool {
        self.intervals().iter().all(|interval| match &interval.upper {
            Bound::Included(upper) | Bound::Excluded(upper) => upper <= version,
            Bound::Unbounded => false,
        })
    }

    /// Whether it matches every release.
    pub fn is_any(&self) -> bool {
        self.intervals.iter().any(Interval::is_everything)
    }

    /// The version of a new resource for this range: the lowest that the range names and includes, as written. None for
    /// `< 8`, `> 5.6` or `*`, which name none.
    ///
    /// # Guarantees
    /// It is a version that matches.
    pub fn lowest_text(&self) -> Option<String> {
        let comparators = self.alternatives.iter().flat_map(|alternative| &alternative.comparators);
        let starts = comparators.filter_map(Comparator::find_inclusive_start);
        starts.filter(|start| self.matches(start)).min().map(Version::to_string)
    }

    /// The lowest release in both ranges: the start of an interval that they share. None if it has no start, as for `< 8`
    /// and `< 9`.
    ///
    /// # Guarantees
    /// It is a version that matches both.
    pub fn lowest_common(&self, other: &VersionRange) -> Option<String> {
        let starts = interval::intersect(&self.intervals, &other.intervals).into_iter();
        let starts = starts.filter_map(|shared| match shared.lower {
            Bound::Included(start) | Bound::Excluded(start) => Some(start),
            Bound::Unbounded => None,
        });
        let mut starts: Vec<Version> = starts.collect();
        starts.sort();
        let matches = |text: &String| {
            Version::parse(text).is_ok_and(|version| self.matches(&version) && other.matches(&version))
        };
        starts.iter().map(Version::release_text).find(matches)
    }

    /// Whether a version can match both: a release in both, or a pre-release that both name.
    pub fn overlaps(&self, other: &VersionRange) -> bool {
        self.alternatives.iter().any(|one| other.alternatives.iter().any(|another| one.overlaps(another)))
    }

    /// The smallest change of this range, as text, that matches `version`; the range itself if it does already.
    ///
    /// # Guarantees
    /// The text is a range that matches `version` and all that this one matches, unless this one has the maximum length.
    pub fn widen_hint(&self, version: &Version) -> String {
        hint::widen(self, version)
    }
}

impl Alternative {
    fn parse(text: &str) -> Result<Alternative, Problem> {
        let comparators = read_comparators(text)?;
        let everything = Interval::find(None, None).into_iter().collect();
        let all = comparators.iter().fold(everything, |common: Vec<Interval>, comparator| {
            interval::intersect(&common, &comparator.intervals())
        });
        let names_prerelease = comparators.iter().any(|one| one.find_named_prerelease().is_some());
        let intervals = match names_prerelease {
            true => all,
            false => all.iter().filter_map(Interval::find_without_prereleases).collect(),
        };
        if intervals.is_empty() {
            let fix = "write || between alternatives, like `5.6 || 5.7`".to_owned();
            return Err((format!("has `{text}`, which no version matches"), Some(fix)));
        }
        Ok(Alternative { comparators, intervals })
    }

    fn matches(&self, version: &Version) -> bool {
        let counts = !version.is_prerelease()
            || self.comparators.iter().any(|comparator| comparator.names_prerelease_of(version));
        counts && self.intervals.iter().any(|interval| interval.contains(version))
    }

    fn overlaps(&self, other: &Alternative) -> bool {
        let named = self.comparators.iter().filter_map(Comparator::find_named_prerelease);
        let by_both = named.filter(|named| other.comparators.iter().any(|c| c.names_prerelease_of(named)));
        let prereleases: Vec<Interval> = by_both.filter_map(Interval::find_prereleases).collect();
        let common = interval::intersect(&self.intervals, &other.intervals);
        common.iter().any(|shared| shared.find_without_prereleases().is_some())
            || !interval::intersect(&common, &prereleases).is_empty()
    }
}

/// Comparators with a comma, a space or nothing between them.
fn read_comparators(text: &str) -> Result<Vec<Comparator>, Problem> {
    if text.is_empty() {
        return Err(("has an empty alternative beside `||`".to_owned(), None));
    }
    let mut comparators = Vec::new();
    let mut rest = text;
    loop {
        let (comparator, after) = Comparator::read(rest)?;
        comparators.push(comparator);
        let after = after.trim_start();
        if after.is_empty() {
            return Ok(comparators);
        }
        rest = after.strip_prefix(',').unwrap_or(after).trim_start();
        if rest.is_empty() {
            return Err(("ends with a comma".to_owned(), None));
        }
    }
}

impl fmt::Display for Alternative {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let texts: Vec<String> = self.comparators.iter().map(Comparator::to_string).collect();
        f.write_str(&texts.join(", "))
    }
}

/// As it was written.
impl fmt::Display for VersionRange {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl Ord for VersionRange {
    fn cmp(&self, other: &Self) -> Ordering {
        self.canonical.cmp(&other.canonical)
    }
}

impl PartialOrd for VersionRange {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for VersionRange {
    fn eq(&self, other: &Self) -> bool {
        self.canonical == other.canonical
    }
}

impl Eq for VersionRange {}

impl Hash for VersionRange {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.canonical.hash(state);
    }
}
