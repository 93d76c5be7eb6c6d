//! Makes text safe for a terminal: names and messages come from other clients, and a control character in one could
//! clear the screen, hide a line or forge another. Control characters are escaped as in Rust. JSON needs none of this.

use std::borrow::Cow;
use std::io::{self, Write};

/// Escapes every control character.
pub fn line(text: &str) -> Cow<'_, str> {
    escape(text, |_| false)
}

/// As [`line`], and keeps line ends.
pub fn lines(text: &str) -> Cow<'_, str> {
    escape(text, |c| c == '\n')
}

/// Whether a terminal would interpret the character instead of showing it, or move the text around it.
fn is_active(c: char) -> bool {
    c.is_control() || matches!(c, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

fn escape(text: &str, is_allowed: impl Fn(char) -> bool) -> Cow<'_, str> {
    let is_bad = |c: char| is_active(c) && !is_allowed(c);
    if !text.contains(is_bad) {
        return Cow::Borrowed(text);
    }
    let mut escaped = String::with_capacity(text.len() + 16);
    for c in text.chars() {
        if is_bad(c) { escaped.extend(c.escape_default()) } else { escaped.push(c) }
    }
    Cow::Owned(escaped)
}

/// A writer that passes text, and colours if they are enabled, and escapes everything else.
pub struct Sanitized<W> {
    out: W,
    colourful: bool,
}

impl<W: Write> Sanitized<W> {
    pub fn new(out: W, colourful: bool) -> Sanitized<W> {
        Sanitized { out, colourful }
    }
}

impl<W: Write> Write for Sanitized<W> {
    /// Formatted text comes in whole pieces, so no letter is cut in two.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match std::str::from_utf8(bytes) {
            Ok(text) => self.out.write_all(self.clean(text).as_bytes())?,
            Err(_) => self.out.write_all(bytes)?,
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }
}

impl<W> Sanitized<W> {
    fn clean<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if !self.colourful || !text.contains('\u{1b}') {
            return lines(text);
        }
        let mut clean = String::with_capacity(text.len());
        let mut rest = text;
        while let Some(at) = rest.find('\u{1b}') {
            let end = at + colour(&rest[at..]).unwrap_or(0);
            clean.push_str(&lines(&rest[..at]));
            match end > at {
                true => clean.push_str(&rest[at..end]),
                false => clean.push_str("\\u{1b}"),
            }
            rest = &rest[end.max(at + 1)..];
        }
        clean.push_str(&lines(rest));
        Cow::Owned(clean)
    }
}

/// The length of the colour sequence at the start of a text: `ESC [ 1 ; 31 m`.
fn colour(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("\u{1b}[")?;
    let end = inner.find(|c: char| !c.is_ascii_digit() && c != ';')?;
    inner[end..].starts_with('m').then_some(2 + end + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        for (text, one, many) in [
            ("team-a/größe", "team-a/größe", "team-a/größe"),
            ("a\nb", "a\\nb", "a\nb"),
            ("a\u{1b}[2Jb", "a\\u{1b}[2Jb", "a\\u{1b}[2Jb"),
            ("a\rb\u{9b}c\u{202e}", "a\\rb\\u{9b}c\\u{202e}", "a\\rb\\u{9b}c\\u{202e}"),
        ] {
            assert_eq!((&*line(text), &*lines(text)), (one, many));
        }
    }

    #[test]
    fn only_colours_pass_and_only_if_enabled() {
        let written = |colourful: bool, text: &str| {
            let mut out = Sanitized::new(Vec::new(), colourful);
            write!(out, "{text}").unwrap();
            String::from_utf8(out.out).unwrap()
        };
        let red = "\u{1b}[1;31mred\u{1b}[0m\n";
        assert_eq!(written(true, red), red);
        assert_eq!(written(false, red), "\\u{1b}[1;31mred\\u{1b}[0m\n");
        assert_eq!(written(true, "\u{1b}[2J\u{1b}]0;x\u{7}"), "\\u{1b}[2J\\u{1b}]0;x\\u{7}");
    }
}
