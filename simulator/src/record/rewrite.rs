//! Redacts a recording further, for example to replace names by stand-ins before it is shared. Times, gaps, decisions and
//! interruptions stay.

use super::line::{Change, Decision, Header, Line, Outcome, Verdict};
use super::reader::{ReadError, Reader};
use super::redact::{Redaction, STAND_INS};
use super::state::{RecordedObjects, into_object};
use super::writer::Writer;
use crate::merge_patch::diff;
use conductor::model::{Kind, ObjectKey};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use thiserror::Error;

/// Why a recording cannot be rewritten.
#[derive(Debug, Error)]
pub enum RewriteError {
    /// The recording cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output cannot be written.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// Figures of the rewritten recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// Number of initial objects.
    pub objects: usize,
    /// Number of changes.
    pub changes: u64,
    /// Whether the recording, and so its copy, ends without an end line.
    pub interrupted: bool,
}

/// Writes a redacted copy of a recording.
///
/// # Errors
/// The recording cannot be read, or the output cannot be written.
pub fn rewrite(mut reader: Reader, out: impl Write, redaction: Redaction) -> Result<Rewritten, RewriteError> {
    let mut rewriter = Rewriter {
        writer: Writer::new(out),
        redaction,
        known: RecordedObjects::default(),
        written: BTreeMap::new(),
        done: Rewritten { objects: 0, changes: 0, interrupted: false },
    };
    rewriter.header(reader.header().clone())?;
    let mut end = None;
    while let Some(line) = reader.next_line()? {
        if let Line::End(last) = &line {
            end = Some(last.at);
        } else if let Some(line) = rewriter.redacted(line).map_err(|why| reader.damaged_here(why))? {
            rewriter.writer.line(&line)?;
        }
    }
    let Rewriter { mut writer, mut done, .. } = rewriter;
    match end {
        Some(at) => drop(writer.finish(at)?),
        None => writer.flush()?,
    }
    done.interrupted = end.is_none();
    Ok(done)
}

struct Rewriter<W: Write> {
    writer: Writer<W>,
    redaction: Redaction,
    known: RecordedObjects,
    /// Redacted objects as last written, by their original key.
    written: BTreeMap<(Kind, ObjectKey), Value>,
    done: Rewritten,
}

impl<W: Write> Rewriter<W> {
    fn header(&mut self, mut header: Header) -> io::Result<()> {
        // Existing stand-ins stay.
        if header.redaction != STAND_INS {
            header.redaction = self.redaction.word().to_owned();
        }
        self.writer.line(&Line::Header(Box::new(header)))
    }

    /// Redacts a line; `None` if nothing of it remains.
    fn redacted(&mut self, line: Line) -> Result<Option<Line>, String> {
        Ok(Some(match line {
            Line::Obj { o } => Line::Obj { o: self.object(o)? },
            Line::Ev(change) => return Ok(self.change(change)?.map(Line::Ev)),
            Line::Dec(decision) => Line::Dec(self.decision(decision)),
            Line::Ext(outcome) => {
                let resource = self.redaction.name(&outcome.resource);
                Line::Ext(Outcome { resource, ..outcome })
            }
            same @ (Line::Header(_) | Line::Gap { .. } | Line::End(_)) => same,
        }))
    }

    fn object(&mut self, object: Value) -> Result<Value, String> {
        let (kind, key) = self.known.put(&object)?;
        self.done.objects += 1;
        let redacted = self.redaction.redact(&into_object(kind, object)?);
        self.written.insert((kind, key), redacted.clone());
        Ok(redacted)
    }

    fn change(&mut self, change: Change) -> Result<Option<Change>, String> {
        let followed = self.known.apply(change.clone())?;
        let (kind, key) = (followed.kind, followed.key);
        let ObjectKey { namespace, name } = self.redaction.key(kind, &key);
        let mut copy = Change { ns: namespace.to_string(), name: name.to_string(), ..change };
        match followed.new {
            None => drop(self.written.remove(&(kind, key))),
            Some(new) => {
                let new = self.redaction.redact(&into_object(kind, new)?);
                let old = self.written.insert((kind, key), new.clone());
                if copy.new.is_some() || old.is_none() {
                    (copy.new, copy.patch) = (Some(new), None);
                } else {
                    copy.patch = old.and_then(|old| diff(&old, &new));
                    if copy.patch.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
        self.done.changes += 1;
        Ok(Some(copy))
    }

    fn decision(&mut self, decision: Decision) -> Decision {
        let verdict = match decision.verdict {
            Verdict::Bind { resource } => Verdict::Bind { resource: self.redaction.name(&resource) },
            Verdict::Provision { class } => Verdict::Provision { class: self.redaction.name(&class) },
            unnamed @ (Verdict::Refuse { .. } | Verdict::Lost { .. }) => unnamed,
        };
        let (ns, name) = (self.redaction.name(&decision.ns), self.redaction.name(&decision.name));
        Decision { ns, name, verdict, ..decision }
    }
}
