//! Writes files atomically: a reader never sees half of one, and of several either all are written or none.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs::{self, File, Permissions};
use std::io::{self, BufWriter, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use tempfile::NamedTempFile;

/// Writes one file atomically.
pub fn write_whole(path: &Path, text: &str) -> Result<()> {
    write_all(&[(path.to_owned(), text.to_owned())])
}

/// Writes all files or none: each is written beside its target before the first is renamed.
pub fn write_all(files: &[(PathBuf, String)]) -> Result<()> {
    let mut drafts = Vec::new();
    for (path, text) in files {
        let mut draft = Draft::beside(path)?;
        draft.file.write_all(text.as_bytes()).with_context(|| path.display().to_string())?;
        drafts.push(draft);
    }
    drafts.into_iter().try_for_each(Draft::commit)
}

/// A file, and its role in the command.
pub type Named = (&'static str, PathBuf);

/// Refuses to overwrite an input, and to write two outputs to one file.
pub fn require_apart(read: &[Named], written: &[Named]) -> Result<()> {
    if written.is_empty() {
        return Ok(());
    }
    let mut taken: BTreeMap<PathBuf, &str> = read.iter().map(|(what, path)| (real(path), *what)).collect();
    for (what, path) in written {
        if let Some(other) = taken.insert(real(path), what) {
            bail!("{other} and {what} are both {}: give each a file of its own", path.display());
        }
    }
    Ok(())
}

/// The canonical path, of a file that may not exist yet too.
fn real(path: &Path) -> PathBuf {
    match (path.canonicalize(), folder_of(path).canonicalize()) {
        (Ok(real), _) => real,
        (Err(_), Ok(folder)) => folder.join(path.file_name().unwrap_or_default()),
        (Err(_), Err(_)) => path.to_owned(),
    }
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// A file that is written beside its target, and is removed unless it replaces it.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    file: NamedTempFile,
}

impl Draft {
    fn beside(path: &Path) -> Result<Draft> {
        if path.is_dir() {
            bail!("{} is a folder: choose a file in it", path.display());
        }
        let name = path.file_name().with_context(|| format!("{} is not a file name", path.display()))?;
        let prefix = format!(".{}.", name.to_string_lossy());
        // As any new file; temporary ones are their owner's only.
        let mode = Permissions::from_mode(0o666);
        let file = tempfile::Builder::new().prefix(&prefix).permissions(mode).tempfile_in(folder_of(path));
        Ok(Draft { path: path.to_owned(), file: file.with_context(|| path.display().to_string())? })
    }

    /// Opens a draft that is written bit by bit. Without `force`, an existing target is refused.
    pub fn open(path: &Path, force: bool) -> Result<(Draft, BufWriter<File>)> {
        if !force {
            require_free(path)?;
        }
        let draft = Draft::beside(path)?;
        let file = draft.file.as_file().try_clone().with_context(|| path.display().to_string())?;
        Ok((draft, BufWriter::new(file)))
    }

    /// Renames the draft to its target; writing may continue.
    pub fn commit(self) -> Result<()> {
        let Draft { path, file } = self;
        file.persist(&path).map(drop).with_context(|| path.display().to_string())
    }
}

/// Refuses a file that exists.
pub fn require_free(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(_) => bail!("{} exists: choose another file, or overwrite it with --force", path.display()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => bail!("{}: {error}", path.display()),
    }
}
