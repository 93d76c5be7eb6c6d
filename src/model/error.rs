//! What a user is told about a value that cannot be read: the value, what is wrong, what to write instead.
//! Refusals ("nothing fits") are not errors and live with the framework.

use std::fmt;

/// A text that is not the value it should be. The caller knows which field it stood in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ValueError {
    /// The text as written, shortened when it is very long.
    pub value: String,
    /// What is wrong with it.
    pub problem: String,
    /// What to write instead.
    pub fix: String,
}

/// A [`ValueError`] with the path of the field it was found in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldError {
    /// The path as in the manifest, `spec.version`.
    pub field: String,
    /// What is wrong there.
    pub error: ValueError,
}

/// How much of an offending value is repeated to its author.
const SHOWN_CHARS_MAX: usize = 80;

impl ValueError {
    /// An error about `value`, saying what is wrong and how to mend it.
    pub fn new(value: &str, problem: impl Into<String>, fix: impl Into<String>) -> Self {
        ValueError { value: shorten(value), problem: problem.into(), fix: fix.into() }
    }

    /// The same error, placed in a field.
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
        // Quotes need no escape between backticks; what would break the line does.
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
