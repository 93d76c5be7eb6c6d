//! Errors about values that cannot be parsed: the value, what is wrong, and what to write instead. Refusals ("no resource
//! fits") are not errors; the scheduler has them.

use std::fmt;

/// A value that cannot be parsed. The caller knows its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    /// The value as written, truncated if it is very long.
    pub value: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub fix: String,
}

/// A [`ValueError`] with the path of its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The path as in the manifest, `spec.version`.
    pub field: String,
    /// What is wrong there.
    pub error: ValueError,
}

/// Characters of an invalid value that the message quotes.
const SHOWN_CHARS_MAX: usize = 80;

impl ValueError {
    /// An error about `value`: what is wrong with it, and how to fix it.
    pub fn new(value: &str, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        ValueError { value: shorten(value), problem: problem.into(), fix: fix.into() }
    }

    /// The same error with the path of its field.
    pub fn in_field(self, field: impl Into<String>) -> FieldError {
        FieldError { field: field.into(), error: self }
    }
}

fn shorten(value: &str) -> String {
    match value.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((end, _)) => format!("{}...", &value[..end]),
        None => value.to_owned(),
    }
}

impl fmt::Display for ValueError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Between backticks quotes need no escape; characters that break the line do.
        let shown = self.value.chars().flat_map(|c| match c {
            '\'' | '"' => c.to_string().chars().collect::<Vec<_>>(),
            _ => c.escape_debug().collect(),
        });
        write!(f, "`{}` {}: {}", shown.collect::<String>(), self.problem, self.fix)
    }
}

impl fmt::Display for FieldError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.field, self.error)
    }
}

impl std::error::Error for ValueError {}
impl std::error::Error for FieldError {}
