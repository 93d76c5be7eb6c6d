//! Where the kubeconfig is put: it holds a token, so only its owner may read it. One that nobody asked for by name
//! goes with us.

use crate::args::UpArguments;
use anyhow::{Context, Result};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};

/// A kubeconfig that was written.
#[derive(Debug)]
pub struct Kubeconfig {
    path: PathBuf,
    /// A folder that was made for it alone.
    made: Option<PathBuf>,
}

impl Kubeconfig {
    /// Writes it where the arguments say: the file that they name, else the data folder, else a folder of its own.
    pub fn write(arguments: &UpArguments, text: &str) -> Result<Kubeconfig> {
        let (path, made) = match (&arguments.write_kubeconfig, &arguments.data) {
            (Some(file), _) => (file.clone(), None),
            (None, Some(data)) => (data.join("kubeconfig"), None),
            (None, None) => {
                let folder = own_folder();
                fs::DirBuilder::new()
                    .recursive(true)
                    .mode(0o700)
                    .create(&folder)
                    .with_context(|| place(&folder))?;
                (folder.join("kubeconfig"), Some(folder))
            }
        };
        write(&path, text).with_context(|| place(&path))?;
        let path = std::path::absolute(&path).unwrap_or(path);
        Ok(Kubeconfig { path, made })
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if let Some(folder) = &self.made {
            // What cannot be removed is of no use to anybody: its token ends with us.
            let _ = fs::remove_dir_all(folder);
        }
    }
}

fn place(path: &Path) -> String {
    format!("the kubeconfig cannot be written to {}: name another file by --write-kubeconfig", path.display())
}

fn own_folder() -> PathBuf {
    let base = std::env::var_os("XDG_RUNTIME_DIR").map_or_else(std::env::temp_dir, PathBuf::from);
    base.join(format!("conductor-{}", std::process::id()))
}

/// Beside the file first, so that nobody reads half of it, and never readable by others in between.
fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let beside = path.with_extension("new");
    if beside.exists() {
        fs::remove_file(&beside)?;
    }
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
    file.write_all(text.as_bytes())?;
    fs::rename(&beside, path)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn only_its_owner_reads_it_and_it_replaces_an_older_one() {
        let folder = std::env::temp_dir().join(format!("conductor-kubeconfig-test-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let path = folder.join("kubeconfig");
        fs::write(&path, "older").unwrap();
        write(&path, "newer").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "newer");
        assert_eq!(fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
        fs::remove_dir_all(&folder).unwrap();
    }
}
