//! The changes of a recording, read ahead on a thread of their own: unpacking, hashing, parsing and putting in order take
//! as long as deciding does. Nothing is left out here.

use super::order::{Group, Ordered};
use crate::record::{Header, ReadError, Reader};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// So many groups of lines are handed over at once.
const LOT: usize = 512;
/// So many lots may be read ahead.
const LOTS_AHEAD: usize = 8;

/// Groups, and how the file ended once it has.
struct Lot {
    groups: Vec<Group>,
    end: Option<Result<End, ReadError>>,
}

#[derive(Clone, Copy)]
enum End {
    Whole,
    Interrupted,
}

/// Groups that are read ahead.
pub(super) struct Feed {
    header: Header,
    lots: Receiver<Lot>,
    groups: std::vec::IntoIter<Group>,
    end: Option<Result<End, ReadError>>,
    count: u64,
    interrupted: bool,
}

impl Feed {
    /// Reads on from where `reader` stands. `whole` reads every line whole.
    pub fn new(reader: Reader, whole: bool) -> Feed {
        let (header, count) = (reader.header().clone(), reader.count());
        let (send, lots) = sync_channel(LOTS_AHEAD);
        thread::spawn(move || read(Ordered::new(reader, whole), &send));
        Feed { header, lots, groups: Vec::new().into_iter(), end: None, count, interrupted: false }
    }

    /// What the file says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many lines had been read when the last group was taken.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether the file stops without its end; known once the last group has been taken.
    pub fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The next group; nothing after the last.
    pub fn next(&mut self) -> Result<Option<Group>, ReadError> {
        loop {
            if let Some(group) = self.groups.next() {
                self.count = group.count;
                return Ok(Some(group));
            }
            match self.end.take() {
                Some(Ok(end)) => {
                    self.interrupted = matches!(end, End::Interrupted);
                    self.end = Some(Ok(end));
                    return Ok(None);
                }
                Some(Err(error)) => return Err(error),
                None => {}
            }
            // Nobody sends any more: the file could not be read, and that has been told.
            let Ok(Lot { groups, end }) = self.lots.recv() else { return Ok(None) };
            (self.groups, self.end) = (groups.into_iter(), end);
        }
    }
}

fn read(mut ordered: Ordered, lots: &SyncSender<Lot>) {
    loop {
        let mut groups = Vec::with_capacity(LOT);
        let end = loop {
            match ordered.next() {
                Ok(Some(group)) => groups.push(group),
                Ok(None) if ordered.was_interrupted() => break Some(Ok(End::Interrupted)),
                Ok(None) => break Some(Ok(End::Whole)),
                Err(error) => break Some(Err(error)),
            }
            if groups.len() == LOT {
                break None;
            }
        };
        let is_last = end.is_some();
        // Whoever listens may have seen enough.
        if lots.send(Lot { groups, end }).is_err() || is_last {
            return;
        }
    }
}
