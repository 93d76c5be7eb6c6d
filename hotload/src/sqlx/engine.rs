//! The two engines of sqlx pools: how their logins are written, how a connection finds its session, and how sessions are
//! ended. Statements contain numbers only, never text.

use super::freshness::Session;
use crate::{Engine, Error, Login, SslMode};
use secrecy::ExposeSecret;
use sqlx::mysql::{MySqlConnectOptions, MySqlConnection, MySqlSslMode};
use sqlx::postgres::{PgConnectOptions, PgConnection, PgSslMode};
use sqlx::{AssertSqlSafe, Connection, Database, MySql, Postgres};

/// An engine of sqlx whose pools can follow a source. Not to be implemented elsewhere.
pub trait Followed: Database + Sealed {}

impl Followed for Postgres {}
impl Followed for MySql {}

/// The engine-specific part of a pool.
pub trait Sealed: Database {
    /// The settings of the driver for a login.
    ///
    /// # Errors
    /// The login is for another engine.
    fn connect_options(login: &Login) -> Result<<Self::Connection as Connection>::Options, Error>;

    /// The session of a connection.
    fn session(
        connection: &mut Self::Connection,
    ) -> impl Future<Output = Result<Session, sqlx::Error>> + Send + '_;

    /// Ends those sessions that still belong to this user; returns how many.
    fn end<'c>(
        connection: &'c mut Self::Connection,
        user: &'c str,
        sessions: &'c [u64],
    ) -> impl Future<Output = Result<usize, sqlx::Error>> + Send + 'c;
}

impl Sealed for Postgres {
    fn connect_options(login: &Login) -> Result<PgConnectOptions, Error> {
        let options: PgConnectOptions = parse(login, Engine::Postgresql)?;
        Ok(options.ssl_mode(match login.ssl_mode() {
            SslMode::Disable => PgSslMode::Disable,
            SslMode::Prefer => PgSslMode::Prefer,
            SslMode::Require => PgSslMode::Require,
            SslMode::VerifyCa => PgSslMode::VerifyCa,
            SslMode::VerifyFull => PgSslMode::VerifyFull,
        }))
    }

    async fn session(connection: &mut PgConnection) -> Result<Session, sqlx::Error> {
        let query = sqlx::query_as("SELECT session_user::text, pg_backend_pid()");
        let (user, number): (String, i32) = query.fetch_one(connection).await?;
        Ok(Session { user, number: u64::try_from(number).unwrap_or_default() })
    }

    async fn end(connection: &mut PgConnection, user: &str, sessions: &[u64]) -> Result<usize, sqlx::Error> {
        // A user may end its own sessions, but perhaps not the role that it acts as.
        sqlx::query("SET ROLE NONE").execute(&mut *connection).await?;
        let numbers: Vec<i32> = sessions.iter().filter_map(|number| i32::try_from(*number).ok()).collect();
        let query = sqlx::query_scalar(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity \
             WHERE pid = ANY($1) AND usename = $2 AND pid <> pg_backend_pid()",
        );
        let ended: Vec<bool> = query.bind(numbers).bind(user).fetch_all(connection).await?;
        Ok(ended.into_iter().filter(|ended| *ended).count())
    }
}

impl Sealed for MySql {
    fn connect_options(login: &Login) -> Result<MySqlConnectOptions, Error> {
        let options: MySqlConnectOptions = parse(login, Engine::Mysql)?;
        Ok(options.ssl_mode(match login.ssl_mode() {
            SslMode::Disable => MySqlSslMode::Disabled,
            SslMode::Prefer => MySqlSslMode::Preferred,
            SslMode::Require => MySqlSslMode::Required,
            SslMode::VerifyCa => MySqlSslMode::VerifyCa,
            SslMode::VerifyFull => MySqlSslMode::VerifyIdentity,
        }))
    }

    async fn session(connection: &mut MySqlConnection) -> Result<Session, sqlx::Error> {
        let query = sqlx::query_as("SELECT USER(), CAST(CONNECTION_ID() AS UNSIGNED)");
        let (user, number): (String, u64) = query.fetch_one(connection).await?;
        let user = user.rsplit_once('@').map_or(user.as_str(), |(user, _)| user).to_owned();
        Ok(Session { user, number })
    }

    async fn end(
        connection: &mut MySqlConnection,
        user: &str,
        sessions: &[u64],
    ) -> Result<usize, sqlx::Error> {
        let running = "SELECT CAST(ID AS UNSIGNED) FROM information_schema.PROCESSLIST \
                       WHERE USER = ? AND ID <> CONNECTION_ID()";
        let running: Vec<u64> = sqlx::query_scalar(running).bind(user).fetch_all(&mut *connection).await?;
        let mut ended = 0;
        for number in running.into_iter().filter(|number| sessions.contains(number)) {
            // A session that has ended meanwhile is not a failure.
            let killed = sqlx::raw_sql(AssertSqlSafe(format!("KILL CONNECTION {number}")));
            ended += usize::from(killed.execute(&mut *connection).await.is_ok());
        }
        Ok(ended)
    }
}

fn parse<O: std::str::FromStr<Err = sqlx::Error>>(login: &Login, engine: Engine) -> Result<O, Error> {
    if login.engine() != engine {
        let why = format!("login {login}: the pool is for {engine:?}");
        return Err(Error::Unsupported(why));
    }
    let parsed = login.address().expose_secret().parse();
    // The driver's message may quote the address.
    parsed
        .map_err(|_| Error::Unsupported(format!("login {login}: sqlx cannot parse it: check its parameters")))
}
