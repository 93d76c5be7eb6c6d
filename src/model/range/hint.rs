//! The smallest change of a range that matches a version: a remedy for a claim that no resource fits.

use super::comparator::{Comparator, Operator};
use super::interval::is_within;
use super::{Alternative, Version, VersionRange};

/// Moves the bounds that exclude the version; if that is not enough, adds the version's release line as an alternative.
pub(super) fn widen(range: &VersionRange, version: &Version) -> String {
    if range.matches(version) {
        return range.to_string();
    }
    match find_relaxed(range, version) {
        Some(relaxed) => relaxed.to_string(),
        None => add_line(range, version),
    }
}

/// The smallest of the ranges that move bounds in one alternative.
fn find_relaxed(range: &VersionRange, version: &Version) -> Option<VersionRange> {
    let relaxed = (0..range.alternatives.len()).filter_map(|at| find_relaxed_at(range, at, version));
    relaxed.reduce(|best, next| {
        let is_smaller = is_within(&next.intervals, &best.intervals) && next.intervals != best.intervals;
        if is_smaller { next } else { best }
    })
}

fn find_relaxed_at(range: &VersionRange, changed: usize, version: &Version) -> Option<VersionRange> {
    let texts = range.alternatives.iter().enumerate().map(|(at, alternative)| match at == changed {
        true => find_relaxed_text(alternative, version),
        false => Some(alternative.to_string()),
    });
    let text = texts.collect::<Option<Vec<_>>>()?.join(" || ");
    VersionRange::parse(&text).ok().filter(|relaxed| relaxed.matches(version))
}

fn find_relaxed_text(alternative: &Alternative, version: &Version) -> Option<String> {
    let relaxed = alternative.comparators.iter().map(|comparator| match comparator.admits(version) {
        true => Some(comparator.to_string()),
        false => find_relaxed_bound(comparator, version),
    });
    let mut texts = relaxed.collect::<Option<Vec<_>>>()?;
    texts.retain(|text| !text.is_empty());
    Some(if texts.is_empty() { "*".to_owned() } else { texts.join(", ") })
}

/// The bound moved just far enough, in steps of the release line that it was written as; empty to drop it. A bound that
/// names a pre-release stays, because moved it would exclude pre-releases that it matches now.
fn find_relaxed_bound(comparator: &Comparator, version: &Version) -> Option<String> {
    let operand = comparator.operand.as_ref()?;
    if comparator.find_named_prerelease().is_some() {
        return None;
    }
    let length = operand.numbers().len();
    match comparator.operator {
        Operator::Greater | Operator::GreaterOrEqual => Some(format!(">= {}", version.line_text(length))),
        Operator::Less => version.find_next_line_text(length).map(|next| format!("< {next}")),
        Operator::LessOrEqual => Some(format!("<= {}", version.line_text(length))),
        Operator::NotEqual => Some(String::new()),
        Operator::Bare | Operator::Equal | Operator::Tilde | Operator::Caret => None,
    }
}

fn add_line(range: &VersionRange, version: &Version) -> String {
    let line = match version.is_prerelease() {
        true => version.release_text(),
        false => version.line_text(written_length(range).unwrap_or(usize::MAX)),
    };
    let added = format!("{range} || {line}");
    // Only a range of the maximum length cannot be extended: then the release line replaces it.
    if VersionRange::parse(&added).is_ok() { added } else { line }
}

/// How many numbers the user wrote, so that the hint has the same number.
fn written_length(range: &VersionRange) -> Option<usize> {
    let mut comparators = range.alternatives.iter().flat_map(|alternative| &alternative.comparators);
    comparators.find_map(|comparator| comparator.operand.as_ref()).map(|operand| operand.numbers().len())
}
