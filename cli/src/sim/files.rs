//! Files that are written whole or not at all: a reader never meets half of one, and of several either all are
//! written or none is.

use anyhow::{Context, Result, bail};
use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};

/// All of it or nothing.
pub fn write_whole(path: &Path, text: &str) -> Result<()> {
    write_all(&[(path.to_owned(), text.to_owned())])
}

/// All of them or none: each is written beside its place before the first is moved there.
pub fn write_all(files: &[(PathBuf, String)]) -> Result<()> {
    let mut drafts = Vec::new();
    for (path, text) in files {
        let draft = Draft::beside(path)?;
        fs::write(&draft.draft, text).with_context(|| path.display().to_string())?;
        drafts.push(draft);
    }
    drafts.into_iter().try_for_each(Draft::settle)
}

/// A file with the name of what it is.
pub type Named = (&'static str, PathBuf);

/// Refuses to write over what is read, and two things to one place.
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

/// The place that a path means, though nothing may be there yet.
fn real(path: &Path) -> PathBuf {
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match (path.canonicalize(), folder.canonicalize()) {
        (Ok(real), _) => real,
        (Err(_), Ok(folder)) => folder.join(path.file_name().unwrap_or_default()),
        (Err(_), Err(_)) => path.to_owned(),
    }
}

/// A file that is being written beside its place, and is gone if it never gets there.
#[derive(Debug)]
pub struct Draft {
    path: PathBuf,
    draft: PathBuf,
    settled: bool,
}

impl Draft {
    fn beside(path: &Path) -> Result<Draft> {
        if path.is_dir() {
            bail!("{} is a folder: name a file in it", path.display());
        }
        let name = path.file_name().with_context(|| format!("{} names no file", path.display()))?;
        let draft = path.with_file_name(format!(".{}.{}", name.to_string_lossy(), std::process::id()));
        Ok(Draft { path: path.to_owned(), draft, settled: false })
    }

    /// A draft that is written bit by bit. Without `force`, what is there already is not to be written over.
    pub fn open(path: &Path, force: bool) -> Result<(Draft, BufWriter<File>)> {
        if !force {
            require_free(path)?;
        }
        let draft = Draft::beside(path)?;
        let mut options = OpenOptions::new();
        let file = options.write(true).create(true).truncate(true).open(&draft.draft);
        Ok((draft, BufWriter::new(file.with_context(|| path.display().to_string())?)))
    }

    /// It is worth keeping: takes its place, and is written on there.
    pub fn settle(mut self) -> Result<()> {
        fs::rename(&self.draft, &self.path).with_context(|| self.path.display().to_string())?;
        self.settled = true;
        Ok(())
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.settled {
            // Nothing half-written is left behind; what cannot be removed was not there.
            let _ = fs::remove_file(&self.draft);
        }
    }
}

/// Refuses a file that exists.
pub fn require_free(path: &Path) -> Result<()> {
    match fs::symlink_metadata(path) {
        Ok(_) => bail!("{} exists: name another file, or --force", path.display()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        Err(error) => bail!("{}: {error}", path.display()),
    }
}
