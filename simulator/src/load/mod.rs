//! Manifests in, objects out: files, directories and standard input, YAML or JSON, packed or plain.
//! Nothing here judges a `spec` beyond its fields' names; a body stays as it was written, and reading it is the engine's
//! business.
//!
//! ```text
//! paths -> source (bytes, text) -> yaml | json (documents, items) -> object (kind, metadata) -> merge
//! ```
//!
//! YAML is read as kubectl reads it: `yes/no`, `on/off` and `y/n` are booleans, `5.6` is a number,
//! `014` is octal, merge keys are expanded. Two differences, both on purpose: a key written twice is an error
//! (kubectl keeps the last one and says nothing), and aliases that multiply a document are refused.

mod error;
mod fields;
mod json;
mod merge;
mod object;
mod rounded;
mod source;
mod split;
mod value;
mod yaml;

pub use error::{LoadError, Problem};
pub use fields::{UnknownField, unknown_fields};
pub use object::read_metadata;
pub use rounded::{RoundedVersion, WrittenVersion, written_versions};

use conductor::model::Object;
use object::Collector;
use std::{
    collections::BTreeMap,
    fmt,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What a manifest may leave unsaid, and how much input is taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Namespace of claims, quotas and limits that name none.
    pub namespace: String,
    /// Namespace of resources and classes that name none.
    pub system_namespace: String,
    /// Most bytes read over all inputs, after unpacking.
    pub bytes_max: u64,
}

impl Default for LoadOptions {
    fn default() -> Self {
        LoadOptions {
            namespace: "default".to_owned(),
            system_namespace: "conductor-system".to_owned(),
            bytes_max: 2 << 30,
        }
    }
}

/// One object and the place it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedObject {
    /// The object, its namespace filled in; managed fields and the last-applied annotation are gone.
    pub object: Object,
    /// The file as it was named or found; `stdin` for standard input.
    pub source: Arc<str>,
    /// The line, from 1, on which the object begins; in a list within a list, the line of the inner list.
    pub line: usize,
}

/// A field that no schema names, of an object that was read without it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Unknown {
    /// The file; `stdin` for standard input.
    pub source: Arc<str>,
    /// The line, from 1, on which the object begins.
    pub line: usize,
    /// `RelationalDatabaseClaim team-a/orders`.
    pub object: String,
    /// Which field.
    pub field: UnknownField,
}

impl fmt::Display for Unknown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.source, self.line, self.object, self.field)
    }
}

/// A version that lost digits because it is not quoted.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Rounded {
    /// The file; `stdin` for standard input.
    pub source: Arc<str>,
    /// The line of the version, from 1.
    pub line: usize,
    /// `RelationalDatabaseClaim team-a/orders`.
    pub object: String,
    /// Which field, what is written there and what is read.
    pub version: RoundedVersion,
}

impl fmt::Display for Rounded {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}: {}: {}", self.source, self.line, self.object, self.version)
    }
}

/// Everything that was read.
///
/// # Guarantees
/// Objects are sorted by kind, namespace and name, each of which occurs once; problems and fields by place. The order of
/// the inputs, and of the documents within them, changes neither.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// Objects of the kinds that the engine reads.
    pub objects: Vec<LoadedObject>,
    /// How many objects of other kinds were passed over, by `apiVersion/kind`.
    pub ignored: BTreeMap<String, usize>,
    /// Objects that could not be read; every other object was.
    pub problems: Vec<Problem>,
    /// Fields that no schema names.
    pub unknown: Vec<Unknown>,
    /// Versions that lost digits because they are not quoted.
    pub rounded: Vec<Rounded>,
}

/// Reads every path: a file, a directory (all manifests below it) or `-` for standard input.
///
/// # Errors
/// A file that cannot be read as manifests at all, or that is empty: a command that failed in a pipe leaves nothing
/// too, and must not look like an empty cluster, which is a list without items. A file below a directory may be empty
/// as long as another one is not. A broken object in a good file is a [`Problem`] instead.
pub fn load<P: AsRef<Path>>(paths: &[P], options: &LoadOptions) -> Result<Loaded, LoadError> {
    load_with_stdin(paths, std::io::stdin(), options)
}

/// As [`load`], with `stdin` read where a path is `-`.
///
/// # Errors
/// As [`load`].
pub fn load_with_stdin<P: AsRef<Path>>(
    paths: &[P],
    stdin: impl Read,
    options: &LoadOptions,
) -> Result<Loaded, LoadError> {
    let mut inputs = source::Inputs::new(stdin, options.bytes_max);
    let mut loaded = Loaded::default();
    let mut all_empty = true;
    for input in source::find(paths)? {
        let text = inputs.read(&input)?;
        let mut collector = Collector::new(input.name(), options);
        read_text(&text, &mut collector)?;
        collector.find_rounded(&text);
        let empty = collector.is_empty();
        if empty && named(&input, paths) {
            return Err(LoadError::Empty { source_name: input.name() });
        }
        all_empty &= empty;
        loaded.add(collector.finish()?);
    }
    if let (true, Some(first)) = (all_empty, paths.first()) {
        return Err(LoadError::Empty { source_name: first.as_ref().to_string_lossy().into() });
    }
    merge::settle(&mut loaded);
    Ok(loaded)
}

/// Whether the input was named itself, and not found below a directory.
fn named<P: AsRef<Path>>(input: &source::Input, paths: &[P]) -> bool {
    match input {
        source::Input::Stdin => true,
        source::Input::File(file) => paths.iter().any(|path| path.as_ref() == file),
    }
}

/// Every file that [`load`] reads where these are named, those in directories too.
///
/// # Errors
/// A directory that cannot be read, or holds no manifest.
pub fn files<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<PathBuf>, LoadError> {
    let found = source::find(paths)?.into_iter();
    Ok(found
        .filter_map(|input| match input {
            source::Input::File(path) => Some(path),
            source::Input::Stdin => None,
        })
        .collect())
}

impl Loaded {
    fn add(&mut self, other: Loaded) {
        let Loaded { objects, ignored, problems, unknown, rounded } = other;
        self.objects.extend(objects);
        self.problems.extend(problems);
        self.unknown.extend(unknown);
        self.rounded.extend(rounded);
        for (kind, count) in ignored {
            *self.ignored.entry(kind).or_default() += count;
        }
    }
}

/// Chooses the format by the text, as kubectl does, because names lie and standard input has none.
fn read_text(text: &str, collector: &mut Collector<'_>) -> Result<(), LoadError> {
    if !text.trim_start().starts_with(['{', '[']) {
        return yaml::read(text, collector);
    }
    let as_json = match json::read(text, collector) {
        Err(error) if !collector.source().to_ascii_lowercase().contains(".json") => error,
        decided => return decided,
    };
    // Flow-style YAML begins like JSON. If it is neither, the name says what the author meant.
    collector.clear();
    let named_yaml = collector.source().contains(".y");
    yaml::read(text, collector).map_err(|as_yaml| if named_yaml { as_yaml } else { as_json })
}

#[cfg(test)]
mod tests;
