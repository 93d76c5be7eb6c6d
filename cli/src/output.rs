//! Where results and complaints go: one buffered standard output, one unbuffered standard error.

use crate::plain::{self, Plain};
use anyhow::Result;
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::Mutex;

/// Standard output, buffered. The caller flushes, so that a full disk is not overlooked.
pub fn stdout() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Standard output for tables and sentences, buffered: what is no text in a name stays harmless.
pub fn tables() -> Plain<BufWriter<io::StdoutLock<'static>>> {
    Plain::new(stdout(), is_colourful())
}

/// The same over an output that may take JSON instead.
pub fn plain<W: Write>(out: &mut W) -> Plain<&mut W> {
    Plain::new(out, is_colourful())
}

/// Writes a document as JSON that people can read too.
pub fn json(out: &mut impl Write, document: &impl Serialize) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, document).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

/// Prints a line at once, for whoever follows.
pub fn say(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(plain(&mut out), "{line}")?;
    Ok(out.flush()?)
}

/// Tells a person something that is not the result. If nobody listens there is nobody to tell.
pub fn complain(message: &str) {
    let _ = writeln!(io::stderr(), "{}", plain::lines(message));
}

/// As [`complain`], but the same words only once: an answer that is given twice has its warnings once.
pub fn complain_once(message: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_new = TOLD.lock().map_or(true, |mut told| told.insert(message.to_owned()));
    if is_new {
        complain(message);
    }
}

/// Whether colours are wanted: on a terminal, unless <https://no-color.org> says otherwise.
pub fn is_colourful() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    io::stdout().is_terminal() && !refused && !dumb
}

/// Whether the reader of our output went away, which is its right.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    io.into_iter().any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
