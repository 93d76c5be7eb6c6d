//! Durability in one folder: a thread that gathers what waits, commits it at once, and only then lets it be seen.
//! A write that is seen is on disk, so no revision that a client has seen is given out twice. A disk that fails, or is
//! full, refuses writes until it can be written again; no restart is needed.

use super::journal::Journal;
use super::state::{State, numbered};
use super::{Refusal, Stored, Write};
use parking_lot::RwLock;
use std::collections::HashMap;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::time::{Duration, Instant};
use tokio::sync::{oneshot, watch};

/// How many writes share a commit at most.
const BATCH: usize = 1024;
/// How long a disk that failed is left alone before it is tried again: each try opens and repairs the file.
const RETRY: Duration = Duration::from_millis(500);

type Answer = oneshot::Sender<Result<Arc<Stored>, Refusal>>;

/// A write that may be carried out, and who waits for it.
pub(super) struct Staged {
    pub table: Arc<str>,
    pub key: String,
    pub stored: Arc<Stored>,
    pub deleted: bool,
    /// None once it has been refused for want of knowing better.
    answer: Option<Answer>,
}

/// The way to the thread that writes.
#[derive(Debug)]
pub(super) struct Disk {
    queue: Sender<(Write, Answer)>,
    trouble: watch::Receiver<Option<String>>,
}

impl Disk {
    pub fn start(journal: Journal, state: Arc<RwLock<State>>) -> Result<Disk, String> {
        let (queue, waiting) = channel();
        let (sender, trouble) = watch::channel(None);
        let writer = Writer { journal, state, trouble: sender, doubtful: Vec::new(), tried: Instant::now() };
        let thread = std::thread::Builder::new().name("embedded-store".to_owned());
        thread.spawn(move || writer.run(&waiting)).map_err(|error| error.to_string())?;
        Ok(Disk { queue, trouble })
    }

    pub async fn commit(&self, write: Write) -> Result<Arc<Stored>, Refusal> {
        let stopped = || Refusal::Disk("the store has stopped".to_owned());
        let (answer, answered) = oneshot::channel();
        self.queue.send((write, answer)).map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }

    /// Why nothing can be written at present, if so.
    pub fn trouble(&self) -> watch::Receiver<Option<String>> {
        self.trouble.clone()
    }
}

/// What the thread works with.
struct Writer {
    journal: Journal,
    state: Arc<RwLock<State>>,
    trouble: watch::Sender<Option<String>>,
    /// The batch whose commit failed. A commit that fails late may be durable all the same; then its revisions are
    /// given out, and it must be seen.
    doubtful: Vec<Staged>,
    /// When a disk that fails was last tried.
    tried: Instant,
}

impl Writer {
    /// Ends when the last sender is dropped.
    fn run(mut self, waiting: &Receiver<(Write, Answer)>) {
        loop {
            let first = match self.fails() {
                false => waiting.recv().map_err(|_| RecvTimeoutError::Disconnected),
                true => waiting.recv_timeout(RETRY),
            };
            let first = match first {
                Ok(first) => Some(first),
                Err(RecvTimeoutError::Timeout) => None,
                Err(RecvTimeoutError::Disconnected) => return,
            };
            let batch: Vec<_> = first.into_iter().chain(waiting.try_iter().take(BATCH - 1)).collect();
            if self.fails() && self.tried.elapsed() >= RETRY {
                self.recover();
            }
            let why = self.trouble.borrow().clone();
            match why {
                Some(why) => batch.into_iter().for_each(|(_, answer)| refuse(answer, &why)),
                None => self.carry_out(batch),
            }
        }
    }

    fn fails(&self) -> bool {
        self.trouble.borrow().is_some()
    }

    fn carry_out(&mut self, batch: Vec<(Write, Answer)>) {
        let staged = stage(&self.state.read(), batch);
        match self.journal.commit(&staged) {
            Ok(()) => self.publish(staged),
            Err(why) => {
                self.doubtful = staged;
                self.trouble.send_replace(Some(why));
                // At once: those who wait should hear whether their writes are durable.
                self.recover();
            }
        }
    }

    /// Opens the file again, settles what became of the batch that failed, and proves that the file can be written.
    fn recover(&mut self) {
        self.tried = Instant::now();
        let reopened = self.journal.reopen();
        let doubtful = std::mem::take(&mut self.doubtful);
        let seen = self.state.read().revision();
        let proved = match reopened {
            Ok(durable) if durable > seen => {
                self.publish(doubtful);
                self.journal.prove(durable)
            }
            Ok(_) => {
                let why = self.trouble.borrow().clone().unwrap_or_default();
                doubtful.into_iter().filter_map(|one| one.answer).for_each(|answer| refuse(answer, &why));
                self.journal.prove(seen)
            }
            Err(why) => {
                let forget = |one: &mut Staged| one.answer.take();
                self.doubtful = doubtful;
                self.doubtful.iter_mut().filter_map(forget).for_each(|answer| refuse(answer, &why));
                Err(why)
            }
        };
        match proved {
            Ok(()) => self.trouble.send_replace(None),
            Err(why) => self.trouble.send_replace(Some(why)),
        };
    }

    fn publish(&self, staged: Vec<Staged>) {
        let mut state = self.state.write();
        for one in &staged {
            state.publish(&one.table, &one.key, Arc::clone(&one.stored), one.deleted);
        }
        drop(state);
        // A client that no longer waits has lost its answer, not its write.
        for one in staged {
            if let Some(answer) = one.answer {
                let _ = answer.send(Ok(one.stored));
            }
        }
    }
}

fn refuse(answer: Answer, why: &str) {
    let _ = answer.send(Err(Refusal::Disk(why.to_owned())));
}

/// Numbers the writes whose expectations hold, each seeing those before it; answers the others.
fn stage(state: &State, batch: Vec<(Write, Answer)>) -> Vec<Staged> {
    let mut ahead: HashMap<(Arc<str>, String), Option<u64>> = HashMap::new();
    let mut staged = Vec::with_capacity(batch.len());
    let mut revision = state.revision();
    for (write, answer) in batch {
        let place = (Arc::clone(&write.table), write.key.clone());
        let found = match ahead.get(&place) {
            Some(found) => *found,
            None => state.find(&write.table, &write.key).map(|stored| stored.revision),
        };
        if let Err(refusal) = State::check(write.expect, found) {
            let _ = answer.send(Err(refusal));
            continue;
        }
        revision += 1;
        let (stored, deleted) = numbered(write.leave, revision);
        ahead.insert(place, (!deleted).then_some(revision));
        staged.push(Staged { table: write.table, key: write.key, stored, deleted, answer: Some(answer) });
    }
    staged
}

#[cfg(test)]
mod tests {
    use super::super::table::LogLimits;
    use super::super::{Expect, Leave};
    use super::*;
    use redb::{Database, StorageBackend};
    use serde_json::json;
    use std::io;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// A disk in memory whose operation of one number fails, once.
    #[derive(Debug)]
    struct Faulty {
        bytes: Mutex<Vec<u8>>,
        fails_in: AtomicUsize,
    }

    impl Faulty {
        fn count(&self) -> io::Result<()> {
            match self.fails_in.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1))
            {
                Ok(1) => Err(io::Error::from(io::ErrorKind::StorageFull)),
                _ => Ok(()),
            }
        }
    }

    /// One handle of it; the bytes outlive it.
    #[derive(Clone, Debug)]
    struct Handle(Arc<Faulty>);

    impl StorageBackend for Handle {
        fn len(&self) -> io::Result<u64> {
            Ok(self.0.bytes.lock().unwrap().len() as u64)
        }

        fn read(&self, offset: u64, out: &mut [u8]) -> io::Result<()> {
            let from = usize::try_from(offset).unwrap();
            out.copy_from_slice(&self.0.bytes.lock().unwrap()[from..from + out.len()]);
            Ok(())
        }

        fn set_len(&self, len: u64) -> io::Result<()> {
            self.0.count()?;
            self.0.bytes.lock().unwrap().resize(usize::try_from(len).unwrap(), 0);
            Ok(())
        }

        fn sync_data(&self) -> io::Result<()> {
            self.0.count()
        }

        fn write(&self, offset: u64, data: &[u8]) -> io::Result<()> {
            self.0.count()?;
            let from = usize::try_from(offset).unwrap();
            self.0.bytes.lock().unwrap()[from..from + data.len()].copy_from_slice(data);
            Ok(())
        }
    }

    fn open(disk: &Arc<Faulty>) -> (Journal, super::super::journal::Kept) {
        let disk = Arc::clone(disk);
        let opener = move || Database::builder().create_with_backend(Handle(Arc::clone(&disk)));
        Journal::open_by(Box::new(opener)).expect("it opens")
    }

    fn put(key: &str) -> Write {
        let value = json!({"metadata": {"name": key}, "padding": "x".repeat(5_000)});
        Write {
            table: Arc::from("maps"),
            key: key.to_owned(),
            expect: Expect::Absent,
            leave: Leave::Put(value),
        }
    }

    /// Writes with the n-th operation failing; returns whether any did.
    fn write_with_fault(fails_in: usize) -> bool {
        let disk = Arc::new(Faulty { bytes: Mutex::default(), fails_in: AtomicUsize::new(0) });
        let (journal, _) = open(&disk);
        let limits = LogLimits { count: 100, bytes: 1 << 20 };
        let state = Arc::new(RwLock::new(State::new(limits)));
        let store = Disk::start(journal, Arc::clone(&state)).expect("it starts");
        disk.fails_in.store(fails_in, Ordering::Relaxed);
        let mut answered = Vec::new();
        for n in 0..4 {
            let key = format!("k{n}");
            if futures::executor::block_on(store.commit(put(&key))).is_ok() {
                answered.push(key);
            }
        }
        // What has not failed by now is not to fail what comes after.
        let failed = disk.fails_in.swap(0, Ordering::Relaxed) == 0;
        // A disk that failed once is tested again soon, without a write.
        let mut trouble = store.trouble();
        futures::executor::block_on(trouble.wait_for(Option::is_none)).expect("the thread runs");
        futures::executor::block_on(store.commit(put("last"))).expect("it takes writes again");
        answered.push("last".to_owned());
        let state = state.read();
        let table = state.table("maps").expect("it has objects");
        let seen: Vec<String> = table.range("", None).map(|(key, _)| key.to_string()).collect();
        for key in &answered {
            assert!(seen.contains(key), "operation {fails_in}: {key} was answered and is not seen");
        }
        drop(store);
        // The thread ends when the last sender is dropped, and closes its handle.
        while Arc::strong_count(&disk) > 1 {
            std::thread::yield_now();
        }
        let (_, kept) = open(&disk);
        let durable: Vec<String> = kept.objects.iter().map(|(_, key, _)| key.clone()).collect();
        assert_eq!((durable, kept.revision), (seen, state.revision()), "operation {fails_in}");
        failed
    }

    #[test]
    fn whichever_operation_fails_disk_and_memory_agree() {
        let mut fails_in = 1;
        while write_with_fault(fails_in) {
            fails_in += 1;
        }
        assert!(fails_in > 10, "a commit is more than {fails_in} operations");
    }
}
