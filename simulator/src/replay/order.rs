//! Restores the order of events. Each kind has its own watch, so a recording may contain a binding before its claim; the
//! API's resource versions show the order. Only a short stretch is held back for sorting.

use crate::record::{Line, ReadError, Reader, ScannedLine};
use serde_json::Value;
use std::collections::BTreeMap;

/// How far two watches may be apart, in milliseconds.
const SKEW_MS: u64 = 3_000;

/// A change with the decisions derived from it, or a line that stands alone.
#[derive(Debug)]
pub(super) struct Group {
    /// The resource version to sort by; that of its neighbour if it has none.
    pub revision: u64,
    pub at: u64,
    pub lines: Vec<ScannedLine>,
    /// Number of lines read when it was returned.
    pub count: u64,
}

/// Lines sorted by resource version.
pub(super) struct Ordered {
    reader: Reader,
    /// Whether to parse every line.
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

    /// Whether the file stops without its end line; known after the last group.
    pub fn was_interrupted(&self) -> bool {
        self.reader.was_interrupted()
    }

    fn next_line(&mut self) -> Result<Option<ScannedLine>, ReadError> {
        match self.whole {
            true => self.reader.next_line().map(|line| line.map(ScannedLine::Line)),
            false => self.reader.next_scanned(),
        }
    }

    /// The next group; `None` after the last.
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

    fn take(&mut self, line: ScannedLine) {
        let at = line.at().unwrap_or(self.newest);
        self.newest = self.newest.max(at);
        match (&line, &mut self.open) {
            (ScannedLine::Line(Line::Dec(_) | Line::Ext(_)), Some(open)) => open.lines.push(line),
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

fn revision(line: &ScannedLine) -> Option<u64> {
    let change = match line {
        ScannedLine::EnginePatch(report) => return report.revision,
        ScannedLine::Line(Line::Ev(change)) => change,
        ScannedLine::Line(_) => return None,
    };
    if change.gone {
        return change.rev;
    }
    let object = change.new.as_ref().or(change.patch.as_ref())?;
    object.pointer("/metadata/resourceVersion").and_then(Value::as_str)?.parse().ok()
}
