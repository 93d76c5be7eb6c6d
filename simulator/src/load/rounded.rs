//! Detects versions that lose digits for lack of quotes: YAML and JSON, and so kubectl, read `version: 5.10` as the number
//! 5.1. Only the text still has the zero. Such versions are reported, not refused: `version: 5.6` keeps its digits.

use serde_json::{Number, Value};
use std::fmt;

/// Suffix of field names that hold a version: `version`, `engineVersion`.
const FIELD_END: &str = "ersion";

/// A number in a version field that may read as another number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WrittenVersion<'a> {
    /// The line, from 1.
    pub line: usize,
    /// The field's name.
    pub field: &'a str,
    /// The number as written.
    pub written: &'a str,
}

/// A version that reads as another one.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct RoundedVersion {
    /// The field's path, such as `spec.version`.
    pub path: String,
    /// As written: `5.10`.
    pub written: String,
    /// As read: `5.1`.
    pub read: String,
}

impl fmt::Display for RoundedVersion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RoundedVersion { path, written, read } = self;
        write!(f, "{path}: {written} without quotes is the number {read}; quote it: \"{written}\"")
    }
}

/// Finds every number in a version field that could lose digits, in the text's order.
pub fn written_versions(text: &str) -> Vec<WrittenVersion<'_>> {
    let mut found = Vec::new();
    for (at, line) in text.lines().enumerate() {
        let mut from = 0;
        while let Some(hit) = line[from..].find(FIELD_END) {
            let end = from + hit + FIELD_END.len();
            from = end;
            if let Some(written) = number_after(&line[end..])
                && !is_comment(&line[..end])
            {
                let start = line[..end].rfind(|c: char| !c.is_ascii_alphanumeric()).map_or(0, |at| at + 1);
                found.push(WrittenVersion { line: at + 1, field: &line[start..end], written });
            }
        }
    }
    found
}

/// The unquoted number after a field's name.
fn number_after(rest: &str) -> Option<&str> {
    let rest = rest.strip_prefix(['"', '\'']).unwrap_or(rest).trim_start();
    let mut rest = rest.strip_prefix(':')?.trim_start();
    // An anchor or a tag comes before the value.
    while rest.starts_with(['&', '!']) {
        rest = rest.split_once([' ', '\t'])?.1.trim_start();
    }
    let end = rest.find([' ', '\t', ',', '}', ']', '\r']).unwrap_or(rest.len());
    let number = &rest[..end];
    let is_number = number.starts_with(|c: char| c.is_ascii_digit() || c == '.' || c == '+')
        && number.bytes().all(|b| b.is_ascii_hexdigit() || b"._xXoO+-".contains(&b));
    is_number.then_some(number)
}

fn is_comment(before: &str) -> bool {
    before.starts_with('#') || before.contains(" #") || before.contains("\t#")
}

impl WrittenVersion<'_> {
    /// Finds the number in this object, if it reads as another version.
    pub fn rounded_in(&self, object: &Value) -> Option<RoundedVersion> {
        let (path, read) = self.find(object, String::new())?;
        let read = read.to_string();
        (read != self.written).then(|| RoundedVersion { path, written: self.written.to_owned(), read })
    }

    fn find<'v>(&self, value: &'v Value, path: String) -> Option<(String, &'v Number)> {
        match value {
            Value::Object(fields) => fields.iter().find_map(|(name, value)| {
                let path = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match value {
                    Value::Number(number) if name == self.field && self.is(number) => Some((path, number)),
                    _ => self.find(value, path),
                }
            }),
            Value::Array(items) => {
                items.iter().enumerate().find_map(|(at, item)| self.find(item, format!("{path}[{at}]")))
            }
            _ => None,
        }
    }

    /// Whether the text can read as this number. Only YAML reads octal and hexadecimal, which are integers.
    fn is(&self, number: &Number) -> bool {
        match self.written.parse::<f64>() {
            Ok(same) if number.as_f64() == Some(same) => true,
            _ => !number.is_f64() && self.written.starts_with('0') && self.written.len() > 1,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn versions_that_lose_digits_are_found_in_the_text() {
        let cases: &[(&str, Value, Option<&str>)] = &[
            ("spec: {version: 5.10}", json!({"spec": {"version": 5.1}}), Some("spec.version: 5.10")),
            ("spec:\n  version: 5.10 # new\n", json!({"spec": {"version": 5.1}}), Some("spec.version: 5.10")),
            (r#"{"version":5.10}"#, json!({"version": 5.1}), Some("version: 5.10")),
            ("version: &v 8.20", json!({"version": 8.2}), Some("version: 8.20")),
            ("engineVersion: 010", json!({"engineVersion": 8}), Some("engineVersion: 010")),
            ("a: [{version: 5.100}]", json!({"a": [{"version": 5.1}]}), Some("a[0].version: 5.100")),
            ("version: 5.6", json!({"version": 5.6}), None),
            ("version: 17", json!({"version": 17}), None),
            ("version: 14.0", json!({"version": 14.0}), None),
            ("version: '5.10'", json!({"version": "5.10"}), None),
            ("version: \"5.10\"", json!({"version": "5.10"}), None),
            ("version: 5.1 # version: 5.10", json!({"version": 5.1}), None),
            ("apiVersion: v1", json!({"apiVersion": "v1"}), None),
            ("version: 5.10.1", json!({"version": "5.10.1"}), None),
            ("port: 5.10", json!({"port": 5.1}), None),
        ];
        for (text, object, expected) in cases {
            let found = written_versions(text).iter().find_map(|written| written.rounded_in(object));
            let shown = found.map(|found| format!("{}: {}", found.path, found.written));
            assert_eq!(shown.as_deref(), *expected, "{text}");
        }
    }
}
