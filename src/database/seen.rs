//! What a server shows of one database: its owner, its two users, the database itself under either of its names.
//! What it shows is believed; how it was asked is the provider's.

use super::names::{Mark, User};
use crate::api::database::role::RoleAccess;

/// One thing on a server.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Place<T> {
    /// It is not there.
    #[default]
    Free,
    /// It is there and does not carry our mark.
    Foreign,
    /// It is ours.
    Ours(T),
}

impl<T> Place<T> {
    /// What is ours, where it is.
    pub fn ours(&self) -> Option<&T> {
        match self {
            Place::Ours(found) => Some(found),
            Place::Free | Place::Foreign => None,
        }
    }

    /// Reads one thing: whether it is there, and its mark.
    pub fn read(comment: Option<&str>, id: &str, found: impl FnOnce(Mark) -> T) -> Place<T> {
        match comment.and_then(Mark::read) {
            Some(mark) if mark.id == id => Place::Ours(found(mark)),
            Some(_) | None => Place::Foreign,
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
}

impl Seen {
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
