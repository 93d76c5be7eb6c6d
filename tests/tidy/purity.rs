//! The pure packages use no clock, no randomness, no I/O, and no call that panics without a reason. Cargo enforces most of it:
//! they do not depend on what they may not use. This check adds the standard library, and the parts of `kube` that other
//! packages of the workspace enable.

use crate::source::{Source, Violation, find_word, paths};

/// The folders of the packages that decide and never act.
pub const PURE: [&str; 2] = ["src/", "providers/sql/plan/src/"];

/// Paths that may not be used, and what to do instead.
const PATHS: &[(&str, &str)] = &[
    ("std::time::Instant", CLOCK),
    ("std::time::SystemTime", CLOCK),
    ("std::collections::hash_map", ORDER),
    ("std::collections::hash_set", ORDER),
    ("std::hash::RandomState", ORDER),
    ("std::thread", WORLD),
    ("std::env", WORLD),
    ("std::fs", WORLD),
    ("std::net", WORLD),
    ("std::process", WORLD),
    ("kube::Client", WORLD),
    ("kube::client", WORLD),
    ("kube::runtime", WORLD),
    ("kube::Api", WORLD),
    ("kube::Config", WORLD),
];

/// Words that may not stand in the code, and what to do instead.
const WORDS: &[(&str, &str)] = &[
    ("SystemTime", CLOCK),
    ("HashMap", ORDER),
    ("HashSet", ORDER),
    ("println!", WORLD),
    ("print!", WORLD),
    ("eprintln!", WORLD),
    ("eprint!", WORLD),
    ("dbg!", WORLD),
    (".unwrap()", DEATH),
    ("panic!", DEATH),
    ("todo!", DEATH),
    ("unimplemented!", DEATH),
    ("unreachable!", DEATH),
];

const CLOCK: &str = "time is an argument in a pure package: take `now`";
const ORDER: &str =
    "its order differs from run to run: use a BTreeMap, or a map with a fixed hasher that is never iterated";
const WORLD: &str = "pure packages do not touch the outside world: return an Action or a value";
const DEATH: &str = "return an error, or `expect(\"the invariant that makes it impossible\")`";

/// What makes a file of a pure package impure.
pub fn impurities(source: &Source) -> Vec<Violation> {
    let code = source.shipped_code();
    let by_path = paths(&code).into_iter().filter_map(|(line, path)| {
        let path = path.join("::");
        Some((line, reason_against(&path)?, path))
    });
    let by_word = code.lines().enumerate().flat_map(|(at, line)| {
        let words = WORDS.iter().filter(move |(word, _)| find_word(line, word).is_some());
        words.map(move |&(word, reason)| (at + 1, reason, word.to_owned()))
    });
    by_path
        .chain(by_word)
        .filter(|(line, ..)| !source.allows(*line))
        .map(|(line, reason, what)| source.violation(line, format!("`{what}` in a pure package: {reason}")))
        .collect()
}

fn reason_against(path: &str) -> Option<&'static str> {
    if path.ends_with("::now") {
        return Some(CLOCK);
    }
    let is_below =
        |root: &str| path.strip_prefix(root).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"));
    PATHS.iter().find(|(root, _)| is_below(root)).map(|(_, reason)| *reason)
}

#[test]
fn impurities_are_seen() {
    for bad in [
        "use std::time::{Duration, Instant};",
        "let t = std::time::Instant::now();",
        "let t = Timestamp::now();",
        "use std::{\n    collections::{BTreeMap, HashMap},\n};",
        "fn a(b: &HashSet<u8>) {}",
        "let api: kube::Api<Pod> = x;",
        "std::thread::sleep(d);",
        "let a = std::env::var(x);",
        "use std::fs;",
        "use std::net::IpAddr;",
        "println!();",
        "dbg!(a);",
        "a.unwrap();",
        "panic!();",
        "todo!();",
        "unimplemented!();",
        "unreachable!();",
    ] {
        assert!(!impurities(&Source::new("src/cache/a.rs", bad)).is_empty(), "{bad}");
    }
}

#[test]
fn the_pure_pass() {
    for good in [
        "use std::time::Duration;",
        "// HashMap, panic!, .unwrap()",
        "let a = \"println!\";",
        "#[cfg(test)]\nmod tests { fn a() { b.unwrap(); panic!(); } }",
        "a.unwrap_or_default(); let operand = brand::new(); let c: FxHashMap<u8, u8>;",
        "a.expect(\"checked above\");",
        "let a: HashMap<u8, u8>; // tidy-allow: counted, never iterated",
    ] {
        assert!(impurities(&Source::new("src/cache/a.rs", good)).is_empty(), "{good}");
    }
}
