//! What a server shows of one database: its owner, its two users, the database itself under either of its names.
//! What it shows is believed; how it was asked is the provider's.

use super::names::{Mark, User};
use conductor::api::database::role::RoleAccess;

/// One thing on a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place<T> {
    /// It is not there.
    #[default]
    Free,
    /// It is there and does not carry our mark.
    Foreign(Stranger),
    /// It is ours.
    Ours(T),
}

/// Whose something is that is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stranger {
    /// It carries no mark of Conductor's: somebody else made it.
    Unmarked,
    /// It carries the mark of another database or role of Conductor's, by its id.
    Another(String),
}

impl<T> Place<T> {
    /// What is ours, where it is.
    pub fn ours(&self) -> Option<&T> {
        match self {
            Place::Ours(found) => Some(found),
            Place::Free | Place::Foreign(_) => None,
        }
    }

    /// Whose it is, where it is not ours.
    pub fn stranger(&self) -> Option<&Stranger> {
        match self {
            Place::Foreign(stranger) => Some(stranger),
            Place::Free | Place::Ours(_) => None,
        }
    }

    /// Reads one thing: whether it is there, and its mark.
    pub fn read(comment: Option<&str>, id: &str, found: impl FnOnce(Mark) -> T) -> Place<T> {
        match comment.and_then(Mark::read) {
            Some(mark) if mark.id == id => Place::Ours(found(mark)),
            Some(mark) => Place::Foreign(Stranger::Another(mark.id)),
            None => Place::Foreign(Stranger::Unmarked),
        }
    }
}

/// A user that is ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenUser {
    /// Which of the database's passwords it has, counted from one; 0 for none.
    pub generation: u64,
    /// Whether it may log in.
    pub can_log_in: bool,
    /// Its sessions now.
    pub sessions: u64,
}

/// A database that is ours.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SeenDatabase {
    /// What its inside was last set up as; empty where it was not yet.
    pub set_up: String,
    /// Whether it takes connections.
    pub is_open: bool,
    /// Sessions on it now, whoever's.
    pub sessions: u64,
    /// What its owner may have changed of it, where the engine lets an owner do that.
    pub limits: Option<SeenLimits>,
}

/// What the owner of a database can change of the database itself, and which decides who may use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeenLimits {
    /// Most connections at a time; none for as many as the server takes.
    pub connections: Option<u32>,
    /// Whether every login that creates databases can copy it.
    pub is_template: bool,
    /// Whether its owner, and with it every login of its application, has the right to connect.
    pub owner_connects: bool,
}

/// A grant on databases by a pattern of their names, as servers of MySQL's family have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenGrant {
    /// The pattern: `_` is any character and `%` any text, unless a backslash stands before it.
    pub pattern: String,
    /// The user that it is for: `PUBLIC`, or empty for every one.
    pub user: String,
    /// Where that user comes from.
    pub host: String,
}

impl OpenGrant {
    /// Whether it is for every login of the server.
    pub fn is_for_all(&self) -> bool {
        self.user.is_empty() || self.user == "PUBLIC"
    }

    /// Whether it opens a database that it matches to others than an administrator meant: it is for every login, or for
    /// a family of names. One on exactly this name was meant, and one on every name is an administrator's.
    pub fn is_open(&self) -> bool {
        let plain = self.pattern.replace("\\_", "").replace("\\%", "");
        let is_family = plain.contains(['_', '%']) && !self.pattern.chars().all(|c| c == '%');
        self.is_for_all() || is_family
    }

    /// The statement that ends it. A server takes an account without a name out of its table only.
    pub fn remedy(&self) -> String {
        let OpenGrant { pattern, user, host } = self;
        match user.as_str() {
            "PUBLIC" => format!("REVOKE ALL PRIVILEGES ON `{pattern}`.* FROM PUBLIC"),
            "" => {
                format!("DROP USER ''@'{host}' or DELETE FROM mysql.db WHERE User = '', and FLUSH PRIVILEGES")
            }
            user => format!("REVOKE ALL PRIVILEGES ON `{pattern}`.* FROM '{user}'@'{host}'"),
        }
    }
}

/// Everything of one database that a server shows.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen {
    /// The owner; ours where the engine has none.
    pub owner: Place<()>,
    /// The groups that read, and that read and write; free where the engine has none.
    pub groups: [Place<()>; 2],
    /// User A, user B.
    pub users: [Place<SeenUser>; 2],
    /// The database under its name.
    pub database: Place<SeenDatabase>,
    /// The database under its name in quarantine; free where the engine cannot rename.
    pub quarantined: Place<SeenDatabase>,
    /// A grant of the server that would let others into a database of this name.
    pub open: Option<OpenGrant>,
}

impl Seen {
    /// Whether the server shows nothing that carries our mark.
    pub fn has_nothing_of_ours(&self) -> bool {
        let Seen { owner, groups, users, database, quarantined, open: _ } = self;
        let roles = owner.ours().is_some() || groups.iter().any(|group| group.ours().is_some());
        let users = users.iter().any(|user| user.ours().is_some());
        !roles && !users && database.ours().is_none() && quarantined.ours().is_none()
    }

    /// Whether the server shows the database, under either of its names.
    pub fn has_database(&self) -> bool {
        self.database.ours().is_some() || self.quarantined.ours().is_some()
    }

    /// One of the groups.
    pub fn group(&self, access: RoleAccess) -> &Place<()> {
        match access {
            RoleAccess::ReadOnly => &self.groups[0],
            RoleAccess::ReadWrite => &self.groups[1],
        }
    }

    /// One of the users.
    pub fn user(&self, user: User) -> &Place<SeenUser> {
        match user {
            User::A => &self.users[0],
            User::B => &self.users[1],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_grant_by_a_pattern_is_open_unless_it_was_meant() {
        let grant = |pattern: &str, user: &str| OpenGrant {
            pattern: pattern.to_owned(),
            user: user.to_owned(),
            host: "%".to_owned(),
        };
        for (pattern, user, is_open) in [
            ("test\\_%", "PUBLIC", true),
            ("test", "PUBLIC", true),
            ("test\\_%", "", true),
            ("%", "", true),
            ("app\\_%", "dev", true),
            ("app_x", "dev", true),
            ("app\\_x", "dev", false),
            ("100\\%", "dev", false),
            ("%", "backup", false),
        ] {
            assert_eq!(grant(pattern, user).is_open(), is_open, "{pattern} {user}");
        }
        assert_eq!(grant("test\\_%", "PUBLIC").remedy(), "REVOKE ALL PRIVILEGES ON `test\\_%`.* FROM PUBLIC");
    }
}
