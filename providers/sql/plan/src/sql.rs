//! The statements of every step, for each engine, and the one function that quotes. Nothing is sent here.

pub mod mariadb;
pub mod postgresql;
mod query;
pub mod role;

pub use query::{OPEN_GRANTS, Row, read_open_grants, read_survey, survey};

use super::names::Identifier;
use super::plan::Step;
use super::policy::DesiredDatabase;

/// The SQL dialect of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// PostgreSQL.
    Postgresql,
    /// MariaDB.
    Mariadb,
    /// MySQL, from 8.0 on. It shares MariaDB's protocol: a server shows which of the two it is in its greeting.
    Mysql,
}

impl Dialect {
    /// Whether a database can be closed to connections and renamed.
    pub fn renames(self) -> bool {
        match self {
            Dialect::Postgresql => true,
            Dialect::Mariadb | Dialect::Mysql => false,
        }
    }

    /// Whether a role owns each database. Elsewhere the mark on the database takes its part.
    pub fn has_owners(self) -> bool {
        match self {
            Dialect::Postgresql => true,
            Dialect::Mariadb | Dialect::Mysql => false,
        }
    }

    /// Its name in connections.
    pub fn word(self) -> &'static str {
        match self {
            Dialect::Postgresql => "postgresql",
            Dialect::Mariadb | Dialect::Mysql => "mysql",
        }
    }

    /// Quotes a name for a statement.
    pub fn name(self, name: &Identifier) -> String {
        match self {
            Dialect::Postgresql => quote(name.as_str(), '"'),
            Dialect::Mariadb | Dialect::Mysql => quote(name.as_str(), '`'),
        }
    }

    /// Quotes a text for a statement. Every text that is not a name is quoted here or sent as a parameter.
    pub fn text(self, text: &str) -> String {
        let text = text.replace('\0', "");
        match self {
            // As libpq does: a backslash stands for itself whatever the server's settings.
            Dialect::Postgresql if text.contains('\\') => {
                format!(" E{}", quote(&text.replace('\\', "\\\\"), '\''))
            }
            Dialect::Postgresql => quote(&text, '\''),
            Dialect::Mariadb | Dialect::Mysql => quote(&text.replace('\\', "\\\\"), '\''),
        }
    }
}

/// The one function that quotes.
fn quote(text: &str, mark: char) -> String {
    format!("{mark}{}{mark}", text.replace(mark, &format!("{mark}{mark}")))
}

/// Where a batch is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The administrator's own database.
    Server,
    /// The claim's database.
    Inside,
    /// The administrator's own database; the rows are statements, which are sent one by one.
    EachRow,
    /// The administrator's own database; the rows are databases, and the statements to send inside each.
    Elsewhere,
    /// The administrator's own database. A tenant can block it; meanwhile, the batches after this one are repeated on
    /// another connection, because they end what blocks it. They are sent once more after it.
    Contested,
    /// The claim's database, if possible now: a failure changes nothing, and a later step retries.
    Attempt,
}

/// Statements that are sent together: on PostgreSQL all of them happen or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Where it is sent.
    pub at: At,
    /// The statements.
    pub text: String,
}

impl Batch {
    fn server(statements: &[String]) -> Batch {
        Batch { at: At::Server, text: statements.join("; ") }
    }

    /// In the claim's database, unless a tenant's lock blocks it for longer than a moment.
    fn attempt(statements: &[String]) -> Batch {
        let moment = "SET LOCAL lock_timeout = '2s'".to_owned();
        let statements: Vec<String> = [moment].into_iter().chain(statements.iter().cloned()).collect();
        Batch { at: At::Attempt, ..Batch::inside(&statements) }
    }

    /// The owner of a database chooses the settings of its sessions: pin ours first, also where a pooler took no start-up
    /// options, and for this message only.
    fn inside(statements: &[String]) -> Batch {
        Batch { at: At::Inside, text: format!("{}; {}", postgresql::PIN, statements.join("; ")) }
    }
}

/// What a statement needs that the plan does not know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    /// The verifier of a password, which the server stores instead of it.
    pub verifier: &'a str,
    /// Whether the administrator can act for a role without membership.
    pub is_superuser: bool,
}

/// The statements of a step, in order; none where the step does not concern the server.
pub fn statements(step: &Step, desired: &DesiredDatabase, extras: Extras<'_>) -> Vec<Batch> {
    match desired.dialect {
        Dialect::Postgresql => postgresql::statements(step, desired, extras),
        Dialect::Mariadb | Dialect::Mysql => mariadb::statements(step, desired, extras),
    }
}

/// Resets the session settings that an application chose for its database; none where the engine has no such settings.
pub fn reset_settings(dialect: Dialect, database: &Identifier) -> Option<Batch> {
    match dialect {
        Dialect::Postgresql => Some(postgresql::reset_settings(postgresql::Holder::Database(database))),
        Dialect::Mariadb | Dialect::Mysql => None,
    }
}

/// The query for an administrator's settings that may keep a user out of a database, each as the statement that resets it;
/// none where the engine has no such settings.
pub fn remaining_settings(dialect: Dialect, database: &Identifier, user: &Identifier) -> Option<String> {
    match dialect {
        Dialect::Postgresql => Some(postgresql::remaining_settings(database, user)),
        Dialect::Mariadb | Dialect::Mysql => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Reads a quoted text as the server does; nothing where it does not end exactly at its end.
    fn unquote(dialect: Dialect, quoted: &str) -> Option<String> {
        let (escapes, quoted) = match (dialect, quoted.strip_prefix(" E")) {
            (_, Some(rest)) => (true, rest),
            (dialect, None) => (dialect == Dialect::Mariadb, quoted),
        };
        let mut chars = quoted.strip_prefix('\'')?.chars().peekable();
        let mut text = String::new();
        while let Some(c) = chars.next() {
            match c {
                '\\' if escapes => text.push(chars.next()?),
                '\'' if chars.peek() == Some(&'\'') => text.extend(chars.next()),
                '\'' => return chars.next().is_none().then_some(text),
                c => text.push(c),
            }
        }
        None
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(10_000))]

        #[test]
        fn no_text_ever_leaves_its_quotes(text in "([a-z;'\"\\\\\0`\n]|.)*") {
            for dialect in [Dialect::Postgresql, Dialect::Mariadb] {
                let quoted = dialect.text(&text);
                prop_assert_eq!(unquote(dialect, &quoted), Some(text.replace('\0', "")), "{}", quoted);
            }
        }
    }
}
