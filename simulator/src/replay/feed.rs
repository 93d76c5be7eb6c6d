//! Reads a recording ahead on its own thread: unpacking, hashing, parsing and sorting take as long as deciding does.

use super::order::{Group, Ordered};
use crate::record::{Header, ReadError, Reader};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

/// Groups handed over at once.
const BATCH: usize = 512;
/// Batches read ahead.
const BATCHES_AHEAD: usize = 8;

/// Groups that are read ahead.
pub(super) struct Feed {
    header: Header,
    batches: Receiver<Vec<Group>>,
    groups: std::vec::IntoIter<Group>,
    /// Returns whether the file was interrupted.
    reading: Option<JoinHandle<Result<bool, ReadError>>>,
    count: u64,
    interrupted: bool,
}

impl Feed {
    /// Continues where `reader` is. `whole`: parse every line.
    pub fn new(reader: Reader, whole: bool) -> Feed {
        let (header, count) = (reader.header().clone(), reader.count());
        let (send, batches) = sync_channel(BATCHES_AHEAD);
        let reading = Some(thread::spawn(move || read(Ordered::new(reader, whole), &send)));
        Feed { header, batches, groups: Vec::new().into_iter(), reading, count, interrupted: false }
    }

    /// The file's header.
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Number of lines read when the last group was returned.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// Whether the file stops without its end line; known after the last group.
    pub fn was_interrupted(&self) -> bool {
        self.interrupted
    }

    /// The next group; `None` after the last.
    pub fn next(&mut self) -> Result<Option<Group>, ReadError> {
        loop {
            if let Some(group) = self.groups.next() {
                self.count = group.count;
                return Ok(Some(group));
            }
            match self.batches.recv() {
                Ok(batch) => self.groups = batch.into_iter(),
                Err(_) => {
                    let Some(reading) = self.reading.take() else { return Ok(None) };
                    self.interrupted = reading.join().unwrap_or_else(|panic| resume_unwind(panic))?;
                }
            }
        }
    }
}

/// Sends all groups, those before an error included. Stops early if the receiver has seen enough.
fn read(mut ordered: Ordered, batches: &SyncSender<Vec<Group>>) -> Result<bool, ReadError> {
    let mut error = None;
    let mut groups = std::iter::from_fn(|| ordered.next().map_err(|why| error = Some(why)).ok().flatten());
    loop {
        let batch: Vec<Group> = groups.by_ref().take(BATCH).collect();
        let is_last = batch.len() < BATCH;
        if batches.send(batch).is_err() || is_last {
            break;
        }
    }
    error.map_or(Ok(ordered.was_interrupted()), Err)
}
