//! Statements: one function that quotes, and for each engine the text of every step. Nothing is sent here.

pub mod mariadb;
pub mod postgresql;
pub mod role;
mod survey;

pub use survey::{OPEN_GRANTS, Row, read_open_grants, read_survey, survey};

use super::names::Identifier;
use super::plan::Step;
use super::rules::Wanted;

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Dialect {
    /// PostgreSQL.
    Postgresql,
    /// MariaDB.
    Mariadb,
    /// MySQL, from 8.0 on. It speaks the protocol of MariaDB: which of the two it is, a server tells when it is spoken to.
    Mysql,
}

impl Dialect {
    /// Whether a database can be sealed and renamed.
    pub fn renames(self) -> bool {
        match self {
            Dialect::Postgresql => true,
            Dialect::Mariadb | Dialect::Mysql => false,
        }
    }

    /// Whether a role owns each database. Elsewhere the mark on the database stands for it.
    pub fn has_owners(self) -> bool {
        match self {
            Dialect::Postgresql => true,
            Dialect::Mariadb | Dialect::Mysql => false,
        }
    }

    /// The word for it in a connection.
    pub fn word(self) -> &'static str {
        match self {
            Dialect::Postgresql => "postgresql",
            Dialect::Mariadb | Dialect::Mysql => "mysql",
        }
    }

    /// A name as it stands in a statement.
    pub fn name(self, name: &Identifier) -> String {
        match self {
            Dialect::Postgresql => quote(name.as_str(), '"'),
            Dialect::Mariadb | Dialect::Mysql => quote(name.as_str(), '`'),
        }
    }

    /// A text as it stands in a statement. Every text that is not a name goes through here or as a parameter.
    pub fn text(self, text: &str) -> String {
        let text = text.replace('\0', "");
        match self {
            // As libpq has it: a backslash means itself whatever the server's settings.
            Dialect::Postgresql if text.contains('\\') => {
                format!(" E{}", quote(&text.replace('\\', "\\\\"), '\''))
            }
            Dialect::Postgresql => quote(&text, '\''),
            Dialect::Mariadb | Dialect::Mysql => quote(&text.replace('\\', "\\\\"), '\''),
        }
    }
}

/// The one function that puts quotes around anything.
fn quote(text: &str, mark: char) -> String {
    format!("{mark}{}{mark}", text.replace(mark, &format!("{mark}{mark}")))
}

/// Where statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum At {
    /// The administrator's own database.
    Server,
    /// The claim's database.
    Inside,
    /// The administrator's own database; what comes back are statements, which are sent one by one.
    EachRow,
    /// The administrator's own database; what comes back are databases, and what is sent inside each.
    Elsewhere,
    /// The administrator's own database. A tenant can keep it waiting; while it does, the batches after this one are sent
    /// again and again on another connection, for they end what it waits for. They are sent once more after it.
    Contested,
    /// The claim's database, where that is possible now: a failure changes nothing, and a later step tries again.
    Attempt,
}

/// Statements that are sent together: on PostgreSQL all of them happen or none.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Where.
    pub at: At,
    /// What.
    pub text: String,
}

impl Batch {
    fn server(statements: &[String]) -> Batch {
        Batch { at: At::Server, text: statements.join("; ") }
    }

    /// In the claim's database, if no tenant's lock is in the way for longer than a moment.
    fn attempt(statements: &[String]) -> Batch {
        let moment = "SET LOCAL lock_timeout = '2s'".to_owned();
        let statements: Vec<String> = [moment].into_iter().chain(statements.iter().cloned()).collect();
        Batch { at: At::Attempt, ..Batch::inside(&statements) }
    }

    /// Its owner chooses what sessions in a database begin with: it is put right first, also where a pooler took no
    /// start-up options, and for this message only.
    fn inside(statements: &[String]) -> Batch {
        Batch { at: At::Inside, text: format!("{}; {}", postgresql::PIN, statements.join("; ")) }
    }
}

/// What a statement needs that the plan does not know.
#[derive(Clone, Copy, Debug, Default)]
pub struct Extras<'a> {
    /// The verifier of a password: what the server keeps instead of it.
    pub verifier: &'a str,
    /// Whether the administrator needs no membership to act for a role.
    pub is_superuser: bool,
}

/// The statements of a step, in order; none where the step is no business of the server's.
pub fn statements(step: &Step, wanted: &Wanted, extras: Extras<'_>) -> Vec<Batch> {
    match wanted.dialect {
        Dialect::Postgresql => postgresql::statements(step, wanted, extras),
        Dialect::Mariadb | Dialect::Mysql => mariadb::statements(step, wanted, extras),
    }
}

/// Ends what an application chose that sessions in its database begin with; nothing where the engine has no such thing.
pub fn reset_settings(dialect: Dialect, database: &Identifier) -> Option<Batch> {
    match dialect {
        Dialect::Postgresql => Some(postgresql::reset_settings(postgresql::Holder::Database(database))),
        Dialect::Mariadb | Dialect::Mysql => None,
    }
}

/// The question for what an administrator chose that may keep a user out of a database, each as what ends it; nothing
/// where the engine has no such thing.
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
