//! The statements of extra logins, for both engines, and the query for their state. On PostgreSQL a group of the database
//! holds the rights, and default privileges grant it those on what the owner creates later; on MariaDB each user has its
//! rights on the whole database, later tables included.

use super::postgresql::Holder;
use super::query::{accounts, count, find, is_true, read_role};
use super::{Batch, Dialect, Extras, Row, mariadb, postgresql};
use crate::names::{Identifier, User};
use crate::observed::NameState;
use crate::plan::Step;
use crate::role::{DesiredRole, ObservedMember, ObservedRole, RoleStep};
use crate::rotation_state::Pending;
use conductor::api::database::role::RoleAccess;

/// The rights of a writer on MariaDB, beside reading.
const WRITES: &str = "INSERT, UPDATE, DELETE, EXECUTE, CREATE TEMPORARY TABLES";

/// The statements of a step, in order; none where the step does not concern the server.
pub fn statements(step: &RoleStep, desired: &DesiredRole, extras: Extras<'_>) -> Vec<Batch> {
    match desired.dialect {
        Dialect::Postgresql => on_postgresql(step, desired, extras),
        Dialect::Mariadb | Dialect::Mysql => on_mariadb(step, desired, extras),
    }
}

fn on_postgresql(step: &RoleStep, desired: &DesiredRole, extras: Extras<'_>) -> Vec<Batch> {
    use postgresql::{comment, drop_role, join, name, revoke, set_password};
    let group = name(desired.group());
    match step {
        RoleStep::CreateGroup => {
            let mut all = vec![
                format!("CREATE ROLE {group} NOLOGIN"),
                comment("ROLE", desired.group(), &desired.database.mark("")),
            ];
            all.extend(join(desired.group(), extras));
            vec![Batch::server(&all)]
        }
        RoleStep::SetUpGroup => set_up_group(desired),
        RoleStep::CreateUser(user) => {
            let user = desired.user(*user);
            let mut all = vec![
                format!("CREATE ROLE {} NOLOGIN IN ROLE {group}", name(user)),
                comment("ROLE", user, &desired.mark(0)),
            ];
            all.extend(join(user, extras));
            vec![Batch::server(&all)]
        }
        RoleStep::SetAccess { user, generation } => {
            let user = desired.user(*user);
            let others = RoleAccess::BOTH.into_iter().filter(|access| *access != desired.access);
            let leave = others.map(|access| {
                // A group that does not exist has no members.
                let other = desired.database.group(access);
                format!(
                    "DO $$ BEGIN IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {}) THEN REVOKE {} FROM {}; END IF; END $$",
                    Dialect::Postgresql.text(other.as_str()), name(other), name(user)
                )
            });
            let enter = format!("GRANT {group} TO {}", name(user));
            let all: Vec<String> =
                leave.chain([enter, comment("ROLE", user, &desired.mark(*generation))]).collect();
            vec![Batch::server(&all)]
        }
        RoleStep::DropUser { user, is_open } => {
            let (role, owner) = (desired.user(*user), name(&desired.database.owner));
            let user = name(role);
            let inside = [format!("REASSIGN OWNED BY {user} TO {owner}"), format!("DROP OWNED BY {user}")];
            let inside = is_open.then(|| Batch::inside(&inside));
            inside.into_iter().chain(drop_role(role)).collect()
        }
        RoleStep::Login(Step::SetPassword(Pending { user, generation })) => {
            let user = desired.user(*user);
            let mark = comment("ROLE", user, &desired.mark(*generation));
            // The database's owner may have revoked it: a role with a grant in the API gets in.
            let connect =
                format!("GRANT CONNECT ON DATABASE {} TO {group}", name(&desired.database.database));
            vec![
                postgresql::reset_settings(Holder::User(user)),
                Batch::server(&[set_password(user, extras), connect, mark]),
            ]
        }
        RoleStep::Login(Step::Revoke(user)) => revoke(desired.user(*user)),
        RoleStep::Login(Step::EndRights { .. }) => {
            postgresql::end_memberships(&[desired.user(User::A), desired.user(User::B)])
        }
        RoleStep::Login(_) => Vec::new(),
    }
}

/// First for future objects, then for existing ones, so that objects created in between have the rights already.
fn set_up_group(desired: &DesiredRole) -> Vec<Batch> {
    use postgresql::{comment, name};
    let (owner, group) = (name(&desired.database.owner), name(desired.group()));
    let (tables, sequences, database) = match desired.access {
        RoleAccess::ReadOnly => ("SELECT", "SELECT", "CONNECT"),
        RoleAccess::ReadWrite => ("SELECT, INSERT, UPDATE, DELETE", "SELECT, USAGE", "CONNECT, TEMPORARY"),
    };
    let later = |what: &str| format!("ALTER DEFAULT PRIVILEGES FOR ROLE {owner} GRANT {what} TO {group}");
    let owners = Dialect::Postgresql.text(desired.database.owner.as_str());
    let is_owners = format!("{owners}::pg_catalog.regrole::pg_catalog.oid");
    let mut inside = vec![
        // As the owner: other users grant rights on their own objects.
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
    if desired.access == RoleAccess::ReadWrite {
        // Defaults and checks of tables may call functions, as the writing user.
        inside.push(later("EXECUTE ON FUNCTIONS"));
        inside.push(each(
            &format!("oid::pg_catalog.regprocedure FROM pg_catalog.pg_proc WHERE proowner = {is_owners}"),
            &format!("GRANT EXECUTE ON ROUTINE %s TO {group}"),
        ));
    }
    if desired.access == RoleAccess::ReadWrite {
        inside.insert(0, postgresql::allow_large_objects(desired.group()));
    }
    let outside = format!("GRANT {database} ON DATABASE {} TO {group}", name(&desired.database.database));
    let done = comment("ROLE", desired.group(), &desired.group_mark());
    vec![Batch::server(&[outside]), Batch::inside(&inside), Batch::server(&[done])]
}

/// A statement for each row of one column. The server quotes the names with its own function, even where the application
/// defines one of the same name.
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

fn on_mariadb(step: &RoleStep, desired: &DesiredRole, extras: Extras<'_>) -> Vec<Batch> {
    use mariadb::{account, create_user, mark, one, revoke, set_password, text};
    let marked =
        |user: &Identifier, generation| one(mark("user", user, &desired.mark(generation).to_string()));
    match step {
        RoleStep::CreateUser(user) => {
            let user = desired.user(*user);
            // Its rights are not granted yet: the mark says so, and the next step grants them.
            let note = desired.database.id.as_str();
            let fresh = format!("conductor:{} 0 - {note}", desired.id);
            let insert = format!(
                "INSERT INTO `conductor`.`marks` (kind, name, mark) VALUES ('user', {}, {}) ON DUPLICATE KEY UPDATE mark = VALUES(mark)",
                text(user.as_str()),
                text(&fresh)
            );
            vec![one(insert), create_user(desired.dialect, user)]
        }
        RoleStep::SetAccess { user, generation } => {
            let user = desired.user(*user);
            let mut all = rights(desired, user);
            all.push(marked(user, *generation));
            all
        }
        RoleStep::DropUser { user, .. } => {
            let user = desired.user(*user);
            let unmark = format!(
                "DELETE FROM `conductor`.`marks` WHERE kind = 'user' AND name = {}",
                text(user.as_str())
            );
            vec![one(format!("DROP USER IF EXISTS {}", account(user))), one(unmark)]
        }
        RoleStep::Login(Step::SetPassword(Pending { user, generation })) => {
            let user = desired.user(*user);
            vec![set_password(desired.dialect, user, extras), marked(user, *generation)]
        }
        RoleStep::Login(Step::Revoke(user)) => revoke(desired.dialect, desired.user(*user)),
        RoleStep::CreateGroup | RoleStep::SetUpGroup | RoleStep::Login(_) => Vec::new(),
    }
}

/// Exactly the requested rights: reading first, so that there is something to revoke the rest from.
fn rights(desired: &DesiredRole, user: &Identifier) -> Vec<Batch> {
    use mariadb::{account, one, pattern};
    let (database, user) = (pattern(&desired.database.database), account(user));
    let rest = match desired.access {
        RoleAccess::ReadOnly => format!("REVOKE {WRITES} ON {database}.* FROM {user}"),
        RoleAccess::ReadWrite => format!("GRANT {WRITES} ON {database}.* TO {user}"),
    };
    vec![one(format!("GRANT SELECT, SHOW VIEW ON {database}.* TO {user}")), one(rest)]
}

/// The query about a role's users.
pub fn survey(desired: &DesiredRole) -> String {
    let text = |name: &Identifier| desired.dialect.text(name.as_str());
    let users = format!("{}, {}", text(desired.user(User::A)), text(desired.user(User::B)));
    let database = text(&desired.database.database);
    let (accounts, can_log_in) = accounts(desired.dialect);
    match desired.dialect {
        Dialect::Postgresql => format!(
            "SELECT 'role', r.rolname::text, r.rolcanlogin::text, pg_catalog.shobj_description(r.oid, 'pg_authid'), \
             (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity s WHERE s.usename = r.rolname)::text, \
             NULL::text FROM pg_catalog.pg_roles r WHERE r.rolname IN ({users}, {}) \
             UNION ALL SELECT 'database', d.datname::text, d.datallowconn::text, NULL, NULL, NULL \
             FROM pg_catalog.pg_database d WHERE d.datname = {database}",
            text(desired.group())
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

/// Reads the rows of [`survey`].
pub fn read_survey(desired: &DesiredRole, rows: &[Row]) -> ObservedRole {
    let user = |user: User| {
        read_role(rows, desired.user(user), &desired.id, |mark, row| {
            ObservedMember::read(&mark.note, is_true(&row[2]), count(&row[4]))
        })
    };
    let is_left_over = |user: User| {
        let name = desired.user(user);
        let is_ours = |row: &Row| NameState::read(row[3].as_deref(), &desired.id, |_| ()).ours().is_some();
        find(rows, "role", name).is_none() && find(rows, "mark", name).is_some_and(is_ours)
    };
    ObservedRole {
        group: read_role(rows, desired.group(), &desired.database.id, |mark, _| mark.note),
        users: User::BOTH.map(user),
        left_over: User::BOTH.map(is_left_over),
        is_open: find(rows, "database", &desired.database.database).is_some_and(|row| is_true(&row[2])),
    }
}

#[cfg(test)]
mod tests;
