//! Where results and diagnostics go: a buffered standard output, an unbuffered standard error.

use crate::args::CrdFormat;
use crate::sanitize::{self, Sanitized};
use anyhow::{Context, Result};
use serde::Serialize;
use serde_json::json;
use std::collections::BTreeSet;
use std::io::{self, BufWriter, IsTerminal, Write};
use std::sync::Mutex;

/// Standard output, buffered. The caller flushes, so that a full disk is an error.
pub fn stdout() -> BufWriter<io::StdoutLock<'static>> {
    BufWriter::with_capacity(1 << 16, io::stdout().lock())
}

/// Standard output for tables and sentences, buffered: control characters in names stay harmless.
pub fn tables() -> Sanitized<BufWriter<io::StdoutLock<'static>>> {
    Sanitized::new(stdout(), is_colourful())
}

/// As [`tables`], over an output that may take JSON instead.
pub fn sanitized<W: Write>(out: &mut W) -> Sanitized<&mut W> {
    Sanitized::new(out, is_colourful())
}

/// Writes a document as indented JSON.
pub fn json(out: &mut impl Write, document: &impl Serialize) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, document).map_err(io::Error::from)?;
    Ok(writeln!(out)?)
}

/// Writes objects as YAML documents, or as one JSON list.
pub fn manifests(out: &mut impl Write, format: CrdFormat, objects: &[impl Serialize]) -> Result<()> {
    if format == CrdFormat::Json {
        return json(out, &json!({"apiVersion": "v1", "kind": "List", "items": objects}));
    }
    for (at, object) in objects.iter().enumerate() {
        if at > 0 {
            writeln!(out, "---")?;
        }
        let text = serde_saphyr::to_string(object).context("an object cannot be written as YAML")?;
        out.write_all(text.as_bytes())?;
    }
    Ok(())
}

/// Prints a line and flushes it, for readers that follow the output.
pub fn say(line: &str) -> Result<()> {
    let mut out = io::stdout().lock();
    writeln!(sanitized(&mut out), "{line}")?;
    Ok(out.flush()?)
}

/// Writes a message that is not the result to standard error. A failure to write it is ignored.
pub fn diagnostic(message: &str) {
    let _ = writeln!(io::stderr(), "{}", sanitize::lines(message));
}

/// As [`diagnostic`], once per message: a result that is computed twice has its warnings once.
pub fn diagnostic_once(message: &str) {
    static WRITTEN: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let is_new = WRITTEN.lock().map_or(true, |mut written| written.insert(message.to_owned()));
    if is_new {
        diagnostic(message);
    }
}

/// Whether to use colours: on a terminal, unless <https://no-color.org> disables them.
pub fn is_colourful() -> bool {
    let refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    io::stdout().is_terminal() && !refused && !dumb
}

/// Whether the reader of the output closed it, which is not an error.
pub fn is_broken_pipe(error: &anyhow::Error) -> bool {
    let io = error.chain().filter_map(|cause| cause.downcast_ref::<io::Error>());
    io.into_iter().any(|error| error.kind() == io::ErrorKind::BrokenPipe)
}
