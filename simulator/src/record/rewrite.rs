//! A recording written again, made safe once more: how one that was made with names is given away with stand-ins. Times,
//! gaps, decisions and what is interrupted stay; only what may be told, and under which name, can be less than before.

use super::line::{Change, Decision, Header, Line, Outcome, Verdict};
use super::patch::diff;
use super::reader::{ReadError, Reader};
use super::redact::{Redaction, STAND_INS};
use super::state::{Recorded, into_object};
use super::writer::Writer;
use conductor::model::{Kind, ObjectKey};
use serde_json::Value;
use std::collections::BTreeMap;
use std::io::{self, Write};
use thiserror::Error;

/// Why a recording cannot be written again.
#[derive(Debug, Error)]
pub enum RewriteError {
    /// It cannot be read.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The output does not take it.
    #[error(transparent)]
    Write(#[from] io::Error),
}

/// What was written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewritten {
    /// Objects at the beginning.
    pub objects: usize,
    /// Changes since then.
    pub changes: u64,
    /// Whether the file stops without its end; what is written does so too.
    pub interrupted: bool,
}

/// Writes everything that a recording holds to `out`, as far as the redaction lets it.
///
/// # Errors
/// It cannot be read, or the output does not take it.
pub fn rewrite(mut reader: Reader, out: impl Write, redaction: Redaction) -> Result<Rewritten, RewriteError> {
    let mut again = Again {
        writer: Writer::new(out),
        redaction,
        known: Recorded::default(),
        told_of: BTreeMap::new(),
        done: Rewritten { objects: 0, changes: 0, interrupted: false },
    };
    again.header(reader.header().clone())?;
    let mut end = None;
    while let Some(line) = reader.next_line()? {
        if let Line::End(last) = &line {
            end = Some(last.at);
        } else if let Some(line) = again.told(line).map_err(|why| reader.damaged_here(why))? {
            again.writer.line(&line)?;
        }
    }
    let Again { mut writer, mut done, .. } = again;
    match end {
        Some(at) => drop(writer.finish(at)?),
        None => writer.flush()?,
    }
    done.interrupted = end.is_none();
    Ok(done)
}

struct Again<W: Write> {
    writer: Writer<W>,
    redaction: Redaction,
    known: Recorded,
    /// Objects as they were written last, by the place at which they were read.
    told_of: BTreeMap<(Kind, ObjectKey), Value>,
    done: Rewritten,
}

impl<W: Write> Again<W> {
    fn header(&mut self, mut header: Header) -> io::Result<()> {
        // Stand-ins stay stand-ins, whoever made them.
        if header.redaction != STAND_INS {
            header.redaction = self.redaction.word().to_owned();
        }
        self.writer.line(&Line::Header(Box::new(header)))
    }

    /// A line as it may be told; nothing where nothing of it may be.
    fn told(&mut self, line: Line) -> Result<Option<Line>, String> {
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
        let told = self.redaction.redact(&into_object(kind, object)?);
        self.told_of.insert((kind, key), told.clone());
        Ok(told)
    }

    fn change(&mut self, change: Change) -> Result<Option<Change>, String> {
        let followed = self.known.follow(change.clone())?;
        let (kind, key) = (followed.kind, followed.key);
        let ObjectKey { namespace, name } = self.redaction.key(kind, &key);
        let mut told = Change { ns: namespace.to_string(), name: name.to_string(), ..change };
        match followed.new {
            None => drop(self.told_of.remove(&(kind, key))),
            Some(new) => {
                let new = self.redaction.redact(&into_object(kind, new)?);
                let old = self.told_of.insert((kind, key), new.clone());
                if told.new.is_some() || old.is_none() {
                    (told.new, told.patch) = (Some(new), None);
                } else {
                    told.patch = old.and_then(|old| diff(&old, &new));
                    if told.patch.is_none() {
                        return Ok(None);
                    }
                }
            }
        }
        self.done.changes += 1;
        Ok(Some(told))
    }

    fn decision(&mut self, decision: Decision) -> Decision {
        let verdict = match decision.verdict {
            Verdict::Bind { resource } => Verdict::Bind { resource: self.redaction.name(&resource) },
            Verdict::Provision { class } => Verdict::Provision { class: self.redaction.name(&class) },
            word @ (Verdict::Refuse { .. } | Verdict::Lost { .. }) => word,
        };
        let (ns, name) = (self.redaction.name(&decision.ns), self.redaction.name(&decision.name));
        Decision { ns, name, verdict, ..decision }
    }
}
