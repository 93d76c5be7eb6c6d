//! Names on a server, derived from the UID of a claim and nothing else; and the mark on objects that are ours. A name
//! from a user is validated, never repaired.

use conductor::api::database::role::RoleAccess;
use conductor::model::ValueError;
use sha2::{Digest, Sha256};
use std::fmt;

/// Most bytes of a name that every engine takes.
const IDENTIFIER_MAX: usize = 63;
/// What every mark begins with.
const PREFIX: &str = "conductor:";

/// A name that needs no quotes anywhere: `^[a-z][a-z0-9_]{0,62}$`. It is quoted all the same.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Identifier(String);

impl Identifier {
    /// Reads a name that a user wrote.
    ///
    /// # Errors
    /// It has other characters, or is too long.
    pub fn read(text: &str) -> Result<Identifier, ValueError> {
        let plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_';
        match text.starts_with(|c: char| c.is_ascii_lowercase())
            && text.len() <= IDENTIFIER_MAX
            && text.chars().all(plain)
        {
            true => Ok(Identifier(text.to_owned())),
            false => Err(ValueError::new(
                text,
                "cannot be a name on a database server",
                "use up to 63 lower-case letters, digits and _, a letter first",
            )),
        }
    }

    /// The name of a schema: as another name, and none that PostgreSQL keeps for itself.
    ///
    /// # Errors
    /// It has other characters, is too long, or is reserved.
    pub fn read_schema(text: &str) -> Result<Identifier, ValueError> {
        match text.starts_with("pg_") {
            true => Err(ValueError::new(text, "is reserved by PostgreSQL", "do not begin it with pg_")),
            false => Identifier::read(text),
        }
    }

    /// The name of an extension: as another name, and it may hold `-`.
    ///
    /// # Errors
    /// It has other characters, or is too long.
    pub fn read_extension(text: &str) -> Result<Identifier, ValueError> {
        Identifier::read(&text.replace('-', "_")).map(|_| Identifier(text.to_owned())).map_err(|error| {
            ValueError::new(text, error.problem, "use up to 63 lower-case letters, digits, _ and -")
        })
    }

    /// Reads a name that a user chose for a database. Generated names have other prefixes.
    ///
    /// # Errors
    /// It has other characters, is too long, or looks like one of ours.
    pub fn read_chosen(text: &str) -> Result<Identifier, ValueError> {
        match ["c_", "r_"].iter().any(|prefix| text.starts_with(prefix)) {
            true => Err(ValueError::new(
                text,
                "looks like a name that Conductor makes",
                "do not begin it with c_ or r_",
            )),
            false => Identifier::read(text),
        }
    }

    /// The same for a user, of which two are made.
    ///
    /// # Errors
    /// As for a database; and with two characters less.
    pub fn read_user(text: &str) -> Result<Identifier, ValueError> {
        match text.len() <= IDENTIFIER_MAX - 2 {
            true => Identifier::read_chosen(text),
            false => Err(ValueError::new(text, "is too long for a user", "use up to 61 characters")),
        }
    }

    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Identifier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

/// One of the two users that alternate.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum User {
    /// The first.
    A,
    /// The second.
    B,
}

impl User {
    /// Both.
    pub const BOTH: [User; 2] = [User::A, User::B];

    /// The one that is not this.
    pub fn other(self) -> User {
        match self {
            User::A => User::B,
            User::B => User::A,
        }
    }

    /// The letter that stands for it in Secrets.
    pub fn letter(self) -> &'static str {
        match self {
            User::A => "a",
            User::B => "b",
        }
    }

    /// Reads what [`User::letter`] wrote.
    pub fn find(letter: &str) -> Option<User> {
        User::BOTH.into_iter().find(|user| user.letter() == letter)
    }
}

/// The names of one database and of everything that belongs to it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Names {
    /// The id in its marks.
    pub id: String,
    /// The role that owns everything and cannot log in.
    pub owner: Identifier,
    /// The database.
    pub database: Identifier,
    /// The database while it is in quarantine.
    pub quarantined: Identifier,
    users: [Identifier; 2],
    groups: [Identifier; 2],
}

impl Names {
    /// The names for an id, the UID of a claim. `database` is the name that the claim chose, if any.
    pub fn new(id: &str, database: Option<Identifier>) -> Names {
        let stem = format!("c_{}", digest(id));
        let name = |suffix: &str| Identifier(format!("{stem}{suffix}"));
        Names {
            id: id.to_owned(),
            owner: name(""),
            database: database.unwrap_or_else(|| name("")),
            quarantined: name("_q"),
            users: [name("_a"), name("_b")],
            groups: [name("_r"), name("_w")],
        }
    }

    /// The names as recorded. An invalid recorded name is replaced by the generated one, which is safe.
    pub fn read(id: &str, database: &str, user: Option<&str>) -> Names {
        let user = user.and_then(|user| Identifier::read_user(user).ok());
        Names::new(id, Identifier::read(database).ok()).with_user(user.as_ref())
    }

    /// The same, with the user name that the claim chose.
    #[must_use]
    pub fn with_user(mut self, user: Option<&Identifier>) -> Names {
        if let Some(user) = user {
            self.users = ["_a", "_b"].map(|suffix| Identifier(format!("{user}{suffix}")));
        }
        self
    }

    /// The group with this access to the database.
    pub fn group(&self, access: RoleAccess) -> &Identifier {
        &self.groups[access as usize]
    }

    /// A user's name.
    pub fn user(&self, user: User) -> &Identifier {
        &self.users[user as usize]
    }

    /// The mark on an object that is ours.
    pub fn mark(&self, note: &str) -> Mark {
        Mark { id: self.id.clone(), note: note.to_owned() }
    }
}

/// A generated name, valid on every engine.
pub(super) fn plain_name(text: String) -> Identifier {
    Identifier(text)
}

/// Twenty-six hexadecimal digits: a UID may hold anything, two must never share a name, and MySQL has users of no more
/// than 32 characters.
pub(super) fn digest(id: &str) -> String {
    Sha256::digest(id.as_bytes()).iter().take(13).map(|byte| format!("{byte:02x}")).collect()
}

/// The mark on an object that is ours: the database that it belongs to, and a note on how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mark {
    /// The id of the database that it belongs to.
    pub id: String,
    /// On a user, the number of its password; on a database, the digest of its set-up.
    pub note: String,
}

impl Mark {
    /// Reads a mark; a comment of another client is none.
    pub fn read(comment: &str) -> Option<Mark> {
        let (id, note) =
            comment.strip_prefix(PREFIX)?.split_once(' ').unwrap_or((&comment[PREFIX.len()..], ""));
        Some(Mark { id: id.to_owned(), note: note.to_owned() })
    }
}

impl fmt::Display for Mark {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.note.as_str() {
            "" => write!(f, "{PREFIX}{}", self.id),
            note => write!(f, "{PREFIX}{} {note}", self.id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_name_is_plain_or_refused() {
        for good in ["a", "orders", "a_1", &"a".repeat(63)] {
            assert_eq!(Identifier::read(good).map(|name| name.to_string()), Ok(good.to_owned()));
        }
        for bad in ["", "A", "1a", "_a", "a b", "a\"", "a'; drop", "ä", "a-b", "a.b", "a\0", &"a".repeat(64)]
        {
            assert!(Identifier::read(bad).is_err(), "{bad}");
        }
        assert!(Identifier::read_extension("uuid-ossp").is_ok());
        assert!(Identifier::read_extension("-x").is_err());
    }

    proptest! {
        #[test]
        fn names_are_safe_and_differ_whatever_the_uid(one in ".*", two in ".*") {
            let names = Names::new(&one, None);
            for name in [&names.owner, &names.database, &names.quarantined, names.user(User::A), names.user(User::B)] {
                prop_assert!(Identifier::read(name.as_str()).is_ok(), "{name}");
            }
            prop_assert!(names.user(User::A).as_str().len() <= 32, "MySQL has no longer ones");
            prop_assert_eq!(one == two, names == Names::new(&two, None));
        }

        #[test]
        fn a_mark_reads_back(id in "[^ ]+", note in ".*") {
            let mark = Mark { id, note };
            prop_assert_eq!(Mark::read(&mark.to_string()), Some(mark));
        }

        #[test]
        fn what_is_read_as_a_name_is_one(text in ".*") {
            if let Ok(name) = Identifier::read(&text) {
                prop_assert_eq!(name.as_str(), &text);
                prop_assert!(text.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_'));
            }
        }
    }

    #[test]
    fn a_foreign_comment_is_no_mark() {
        for theirs in ["", "our main database", "conductor", "Conductor:x", " conductor:x"] {
            assert_eq!(Mark::read(theirs), None, "{theirs}");
        }
    }
}
