//! What a server shows of one database: its owner, its two users, the database itself under either of its names.
//! The provider sends the query.

use super::names::{Mark, User};
use conductor::api::database::role::RoleAccess;

/// What exists under a name on a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum NameState<T> {
    /// Nothing.
    #[default]
    Free,
    /// An object without our mark.
    Foreign(ForeignOwner),
    /// Our object.
    Ours(T),
}

/// Who owns an object that is not ours.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ForeignOwner {
    /// It carries no mark of Conductor: another client created it.
    Unmarked,
    /// It carries the mark of another database or role of Conductor, by its id.
    Another(String),
}

impl<T> NameState<T> {
    /// Our object, if it is ours.
    pub fn ours(&self) -> Option<&T> {
        match self {
            NameState::Ours(found) => Some(found),
            NameState::Free | NameState::Foreign(_) => None,
        }
    }

    /// Its owner, if it is not ours.
    pub fn foreign_owner(&self) -> Option<&ForeignOwner> {
        match self {
            NameState::Foreign(foreign_owner) => Some(foreign_owner),
            NameState::Free | NameState::Ours(_) => None,
        }
    }

    /// Reads the state of a name that exists from the object's comment.
    pub fn read(comment: Option<&str>, id: &str, found: impl FnOnce(Mark) -> T) -> NameState<T> {
        match comment.and_then(Mark::read) {
            Some(mark) if mark.id == id => NameState::Ours(found(mark)),
            Some(mark) => NameState::Foreign(ForeignOwner::Another(mark.id)),
            None => NameState::Foreign(ForeignOwner::Unmarked),
        }
    }
}

/// One of our users.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedUser {
    /// The number of its password, from 1; 0 for none.
    pub generation: u64,
    /// Whether it may log in.
    pub can_log_in: bool,
    /// Its open sessions.
    pub sessions: u64,
}

/// One of our databases.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObservedDatabase {
    /// The digest of its last set-up; empty before the first.
    pub set_up: String,
    /// Whether it takes connections.
    pub is_open: bool,
    /// Open sessions on it, of any user.
    pub sessions: u64,
    /// What its owner may have changed, where the engine lets an owner do that.
    pub limits: Option<ObservedLimits>,
}

/// What the owner of a database can change of the database itself, and what decides who may use it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ObservedLimits {
    /// The connection limit; none for as many as the server allows.
    pub connections: Option<u32>,
    /// Whether every login that creates databases can copy it.
    pub is_template: bool,
    /// Whether its owner, and with it every login of its application, has the right to connect.
    pub owner_connects: bool,
}

/// A grant on databases by a pattern of their names, as MariaDB and MySQL have them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenGrant {
    /// The pattern: `_` is any character and `%` any text, unless escaped by a backslash.
    pub pattern: String,
    /// The grantee: `PUBLIC`, or empty for every user.
    pub user: String,
    /// The grantee's host.
    pub host: String,
}

impl OpenGrant {
    /// Whether it grants to every login of the server.
    pub fn is_for_all(&self) -> bool {
        self.user.is_empty() || self.user == "PUBLIC"
    }

    /// Whether it opens a matching database to logins that an administrator did not mean: it is for every login, or for
    /// a family of names. A grant on exactly this name was meant, and one on every name is an administrator's.
    pub fn is_open(&self) -> bool {
        let plain = self.pattern.replace("\\_", "").replace("\\%", "");
        let is_family = plain.contains(['_', '%']) && !self.pattern.chars().all(|c| c == '%');
        self.is_for_all() || is_family
    }

    /// The statement that revokes it. An account without a name can only be deleted from the server's table.
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

/// Everything that a server shows of one database.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Observed {
    /// The owner; ours where the engine has none.
    pub owner: NameState<()>,
    /// The groups that read, and that read and write; free where the engine has none.
    pub groups: [NameState<()>; 2],
    /// User A, user B.
    pub users: [NameState<ObservedUser>; 2],
    /// The database under its name.
    pub database: NameState<ObservedDatabase>,
    /// The database under its quarantine name; free where the engine cannot rename.
    pub quarantined: NameState<ObservedDatabase>,
    /// A grant of the server that would let other logins into a database of this name.
    pub open: Option<OpenGrant>,
}

impl Observed {
    /// Whether nothing on the server carries our mark.
    pub fn has_nothing_of_ours(&self) -> bool {
        let Observed { owner, groups, users, database, quarantined, open: _ } = self;
        let roles = owner.ours().is_some() || groups.iter().any(|group| group.ours().is_some());
        let users = users.iter().any(|user| user.ours().is_some());
        !roles && !users && database.ours().is_none() && quarantined.ours().is_none()
    }

    /// Whether the server shows the database, under either of its names.
    pub fn has_database(&self) -> bool {
        self.database.ours().is_some() || self.quarantined.ours().is_some()
    }

    /// One of the groups.
    pub fn group(&self, access: RoleAccess) -> &NameState<()> {
        &self.groups[access as usize]
    }

    /// One of the users.
    pub fn user(&self, user: User) -> &NameState<ObservedUser> {
        &self.users[user as usize]
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
