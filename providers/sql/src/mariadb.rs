//! A session on a MariaDB or MySQL server, with the manners of the one for PostgreSQL. Which of the two it is, the server
//! says as it greets.

use super::access::Access;
use super::pool::Health;
use super::trouble::Trouble;
use conductor::api::database::server::SslMode;
use conductor_sql_plan::identity::Found;
use conductor_sql_plan::sql::mariadb::{FIND_MARKS, FIND_SERVER_MARK, PREPARE, rights};
use conductor_sql_plan::sql::{Dialect, OPEN_GRANTS, Row, read_open_grants};
use mysql_async::prelude::Queryable;
use mysql_async::{Conn, DriverError, Error, OptsBuilder, SslOpts, Value};
use std::time::Duration;

/// How long opening a connection may take.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);
/// How long one message may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(60);
/// "There is no such thread": nobody was logged in who could be ended.
const NO_SUCH_THREAD: u16 = 1094;
/// What an administrator needs beside what applications get of it, and how the server spells it. Without the last two, it
/// would see no sessions but its own and end none, and be told of neither.
const RIGHTS: [&str; 3] = ["CREATE USER", "PROCESS", "CONNECTION ADMIN"];
/// MySQL before it has neither roles nor the hashes that are used.
const MYSQL_FIRST: u16 = 8;
/// From here on it is MariaDB: MySQL counts its versions otherwise.
const MARIADB_FIRST: u16 = 10;

/// What to do where a user has no connection left.
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
    /// Sees that there is a place for marks. Not before it is needed: who lacks a right is to be told which one, and
    /// a look at a server shall work on one that cannot be written to.
    pub async fn prepare(&mut self) -> Result<(), Trouble> {
        if !self.is_prepared {
            for statement in PREPARE {
                self.send(statement).await?;
            }
            self.is_prepared = true;
        }
        Ok(())
    }

    /// Whether there is a place for marks.
    pub async fn has_marks(&mut self) -> Result<bool, Trouble> {
        Ok(!self.send(FIND_MARKS).await?.is_empty())
    }

    /// The marker that was written at first contact; replication and dumps carry it along.
    pub async fn identity(&mut self) -> Result<Found, Trouble> {
        if !self.has_marks().await? {
            return Ok(Found::Unmarked);
        }
        let found = self.send(FIND_SERVER_MARK).await?.into_iter().next().and_then(|[first, ..]| first);
        Ok(found.map_or(Found::Unmarked, Found::Identity))
    }

    /// Opens one for anybody.
    pub async fn log_in(access: &Access) -> Result<MariadbSession, Trouble> {
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
            // A password in clear text is for no server to ask for.
            .enable_cleartext_plugin(false)
            .ssl_opts(tls);
        let opened = tokio::time::timeout(CONNECT_WITHIN, Conn::new(options)).await;
        let conn = opened.map_err(|_| silent(&place, CONNECT_WITHIN))?;
        let conn = conn.map_err(|error| trouble(&place, &error))?;
        let dialect = match conn.server_version().0 {
            MARIADB_FIRST.. => Dialect::Mariadb,
            _ => Dialect::Mysql,
        };
        Ok(MariadbSession { conn, place, dialect, is_open: true, is_prepared: false })
    }

    /// Which of the two it is.
    pub fn dialect(&self) -> Dialect {
        self.dialect
    }

    pub fn is_open(&self) -> bool {
        self.is_open
    }

    /// Sends a statement; gives its rows.
    pub async fn send(&mut self, text: &str) -> Result<Vec<Row>, Trouble> {
        self.send_within(text, ANSWER_WITHIN).await
    }

    /// The same under a time limit of the caller's.
    pub async fn send_within(&mut self, text: &str, within: Duration) -> Result<Vec<Row>, Trouble> {
        let answer = tokio::time::timeout(within, self.conn.query::<mysql_async::Row, _>(text)).await;
        let rows = match answer {
            Ok(Ok(rows)) => rows,
            Ok(Err(Error::Server(error))) if error.code == NO_SUCH_THREAD => Vec::new(),
            Ok(Err(error)) => {
                self.is_open = matches!(error, Error::Server(_));
                return Err(trouble(&self.place, &error));
            }
            Err(_) => {
                self.is_open = false;
                return Err(silent(&self.place, within));
            }
        };
        Ok(rows.into_iter().map(read).collect())
    }

    /// What the server says of itself, and which rights the administrator lacks.
    pub async fn health(&mut self) -> Result<Health, Trouble> {
        let asked = "SELECT VERSION(), CAST(@@read_only AS CHAR), CURRENT_USER()";
        let row = self.send(asked).await?.into_iter().next().unwrap_or_default();
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
        let asked = "SELECT (SELECT CAST(COUNT(*) AS CHAR) FROM `conductor`.`marks` WHERE kind = 'database'), \
            (SELECT CAST(CAST(COALESCE(SUM(data_length + index_length), 0) / 1048576 AS SIGNED) AS CHAR) \
             FROM information_schema.tables), \
            (SELECT CAST(COUNT(*) AS CHAR) FROM information_schema.processlist), CAST(@@max_connections AS CHAR)";
        let row = self.send(asked).await?.into_iter().next().unwrap_or_default();
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

    /// What keeps databases from being made on a MySQL server.
    async fn misfits(&mut self, version: &str) -> Result<Vec<String>, Trouble> {
        let mut misfits = Vec::new();
        if self.conn.server_version().0 < MYSQL_FIRST {
            misfits.push(format!(
                "it is MySQL {version}, and databases are made on MySQL from 8.0 on: upgrade it"
            ));
        }
        let row = self.send("SHOW VARIABLES LIKE 'partial_revokes'").await?.into_iter().next();
        if row.is_some_and(|row| row[1].as_deref() == Some("ON")) {
            // Names of databases in grants mean something else then.
            misfits.push("partial_revokes is on: run SET PERSIST partial_revokes = OFF".to_owned());
        }
        Ok(misfits)
    }
}

/// Which rights on everything are missing, and the grant that gives each. `account` is `name@host`.
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
            "the administrator may not give rights: run GRANT USAGE ON *.* TO {account} WITH GRANT OPTION"
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

fn silent(place: &str, within: Duration) -> Trouble {
    Trouble::Unreachable(format!("server {place} did not answer within {} s", within.as_secs()))
}

fn trouble(place: &str, error: &Error) -> Trouble {
    if matches!(error, Error::Driver(DriverError::CleartextPluginDisabled)) {
        let fix =
            "asks for the password in clear text and is not given it: give the administrator another plugin";
        return Trouble::Invalid(format!("server {place} {fix}, for example mysql_native_password"));
    }
    let Error::Server(said) = error else {
        return Trouble::Unreachable(format!("server {place} cannot be reached: {error}"));
    };
    let told = |what: &str| format!("server {place}: {}{what}", said.message);
    match said.code {
        1045 | 1698 => Trouble::Credentials(told("")),
        1040 => Trouble::Unreachable(told("; raise max_connections, or end sessions")),
        // Both are asked once the password has been.
        1203 => Trouble::Crowded(told(CROWDED)),
        1226 if said.message.contains("max_user_connections") => Trouble::Crowded(told(CROWDED)),
        1053 | 1927 => Trouble::Unreachable(told("")),
        1021 => Trouble::Refused(told("; its disk is full")),
        _ => Trouble::Refused(told("")),
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
            assert!(missing.iter().any(|told| told.contains(&format!("GRANT {right} ON"))), "{missing:?}");
        }
        assert_eq!(missing.len(), rights(Dialect::Mariadb).count() - 1, "everything but SELECT: {missing:?}");
        // MySQL lists what it calls dynamic apart, and without spaces.
        let more = "GRANT CONNECTION_ADMIN,ROLE_ADMIN ON *.* TO `a`@`%` WITH GRANT OPTION".to_owned();
        let missing = lacks(&[some, more], "a@%", Dialect::Mysql);
        assert_eq!(missing.len(), 1);
        assert!(missing[0].contains("CREATE USER"), "{missing:?}");
    }
}
