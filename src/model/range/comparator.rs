//! One comparison, `>= 5.6` or `~8.0`: its parser and the versions that it matches. An operand is a release line: `> 5.6`
//! is newer than all of 5.6.x, `<= 5.6` includes all of it.

use super::super::Version;
use super::super::version::strip_v;
use super::interval::Interval;
use std::fmt;

/// An operator and its release line; None is every version, `*`.
#[derive(Clone, Debug)]
pub(super) struct Comparator {
    pub(super) operator: Operator,
    pub(super) operand: Option<Version>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Bare,
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Tilde,
    Caret,
}

/// What is wrong, and what to write instead if that differs from the default.
pub(super) type Problem = (String, Option<String>);

/// Longer spellings first: `>=` must not be read as `>`.
const SPELLINGS: [(&str, Operator); 8] = [
    (">=", Operator::GreaterOrEqual),
    ("<=", Operator::LessOrEqual),
    ("!=", Operator::NotEqual),
    (">", Operator::Greater),
    ("<", Operator::Less),
    ("=", Operator::Equal),
    ("~", Operator::Tilde),
    ("^", Operator::Caret),
];

const OPERATOR_CHARS: &str = "<>=!~^|&";

impl Comparator {
    /// Parses the comparator at the start and returns the rest.
    pub(super) fn read(text: &str) -> Result<(Comparator, &str), Problem> {
        let found = SPELLINGS.iter().find(|(spelling, _)| text.starts_with(spelling));
        let (spelling, operator) = *found.unwrap_or(&("", Operator::Bare));
        let after = text.strip_prefix(spelling).unwrap_or(text).trim_start();
        let (operand, rest) = after.split_at(operand_end(after));
        if operand.is_empty() {
            return Err(refuse_missing(text));
        }
        Ok((Comparator { operator, operand: read_operand(operand)? }, rest))
    }

    /// The versions that it matches, including pre-releases, which the range filters.
    pub(super) fn intervals(&self) -> Vec<Interval> {
        let Some(operand) = &self.operand else { return self.intervals_of_any() };
        let start = || Some(operand.clone());
        let end = operand.line_end();
        // No version is above a line without end.
        let above = || end.clone().and_then(|end| Interval::find(Some(end), None));
        let found = match self.operator {
            Operator::Bare | Operator::Equal => [Interval::find(start(), end), None],
            Operator::NotEqual => [Interval::find(None, start()), above()],
            Operator::Greater => [above(), None],
            Operator::GreaterOrEqual => [Interval::find(start(), None), None],
            Operator::Less => [Interval::find(None, start()), None],
            Operator::LessOrEqual => [Interval::find(None, end), None],
            Operator::Tilde => [Interval::find(start(), tilde_end(operand)), None],
            Operator::Caret => [Interval::find(start(), caret_end(operand)), None],
        };
        found.into_iter().flatten().collect()
    }

    pub(super) fn admits(&self, version: &Version) -> bool {
        self.intervals().iter().any(|interval| interval.contains(version))
    }

    /// Whether it names a pre-release of these numbers, other than to exclude it.
    pub(super) fn names_prerelease_of(&self, version: &Version) -> bool {
        self.find_named_prerelease().is_some_and(|named| named.same_numbers(version))
    }

    pub(super) fn find_named_prerelease(&self) -> Option<&Version> {
        let operand = self.operand.as_ref().filter(|_| self.operator != Operator::NotEqual);
        operand.filter(|operand| operand.is_prerelease())
    }

    /// Its lower end as written, if it includes that.
    pub(super) fn find_inclusive_start(&self) -> Option<&Version> {
        match self.operator {
            Operator::Bare
            | Operator::Equal
            | Operator::GreaterOrEqual
            | Operator::Tilde
            | Operator::Caret => self.operand.as_ref(),
            Operator::NotEqual | Operator::Greater | Operator::Less | Operator::LessOrEqual => None,
        }
    }

    fn intervals_of_any(&self) -> Vec<Interval> {
        match self.operator {
            Operator::NotEqual | Operator::Greater | Operator::Less => Vec::new(),
            Operator::Bare
            | Operator::Equal
            | Operator::GreaterOrEqual
            | Operator::LessOrEqual
            | Operator::Tilde
            | Operator::Caret => Interval::find(None, None).into_iter().collect(),
        }
    }
}

/// `~5.6.3` stays in 5.6, `~5` in 5.
fn tilde_end(operand: &Version) -> Option<Version> {
    let numbers = operand.numbers();
    Version::floor_after(numbers.get(..2).unwrap_or(numbers))
}

/// `^5.6` stays in 5; below 1 the first number that is not zero counts, `^0.3` stays in 0.3.
fn caret_end(operand: &Version) -> Option<Version> {
    let numbers = operand.numbers();
    let kept = numbers.iter().take_while(|number| **number == 0).count() + 1;
    Version::floor_after(numbers.get(..kept).unwrap_or(numbers))
}

/// An operand ends at a space, a comma or the next operator. A `~` before a letter is Debian's `17~rc1`; otherwise it is
/// the operator.
fn operand_end(text: &str) -> usize {
    let is_operator = |at: usize, c: char| match c {
        '~' => !text.get(at + 1..).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic())),
        c => OPERATOR_CHARS.contains(c),
    };
    let ends = |(at, c): &(usize, char)| *c == ' ' || *c == ',' || is_operator(*at, *c);
    text.char_indices().find(ends).map_or(text.len(), |(at, _)| at)
}

fn read_operand(text: &str) -> Result<Option<Version>, Problem> {
    let line = strip_wildcards(strip_v(text));
    if let "*" | "x" | "X" = line {
        return Ok(None);
    }
    if text.starts_with('-') {
        let fix = "a hyphen joins no range, write `>= 5.6, <= 5.7`".to_owned();
        return Err(("has a hyphen before a version".to_owned(), Some(fix)));
    }
    if let Some(odd) = text.chars().find(|c| !c.is_ascii_alphanumeric() && !".-+_~:*".contains(*c)) {
        return Err((format!("has `{odd}`"), None));
    }
    if line.contains('*') {
        let fix = "write it like 5.* or 5.6.*".to_owned();
        return Err(("has a `*` that is not the last of its numbers".to_owned(), Some(fix)));
    }
    let version = Version::parse(line);
    version.map(Some).map_err(|error| (format!("has `{text}`, which {}", error.problem), None))
}

/// `5.6.*`, `5.6.x` and `5.6.*.*` are the line 5.6.
fn strip_wildcards(text: &str) -> &str {
    let shorter = [".*", ".x", ".X"].iter().find_map(|wild| text.strip_suffix(wild));
    shorter.map_or(text, strip_wildcards)
}

fn refuse_missing(text: &str) -> Problem {
    let end = text.find(|c| !OPERATOR_CHARS.contains(c)).unwrap_or(text.len());
    let (operators, _) = text.split_at(end);
    match SPELLINGS.iter().any(|(spelling, _)| *spelling == operators) {
        true => (format!("has no version after `{operators}`"), None),
        false if operators.is_empty() => ("has a comma with nothing before it".to_owned(), None),
        false => {
            let fix = "the operators are >= > <= < = != ~ ^, and || between alternatives".to_owned();
            (format!("has `{operators}`, which is no operator"), Some(fix))
        }
    }
}

impl Operator {
    fn symbol(self) -> &'static str {
        match self {
            Operator::Bare => "",
            Operator::Equal => "= ",
            Operator::NotEqual => "!= ",
            Operator::Greater => "> ",
            Operator::GreaterOrEqual => ">= ",
            Operator::Less => "< ",
            Operator::LessOrEqual => "<= ",
            Operator::Tilde => "~",
            Operator::Caret => "^",
        }
    }
}

impl fmt::Display for Comparator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let symbol = self.operator.symbol();
        match &self.operand {
            Some(version) => write!(f, "{symbol}{version}"),
            None => write!(f, "{symbol}*"),
        }
    }
}
