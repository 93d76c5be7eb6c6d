//! A session on a PostgreSQL server. It sends one message at a time, each under a time limit; a message without an answer
//! in time may have been carried out, and the state is queried again.

use super::access::Access;
use super::clear_text::{self, Plain, Watched};
use super::error::Error;
use super::pool::Health;
use super::tls;
use conductor::api::database::server::SslMode;
use conductor_sql_plan::identity::Found;
use conductor_sql_plan::sql::{Row, postgresql::OPTIONS};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::task::AbortHandle;
use tokio_postgres::config::{SslMode as DriverMode, SslNegotiation};
use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, Config, SimpleQueryMessage, SimpleQueryRow};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Time limit for opening a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Time limit for one message.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);

/// Most characters of the detail of a server's error.
const DETAIL_MAX: usize = 400;
/// The fix where a database, or a user, has no connection left.
const CROWDED: &str = "; end sessions of the application, or raise its limit: resources.requests.connections of the claim, \
                       or databases.connectionLimit of the server";

/// An open session. Dropped, it closes.
#[derive(Debug)]
pub(super) struct PostgresSession {
    client: Client,
    connection: AbortHandle,
    place: String,
    is_silent: AtomicBool,
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        self.connection.abort();
    }
}

impl PostgresSession {
    /// Opens one for the administrator, with our start-up options instead of those of the database's owner.
    pub async fn open(access: &Access) -> Result<PostgresSession, Error> {
        let place = access.place();
        match PostgresSession::connect(access, Some(OPTIONS)).await {
            // A pooler that takes no options. Messages inside a database repeat them.
            Err(Refusal::Said(error)) if takes_no_options(&error) => PostgresSession::log_in(access).await,
            opened => opened.map_err(|refusal| refusal.into_error(&place)),
        }
    }

    /// Opens one as an application would.
    pub async fn log_in(access: &Access) -> Result<PostgresSession, Error> {
        let opened = PostgresSession::connect(access, None).await;
        opened.map_err(|refusal| refusal.into_error(&access.place()))
    }

    async fn connect(access: &Access, options: Option<&str>) -> Result<PostgresSession, Refusal> {
        let mut config = Config::new();
        if let Some(options) = options {
            config.options(options);
        }
        config
            .host(&access.host)
            .port(access.port)
            .user(&access.username)
            .password(access.password.expose())
            .dbname(&access.database)
            .application_name("conductor")
            .connect_timeout(CONNECT_WITHIN)
            .keepalives_idle(Duration::from_secs(30));
        let place = access.place();
        let tls = tls::client_config(access.ssl_mode).map_err(Refusal::Other)?;
        config.ssl_mode(DriverMode::Require);
        let opened = async {
            match (tls, access.ssl_mode) {
                (None, _) => {
                    config.ssl_negotiation(SslNegotiation::Direct);
                    let (client, connection) = config.connect(Plain).await?;
                    Ok((client, tokio::spawn(async move { drop(connection.await) }).abort_handle()))
                }
                (Some(tls), SslMode::VerifyFull) => {
                    let (client, connection) = config.connect(MakeRustlsConnect::new(tls)).await?;
                    Ok((client, tokio::spawn(async move { drop(connection.await) }).abort_handle()))
                }
                (Some(tls), SslMode::Require | SslMode::Disable) => {
                    let (client, connection) = config.connect(Watched(MakeRustlsConnect::new(tls))).await?;
                    Ok((client, tokio::spawn(async move { drop(connection.await) }).abort_handle()))
                }
            }
        };
        let opened = tokio::time::timeout(CONNECT_WITHIN, opened).await;
        let opened = opened.map_err(|_| Refusal::Other(Error::silent(&place, CONNECT_WITHIN)))?;
        let (client, connection) = opened.map_err(Refusal::Said)?;
        Ok(PostgresSession { client, connection, place, is_silent: AtomicBool::new(false) })
    }

    pub fn is_open(&self) -> bool {
        !self.client.is_closed() && !self.is_silent.load(Ordering::Relaxed)
    }

    /// Sends statements; returns their rows.
    pub async fn send(&self, text: &str) -> Result<Vec<Row>, Error> {
        self.send_within(text, ANSWER_WITHIN).await
    }

    /// The same under the caller's time limit. A session that does not answer in time is unusable.
    pub async fn send_within(&self, text: &str, within: Duration) -> Result<Vec<Row>, Error> {
        let Ok(answer) = tokio::time::timeout(within, self.client.simple_query(text)).await else {
            self.is_silent.store(true, Ordering::Relaxed);
            return Err(Error::silent(&self.place, within));
        };
        let messages = answer.map_err(|error| server_error(&self.place, &error))?;
        let rows = messages.into_iter().filter_map(|message| match message {
            SimpleQueryMessage::Row(row) => Some(read(&row)),
            _ => None,
        });
        Ok(rows.collect())
    }

    /// The identifier of its cluster, which standbys and physical restores share.
    pub async fn identity(&self) -> Result<Found, Error> {
        let query = "SELECT system_identifier::text FROM pg_catalog.pg_control_system()";
        match self.send(query).await {
            Ok(rows) => {
                let text = rows.into_iter().next().and_then(|[first, ..]| first);
                Ok(text.map_or(Found::Unreadable, |text| Found::Identity(format!("postgresql-{text}"))))
            }
            Err(Error::Refused(_)) => Ok(Found::Unreadable),
            Err(error) => Err(error),
        }
    }

    /// Queries the server's state, and which rights the administrator lacks.
    pub async fn health(&self) -> Result<Health, Error> {
        // Do not query the size of databases that it may not enter: the whole query would fail, and report no missing right.
        let query = "SELECT pg_catalog.current_setting('server_version'), \
            (SELECT pg_catalog.count(*) FROM pg_catalog.pg_database d WHERE pg_catalog.shobj_description(d.oid, 'pg_database') LIKE 'conductor:%')::text, \
            (SELECT coalesce(pg_catalog.sum(pg_catalog.pg_database_size(oid)), 0) / 1048576 FROM pg_catalog.pg_database WHERE datallowconn \
                AND (pg_catalog.has_database_privilege(oid, 'CONNECT') OR pg_catalog.pg_has_role('pg_read_all_stats', 'USAGE')))::bigint::text, \
            (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity)::text, pg_catalog.current_setting('max_connections'), \
            (SELECT pg_catalog.concat_ws(',', CASE WHEN rolsuper THEN 'SUPERUSER' END, \
                CASE WHEN rolcreaterole OR rolsuper THEN 'CREATEROLE' END, \
                CASE WHEN rolcreatedb OR rolsuper THEN 'CREATEDB' END, \
                CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN 'PRIMARY' END, \
                CASE WHEN pg_catalog.current_setting('transaction_read_only') = 'off' OR pg_catalog.pg_is_in_recovery() THEN 'WRITE' END, \
                current_user) \
             FROM pg_catalog.pg_roles WHERE rolname = current_user)";
        let rows = self.send(query).await?;
        let row = rows.into_iter().next().unwrap_or_default();
        let number = |at: usize| row[at].as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
        let rights: Vec<&str> = row[5].as_deref().unwrap_or_default().split(',').collect();
        let user = rights.last().copied().unwrap_or_default();
        let mut missing = Vec::new();
        for right in ["CREATEROLE", "CREATEDB"] {
            if !rights.contains(&right) {
                missing.push(format!("the administrator lacks {right}: run ALTER ROLE \"{user}\" {right}"));
            }
        }
        if !rights.contains(&"PRIMARY") {
            missing.push("it is a replica and cannot be written to: name the primary".to_owned());
        }
        if !rights.contains(&"WRITE") {
            let fix = "run ALTER SYSTEM SET default_transaction_read_only = off and SELECT pg_reload_conf()";
            missing.push(format!("it is read-only: {fix}, or name another server"));
        }
        Ok(Health {
            version: row[0].clone().unwrap_or_default().split(' ').next().unwrap_or_default().to_owned(),
            databases: number(1),
            size_mebibytes: number(2),
            connections_used: number(3),
            connections_max: number(4),
            is_superuser: rights.contains(&"SUPERUSER"),
            missing,
            open: None,
        })
    }
}

/// Why a session was not opened.
enum Refusal {
    /// The server's error.
    Said(tokio_postgres::Error),
    Other(Error),
}

impl Refusal {
    fn into_error(self, place: &str) -> Error {
        match self {
            Refusal::Said(error) => server_error(place, &error),
            Refusal::Other(error) => error,
        }
    }
}

/// PgBouncer reports a protocol violation, others an unsupported feature.
fn takes_no_options(error: &tokio_postgres::Error) -> bool {
    [Some(&SqlState::PROTOCOL_VIOLATION), Some(&SqlState::FEATURE_NOT_SUPPORTED)].contains(&error.code())
}

fn read(row: &SimpleQueryRow) -> Row {
    let mut columns = Row::default();
    for (at, column) in columns.iter_mut().enumerate().take(row.len()) {
        *column = row.get(at).map(str::to_owned);
    }
    columns
}

/// The server's error, with a fix if known. It never contains the statement.
fn server_error(place: &str, error: &tokio_postgres::Error) -> Error {
    if clear_text::is_cause_of(error) {
        return Error::Invalid(format!("server {place} {}", clear_text::FIX));
    }
    let Some(said) = error.as_db_error() else {
        let why = match std::error::Error::source(error) {
            Some(cause) => format!("{error}: {cause}"),
            None => error.to_string(),
        };
        return Error::Unreachable(format!("server {place} cannot be reached: {why}"));
    };
    let (code, message) = (said.code(), said.message());
    let with_hint = |what: &str| format!("server {place}: {message}{what}");
    match code {
        c if *c == SqlState::INVALID_PASSWORD || *c == SqlState::INVALID_AUTHORIZATION_SPECIFICATION => {
            Error::Credentials(with_hint(""))
        }
        // The server checks both after the password: the login is known.
        c if *c == SqlState::TOO_MANY_CONNECTIONS
            && matches!(said.routine(), Some("CheckMyDatabase" | "InitializeSessionUserId")) =>
        {
            Error::Crowded(with_hint(CROWDED))
        }
        c if *c == SqlState::TOO_MANY_CONNECTIONS => {
            Error::Unreachable(with_hint("; raise max_connections, or end sessions"))
        }
        c if *c == SqlState::CANNOT_CONNECT_NOW
            || *c == SqlState::ADMIN_SHUTDOWN
            || *c == SqlState::CRASH_SHUTDOWN =>
        {
            Error::Unreachable(with_hint(""))
        }
        c if *c == SqlState::DISK_FULL => Error::Refused(with_hint("; its disk is full")),
        // The dependent objects, and their database.
        c if *c == SqlState::DEPENDENT_OBJECTS_STILL_EXIST => {
            let detail = said.detail().unwrap_or_default().replace('\n', ", ");
            Error::Refused(with_hint(&format!(": {}", detail.chars().take(DETAIL_MAX).collect::<String>())))
        }
        _ => Error::Refused(with_hint("")),
    }
}
