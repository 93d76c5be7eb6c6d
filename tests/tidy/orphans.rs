//! Finds files that no `mod` declaration reaches, and files that are compiled outside tests. It follows declarations as text.
//! The compiler never sees an unreached file, so it rots.

use crate::source::{PACKAGES, Source, Violation, find_word, is_word};
use std::collections::{BTreeMap, BTreeSet};

type Files<'a> = BTreeMap<&'a str, &'a Source>;

/// Files that no crate root reaches.
pub fn orphans(sources: &[Source]) -> Vec<Violation> {
    let reached = reached(sources, Source::code);
    let lost = sources.iter().filter(|source| !reached.contains(source.path.as_str()));
    lost.map(|source| {
        source.violation(1, "no `mod` reaches this file: declare it in its parent or remove it")
    })
    .collect()
}

/// Files below `folder` that are compiled outside of tests.
pub fn shipped<'a>(sources: &'a [Source], folder: &str) -> Vec<&'a Source> {
    let reached = reached(sources, Source::shipped_code);
    let is_shipped =
        |source: &&Source| source.path.starts_with(folder) && reached.contains(source.path.as_str());
    sources.iter().filter(is_shipped).collect()
}

fn reached(sources: &[Source], code: fn(&Source) -> String) -> BTreeSet<&str> {
    let files: Files<'_> = sources.iter().map(|source| (source.path.as_str(), source)).collect();
    let mut reached = BTreeSet::new();
    let mut open: Vec<&Source> = sources.iter().filter(|source| is_root(&source.path)).collect();
    while let Some(source) = open.pop() {
        if reached.insert(source.path.as_str()) {
            open.extend(children(source, &code(source), &files));
        }
    }
    reached
}

/// Where cargo starts: a library, a binary, each file or folder of tests and benches, each example.
fn is_root(path: &str) -> bool {
    let inner = PACKAGES.iter().find_map(|package| path.strip_prefix(package.as_str())?.strip_prefix('/'));
    let inner = inner.unwrap_or(path);
    let parts: Vec<_> = inner.split('/').collect();
    matches!(
        parts[..],
        ["src", "lib.rs" | "main.rs"]
            | ["tests" | "benches" | "examples", _]
            | ["tests" | "benches", _, "main.rs"]
    )
}

fn children<'a>(source: &Source, code: &str, files: &Files<'a>) -> Vec<&'a Source> {
    let folder = match source.path.rsplit_once('/') {
        Some((folder, "mod.rs" | "lib.rs" | "main.rs")) => folder.to_owned(),
        Some((folder, _)) if is_root(&source.path) => folder.to_owned(),
        _ => source.path.trim_end_matches(".rs").to_owned(),
    };
    let candidates = declared(code)
        .into_iter()
        .flat_map(|name| [format!("{folder}/{name}.rs"), format!("{folder}/{name}/mod.rs")]);
    candidates.filter_map(|path| files.get(path.as_str()).copied()).collect()
}

/// The names in `mod name;`.
fn declared(code: &str) -> Vec<&str> {
    let mut names = Vec::new();
    let mut rest = code;
    while let Some(at) = find_word(rest, "mod") {
        rest = rest[at + 3..].trim_start();
        let end = rest.find(|c| !is_word(c)).unwrap_or(rest.len());
        if rest[end..].trim_start().starts_with(';') {
            names.push(&rest[..end]);
        }
    }
    names
}

#[test]
fn orphans_are_found() {
    let sources = [
        Source::new("src/lib.rs", "pub mod a; // mod lost;\nmod inline { }\n"),
        Source::new("src/a/mod.rs", "mod b;\n#[cfg(test)]\nmod tests;\n"),
        Source::new("src/a/b.rs", "mod c;"),
        Source::new("src/a/b/c.rs", ""),
        Source::new("src/a/tests.rs", ""),
        Source::new("src/a/lost.rs", ""),
        Source::new("src/a/tests/lost.rs", ""),
        Source::new("tests/one.rs", "mod common;"),
        Source::new("tests/common/mod.rs", ""),
        Source::new("tests/two/main.rs", "mod part;"),
        Source::new("tests/two/part.rs", ""),
        Source::new("tests/two/lost.rs", ""),
    ];
    let lost: Vec<_> = orphans(&sources).into_iter().map(|violation| violation.path).collect();
    assert_eq!(lost, ["src/a/lost.rs", "src/a/tests/lost.rs", "tests/two/lost.rs"]);
    let shipped: Vec<_> = shipped(&sources, "src/").into_iter().map(|source| source.path.as_str()).collect();
    assert_eq!(shipped, ["src/lib.rs", "src/a/mod.rs", "src/a/b.rs", "src/a/b/c.rs"]);
}
