//! From paths to text: which files there are, their bytes, unpacked and checked to be UTF-8.
//! No manifest is understood here.

use super::LoadError;
use crate::record::MAGIC as RECORDING_MAGIC;
use flate2::read::MultiGzDecoder;
use std::{
    collections::BTreeSet,
    fs, io,
    io::Read,
    path::{Path, PathBuf},
    sync::Arc,
};

/// What a manifest's name ends in, when a directory is read.
const EXTENSIONS: [&str; 6] = [".yaml", ".yml", ".json", ".yaml.gz", ".yml.gz", ".json.gz"];

const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// One thing to read.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Input {
    Stdin,
    File(PathBuf),
}

impl Input {
    /// The name that problems and errors carry.
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

/// Every input below the paths, directories sorted. Standard input is read once, however often it is named.
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
                return Err(LoadError::NoManifests { source_name: name(path) });
            }
        } else {
            found.push(Input::File(path.to_owned()));
        }
    }
    Ok(found)
}

/// Each directory is entered once by its real path, so that a link to a parent ends the walk.
fn find_below(
    directory: &Path,
    visited: &mut BTreeSet<PathBuf>,
    found: &mut Vec<Input>,
) -> Result<(), LoadError> {
    let unreadable = |error| LoadError::Unreadable { source_name: name(directory), error };
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

/// Reads inputs one after the other and keeps count of what the guard still allows.
pub(super) struct Inputs<R> {
    stdin: R,
    bytes_max: u64,
    bytes_left: u64,
}

impl<R: Read> Inputs<R> {
    pub(super) fn new(stdin: R, bytes_max: u64) -> Self {
        Inputs { stdin, bytes_max, bytes_left: bytes_max }
    }

    /// The text of one input, unpacked where it begins as gzip does.
    pub(super) fn read(&mut self, input: &Input) -> Result<String, LoadError> {
        let source_name = input.name();
        let packed = match input {
            Input::Stdin => take(&mut self.stdin, self.bytes_left),
            Input::File(path) => fs::File::open(path).and_then(|file| take(file, self.bytes_left)),
        };
        let packed = packed.map_err(|error| match error.kind() {
            io::ErrorKind::NotFound => LoadError::Missing { source_name: source_name.clone() },
            _ => LoadError::Unreadable { source_name: source_name.clone(), error },
        })?;
        let plain = match packed.starts_with(&GZIP_MAGIC) {
            true => unpack(&packed, self.bytes_left)
                .map_err(|error| LoadError::Gzip { source_name: source_name.clone(), error })?,
            false => Some(packed),
        };
        let too_large =
            || LoadError::TooLarge { source_name: source_name.clone(), bytes_max: self.bytes_max };
        let plain = plain.ok_or_else(too_large)?;
        match self.bytes_left.checked_sub(plain.len() as u64) {
            Some(left) => self.bytes_left = left,
            None => return Err(too_large()),
        }
        match plain.starts_with(&RECORDING_MAGIC) {
            true => Err(LoadError::Recording { source_name }),
            false => text(plain, source_name),
        }
    }
}

/// The text of a gzip stream; nothing where it is larger than allowed. It is measured before any of it is kept: a few
/// megabytes can stand for gigabytes, and a buffer that grows takes twice what it holds.
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

/// Everything the reader gives, up to one byte more than allowed: that byte is how excess is noticed.
fn take(reader: impl Read, bytes_max: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    reader.take(bytes_max.saturating_add(1)).read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn text(bytes: Vec<u8>, source_name: Arc<str>) -> Result<String, LoadError> {
    let mut text = String::from_utf8(bytes).map_err(|error| {
        let good = &error.as_bytes()[..error.utf8_error().valid_up_to()];
        let line = good.iter().filter(|&&byte| byte == b'\n').count() + 1;
        let column = good.iter().rev().take_while(|&&byte| byte != b'\n').count() + 1;
        LoadError::Encoding { source_name, line, column }
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

    /// Members that unpack one after the other, as in a bomb.
    #[test]
    fn a_bomb_is_refused_before_any_of_it_is_kept() {
        let bomb = zeros(1 << 20).repeat(64);
        assert_eq!(unpack(&bomb, (64 << 20) - 1).unwrap(), None);
        let plain = unpack(&bomb, 64 << 20).unwrap().unwrap();
        assert_eq!((plain.len(), plain.capacity()), (64 << 20, 64 << 20));
    }
}
