//! The statements for PostgreSQL. A role that cannot log in owns everything; the two users become it as they log in. Marks
//! are comments, written in the transaction that creates the object; only a database cannot be created in a transaction,
//! and is recognized by its owner, because the application can change its comment.

use super::{At, Batch, Dialect, Extras};
use crate::names::{Identifier, Mark, Names, User};
use crate::plan::Step;
use crate::policy::DesiredDatabase;
use crate::rotation_state::Pending;
use conductor::api::database::role::RoleAccess;

/// The start-up options of an administrator's session. They override `ALTER DATABASE ... SET`, which the application can
/// write: its function in place of the server's would run with our rights, and a missing library would end the session.
/// Whether the server accepts writes stays the server's setting.
pub const OPTIONS: &str = "-c search_path=pg_catalog,pg_temp -c role=none -c standard_conforming_strings=on \
                           -c statement_timeout=0 -c lock_timeout=0 -c local_preload_libraries=";
/// The same at the head of a message inside a database, which its owner may have set to read-only.
pub(super) const PIN: &str = "SET LOCAL transaction_read_only = off; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL ROLE NONE; \
                              SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0";

pub(super) fn statements(step: &Step, desired: &DesiredDatabase, extras: Extras<'_>) -> Vec<Batch> {
    let names = &desired.names;
    let owner = name(&names.owner);
    match step {
        Step::CreateOwner => {
            let mut all =
                vec![format!("CREATE ROLE {owner} NOLOGIN"), comment("ROLE", &names.owner, &names.mark(""))];
            all.extend(join(&names.owner, extras));
            vec![Batch::server(&all)]
        }
        Step::CreateUser(user) => vec![create_user(desired, names.user(*user), extras)],
        Step::CreateDatabase => {
            let database = name(&names.database);
            // template1 may contain objects of other users.
            let text = format!("CREATE DATABASE {database} OWNER {owner} TEMPLATE template0 ENCODING 'UTF8'");
            vec![Batch::server(&[text])]
        }
        Step::SetUp { is_first } => set_up(desired, *is_first),
        Step::SetPassword(Pending { user, generation }) => {
            let user = names.user(*user);
            let set = [
                set_password(user, extras),
                become_owner(names, user),
                comment("ROLE", user, &names.mark(&generation.to_string())),
            ];
            // At the first set-up there is nothing yet.
            let more = (*generation > 1).then(|| take_over(names));
            [reset_settings(Holder::Member(user)), Batch::server(&set)].into_iter().chain(more).collect()
        }
        Step::Revoke(user) => revoke(names.user(*user)),
        Step::EndRights { .. } => {
            // First: they hold locks on what the other statements change.
            let mut all = vec![end_prepared(&format!("p.owner = {}", text(&names.owner)))];
            all.extend(end_memberships(&[&names.owner, names.user(User::A), names.user(User::B)]));
            all.extend(end_rights_on_database(names));
            all.push(reset_settings(Holder::Database(&names.database)));
            all.push(take_over(names));
            all
        }
        Step::PutBackLimits => vec![limits(desired)],
        Step::Seal => {
            let database = &names.database;
            // Its owner may have made it a template, which cannot be dropped and lets every login copy it.
            let alter =
                format!("ALTER DATABASE {} WITH ALLOW_CONNECTIONS false IS_TEMPLATE false", name(database));
            // A database with a prepared transaction can be neither renamed nor dropped; end it from inside.
            let prepared = end_prepared(&format!("p.database = {}", text(database)));
            vec![prepared, Batch::server(&[alter]), end_sessions("datname", database)]
        }
        Step::Rename => vec![rename(&names.database, &names.quarantined)],
        Step::Restore { is_renamed } => {
            let open = format!("ALTER DATABASE {} WITH ALLOW_CONNECTIONS true", name(&names.database));
            let back = is_renamed.then(|| rename(&names.quarantined, &names.database));
            back.into_iter().chain([Batch::server(&[open])]).collect()
        }
        Step::DropDatabase { is_renamed } => {
            let database = if *is_renamed { &names.quarantined } else { &names.database };
            // Also where an earlier version closed it.
            let plain = format!("ALTER DATABASE {} WITH IS_TEMPLATE false", name(database));
            vec![Batch::server(&[plain]), Batch::server(&[format!("DROP DATABASE {}", name(database))])]
        }
        Step::DropUser(user) => drop_role(names.user(*user)),
        Step::DropGroup(access) => drop_role(names.group(*access)),
        Step::DropOwner => drop_role(&names.owner),
        Step::RecordMade
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

pub(super) fn name(name: &Identifier) -> String {
    Dialect::Postgresql.name(name)
}

fn text(name: &Identifier) -> String {
    Dialect::Postgresql.text(name.as_str())
}

pub(super) fn comment(kind: &str, on: &Identifier, mark: &Mark) -> String {
    format!("COMMENT ON {kind} {} IS {}", name(on), Dialect::Postgresql.text(&mark.to_string()))
}

/// An administrator without superuser rights acts for a role only as its member.
pub(super) fn join(role: &Identifier, extras: Extras<'_>) -> Option<String> {
    (!extras.is_superuser).then(|| format!("GRANT {} TO CURRENT_USER", name(role)))
}

fn create_user(desired: &DesiredDatabase, user: &Identifier, extras: Extras<'_>) -> Batch {
    let (owner, user_name) = (name(&desired.names.owner), name(user));
    let mut all = vec![
        format!("CREATE ROLE {user_name} NOLOGIN IN ROLE {owner}"),
        become_owner(&desired.names, user),
        comment("ROLE", user, &desired.names.mark("0")),
    ];
    all.extend(join(user, extras));
    Batch::server(&all)
}

/// Makes the owner own what either user creates.
fn become_owner(names: &Names, user: &Identifier) -> String {
    format!("ALTER ROLE {} SET role = {}", name(user), Dialect::Postgresql.text(names.owner.as_str()))
}

/// The scope of session settings.
#[derive(Clone, Copy)]
pub(super) enum Holder<'a> {
    /// A user's, in every database and in one.
    User(&'a Identifier),
    /// The same for a user that becomes the owner as it logs in, which is set again right after.
    Member(&'a Identifier),
    /// A database's, for every login.
    Database(&'a Identifier),
}

/// Session settings that every login may choose for itself, or for the database that it owns. Those that only a superuser
/// can choose are an administrator's, as are those unknown to the server, which refuses them from other users. The last
/// three are not in the server's list.
const CHOSEN: &str = "FROM pg_catalog.pg_db_role_setting s LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole \
    LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase, pg_catalog.unnest(s.setconfig) AS c(line), \
    LATERAL (SELECT pg_catalog.split_part(c.line, '=', 1) AS name) AS n WHERE (EXISTS (SELECT FROM pg_catalog.pg_settings g \
    WHERE g.name = n.name AND g.context = 'user') OR n.name IN ('role', 'session_authorization', 'seed'))";

/// Resets the settings that the holder of a login chose, because they could keep the next login from working. A user's are
/// reset whenever it gets another password; the database's, which belong to the application, after a leak or where a login
/// was refused with them.
pub(super) fn reset_settings(of: Holder<'_>) -> Batch {
    let (statement, whose) = match of {
        Holder::User(user) | Holder::Member(user) => (
            "pg_catalog.format('ALTER ROLE %I%s RESET %I', r.rolname, CASE WHEN d.datname IS NULL THEN '' ELSE \
             pg_catalog.format(' IN DATABASE %I', d.datname) END, n.name)",
            format!("r.rolname = {}", text(user)),
        ),
        Holder::Database(database) => (
            "pg_catalog.format('ALTER DATABASE %I RESET %I', d.datname, n.name)",
            format!("s.setrole = 0 AND d.datname = {}", text(database)),
        ),
    };
    let but = match of {
        Holder::Member(_) => " AND NOT (n.name = 'role' AND s.setdatabase = 0)",
        Holder::User(_) | Holder::Database(_) => "",
    };
    Batch { at: At::EachRow, text: format!("SELECT {statement} {CHOSEN} AND {whose}{but}") }
}

/// The query for the session settings of a user in a database, as the statements with which a superuser can reset them.
pub(super) fn remaining_settings(database: &Identifier, user: &Identifier) -> String {
    let (database, user) =
        (Dialect::Postgresql.text(database.as_str()), Dialect::Postgresql.text(user.as_str()));
    format!(
        "SELECT pg_catalog.concat_ws(' ', 'ALTER', CASE WHEN r.rolname IS NULL THEN NULL ELSE 'ROLE ' || \
         pg_catalog.quote_ident(r.rolname) END, CASE WHEN r.rolname IS NOT NULL AND d.datname IS NOT NULL THEN 'IN' END, \
         CASE WHEN d.datname IS NULL THEN NULL ELSE 'DATABASE ' || pg_catalog.quote_ident(d.datname) END, \
         CASE WHEN r.rolname IS NULL AND d.datname IS NULL THEN 'ROLE ALL' END, 'RESET', \
         pg_catalog.split_part(c.line, '=', 1)) \
         FROM pg_catalog.pg_db_role_setting s LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole \
         LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase, pg_catalog.unnest(s.setconfig) AS c(line) \
         WHERE (s.setrole = 0 OR r.rolname = {user}) AND (s.setdatabase = 0 OR d.datname = {database}) \
         AND NOT (r.rolname IS NOT NULL AND pg_catalog.split_part(c.line, '=', 1) = 'role') ORDER BY 1"
    )
}

/// Restores what the owner of a database can change of the database itself.
fn limits(desired: &DesiredDatabase) -> Batch {
    let (database, owner) = (name(&desired.names.database), name(&desired.names.owner));
    let limit = desired.connection_limit.map_or(-1, i64::from);
    Batch::server(&[
        format!("ALTER DATABASE {database} WITH CONNECTION LIMIT {limit} IS_TEMPLATE false"),
        format!("GRANT ALL ON DATABASE {database} TO {owner}"),
    ])
}

/// A user owns what it created outside the owner's role (`SET ROLE NONE`, or a pooler's `DISCARD ALL`): the next user could
/// not use it, and its functions would run with its rights, also to change its password. So the owner takes it over.
/// Nothing depends on it: locks of the application can block it, and the next rotation retries.
fn take_over(names: &Names) -> Batch {
    let users = User::BOTH.map(|user| name(names.user(user))).join(", ");
    Batch::attempt(&[format!("REASSIGN OWNED BY {users} TO {}", name(&names.owner))])
}

/// Keeps readers from creating large objects, which every login may on a stock server. Without superuser rights an
/// administrator cannot change that, and the statements have no effect.
fn keep_large_objects(names: &Names) -> String {
    const MAKES: &str =
        "pg_catalog.lo_create(oid), pg_catalog.lo_creat(integer), pg_catalog.lo_from_bytea(oid, bytea)";
    let (owner, writers) = (name(&names.owner), names.group(RoleAccess::ReadWrite));
    format!(
        "DO $$ BEGIN REVOKE EXECUTE ON FUNCTION {MAKES} FROM PUBLIC; GRANT EXECUTE ON FUNCTION {MAKES} TO {owner}; \
         IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = {}) THEN GRANT EXECUTE ON FUNCTION {MAKES} TO {}; \
         END IF; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$",
        Dialect::Postgresql.text(writers.as_str()),
        name(writers)
    )
}

/// The same for a group of writers, which is created after its database was set up.
pub(super) fn allow_large_objects(group: &Identifier) -> String {
    format!(
        "DO $$ BEGIN GRANT EXECUTE ON FUNCTION pg_catalog.lo_create(oid), pg_catalog.lo_creat(integer), \
         pg_catalog.lo_from_bytea(oid, bytea) TO {}; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$",
        name(group)
    )
}

/// A session belongs to the user who logged in, and works as the owner: the owner is no member of its users, so a server
/// neither shows it their statements nor lets it cancel them. These functions do, for the users of this database only.
/// They run with the administrator's rights, qualify every name with its schema and take nothing but a number.
fn own_sessions(names: &Names) -> Vec<String> {
    let owner = name(&names.owner);
    let users = User::BOTH.map(|user| Dialect::Postgresql.text(names.user(user).as_str())).join(", ");
    let own = format!("s.usename IN ({users}) AND s.datname = pg_catalog.current_database()");
    let safe = "LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp";
    let signal = |function: &str, of_server: &str| {
        (
            format!("{function}(integer)"),
            format!(
                "CREATE FUNCTION conductor.{function}(process integer) RETURNS boolean {safe} AS $f$ SELECT \
                 pg_catalog.{of_server}(s.pid) FROM pg_catalog.pg_stat_activity s WHERE s.pid = process AND {own} $f$"
            ),
        )
    };
    let sessions = (
        "sessions()".to_owned(),
        format!(
            "CREATE FUNCTION conductor.sessions() RETURNS SETOF pg_catalog.pg_stat_activity {safe} AS $f$ SELECT s.* \
             FROM pg_catalog.pg_stat_activity s WHERE {own} $f$"
        ),
    );
    let functions =
        [sessions, signal("cancel", "pg_cancel_backend"), signal("terminate", "pg_terminate_backend")];
    let schema = "CREATE SCHEMA IF NOT EXISTS conductor".to_owned();
    let usage = format!("GRANT USAGE ON SCHEMA conductor TO {owner}");
    let functions = functions.map(|(signature, create)| {
        // An existing one stays: its creator owns it.
        format!(
            "DO $do$ BEGIN IF pg_catalog.to_regprocedure('conductor.{signature}') IS NULL THEN {create}; \
             REVOKE ALL ON FUNCTION conductor.{signature} FROM PUBLIC; \
             GRANT EXECUTE ON FUNCTION conductor.{signature} TO {owner}; END IF; END $do$"
        )
    });
    [schema, usage].into_iter().chain(functions).collect()
}

fn set_up(desired: &DesiredDatabase, is_first: bool) -> Vec<Batch> {
    let (database, owner) = (name(&desired.names.database), name(&desired.names.owner));
    let limit = desired.connection_limit.map_or(-1, i64::from);
    let outside = [
        format!("REVOKE ALL ON DATABASE {database} FROM PUBLIC"),
        format!("ALTER DATABASE {database} WITH CONNECTION LIMIT {limit}"),
    ];
    let mut inside = Vec::new();
    if is_first {
        // Later the schema belongs to the application, which may have removed it.
        inside.push("REVOKE ALL ON SCHEMA public FROM PUBLIC".to_owned());
        inside.push(format!("GRANT ALL ON SCHEMA public TO {owner}"));
    }
    inside.push(format!("ALTER DEFAULT PRIVILEGES FOR ROLE {owner} REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC"));
    // The next user can work with what a user created for itself until the owner takes it over.
    let users = User::BOTH.map(|user| name(desired.names.user(user))).join(", ");
    inside.extend(
        ["TABLES", "SEQUENCES", "FUNCTIONS", "SCHEMAS"].map(|things| {
            format!("ALTER DEFAULT PRIVILEGES FOR ROLE {users} GRANT ALL ON {things} TO {owner}")
        }),
    );
    inside.push(keep_large_objects(&desired.names));
    inside.extend(own_sessions(&desired.names));
    let schema =
        |schema: &Identifier| format!("CREATE SCHEMA IF NOT EXISTS {} AUTHORIZATION {owner}", name(schema));
    inside.extend(desired.schemas.iter().map(schema));
    if !desired.extensions.is_empty() {
        // The schema that they are created in; their scripts set their own path. `SCHEMA public` would refuse extensions
        // with a schema of their own.
        inside.push("SET LOCAL search_path = public".to_owned());
    }
    inside.extend(desired.extensions.iter().map(|e| format!("CREATE EXTENSION IF NOT EXISTS {}", name(e))));
    let mark = comment("DATABASE", &desired.names.database, &desired.names.mark(&desired.set_up()));
    vec![Batch::server(&outside), Batch::inside(&inside), Batch::server(&[mark])]
}

pub(super) fn set_password(user: &Identifier, extras: Extras<'_>) -> String {
    let verifier = Dialect::Postgresql.text(extras.verifier);
    // An administrator may have disabled it, or let it expire: a published login works.
    format!("ALTER ROLE {} LOGIN CONNECTION LIMIT -1 VALID UNTIL 'infinity' PASSWORD {verifier}", name(user))
}

/// First the right, then the sessions: in the other order, a client could log in between. A session that changes its own
/// role and leaves its transaction open, or prepared, blocks the first statement: such sessions and transactions end. Only
/// a superuser can end another user's prepared transaction.
pub(super) fn revoke(user: &Identifier) -> Vec<Batch> {
    vec![
        Batch { at: At::Contested, text: format!("ALTER ROLE {} NOLOGIN", name(user)) },
        end_sessions("usename", user),
        end_prepared(&format!("p.owner = {}", text(user))),
    ]
}

/// Ends prepared transactions, where the administrator may.
fn end_prepared(which: &str) -> Batch {
    let text = format!(
        "SELECT p.database::text, pg_catalog.format('ROLLBACK PREPARED %L', p.gid) FROM pg_catalog.pg_prepared_xacts p \
         WHERE {which} AND (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = CURRENT_USER)"
    );
    Batch { at: At::Elsewhere, text }
}

fn end_sessions(of: &str, whose: &Identifier) -> Batch {
    let whose = Dialect::Postgresql.text(whose.as_str());
    Batch::server(&[format!(
        "SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE {of} = {whose} \
         AND pid <> pg_catalog.pg_backend_pid()"
    )])
}

/// Roles that no tenant has. An administrator granted what they hold on a database.
const IS_ADMINISTRATOR: &str = "(r.rolsuper OR r.rolcreaterole OR r.rolname = CURRENT_USER)";

/// Revokes the memberships in these roles that their holders granted: older servers let a login grant itself. Memberships
/// among these roles are ours. The last statement fails where one is left.
pub(super) fn end_memberships(roles: &[&Identifier]) -> Vec<Batch> {
    let list =
        roles.iter().map(|role| Dialect::Postgresql.text(role.as_str())).collect::<Vec<_>>().join(", ");
    let granted = format!(
        "FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles o ON o.oid = m.roleid \
         JOIN pg_catalog.pg_roles r ON r.oid = m.member WHERE o.rolname IN ({list}) AND r.rolname NOT IN ({list}) \
         AND NOT {IS_ADMINISTRATOR}"
    );
    // Sessions of a member may have become one of these roles: they end with the membership.
    let end = format!(
        "SELECT pg_catalog.pg_terminate_backend(s.pid) FROM pg_catalog.pg_stat_activity s WHERE s.usesysid IN \
         (SELECT m.member {granted}) AND s.datname IN (SELECT d.datname FROM pg_catalog.pg_database d \
         JOIN pg_catalog.pg_roles o ON o.oid = d.datdba WHERE o.rolname IN ({list}))"
    );
    let revoke =
        format!("SELECT pg_catalog.format('REVOKE %I FROM %I CASCADE', o.rolname, r.rolname) {granted}");
    let check = format!(
        "SELECT ('login ' || r.rolname || ' still holds rights of a revoked one')::integer {granted}"
    );
    vec![Batch::server(&[end]), Batch { at: At::EachRow, text: revoke }, Batch::server(&[check])]
}

/// Revokes what the holder granted on its database: without the right to connect, rights inside it are worth nothing. The
/// groups of the database keep theirs, which an administrator granted. Sessions of revoked roles end.
fn end_rights_on_database(names: &Names) -> Vec<Batch> {
    let database = Dialect::Postgresql.text(names.database.as_str());
    let list = |names: &[&Identifier]| {
        names.iter().map(|name| Dialect::Postgresql.text(name.as_str())).collect::<Vec<_>>().join(", ")
    };
    let groups = [names.group(RoleAccess::ReadOnly), names.group(RoleAccess::ReadWrite)];
    let users = [names.user(User::A), names.user(User::B)];
    let ours = list(&[&names.owner, users[0], users[1], groups[0], groups[1]]);
    let granted = format!(
        "FROM pg_catalog.pg_database d, pg_catalog.aclexplode(d.datacl) a LEFT JOIN pg_catalog.pg_roles r \
         ON r.oid = a.grantee WHERE d.datname = {database} AND (a.grantee = 0 OR r.rolname NOT IN ({ours}) \
         AND NOT {IS_ADMINISTRATOR})"
    );
    let revoke = format!(
        "SELECT DISTINCT pg_catalog.format('REVOKE ALL ON DATABASE %I FROM %s CASCADE', d.datname, \
         CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(r.rolname) END) {granted}"
    );
    let check = format!(
        "SELECT (COALESCE(r.rolname, 'PUBLIC') || ' still holds rights on the database')::integer {granted}"
    );
    let (members, users) = (list(&groups), list(&users));
    let end = format!(
        "SELECT pg_catalog.pg_terminate_backend(s.pid) FROM pg_catalog.pg_stat_activity s JOIN pg_catalog.pg_roles r \
         ON r.oid = s.usesysid WHERE s.datname = {database} AND NOT {IS_ADMINISTRATOR} AND r.rolname NOT IN ({users}) \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles g ON g.oid = m.roleid \
         WHERE m.member = r.oid AND g.rolname IN ({members}))"
    );
    vec![Batch { at: At::EachRow, text: revoke }, Batch::server(&[check]), Batch::server(&[end])]
}

/// Drops a role that is no longer in use. Other users may have granted it rights on their objects, which would prevent the
/// drop: first revoke them in our databases where it owns nothing. The owner's mark, which no application can write, shows
/// that a database is ours.
pub(super) fn drop_role(role: &Identifier) -> Vec<Batch> {
    let (quoted, text) = (name(role), Dialect::Postgresql.text(role.as_str()));
    let inside = Dialect::Postgresql.text(&format!("{PIN}; DROP OWNED BY {quoted}"));
    let depends = format!(
        "s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND s.refobjid = (SELECT r.oid FROM \
         pg_catalog.pg_roles r WHERE r.rolname = {text})"
    );
    let given = format!(
        "SELECT d.datname::text, {inside} FROM pg_catalog.pg_database d WHERE d.datallowconn \
         AND pg_catalog.shobj_description(d.datdba, 'pg_authid') LIKE 'conductor:%' \
         AND EXISTS (SELECT FROM pg_catalog.pg_shdepend s WHERE {depends} AND (s.dbid = d.oid OR s.objid = d.oid)) \
         AND NOT EXISTS (SELECT FROM pg_catalog.pg_shdepend s WHERE {depends} AND s.dbid = d.oid AND s.deptype = 'o')"
    );
    vec![Batch { at: At::Elsewhere, text: given }, Batch::server(&[format!("DROP ROLE {quoted}")])]
}

fn rename(from: &Identifier, to: &Identifier) -> Batch {
    Batch::server(&[format!("ALTER DATABASE {} RENAME TO {}", name(from), name(to))])
}

/// All statements of a database's life, for review; the log of a server must show these and nothing else.
#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statements_of_a_life() {
        let read = |text: &str| Identifier::read(text).expect("plain");
        let desired = DesiredDatabase {
            names: Names::new("u'1", None),
            dialect: Dialect::Postgresql,
            schemas: vec![read("audit")],
            extensions: vec![Identifier::read_extension("uuid-ossp").expect("plain")],
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
            Step::EndRights { token: "hard-1".to_owned() },
            Step::Seal,
            Step::Rename,
            Step::Restore { is_renamed: true },
            Step::DropDatabase { is_renamed: true },
            Step::DropUser(User::B),
            Step::DropGroup(RoleAccess::ReadOnly),
            Step::DropOwner,
        ];
        let extras = Extras { verifier: "SCRAM-SHA-256$1", is_superuser: false };
        let stem = desired.names.owner.to_string();
        let lines = steps.iter().flat_map(|step| statements(step, &desired, extras)).map(|batch| {
            let at = if batch.at == At::Inside { "in it: " } else { "" };
            format!("{at}{}", batch.text.replace(&stem, "C"))
        });
        expect_test::expect![[r#"
            CREATE ROLE "C" NOLOGIN; COMMENT ON ROLE "C" IS 'conductor:u''1'; GRANT "C" TO CURRENT_USER
            CREATE ROLE "C_a" NOLOGIN IN ROLE "C"; ALTER ROLE "C_a" SET role = 'C'; COMMENT ON ROLE "C_a" IS 'conductor:u''1 0'; GRANT "C_a" TO CURRENT_USER
            CREATE DATABASE "C" OWNER "C" TEMPLATE template0 ENCODING 'UTF8'
            REVOKE ALL ON DATABASE "C" FROM PUBLIC; ALTER DATABASE "C" WITH CONNECTION LIMIT 9
            in it: SET LOCAL transaction_read_only = off; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL ROLE NONE; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; REVOKE ALL ON SCHEMA public FROM PUBLIC; GRANT ALL ON SCHEMA public TO "C"; ALTER DEFAULT PRIVILEGES FOR ROLE "C" REVOKE EXECUTE ON FUNCTIONS FROM PUBLIC; ALTER DEFAULT PRIVILEGES FOR ROLE "C_a", "C_b" GRANT ALL ON TABLES TO "C"; ALTER DEFAULT PRIVILEGES FOR ROLE "C_a", "C_b" GRANT ALL ON SEQUENCES TO "C"; ALTER DEFAULT PRIVILEGES FOR ROLE "C_a", "C_b" GRANT ALL ON FUNCTIONS TO "C"; ALTER DEFAULT PRIVILEGES FOR ROLE "C_a", "C_b" GRANT ALL ON SCHEMAS TO "C"; DO $$ BEGIN REVOKE EXECUTE ON FUNCTION pg_catalog.lo_create(oid), pg_catalog.lo_creat(integer), pg_catalog.lo_from_bytea(oid, bytea) FROM PUBLIC; GRANT EXECUTE ON FUNCTION pg_catalog.lo_create(oid), pg_catalog.lo_creat(integer), pg_catalog.lo_from_bytea(oid, bytea) TO "C"; IF EXISTS (SELECT FROM pg_catalog.pg_roles WHERE rolname = 'C_w') THEN GRANT EXECUTE ON FUNCTION pg_catalog.lo_create(oid), pg_catalog.lo_creat(integer), pg_catalog.lo_from_bytea(oid, bytea) TO "C_w"; END IF; EXCEPTION WHEN insufficient_privilege THEN NULL; END $$; CREATE SCHEMA IF NOT EXISTS conductor; GRANT USAGE ON SCHEMA conductor TO "C"; DO $do$ BEGIN IF pg_catalog.to_regprocedure('conductor.sessions()') IS NULL THEN CREATE FUNCTION conductor.sessions() RETURNS SETOF pg_catalog.pg_stat_activity LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$ SELECT s.* FROM pg_catalog.pg_stat_activity s WHERE s.usename IN ('C_a', 'C_b') AND s.datname = pg_catalog.current_database() $f$; REVOKE ALL ON FUNCTION conductor.sessions() FROM PUBLIC; GRANT EXECUTE ON FUNCTION conductor.sessions() TO "C"; END IF; END $do$; DO $do$ BEGIN IF pg_catalog.to_regprocedure('conductor.cancel(integer)') IS NULL THEN CREATE FUNCTION conductor.cancel(process integer) RETURNS boolean LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$ SELECT pg_catalog.pg_cancel_backend(s.pid) FROM pg_catalog.pg_stat_activity s WHERE s.pid = process AND s.usename IN ('C_a', 'C_b') AND s.datname = pg_catalog.current_database() $f$; REVOKE ALL ON FUNCTION conductor.cancel(integer) FROM PUBLIC; GRANT EXECUTE ON FUNCTION conductor.cancel(integer) TO "C"; END IF; END $do$; DO $do$ BEGIN IF pg_catalog.to_regprocedure('conductor.terminate(integer)') IS NULL THEN CREATE FUNCTION conductor.terminate(process integer) RETURNS boolean LANGUAGE sql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $f$ SELECT pg_catalog.pg_terminate_backend(s.pid) FROM pg_catalog.pg_stat_activity s WHERE s.pid = process AND s.usename IN ('C_a', 'C_b') AND s.datname = pg_catalog.current_database() $f$; REVOKE ALL ON FUNCTION conductor.terminate(integer) FROM PUBLIC; GRANT EXECUTE ON FUNCTION conductor.terminate(integer) TO "C"; END IF; END $do$; CREATE SCHEMA IF NOT EXISTS "audit" AUTHORIZATION "C"; SET LOCAL search_path = public; CREATE EXTENSION IF NOT EXISTS "uuid-ossp"
            COMMENT ON DATABASE "C" IS 'conductor:u''1 2d63af0e0eedcaa5'
            SELECT pg_catalog.format('ALTER ROLE %I%s RESET %I', r.rolname, CASE WHEN d.datname IS NULL THEN '' ELSE pg_catalog.format(' IN DATABASE %I', d.datname) END, n.name) FROM pg_catalog.pg_db_role_setting s LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase, pg_catalog.unnest(s.setconfig) AS c(line), LATERAL (SELECT pg_catalog.split_part(c.line, '=', 1) AS name) AS n WHERE (EXISTS (SELECT FROM pg_catalog.pg_settings g WHERE g.name = n.name AND g.context = 'user') OR n.name IN ('role', 'session_authorization', 'seed')) AND r.rolname = 'C_b' AND NOT (n.name = 'role' AND s.setdatabase = 0)
            ALTER ROLE "C_b" LOGIN CONNECTION LIMIT -1 VALID UNTIL 'infinity' PASSWORD 'SCRAM-SHA-256$1'; ALTER ROLE "C_b" SET role = 'C'; COMMENT ON ROLE "C_b" IS 'conductor:u''1 7'
            SET LOCAL transaction_read_only = off; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL ROLE NONE; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL lock_timeout = '2s'; REASSIGN OWNED BY "C_a", "C_b" TO "C"
            ALTER ROLE "C_a" NOLOGIN
            SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE usename = 'C_a' AND pid <> pg_catalog.pg_backend_pid()
            SELECT p.database::text, pg_catalog.format('ROLLBACK PREPARED %L', p.gid) FROM pg_catalog.pg_prepared_xacts p WHERE p.owner = 'C_a' AND (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = CURRENT_USER)
            SELECT p.database::text, pg_catalog.format('ROLLBACK PREPARED %L', p.gid) FROM pg_catalog.pg_prepared_xacts p WHERE p.owner = 'C' AND (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = CURRENT_USER)
            SELECT pg_catalog.pg_terminate_backend(s.pid) FROM pg_catalog.pg_stat_activity s WHERE s.usesysid IN (SELECT m.member FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles o ON o.oid = m.roleid JOIN pg_catalog.pg_roles r ON r.oid = m.member WHERE o.rolname IN ('C', 'C_a', 'C_b') AND r.rolname NOT IN ('C', 'C_a', 'C_b') AND NOT (r.rolsuper OR r.rolcreaterole OR r.rolname = CURRENT_USER)) AND s.datname IN (SELECT d.datname FROM pg_catalog.pg_database d JOIN pg_catalog.pg_roles o ON o.oid = d.datdba WHERE o.rolname IN ('C', 'C_a', 'C_b'))
            SELECT pg_catalog.format('REVOKE %I FROM %I CASCADE', o.rolname, r.rolname) FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles o ON o.oid = m.roleid JOIN pg_catalog.pg_roles r ON r.oid = m.member WHERE o.rolname IN ('C', 'C_a', 'C_b') AND r.rolname NOT IN ('C', 'C_a', 'C_b') AND NOT (r.rolsuper OR r.rolcreaterole OR r.rolname = CURRENT_USER)
            SELECT ('login ' || r.rolname || ' still holds rights of a revoked one')::integer FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles o ON o.oid = m.roleid JOIN pg_catalog.pg_roles r ON r.oid = m.member WHERE o.rolname IN ('C', 'C_a', 'C_b') AND r.rolname NOT IN ('C', 'C_a', 'C_b') AND NOT (r.rolsuper OR r.rolcreaterole OR r.rolname = CURRENT_USER)
            SELECT DISTINCT pg_catalog.format('REVOKE ALL ON DATABASE %I FROM %s CASCADE', d.datname, CASE a.grantee WHEN 0 THEN 'PUBLIC' ELSE pg_catalog.quote_ident(r.rolname) END) FROM pg_catalog.pg_database d, pg_catalog.aclexplode(d.datacl) a LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee WHERE d.datname = 'C' AND (a.grantee = 0 OR r.rolname NOT IN ('C', 'C_a', 'C_b', 'C_r', 'C_w') AND NOT (r.rolsuper OR r.rolcreaterole OR r.rolname = CURRENT_USER))
            SELECT (COALESCE(r.rolname, 'PUBLIC') || ' still holds rights on the database')::integer FROM pg_catalog.pg_database d, pg_catalog.aclexplode(d.datacl) a LEFT JOIN pg_catalog.pg_roles r ON r.oid = a.grantee WHERE d.datname = 'C' AND (a.grantee = 0 OR r.rolname NOT IN ('C', 'C_a', 'C_b', 'C_r', 'C_w') AND NOT (r.rolsuper OR r.rolcreaterole OR r.rolname = CURRENT_USER))
            SELECT pg_catalog.pg_terminate_backend(s.pid) FROM pg_catalog.pg_stat_activity s JOIN pg_catalog.pg_roles r ON r.oid = s.usesysid WHERE s.datname = 'C' AND NOT (r.rolsuper OR r.rolcreaterole OR r.rolname = CURRENT_USER) AND r.rolname NOT IN ('C_a', 'C_b') AND NOT EXISTS (SELECT FROM pg_catalog.pg_auth_members m JOIN pg_catalog.pg_roles g ON g.oid = m.roleid WHERE m.member = r.oid AND g.rolname IN ('C_r', 'C_w'))
            SELECT pg_catalog.format('ALTER DATABASE %I RESET %I', d.datname, n.name) FROM pg_catalog.pg_db_role_setting s LEFT JOIN pg_catalog.pg_roles r ON r.oid = s.setrole LEFT JOIN pg_catalog.pg_database d ON d.oid = s.setdatabase, pg_catalog.unnest(s.setconfig) AS c(line), LATERAL (SELECT pg_catalog.split_part(c.line, '=', 1) AS name) AS n WHERE (EXISTS (SELECT FROM pg_catalog.pg_settings g WHERE g.name = n.name AND g.context = 'user') OR n.name IN ('role', 'session_authorization', 'seed')) AND s.setrole = 0 AND d.datname = 'C'
            SET LOCAL transaction_read_only = off; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL ROLE NONE; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; SET LOCAL lock_timeout = '2s'; REASSIGN OWNED BY "C_a", "C_b" TO "C"
            SELECT p.database::text, pg_catalog.format('ROLLBACK PREPARED %L', p.gid) FROM pg_catalog.pg_prepared_xacts p WHERE p.database = 'C' AND (SELECT r.rolsuper FROM pg_catalog.pg_roles r WHERE r.rolname = CURRENT_USER)
            ALTER DATABASE "C" WITH ALLOW_CONNECTIONS false IS_TEMPLATE false
            SELECT pg_catalog.pg_terminate_backend(pid) FROM pg_catalog.pg_stat_activity WHERE datname = 'C' AND pid <> pg_catalog.pg_backend_pid()
            ALTER DATABASE "C" RENAME TO "C_q"
            ALTER DATABASE "C_q" RENAME TO "C"
            ALTER DATABASE "C" WITH ALLOW_CONNECTIONS true
            ALTER DATABASE "C_q" WITH IS_TEMPLATE false
            DROP DATABASE "C_q"
            SELECT d.datname::text, 'SET LOCAL transaction_read_only = off; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL ROLE NONE; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; DROP OWNED BY "C_b"' FROM pg_catalog.pg_database d WHERE d.datallowconn AND pg_catalog.shobj_description(d.datdba, 'pg_authid') LIKE 'conductor:%' AND EXISTS (SELECT FROM pg_catalog.pg_shdepend s WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND s.refobjid = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = 'C_b') AND (s.dbid = d.oid OR s.objid = d.oid)) AND NOT EXISTS (SELECT FROM pg_catalog.pg_shdepend s WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND s.refobjid = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = 'C_b') AND s.dbid = d.oid AND s.deptype = 'o')
            DROP ROLE "C_b"
            SELECT d.datname::text, 'SET LOCAL transaction_read_only = off; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL ROLE NONE; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; DROP OWNED BY "C_r"' FROM pg_catalog.pg_database d WHERE d.datallowconn AND pg_catalog.shobj_description(d.datdba, 'pg_authid') LIKE 'conductor:%' AND EXISTS (SELECT FROM pg_catalog.pg_shdepend s WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND s.refobjid = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = 'C_r') AND (s.dbid = d.oid OR s.objid = d.oid)) AND NOT EXISTS (SELECT FROM pg_catalog.pg_shdepend s WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND s.refobjid = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = 'C_r') AND s.dbid = d.oid AND s.deptype = 'o')
            DROP ROLE "C_r"
            SELECT d.datname::text, 'SET LOCAL transaction_read_only = off; SET LOCAL search_path = pg_catalog, pg_temp; SET LOCAL ROLE NONE; SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0; DROP OWNED BY "C"' FROM pg_catalog.pg_database d WHERE d.datallowconn AND pg_catalog.shobj_description(d.datdba, 'pg_authid') LIKE 'conductor:%' AND EXISTS (SELECT FROM pg_catalog.pg_shdepend s WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND s.refobjid = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = 'C') AND (s.dbid = d.oid OR s.objid = d.oid)) AND NOT EXISTS (SELECT FROM pg_catalog.pg_shdepend s WHERE s.refclassid = 'pg_catalog.pg_authid'::pg_catalog.regclass AND s.refobjid = (SELECT r.oid FROM pg_catalog.pg_roles r WHERE r.rolname = 'C') AND s.dbid = d.oid AND s.deptype = 'o')
            DROP ROLE "C""#]]
        .assert_eq(&lines.collect::<Vec<_>>().join("\n"));
    }
}
