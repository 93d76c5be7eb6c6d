//! The order in which things happened. Kinds are watched side by side, so a recording may have a binding before the
//! claim that it is of; the API's revisions say which came first. Only a short stretch is held back to be sorted.

use crate::record::{Glance, Line, ReadError, Reader};
use serde_json::Value;
use std::collections::BTreeMap;

/// How far apart two watches may run, in milliseconds.
const SKEW_MS: u64 = 3_000;

/// A change with what was read off it, or a line that stands alone.
#[derive(Debug)]
pub(super) struct Group {
    /// The revision by which it is sorted; that of its neighbour where it has none of its own.
    pub revision: u64,
    pub at: u64,
    pub lines: Vec<Glance>,
    /// How many lines had been read when it was its turn.
    pub count: u64,
}

/// Lines in the order of revisions.
pub(super) struct Ordered {
    reader: Reader,
    /// Whether every line is read whole.
    whole: bool,
    held: BTreeMap<(u64, u64), Group>,
    open: Option<Group>,
    newest: u64,
    revision: u64,
    number: u64,
    ended: bool,
}

impl Ordered {
    pub fn new(reader: Reader, whole: bool) -> Ordered {
        let held = BTreeMap::new();
        Ordered { reader, whole, held, open: None, newest: 0, revision: 0, number: 0, ended: false }
    }

    /// Whether the file stops without its end; known after the last group.
    pub fn was_interrupted(&self) -> bool {
        self.reader.was_interrupted()
    }

    fn next_line(&mut self) -> Result<Option<Glance>, ReadError> {
        match self.whole {
            true => self.reader.next_line().map(|line| line.map(Glance::Line)),
            false => self.reader.next_glance(),
        }
    }

    /// The next group; nothing after the last.
    pub fn next(&mut self) -> Result<Option<Group>, ReadError> {
        loop {
            let ripe =
                self.held.first_key_value().is_some_and(|(_, g)| self.ended || g.at + SKEW_MS <= self.newest);
            if ripe {
                let count = self.reader.count();
                return Ok(self.held.pop_first().map(|(_, group)| Group { count, ..group }));
            }
            if self.ended {
                return Ok(None);
            }
            match self.next_line()? {
                Some(line) => self.take(line),
                None => {
                    self.close();
                    self.ended = true;
                }
            }
        }
    }

    fn take(&mut self, line: Glance) {
        let at = line.at().unwrap_or(self.newest);
        self.newest = self.newest.max(at);
        match (&line, &mut self.open) {
            (Glance::Line(Line::Dec(_) | Line::Ext(_)), Some(open)) => open.lines.push(line),
            _ => {
                self.close();
                self.revision = revision(&line).unwrap_or(self.revision);
                self.open = Some(Group { revision: self.revision, at, lines: vec![line], count: 0 });
            }
        }
    }

    fn close(&mut self) {
        if let Some(group) = self.open.take() {
            self.number += 1;
            self.held.insert((group.revision, self.number), group);
        }
    }
}

fn revision(line: &Glance) -> Option<u64> {
    let change = match line {
        Glance::Report(report) => return report.revision,
        Glance::Line(Line::Ev(change)) => change,
        Glance::Line(_) => return None,
    };
    if change.gone {
        return change.rev;
    }
    let object = change.new.as_ref().or(change.patch.as_ref())?;
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str)?.parse().ok()
}
