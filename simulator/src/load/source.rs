//! From paths to text: finds files, reads and unpacks them, checks for UTF-8. Manifests are not interpreted here.

use super::{LoadError, LoadFailure};
use crate::record::MAGIC as RECORDING_MAGIC;
use flate2::read::MultiGzDecoder;
use std::{
    collections::BTreeSet,
    fs, io,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

/// File name extensions that are read in a directory.
const EXTENSIONS: [&str; 6] = [".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz"];

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// One input to read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    Stdin,
    File(PathBuf),
}

impl Input {
    /// The name in messages.
    pub(super) fn name(&self) -> Arc<str> {
        match self {
            Input::Stdin => "stdin".into(),
            Input::File(path) => name(path),
        }
    }
}

fn name(path: &Path) -> Arc<str> {
    path.to_string_lossy().into()
}

/// Finds every input below the paths, directories sorted. Reads standard input once, however often it is named.
pub(super) fn find<P: AsRef<Path>>(paths: &[P]) -> Result<Vec<Input>, LoadError> {
    let mut found = Vec::new();
    let mut visited = BTreeSet::new();
    for path in paths.iter().map(AsRef::as_ref) {
        if path == Path::new("-") {
            if !found.contains(&Input::Stdin) {
                found.push(Input::Stdin);
            }
        } else if path.is_dir() {
            find_below(path, &mut visited, &mut found)?;
            if !found.iter().any(|input| matches!(input, Input::File(file) if file.starts_with(path))) {
                return Err(LoadFailure::NoManifests.of(&name(path)));
            }
        } else {
            found.push(Input::File(path.to_owned()));
        }
    }
    Ok(found)
}

/// Enters each directory once by its real path, so that a link to a parent ends the walk.
fn find_below(
    directory: &Path,
    visited: &mut BTreeSet<PathBuf>,
    found: &mut Vec<Input>,
) -> Result<(), LoadError> {
    let unreadable = |error| LoadFailure::Unreadable(error).of(&name(directory));
    if !visited.insert(directory.canonicalize().map_err(unreadable)?) {
        return Ok(());
    }
    let entries = fs::read_dir(directory).map_err(unreadable)?;
    let mut paths =
        entries.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>().map_err(unreadable)?;
    paths.sort();
    for path in paths {
        let file = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
        if file.starts_with('.') {
            continue;
        } else if path.is_dir() {
            find_below(&path, visited, found)?;
        } else if EXTENSIONS.iter().any(|extension| file.ends_with(extension)) {
            found.push(Input::File(path));
        }
    }
    Ok(())
}

/// Reads inputs one by one within the size limit.
pub(super) struct Inputs<R> {
    stdin: R,
    bytes_max: u64,
    bytes_left: u64,
}

impl<R: Read> Inputs<R> {
    pub(super) fn new(stdin: R, bytes_max: u64) -> Self {
        Inputs { stdin, bytes_max, bytes_left: bytes_max }
    }

    /// Reads the text of one input, unpacking gzip.
    pub(super) fn read(&mut self, input: &Input) -> Result<String, LoadError> {
        let name = input.name();
        let packed = match input {
            Input::Stdin => take(&mut self.stdin, self.bytes_left),
            Input::File(path) => fs::File::open(path).and_then(|file| take(file, self.bytes_left)),
        };
        let packed = packed.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LoadFailure::Missing.of(&name),
            _ => LoadFailure::Unreadable(error).of(&name),
        })?;
        let plain = match packed.starts_with(&GZIP_MAGIC) {
            true => unpack(&packed, self.bytes_left).map_err(|error| LoadFailure::Gzip(error).of(&name))?,
            false => Some(packed),
        };
        let too_large = || LoadFailure::TooLarge(self.bytes_max).of(&name);
        let plain = plain.ok_or_else(too_large)?;
        match self.bytes_left.checked_sub(plain.len() as u64) {
            Some(left) => self.bytes_left = left,
            None => return Err(too_large()),
        }
        match plain.starts_with(&RECORDING_MAGIC) {
            true => Err(LoadFailure::Recording.of(&name)),
            false => text(plain, &name),
        }
    }
}

/// Unpacks a gzip stream; `None` if it is too large. Measures it before keeping anything: a few megabytes can stand for
/// gigabytes, and a growing buffer takes twice its content.
fn unpack(packed: &[u8], bytes_max: u64) -> io::Result<Option<Vec<u8>>> {
    let mut measured = MultiGzDecoder::new(packed).take(bytes_max.saturating_add(1));
    let length = io::copy(&mut measured, &mut io::sink())?;
    if length > bytes_max {
        return Ok(None);
    }
    let mut plain = Vec::with_capacity(usize::try_from(length).unwrap_or_default());
    MultiGzDecoder::new(packed).take(length).read_to_end(&mut plain)?;
    Ok(Some(plain))
}

/// Reads at most one byte more than allowed, which shows the excess.
fn take(reader: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(bytes: Vec<u8>, input: &Arc<str>) -> Result<String, LoadError> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = good.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
        LoadFailure::Encoding.at(input, line, Some(column))
    })?;
    if text.starts_with('\u{feff}') {
        text.drain(..'\u{feff}'.len_utf8());
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::{Compression, write::GzEncoder};
    use std::io::Write;

    fn zeros(count: usize) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&vec![0; count]).unwrap();
        encoder.finish().unwrap()
    }

    /// Many gzip members in a row, as in a bomb.
    #[test]
    fn a_bomb_is_refused_before_any_of_it_is_kept() {
        let bomb = zeros(1 << 20).repeat(64);
        assert_eq!(unpack(&bomb, (64 << 20) - 1).unwrap(), None);
        let plain = unpack(&bomb, 64 << 20).unwrap().unwrap();
        assert_eq!((plain.len(), plain.capacity()), (64 << 20, 64 << 20));
    }
}
