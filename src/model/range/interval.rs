//! Intervals of versions: what an index scans instead of testing every version. [`super::VersionRange::matches`] decides
//! about each version in an interval.

use super::super::Version;
use std::cmp::Ordering;
use std::ops::Bound;

/// An interval of versions, neither inverted nor empty, so that it is a valid argument for `BTreeMap::range`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Interval {
    /// The start: unbounded, or this version.
    pub lower: Bound<Version>,
    /// The end: unbounded, or before this version.
    pub upper: Bound<Version>,
}

impl Interval {
    /// Whether the version is in it.
    pub fn contains(&self, version: &Version) -> bool {
        starts_by(&self.lower, version) && ends_after(&self.upper, version)
    }

    /// The bounds as `BTreeMap::range` takes them.
    pub fn bounds(&self) -> (Bound<&Version>, Bound<&Version>) {
        (self.lower.as_ref(), self.upper.as_ref())
    }

    /// From one version to before another; None as a bound is unbounded. None if the interval is empty.
    pub(super) fn find(lower: Option<Version>, upper: Option<Version>) -> Option<Interval> {
        let is_empty = matches!((&lower, &upper), (Some(lower), Some(upper)) if lower >= upper);
        let lower = lower.map_or(Bound::Unbounded, Bound::Included);
        let upper = upper.map_or(Bound::Unbounded, Bound::Excluded);
        (!is_empty).then_some(Interval { lower, upper })
    }

    pub(super) fn is_everything(&self) -> bool {
        matches!(self, Interval { lower: Bound::Unbounded, upper: Bound::Unbounded })
    }

    pub(super) fn find_common(&self, other: &Interval) -> Option<Interval> {
        let lower = find_version(&self.lower).max(find_version(&other.lower));
        let upper = match cmp_ends(&self.upper, &other.upper) {
            Ordering::Greater => find_version(&other.upper),
            Ordering::Less | Ordering::Equal => find_version(&self.upper),
        };
        Interval::find(lower.cloned(), upper.cloned())
    }

    /// The interval without pre-releases at its ends.
    pub(super) fn find_without_prereleases(&self) -> Option<Interval> {
        let lower = find_version(&self.lower).cloned().map(Version::above_prereleases);
        let upper = find_version(&self.upper).cloned().map(Version::below_prereleases);
        Interval::find(lower, upper)
    }

    /// The pre-releases of a version's numbers.
    pub(super) fn find_prereleases(version: &Version) -> Option<Interval> {
        let (lower, upper) = (version.clone().below_prereleases(), version.clone().above_prereleases());
        Interval::find(Some(lower), Some(upper))
    }

    fn holds(&self, other: &Interval) -> bool {
        let starts = find_version(&self.lower) <= find_version(&other.lower);
        starts && cmp_ends(&self.upper, &other.upper).is_ge()
    }
}

/// The intersection of two lists.
pub(super) fn intersect(left: &[Interval], right: &[Interval]) -> Vec<Interval> {
    let pairs = left.iter().flat_map(|left| right.iter().map(move |right| (left, right)));
    pairs.filter_map(|(left, right)| left.find_common(right)).collect()
}

/// The union, sorted and disjoint.
pub(super) fn unite(mut intervals: Vec<Interval>) -> Vec<Interval> {
    intervals.sort_by(|a, b| find_version(&a.lower).cmp(&find_version(&b.lower)));
    let mut united: Vec<Interval> = Vec::with_capacity(intervals.len());
    for next in intervals {
        match united.last_mut() {
            Some(last) if touches(last, &next) => {
                if cmp_ends(&last.upper, &next.upper).is_lt() {
                    last.upper = next.upper;
                }
            }
            _ => united.push(next),
        }
    }
    united
}

/// Whether `outer`, sorted and disjoint, contains all of `inner`.
pub(super) fn is_within(inner: &[Interval], outer: &[Interval]) -> bool {
    inner.iter().all(|inner| outer.iter().any(|outer| outer.holds(inner)))
}

/// Whether `next`, which starts no earlier, leaves no gap.
fn touches(last: &Interval, next: &Interval) -> bool {
    match (find_version(&last.upper), find_version(&next.lower)) {
        (Some(end), Some(start)) => start <= end,
        (None, _) | (_, None) => true,
    }
}

/// Compares upper ends; unbounded is the greatest.
fn cmp_ends(left: &Bound<Version>, right: &Bound<Version>) -> Ordering {
    match (find_version(left), find_version(right)) {
        (Some(left), Some(right)) => left.cmp(right),
        (None, None) => Ordering::Equal,
        (None, Some(_)) => Ordering::Greater,
        (Some(_), None) => Ordering::Less,
    }
}

fn find_version(bound: &Bound<Version>) -> Option<&Version> {
    match bound {
        Bound::Included(version) | Bound::Excluded(version) => Some(version),
        Bound::Unbounded => None,
    }
}

fn starts_by(lower: &Bound<Version>, version: &Version) -> bool {
    match lower {
        Bound::Unbounded => true,
        Bound::Included(lower) => lower <= version,
        Bound::Excluded(lower) => lower < version,
    }
}

fn ends_after(upper: &Bound<Version>, version: &Version) -> bool {
    match upper {
        Bound::Unbounded => true,
        Bound::Included(upper) => version <= upper,
        Bound::Excluded(upper) => version < upper,
    }
}
