//! The statements of extra logins, for both engines, and the question that tells how they stand. On PostgreSQL a group
//! of the database holds the rights, and default privileges give it those on what the owner makes later; on MariaDB
//! each user has its rights on the whole database, later tables included.

use super::postgresql::Holder;
use super::survey::{accounts, count, is_true};
use super::{Batch, Dialect, Extras, Row, mariadb, postgresql};
use crate::names::{Identifier, User};
use crate::plan::Step;
use crate::role::{RoleStep, SeenMember, SeenRole, WantedRole};
use crate::seen::Place;
use conductor::api::database::role::RoleAccess;

/// What a user on MariaDB may do who may change rows, beside reading.
const WRITES: &str = "INSERT, UPDATE, DELETE, EXECUTE, CREATE TEMPORARY TABLES";

/// The statements of a step, in order; none where the step is no business of the server's.
pub fn statements(step: &RoleStep, wanted: &WantedRole, extras: Extras<'_>) -> Vec<Batch> {
    match wanted.dialect {
        Dialect::Postgresql => on_postgresql(step, wanted, extras),
        Dialect::Mariadb | Dialect::Mysql => on_mariadb(step, wanted, extras),
    }
}

fn on_postgresql(step: &RoleStep, wanted: &WantedRole, extras: Extras<'_>) -> Vec<Batch> {
    use postgresql::{comment, drop_role, join, name, revoke, set_password};
    let group = name(wanted.group());
    match step {
        RoleStep::CreateGroup => {
            let mut all = vec![
                format!("CREATE ROLE {group} NOLOGIN"),
                comment("ROLE", wanted.group(), &wanted.database.mark("")),
            ];
            all.extend(join(wanted.group(), extras));
            vec![Batch::server(&all)]
        }
        RoleStep::SetUpGroup => set_up_group(wanted),
        RoleStep::CreateUser(user) => {
            let user = wanted.user(*user);
            let mut all = vec![
                format!("CREATE ROLE {} NOLOGIN IN ROLE {group}", name(user)),
                comment("ROLE", user, &wanted.mark(0)),
            ];
            all.extend(join(user, extras));
            vec![Batch::server(&all)]
        }
        RoleStep::SetAccess { user, generation } => {
            let user = wanted.user(*user);
            let others = RoleAccess::BOTH.into_iter().filter(|access| *access != wanted.access);
            let leave = others.map(|access| {
                // A group that is not there is left by nobody.
                let other = wanted.database.group(access);
                format!(
                    "DO $$ BEGIN IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {}) THEN REVOKE {} FROM {}; END IF; END $$",
                    Dialect::Postgresql.text(other.as_str()), name(other), name(user)
                )
            });
            let enter = format!("GRANT {group} TO {}", name(user));
            let all: Vec<String> =
                leave.chain([enter, comment("ROLE", user, &wanted.mark(*generation))]).collect();
            vec![Batch::server(&all)]
        }
        RoleStep::DropUser { user, is_open } => {
            let (role, owner) = (wanted.user(*user), name(&wanted.database.owner));
            let user = name(role);
            let inside = [format!("REASSIGN OWNED BY {user} TO {owner}"), format!("DROP OWNED BY {user}")];
            let inside = is_open.then(|| Batch::inside(&inside));
            inside.into_iter().chain(drop_role(role)).collect()
        }
        RoleStep::Login(Step::SetPassword { user, generation }) => {
            let user = wanted.user(*user);
            let mark = comment("ROLE", user, &wanted.mark(*generation));
            // Its owner may have taken it back: who has a grant in the API gets in.
            let connect = format!("GRANT CONNECT ON DATABASE {} TO {group}", name(&wanted.database.database));
            vec![
                postgresql::reset_settings(Holder::User(user)),
                Batch::server(&[set_password(user, extras), connect, mark]),
            ]
        }
        RoleStep::Login(Step::Revoke(user)) => revoke(wanted.user(*user)),
        RoleStep::Login(Step::EndRights { .. }) => {
            postgresql::end_memberships(&[wanted.user(User::A), wanted.user(User::B)])
        }
        RoleStep::Login(_) => Vec::new(),
    }
}

/// First what comes later, then what is there: what is made in between has its rights already.
fn set_up_group(wanted: &WantedRole) -> Vec<Batch> {
    use postgresql::{comment, name};
    let (owner, group) = (name(&wanted.database.owner), name(wanted.group()));
    let (tables, sequences, database) = match wanted.access {
        RoleAccess::ReadOnly => ("SELECT", "SELECT", "CONNECT"),
        RoleAccess::ReadWrite => ("SELECT, INSERT, UPDATE, DELETE", "SELECT, USAGE", "CONNECT, TEMPORARY"),
    };
    let later = |what: &str| format!("ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT {what} TO {group}");
    let owners = Dialect::Postgresql.text(wanted.database.owner.as_str());
    let is_owners = format!("{owners}::pg_catalog.regrole::pg_catalog.oid");
    let mut inside = vec![
        // As the owner: what others keep in this database is theirs to give.
        format!("SET LOCAL ROLE {owner}"),
        later("USAGE ON SCHEMAS"),
        later(&format!("{tables} ON TABLES")),
        later(&format!("{sequences} ON SEQUENCES")),
        each(
            &format!(
                "nspname FROM pg_catalog.pg_namespace WHERE nspowner = {is_owners} OR nspname = 'public'"
            ),
            &format!("GRANT USAGE ON SCHEMA %I TO {group}"),
        ),
        each(
            &relations(&is_owners, "'r', 'p', 'v', 'm', 'f'"),
            &format!("GRANT {tables} ON TABLE %s TO {group}"),
        ),
        each(&relations(&is_owners, "'S'"), &format!("GRANT {sequences} ON SEQUENCE %s TO {group}")),
    ];
    if wanted.access == RoleAccess::ReadWrite {
        // Defaults and checks of tables may call functions, as whoever writes.
        inside.push(later("EXECUTE ON FUNCTIONS"));
        inside.push(each(
            &format!("oid::pg_catalog.regprocedure FROM pg_catalog.pg_proc WHERE proowner = {is_owners}"),
            &format!("GRANT EXECUTE ON ROUTINE %s TO {group}"),
        ));
    }
    if wanted.access == RoleAccess::ReadWrite {
        inside.insert(0, postgresql::allow_large_objects(wanted.group()));
    }
    let outside = format!("GRANT {database} ON DATABASE {} TO {group}", name(&wanted.database.database));
    let done = comment("ROLE", wanted.group(), &wanted.group_mark());
    vec![Batch::server(&[outside]), Batch::inside(&inside), Batch::server(&[done])]
}

/// A statement for each row of one column. The server itself quotes what it finds there: by its own function, whatever
/// the application calls one of its own.
fn each(rows: &str, statement: &str) -> String {
    format!(
        "DO $$ DECLARE found text; BEGIN FOR found IN SELECT {rows} LOOP EXECUTE pg_catalog.format('{statement}', found); END LOOP; END $$"
    )
}

fn relations(is_owners: &str, kinds: &str) -> String {
    format!(
        "oid::pg_catalog.regclass FROM pg_catalog.pg_class WHERE relowner = {is_owners} AND relkind IN ({kinds}) AND relpersistence <> 't'"
    )
}

fn on_mariadb(step: &RoleStep, wanted: &WantedRole, extras: Extras<'_>) -> Vec<Batch> {
    use mariadb::{account, create_user, mark, one, revoke, set_password, text};
    let marked =
        |user: &Identifier, generation| one(mark("user", user, &wanted.mark(generation).to_string()));
    match step {
        RoleStep::CreateUser(user) => {
            let user = wanted.user(*user);
            // Its rights are not there yet: the mark says so, and the next step gives them.
            let note = wanted.database.id.as_str();
            let fresh = format!("conductor:{} 0 - {note}", wanted.id);
            let insert = format!(
                "INSERT INTO `conductor`.`marks` (kind, name, mark) VALUES ('user', {}, {}) ON DUPLICATE KEY UPDATE mark = VALUES(mark)",
                text(user.as_str()),
                text(&fresh)
            );
            vec![one(insert), create_user(wanted.dialect, user)]
        }
        RoleStep::SetAccess { user, generation } => {
            let user = wanted.user(*user);
            let mut all = rights(wanted, user);
            all.push(marked(user, *generation));
            all
        }
        RoleStep::DropUser { user, .. } => {
            let user = wanted.user(*user);
            let unmark = format!(
                "DELETE FROM `conductor`.`marks` WHERE kind = 'user' AND name = {}",
                text(user.as_str())
            );
            vec![one(format!("DROP USER IF EXISTS {}", account(user))), one(unmark)]
        }
        RoleStep::Login(Step::SetPassword { user, generation }) => {
            let user = wanted.user(*user);
            vec![set_password(wanted.dialect, user, extras), marked(user, *generation)]
        }
        RoleStep::Login(Step::Revoke(user)) => revoke(wanted.dialect, wanted.user(*user)),
        RoleStep::CreateGroup | RoleStep::SetUpGroup | RoleStep::Login(_) => Vec::new(),
    }
}

/// What is asked for and no more: reading first, so that there is something to take the rest from.
fn rights(wanted: &WantedRole, user: &Identifier) -> Vec<Batch> {
    use mariadb::{account, one, pattern};
    let (database, user) = (pattern(&wanted.database.database), account(user));
    let rest = match wanted.access {
        RoleAccess::ReadOnly => format!("REVOKE {WRITES} ON {database}.* FROM {user}"),
        RoleAccess::ReadWrite => format!("GRANT {WRITES} ON {database}.* TO {user}"),
    };
    vec![one(format!("GRANT SELECT, SHOW VIEW ON {database}.* TO {user}")), one(rest)]
}

/// The question.
pub fn survey(wanted: &WantedRole) -> String {
    let text = |name: &Identifier| wanted.dialect.text(name.as_str());
    let users = format!("{}, {}", text(wanted.user(User::A)), text(wanted.user(User::B)));
    let database = text(&wanted.database.database);
    let (accounts, can_log_in) = accounts(wanted.dialect);
    match wanted.dialect {
        Dialect::Postgresql => format!(
            "SELECT 'role', r.rolname::text, r.rolcanlogin::text, pg_catalog.shobj_description(r.oid, 'pg_authid'), \
             (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity s WHERE s.usename = r.rolname)::text, \
             NULL::text FROM pg_catalog.pg_roles r WHERE r.rolname IN ({users}, {}) \
             UNION ALL SELECT 'database', d.datname::text, d.datallowconn::text, NULL, NULL, NULL \
             FROM pg_catalog.pg_database d WHERE d.datname = {database}",
            text(wanted.group())
        ),
        Dialect::Mariadb | Dialect::Mysql => format!(
            "SELECT 'role', CAST(g.user AS CHAR), {can_log_in}, \
             (SELECT m.mark FROM `conductor`.`marks` m WHERE m.kind = 'user' AND \
             m.name = CONVERT(g.user USING utf8mb4) COLLATE utf8mb4_bin), \
             CAST((SELECT COUNT(*) FROM information_schema.processlist p WHERE p.user = g.user) AS CHAR), NULL \
             FROM {accounts} g WHERE g.user IN ({users}) \
             UNION ALL SELECT 'mark', m.name, NULL, m.mark, NULL, NULL \
             FROM `conductor`.`marks` m WHERE m.kind = 'user' AND m.name IN ({users}) \
             UNION ALL SELECT 'database', CAST(s.schema_name AS CHAR), 'true', NULL, NULL, NULL \
             FROM information_schema.schemata s WHERE s.schema_name = {database}"
        ),
    }
}

/// Reads the answer.
pub fn read_survey(wanted: &WantedRole, rows: &[Row]) -> SeenRole {
    let find = |what: &str, name: &Identifier| {
        rows.iter().find(|[w, n, ..]| w.as_deref() == Some(what) && n.as_deref() == Some(name.as_str()))
    };
    let user = |user: User| match find("role", wanted.user(user)) {
        None => Place::Free,
        Some(row) => Place::read(row[3].as_deref(), &wanted.id, |mark| {
            SeenMember::read(&mark.note, is_true(&row[2]), count(&row[4]))
        }),
    };
    let is_left_over = |user: User| {
        let name = wanted.user(user);
        let is_ours = |row: &Row| Place::read(row[3].as_deref(), &wanted.id, |_| ()).ours().is_some();
        find("role", name).is_none() && find("mark", name).is_some_and(is_ours)
    };
    let group = match find("role", wanted.group()) {
        None => Place::Free,
        Some(row) => Place::read(row[3].as_deref(), &wanted.database.id, |mark| mark.note),
    };
    SeenRole {
        group,
        users: User::BOTH.map(user),
        left_over: User::BOTH.map(is_left_over),
        is_open: find("database", &wanted.database.database).is_some_and(|row| is_true(&row[2])),
    }
}

#[cfg(test)]
mod tests;
