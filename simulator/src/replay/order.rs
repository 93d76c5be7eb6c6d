//! The order in which things happened. Kinds are watched side by side, so a recording may have a binding before the
//! claim that it is of; the API's revisions say which came first. Only a short stretch is held back to be sorted.

use super::feed::Feed;
use crate::record::{Glance, Line, ReadError};
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
}

/// Lines in the order of revisions.
pub(super) struct Ordered {
    feed: Feed,
    held: BTreeMap<(u64, u64), Group>,
    open: Option<Group>,
    newest: u64,
    revision: u64,
    number: u64,
    ended: bool,
}

impl Ordered {
    pub fn new(feed: Feed) -> Ordered {
        Ordered { feed, held: BTreeMap::new(), open: None, newest: 0, revision: 0, number: 0, ended: false }
    }

    pub fn feed(&self) -> &Feed {
        &self.feed
    }

    /// The next group; nothing after the last.
    pub fn next(&mut self) -> Result<Option<Group>, ReadError> {
        loop {
            let ripe =
                self.held.first_key_value().is_some_and(|(_, g)| self.ended || g.at + SKEW_MS <= self.newest);
            if ripe {
                return Ok(self.held.pop_first().map(|(_, group)| group));
            }
            if self.ended {
                return Ok(None);
            }
            match self.feed.next()? {
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
                self.open = Some(Group { revision: self.revision, at, lines: vec![line] });
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
