//! Objects under one revision. A write names what it expects to find; the store numbers it, keeps what it replaced
//! in a bounded log, and wakes watchers. What an object means is not known here.
//!
//! ```text
//!  commit(Write) --> [disk: group commit] --> state: objects, log, owners --> watchers look into the log
//! ```

mod disk;
mod journal;
mod state;
mod table;

pub(super) use state::State;
pub(super) use table::{Change, Gone, LogLimits, Table};

use bytes::Bytes;
use disk::Disk;
use journal::Journal;
use parking_lot::{RwLock, RwLockReadGuard};
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, OnceLock};
use tokio::sync::watch;

/// One object as it is kept. It never changes; a write puts another in its place.
#[derive(Debug)]
pub(super) struct Stored {
    pub value: Value,
    pub revision: u64,
    bytes: OnceLock<Bytes>,
}

impl Stored {
    pub fn new(value: Value, revision: u64) -> Stored {
        Stored { value, revision, bytes: OnceLock::new() }
    }

    /// Its JSON, written once however many ask.
    pub fn bytes(&self) -> Bytes {
        self.bytes.get_or_init(|| Bytes::from(self.value.to_string())).clone()
    }
}

/// What a write expects to find.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Expect {
    Absent,
    Revision(u64),
}

/// What a write leaves.
#[derive(Debug)]
pub(super) enum Leave {
    Put(Value),
    /// The last state of an object that is gone, for those who watch.
    Nothing(Value),
}

/// One change of one object.
#[derive(Debug)]
pub(super) struct Write {
    /// The resource: plural and group.
    pub table: Arc<str>,
    /// `namespace/name`, or the name alone: the order of lists is the order of these.
    pub key: String,
    pub expect: Expect,
    pub leave: Leave,
}

/// Why a write did not happen.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    /// There is one already.
    Exists,
    /// It is not as expected: changed meanwhile, or gone.
    Changed,
    /// It could not be made durable.
    Disk(String),
}

/// The objects, to be read only.
#[derive(Clone, Debug)]
pub(super) struct Shared(Arc<RwLock<State>>);

impl Shared {
    pub fn read(&self) -> RwLockReadGuard<'_, State> {
        self.0.read()
    }
}

/// All objects, in memory, and on disk where a folder was named.
#[derive(Debug)]
pub(super) struct Store {
    state: Arc<RwLock<State>>,
    disk: Option<Disk>,
}

impl Store {
    /// A store that ends with the process. Each resource remembers its last changes, within the limits.
    pub fn in_memory(limits: LogLimits) -> Store {
        Store { state: Arc::new(RwLock::new(State::new(limits))), disk: None }
    }

    /// A store that is kept in a folder.
    ///
    /// # Guarantees
    /// A write that was answered is there after any end of the process.
    ///
    /// # Errors
    /// When the folder cannot be used, or what it holds cannot be read.
    pub fn open(folder: &Path, limits: LogLimits) -> Result<Store, String> {
        let (journal, kept) = Journal::open(folder)?;
        let mut state = State::new(limits);
        state.restore(kept)?;
        let state = Arc::new(RwLock::new(state));
        let disk = Disk::start(journal, Arc::clone(&state))?;
        Ok(Store { state, disk: Some(disk) })
    }

    /// Everything as it is now. Held briefly: writers wait meanwhile.
    pub fn read(&self) -> RwLockReadGuard<'_, State> {
        self.state.read()
    }

    /// A way to read that keeps nothing but the objects alive.
    pub fn share(&self) -> Shared {
        Shared(Arc::clone(&self.state))
    }

    /// One object.
    pub fn find(&self, table: &str, key: &str) -> Option<Arc<Stored>> {
        self.read().find(table, key).cloned()
    }

    /// Carries a write out, all of it or nothing.
    pub async fn commit(&self, write: Write) -> Result<Arc<Stored>, Refusal> {
        match &self.disk {
            None => self.state.write().commit(write),
            Some(disk) => disk.commit(write).await,
        }
    }

    /// Why nothing can be written at present; none of it in memory.
    pub fn trouble(&self) -> Option<watch::Receiver<Option<String>>> {
        self.disk.as_ref().map(Disk::trouble)
    }

    /// Makes sure that a resource has a place, so that it can be watched before it has objects.
    pub fn ensure(&self, table: &Arc<str>) {
        if self.read().table(table).is_none() {
            self.state.write().ensure(table);
        }
    }

    /// Compacts the log up to now: a watch from an older revision must list again.
    pub fn compact(&self) {
        self.state.write().compact();
    }
}
