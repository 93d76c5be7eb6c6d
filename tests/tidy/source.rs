//! The repository's Rust files, and a scanner that separates code from prose. It is no parser: it blanks comments, literals and
//! test items, and expands use trees into plain paths.

use std::{fmt, fs, path::Path, sync::LazyLock};

/// The packages of the workspace except the one at the root, as Cargo.toml lists them; inner packages before the
/// packages that contain them.
pub static PACKAGES: LazyLock<Vec<String>> = LazyLock::new(|| {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let manifest = fs::read_to_string(root.join("Cargo.toml")).expect("the workspace has a manifest");
    let list = manifest.split_once("members = [").and_then(|(_, rest)| rest.split_once(']'));
    let (list, _) = list.expect("the workspace lists its members");
    let mut packages: Vec<String> =
        list.split('"').skip(1).step_by(2).filter(|member| *member != ".").map(str::to_owned).collect();
    packages.sort_by_key(|package| std::cmp::Reverse(package.len()));
    packages
});

/// Where Rust files live. What lives below the root's own `tests` and `benches` is found there.
fn folders() -> Vec<String> {
    let own = ["src", "tests", "benches"].map(str::to_owned);
    let others =
        PACKAGES.iter().filter(|package| !package.starts_with("tests/") && !package.starts_with("benches/"));
    let inner = others.flat_map(|package| {
        ["src", "tests", "benches", "examples"].map(|folder| format!("{package}/{folder}"))
    });
    own.into_iter().chain(inner).collect()
}

/// One file, its path relative to the repository.
pub struct Source {
    pub path: String,
    pub text: String,
}

/// One broken rule and what to do about it.
#[derive(Debug)]
pub struct Violation {
    pub path: String,
    pub line: usize,
    pub message: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}", self.path, self.line, self.message)
    }
}

impl Source {
    pub fn new(path: &str, text: &str) -> Self {
        Source { path: path.to_owned(), text: text.to_owned() }
    }

    /// Every Rust file of the repository, sorted.
    pub fn all() -> Vec<Source> {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        let mut found = Vec::new();
        folders().iter().for_each(|folder| collect(root, &root.join(folder), &mut found));
        found.sort_by(|a, b| a.path.cmp(&b.path));
        found
    }

    pub fn violation(&self, line: usize, message: impl Into<String>) -> Violation {
        Violation { path: self.path.clone(), line, message: message.into() }
    }

    /// Whether the line, or the one above it, carries an exception with a reason.
    pub fn allows(&self, line: usize) -> bool {
        let lines = self.text.lines().skip(line.saturating_sub(2)).take(2);
        lines.filter_map(|line| line.split_once("tidy-allow:")).any(|(_, reason)| reason.trim().len() > 3)
    }

    /// The code with comments and literals blanked; lines stay where they are.
    pub fn code(&self) -> String {
        blank_prose(&self.text)
    }

    /// As [`Source::code`], without items that exist only for tests.
    pub fn shipped_code(&self) -> String {
        blank_tests(self.code())
    }

    /// The module path of the file inside its crate, `["cache", "index"]` for `src/cache/index.rs`.
    pub fn module(&self) -> Vec<String> {
        let inner = self.path.split_once("src/").map_or(self.path.as_str(), |(_, inner)| inner);
        let mut parts: Vec<String> = inner.trim_end_matches(".rs").split('/').map(str::to_owned).collect();
        if matches!(parts.last().map(String::as_str), Some("mod" | "lib" | "main")) {
            parts.pop();
        }
        parts
    }
}

fn collect(root: &Path, folder: &Path, found: &mut Vec<Source>) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for path in entries.map(|entry| entry.expect("the folder can be listed").path()) {
        if path.is_dir() {
            collect(root, &path, found);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let relative = path.strip_prefix(root).expect("below the root").to_string_lossy().into_owned();
            found.push(Source::new(&relative, &fs::read_to_string(&path).expect("sources are UTF-8")));
        }
    }
}

/// Replaces comments and the insides of literals by spaces.
fn blank_prose(text: &str) -> String {
    let chars: Vec<char> = text.chars().collect();
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    while at < chars.len() {
        let end = prose_end(&chars, at);
        match end {
            Some(end) => chars[at..end].iter().for_each(|&c| out.push(if c == '\n' { c } else { ' ' })),
            None => out.push(chars[at]),
        }
        at = end.unwrap_or(at + 1);
    }
    out
}

/// Where the comment or literal that begins here ends.
fn prose_end(chars: &[char], at: usize) -> Option<usize> {
    let rest = &chars[at..];
    let after_word = at > 0 && is_word(chars[at - 1]);
    match rest {
        ['/', '/', ..] => Some(at + rest.iter().position(|&c| c == '\n').unwrap_or(rest.len())),
        ['/', '*', ..] => Some(at + block_comment(rest)),
        ['"', ..] => Some(at + quoted(rest, '"')),
        ['r', '"' | '#', ..] if !after_word => raw_string(rest).map(|length| at + length),
        ['\'', '\\', ..] => Some(at + quoted(rest, '\'')),
        ['\'', _, '\'', ..] => Some(at + 3),
        _ => None,
    }
}

fn block_comment(rest: &[char]) -> usize {
    let (mut depth, mut at) = (0usize, 0);
    while at < rest.len() {
        match rest[at..] {
            ['/', '*', ..] => (depth, at) = (depth + 1, at + 2),
            ['*', '/', ..] => (depth, at) = (depth - 1, at + 2),
            _ => at += 1,
        }
        if depth == 0 {
            break;
        }
    }
    at
}

fn quoted(rest: &[char], quote: char) -> usize {
    let mut at = 1;
    while at < rest.len() && rest[at] != quote {
        at += if rest[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(rest.len())
}

fn raw_string(rest: &[char]) -> Option<usize> {
    let hashes = rest[1..].iter().take_while(|&&c| c == '#').count();
    let open = 1 + hashes;
    if rest.get(open) != Some(&'"') {
        return None;
    }
    let closes = |&at: &usize| {
        rest[at] == '"' && rest[at + 1..].iter().take(hashes).filter(|&&c| c == '#').count() == hashes
    };
    Some((open + 1..rest.len()).find(closes).map_or(rest.len(), |at| at + 1 + hashes))
}

pub fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

/// Blanks every item under `#[cfg(test)]`, up to its closing brace or semicolon.
fn blank_tests(mut code: String) -> String {
    const MARK: &str = "#[cfg(test)]";
    while let Some(start) = code.find(MARK) {
        let end = item_end(&code, start + MARK.len());
        let blank: String = code[start..end].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
        code.replace_range(start..end, &blank);
    }
    code
}

fn item_end(code: &str, from: usize) -> usize {
    let mut depth = 0usize;
    for (at, c) in code[from..].char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        if depth == 0 && matches!(c, '}' | ';') {
            return from + at + 1;
        }
    }
    code.len()
}

/// Every path in the code with its line: use trees spread out, then paths that stand in the code itself.
pub fn paths(code: &str) -> Vec<(usize, Vec<String>)> {
    let mut found = Vec::new();
    let mut rest = String::with_capacity(code.len());
    let mut at = 0;
    while let Some(start) = find_word(&code[at..], "use ").map(|start| at + start) {
        let end = code[start..].find(';').map_or(code.len(), |end| start + end);
        let line = line_of(code, start);
        spread(&code[start + 3..end], &[], &mut |path| found.push((line, path)));
        rest.push_str(&code[at..start]);
        rest.extend(code[start..end].chars().map(|c| if c == '\n' { c } else { ' ' }));
        at = end;
    }
    rest.push_str(&code[at..]);
    for (number, line) in rest.lines().enumerate() {
        inline_paths(line, &mut |path| found.push((number + 1, path)));
    }
    found
}

fn line_of(code: &str, at: usize) -> usize {
    code[..at].matches('\n').count() + 1
}

/// The first place where `word` stands by itself.
pub fn find_word(code: &str, word: &str) -> Option<usize> {
    let (opens, closes) = (word.starts_with(is_word), word.ends_with(is_word));
    code.match_indices(word).map(|(at, _)| at).find(|&at| {
        let before = code[..at].chars().next_back().is_some_and(is_word);
        let after = code[at + word.len()..].chars().next().is_some_and(is_word);
        !(opens && before || closes && after)
    })
}

/// `a::{b, c::d as e}` becomes `a::b` and `a::c::d`.
fn spread(tree: &str, prefix: &[String], found: &mut dyn FnMut(Vec<String>)) {
    let (head, group) = match tree.split_once('{') {
        Some((head, group)) => (head, Some(group.trim_end().trim_end_matches('}'))),
        None => (tree, None),
    };
    let head = head.split(" as ").next().unwrap_or_default();
    let mut path = prefix.to_vec();
    path.extend(head.split("::").map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned));
    match group {
        Some(group) => branches(group).into_iter().for_each(|branch| spread(branch, &path, found)),
        None if path.len() > prefix.len() => found(path),
        None => {}
    }
}

/// Splits at the commas that stand outside inner braces.
fn branches(group: &str) -> Vec<&str> {
    let (mut depth, mut start, mut found) = (0usize, 0, Vec::new());
    for (at, c) in group.char_indices() {
        match c {
            '{' => depth += 1,
            '}' => depth = depth.saturating_sub(1),
            ',' if depth == 0 => {
                found.push(&group[start..at]);
                start = at + 1;
            }
            _ => {}
        }
    }
    found.push(&group[start..]);
    found
}

fn inline_paths(line: &str, found: &mut dyn FnMut(Vec<String>)) {
    for piece in line.split(|c| !is_word(c) && c != ':') {
        let parts: Vec<String> =
            piece.split("::").map(|part| part.trim_matches(':')).map(str::to_owned).collect();
        if parts.len() > 1 && parts.iter().any(|part| !part.is_empty()) {
            found(parts.into_iter().filter(|part| !part.is_empty()).collect());
        }
    }
}

#[test]
fn prose_is_not_code() {
    let text = "let a = \"HashMap\"; // HashMap\n/* HashMap /* x */ */ let b = 'x'; let c: &'static str = r#\"a\"b\"#; d";
    let code = blank_prose(text);
    assert!(!code.contains("HashMap") && code.contains("&'static str") && code.ends_with("; d"), "{code}");
    assert_eq!(code.lines().count(), 2);
}

#[test]
fn test_items_are_not_shipped() {
    let source = Source::new(
        "src/a.rs",
        "fn a() {}\n#[cfg(test)]\nmod tests { fn b() { } }\nfn c() {}\n#[cfg(test)]\nmod d;\n",
    );
    let code = source.shipped_code();
    assert!(
        code.contains("fn a") && code.contains("fn c") && !code.contains("fn b") && !code.contains("mod d")
    );
}

#[test]
fn use_trees_are_spread() {
    let found: Vec<_> = paths("use a::{b, c::{self, d as e}};\nlet x = f::g::<u8>::h(y: z);\npub use i;")
        .into_iter()
        .map(|(line, path)| format!("{line} {}", path.join("::")))
        .collect();
    assert_eq!(found, ["1 a::b", "1 a::c::self", "1 a::c::d", "3 i", "2 f::g", "2 h"]);
}

#[test]
fn an_exception_needs_a_reason() {
    let source = Source::new("src/a.rs", "x // tidy-allow: the hasher is fixed\ny\nz // tidy-allow:\n");
    assert_eq!([1, 2, 3].map(|line| source.allows(line)), [true, true, false]);
}
