//! The lines of a recording, read ahead on a thread of their own: unpacking, hashing and parsing take as long as
//! deciding does. Nothing is put in order here, and nothing is left out.

use crate::record::{Glance, Header, ReadError, Reader};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// So many lines are handed over at once.
const LOT: usize = 512;
/// So many lots may be read ahead.
const LOTS_AHEAD: usize = 8;

/// Lines, and how the file ended once it has.
struct Lot {
    lines: Vec<Glance>,
    end: Option<Result<End, ReadError>>,
}

#[derive(Clone, Copy)]
enum End {
    Whole,
    Interrupted,
}

/// Lines that are read ahead.
pub(super) struct Feed {
    header: Header,
    lots: Receiver<Lot>,
    lines: std::vec::IntoIter<Glance>,
    end: Option<Result<End, ReadError>>,
    count: u64,
    interrupted: bool,
}

impl Feed {
    /// Reads on from where `reader` stands. `whole` reads every line whole.
    pub fn new(reader: Reader, whole: bool) -> Feed {
        let (header, count) = (reader.header().clone(), reader.count());
        let (send, lots) = sync_channel(LOTS_AHEAD);
        thread::spawn(move || read(reader, &send, whole));
        Feed { header, lots, lines: Vec::new().into_iter(), end: None, count, interrupted: false }
    }

    /// What the file says of itself.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// How many lines have been taken.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether the file stops without its end; known once the last line has been taken.
    pub fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The next line; nothing after the last.
    pub fn next(&mut self) -> Result<Option<Glance>, ReadError> {
        loop {
            if let Some(line) = self.lines.next() {
                self.count += 1;
                return Ok(Some(line));
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
            let Ok(Lot { lines, end }) = self.lots.recv() else { return Ok(None) };
            (self.lines, self.end) = (lines.into_iter(), end);
        }
    }
}

fn read(mut reader: Reader, lots: &SyncSender<Lot>, whole: bool) {
    loop {
        let mut lines = Vec::with_capacity(LOT);
        let end = loop {
            let next = match whole {
                true => reader.next_line().map(|line| line.map(Glance::Line)),
                false => reader.next_glance(),
            };
            match next {
                Ok(Some(line)) => lines.push(line),
                Ok(None) if reader.was_interrupted() => break Some(Ok(End::Interrupted)),
                Ok(None) => break Some(Ok(End::Whole)),
                Err(error) => break Some(Err(error)),
            }
            if lines.len() == LOT {
                break None;
            }
        };
        let is_last = end.is_some();
        // Whoever listens may have seen enough.
        if lots.send(Lot { lines, end }).is_err() || is_last {
            return;
        }
    }
}
