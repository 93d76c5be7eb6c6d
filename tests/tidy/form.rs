//! Form: each file has a header with its purpose and a readable length, and no unfinished marks. rustfmt checks formatting.

use crate::source::{Source, Violation};

/// A file longer than this holds more than one idea.
const LINES_MAX: usize = 900;

/// Spelled apart, so that this file may hold them.
const LEFTOVERS: [&str; 3] = [concat!("TO", "DO"), concat!("FIX", "ME"), concat!("X", "XX")];

/// The file opens with `//!` and at least one sentence.
pub fn header(source: &Source) -> Option<Violation> {
    let prose: Vec<_> =
        source.text.lines().map_while(|line| line.strip_prefix("//!")).map(str::trim).collect();
    let prose = prose.join(" ");
    let sentence = prose.split_whitespace().count() > 2 && prose.contains(['.', ':', '?', '!']);
    (!sentence).then(|| {
        source.violation(1, "no header: open with `//!` and a sentence on what lives here and what does not")
    })
}

/// Line count, white space and the last line.
pub fn form(source: &Source) -> Vec<Violation> {
    let mut found = Vec::new();
    for (at, line) in source.text.split('\n').enumerate() {
        if line.ends_with([' ', '\t', '\r']) {
            found.push(source.violation(at + 1, "white space at the end of the line: remove it"));
        }
        if line.contains('\t') {
            found.push(source.violation(at + 1, "a tab: write spaces, or `\\t` inside a literal"));
        }
    }
    let lines = source.text.lines().count();
    if !source.text.ends_with('\n') || source.text.ends_with("\n\n") {
        found.push(source.violation(lines, "the file must end with exactly one newline"));
    }
    if lines > LINES_MAX {
        found.push(
            source.violation(lines, format!("{lines} lines, more than {LINES_MAX}: split it on its ideas")),
        );
    }
    found
}

/// Marks of unfinished work belong in an issue.
pub fn leftovers(source: &Source) -> Vec<Violation> {
    let lines = source.text.lines().enumerate();
    lines
        .filter_map(|(at, line)| {
            let word = LEFTOVERS.iter().find(|word| crate::source::find_word(line, word).is_some())?;
            Some(source.violation(at + 1, format!("{word}: do it now, or open an issue and say why not")))
        })
        .collect()
}

#[test]
fn headers_are_missed() {
    for (text, bad) in [
        ("", true),
        ("//!\nfn a() {}\n", true),
        ("//! Things\n", true),
        ("// Not a header at all.\n", true),
        ("use a;\n//! Too late to be one.\n", true),
        ("//! What lives here: nothing.\n", false),
        ("//! A long opening that\n//! ends below.\n", false),
    ] {
        assert_eq!(header(&Source::new("src/a.rs", text)).is_some(), bad, "{text:?}");
    }
}

#[test]
fn bad_form_is_seen() {
    let long = "x\n".repeat(LINES_MAX + 1);
    for (text, count) in
        [("a\n", 0), ("a \n", 1), ("\ta\n", 1), ("a", 1), ("a\n\n", 1), ("a\r\n", 1), (&long, 1)]
    {
        assert_eq!(form(&Source::new("src/a.rs", text)).len(), count, "{text:?}");
    }
}

#[test]
fn leftovers_are_seen() {
    for word in LEFTOVERS {
        let source = Source::new("src/a.rs", &format!("fn a() {{}}\n// {word}: later\n"));
        assert_eq!(leftovers(&source)[0].line, 2);
    }
    assert!(leftovers(&Source::new("src/a.rs", "let todos = 1;\n")).is_empty());
}
