//! The file of a store: one redb database in a folder, committed batch by batch, and opened again after a failure.
//! Which writes are in a batch, and who waits for them, is not known here.

use super::disk::Staged;
use redb::{Database, DatabaseError, ReadableDatabase, ReadableTable, StorageError, TableDefinition};
use std::fmt;
use std::fs::{self, DirBuilder, OpenOptions, Permissions};
use std::io::ErrorKind;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

/// Table and key to JSON. Neither may hold a zero byte, which stands between them.
const OBJECTS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("objects");
const NUMBERS: TableDefinition<'_, &str, u64> = TableDefinition::new("numbers");
const REVISION: &str = "revision";
const FILE: &str = "objects.redb";
/// What to do about a file that cannot be read.
const REPAIR: &str = "restore a copy of it, or move it away to start without what it held";
/// What `conductor up` keeps in the same folder.
const KEPT_BESIDE: [&str; 6] = [FILE, "access.json", "access.new", "kubeconfig", "kubeconfig.new", "servers"];
/// The sticky bit of shared folders such as `/tmp`.
const STICKY: u32 = 0o1000;

/// What a folder held.
#[derive(Debug, Default)]
pub(super) struct Kept {
    pub revision: u64,
    /// Table, key, JSON.
    pub objects: Vec<(String, String, Vec<u8>)>,
}

/// Opens the database; called again after a failure, when no handle of it is open.
type Opener = Box<dyn Fn() -> Result<Database, DatabaseError> + Send>;

/// The file.
pub(super) struct Journal {
    opener: Opener,
    /// Absent after a failure: redb refuses every later transaction of a handle that has met an I/O error, so the
    /// handle is closed, and opening another one repairs the file.
    database: Option<Database>,
}

impl fmt::Debug for Journal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Journal").field("open", &self.database.is_some()).finish_non_exhaustive()
    }
}

impl Journal {
    pub fn open(folder: &Path) -> Result<(Journal, Kept), String> {
        let failed = |why: String| format!("{}: {why}", folder.display());
        shut(folder).map_err(|error| failed(error.to_string()))?;
        let file = folder.join(FILE);
        Journal::open_by(Box::new(move || Database::create(&file))).map_err(failed)
    }

    /// As [`Journal::open`], wherever the database is.
    pub(super) fn open_by(opener: Opener) -> Result<(Journal, Kept), String> {
        let database = opener().map_err(|error| explain(&error))?;
        let kept = read(&database).map_err(|error| explained(&error))?;
        Ok((Journal { opener, database: Some(database) }, kept))
    }

    /// Makes a batch durable, all of it or nothing.
    ///
    /// # Errors
    /// When it could not be written. Whether it is durable all the same is known after [`Journal::reopen`].
    pub fn commit(&mut self, staged: &[Staged]) -> Result<(), String> {
        let Some(last) = staged.last() else { return Ok(()) };
        self.write(|database| commit(database, staged, last.stored.revision))
    }

    /// Proves that the file can be written, by a transaction that changes nothing.
    ///
    /// # Errors
    /// When it cannot.
    pub fn prove(&mut self, revision: u64) -> Result<(), String> {
        self.write(|database| commit(database, &[], revision))
    }

    fn write(&mut self, write: impl FnOnce(&Database) -> Result<(), redb::Error>) -> Result<(), String> {
        let Some(database) = &self.database else { return Err("the file is closed".to_owned()) };
        write(database).map_err(|error| {
            self.database = None;
            explained(&error)
        })
    }

    /// Opens the file again where a failure closed it; returns the revision that is durable.
    ///
    /// # Errors
    /// When it cannot be opened or read yet.
    pub fn reopen(&mut self) -> Result<u64, String> {
        let database = match self.database.take() {
            Some(database) => database,
            None => (self.opener)().map_err(|error| explain(&error))?,
        };
        let revision = revision(&database).map_err(|error| explained(&error))?;
        self.database = Some(database);
        Ok(revision)
    }
}

fn revision(database: &Database) -> Result<u64, redb::Error> {
    let numbers = database.begin_read()?.open_table(NUMBERS)?;
    Ok(numbers.get(REVISION)?.map_or(0, |number| number.value()))
}

fn read(database: &Database) -> Result<Kept, redb::Error> {
    // Written only where the file is new, so that a full disk can still be read.
    if matches!(revision(database), Err(redb::Error::TableDoesNotExist(_))) {
        let begin = database.begin_write()?;
        begin.open_table(OBJECTS)?;
        begin.open_table(NUMBERS)?;
        begin.commit()?;
    }
    let mut kept = Kept { revision: revision(database)?, objects: Vec::new() };
    for entry in database.begin_read()?.open_table(OBJECTS)?.iter()? {
        let (place, json) = entry?;
        if let Some((table, key)) = place.value().split_once('\0') {
            kept.objects.push((table.to_owned(), key.to_owned(), json.value().to_vec()));
        }
    }
    Ok(kept)
}

fn commit(database: &Database, staged: &[Staged], revision: u64) -> Result<(), redb::Error> {
    let begin = database.begin_write()?;
    {
        let mut objects = begin.open_table(OBJECTS)?;
        for one in staged {
            let place = format!("{}\0{}", one.table, one.key);
            match one.deleted {
                true => objects.remove(place.as_str())?,
                false => objects.insert(place.as_str(), one.stored.bytes().as_ref())?,
            };
        }
        begin.open_table(NUMBERS)?.insert(REVISION, revision)?;
    }
    begin.commit()?;
    Ok(())
}

/// Makes the folder and the file where they are not there, readable by their owner alone: they hold every Secret.
/// A folder that holds other files too, or is shared, keeps its mode; the file does not.
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
fn explain(error: &DatabaseError) -> String {
    match error {
        DatabaseError::DatabaseAlreadyOpen => {
            "another process uses it: choose a folder that no other process uses".to_owned()
        }
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() != ErrorKind::InvalidData => {
            of_system(error)
        }
        other => format!("{FILE} is damaged ({other}): {REPAIR}"),
    }
}

/// As [`explain`], for a database that is open.
fn explained(error: &redb::Error) -> String {
    match error {
        redb::Error::Io(error) if error.kind() != ErrorKind::InvalidData => of_system(error),
        redb::Error::PreviousIo => format!("{FILE}: an earlier write failed"),
        other => format!("{FILE} is damaged ({other}): {REPAIR}"),
    }
}

fn of_system(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::StorageFull | ErrorKind::QuotaExceeded => {
            format!("{FILE}: {error}: free space on its disk; no restart is needed")
        }
        _ => format!("{FILE}: {error}"),
    }
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
