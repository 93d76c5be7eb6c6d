//! Writes lines as zstd frames. Each frame is complete in itself, so that an interruption loses only the open one.

use super::line::{End, Line};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::{self, Write};

/// Size at which a frame is closed.
const FRAME_MAX: usize = 1 << 20;
/// A fast level; slow ones gain only a few per cent on these lines.
const LEVEL: i32 = 3;

/// Writes a recording. Methods return the output's errors.
pub struct Writer<W: Write> {
    out: W,
    open: Vec<u8>,
    hasher: Sha256,
    counts: BTreeMap<String, u64>,
    written: u64,
}

impl<W: Write> Writer<W> {
    /// A writer on an empty output.
    pub fn new(out: W) -> Writer<W> {
        Writer { out, open: Vec::new(), hasher: Sha256::new(), counts: BTreeMap::new(), written: 0 }
    }

    /// Adds one line.
    pub fn line(&mut self, line: &Line) -> io::Result<()> {
        let start = self.open.len();
        serde_json::to_writer(&mut self.open, line)?;
        self.open.push(b'\n');
        self.hasher.update(&self.open[start..]);
        *self.counts.entry(line.tag().to_owned()).or_default() += 1;
        if self.open.len() >= FRAME_MAX { self.flush() } else { Ok(()) }
    }

    /// Closes the open frame, so that everything so far survives an interruption.
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

    /// Bytes written, without the open frame.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Writes the end line.
    pub fn finish(mut self, at: u64) -> io::Result<W> {
        let sha256 = hex(&self.hasher.clone().finalize());
        let end = End { at, counts: std::mem::take(&mut self.counts), sha256 };
        self.line(&Line::End(end))?;
        self.flush()?;
        Ok(self.out)
    }
}

/// Formats bytes as hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
