//! A session on a MariaDB or MySQL server, with the guarantees of the one for PostgreSQL. The server's greeting shows which
//! of the two it is.

use super::access::Access;
use super::error::Error;
use super::pool::Health;
use conductor::api::database::server::SslMode;
use conductor_sql_plan::identity::Found;
use conductor_sql_plan::sql::mariadb::{FIND_MARKS, FIND_SERVER_MARK, PREPARE, rights};
use conductor_sql_plan::sql::{Dialect, OPEN_GRANTS, Row, read_open_grants};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error as MysqlError, OptsBuilder, SslOpts, Value};
use std::time::Duration;

/// Time limit for opening a connection.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// Time limit for one message.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// "There is no such thread": the session to end has already ended.
const NO_SUCH_THREAD: u16 = 1094;
/// The administrator's rights beside those of applications, in the server's spelling. Without the last two, it would see and
/// end no sessions but its own, without an error.
const RIGHTS: [&str; 3] = ["CREATE USER", "PROCESS", "CONNECTION ADMIN"];
/// Earlier MySQL has neither roles nor the hashes in use.
const MYSQL_FIRST: u16 = 8;
/// From this version on it is MariaDB: MySQL's versions are lower.
const MARIADB_FIRST: u16 = 10;

/// The fix where a user has no connection left.
const CROWDED: &str = "; end its sessions, or raise its limit: resources.requests.connections of the claim, \
                       databases.connectionLimit or max_user_connections of the server";

/// An open session. Dropped, it closes.
#[derive(Debug)]
pub(super) struct MariadbSession {
    conn: Conn,
    place: String,
    dialect: Dialect,
    is_open: bool,
    /// Whether there is a place for marks.
    is_prepared: bool,
}

impl MariadbSession {
    /// Creates the table for marks when it is needed and not before: a health check must work on a read-only server, and
    /// report a missing right.
    pub async fn prepare(&mut self) -> Result<(), Error> {
        if !self.is_prepared {
            for statement in PREPARE {
                self.send(statement).await?;
            }
            self.is_prepared = true;
        }
        Ok(())
    }

    /// Whether there is a place for marks.
    pub async fn has_marks(&mut self) -> Result<bool, Error> {
        Ok(!self.send(FIND_MARKS).await?.is_empty())
    }

    /// The marker written at first contact, which replication and dumps carry along.
    pub async fn identity(&mut self) -> Result<Found, Error> {
        if !self.has_marks().await? {
            return Ok(Found::Unmarked);
        }
        let found = self.send(FIND_SERVER_MARK).await?.into_iter().next().and_then(|[first, ..]| first);
        Ok(found.map_or(Found::Unmarked, Found::Identity))
    }

    /// Opens a session.
    pub async fn log_in(access: &Access) -> Result<MariadbSession, Error> {
        let place = access.place();
        let tls = match access.ssl_mode {
            SslMode::Disable => None,
            SslMode::Require => Some(SslOpts::default().with_danger_accept_invalid_certs(true)),
            SslMode::VerifyFull => Some(SslOpts::default()),
        };
        let options = OptsBuilder::default()
            .ip_or_hostname(access.host.clone())
            .tcp_port(access.port)
            .user(Some(access.username.clone()))
            .pass(Some(access.password.expose().to_owned()))
            .db_name(Some(access.database.clone()))
            .prefer_socket(false)
            // Never send a password in clear text.
            .enable_cleartext_plugin(false)
            .ssl_opts(tls);
        let opened = tokio::time::timeout(CONNECT_WITHIN, Conn::new(options)).await;
        let conn = opened.map_err(|_| Error::silent(&place, CONNECT_WITHIN))?;
        let conn = conn.map_err(|error| server_error(&place, &error))?;
        let dialect = match conn.server_version().0 {
            MARIADB_FIRST.. => Dialect::Mariadb,
            _ => Dialect::Mysql,
        };
        Ok(MariadbSession { conn, place, dialect, is_open: true, is_prepared: false })
    }

    /// MariaDB or MySQL.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Sends a statement; returns its rows.
    pub async fn send(&mut self, text: &str) -> Result<Vec<Row>, Error> {
        self.send_within(text, ANSWER_WITHIN).await
    }

    /// The same under the caller's time limit.
    pub async fn send_within(&mut self, text: &str, within: Duration) -> Result<Vec<Row>, Error> {
        let answer = tokio::time::timeout(within, self.conn.query::<mysql_async::Row, _>(text)).await;
        let rows = match answer {
            Ok(Ok(rows)) => rows,
            Ok(Err(MysqlError::Server(error))) if error.code == NO_SUCH_THREAD => Vec::new(),
            Ok(Err(error)) => {
                self.is_open = matches!(error, MysqlError::Server(_));
                return Err(server_error(&self.place, &error));
            }
            Err(_) => {
                self.is_open = false;
                return Err(Error::silent(&self.place, within));
            }
        };
        Ok(rows.into_iter().map(read).collect())
    }

    /// Queries the server's state, and which rights the administrator lacks.
    pub async fn health(&mut self) -> Result<Health, Error> {
        let query = "SELECT VERSION(), CAST(@@read_only AS CHAR), CURRENT_USER()";
        let row = self.send(query).await?.into_iter().next().unwrap_or_default();
        let grants = self.send("SHOW GRANTS FOR CURRENT_USER").await?;
        let grants: Vec<String> =
            grants.into_iter().filter_map(|row| row.into_iter().next().flatten()).collect();
        let version = row[0].clone().unwrap_or_default();
        let mut missing = lacks(&grants, row[2].as_deref().unwrap_or_default(), self.dialect);
        if self.dialect == Dialect::Mysql {
            missing.extend(self.misfits(&version).await?);
        }
        if row[1].as_deref().is_some_and(|read_only| !["0", "OFF"].contains(&read_only)) {
            missing.push("it is read-only: name the primary, or run SET GLOBAL read_only = 0".to_owned());
        }
        let version = version.split('-').next().unwrap_or_default().to_owned();
        if !missing.is_empty() {
            return Ok(Health { version, missing, ..Health::default() });
        }
        self.prepare().await?;
        let open = read_open_grants(&self.send(OPEN_GRANTS).await?);
        let open = open.iter().map(|grant| format!("`{}`: run {}", grant.pattern, grant.remedy())).collect();
        let query = "SELECT (SELECT CAST(COUNT(*) AS CHAR) FROM `conductor`.`marks` WHERE kind = 'database'), \
            (SELECT CAST(CAST(COALESCE(SUM(data_length + index_length), 0) / 1048576 AS SIGNED) AS CHAR) \
             FROM information_schema.tables), \
            (SELECT CAST(COUNT(*) AS CHAR) FROM information_schema.processlist), CAST(@@max_connections AS CHAR)";
        let row = self.send(query).await?.into_iter().next().unwrap_or_default();
        let number = |at: usize| row[at].as_deref().and_then(|text| text.parse().ok()).unwrap_or(0);
        Ok(Health {
            version,
            databases: number(0),
            size_mebibytes: number(1),
            connections_used: number(2),
            connections_max: number(3),
            is_superuser: true,
            missing,
            open: Some(open),
        })
    }

    /// What prevents databases on a MySQL server.
    async fn misfits(&mut self, version: &str) -> Result<Vec<String>, Error> {
        let mut misfits = Vec::new();
        if self.conn.server_version().0 < MYSQL_FIRST {
            misfits
                .push(format!("it is MySQL {version}, and databases require MySQL 8.0 or later: upgrade it"));
        }
        let row = self.send("SHOW VARIABLES LIKE 'partial_revokes'").await?.into_iter().next();
        if row.is_some_and(|row| row[1].as_deref() == Some("ON")) {
            // It changes the meaning of database names in grants.
            misfits.push("partial_revokes is on: run SET PERSIST partial_revokes = OFF".to_owned());
        }
        Ok(misfits)
    }
}

/// The missing global rights, and the grant for each. `account` is `name@host`.
fn lacks(grants: &[String], account: &str, dialect: Dialect) -> Vec<String> {
    let (name, host) = account.rsplit_once('@').unwrap_or((account, "%"));
    let account = format!("{}@{}", Dialect::Mariadb.text(name), Dialect::Mariadb.text(host));
    let global: Vec<&String> = grants.iter().filter(|grant| grant.contains(" ON *.* ")).collect();
    let is_all = global.iter().any(|grant| grant.starts_with("GRANT ALL PRIVILEGES"));
    let has = |right: &str| {
        is_all
            || global.iter().any(|grant| {
                let rights = grant.trim_start_matches("GRANT ").split(" ON ").next().unwrap_or_default();
                rights.split(',').any(|one| one.trim() == right)
            })
    };
    let spelled = |right: &'static str| match (right, dialect) {
        ("CONNECTION ADMIN", Dialect::Mysql) => "CONNECTION_ADMIN",
        (right, _) => right,
    };
    let given = |right: &str| has(right) || (right.starts_with("CONNECTION") && has("SUPER"));
    let is_missing = |right: &&str| !given(right);
    let all = rights(dialect).chain(RIGHTS);
    let missing = all.map(spelled).filter(is_missing).map(|right| {
        format!("the administrator lacks {right}: run GRANT {right} ON *.* TO {account} WITH GRANT OPTION")
    });
    let may_give = global.iter().any(|grant| grant.contains("WITH GRANT OPTION"));
    let giving = (!may_give).then(|| {
        format!(
            "the administrator may not grant rights: run GRANT USAGE ON *.* TO {account} WITH GRANT OPTION"
        )
    });
    missing.chain(giving).collect()
}

fn read(mut row: mysql_async::Row) -> Row {
    let mut columns = Row::default();
    for (at, column) in columns.iter_mut().enumerate().take(row.len()) {
        *column = match row.take::<Value, usize>(at) {
            Some(Value::Bytes(bytes)) => Some(String::from_utf8_lossy(&bytes).into_owned()),
            Some(Value::Int(number)) => Some(number.to_string()),
            Some(Value::UInt(number)) => Some(number.to_string()),
            _ => None,
        };
    }
    columns
}

fn server_error(place: &str, error: &MysqlError) -> Error {
    if matches!(error, MysqlError::Driver(DriverError::CleartextPluginDisabled)) {
        let fix =
            "requests the password in clear text and does not get it: give the administrator another plugin";
        return Error::Invalid(format!("server {place} {fix}, for example mysql_native_password"));
    }
    let MysqlError::Server(said) = error else {
        return Error::Unreachable(format!("server {place} cannot be reached: {error}"));
    };
    let with_hint = |what: &str| format!("server {place}: {}{what}", said.message);
    match said.code {
        1045 | 1698 => Error::Credentials(with_hint("")),
        1040 => Error::Unreachable(with_hint("; raise max_connections, or end sessions")),
        // The server checks both after the password.
        1203 => Error::Crowded(with_hint(CROWDED)),
        1226 if said.message.contains("max_user_connections") => Error::Crowded(with_hint(CROWDED)),
        1053 | 1927 => Error::Unreachable(with_hint("")),
        1021 => Error::Refused(with_hint("; its disk is full")),
        _ => Error::Refused(with_hint("")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_right_is_named_with_the_grant_that_gives_it() {
        let all = "GRANT ALL PRIVILEGES ON *.* TO `root`@`localhost` WITH GRANT OPTION".to_owned();
        assert_eq!(lacks(&[all], "root@localhost", Dialect::Mariadb), Vec::<String>::new());
        let of_applications = rights(Dialect::Mysql).collect::<Vec<_>>().join(", ");
        let some = format!("GRANT {of_applications}, DELETE HISTORY, PROCESS ON *.* TO `a`@`%`");
        let grants = [some.clone(), "GRANT ALL PRIVILEGES ON `x`.* TO `a`@`%`".to_owned()];
        let missing = lacks(&grants, "a@%", Dialect::Mariadb);
        assert_eq!(missing.len(), 3);
        assert!(missing[0].contains("GRANT CREATE USER ON *.* TO 'a'@'%'"), "{missing:?}");
        assert!(missing[1].contains("GRANT CONNECTION ADMIN ON"), "{missing:?}");
        assert!(missing[2].contains("WITH GRANT OPTION"), "{missing:?}");
        let less = "GRANT SELECT, CREATE USER, PROCESS, CONNECTION ADMIN ON *.* TO `a`@`%` WITH GRANT OPTION";
        let missing = lacks(&[less.to_owned()], "a@%", Dialect::Mariadb);
        for right in ["LOCK TABLES", "CREATE TEMPORARY TABLES", "TRIGGER", "DELETE HISTORY"] {
            assert!(
                missing.iter().any(|with_hint| with_hint.contains(&format!("GRANT {right} ON"))),
                "{missing:?}"
            );
        }
        assert_eq!(missing.len(), rights(Dialect::Mariadb).count() - 1, "everything but SELECT: {missing:?}");
        // MySQL lists its dynamic privileges apart, and without spaces.
        let more = "GRANT CONNECTION_ADMIN,ROLE_ADMIN ON *.* TO `a`@`%` WITH GRANT OPTION".to_owned();
        let missing = lacks(&[some, more], "a@%", Dialect::Mysql);
        assert_eq!(missing.len(), 1);
        assert!(missing[0].contains("CREATE USER"), "{missing:?}");
    }
}
