//! Writes the kubeconfig. It holds a token, so only its owner may read it. One without a given path is removed at the
//! end.

use crate::args::UpArguments;
use anyhow::{Context, Result};
use std::io::Write;
use std::path::{Path, PathBuf};
use tempfile::{NamedTempFile, TempDir};

/// A written kubeconfig.
#[derive(Debug)]
pub struct Kubeconfig {
    path: PathBuf,
    /// A folder created for it alone, and removed with it.
    _folder: Option<TempDir>,
}

impl Kubeconfig {
    /// Writes to the file that the arguments name, else to the data folder, else to a new folder.
    pub fn write(arguments: &UpArguments, text: &str) -> Result<Kubeconfig> {
        let (path, folder) = match (&arguments.write_kubeconfig, &arguments.data) {
            (Some(file), _) => (file.clone(), None),
            (None, Some(data)) => (data.join("kubeconfig"), None),
            (None, None) => {
                let base = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
                std::fs::create_dir_all(&base).with_context(|| failure(&base))?;
                let folder = tempfile::Builder::new().prefix("conductor-").tempdir_in(&base);
                let folder = folder.with_context(|| failure(&base))?;
                (folder.path().join("kubeconfig"), Some(folder))
            }
        };
        write(&path, text).with_context(|| failure(&path))?;
        let path = std::path::absolute(&path).unwrap_or(path);
        Ok(Kubeconfig { path, _folder: folder })
    }

    /// The path of the file.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

fn failure(path: &Path) -> String {
    format!("cannot write the kubeconfig to {}: choose another file with --write-kubeconfig", path.display())
}

/// Writes beside the file and renames, so that no reader sees half of it. Temporary files are their owner's only.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = NamedTempFile::new_in(folder)?;
    file.write_all(text.as_bytes())?;
    Ok(file.persist(path).map(drop)?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_the_owner_can_read_it_and_it_replaces_an_older_one() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("kubeconfig");
        fs::write(&path, "older").unwrap();
        write(&path, "newer").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
}
