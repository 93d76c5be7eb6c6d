//! Manifests in, objects out: files, directories and standard input, YAML or JSON, packed or plain. Bodies are not
//! interpreted beyond their field names; the engine reads them.
//!
//! ```text
//! paths -> source (bytes, text) -> yaml | json (documents, items) -> object (kind, metadata) -> merge
//! ```
//!
//! YAML is read as kubectl reads it: `yes/no`, `on/off` and `y/n` are booleans, `5.6` is a number, `014` is octal, merge
//! keys are expanded. Two differences are intended: a duplicate key is an error (kubectl silently keeps the last one), and
//! aliases that multiply a document are refused.

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

pub use error::{LoadError, LoadFailure, Located, Problem};
pub use fields::{UnknownField, unknown_fields};
pub use object::read_metadata;
pub use rounded::{RoundedVersion, WrittenVersion, written_versions};

use conductor::model::Object;
use object::Collector;
use std::{
    collections::BTreeMap,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

/// Default namespaces and the size limit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LoadOptions {
    /// Namespace of claims, quotas and limits without one.
    pub namespace: String,
    /// Namespace of resources and classes without one.
    pub system_namespace: String,
    /// Maximum size of all inputs, unpacked.
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

/// An object and where it was written.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadedObject {
    /// The object with its namespace, without managed fields and last-applied annotation.
    pub object: Object,
    /// The file as named or found; `stdin` for standard input.
    pub source: Arc<str>,
    /// The line, from 1, where the object starts; in nested lists, the line of the inner list.
    pub line: usize,
}

/// Everything that was read.
///
/// # Guarantees
/// Objects are sorted by kind, namespace and name, and unique; problems and fields are sorted by place. The order of the
/// inputs, and of the documents in them, does not matter.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Loaded {
    /// Objects of the kinds that the engine reads.
    pub objects: Vec<LoadedObject>,
    /// Number of ignored objects of other kinds, by `apiVersion/kind`.
    pub ignored: BTreeMap<String, usize>,
    /// Objects that could not be read.
    pub problems: Vec<Problem>,
    /// Fields that are in no schema.
    pub unknown: Vec<Located<UnknownField>>,
    /// Versions that lost digits because they are not quoted.
    pub rounded: Vec<Located<RoundedVersion>>,
}

/// Loads every path: a file, a directory (all manifests below it) or `-` for standard input.
///
/// # Errors
/// A file that cannot be read as manifests, or that is empty: a failed command in a pipe leaves nothing, which must not
/// look like an empty cluster (a list without items). A file in a directory may be empty if another one is not. A broken
/// object in a good file is a [`Problem`] instead.
pub fn load<P: AsRef<Path>>(paths: &[P], options: &LoadOptions) -> Result<Loaded, LoadError> {
    load_with_stdin(paths, std::io::stdin(), options)
}

/// As [`load`], reading `stdin` for the path `-`.
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
            return Err(LoadFailure::Empty.of(&input.name()));
        }
        all_empty &= empty;
        loaded.add(collector.finish()?);
    }
    if let (true, Some(first)) = (all_empty, paths.first()) {
        return Err(LoadFailure::Empty.of(&first.as_ref().to_string_lossy().into()));
    }
    merge::deduplicate(&mut loaded);
    Ok(loaded)
}

/// Whether the input was named itself, not found in a directory.
fn named<P: AsRef<Path>>(input: &source::Input, paths: &[P]) -> bool {
    match input {
        source::Input::Stdin => true,
        source::Input::File(file) => paths.iter().any(|path| path.as_ref() == file),
    }
}

/// All files that [`load`] reads for these paths.
///
/// # Errors
/// A directory cannot be read or holds no manifest.
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

/// Detects the format from the text, as kubectl does: file names can be wrong, and standard input has none.
fn read_text(text: &str, collector: &mut Collector<'_>) -> Result<(), LoadError> {
    if !text.trim_start().starts_with(['{', '[']) {
        return yaml::read(text, collector);
    }
    let as_json = match json::read(text, collector) {
        Err(error) if !collector.source().to_ascii_lowercase().contains(".json") => error,
        decided => return decided,
    };
    // Flow-style YAML begins like JSON. If it is neither, the file name decides.
    collector.clear();
    let named_yaml = collector.source().contains(".y");
    yaml::read(text, collector).map_err(|as_yaml| if named_yaml { as_yaml } else { as_json })
}

#[cfg(test)]
mod tests;
