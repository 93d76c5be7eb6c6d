//! Errors in the input: where, what is wrong, what to do.
//! A broken file stops the load; a broken object is a [`Problem`] and only that object is left out.

use std::{fmt, io, sync::Arc};
use thiserror::Error;

/// An input that cannot be read. Nothing was loaded.
#[derive(Debug, Error)]
pub struct LoadError {
    /// The file or directory; `stdin` for standard input.
    pub input: Arc<str>,
    /// Line of the error, from 1, if known.
    pub line: Option<usize>,
    /// Column of the error, from 1, if known.
    pub column: Option<usize>,
    /// What is wrong.
    pub failure: LoadFailure,
}

/// Why an input cannot be read.
#[derive(Debug, Error)]
pub enum LoadFailure {
    /// The path does not exist.
    #[error("no such file or directory; check the path, or use `-` for standard input")]
    Missing,
    /// The operating system cannot read it.
    #[error("cannot be read ({0}); check that it is a file and that you may read it")]
    Unreadable(io::Error),
    /// A directory without a manifest, most likely the wrong one.
    #[error("no manifests below this directory; they end in .yaml, .yml or .json, or these with .gz")]
    NoManifests,
    /// A damaged gzip stream.
    #[error("damaged gzip ({0}); pack or download the file again")]
    Gzip(io::Error),
    /// All inputs together exceed this number of bytes, unpacked.
    #[error("the input is larger than {0} bytes; load a part of it")]
    TooLarge(u64),
    /// An input without any document, as a failed command in a pipe leaves.
    #[error(
        "it is empty, without a single object; check the command that wrote it (an empty cluster is a list without items)"
    )]
    Empty,
    /// A recording instead of manifests.
    #[error("this is a recording, not manifests; `conductor sim export` extracts manifests from it")]
    Recording,
    /// Bytes that are not UTF-8.
    #[error("not UTF-8 text; convert it, for example with `iconv -t utf-8`")]
    Encoding,
    /// A syntax error.
    #[error("not valid {format}: {message}; fix the line or leave the file out")]
    Syntax {
        /// `YAML` or `JSON`.
        format: &'static str,
        /// The parser's message.
        message: String,
    },
    /// Valid YAML or JSON without any object.
    #[error(
        "not a manifest: it holds {0} where an object with `apiVersion` and `kind` should be; leave the file out"
    )]
    NotManifest(&'static str),
}

impl LoadFailure {
    /// The error of an input as a whole.
    pub(super) fn of(self, input: &Arc<str>) -> LoadError {
        LoadError { input: input.clone(), line: None, column: None, failure: self }
    }

    /// The error at a place in an input.
    pub(super) fn at(self, input: &Arc<str>, line: usize, column: Option<usize>) -> LoadError {
        LoadError { line: Some(line), column, ..self.of(input) }
    }
}

impl fmt::Display for LoadError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.input)?;
        self.line.iter().chain(&self.column).try_for_each(|number| write!(f, ":{number}"))?;
        write!(f, ": {}", self.failure)
    }
}

/// A parser's message on one line, safe for a terminal: it may quote control characters of the input.
pub(super) fn one_line(message: &str) -> String {
    message
        .chars()
        .flat_map(|c| match c.is_control() {
            true => c.escape_default().collect::<Vec<_>>(),
            false => vec![c],
        })
        .collect()
}

/// Something about an object of the input, with its place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Located<T> {
    /// The file; `stdin` for standard input.
    pub source: Arc<str>,
    /// The line, from 1: of the object's start, or of the field itself if known.
    pub line: usize,
    /// `RelationalDatabaseClaim team-a/orders`, or the position if it has no name.
    pub object: String,
    /// What is wrong and what to write instead.
    pub what: T,
}

/// An object that could not be read, or that is defined twice. The rest of its file was loaded.
pub type Problem = Located<String>;

impl<T: fmt::Display> fmt::Display for Located<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.source, self.line, self.object, self.what)
    }
}
