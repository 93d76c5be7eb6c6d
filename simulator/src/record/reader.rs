//! Reads a recording line by line and checks it: the format in the header, every line, the counts and hash at the end. A
//! file that merely stops was interrupted.

use super::line::{FORMAT, Header, Line};
use super::line_scan::{ScannedLine, report};
use super::writer::hex;
use sha2::{Digest, Sha256};
use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use thiserror::Error;

/// First bytes of a zstd frame.
pub const MAGIC: [u8; 4] = [0x28, 0xb5, 0x2f, 0xfd];
/// Maximum length of a line; an API object has a few MiB at most.
const LINE_MAX: u64 = 64 << 20;

/// Why a recording cannot be read.
#[derive(Debug, Error)]
pub enum ReadError {
    /// The file cannot be opened or read.
    #[error("{0}: {1}")]
    Unreadable(String, io::Error),
    /// The file is not a recording.
    #[error(
        "{0} is not a recording: it does not begin as zstd does; `conductor sim import` creates one from manifests"
    )]
    NotRecording(String),
    /// A newer version wrote it.
    #[error(
        "{file} has format {found}, and this program reads up to {FORMAT}: use the version that recorded it ({recorder}) or a newer one"
    )]
    Future {
        /// The file's name.
        file: String,
        /// The file's format.
        found: u32,
        /// The version that wrote it.
        recorder: String,
    },
    /// The file is damaged.
    #[error("{file}, line {line}: {why}; the file is damaged, copy it again")]
    Damaged {
        /// The file's name.
        file: String,
        /// The line that cannot be read.
        line: u64,
        /// What is wrong with it.
        why: String,
    },
}

/// Whether the path stands for standard input.
pub(super) fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}

/// Whether a file, or `-` for standard input, starts like a recording. Takes nothing from standard input, and does not
/// open other pipes, where what is read here would be lost to the next reader.
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
    /// It cannot be read, is not a recording, or has a later format.
    pub fn open(path: &Path) -> Result<Reader, ReadError> {
        if is_stdin(path) {
            return Reader::over(Path::new("stdin"), BufReader::with_capacity(1 << 18, io::stdin()));
        }
        let unreadable = |error| ReadError::Unreadable(path.display().to_string(), error);
        let file = File::open(path).map_err(unreadable)?;
        Reader::over(path, BufReader::with_capacity(1 << 18, file))
    }

    /// As [`Reader::open`], for a stream that is open already.
    pub(super) fn over(path: &Path, mut raw: impl BufRead + Send + 'static) -> Result<Reader, ReadError> {
        let name = path.display().to_string();
        let unreadable = |error| ReadError::Unreadable(name.clone(), error);
        if raw.fill_buf().map_err(unreadable)?.get(..4) != Some(&MAGIC[..]) {
            return Err(ReadError::NotRecording(name));
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

    /// The file's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Whether the file stopped without its end line. All lines before are valid.
    pub fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The last line as it is in the file.
    pub(super) fn text(&self) -> &[u8] {
        &self.buffer
    }

    /// Number of lines read.
    pub fn count(&self) -> u64 {
        self.count
    }

    fn damaged(&self, why: impl Into<String>) -> ReadError {
        ReadError::Damaged { file: self.file.display().to_string(), line: self.count + 1, why: why.into() }
    }

    /// Error about the last line.
    pub(super) fn damaged_here(&self, why: String) -> ReadError {
        ReadError::Damaged { file: self.file.display().to_string(), line: self.count, why }
    }

    fn read_header(&mut self) -> Result<(), ReadError> {
        if !self.read_bytes()? {
            return Err(self.damaged("the file is empty"));
        }
        // Check the format first: a later one may have other fields.
        let raw: serde_json::Value =
            serde_json::from_slice(&self.buffer).map_err(|e| self.damaged(format!("not JSON: {e}")))?;
        let format = raw.get("format").and_then(serde_json::Value::as_u64).unwrap_or(0);
        if raw.get("t").and_then(|t| t.as_str()) != Some("header") || format == 0 {
            return Err(self.damaged("the first line is not a header"));
        }
        if format > u64::from(FORMAT) {
            let recorder = raw.get("recorder").and_then(|r| r.as_str()).unwrap_or("unknown").to_owned();
            let (file, found) = (self.file.display().to_string(), u32::try_from(format).unwrap_or(u32::MAX));
            return Err(ReadError::Future { file, found, recorder });
        }
        match serde_json::from_value(raw).map_err(|e| self.damaged(e.to_string()))? {
            Line::Header(header) => self.header = *header,
            other => return Err(self.damaged(format!("the first line is {}", other.tag()))),
        }
        self.hasher.update(&self.buffer);
        self.count = 1;
        Ok(())
    }

    /// Reads the next line into the buffer; false at the end of the file.
    fn read_bytes(&mut self) -> Result<bool, ReadError> {
        self.buffer.clear();
        let mut limited = (&mut self.lines).take(LINE_MAX);
        match limited.read_until(b'\n', &mut self.buffer) {
            Ok(0) => Ok(false),
            Ok(_) if self.buffer.last() != Some(&b'\n') && self.buffer.len() as u64 >= LINE_MAX => {
                Err(self.damaged("a line is too long"))
            }
            Ok(_) => Ok(self.buffer.last() == Some(&b'\n')),
            // The recorder was interrupted while it wrote the last frame.
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(false),
            Err(error) => Err(self.damaged(error.to_string())),
        }
    }

    /// The next line; `None` after the last.
    ///
    /// # Errors
    /// The file is damaged.
    pub fn next_line(&mut self) -> Result<Option<Line>, ReadError> {
        if self.advance()? { self.parse().map(Some) } else { Ok(None) }
    }

    /// As [`Reader::next_line`], but leaves engine patches unparsed.
    pub(crate) fn next_scanned(&mut self) -> Result<Option<ScannedLine>, ReadError> {
        if !self.advance()? {
            return Ok(None);
        }
        match report(&self.buffer) {
            Some(report) => {
                self.take_in();
                Ok(Some(ScannedLine::EnginePatch(report)))
            }
            None => self.parse().map(|line| Some(ScannedLine::Line(line))),
        }
    }

    /// Reads the next line into the buffer; false after the last.
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
                    return Err(self.damaged("its hash does not match its lines"));
                }
                self.require_nothing_more()?;
                self.ended = true;
            }
            Line::Obj { .. } | Line::Ev(_) | Line::Gap { .. } | Line::Dec(_) | Line::Ext(_) => {}
        }
        self.take_in();
        Ok(line)
    }

    /// Refuses content after the end line: no count and no hash covers it.
    fn require_nothing_more(&mut self) -> Result<(), ReadError> {
        match self.lines.fill_buf() {
            Ok([]) => Ok(()),
            Ok(_) | Err(_) => Err(self.damaged("there is content after the end line")),
        }
    }

    fn take_in(&mut self) {
        self.hasher.update(&self.buffer);
        self.count += 1;
    }
}
