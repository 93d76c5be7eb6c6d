//! The one query about a database on a server, and the reader of its rows. Both engines answer in the same columns: what,
//! name, flag, mark, sessions, owner.

use super::Dialect;
use crate::names::{Identifier, Mark, Names, User};
use crate::observed::{
    ForeignOwner, NameState, Observed, ObservedDatabase, ObservedLimits, ObservedUser, OpenGrant,
};
use conductor::api::database::role::RoleAccess;

/// One row of a result, as text.
pub type Row = [Option<String>; 6];

/// The query about a database.
pub fn survey(dialect: Dialect, names: &Names) -> String {
    let list = |names: &[&Identifier]| {
        names.iter().map(|name| dialect.text(name.as_str())).collect::<Vec<_>>().join(", ")
    };
    let users = list(&[names.user(User::A), names.user(User::B)]);
    let (readers, writers) = (names.group(RoleAccess::ReadOnly), names.group(RoleAccess::ReadWrite));
    let roles = list(&[&names.owner, names.user(User::A), names.user(User::B), readers, writers]);
    let databases = list(&[&names.database, &names.quarantined]);
    match dialect {
        Dialect::Postgresql => format!(
            "SELECT 'role', r.rolname::text, r.rolcanlogin::text, pg_catalog.shobj_description(r.oid, 'pg_authid'), \
             (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity s WHERE s.usename = r.rolname)::text, \
             NULL::text FROM pg_catalog.pg_roles r WHERE r.rolname IN ({roles}) \
             UNION ALL SELECT 'database', d.datname::text, d.datallowconn::text, \
             pg_catalog.shobj_description(d.oid, 'pg_database'), \
             (SELECT pg_catalog.count(*) FROM pg_catalog.pg_stat_activity s WHERE s.datname = d.datname)::text, \
             pg_catalog.pg_get_userbyid(d.datdba)::text \
             FROM pg_catalog.pg_database d WHERE d.datname IN ({databases}) \
             UNION ALL SELECT 'limits', d.datname::text, d.datistemplate::text, d.datconnlimit::text, NULL, \
             pg_catalog.has_database_privilege(d.datdba, d.oid, 'CONNECT')::text \
             FROM pg_catalog.pg_database d WHERE d.datname IN ({databases})"
        ),
        Dialect::Mariadb | Dialect::Mysql => {
            let (accounts, can_log_in) = accounts(dialect);
            let marked = |kind: &str, name: &str| {
                format!(
                    "(SELECT m.mark FROM `conductor`.`marks` m WHERE m.kind = '{kind}' AND \
                     m.name = CONVERT({name} USING utf8mb4) COLLATE utf8mb4_bin)"
                )
            };
            let (of_user, of_database) = (marked("user", "g.user"), marked("database", "s.schema_name"));
            let (owner, database) =
                (dialect.text(names.owner.as_str()), dialect.text(names.database.as_str()));
            format!(
                "SELECT 'role', CAST(g.user AS CHAR), {can_log_in}, {of_user}, \
                 CAST((SELECT COUNT(*) FROM information_schema.processlist p WHERE p.user = g.user) AS CHAR), NULL \
                 FROM {accounts} g WHERE g.user IN ({users}) \
                 UNION ALL SELECT 'database', CAST(s.schema_name AS CHAR), 'true', {of_database}, '0', NULL \
                 FROM information_schema.schemata s WHERE s.schema_name = {database} \
                 UNION ALL SELECT 'role', {owner}, 'false', m.mark, '0', NULL \
                 FROM `conductor`.`marks` m WHERE m.kind = 'database' AND m.name = {database} \
                 UNION ALL SELECT 'grant', CAST(d.db AS CHAR), NULL, CAST(d.user AS CHAR), NULL, CAST(d.host AS CHAR) \
                 FROM mysql.db d WHERE {database} LIKE d.db AND d.user NOT IN ({users})"
            )
        }
    }
}

/// The users' table of MariaDB or MySQL, and its expression for whether a user can log in.
pub(super) fn accounts(dialect: Dialect) -> (&'static str, &'static str) {
    match dialect {
        Dialect::Mysql => ("mysql.user", "IF(g.account_locked = 'Y', 'false', 'true')"),
        Dialect::Mariadb | Dialect::Postgresql => (
            "mysql.global_priv",
            "IF(JSON_VALUE(g.priv, '$.account_locked') IN ('true', '1'), 'false', 'true')",
        ),
    }
}

/// Reads the rows of [`survey`].
pub fn read_survey(names: &Names, rows: &[Row]) -> Observed {
    let id = names.id.as_str();
    let owner = read_role(rows, &names.owner, id, |_, _| ());
    let group = |access: RoleAccess| read_role(rows, names.group(access), id, |_, _| ());
    let user = |user: User| {
        read_role(rows, names.user(user), id, |mark, row| ObservedUser {
            generation: mark.note.parse().unwrap_or(0),
            can_log_in: is_true(&row[2]),
            sessions: count(&row[4]),
        })
    };
    let database = |name: &Identifier| match find(rows, "database", name) {
        None => NameState::Free,
        Some(row) => {
            let found = |mark: Mark| ObservedDatabase {
                set_up: mark.note,
                is_open: is_true(&row[2]),
                sessions: count(&row[4]),
                limits: find(rows, "limits", name).map(|row| ObservedLimits {
                    // -1 is no limit; -2 is an invalid database.
                    connections: row[3].as_deref().and_then(|text| text.parse().ok()),
                    is_template: is_true(&row[2]),
                    owner_connects: is_true(&row[5]),
                }),
            };
            let marked = NameState::read(row[3].as_deref(), id, found);
            match row[5].as_deref().map(|of| of == names.owner.as_str() && owner.ours().is_some()) {
                // The owner of a database may write any comment on it, and applications do. Only we create databases for
                // our owners; where the mark is missing, the next set-up writes it.
                Some(true) if marked.ours().is_none() => NameState::Ours(found(names.mark(""))),
                // Nor does a comment of its owner make it ours.
                Some(false) if marked.ours().is_some() => NameState::Foreign(ForeignOwner::Unmarked),
                Some(_) | None => marked,
            }
        }
    };
    let (database, quarantined) = (database(&names.database), database(&names.quarantined));
    let grants = rows.iter().filter(|row| row[0].as_deref() == Some("grant")).map(open_grant);
    Observed {
        open: grants.filter(OpenGrant::is_open).max_by_key(OpenGrant::is_for_all),
        users: [user(User::A), user(User::B)],
        groups: RoleAccess::BOTH.map(group),
        database,
        quarantined,
        owner,
    }
}

/// The row about an object with this name.
pub(super) fn find<'a>(rows: &'a [Row], what: &str, name: &Identifier) -> Option<&'a Row> {
    rows.iter().find(|[w, n, ..]| w.as_deref() == Some(what) && n.as_deref() == Some(name.as_str()))
}

/// Reads the state of a role's name, with the id in our mark.
pub(super) fn read_role<T>(
    rows: &[Row],
    name: &Identifier,
    id: &str,
    found: impl FnOnce(Mark, &Row) -> T,
) -> NameState<T> {
    let read = |row: &Row| NameState::read(row[3].as_deref(), id, |mark| found(mark, row));
    find(rows, "role", name).map_or(NameState::Free, read)
}

/// A row of the server's grants: pattern, user, host.
fn open_grant(row: &Row) -> OpenGrant {
    let text = |at: usize| row[at].clone().unwrap_or_default();
    OpenGrant { pattern: text(1), user: text(3), host: text(5) }
}

/// The query for the grants by a pattern to every login, on MariaDB and MySQL.
pub const OPEN_GRANTS: &str = "SELECT 'grant', CAST(d.db AS CHAR), NULL, CAST(d.user AS CHAR), NULL, CAST(d.host AS CHAR) \
                               FROM mysql.db d WHERE d.user IN ('', 'PUBLIC') ORDER BY 2, 4, 6";

/// Reads the rows of [`OPEN_GRANTS`].
pub fn read_open_grants(rows: &[Row]) -> Vec<OpenGrant> {
    rows.iter().map(open_grant).collect()
}

pub(super) fn is_true(text: &Option<String>) -> bool {
    text.as_deref() == Some("true")
}

pub(super) fn count(text: &Option<String>) -> u64 {
    text.as_deref().and_then(|text| text.parse().ok()).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_has_no_mark_of_this_database_is_foreign() {
        let names = Names::new("u", None);
        let row = |what: &str, name: &Identifier, mark: Option<&str>, owner: Option<&str>| -> Row {
            let text = |text: &str| Some(text.to_owned());
            [
                text(what),
                text(name.as_str()),
                text("true"),
                mark.map(str::to_owned),
                text("3"),
                owner.map(str::to_owned),
            ]
        };
        let observed = read_survey(&names, &[]);
        assert_eq!(observed, Observed::default());
        let ours = |owner: Option<&str>| {
            [
                row("role", &names.owner, Some("conductor:u"), None),
                row("role", names.user(User::A), Some("conductor:u 4"), None),
                row("role", names.user(User::B), Some("conductor:other 4"), None),
                row("database", &names.database, None, owner),
            ]
        };
        let observed = read_survey(&names, &ours(Some(names.owner.as_str())));
        let user = ObservedUser { generation: 4, can_log_in: true, sessions: 3 };
        assert_eq!(
            observed.users,
            [NameState::Ours(user), NameState::Foreign(ForeignOwner::Another("other".to_owned()))]
        );
        assert_eq!(observed.owner, NameState::Ours(()));
        let fresh = ObservedDatabase { is_open: true, sessions: 3, ..ObservedDatabase::default() };
        assert_eq!(observed.database, NameState::Ours(fresh));
        assert_eq!(
            read_survey(&names, &ours(Some("postgres"))).database,
            NameState::Foreign(ForeignOwner::Unmarked)
        );
    }

    #[test]
    fn a_database_is_its_owners_whatever_comment_stands_on_it() {
        let names = Names::new("u", None);
        let text = |text: &str| Some(text.to_owned());
        let read = |comment: Option<&str>, owner: &str| {
            let role =
                [text("role"), text(names.owner.as_str()), text("false"), text("conductor:u"), None, None];
            let database = text(names.database.as_str());
            let comment = comment.map(str::to_owned);
            let row = [text("database"), database, text("true"), comment, text("0"), text(owner)];
            read_survey(&names, &[role, row]).database
        };
        let ours = |set_up: &str| {
            NameState::Ours(ObservedDatabase {
                set_up: set_up.to_owned(),
                is_open: true,
                ..ObservedDatabase::default()
            })
        };
        let owner = names.owner.as_str();
        assert_eq!(read(Some("conductor:u abc"), owner), ours("abc"));
        for comment in [None, Some("our main database"), Some("conductor:other abc")] {
            assert_eq!(read(comment, owner), ours(""), "{comment:?}");
        }
        let another = NameState::Foreign(ForeignOwner::Another("other".to_owned()));
        assert_eq!(read(Some("conductor:other abc"), "c_other"), another);
        for comment in [None, Some("theirs"), Some("conductor:u abc")] {
            assert_eq!(read(comment, "another"), NameState::Foreign(ForeignOwner::Unmarked), "{comment:?}");
        }
    }

    #[test]
    fn the_limits_of_a_database_are_read() {
        let names = Names::new("u", None);
        let text = |text: &str| Some(text.to_owned());
        let name = || text(names.database.as_str());
        let read = |limit: &str, is_template: &str, connects: &str| {
            let rows = [
                [text("role"), text(names.owner.as_str()), text("false"), text("conductor:u"), None, None],
                [text("database"), name(), text("true"), None, text("0"), text(names.owner.as_str())],
                [text("limits"), name(), text(is_template), text(limit), None, text(connects)],
            ];
            read_survey(&names, &rows).database.ours().and_then(|found| found.limits.clone())
        };
        let limits = |connections, is_template, owner_connects| {
            Some(ObservedLimits { connections, is_template, owner_connects })
        };
        assert_eq!(read("-1", "false", "true"), limits(None, false, true));
        assert_eq!(read("0", "true", "false"), limits(Some(0), true, false));
    }
}
