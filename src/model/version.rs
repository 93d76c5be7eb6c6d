//! The version of a database as vendors write it: `8.0.36-28`, `17rc1`, `15.4 (Debian 15.4-1.pgdg120+1)`. `range` has the
//! ranges of claims. Not semver: vendor suffixes are not pre-releases, and versions have one to many numbers.

use super::ValueError;
use serde_json::Value;
use smallvec::SmallVec;
use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

/// A version: numbers, optionally a pre-release, optionally a vendor's suffix.
///
/// ```text
/// 8.0.36-28          numbers 8.0.36, vendor -28
/// 17rc1              numbers 17, pre-release rc 1
/// 5.7.mysql_aurora.2 numbers 5.7, vendor .mysql_aurora.2
/// ```
///
/// # Guarantees
/// The order is total and agrees with equality: first the numbers, where absent ones are zero (`15` and `15.0` are equal);
/// then a pre-release before its release; then the vendor's suffix, its numbers as numbers. The spelling (`v15`, `15.0`)
/// does not matter, so equal versions are in the same ranges.
#[derive(Clone, Debug)]
pub struct Version {
    numbers: Numbers,
    stage: Stage,
    vendor: Box<str>,
    ceiling: bool,
    text: Arc<str>,
}

type Numbers = SmallVec<[u64; 4]>;

/// Pre-release or release. `Floor` is below all versions of the same numbers; only ends of intervals have it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
enum Stage {
    Floor,
    Pre { word: usize, number: Option<u64> },
    Release,
}

/// Names of pre-releases, in order.
const PRE_WORDS: [&str; 11] =
    ["dev", "devel", "snapshot", "nightly", "m", "dmr", "alpha", "beta", "pre", "preview", "rc"];
/// MySQL's milestones, `5.7.5-m15`. Without its number an `m` is just a letter.
const MILESTONE: &str = "m";

/// The maximum length of a version or range. The longest known one, with its compiler, has about half.
pub(super) const CHARS_MAX: usize = 256;

const FIX: &str = "write it like 15, 5.6 or 8.0.36";

impl Version {
    /// Parses a version, with or without a leading `v`.
    ///
    /// # Errors
    /// The text does not begin with a number, or has an invalid suffix.
    pub fn parse(text: &str) -> Result<Version, ValueError> {
        let refuse = |problem: String| ValueError::new(text, problem, FIX);
        let clean = tidy(text).map_err(refuse)?;
        let body = strip_v(&clean);
        let (numbers, suffix) = read_numbers(body).map_err(refuse)?;
        check_suffix(suffix).map_err(refuse)?;
        let (stage, vendor) = read_stage(suffix).map_err(refuse)?;
        Ok(Version {
            numbers,
            stage,
            vendor: vendor_key(vendor),
            ceiling: false,
            text: clean.as_str().into(),
        })
    }

    /// Parses a JSON string or number: `version: 5.6` in YAML is a number. (So is `5.10`, which YAML reads as 5.1: quote it.)
    ///
    /// # Errors
    /// The value is neither, or its text is not a version.
    pub fn from_json(value: &Value) -> Result<Version, ValueError> {
        Version::parse(&require_text(value, "a version", FIX)?)
    }

    /// Its numbers, as many as written.
    pub fn numbers(&self) -> &[u64] {
        &self.numbers
    }

    /// Whether it is a pre-release: `17rc1`, `8.4.0-alpha`. A vendor's suffix is not a pre-release.
    pub fn is_prerelease(&self) -> bool {
        matches!(self.stage, Stage::Pre { .. })
    }

    /// Whether both have the same numbers, with any suffix.
    pub(super) fn same_numbers(&self, other: &Version) -> bool {
        cmp_numbers(&self.numbers, &other.numbers).is_eq()
    }

    /// The end of the release line that this version represents: `5.6` for every 5.6.x, `18beta` for its betas, `8.0.36-28`
    /// for that suffix and those that extend it. None if no version follows.
    pub(super) fn line_end(&self) -> Option<Version> {
        let stage = match (self.vendor.is_empty(), self.stage) {
            (true, Stage::Release | Stage::Floor) => return Version::floor_after(&self.numbers),
            (true, Stage::Pre { word, number: None }) => Stage::Pre { word, number: Some(u64::MAX) },
            (true | false, stage) => stage,
        };
        let text = format!("above {self}").into();
        Some(Version { stage, ceiling: true, text, ..self.clone() })
    }

    /// The end of the release line of `numbers`: for 5.6, just below the first pre-release of 5.7. None if no number follows.
    pub(super) fn floor_after(numbers: &[u64]) -> Option<Version> {
        successor(numbers).map(Version::floor_of)
    }

    /// This start of an interval without pre-releases: a start below the pre-releases of 5.7 moves up to 5.7.
    pub(super) fn above_prereleases(self) -> Version {
        match self.stage {
            Stage::Floor | Stage::Pre { .. } => {
                let text = join(&self.numbers).into();
                Version { stage: Stage::Release, vendor: "".into(), ceiling: false, text, ..self }
            }
            Stage::Release => self,
        }
    }

    /// This end of an interval without pre-releases: an end at 5.7 moves down below its pre-releases.
    pub(super) fn below_prereleases(self) -> Version {
        match self.stage {
            Stage::Release if self.vendor.is_empty() && !self.ceiling => Version::floor_of(self.numbers),
            Stage::Pre { .. } => Version::floor_of(self.numbers),
            Stage::Floor | Stage::Release => self,
        }
    }

    fn floor_of(numbers: Numbers) -> Version {
        let text = format!("below {}", join(&numbers)).into();
        Version { numbers, stage: Stage::Floor, vendor: "".into(), ceiling: false, text }
    }

    /// The release line of at most `length` numbers that it lies in: 5.7 for 5.7.2 and 2.
    pub(super) fn line_text(&self, length: usize) -> String {
        join(self.leading(length))
    }

    /// The release line after that: 5.8 for 5.7.2 and 2.
    pub(super) fn find_next_line_text(&self, length: usize) -> Option<String> {
        successor(self.leading(length)).map(|numbers| join(&numbers))
    }

    /// Numbers and pre-release as a range would name them, without the vendor's suffix.
    pub(super) fn release_text(&self) -> String {
        let numbers = join(&self.numbers);
        match self.stage {
            Stage::Pre { word, number } => {
                let dash = if self.numbers.len() > 2 { "-" } else { "" };
                let word = PRE_WORDS.get(word).unwrap_or(&"");
                let number = number.map(|number| number.to_string()).unwrap_or_default();
                format!("{numbers}{dash}{word}{number}")
            }
            Stage::Floor | Stage::Release => numbers,
        }
    }

    fn leading(&self, length: usize) -> &[u64] {
        self.numbers.get(..length.max(1)).unwrap_or(&self.numbers)
    }
}

/// Trims, collapses white space, and refuses characters that no version has.
pub(super) fn tidy(text: &str) -> Result<String, String> {
    if text.chars().nth(CHARS_MAX).is_some() {
        return Err(format!("is longer than {CHARS_MAX} characters"));
    }
    let clean = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match clean.chars().find(|c| !c.is_ascii_graphic() && *c != ' ') {
        Some(odd) => Err(format!("has the character `{}`", odd.escape_debug())),
        None if clean.is_empty() => Err("is empty".to_owned()),
        None => Ok(clean),
    }
}

/// The text of a JSON string, or of a number of digits and a point.
pub(super) fn require_text(value: &Value, what: &str, fix: &str) -> Result<String, ValueError> {
    let refuse = |text: &str| ValueError::new(text, format!("is not {what}"), fix);
    match value {
        Value::String(text) => Ok(text.clone()),
        Value::Number(number) => {
            let text = number.to_string();
            let plain = text.bytes().all(|b| b.is_ascii_digit() || b == b'.');
            if plain { Ok(text) } else { Err(refuse(&text)) }
        }
        other => Err(refuse(&other.to_string())),
    }
}

pub(super) fn strip_v(text: &str) -> &str {
    match text.strip_prefix(['v', 'V']) {
        Some(rest) if rest.starts_with(|c: char| c.is_ascii_digit()) => rest,
        _ => text,
    }
}

/// The numbers at the start, and the rest.
fn read_numbers(text: &str) -> Result<(Numbers, &str), String> {
    let mut numbers = Numbers::new();
    let mut rest = text;
    loop {
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (digits, after) = rest.split_at(end);
        if digits.is_empty() {
            return Err("does not begin with a number".to_owned());
        }
        numbers.push(require_number(digits)?);
        match after.strip_prefix('.') {
            Some(next) if next.starts_with(|c: char| c.is_ascii_digit()) => rest = next,
            _ => return Ok((numbers, after)),
        }
    }
}

fn require_number(digits: &str) -> Result<u64, String> {
    digits.parse().map_err(|_| format!("has the number {digits}, which is too large"))
}

/// Checks a suffix: vendors write `-28`, `.mysql_aurora.2`, ` (Debian ...)`; operators, wildcards and a second version
/// belong in a range.
fn check_suffix(suffix: &str) -> Result<(), String> {
    if let Some(operator) = suffix.chars().find(|c| "<>=!^*|".contains(*c)) {
        return Err(format!("has `{operator}`, which belongs in a range, not in a version"));
    }
    let attached = suffix.split([' ', '(']).next().unwrap_or("");
    if let Some(odd) = attached.chars().find(|c| !c.is_ascii_alphanumeric() && !".-+_~:".contains(*c)) {
        return Err(format!("has `{odd}`"));
    }
    let component = suffix.strip_prefix('.').map(|rest| split_while(rest, |c| c.is_ascii_alphanumeric()).0);
    if let Some("x" | "X") = component {
        return Err("has `x`, which belongs in a range, not in a version".to_owned());
    }
    let mut chars = suffix.chars();
    match (chars.next(), chars.next()) {
        (None, _) | (Some('('), _) | (Some(' '), Some('(')) => Ok(()),
        (Some(' '), Some(next)) if next.is_ascii_alphabetic() => Ok(()),
        (Some(' '), Some(_)) => Err("has more than one version".to_owned()),
        (Some('.'), Some(next)) if next.is_ascii_alphabetic() => Ok(()),
        (Some('.'), _) => Err("has nothing between or after its points".to_owned()),
        (Some('-' | '+' | '_' | '~' | ':'), Some(next)) if next.is_ascii_alphanumeric() => Ok(()),
        (Some(first), _) if first.is_ascii_alphabetic() => Ok(()),
        (Some(first), _) => Err(format!("has nothing after `{first}`")),
    }
}

/// Splits a suffix into the pre-release, if it begins with one, and the vendor's suffix.
fn read_stage(suffix: &str) -> Result<(Stage, &str), String> {
    // A `+` starts build metadata in semver, so `15.2+dev` is a build, not a pre-release.
    let start = suffix.strip_prefix(['-', '.', '_', '~', ' ']).unwrap_or(suffix);
    let (letters, after) = split_while(start, |c| c.is_ascii_alphabetic());
    let lower = letters.to_ascii_lowercase();
    let Some(word) = PRE_WORDS.iter().position(|known| *known == lower) else {
        return Ok((Stage::Release, suffix));
    };
    let (digits, rest) =
        split_while(after.strip_prefix(['.', '-', '_']).unwrap_or(after), |c| c.is_ascii_digit());
    match digits {
        "" if lower == MILESTONE => Ok((Stage::Release, suffix)),
        "" => Ok((Stage::Pre { word, number: None }, after)),
        digits => Ok((Stage::Pre { word, number: Some(require_number(digits)?) }, rest)),
    }
}

fn split_while(text: &str, belongs: fn(char) -> bool) -> (&str, &str) {
    let end = text.find(|c| !belongs(c)).unwrap_or(text.len());
    text.split_at(end)
}

/// The numbers that follow all versions that begin with these.
fn successor(numbers: &[u64]) -> Option<Numbers> {
    let (last, front) = numbers.split_last()?;
    match last.checked_add(1) {
        Some(next) => Some(front.iter().copied().chain([next]).collect()),
        None => successor(front),
    }
}

fn join(numbers: &[u64]) -> String {
    let texts: Vec<String> = numbers.iter().map(u64::to_string).collect();
    texts.join(".")
}

/// Absent numbers are zero.
fn cmp_numbers(left: &[u64], right: &[u64]) -> Ordering {
    let at = |numbers: &[u64], at: usize| numbers.get(at).copied().unwrap_or(0);
    let mut orders = (0..left.len().max(right.len())).map(|i| at(left, i).cmp(&at(right, i)));
    orders.find(|order| order.is_ne()).unwrap_or(Ordering::Equal)
}

/// A token of a vendor's suffix. Numbers compare by length and then by digits, so that they cannot overflow.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
enum Token<'a> {
    Mark(&'a str),
    Number(usize, &'a str),
    Word(&'a str),
    Ceiling,
}

fn tokens(mut text: &str) -> impl Iterator<Item = Token<'_>> {
    std::iter::from_fn(move || {
        let first = text.chars().next()?;
        let (piece, rest) = match first {
            c if c.is_ascii_digit() => split_while(text, |c| c.is_ascii_digit()),
            c if c.is_ascii_alphabetic() => split_while(text, |c| c.is_ascii_alphabetic()),
            c => text.split_at(c.len_utf8()),
        };
        text = rest;
        Some(match first {
            c if c.is_ascii_digit() => number_token(piece),
            c if c.is_ascii_alphabetic() => Token::Word(piece),
            _ => Token::Mark(piece),
        })
    })
}

fn number_token(digits: &str) -> Token<'_> {
    let significant = digits.trim_start_matches('0');
    Token::Number(significant.len(), significant)
}

/// The suffix for comparisons: lower case, numbers without leading zeros, so that equal suffixes are equal texts.
fn vendor_key(suffix: &str) -> Box<str> {
    let lower = suffix.to_ascii_lowercase();
    let pieces = tokens(&lower).map(|token| match token {
        Token::Number(0, _) => "0",
        Token::Mark(piece) | Token::Number(_, piece) | Token::Word(piece) => piece,
        Token::Ceiling => "",
    });
    pieces.collect::<String>().into()
}

impl Ord for Version {
    fn cmp(&self, other: &Self) -> Ordering {
        cmp_numbers(&self.numbers, &other.numbers)
            .then_with(|| self.stage.cmp(&other.stage))
            .then_with(|| cmp_vendors(self, other))
    }
}

fn cmp_vendors(left: &Version, right: &Version) -> Ordering {
    let end = |version: &Version| version.ceiling.then_some(Token::Ceiling);
    tokens(&left.vendor).chain(end(left)).cmp(tokens(&right.vendor).chain(end(right)))
}

impl PartialOrd for Version {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Version {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Version {}

impl Hash for Version {
    fn hash<H: Hasher>(&self, state: &mut H) {
        let zeros = self.numbers.iter().rev().take_while(|number| **number == 0).count();
        let significant = self.numbers.len().saturating_sub(zeros);
        self.numbers.get(..significant).hash(state);
        (self.stage, &self.vendor, self.ceiling).hash(state);
    }
}

/// As it was written.
impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;
    use std::hash::DefaultHasher;

    fn version(text: &str) -> Version {
        Version::parse(text).unwrap_or_else(|error| panic!("{error}"))
    }

    fn hash(version: &Version) -> u64 {
        let mut hasher = DefaultHasher::new();
        version.hash(&mut hasher);
        hasher.finish()
    }

    #[test]
    fn reads_what_vendors_write() {
        for (text, numbers, prerelease) in [
            ("15", vec![15], false),
            ("5.6", vec![5, 6], false),
            ("8.0.36", vec![8, 0, 36], false),
            ("v15.2", vec![15, 2], false),
            ("V15", vec![15], false),
            (" 15.4 ", vec![15, 4], false),
            ("8.0.36-28", vec![8, 0, 36], false),
            ("8.0.36-28.1", vec![8, 0, 36], false),
            ("10.11.6-MariaDB", vec![10, 11, 6], false),
            ("10.11.6-MariaDB-1:10.11.6+maria~ubu2204", vec![10, 11, 6], false),
            ("5.7.mysql_aurora.2.11.1", vec![5, 7], false),
            ("8.0.mysql_aurora.3.05.2", vec![8, 0], false),
            ("15.4 (Debian 15.4-1.pgdg120+1)", vec![15, 4], false),
            ("16.3 on x86_64-pc-linux-gnu, compiled by gcc", vec![16, 3], false),
            ("2.19.0.0-b190", vec![2, 19, 0, 0], false),
            ("19c", vec![19], false),
            ("5.7.44-log", vec![5, 7, 44], false),
            ("8.0.1-deviant", vec![8, 0, 1], false),
            ("8.0.1-m", vec![8, 0, 1], false),
            ("15.2+dev", vec![15, 2], false),
            ("1.2.3.4.5.6.7", vec![1, 2, 3, 4, 5, 6, 7], false),
            ("18446744073709551615", vec![u64::MAX], false),
            ("17rc1", vec![17], true),
            ("18beta2", vec![18], true),
            ("17.0-rc.1", vec![17, 0], true),
            ("8.4.0-alpha", vec![8, 4, 0], true),
            ("19devel", vec![19], true),
            ("17-beta1", vec![17], true),
            ("17~rc1-1", vec![17], true),
            ("17 rc1", vec![17], true),
            ("17RC1", vec![17], true),
            ("17rc1 (Debian 17~rc1-1)", vec![17], true),
            ("5.7.5-m15", vec![5, 7, 5], true),
            ("8.0.0-dmr", vec![8, 0, 0], true),
            ("8.0.4-rc-log", vec![8, 0, 4], true),
            ("1.0-preview", vec![1, 0], true),
            ("1.0-SNAPSHOT", vec![1, 0], true),
            ("1.0-dev", vec![1, 0], true),
            ("1.0-pre", vec![1, 0], true),
        ] {
            let version = version(text);
            assert_eq!(version.numbers(), numbers, "{text}");
            assert_eq!(version.is_prerelease(), prerelease, "{text}");
        }
    }

    #[test]
    fn refuses_what_is_no_version() {
        for (text, problem) in [
            ("", "is empty"),
            ("  ", "is empty"),
            ("latest", "does not begin with a number"),
            ("a.b", "does not begin with a number"),
            ("PostgreSQL 15.4", "does not begin with a number"),
            ("v", "does not begin with a number"),
            ("vv15", "does not begin with a number"),
            (".5", "does not begin with a number"),
            ("-5", "does not begin with a number"),
            ("5..6", "has nothing between or after its points"),
            ("5.", "has nothing between or after its points"),
            ("5.6.", "has nothing between or after its points"),
            ("5.-1", "has nothing between or after its points"),
            ("5-", "has nothing after `-`"),
            ("5.6 5.7", "has more than one version"),
            ("5.x", "has `x`, which belongs in a range, not in a version"),
            ("5.x.3", "has `x`, which belongs in a range, not in a version"),
            ("5.*", "has `*`, which belongs in a range, not in a version"),
            (">= 5", "does not begin with a number"),
            ("5 || 6", "has `|`, which belongs in a range, not in a version"),
            ("5,6", "has `,`"),
            ("5/6", "has `/`"),
            ("15\u{0}", "has the character `\\0`"),
            ("１５", "has the character `１`"),
            ("18446744073709551616", "has the number 18446744073709551616, which is too large"),
            ("17rc99999999999999999999", "has the number 99999999999999999999, which is too large"),
        ] {
            let error = Version::parse(text).expect_err(text);
            assert_eq!((error.value.as_str(), error.problem.as_str()), (text, problem));
            assert_eq!(error.fix, FIX);
        }
        let long = "1.".repeat(200) + "1";
        assert_eq!(Version::parse(&long).expect_err("long").problem, "is longer than 256 characters");
    }

    #[test]
    fn orders_as_releases_came_out() {
        let ascending = [
            "0.9",
            "5.6.51",
            "5.7.5-m2",
            "5.7.5-m15",
            "5.7.5",
            "8.0.36",
            "8.0.36-9",
            "8.0.36-28",
            "8.0.36-28.1",
            "8.0.36-100000000000000000000000000",
            "8.0.37",
            "9.9",
            "9.10",
            "17dev",
            "17devel",
            "17alpha1",
            "17beta",
            "17beta2",
            "17beta10",
            "17rc1",
            "17rc1-1",
            "17rc2",
            "17",
            "17.0.1",
            "17.1",
        ]
        .map(version);
        for pair in ascending.windows(2) {
            assert!(pair[0] < pair[1], "{} < {}", pair[0], pair[1]);
        }
    }

    #[test]
    fn equal_versions_need_not_be_written_alike() {
        for (left, right) in [
            ("15", "15.0"),
            ("15", "v15.0.0"),
            ("17rc1", "17.0-rc.1"),
            ("17rc1", "17-RC-1"),
            ("8.0.mysql_aurora.3.05.2", "8.0.mysql_aurora.3.5.2"),
            ("10.11.6-MariaDB", "10.11.6-mariadb"),
            ("5.06", "5.6"),
        ] {
            assert_eq!(version(left), version(right));
            assert_eq!(hash(&version(left)), hash(&version(right)), "{left} {right}");
        }
        assert_ne!(version("8.0.36"), version("8.0.36-28"));
        assert_ne!(version("15"), version("15rc1"));
    }

    #[test]
    fn shows_the_version_as_written() {
        for (text, want) in [
            ("v15.0", "v15.0"),
            ("  15.4   (Debian\t15.4-1) ", "15.4 (Debian 15.4-1)"),
            ("10.11.6-MariaDB", "10.11.6-MariaDB"),
        ] {
            assert_eq!(version(text).to_string(), want);
        }
    }

    #[test]
    fn reads_json_strings_and_numbers() {
        for (value, want) in [
            (json!("8.0.36"), Some("8.0.36")),
            (json!(5.6), Some("5.6")),
            (json!(15), Some("15")),
            (json!(8.0), Some("8.0")),
            (json!(-5), None),
            (json!(1e300), None),
            (json!(true), None),
            (json!(null), None),
            (json!(["15"]), None),
            (json!({}), None),
        ] {
            let text = Version::from_json(&value).ok().map(|version| version.to_string());
            assert_eq!(text.as_deref(), want, "{value}");
        }
    }

    fn any_version() -> impl Strategy<Value = Version> {
        let numbers = prop::collection::vec(prop_oneof![0u64..4, 9u64..11, Just(u64::MAX)], 1..5);
        let suffix = prop_oneof![
            Just(String::new()),
            "-?(dev|m|alpha|beta|rc)\\.?[0-9]{0,2}",
            "[-+_~.][a-c]{1,2}[0-9]{0,2}([-.][0-9a-b]{1,2})?",
            "-[0-9]{1,3}(\\.[0-9])?",
        ];
        (numbers, suffix).prop_map(|(numbers, suffix)| version(&(join(&numbers) + &suffix)))
    }

    proptest! {
        #[test]
        fn never_panics_on_any_text(text in "\\PC*") {
            let _ = Version::parse(&text);
        }

        #[test]
        fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
            let _ = Version::parse(&String::from_utf8_lossy(&bytes));
        }

        #[test]
        fn never_panics_on_what_looks_like_a_version(text in "[v0-9.]{0,6}[-+_~. (]?[rcbetam]{0,4}[-.]?[0-9é*x]{0,4}") {
            let _ = Version::parse(&text);
        }

        #[test]
        fn display_reads_back_as_the_same_version(a in any_version()) {
            prop_assert_eq!(version(&a.to_string()), a);
        }

        #[test]
        fn the_order_is_total_and_agrees_with_equality(a in any_version(), b in any_version(), c in any_version()) {
            prop_assert_eq!(a.cmp(&b), b.cmp(&a).reverse());
            prop_assert_eq!(a == b, a.cmp(&b).is_eq());
            if a == b {
                prop_assert_eq!(hash(&a), hash(&b));
                prop_assert_eq!(a.cmp(&c), b.cmp(&c));
            }
            if a <= b && b <= c {
                prop_assert!(a <= c);
            }
        }

        #[test]
        fn more_zeros_change_nothing(numbers in prop::collection::vec(0u64..3, 1..4), zeros in 0usize..3) {
            let short = version(&join(&numbers));
            let long = version(&(join(&numbers) + &".0".repeat(zeros)));
            prop_assert_eq!(hash(&short), hash(&long));
            prop_assert_eq!(short, long);
        }
    }
}
