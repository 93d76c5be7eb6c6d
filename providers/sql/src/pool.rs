//! A pool of administrator sessions, a few per server, because servers have other users too.

use super::access::Access;
use super::error::Error;
use super::mariadb::MariadbSession;
use super::postgres::PostgresSession;
use conductor_sql_plan::identity::Found;
use conductor_sql_plan::names::Names;
use conductor_sql_plan::observed::Observed;
use conductor_sql_plan::role::{DesiredRole, ObservedRole};
use conductor_sql_plan::sql::mariadb::mark_server;
use conductor_sql_plan::sql::{At, Batch, Dialect, Row, read_survey, role, survey};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Sessions on one server at a time.
pub(super) const SESSIONS_MAX: usize = 4;

/// Time limit of a survey; it comes first in every reconcile, so it detects a server that hangs.
const LOOK_WITHIN: Duration = Duration::from_secs(15);

/// How long a statement that tenants can block waits before their sessions are ended.
const CONTESTED_AFTER: Duration = Duration::from_millis(300);

/// The state that a server reports.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// The server's version.
    pub version: String,
    /// The number of our databases.
    pub databases: i64,
    /// The size of all databases.
    pub size_mebibytes: i64,
    /// Open connections.
    pub connections_used: i64,
    /// Most connections.
    pub connections_max: i64,
    /// Whether the administrator is a superuser.
    pub is_superuser: bool,
    /// The administrator's missing rights, each with its fix.
    pub missing: Vec<String>,
    /// Grants of the server that open databases to every login, each with its fix; none where the engine has no such grants.
    pub open: Option<Vec<String>>,
}

#[derive(Debug)]
enum Line {
    Postgresql(PostgresSession),
    Mariadb(Box<MariadbSession>),
}

impl Line {
    /// For the administrator.
    async fn open(access: &Access) -> Result<Line, Error> {
        match access.dialect {
            Dialect::Postgresql => Ok(Line::Postgresql(PostgresSession::open(access).await?)),
            Dialect::Mariadb | Dialect::Mysql => Line::log_in(access).await,
        }
    }

    /// For an application's login.
    async fn log_in(access: &Access) -> Result<Line, Error> {
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

    async fn send(&mut self, text: &str) -> Result<Vec<Row>, Error> {
        match self {
            Line::Postgresql(session) => session.send(text).await,
            Line::Mariadb(session) => session.send(text).await,
        }
    }

    async fn look(&mut self, text: &str) -> Result<Vec<Row>, Error> {
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

/// An idle session.
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
    /// Borrows a session on a server, an idle one if possible. Waits while too many are in use.
    ///
    /// # Errors
    /// The server cannot be reached, or refuses the administrator.
    pub async fn session(&self, access: &Access) -> Result<Session, Error> {
        let shelf = self.shelf(&access.place());
        let permit = Arc::clone(&shelf.permits).acquire_owned().await;
        let permit = permit.map_err(|_| Error::Unreachable("the process is ending".to_owned()))?;
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

/// A borrowed session, which returns to the pool when it is dropped.
#[derive(Debug)]
pub struct Session {
    line: Option<Line>,
    /// The server's identity, once queried.
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
    /// Queries the state of a database.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn survey(&mut self, names: &Names) -> Result<Observed, Error> {
        let text = survey(self.dialect(), names);
        let rows = self.prepared().await?.look(&text).await?;
        Ok(read_survey(names, &rows))
    }

    /// Queries the state of an extra login.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn survey_role(&mut self, desired: &DesiredRole) -> Result<ObservedRole, Error> {
        let rows = self.send(&role::survey(desired)).await?;
        Ok(role::read_survey(desired, &rows))
    }

    /// Sends batches in order.
    ///
    /// # Errors
    /// The first that failed, or whose result is unknown.
    pub async fn carry_out(&mut self, batches: &[Batch], names: &Names) -> Result<(), Error> {
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

    /// The server's dialect, as its greeting shows it.
    pub fn dialect(&self) -> Dialect {
        match &self.line {
            Some(Line::Mariadb(session)) => session.dialect(),
            Some(Line::Postgresql(_)) | None => self.access.dialect,
        }
    }

    /// Closes it instead of returning it: some servers read rights only at login.
    pub fn discard(&mut self) {
        self.line = None;
    }

    /// The identity of the server. Queried once per connection, without writing anything.
    ///
    /// # Errors
    /// The server does not answer.
    pub async fn identity(&mut self) -> Result<Found, Error> {
        if let Some(known) = &self.identity {
            return Ok(Found::Identity(known.clone()));
        }
        let found = match self.line.as_mut() {
            Some(Line::Postgresql(session)) => session.identity().await?,
            Some(Line::Mariadb(session)) => session.identity().await?,
            None => return Err(Error::Unreachable("the session is closed".to_owned())),
        };
        if let Found::Identity(identity) = &found {
            self.identity = Some(identity.clone());
        }
        Ok(found)
    }

    /// Writes an identity, unless the server has one or the engine has its own.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn mark_server(&mut self, marker: &str) -> Result<(), Error> {
        match self.dialect() {
            Dialect::Postgresql => Ok(()),
            Dialect::Mariadb | Dialect::Mysql => self.send(&mark_server(marker)).await.map(drop),
        }
    }

    /// Whether the server has anything of a database, queried without writing anything.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn shows(&mut self, names: &Names) -> Result<bool, Error> {
        if let Some(Line::Mariadb(session)) = self.line.as_mut()
            && !session.has_marks().await?
        {
            return Ok(false);
        }
        Ok(!self.survey(names).await?.has_nothing_of_ours())
    }

    /// Queries the server's own state.
    ///
    /// # Errors
    /// The server does not answer, or refuses.
    pub async fn health(&mut self) -> Result<Health, Error> {
        match self.line.as_mut() {
            Some(Line::Postgresql(session)) => session.health().await,
            Some(Line::Mariadb(session)) => session.health().await,
            None => Err(Error::Unreachable("the session is closed".to_owned())),
        }
    }

    /// Sends one batch for the server itself.
    pub(super) async fn send_batch(&mut self, batch: &Batch) -> Result<(), Error> {
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

    /// Sends a query.
    pub(super) async fn query(&mut self, text: &str) -> Result<Vec<Row>, Error> {
        self.prepared().await?.look(text).await
    }

    async fn send(&mut self, text: &str) -> Result<Vec<Row>, Error> {
        self.prepared().await?.send(text).await
    }

    async fn prepared(&mut self) -> Result<&mut Line, Error> {
        let closed = || Error::Unreachable("the session is closed".to_owned());
        let line = self.line.as_mut().ok_or_else(closed)?;
        if let Line::Mariadb(session) = line {
            session.prepare().await?;
        }
        Ok(line)
    }
}

async fn send_batch(line: &mut Line, access: &Access, batch: &Batch, names: &Names) -> Result<(), Error> {
    match batch.at {
        At::Server | At::Contested => drop(line.send(&batch.text).await?),
        At::EachRow => {
            for row in line.send(&batch.text).await? {
                drop(line.send(row[0].as_deref().unwrap_or_default()).await?);
            }
        }
        At::Inside => send_inside(access, names.database.as_str(), &batch.text).await?,
        At::Attempt => {
            if let Err(error) = send_inside(access, names.database.as_str(), &batch.text).await {
                tracing::debug!(database = names.id, %error, "retried with the next rotation");
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

async fn send_inside(access: &Access, database: &str, text: &str) -> Result<(), Error> {
    Line::open(&access.inside(database)).await?.send(text).await.map(drop)
}

/// Ends the sessions that block a statement, repeatedly, because they may reconnect.
async fn end_rivals(access: &Access, batches: &[Batch], names: &Names) {
    loop {
        tokio::time::sleep(CONTESTED_AFTER).await;
        let Ok(mut line) = Line::open(access).await else { continue };
        for batch in batches {
            // What cannot be ended now may be later.
            let _ = send_batch(&mut line, access, batch, names).await;
        }
    }
}

/// Logs in as an application would, and sends one message, to demonstrate or check that a login works.
///
/// # Errors
/// The login does not work, or the server refuses the message.
pub async fn run_as(access: &Access, text: &str) -> Result<Vec<Row>, Error> {
    Line::log_in(access).await?.send(text).await
}
