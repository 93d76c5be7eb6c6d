//! Reads the files of a mounted folder as they are at one moment. A kubelet swaps the link `..data` to a new folder: files
//! are read behind the link, and again if it was swapped meanwhile. Plain files are read twice, a little apart, and taken
//! if nothing changed.

use crate::Error;
use std::collections::BTreeMap;
use std::fs;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// The link that a kubelet swaps.
const LINK: &str = "..data";
/// How long plain files must stay unchanged.
const STILL: Duration = Duration::from_millis(100);
/// The largest size of a Secret.
const BYTES_MAX: u64 = 1024 * 1024;
/// How many swaps may interrupt one read.
const OVERTAKEN_MAX: usize = 5;

/// Reads the named files that exist. Line breaks at the end are not part of a value.
///
/// # Errors
/// The folder does not exist, a file cannot be read or is not text, or files are being written.
pub(crate) async fn read(folder: &Path, names: &[String]) -> Result<BTreeMap<String, String>, Error> {
    let first = read_aside(folder, names).await?;
    if first.is_swapped {
        return Ok(first.files);
    }
    tokio::time::sleep(STILL).await;
    let second = read_aside(folder, names).await?;
    match first == second {
        true => Ok(second.files),
        false => Err(Error::Unsettled(folder.display().to_string())),
    }
}

#[derive(PartialEq)]
struct Snapshot {
    files: BTreeMap<String, String>,
    /// Whether the files came through a kubelet's link.
    is_swapped: bool,
}

/// Reads outside the async runtime: a mounted file system may hang.
async fn read_aside(folder: &Path, names: &[String]) -> Result<Snapshot, Error> {
    let (folder, names) = (folder.to_owned(), names.to_vec());
    let snapshot = tokio::task::spawn_blocking(move || read_now(&folder, &names)).await;
    snapshot.unwrap_or_else(|error| Err(Error::Incomplete(format!("the folder cannot be read: {error}"))))
}

fn read_now(folder: &Path, names: &[String]) -> Result<Snapshot, Error> {
    for _ in 0..OVERTAKEN_MAX {
        let behind = behind_link(folder);
        let files = read_files(behind.as_deref().unwrap_or(folder), names);
        // A swap makes the files outdated, and they may be removed while they are read.
        if behind_link(folder) == behind {
            return Ok(Snapshot { files: files?, is_swapped: behind.is_some() });
        }
    }
    Err(Error::Unsettled(folder.display().to_string()))
}

fn behind_link(folder: &Path) -> Option<PathBuf> {
    fs::canonicalize(folder.join(LINK)).ok()
}

fn read_files(folder: &Path, names: &[String]) -> Result<BTreeMap<String, String>, Error> {
    if !folder.is_dir() {
        return Err(Error::Incomplete(format!("folder {} does not exist", folder.display())));
    }
    let mut files = BTreeMap::new();
    for name in names {
        if let Some(text) = read_file(&folder.join(name))? {
            files.insert(name.clone(), text);
        }
    }
    Ok(files)
}

fn read_file(path: &Path) -> Result<Option<String>, Error> {
    let problem = |what: &str| Error::Incomplete(format!("file {}: {what}", path.display()));
    let file = match fs::File::open(path) {
        Ok(file) => file,
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(None),
        Err(error) => return Err(problem(&error.to_string())),
    };
    let mut bytes = Vec::new();
    file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(|error| problem(&error.to_string()))?;
    if bytes.len() as u64 > BYTES_MAX {
        return Err(problem("larger than any Secret"));
    }
    let text = String::from_utf8(bytes).map_err(|_| problem("not UTF-8"))?;
    Ok(Some(text.trim_end_matches(['\n', '\r']).to_owned()))
}

#[cfg(test)]
#[path = "../tests/servers/mount.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod mount;

#[cfg(test)]
mod tests {
    use super::*;

    fn files(number: u32) -> BTreeMap<String, String> {
        ["host", "password", "uri", "username"].map(|name| (name.to_owned(), number.to_string())).into()
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn files_swapped_while_read_are_of_one_moment() {
        let mut mount = mount::Mount::new();
        mount.publish(&files(0));
        let folder = mount.folder();
        let swapping = tokio::task::spawn_blocking(move || {
            (1..=2_000).for_each(|number| mount.publish(&files(number)));
            mount
        });
        let names: Vec<String> = files(0).into_keys().collect();
        let (mut whole, mut overtaken, mut moments) = (0, 0, std::collections::BTreeSet::new());
        while !swapping.is_finished() {
            match read(&folder, &names).await {
                Ok(read) => {
                    whole += 1;
                    assert_eq!(read.len(), names.len(), "{read:?}");
                    assert!(read.values().all(|value| *value == read["uri"]), "{read:?}");
                    moments.insert(read["uri"].clone());
                }
                Err(Error::Unsettled(_)) => overtaken += 1,
                Err(error) => panic!("{error}"),
            }
        }
        println!("{whole} times read, of {} moments; {overtaken} times overtaken", moments.len());
        assert!(moments.len() > 10, "the reader was too slow");
        drop(swapping.await);
    }
}
