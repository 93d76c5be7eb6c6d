//! Words: the repository speaks the field's language, not a private one. Scans Rust (code, comments, strings), Markdown,
//! YAML, Go and scripts, generated CRDs included, for words that only this project used, and names the replacement.
//!
//! What is listed, and why:
//! - Reporting ("told"): a program reports, shows, returns or logs; "told" hides who does it. "tell apart" is plain English.
//! - Nameless actors ("nobody"): the reader needs to know which client, user or controller acts.
//! - Idioms for states ("stands back", "gives back"): Kubernetes has terms for them (deferred, released, restored).
//! - Requests ("asks for"): a claim requests or requires; the API, the docs and the messages use one verb.
//! - Repairs ("mend"): old-fashioned for repair or fix.
//! - Texts ("in words"): conditions and events have a reason and a message.
//! - Invented metaphors (`Desk`, `Book`) and the modules that were named by them.
//!
//! Not listed: words that the field uses too ("gone" as in 410 Gone, "made", "settled", "wake"), however often they stood for
//! something private.
//!
//! A line that needs such a word says why: `tidy-allow: the table of the example is called book`.

use crate::source::{Source, Violation, is_word};
use std::{collections::BTreeMap, fs, path::Path};

/// Words and phrases, in any letter case and inside identifiers (`is_told`, `AdminDesk`), and what to write instead.
const PHRASES: &[(&[&str], &str)] = &[
    (&["told", "tell", "tells", "telling"], "reports, shows, returns, logs, says which"),
    (
        &["nobody", "somebody", "everybody", "anybody", "whoever"],
        "the actor: the user, another client, no controller",
    ),
    (&["stand back", "stands back", "standing back", "stood back"], "is deferred, waits, has low priority"),
    (&["has it back", "have it back", "had it back", "has them back", "have them back"], "restores"),
    (&["give back", "gives back", "giving back", "gave back", "given back"], "releases, returns, restores"),
    (&["give it back", "gives it back", "gives them back"], "releases, returns, restores"),
    (&["looked at", "looks at"], "resyncs, checks, inspects, reads"),
    (&["mend", "mends", "mended", "mending", "mendable"], "repairs, fixes, corrects"),
    (
        &["put right", "puts right", "putting right", "put it right", "puts it right"],
        "repairs, fixes, corrects",
    ),
    (&["fall short", "falls short", "fell short", "falling short"], "does not reach, misses"),
    (&["is said", "are said", "is said to"], "reports, states, claims"),
    (&["is asked", "are asked", "was asked", "were asked", "be asked"], "is requested, is required"),
    (&["ask for", "asks for", "asked for", "asking for"], "requests, requires"),
    (&["the word", "the words", "in words"], "reason, message, name, keyword"),
    (&["desk", "desks"], "client, api, session"),
    (&["book", "glance", "keepsake", "keepsakes", "postman", "postmen"], "a name of the field"),
];

/// Private names of modules and types. Only their declaration is a finding: a name that is not declared is not used.
const NAMES: &[(&str, &str)] = &[
    ("absent", "unsupported"),
    ("blueprint", "compiled_class"),
    ("brute", "oracle"),
    ("chance", "jitter"),
    ("crypt", "mysql_password"),
    ("dialect", "cel_env"),
    ("early", "presettle"),
    ("finale", "quiesce"),
    ("foresee", "predict_write"),
    ("give", "assume_binding"),
    ("Hands", "a name of the field"),
    ("lab", "harness"),
    ("lack", "refusal"),
    ("laws", "invariants"),
    ("leaving", "server_finalizer"),
    ("look", "list_watch"),
    ("looks", "attribute_index"),
    ("making", "shared_pending"),
    ("moving", "affected"),
    ("places", "overwrite_check"),
    ("plain", "sanitize"),
    ("seal", "digest"),
    ("settle", "binding_state"),
    ("shipped", "builtin_adapters"),
    ("Stand", "ClaimState"),
    ("survey", "cost_check"),
    ("sweep", "builtin_controllers"),
    ("tally", "refusal_counts"),
    ("Teller", "a name of the field"),
    ("trouble", "error"),
    ("turns", "queue_order"),
    ("unmet", "drift"),
];

const EXTENSIONS: [&str; 8] = ["rs", "md", "yaml", "yml", "go", "py", "html", "toml"];

/// Every text of the repository that people write or read. This file holds the list and is left out.
pub fn texts() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = Vec::new();
    collect(root, root, &mut found);
    found.retain(|source| source.path != "tests/tidy/words.rs");
    found.sort_by(|a, b| a.path.cmp(&b.path));
    found
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    for entry in fs::read_dir(folder).expect("the folder can be listed") {
        let path = entry.expect("the folder can be listed").path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        if path.is_dir() {
            if !(name.starts_with('.') && name != ".ci" || name == "target" || name == "node_modules") {
                collect(root, &path, found);
            }
            continue;
        }
        let is_named = path.extension().is_some_and(|it| EXTENSIONS.iter().any(|known| it == *known));
        if !is_named && name.contains('.') {
            continue;
        }
        let Ok(text) = fs::read_to_string(&path) else { continue };
        if is_named || name == "Makefile" || text.starts_with("#!") {
            let relative = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
            found.push(Source::new(&relative, &text));
        }
    }
}

/// Every listed word in the file, except on lines that carry their reason.
pub fn private_words(source: &Source) -> Vec<Violation> {
    let tokens = tokens(&source.text);
    let phrases = phrases();
    let mut found = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        let Some(known) = phrases.get(token.word.as_str()) else { continue };
        let longest = known.iter().filter(|(words, _)| stands_at(&source.text, &tokens[at..], words));
        let Some((words, instead)) = longest.max_by_key(|(words, _)| words.len()) else { continue };
        let parts = words[0].starts_with('t') && tokens[at..].iter().take(8).any(|next| next.word == "apart");
        let is_loop = words[0] == "in" && at >= 2 && tokens[at - 2].word == "for";
        if !(parts || is_loop || source.allows(token.line)) {
            found.push(source.violation(token.line, format!("`{}`: write {instead}", words.join(" "))));
        }
    }
    if source.path.ends_with(".rs") {
        found.extend(private_names(source));
    }
    found
}

/// The phrases by their first word.
fn phrases() -> BTreeMap<&'static str, Vec<(Vec<&'static str>, &'static str)>> {
    let mut by_first: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (phrases, instead) in PHRASES {
        for phrase in *phrases {
            let words: Vec<_> = phrase.split(' ').collect();
            by_first.entry(words[0]).or_default().push((words, *instead));
        }
    }
    by_first
}

/// Whether the phrase begins at the first token: nothing but space, comment marks and `_` between its words.
fn stands_at(text: &str, tokens: &[Token], words: &[&str]) -> bool {
    let is_joint = |c: char| c.is_whitespace() || "_-/!#*`".contains(c);
    tokens.len() >= words.len()
        && tokens.iter().zip(words).all(|(token, word)| token.word == *word)
        && tokens[..words.len()].windows(2).all(|pair| text[pair[0].end..pair[1].start].chars().all(is_joint))
}

fn private_names(source: &Source) -> Vec<Violation> {
    let code = source.code();
    let mut found = Vec::new();
    for (at, line) in code.lines().enumerate() {
        let words: Vec<_> = line.split(|c| !is_word(c)).filter(|word| !word.is_empty()).collect();
        for pair in words.windows(2).filter(|pair| matches!(pair[0], "mod" | "struct" | "enum" | "trait")) {
            let name = NAMES.iter().find(|(name, _)| *name == pair[1]);
            if let Some((name, instead)) = name.filter(|_| !source.allows(at + 1)) {
                found.push(source.violation(at + 1, format!("`{} {name}`: name it {instead}", pair[0])));
            }
        }
    }
    found
}

/// A run of letters in lower case; an identifier falls into its parts.
struct Token {
    word: String,
    line: usize,
    start: usize,
    end: usize,
}

fn tokens(text: &str) -> Vec<Token> {
    let mut found: Vec<Token> = Vec::new();
    let (mut line, mut last) = (1, ' ');
    for (at, c) in text.char_indices() {
        line += usize::from(last == '\n');
        let goes_on = last.is_alphabetic() && !(last.is_lowercase() && c.is_uppercase());
        let is_escape = last == '\\' && matches!(c, 'n' | 't' | 'r');
        if c.is_alphabetic() && !is_escape {
            match found.last_mut().filter(|token| goes_on && token.end == at) {
                Some(token) => {
                    token.word.extend(c.to_lowercase());
                    token.end = at + c.len_utf8();
                }
                None => {
                    let (start, end) = (at, at + c.len_utf8());
                    found.push(Token { word: c.to_lowercase().collect(), line, start, end });
                }
            }
        }
        last = c;
    }
    found
}

/// No text of the repository uses a private word.
#[test]
fn no_private_words_are_used() {
    let found: Vec<_> = texts().iter().flat_map(private_words).collect();
    let shown: Vec<_> = found.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "\n{}\n{} private words", shown.join("\n"), shown.len());
}

#[test]
fn private_words_are_seen() {
    for (path, bad, count) in [
        ("src/a.rs", "// The user is told.", 1),
        ("src/a.rs", "let was_told = 1;", 1),
        ("src/a.rs", "fn a() { AdminDesk::new(\"\\nNobody\"); }", 2),
        ("src/a.rs", "// it stands\n// back", 1),
        ("src/a.rs", "// Whoever gives it back.", 2),
        ("src/a.rs", "mod foresee;", 1),
        ("src/a.rs", "pub struct Hands;", 1),
        ("docs/a.md", "It asks for 5 GiB, and is asked\ntwice.", 2),
        ("crds/a.yaml", "description: What was put right.", 1),
        ("docs/a.md", "It reports what it does.", 0),
        ("src/a.rs", "for word in words {}", 0),
        ("docs/a.md", "A reader tells these two kinds of claims apart.", 0),
        ("docs/a.md", "What it asks. For each claim, a handbook of desktops.", 0),
        ("docs/a.md", "It is told. <!-- tidy-allow: a quotation -->", 0),
        ("src/a.rs", "use seal::x; // mod seal;", 0),
    ] {
        assert_eq!(private_words(&Source::new(path, bad)).len(), count, "{path}: {bad}");
    }
}
