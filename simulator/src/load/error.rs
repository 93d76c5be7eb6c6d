//! What a user is told about input that cannot be read: where, what is wrong, what to do.
//! A file that is broken stops the load; an object that is broken is a [`Problem`] and stops only itself.

use std::{fmt, io, sync::Arc};
use thiserror::Error;

/// A whole input that cannot be read. Nothing was loaded.
#[derive(Debug, Error)]
pub enum LoadError {
    /// The path does not exist.
    #[error("{source_name}: no such file or directory; check the path, or use `-` for standard input")]
    Missing {
        /// The path as given.
        source_name: Arc<str>,
    },
    /// The operating system refused to give the bytes.
    #[error("{source_name}: cannot be read ({error}); check that it is a file and that you may read it")]
    Unreadable {
        /// The file.
        source_name: Arc<str>,
        /// What the operating system said.
        error: io::Error,
    },
    /// A directory that holds no manifest, most likely the wrong one.
    #[error(
        "{source_name}: no manifests below this directory; they end in .yaml, .yml or .json, or these with .gz"
    )]
    NoManifests {
        /// The directory.
        source_name: Arc<str>,
    },
    /// The gzip stream is damaged.
    #[error("{source_name}: damaged gzip ({error}); pack or download the file again")]
    Gzip {
        /// The file.
        source_name: Arc<str>,
        /// What is wrong with the stream.
        error: io::Error,
    },
    /// More input than the guard allows.
    #[error("{source_name}: the input is larger than {bytes_max} bytes; load a part of it")]
    TooLarge {
        /// The file at which the limit was reached.
        source_name: Arc<str>,
        /// The limit over all inputs, unpacked.
        bytes_max: u64,
    },
    /// An input without any document, such as a failed command in a pipe leaves.
    #[error(
        "{source_name}: it is empty, without a single object; check the command that wrote it (an empty cluster is a list without items)"
    )]
    Empty {
        /// The file or directory; `stdin` for standard input.
        source_name: Arc<str>,
    },
    /// A recording where manifests belong.
    #[error(
        "{source_name}: this is a recording, and manifests belong here: `conductor sim export` prints them from it"
    )]
    Recording {
        /// The file.
        source_name: Arc<str>,
    },
    /// Bytes that are not UTF-8.
    #[error("{source_name}:{line}:{column}: not UTF-8 text; convert it, for example with `iconv -t utf-8`")]
    Encoding {
        /// The file.
        source_name: Arc<str>,
        /// Line of the first bad byte, from 1.
        line: usize,
        /// Its column in bytes, from 1.
        column: usize,
    },
    /// Text that is not in its format.
    #[error(
        "{source_name}:{line}:{column}: not valid {format}: {message}; mend the line or leave the file out"
    )]
    Syntax {
        /// The file.
        source_name: Arc<str>,
        /// Line of the error, from 1.
        line: usize,
        /// Its column, from 1.
        column: usize,
        /// `YAML` or `JSON`.
        format: &'static str,
        /// What is wrong.
        message: String,
    },
    /// Text that reads well but holds nothing like an object.
    #[error(
        "{source_name}:{line}: not a manifest: it holds {found} where an object with `apiVersion` and `kind` should be; leave the file out"
    )]
    NotManifest {
        /// The file.
        source_name: Arc<str>,
        /// Line of the first document, from 1.
        line: usize,
        /// What was found there.
        found: &'static str,
    },
}

impl LoadError {
    /// The line at fault, where one is known.
    pub fn line(&self) -> Option<usize> {
        match self {
            LoadError::Missing { .. }
            | LoadError::Unreadable { .. }
            | LoadError::NoManifests { .. }
            | LoadError::Gzip { .. }
            | LoadError::TooLarge { .. }
            | LoadError::Empty { .. }
            | LoadError::Recording { .. } => None,
            LoadError::Encoding { line, .. }
            | LoadError::Syntax { line, .. }
            | LoadError::NotManifest { line, .. } => Some(*line),
        }
    }
}

/// A parser's words, fit for one line of a terminal: input may be quoted in them, control characters and all.
pub(super) fn one_line(message: &str) -> String {
    message
        .chars()
        .flat_map(|c| match c.is_control() {
            true => c.escape_default().collect::<Vec<_>>(),
            false => vec![c],
        })
        .collect()
}

/// One object that could not be read, or could not be told from another. The rest of its file was loaded.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Problem {
    /// The file; `stdin` for standard input.
    pub source: Arc<str>,
    /// The line, from 1, on which the object begins.
    pub line: usize,
    /// `RelationalDatabaseClaim team-a/orders`, or its position where it has no name.
    pub object: String,
    /// What is wrong and what to write instead.
    pub message: String,
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.source, self.line, self.object, self.message)
    }
}
