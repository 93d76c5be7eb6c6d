//! Sessions of the administrator on servers, kept open and lent out, a few a server: a server has other users too.

use super::access::Access;
use super::mariadb::MariadbSession;
use super::postgres::PostgresSession;
use super::trouble::Trouble;
use conductor_sql_plan::identity::Found;
use conductor_sql_plan::names::Names;
use conductor_sql_plan::role::{SeenRole, WantedRole};
use conductor_sql_plan::seen::Seen;
use conductor_sql_plan::sql::mariadb::mark_server;
use conductor_sql_plan::sql::{At, Batch, Dialect, Row, read_survey, role, survey};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Sessions on one server at a time.
pub(super) const SESSIONS_MAX: usize = 4;

/// How long a look at a few rows may take; it comes first in every pass, so a server that hangs is known by it.
const LOOK_WITHIN: Duration = Duration::from_secs(15);

/// How long a statement that tenants can keep waiting waits before they are ended.
const CONTESTED_AFTER: Duration = Duration::from_millis(300);

/// What a server says of itself.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The version that runs.
    pub version: String,
    /// Databases that are ours.
    pub databases: i64,
    /// What all databases take.
    pub size_mebibytes: i64,
    /// Connections now.
    pub connections_used: i64,
    /// Most connections.
    pub connections_max: i64,
    /// Whether the administrator may do everything.
    pub is_superuser: bool,
    /// What the administrator lacks, each with what gives it.
    pub missing: Vec<String>,
    /// Grants of the server that open databases to every login, each with what ends it; nothing is known of them where
    /// the engine has none.
    pub open: Option<Vec<String>>,
}

#[derive(Debug)]
enum Line {
    Postgresql(PostgresSession),
    Mariadb(Box<MariadbSession>),
}

impl Line {
    /// For the administrator.
    async fn open(access: &Access) -> Result<Line, Trouble> {
        match access.dialect {
            Dialect::Postgresql => Ok(Line::Postgresql(PostgresSession::open(access).await?)),
            Dialect::Mariadb | Dialect::Mysql => Line::log_in(access).await,
        }
    }

    /// For anybody.
    async fn log_in(access: &Access) -> Result<Line, Trouble> {
        Ok(match access.dialect {
            Dialect::Postgresql => Line::Postgresql(PostgresSession::log_in(access).await?),
            Dialect::Mariadb | Dialect::Mysql => {
                Line::Mariadb(Box::new(MariadbSession::log_in(access).await?))
            }
        })
    }

    fn is_open(&self) -> bool {
        match self {
            Line::Postgresql(session) => session.is_open(),
            Line::Mariadb(session) => session.is_open(),
        }
    }

    async fn send(&mut self, text: &str) -> Result<Vec<Row>, Trouble> {
        match self {
            Line::Postgresql(session) => session.send(text).await,
            Line::Mariadb(session) => session.send(text).await,
        }
    }

    async fn look(&mut self, text: &str) -> Result<Vec<Row>, Trouble> {
        match self {
            Line::Postgresql(session) => session.send_within(text, LOOK_WITHIN).await,
            Line::Mariadb(session) => session.send_within(text, LOOK_WITHIN).await,
        }
    }
}

#[derive(Debug)]
struct Shelf {
    free: Mutex<Vec<Idle>>,
    permits: Arc<Semaphore>,
}

/// A session that nobody uses now.
#[derive(Debug)]
struct Idle {
    opened_by: Access,
    line: Line,
    identity: Option<String>,
}

impl Shelf {
    fn free(&self) -> MutexGuard<'_, Vec<Idle>> {
        self.free.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sessions by server.
#[derive(Clone, Debug, Default)]
pub struct Pool(Arc<Mutex<BTreeMap<String, Arc<Shelf>>>>);

impl Pool {
    /// A session on a server, one that is open where there is one. Waits while too many are lent out.
    ///
    /// # Errors
    /// The server cannot be reached, or does not know the administrator.
    pub async fn session(&self, access: &Access) -> Result<Session, Trouble> {
        let shelf = self.shelf(&access.place());
        let permit = Arc::clone(&shelf.permits).acquire_owned().await;
        let permit = permit.map_err(|_| Trouble::Unreachable("the process is ending".to_owned()))?;
        let kept = loop {
            match shelf.free().pop() {
                Some(idle) if idle.line.is_open() && idle.opened_by.is_same(access) => break Some(idle),
                Some(_) => {}
                None => break None,
            }
        };
        let (line, identity) = match kept {
            Some(idle) => (idle.line, idle.identity),
            None => (Line::open(access).await?, None),
        };
        Ok(Session { line: Some(line), identity, access: access.clone(), shelf, _permit: permit })
    }

    fn shelf(&self, place: &str) -> Arc<Shelf> {
        let mut shelves = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let new = || Shelf { free: Mutex::default(), permits: Arc::new(Semaphore::new(SESSIONS_MAX)) };
        Arc::clone(shelves.entry(place.to_owned()).or_insert_with(|| Arc::new(new())))
    }
}

/// A session that is lent out, and goes back when it is dropped.
#[derive(Debug)]
pub struct Session {
    line: Option<Line>,
    /// Which server it is on, once it was asked.
    identity: Option<String>,
    access: Access,
    shelf: Arc<Shelf>,
    _permit: OwnedSemaphorePermit,
}

impl Drop for Session {
    fn drop(&mut self) {
        if let Some(line) = self.line.take().filter(Line::is_open) {
            let identity = self.identity.take();
            self.shelf.free().push(Idle { opened_by: self.access.clone(), line, identity });
        }
    }
}

impl Session {
    /// What the server shows of a database.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn survey(&mut self, names: &Names) -> Result<Seen, Trouble> {
        let text = survey(self.dialect(), names);
        let rows = self.prepared().await?.look(&text).await?;
        Ok(read_survey(names, &rows))
    }

    /// What the server shows of an extra login.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn survey_role(&mut self, wanted: &WantedRole) -> Result<SeenRole, Trouble> {
        let rows = self.send(&role::survey(wanted)).await?;
        Ok(role::read_survey(wanted, &rows))
    }

    /// Sends batches, one after the other.
    ///
    /// # Errors
    /// The first that was not carried out, or of which nobody knows.
    pub async fn carry_out(&mut self, batches: &[Batch], names: &Names) -> Result<(), Trouble> {
        let access = self.access.clone();
        let line = self.prepared().await?;
        for (at, batch) in batches.iter().enumerate() {
            match batch.at {
                At::Contested => {
                    let rivals = end_rivals(&access, &batches[at + 1..], names);
                    tokio::select! {
                        done = line.send(&batch.text) => drop(done?),
                        () = rivals => {}
                    }
                }
                _ => send_batch(line, &access, batch, names).await?,
            }
        }
        Ok(())
    }

    /// What the server speaks, now that it has been spoken to.
    pub fn dialect(&self) -> Dialect {
        match &self.line {
            Some(Line::Mariadb(session)) => session.dialect(),
            Some(Line::Postgresql(_)) | None => self.access.dialect,
        }
    }

    /// Closes it instead of giving it back: a server may look at rights only when somebody logs in.
    pub fn discard(&mut self) {
        self.line = None;
    }

    /// Which server answers. Asked once for each connection, and nothing is written for it.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn identity(&mut self) -> Result<Found, Trouble> {
        if let Some(known) = &self.identity {
            return Ok(Found::Identity(known.clone()));
        }
        let found = match self.line.as_mut() {
            Some(Line::Postgresql(session)) => session.identity().await?,
            Some(Line::Mariadb(session)) => session.identity().await?,
            None => return Err(Trouble::Unreachable("the session is closed".to_owned())),
        };
        if let Found::Identity(identity) = &found {
            self.identity = Some(identity.clone());
        }
        Ok(found)
    }

    /// Gives the server an identity, where it has none and the engine has none of its own.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn mark_server(&mut self, marker: &str) -> Result<(), Trouble> {
        match self.dialect() {
            Dialect::Postgresql => Ok(()),
            Dialect::Mariadb | Dialect::Mysql => self.send(&mark_server(marker)).await.map(drop),
        }
    }

    /// Whether the server shows anything of a database; nothing is written for it.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn shows(&mut self, names: &Names) -> Result<bool, Trouble> {
        if let Some(Line::Mariadb(session)) = self.line.as_mut()
            && !session.has_marks().await?
        {
            return Ok(false);
        }
        Ok(!self.survey(names).await?.has_nothing_of_ours())
    }

    /// What the server says of itself.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn health(&mut self) -> Result<Health, Trouble> {
        match self.line.as_mut() {
            Some(Line::Postgresql(session)) => session.health().await,
            Some(Line::Mariadb(session)) => session.health().await,
            None => Err(Trouble::Unreachable("the session is closed".to_owned())),
        }
    }

    /// Sends one batch that goes to the server itself.
    pub(super) async fn send_batch(&mut self, batch: &Batch) -> Result<(), Trouble> {
        let line = self.prepared().await?;
        let texts = match batch.at {
            At::EachRow => {
                let rows = line.send(&batch.text).await?;
                rows.into_iter().filter_map(|[first, ..]| first).collect()
            }
            _ => vec![batch.text.clone()],
        };
        for text in texts {
            drop(line.send(&text).await?);
        }
        Ok(())
    }

    /// Asks a question.
    pub(super) async fn ask(&mut self, question: &str) -> Result<Vec<Row>, Trouble> {
        self.prepared().await?.look(question).await
    }

    async fn send(&mut self, text: &str) -> Result<Vec<Row>, Trouble> {
        self.prepared().await?.send(text).await
    }

    async fn prepared(&mut self) -> Result<&mut Line, Trouble> {
        let closed = || Trouble::Unreachable("the session is closed".to_owned());
        let line = self.line.as_mut().ok_or_else(closed)?;
        if let Line::Mariadb(session) = line {
            session.prepare().await?;
        }
        Ok(line)
    }
}

async fn send_batch(line: &mut Line, access: &Access, batch: &Batch, names: &Names) -> Result<(), Trouble> {
    match batch.at {
        At::Server | At::Contested => drop(line.send(&batch.text).await?),
        At::EachRow => {
            for row in line.send(&batch.text).await? {
                drop(line.send(row[0].as_deref().unwrap_or_default()).await?);
            }
        }
        At::Inside => send_inside(access, names.database.as_str(), &batch.text).await?,
        At::Attempt => {
            if let Err(trouble) = send_inside(access, names.database.as_str(), &batch.text).await {
                tracing::debug!(database = names.id, %trouble, "it is tried again with the next change");
            }
        }
        At::Elsewhere => {
            for [database, text, ..] in line.send(&batch.text).await? {
                let (database, text) = (database.unwrap_or_default(), text.unwrap_or_default());
                send_inside(access, &database, &text).await?;
            }
        }
    }
    Ok(())
}

async fn send_inside(access: &Access, database: &str, text: &str) -> Result<(), Trouble> {
    Line::open(&access.inside(database)).await?.send(text).await.map(drop)
}

/// Ends those who keep a statement waiting, again and again: they may come back.
async fn end_rivals(access: &Access, batches: &[Batch], names: &Names) {
    loop {
        tokio::time::sleep(CONTESTED_AFTER).await;
        let Ok(mut line) = Line::open(access).await else { continue };
        for batch in batches {
            // What cannot be ended now may be with the next look.
            let _ = send_batch(&mut line, access, batch, names).await;
        }
    }
}

/// Logs in as an application would, and sends one message. For those who show or check that a login works.
///
/// # Errors
/// The login does not work, or the server refuses the message.
pub async fn run_as(access: &Access, text: &str) -> Result<Vec<Row>, Trouble> {
    Line::log_in(access).await?.send(text).await
}
