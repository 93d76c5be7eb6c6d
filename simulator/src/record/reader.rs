//! A file into lines, one after the other, checked on the way: the header first and of a version that we know,
//! every line readable, the end's counts and hash right. A file that just stops was interrupted, and says so.

use super::glance::{Glance, report};
use super::line::{FORMAT, Header, Line};
use super::writer::hex;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// What a zstd frame begins with.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Longest line; an object of the API is at most a few MiB.
const LINE_MAX: u64 = 64 << 20;

/// Why a recording cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file cannot be opened or read at all.
    #[error("{file}: {error}")]
    Unreadable {
        /// Which file.
        file: String,
        /// What the system said.
        error: io::Error,
    },
    /// Not a recording.
    #[error(
        "{file} is no recording: it does not begin as zstd does; `conductor sim import` makes one from manifests"
    )]
    NotRecording {
        /// Which file.
        file: String,
    },
    /// A newer program wrote it.
    #[error(
        "{file} is of format {found}, and this program reads up to {FORMAT}: use the version that recorded it ({recorder}) or a newer one"
    )]
    Future {
        /// Which file.
        file: String,
        /// Its format.
        found: u32,
        /// Who wrote it.
        recorder: String,
    },
    /// Damaged.
    #[error("{file}, line {line}: {why}; the file is damaged, copy it again")]
    Damaged {
        /// Which file.
        file: String,
        /// How far it could be read.
        line: u64,
        /// What is wrong.
        why: String,
    },
}

/// Whether a path means standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether a file, or `-` for standard input, is a recording, by its first bytes. Of standard input nothing
/// is taken. A path that is no file, such as a pipe, is not asked: what is read there is gone for the next.
pub fn is_recording(path: &Path) -> bool {
    if is_stdin(path) {
        return io::stdin().lock().fill_buf().is_ok_and(|head| head.starts_with(&MAGIC));
    }
    if !fs::metadata(path).is_ok_and(|there| there.is_file()) {
        return false;
    }
    let mut head = [0; 4];
    File::open(path).and_then(|mut file| file.read_exact(&mut head)).is_ok() && head == MAGIC
}

/// Reads a recording line by line.
pub struct Reader {
    file: PathBuf,
    lines: Box<dyn BufRead + Send>,
    header: Header,
    hasher: Sha256,
    count: u64,
    ended: bool,
    interrupted: bool,
    buffer: Vec<u8>,
}

impl Reader {
    /// Opens a file, or `-` for standard input, and reads its header.
    ///
    /// # Errors
    /// It cannot be read, is no recording, or is of a later format.
    pub fn open(path: &Path) -> Result<Reader, ReadError> {
        if is_stdin(path) {
            return Reader::over(Path::new("stdin"), BufReader::with_capacity(1 << 18, io::stdin()));
        }
        let unreadable = |error| ReadError::Unreadable { file: path.display().to_string(), error };
        let file = File::open(path).map_err(unreadable)?;
        Reader::over(path, BufReader::with_capacity(1 << 18, file))
    }

    /// As [`Reader::open`], of what is open already.
    pub(super) fn over(path: &Path, mut raw: impl BufRead + Send + 'static) -> Result<Reader, ReadError> {
        let name = path.display().to_string();
        let unreadable = |error| ReadError::Unreadable { file: name.clone(), error };
        if raw.fill_buf().map_err(unreadable)?.get(..4) != Some(&MAGIC[..]) {
            return Err(ReadError::NotRecording { file: name });
        }
        let decoder = zstd::Decoder::with_buffer(raw).map_err(unreadable)?;
        let mut reader = Reader {
            file: path.to_owned(),
            lines: Box::new(BufReader::with_capacity(1 << 18, decoder)),
            header: Header::default(),
            hasher: Sha256::new(),
            count: 0,
            ended: false,
            interrupted: false,
            buffer: Vec::new(),
        };
        reader.read_header()?;
        Ok(reader)
    }

    /// What the file says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether the file stops without its end: everything up to there was read.
    pub fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The line that was read last, as it stands in the file.
    pub(super) fn text(&self) -> &[u8] {
        &self.buffer
    }

    /// How many lines have been read.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn damaged(&self, why: impl Into<String>) -> ReadError {
        ReadError::Damaged { file: self.file.display().to_string(), line: self.count + 1, why: why.into() }
    }

    /// What is wrong with the line that was read last.
    pub(super) fn damaged_here(&self, why: String) -> ReadError {
        ReadError::Damaged { file: self.file.display().to_string(), line: self.count, why }
    }

    fn read_header(&mut self) -> Result<(), ReadError> {
        if !self.read_bytes()? {
            return Err(self.damaged("it holds nothing"));
        }
        // The format is looked at before anything else is understood: a later one may have other fields.
        let raw: serde_json::Value =
            serde_json::from_slice(&self.buffer).map_err(|e| self.damaged(format!("not JSON: {e}")))?;
        let format = raw.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if raw.get("t").and_then(|t| t.as_str()) != Some("header") || format == 0 {
            return Err(self.damaged("the first line is no header"));
        }
        if format > u64::from(FORMAT) {
            let recorder = raw.get("recorder").and_then(|r| r.as_str()).unwrap_or("unknown").to_owned();
            let (file, found) = (self.file.display().to_string(), u32::try_from(format).unwrap_or(u32::MAX));
            return Err(ReadError::Future { file, found, recorder });
        }
        match serde_json::from_value(raw).map_err(|e| self.damaged(e.to_string()))? {
            Line::Header(header) => self.header = *header,
            other => return Err(self.damaged(format!("the first line is {}", other.word()))),
        }
        self.hasher.update(&self.buffer);
        self.count = 1;
        Ok(())
    }

    /// The next line into the buffer; false at the end of the file.
    fn read_bytes(&mut self) -> Result<bool, ReadError> {
        self.buffer.clear();
        let mut limited = (&mut self.lines).take(LINE_MAX);
        match limited.read_until(b'\n', &mut self.buffer) {
            Ok(0) => Ok(false),
            Ok(_) if self.buffer.last() != Some(&b'\n') && self.buffer.len() as u64 >= LINE_MAX => {
                Err(self.damaged("a line is too long"))
            }
            Ok(_) => Ok(self.buffer.last() == Some(&b'\n')),
            // The last frame was being written when the recorder was interrupted.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(self.damaged(error.to_string())),
        }
    }

    /// The next line; nothing after the last.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn next_line(&mut self) -> Result<Option<Line>, ReadError> {
        if self.advance()? { self.parse().map(Some) } else { Ok(None) }
    }

    /// As [`Reader::next_line`], and reads no further into a report than to tell that it is one.
    ///
    /// # Errors
    /// As [`Reader::next_line`].
    pub fn next_glance(&mut self) -> Result<Option<Glance>, ReadError> {
        if !self.advance()? {
            return Ok(None);
        }
        match report(&self.buffer) {
            Some(report) => {
                self.take_in();
                Ok(Some(Glance::Report(report)))
            }
            None => self.parse().map(|line| Some(Glance::Line(line))),
        }
    }

    /// Gets the next line into the buffer; false after the last.
    fn advance(&mut self) -> Result<bool, ReadError> {
        if self.ended || self.interrupted {
            return Ok(false);
        }
        self.interrupted = !self.read_bytes()?;
        Ok(!self.interrupted)
    }

    fn parse(&mut self) -> Result<Line, ReadError> {
        let line: Line =
            serde_json::from_slice(&self.buffer).map_err(|e| self.damaged(format!("unreadable: {e}")))?;
        match &line {
            Line::Header(_) => return Err(self.damaged("a second header")),
            Line::End(end) => {
                if end.sha256 != hex(&self.hasher.clone().finalize()) {
                    return Err(self.damaged("its hash is not that of its lines"));
                }
                self.require_nothing_more()?;
                self.ended = true;
            }
            Line::Obj { .. } | Line::Ev(_) | Line::Gap { .. } | Line::Dec(_) | Line::Ext(_) => {}
        }
        self.take_in();
        Ok(line)
    }

    /// What comes after the end is in no count and in no hash: nobody of ours wrote it.
    fn require_nothing_more(&mut self) -> Result<(), ReadError> {
        match self.lines.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) | Err(_) => Err(self.damaged("something comes after its end")),
        }
    }

    fn take_in(&mut self) {
        self.hasher.update(&self.buffer);
        self.count += 1;
    }
}
