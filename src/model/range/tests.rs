//! What ranges match, which ranges are refused, and the properties that an index relies on.

use super::*;
use expect_test::{Expect, expect};
use proptest::prelude::*;
use serde_json::json;
use std::collections::BTreeMap;
use std::ops::Bound;

fn version(text: &str) -> Version {
    Version::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

fn range(text: &str) -> VersionRange {
    VersionRange::parse(text).unwrap_or_else(|error| panic!("{error}"))
}

/// Asserts which of the versions, separated by spaces, the range matches and which it does not.
fn check(text: &str, takes: &str, leaves: &str) {
    let range = range(text);
    for version_text in takes.split_whitespace() {
        assert!(range.matches(&version(version_text)), "`{text}` should take {version_text}");
    }
    for version_text in leaves.split_whitespace() {
        assert!(!range.matches(&version(version_text)), "`{text}` should leave {version_text}");
    }
}

#[test]
fn a_bare_version_is_its_release_line() {
    check("5.6", "5.6 5.6.0 5.6.51 5.6.51-log 5.6.mysql_aurora.1.2", "5.7 5.5.9 5 6 5.60 56");
    check("15", "15 15.0 15.4 15.4.1", "14.9 16 150 1.5");
    check("8.0.36", "8.0.36 8.0.36-28 8.0.36.0 v8.0.36", "8.0.35 8.0.37 8.0 8.0.360");
    check("8.0.36-28", "8.0.36-28 8.0.36-28.1", "8.0.36 8.0.36-27 8.0.36-281 8.0.37-28");
    check(
        "5.7.mysql_aurora.2",
        "5.7.mysql_aurora.2.11.1 5.7.mysql_aurora.2",
        "5.7 5.7.mysql_aurora.3 5.7.44",
    );
    check("10.11.6-mariadb", "10.11.6-MariaDB 10.11.6-MariaDB-log", "10.11.6 10.11.6-percona");
    check("v15", "15.2", "16");
}

#[test]
fn operators_treat_an_operand_as_its_line() {
    check(">= 5.6", "5.6 5.6.0 5.7 8", "5.5.99 5");
    check("> 5.6", "5.7 5.7.0 6 5.10", "5.6 5.6.99 5.6.99-log 5");
    check("<= 5.6", "5.6 5.6.99 5.6.99-log 5 1", "5.7 5.7.0 6");
    check("< 5.6", "5.5.99 5 0", "5.6 5.6.0 5.6.1");
    check("= 5.6", "5.6 5.6.3", "5.5 5.7");
    check("!= 5.6", "5.5 5.7 5.60", "5.6 5.6.3 5.6.3-log");
    check("> 8.0.36", "8.0.37 8.1", "8.0.36 8.0.36-28");
    check(">= 8.0.36-20", "8.0.36-20 8.0.36-28 8.0.37", "8.0.36 8.0.36-9");
    check(">= 9.9", "9.10", "9.8");
}

#[test]
fn tilde_and_caret_stay_in_their_series() {
    check("~5.6", "5.6 5.6.9", "5.5 5.7");
    check("~5.6.3", "5.6.3 5.6.9", "5.6.2 5.7");
    check("~5", "5 5.9", "4 6");
    check("~5.6.3.1", "5.6.3.1 5.6.4", "5.6.3 5.7");
    check("^5.6", "5.6 5.9", "5.5 6");
    check("^0.3", "0.3 0.3.9", "0.2 0.4 1");
    check("^0.0.3", "0.0.3 0.0.3.1", "0.0.4 0.0.2");
    check("^0.0", "0.0 0.0.9", "0.1");
    check("^0", "0 0.9", "1");
    check("^8.0.36", "8.0.36 8.4", "8.0.35 9");
}

#[test]
fn wildcards_stand_for_any_number() {
    for text in ["5.6.*", "5.6.x", "5.6.X", "5.6.*.*", "= 5.6.*"] {
        check(text, "5.6 5.6.9", "5.5 5.7");
    }
    check("5.*", "5 5.9.9", "4 6");
    check(">= 5.*", "5 6", "4");
    check("> 5.*", "6", "5 5.9");
    for text in ["*", "x", ">= *", "<= *"] {
        check(text, "0 5.6 99-MariaDB", "17rc1 0dev");
        assert!(range(text).is_any());
    }
    assert!(!range(">= 0").is_any());
    assert!(range("5.6 || *").is_any());
}

#[test]
fn commas_spaces_and_nothing_join_and_bars_part() {
    for text in [">=5.6 <8", ">= 5.6, < 8", ">=5.6<8", " >=  5.6 ,<8 ", "<8>=5.6", "<8,>=5.6", ">=v5.6 <v8"] {
        check(text, "5.6 5.7 7.9", "5.5 8 8.0");
    }
    check("5.7 || >= 8.0", "5.7.3 8.0 9", "5.6 7");
    check("5.7||>=8.0||5.5", "5.7.3 8.0 9 5.5", "5.6 7");
    check(">=13,!=14 <16", "13 15", "12 14.3 16");
    check("!=13!=14", "12 15", "13 14.3");
    check("5.6 || > 8 <= 9", "5.6 9.9", "8.1 10");
}

#[test]
fn a_prerelease_matches_only_where_it_is_named() {
    for text in ["17", ">= 16", "*", "17.*", "< 18", "~17", "^17", "!= 16", "17.0"] {
        check(text, "", "17rc1 17beta2 17.0-rc.1 17devel 17.0.0-alpha");
    }
    check("17rc1", "17rc1 17.0-rc.1 17rc1-1", "17rc2 17 17.0 17beta1 17rc10");
    check(">= 17rc1", "17rc1 17rc2 17 17.0 17.1 18", "17beta3 18beta1 17.1rc1 16");
    check("> 17rc1", "17rc2 17 18", "17rc1 17rc1-1 18rc1");
    check("<= 17beta2", "17beta2 17alpha1 16.9", "17beta3 17 16rc1");
    check("< 17beta2", "17beta1 16", "17beta2 17beta2-1 17");
    check(">= 17beta1, < 17", "17beta1 17rc3", "17 17.0 16 17alpha1");
    check("~17rc1", "17rc1 17rc2 17.5", "18 18rc1 17.1rc1");
    check("^5.7.5-m15", "5.7.5-m15 5.7.5-m16 5.7.5 5.9", "5.7.5-m2 5.7.6-m1 6");
    check("18beta", "18beta1 18beta2 18beta", "18 18alpha1 18rc1");
    check(">= 12 || 18beta2", "12 18 18beta2", "18beta1 19beta2");
    check("17~rc1", "17rc1", "17");
    check("8.0.0-dmr", "8.0.0-dmr", "8.0.0");
}

#[test]
fn ruling_a_prerelease_out_does_not_let_others_in() {
    check(">= 16, != 17rc1", "16 17", "17rc1 17rc2");
    check(">= 17beta1, != 17rc1", "17beta2 17rc2 17", "17rc1");
}

#[test]
fn says_what_is_wrong_with_a_range() {
    let line = "write a release line like 15 or 5.6, or a range like `>= 13, < 15`";
    let message = |text: &str| VersionRange::parse(text).expect_err(text).to_string();
    for (text, problem) in [
        ("", "is empty"),
        ("  ", "is empty"),
        ("latest", "has `latest`, which does not begin with a number"),
        ("a.b", "has `a.b`, which does not begin with a number"),
        ("10.11.6 MariaDB", "has `MariaDB`, which does not begin with a number"),
        (">=", "has no version after `>=`"),
        (">= 5, <", "has no version after `<`"),
        ("5..6", "has `5..6`, which has nothing between or after its points"),
        ("5.x.3", "has `5.x.3`, which has `x`, which belongs in a range, not in a version"),
        ("5.6 ||", "has an empty alternative beside `||`"),
        ("|| 5.6", "has an empty alternative beside `||`"),
        ("5.6 || || 5.7", "has an empty alternative beside `||`"),
        ("5.6,", "ends with a comma"),
        (",5.6", "has a comma with nothing before it"),
        ("5.6,,5.7", "has a comma with nothing before it"),
        ("15.4 (Debian)", "has `(`"),
        ("≥ 5", "has the character `≥`"),
        (
            "18446744073709551616",
            "has `18446744073709551616`, which has the number 18446744073709551616, which is too large",
        ),
    ] {
        assert_eq!(message(text), format!("`{text}` {problem}: {line}"));
    }
    let operators = "the operators are >= > <= < = != ~ ^, and || between alternatives";
    for (text, operator) in [
        (">>5", ">>"),
        ("=>5", "=>"),
        ("== 5", "=="),
        ("~> 5", "~>"),
        ("5 | 6", "|"),
        ("!5", "!"),
        ("5 && 6", "&&"),
    ] {
        assert_eq!(message(text), format!("`{text}` has `{operator}`, which is no operator: {operators}"));
    }
    let hyphen = "has a hyphen before a version: a hyphen joins no range, write `>= 5.6, <= 5.7`";
    assert_eq!(message("5.6 - 5.7"), format!("`5.6 - 5.7` {hyphen}"));
    let star = "has a `*` that is not the last of its numbers: write it like 5.* or 5.6.*";
    for text in ["5.*.3", "5*", "**", "*.5"] {
        assert_eq!(message(text), format!("`{text}` {star}"));
    }
}

#[test]
fn refuses_a_range_that_contradicts_itself() {
    let message = VersionRange::parse("5.6 5.7").expect_err("contradiction").to_string();
    let want =
        "`5.6 5.7` has `5.6 5.7`, which no version matches: write || between alternatives, like `5.6 || 5.7`";
    assert_eq!(message, want);
    for text in
        ["> 8, < 5", "> 5.6 < 5.7", "> *", "!= *", "< *", "5 !=5", "15 || > 8 < 5", "> 18446744073709551615"]
    {
        assert!(VersionRange::parse(text).is_err(), "{text}");
    }
    assert!(VersionRange::parse("> 17rc1 < 17").is_ok());
}

#[test]
fn refuses_what_is_too_long_to_be_a_range() {
    let long = ["5"; 200].join(" || ");
    assert_eq!(VersionRange::parse(&long).expect_err("long").problem, "is longer than 256 characters");
    assert!(VersionRange::parse(&["5"; 50].join(" || ")).is_ok());
}

#[test]
fn reads_json_strings_and_numbers() {
    for (value, want) in [
        (json!(">= 13, < 15"), Some(">= 13, < 15")),
        (json!(5.6), Some("5.6")),
        (json!(15), Some("15")),
        (json!(-5), None),
        (json!(true), None),
        (json!(null), None),
        (json!({"min": 5}), None),
    ] {
        let text = VersionRange::from_json(&value).ok().map(|range| range.to_string());
        assert_eq!(text.as_deref(), want, "{value}");
    }
}

#[test]
fn ranges_written_alike_are_equal_and_shown_as_written() {
    assert_eq!(range(">=5.6 <8"), range(">= 5.6, < 8"));
    assert_eq!(range("5.6.*||x"), range("5.6 || *"));
    assert_eq!(range("v15"), range("15"));
    assert_ne!(range("5.6"), range("= 5.6"));
    assert_eq!(range("  >=5.6   <8 ").to_string(), ">=5.6 <8");
}

fn shown(range: &VersionRange) -> String {
    let texts = range.intervals().iter().map(|interval| {
        let end = |bound: Bound<&Version>| match bound {
            Bound::Included(version) => format!("={version}"),
            Bound::Excluded(version) => version.to_string(),
            Bound::Unbounded => "...".to_owned(),
        };
        let (lower, upper) = interval.bounds();
        format!("[{} to {}]", end(lower), end(upper))
    });
    texts.collect::<Vec<_>>().join(" ")
}

#[test]
fn intervals_are_sorted_merged_and_tight() {
    let check = |text: &str, want: Expect| want.assert_eq(&shown(&range(text)));
    check("5.6", expect!["[=5.6 to below 5.7]"]);
    check("8.0 || 5.6", expect!["[=5.6 to below 5.7] [=8.0 to below 8.1]"]);
    check(">= 5 < 8 || 7.5 || >= 7", expect!["[=5 to ...]"]);
    check("!= 5.6", expect!["[... to below 5.6] [=5.7 to ...]"]);
    check("> 5.6, < 8", expect!["[=5.7 to below 8]"]);
    check(">= 17rc1, < 18", expect!["[=17rc1 to 18]"]);
    check("*", expect!["[... to ...]"]);
    check("< 17rc1 || >= 17rc1", expect!["[... to ...]"]);
}

#[test]
fn the_lowest_common_version_is_where_both_begin() {
    for (offered, asked, want) in [
        (">=14 <17", "> 15", Some("16")),
        (">=14 <17", "> 14.5", Some("14.6")),
        (">=14 <17", "!= 14", Some("15")),
        (">=14 <17", "!= 14, != 15", Some("16")),
        (">=14 <17", ">= 12", Some("14")),
        ("<17", "<16", None),
        ("15", "16", None),
    ] {
        let common = range(offered).lowest_common(&range(asked));
        assert_eq!(common.as_deref(), want, "{offered} and {asked}");
    }
}

#[test]
fn lowest_text_is_the_lowest_version_the_range_names() {
    for (text, want) in [
        ("15", Some("15")),
        ("v15", Some("15")),
        ("5.6.*", Some("5.6")),
        (">= 5.6", Some("5.6")),
        ("= 8.0.36", Some("8.0.36")),
        ("~5.6.3", Some("5.6.3")),
        ("^0.3", Some("0.3")),
        (">= 13, < 15", Some("13")),
        (">= 13, >= 14", Some("14")),
        (">= 8.0 || 5.7", Some("5.7")),
        (">= 17rc1", Some("17rc1")),
        ("8.0.36-28", Some("8.0.36-28")),
        ("> 5 || 4.0", Some("4.0")),
        (">= 5.6, != 5.6", None),
        ("> 5.6", None),
        ("< 8", None),
        ("<= 8", None),
        ("!= 8", None),
        ("*", None),
    ] {
        assert_eq!(range(text).lowest_text().as_deref(), want, "{text}");
    }
}

#[test]
fn ranges_overlap_where_one_version_could_be_in_both() {
    for (left, right, want) in [
        ("5.6", ">= 5", true),
        ("5.6", "5.7", false),
        ("5.6", "5.6.3", true),
        (">= 5.6", "< 5.6", false),
        (">= 5.6", "<= 5.6", true),
        ("> 5.6", "< 5.7", false),
        ("!= 5.6", "5.6.3", false),
        ("5.6 || 8", "8.4", true),
        ("*", "17rc1", false),
        ("17rc1", "17", false),
        ("17rc1", ">= 16", false),
        ("17rc1", "< 18", false),
        ("18beta2", ">= 17rc2", false),
        ("18beta2", "!= 16", false),
        ("17rc1", "17rc1", true),
        ("> 17rc1, < 17", "> 17rc1, < 17", true),
        ("> 17rc1, < 17", ">= 17", false),
        ("> 17rc1", ">= 17", true),
        ("17rc1 || 16", ">= 16", true),
        (">= 17rc1", "17rc2", true),
    ] {
        assert_eq!(range(left).overlaps(&range(right)), want, "{left} and {right}");
        assert_eq!(range(right).overlaps(&range(left)), want, "{right} and {left}");
    }
}

#[test]
fn widens_by_the_least_that_lets_a_version_in() {
    for (text, version_text, want) in [
        (">= 13, < 15", "16.2", ">= 13, < 17"),
        (">=13 <15", "12.2", ">= 12, < 15"),
        ("5.6", "5.7.2", "5.6 || 5.7"),
        ("8.0.36", "8.0.40-1", "8.0.36 || 8.0.40"),
        (">= 14", "13.4", ">= 13"),
        (">= 14.2", "13", ">= 13"),
        ("> 14", "14.3", ">= 14"),
        ("<= 15", "16.2", "<= 16"),
        ("< 8.0", "8.4.2", "< 8.5"),
        ("< 8.0.36-20", "8.0.36-28", "< 8.0.37"),
        ("~5.6", "5.7.1", "~5.6 || 5.7"),
        ("^5.6", "6.1.2", "^5.6 || 6.1"),
        ("5.7 || >= 8.0", "7.5.1", "5.7 || >= 7.5"),
        (">= 5 < 6 || >= 8 < 9", "9.1", ">= 5, < 6 || >= 8, < 10"),
        (">= 5 < 6 || >= 8 < 9", "4.1", ">= 4, < 6 || >= 8, < 9"),
        (">= 5, != 5.6", "5.6.3", ">= 5"),
        ("!= 5.6", "5.6.3", "*"),
        (">= 12", "18beta2", ">= 12 || 18beta2"),
        (">= 12", "18beta2 (Debian 18~beta2-1)", ">= 12 || 18beta2"),
        (">= 12", "8.4.0-alpha", ">= 12 || 8.4.0-alpha"),
        ("> 17rc1", "16.1", "> 17rc1 || 16"),
        ("5.6", "5.6.3", "5.6"),
        ("< 5", "18446744073709551615", "< 5 || 18446744073709551615"),
    ] {
        assert_eq!(range(text).widen_hint(&version(version_text)), want, "{text} and {version_text}");
    }
}

#[test]
fn a_range_that_cannot_grow_gives_way_to_the_line() {
    let full = ["= 5.6"; 28].join(" || ") + " || 5.5";
    assert_eq!(range(&full).widen_hint(&version("5.7.10")), "5.7");
}

fn numbers() -> impl Strategy<Value = Vec<u64>> {
    prop::collection::vec(prop_oneof![8 => 0u64..4, 2 => 9u64..11, 1 => Just(u64::MAX)], 1..5)
}

fn join(numbers: &[u64]) -> String {
    numbers.iter().map(u64::to_string).collect::<Vec<_>>().join(".")
}

const SUFFIXES: [&str; 12] =
    ["", "", "", "", "-28", "-28.1", "-9", "rc1", "-rc.2", "beta2", "-alpha", ".mysql_aurora.2.1"];
const OPERATORS: [&str; 9] = ["", "=", "!=", ">", ">=", "<", "<=", "~", "^"];

fn version_text() -> impl Strategy<Value = String> {
    (numbers(), prop::sample::select(&SUFFIXES[..])).prop_map(|(numbers, suffix)| join(&numbers) + suffix)
}

fn comparator_text() -> impl Strategy<Value = String> {
    let operand = prop_oneof![
        8 => version_text(),
        1 => numbers().prop_map(|numbers| join(&numbers) + ".*"),
        1 => Just("*".to_owned()),
    ];
    (prop::sample::select(&OPERATORS[..]), operand)
        .prop_map(|(operator, operand)| format!("{operator}{operand}"))
}

fn any_range() -> impl Strategy<Value = VersionRange> {
    let alternative =
        (prop::collection::vec(comparator_text(), 1..4), prop::sample::select(&[" ", ", ", " , "][..]));
    let alternative = alternative.prop_map(|(comparators, separator)| comparators.join(separator));
    // One that contradicts itself is left out, rather than the whole range with it.
    prop::collection::vec(alternative, 1..4).prop_map(|mut alternatives| {
        alternatives.retain(|text| VersionRange::parse(text).is_ok());
        let text = alternatives.join(" || ");
        VersionRange::parse(&text).unwrap_or_else(|_| range("*"))
    })
}

fn any_version() -> impl Strategy<Value = Version> {
    version_text().prop_map(|text| version(&text))
}

/// The meaning of one comparator over plain numbers, defined without intervals: the version is cut
/// to as many numbers as the operand has, and the two are compared.
fn means(operator: &str, operand: &[u64], numbers: &[u64]) -> bool {
    let cut = |length: usize| (0..length).map(|at| numbers.get(at).copied().unwrap_or(0)).collect::<Vec<_>>();
    let order = cut(operand.len()).as_slice().cmp(operand);
    let same = |length: usize| cut(length) == operand[..length];
    match operator {
        "" | "=" => order.is_eq(),
        "!=" => order.is_ne(),
        ">" => order.is_gt(),
        ">=" => order.is_ge(),
        "<" => order.is_lt(),
        "<=" => order.is_le(),
        "~" => order.is_ge() && same(operand.len().min(2)),
        _ => {
            let zeros = operand.iter().take_while(|number| **number == 0).count();
            order.is_ge() && same(operand.len().min(zeros + 1))
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn never_panics_on_any_text(text in "\\PC*") {
        let _ = VersionRange::parse(&text);
    }

    #[test]
    fn never_panics_on_any_bytes(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        let _ = VersionRange::parse(&String::from_utf8_lossy(&bytes));
    }

    #[test]
    fn never_panics_on_what_looks_like_a_range(text in "([<>=!~^|]{0,2}[ ,]?[0-9v.*x]{0,5}[-~é]?[rc0-9]{0,2}[ ,|]?){0,4}") {
        if let Ok(range) = VersionRange::parse(&text) {
            let _ = range.lowest_text();
        }
    }

    #[test]
    fn never_panics_on_any_json_number(real in any::<f64>(), whole in any::<i64>()) {
        let _ = VersionRange::from_json(&json!(real));
        let _ = Version::from_json(&json!(real));
        prop_assert_eq!(VersionRange::from_json(&json!(whole)).is_ok(), whole >= 0);
        prop_assert_eq!(Version::from_json(&json!(whole)).is_ok(), whole >= 0);
    }

    #[test]
    fn a_comparator_compares_the_leading_numbers(
        operator in prop::sample::select(&OPERATORS[..]),
        operand in numbers(),
        numbers in numbers(),
    ) {
        let want = means(operator, &operand, &numbers);
        let got = VersionRange::parse(&format!("{operator}{}", join(&operand)));
        let got = got.is_ok_and(|range| range.matches(&version(&join(&numbers))));
        prop_assert_eq!(got, want);
    }

    #[test]
    fn joined_comparators_must_all_hold(left in comparator_text(), right in comparator_text(), v in any_version()) {
        let one = |text: &str| VersionRange::parse(text).is_ok_and(|range| range.matches(&v));
        let both = one(&format!("{left}, {right}"));
        if !v.is_prerelease() {
            prop_assert_eq!(both, one(&left) && one(&right));
        }
    }

    #[test]
    fn either_alternative_is_enough(left in any_range(), right in any_range(), v in any_version()) {
        if let Ok(either) = VersionRange::parse(&format!("{left} || {right}")) {
            prop_assert_eq!(either.matches(&v), left.matches(&v) || right.matches(&v));
        }
    }

    #[test]
    fn what_matches_lies_in_an_interval(range in any_range(), v in any_version()) {
        if range.matches(&v) {
            prop_assert!(range.intervals().iter().any(|interval| interval.contains(&v)));
        }
    }

    #[test]
    fn an_index_walked_by_intervals_finds_all_that_matches(
        range in any_range(),
        versions in prop::collection::vec(any_version(), 0..30),
    ) {
        let index: BTreeMap<Version, ()> = versions.into_iter().map(|v| (v, ())).collect();
        let walked = range.intervals().iter().flat_map(|interval| index.range::<Version, _>(interval.bounds()));
        let walked: Vec<&Version> = walked.map(|(v, ())| v).filter(|v| range.matches(v)).collect();
        let scanned: Vec<&Version> = index.keys().filter(|v| range.matches(v)).collect();
        prop_assert_eq!(walked, scanned);
    }

    #[test]
    fn intervals_are_sorted_and_disjoint(range in any_range()) {
        prop_assert!(!range.intervals().is_empty());
        for pair in range.intervals().windows(2) {
            match (&pair[0].upper, &pair[1].lower) {
                (Bound::Excluded(end), Bound::Included(start)) => prop_assert!(end < start),
                ends => prop_assert!(false, "{:?}", ends),
            }
        }
    }

    #[test]
    fn equal_versions_are_in_the_same_ranges(range in any_range(), numbers in numbers(), at in 0..SUFFIXES.len()) {
        let short = version(&(join(&numbers) + SUFFIXES[at]));
        let long = version(&(join(&numbers) + ".0" + SUFFIXES[at]));
        prop_assert_eq!(&short, &long);
        prop_assert_eq!(range.matches(&short), range.matches(&long));
    }

    #[test]
    fn display_reads_back_as_the_same_range(range in any_range(), v in any_version()) {
        let again = VersionRange::parse(&range.to_string()).unwrap();
        prop_assert_eq!(&again, &range);
        let canonical = VersionRange::parse(&range.canonical).unwrap();
        prop_assert_eq!(&canonical, &range);
        prop_assert_eq!(canonical.matches(&v), range.matches(&v));
    }

    #[test]
    fn lowest_text_reads_as_a_version_that_matches(range in any_range()) {
        if let Some(text) = range.lowest_text() {
            prop_assert!(range.matches(&version(&text)));
        }
    }

    #[test]
    fn a_hint_lets_the_version_in_and_none_out(
        range in any_range(),
        v in any_version(),
        others in prop::collection::vec(any_version(), 0..20),
    ) {
        prop_assume!(range.to_string().len() < 100);
        let hint = VersionRange::parse(&range.widen_hint(&v)).unwrap();
        prop_assert!(hint.matches(&v), "{} should match {}", hint, v);
        for other in others.iter().filter(|other| range.matches(other)) {
            prop_assert!(hint.matches(other), "{} should still match {}", hint, other);
        }
    }

    #[test]
    fn ranges_that_share_a_version_overlap(left in any_range(), right in any_range(), v in any_version()) {
        if left.matches(&v) && right.matches(&v) {
            prop_assert!(left.overlaps(&right));
        }
        prop_assert!(left.overlaps(&left));
    }
}
