//! Durability in one folder: a thread that gathers what waits, commits it at once, and only then lets it be seen.
//! A write that is seen is on disk, so no revision that anybody has seen is given out twice.

use super::state::{State, numbered};
use super::{Refusal, Stored, Write};
use parking_lot::RwLock;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition};
use std::collections::HashMap;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use tokio::sync::oneshot;

/// Table and key to JSON. Neither may hold a zero byte, which stands between them.
const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const REVISION: &str = "revision";
/// How many writes share a commit at most.
const BATCH: usize = 1024;
const FILE: &str = "objects.redb";
/// What to do about a file that cannot be read.
const REPAIR: &str = "put a copy of it back, or move it away to begin anew without what it held";
/// What `conductor up` keeps in the same folder.
const KEPT_BESIDE: [&str; 6] = [FILE, "access.json", "access.new", "kubeconfig", "kubeconfig.new", "servers"];
/// The bit of folders that are everybody's, such as `/tmp`.
const STICKY: u32 = 0o1000;

/// What a folder held.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub revision: u64,
    /// Table, key, JSON.
    pub objects: Vec<(String, String, Vec<u8>)>,
}

/// The file.
#[derive(Debug)]
pub(super) struct Journal {
    database: Database,
}

impl Journal {
    pub fn open(folder: &Path) -> Result<(Journal, Kept), String> {
        let failed = |why: String| format!("{}: {why}", folder.display());
        shut(folder).map_err(|error| failed(error.to_string()))?;
        let database = Database::create(folder.join(FILE)).map_err(|error| failed(told(&error)))?;
        let journal = Journal { database };
        let damaged = |error: redb::Error| format!("{FILE} is damaged ({error}): {REPAIR}");
        let kept = journal.read().map_err(|error| failed(damaged(error)))?;
        Ok((journal, kept))
    }

    fn read(&self) -> Result<Kept, redb::Error> {
        let mut kept = Kept::default();
        let begin = self.database.begin_write()?;
        begin.open_table(OBJECTS)?;
        begin.open_table(NUMBERS)?;
        begin.commit()?;
        let read = self.database.begin_read()?;
        kept.revision = read.open_table(NUMBERS)?.get(REVISION)?.map_or(0, |number| number.value());
        for entry in read.open_table(OBJECTS)?.iter()? {
            let (place, json) = entry?;
            if let Some((table, key)) = place.value().split_once('\0') {
                kept.objects.push((table.to_owned(), key.to_owned(), json.value().to_vec()));
            }
        }
        Ok(kept)
    }

    fn commit(&self, staged: &[Staged]) -> Result<(), redb::Error> {
        let Some(last) = staged.last() else { return Ok(()) };
        let begin = self.database.begin_write()?;
        {
            let mut objects = begin.open_table(OBJECTS)?;
            for one in staged {
                let place = format!("{}\0{}", one.table, one.key);
                match one.deleted {
                    true => objects.remove(place.as_str())?,
                    false => objects.insert(place.as_str(), one.stored.bytes().as_ref())?,
                };
            }
            begin.open_table(NUMBERS)?.insert(REVISION, last.stored.revision)?;
        }
        begin.commit()?;
        Ok(())
    }
}

/// Makes the folder and the file where they are not there, and lets nobody but their owner in: every Secret is in them.
/// A folder that holds other things too, or is everybody's, keeps its rights; the file does not.
fn shut(folder: &Path) -> std::io::Result<()> {
    DirBuilder::new().recursive(true).mode(0o700).create(folder)?;
    let mode = fs::metadata(folder)?.permissions().mode();
    // Who may only pass through, as servers of another user must, sees nothing.
    if mode & STICKY == 0 && mode & 0o066 != 0 && is_own(folder)? {
        fs::set_permissions(folder, Permissions::from_mode(0o700))?;
    }
    let file = folder.join(FILE);
    OpenOptions::new().append(true).create(true).mode(0o600).open(&file)?;
    fs::set_permissions(&file, Permissions::from_mode(0o600))
}

/// Whether nothing is in the folder but what is kept with the file.
fn is_own(folder: &Path) -> std::io::Result<bool> {
    for entry in fs::read_dir(folder)? {
        let name = entry?.file_name();
        if !KEPT_BESIDE.iter().any(|known| name == *known) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// What is wrong with the file, and what to do about it.
fn told(error: &DatabaseError) -> String {
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            "another process uses it: choose a folder that nobody else uses".to_owned()
        }
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() != ErrorKind::InvalidData => {
            error.to_string()
        }
        other => format!("{FILE} is damaged ({other}): {REPAIR}"),
    }
}

type Answer = oneshot::Sender<Result<Arc<Stored>, Refusal>>;

/// A write that may be carried out, and who waits for it.
struct Staged {
    table: Arc<str>,
    key: String,
    stored: Arc<Stored>,
    deleted: bool,
    answer: Answer,
}

/// The way to the thread that writes.
#[derive(Debug)]
pub(super) struct Disk {
    queue: Sender<(Write, Answer)>,
}

impl Disk {
    pub fn start(journal: Journal, state: Arc<RwLock<State>>) -> Result<Disk, String> {
        let (queue, waiting) = channel();
        let writer = std::thread::Builder::new().name("embedded-store".to_owned());
        writer.spawn(move || run(&journal, &state, &waiting)).map_err(|error| error.to_string())?;
        Ok(Disk { queue })
    }

    pub async fn commit(&self, write: Write) -> Result<Arc<Stored>, Refusal> {
        let stopped = || Refusal::Disk("the store has stopped".to_owned());
        let (answer, answered) = oneshot::channel();
        self.queue.send((write, answer)).map_err(|_| stopped())?;
        answered.await.map_err(|_| stopped())?
    }
}

/// Ends when nobody can ask any more.
fn run(journal: &Journal, state: &RwLock<State>, waiting: &Receiver<(Write, Answer)>) {
    while let Ok(first) = waiting.recv() {
        let batch: Vec<_> = std::iter::once(first).chain(waiting.try_iter().take(BATCH - 1)).collect();
        let staged = stage(&state.read(), batch);
        if let Err(error) = journal.commit(&staged) {
            let refusal = || Refusal::Disk(error.to_string());
            staged.into_iter().for_each(|one| drop(one.answer.send(Err(refusal()))));
            continue;
        }
        let mut state = state.write();
        for one in &staged {
            state.publish(&one.table, &one.key, Arc::clone(&one.stored), one.deleted);
        }
        drop(state);
        // Who no longer waits has lost its answer, not its write.
        staged.into_iter().for_each(|one| drop(one.answer.send(Ok(one.stored))));
    }
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
        staged.push(Staged { table: write.table, key: write.key, stored, deleted, answer });
    }
    staged
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_of_our_own_is_shut_and_one_with_other_things_is_not() {
        let base = std::env::temp_dir().join(format!("conductor-shut-folder-{}", std::process::id()));
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let (new, open, shared) = (base.join("new/deep"), base.join("open"), base.join("shared"));
        for folder in [&open, &shared] {
            fs::create_dir_all(folder).unwrap();
            fs::set_permissions(folder, Permissions::from_mode(0o755)).unwrap();
            fs::write(folder.join(FILE), "").unwrap();
            fs::set_permissions(folder.join(FILE), Permissions::from_mode(0o644)).unwrap();
        }
        fs::write(shared.join("homework"), "").unwrap();
        for (folder, expected) in [(&new, 0o700), (&open, 0o700), (&shared, 0o755)] {
            shut(folder).unwrap();
            assert_eq!((mode(folder), mode(&folder.join(FILE))), (expected, 0o600), "{}", folder.display());
        }
        fs::remove_dir_all(&base).unwrap();
    }
}
