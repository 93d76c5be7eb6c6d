//! The statements for MariaDB, and for MySQL where they differ. Neither has comments on users, nor DDL in transactions, so
//! marks are rows of a table of ours, written before the object is created; nor owners of databases, so both users hold
//! the rights themselves. A database cannot be renamed: in quarantine it keeps its name, and no user can log in.

use super::{At, Batch, Dialect, Extras};
use crate::names::{Identifier, User};
use crate::plan::Step;
use crate::policy::DesiredDatabase;
use crate::rotation_state::Pending;

/// The database that holds the marks.
pub const MARKS_DATABASE: &str = "conductor";

/// The start of every session of ours: a fixed meaning of backslashes, and the table for marks.
pub const PREPARE: [&str; 3] = [
    "SET SESSION sql_mode = 'STRICT_ALL_TABLES,NO_ENGINE_SUBSTITUTION'",
    "CREATE DATABASE IF NOT EXISTS `conductor`",
    "CREATE TABLE IF NOT EXISTS `conductor`.`marks` (kind VARCHAR(16) NOT NULL, name VARCHAR(64) NOT NULL, \
     mark VARCHAR(512) NOT NULL, PRIMARY KEY (kind, name)) ENGINE = InnoDB CHARACTER SET utf8mb4 COLLATE utf8mb4_bin",
];

/// Whether the table for marks exists: queried before anything is written.
pub const FIND_MARKS: &str = "SELECT table_name FROM information_schema.tables WHERE table_schema = 'conductor' AND table_name = 'marks'";
/// The name of the server's own marker. No database and no user can have this name.
pub const FIND_SERVER_MARK: &str =
    "SELECT mark FROM `conductor`.`marks` WHERE kind = 'server' AND name = '#identity'";

/// Writes the server's marker, unless it has one.
pub fn mark_server(marker: &str) -> String {
    let marker = Dialect::Mariadb.text(marker);
    format!(
        "INSERT IGNORE INTO `conductor`.`marks` (kind, name, mark) VALUES ('server', '#identity', {marker})"
    )
}

const RIGHTS: [&str; 18] = [
    "SELECT",
    "INSERT",
    "UPDATE",
    "DELETE",
    "CREATE",
    "DROP",
    "REFERENCES",
    "INDEX",
    "ALTER",
    "CREATE TEMPORARY TABLES",
    "LOCK TABLES",
    "EXECUTE",
    "CREATE VIEW",
    "SHOW VIEW",
    "CREATE ROUTINE",
    "ALTER ROUTINE",
    "EVENT",
    "TRIGGER",
];

/// A hash of no password: its user cannot log in even if it is unlocked.
const NO_PASSWORD: &str = "*0000000000000000000000000000000000000000";
/// The same for MySQL.
const NO_PASSWORD_MYSQL: &str = "$A$005$xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx";

pub(super) fn statements(step: &Step, desired: &DesiredDatabase, extras: Extras<'_>) -> Vec<Batch> {
    let names = &desired.names;
    let database = name(&names.database);
    match step {
        // Marks first, all at once: from here on, objects of these names are ours.
        Step::CreateOwner => vec![one(insert_marks(desired))],
        Step::CreateUser(user) => vec![create_user(desired.dialect, names.user(*user))],
        Step::CreateDatabase => {
            vec![one(format!("CREATE DATABASE IF NOT EXISTS {database} CHARACTER SET utf8mb4"))]
        }
        Step::SetUp { .. } => {
            let limit = desired.connection_limit.unwrap_or(0);
            let limit = |user| {
                one(format!("ALTER USER {} WITH MAX_USER_CONNECTIONS {limit}", account(names.user(user))))
            };
            let mark = mark("database", &names.database, &names.mark(&desired.set_up()).to_string());
            let grant = |user| grant(desired, user);
            vec![grant(User::A), grant(User::B), limit(User::A), limit(User::B), one(mark)]
        }
        Step::SetPassword(Pending { user, generation }) => {
            let user = names.user(*user);
            vec![
                set_password(desired.dialect, user, extras),
                one(mark("user", user, &names.mark(&generation.to_string()).to_string())),
            ]
        }
        Step::Revoke(user) => revoke(desired.dialect, names.user(*user)),
        Step::EndRights { .. } => {
            vec![disable_events(&names.database), end_proxies(&[names.user(User::A), names.user(User::B)])]
        }
        Step::DropDatabase { .. } => vec![one(format!("DROP DATABASE {database}"))],
        Step::DropUser(user) => vec![one(format!("DROP USER {}", account(names.user(*user))))],
        Step::DropOwner => {
            let all =
                [&names.database, names.user(User::A), names.user(User::B)].map(|name| text(name.as_str()));
            vec![one(format!("DELETE FROM `conductor`.`marks` WHERE name IN ({})", all.join(", ")))]
        }
        // Rights are the users' own: there are no groups.
        Step::DropGroup(_)
        | Step::Seal
        | Step::Rename
        | Step::Restore { .. }
        | Step::PutBackLimits
        | Step::RecordMade
        | Step::StorePending { .. }
        | Step::Publish(_)
        | Step::Promote(_)
        | Step::CloseRequest { .. }
        | Step::StartQuarantine
        | Step::ForgetLogins
        | Step::Forget
        | Step::Wait { .. }
        | Step::Refuse(_) => Vec::new(),
    }
}

pub(super) fn one(text: String) -> Batch {
    Batch::server(&[text])
}

pub(super) fn name(name: &Identifier) -> String {
    Dialect::Mariadb.name(name)
}

pub(super) fn text(text: &str) -> String {
    Dialect::Mariadb.text(text)
}

pub(super) fn account(user: &Identifier) -> String {
    format!("{}@'%'", text(user.as_str()))
}

fn insert_marks(desired: &DesiredDatabase) -> String {
    let names = &desired.names;
    let row = |kind: &str, name: &Identifier, note: &str| {
        format!("('{kind}', {}, {})", text(name.as_str()), text(&names.mark(note).to_string()))
    };
    let rows = [
        row("user", names.user(User::A), "0"),
        row("user", names.user(User::B), "0"),
        row("database", &names.database, ""),
    ];
    format!("INSERT INTO `conductor`.`marks` (kind, name, mark) VALUES {}", rows.join(", "))
}

pub(super) fn mark(kind: &str, on: &Identifier, mark: &str) -> String {
    let (on, mark) = (text(on.as_str()), text(mark));
    format!("UPDATE `conductor`.`marks` SET mark = {mark} WHERE kind = '{kind}' AND name = {on}")
}

pub(super) fn create_user(dialect: Dialect, user: &Identifier) -> Batch {
    let user = account(user);
    let nobodys = match dialect {
        Dialect::Mysql => identified(dialect, NO_PASSWORD_MYSQL),
        Dialect::Mariadb | Dialect::Postgresql => identified(dialect, NO_PASSWORD),
    };
    one(format!("CREATE USER IF NOT EXISTS {user} {nobodys} ACCOUNT LOCK"))
}

/// Removes the account limits of an administrator or a server policy that would keep the next login from working: our
/// rotations replace passwords before they expire.
pub(super) fn set_password(dialect: Dialect, user: &Identifier, extras: Extras<'_>) -> Batch {
    one(format!(
        "ALTER USER {} {} WITH MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 0 MAX_CONNECTIONS_PER_HOUR 0 \
         PASSWORD EXPIRE NEVER ACCOUNT UNLOCK",
        account(user),
        identified(dialect, extras.verifier)
    ))
}

/// The verifier's authentication plugin: MySQL's own salts its hash.
fn identified(dialect: Dialect, verifier: &str) -> String {
    let verifier = text(verifier);
    match dialect {
        Dialect::Mysql => format!("IDENTIFIED WITH caching_sha2_password AS {verifier}"),
        Dialect::Mariadb | Dialect::Postgresql => {
            format!("IDENTIFIED VIA mysql_native_password USING {verifier}")
        }
    }
}

pub(super) fn revoke(dialect: Dialect, user: &Identifier) -> Vec<Batch> {
    let lock = one(format!("ALTER USER {} ACCOUNT LOCK", account(user)));
    let end = match dialect {
        // A server ends sessions by number only: the query writes the statements.
        Dialect::Mysql => Batch {
            at: At::EachRow,
            text: format!(
                "SELECT CONCAT('KILL CONNECTION ', id) FROM information_schema.processlist WHERE user = {}",
                text(user.as_str())
            ),
        },
        Dialect::Mariadb | Dialect::Postgresql => one(format!("KILL HARD USER {}", account(user))),
    };
    vec![lock, end]
}

/// The one right that a login can grant is to act as its proxy. An administrator with that right revokes it; without it,
/// no login that Conductor creates can use it, because none has a plugin that allows proxies.
fn end_proxies(users: &[&Identifier]) -> Batch {
    let users = users.iter().map(|user| text(user.as_str())).collect::<Vec<_>>().join(", ");
    let text = format!(
        "SELECT CONCAT('REVOKE PROXY ON ', QUOTE(p.proxied_user), '@', QUOTE(p.proxied_host), ' FROM ', QUOTE(p.user), '@', \
         QUOTE(p.host)) FROM mysql.proxies_priv p WHERE p.proxied_user IN ({users}) AND EXISTS (SELECT 1 FROM \
         mysql.proxies_priv a WHERE a.proxied_user = '' AND a.with_grant = 1 AND CONCAT(a.user, '@', a.host) = CURRENT_USER())"
    );
    Batch { at: At::EachRow, text }
}

/// A login cannot grant its other rights. But its events run with its rights while no user is logged in, and may set a
/// password that their author knows: after a leak, the events of the database stop until their owner enables them again.
fn disable_events(database: &Identifier) -> Batch {
    let text = format!(
        "SELECT CONCAT('ALTER EVENT `', REPLACE(e.event_schema, '`', '``'), '`.`', REPLACE(e.event_name, '`', '``'), \
         '` DISABLE') FROM information_schema.events e WHERE e.event_schema = {} AND e.status = 'ENABLED'",
        text(database.as_str())
    );
    Batch { at: At::EachRow, text }
}

/// The name of a database in a grant, where an unescaped underscore stands for any character.
pub(super) fn pattern(database: &Identifier) -> String {
    name(database).replace('_', "\\_")
}

/// By name: `ALL PRIVILEGES` grants every right that the server knows, and requires an administrator that has them all.
fn grant(desired: &DesiredDatabase, user: User) -> Batch {
    let database = pattern(&desired.names.database);
    let rights = rights(desired.dialect).collect::<Vec<_>>().join(", ");
    one(format!("GRANT {rights} ON {database}.* TO {}", account(desired.names.user(user))))
}

/// The rights of an application in its own database; an administrator needs them too.
pub fn rights(dialect: Dialect) -> impl Iterator<Item = &'static str> {
    let more = (dialect != Dialect::Mysql).then_some("DELETE HISTORY");
    RIGHTS.into_iter().chain(more)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::names::Names;

    #[test]
    fn the_statements_of_a_life() {
        let desired = DesiredDatabase {
            names: Names::new("u'1\\", None),
            dialect: Dialect::Mariadb,
            schemas: Vec::new(),
            extensions: Vec::new(),
            connection_limit: Some(9),
            rotation_ms: 0,
            deadline: crate::policy::Deadline::default(),
            was_made: true,
            unread: None,
        };
        let steps = [
            Step::CreateOwner,
            Step::CreateUser(User::A),
            Step::CreateDatabase,
            Step::SetUp { is_first: true },
            Step::SetPassword(Pending { user: User::B, generation: 7 }),
            Step::Revoke(User::A),
            Step::DropDatabase { is_renamed: false },
            Step::DropUser(User::B),
            Step::DropOwner,
        ];
        let extras = Extras { verifier: "*94BD", is_superuser: true };
        let (stem, escaped) =
            (desired.names.owner.to_string(), desired.names.owner.to_string().replace('_', "\\_"));
        let lines = steps.iter().flat_map(|step| statements(step, &desired, extras));
        let lines = lines.map(|batch| batch.text.replace(&stem, "C").replace(&escaped, "ESC"));
        expect_test::expect![[r#"
            INSERT INTO `conductor`.`marks` (kind, name, mark) VALUES ('user', 'C_a', 'conductor:u''1\\ 0'), ('user', 'C_b', 'conductor:u''1\\ 0'), ('database', 'C', 'conductor:u''1\\')
            CREATE USER IF NOT EXISTS 'C_a'@'%' IDENTIFIED VIA mysql_native_password USING '*0000000000000000000000000000000000000000' ACCOUNT LOCK
            CREATE DATABASE IF NOT EXISTS `C` CHARACTER SET utf8mb4
            GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER, DELETE HISTORY ON `ESC`.* TO 'C_a'@'%'
            GRANT SELECT, INSERT, UPDATE, DELETE, CREATE, DROP, REFERENCES, INDEX, ALTER, CREATE TEMPORARY TABLES, LOCK TABLES, EXECUTE, CREATE VIEW, SHOW VIEW, CREATE ROUTINE, ALTER ROUTINE, EVENT, TRIGGER, DELETE HISTORY ON `ESC`.* TO 'C_b'@'%'
            ALTER USER 'C_a'@'%' WITH MAX_USER_CONNECTIONS 9
            ALTER USER 'C_b'@'%' WITH MAX_USER_CONNECTIONS 9
            UPDATE `conductor`.`marks` SET mark = 'conductor:u''1\\ 6ea5310545c62a6a' WHERE kind = 'database' AND name = 'C'
            ALTER USER 'C_b'@'%' IDENTIFIED VIA mysql_native_password USING '*94BD' WITH MAX_QUERIES_PER_HOUR 0 MAX_UPDATES_PER_HOUR 0 MAX_CONNECTIONS_PER_HOUR 0 PASSWORD EXPIRE NEVER ACCOUNT UNLOCK
            UPDATE `conductor`.`marks` SET mark = 'conductor:u''1\\ 7' WHERE kind = 'user' AND name = 'C_b'
            ALTER USER 'C_a'@'%' ACCOUNT LOCK
            KILL HARD USER 'C_a'@'%'
            DROP DATABASE `C`
            DROP USER 'C_b'@'%'
            DELETE FROM `conductor`.`marks` WHERE name IN ('C', 'C_a', 'C_b')"#]]
        .assert_eq(&lines.collect::<Vec<_>>().join("\n"));
    }
}
