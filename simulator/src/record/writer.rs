//! Lines into a file: zstd frames of JSON lines, each frame whole in itself, so that what was written before an
//! interruption is readable. Nothing is kept but the frame that is open.

use super::line::{End, Line};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// A frame is closed once so much has gone into it.
const FRAME_MAX: usize = 1 << 20;
/// Fast, and within a few per cent of the slow ones on lines like these.
const LEVEL: i32 = 3;

/// Writes a recording.
pub struct Writer<W: Write> {
    out: W,
    open: Vec<u8>,
    hasher: Sha256,
    counts: BTreeMap<String, u64>,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// A writer that has written nothing.
    pub fn new(out: W) -> Writer<W> {
        Writer { out, open: Vec::new(), hasher: Sha256::new(), counts: BTreeMap::new(), written: 0 }
    }

    /// Adds one line.
    ///
    /// # Errors
    /// The output does not take it.
    pub fn line(&mut self, line: &Line) -> io::Result<()> {
        let start = self.open.len();
        serde_json::to_writer(&mut self.open, line)?;
        self.open.push(b'\n');
        self.hasher.update(&self.open[start..]);
        *self.counts.entry(line.word().to_owned()).or_default() += 1;
        if self.open.len() >= FRAME_MAX { self.flush() } else { Ok(()) }
    }

    /// Closes the frame that is open: what came so far survives whatever comes next.
    ///
    /// # Errors
    /// The output does not take it.
    pub fn flush(&mut self) -> io::Result<()> {
        if !self.open.is_empty() {
            let mut encoder = zstd::Encoder::new(Vec::new(), LEVEL)?;
            encoder.include_checksum(true)?;
            encoder.write_all(&self.open)?;
            let frame = encoder.finish()?;
            self.out.write_all(&frame)?;
            self.written += frame.len() as u64;
            self.open.clear();
        }
        self.out.flush()
    }

    /// Bytes written so far, those of the open frame not counted.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes the last line.
    ///
    /// # Errors
    /// The output does not take it.
    pub fn finish(mut self, at: u64) -> io::Result<W> {
        let sha256 = hex(&self.hasher.clone().finalize());
        let end = End { at, counts: std::mem::take(&mut self.counts), sha256 };
        self.line(&Line::End(end))?;
        self.flush()?;
        Ok(self.out)
    }
}

/// Bytes as people write them.
pub(super) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
