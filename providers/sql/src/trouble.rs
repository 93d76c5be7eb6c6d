//! What can go wrong on the way to a database, in words for people: what happened, and what to do about it where that
//! is known. No statement and no password is ever part of it.

use std::fmt;

/// The reason of a login that was made, tried and refused.
pub(super) const LOGIN_REFUSED: &str = "LoginRefused";

/// The reason of what cannot be honoured as it is written.
pub(super) const INVALID: &str = "Invalid";

/// Why something could not be done. All of it is tried again, with growing pauses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The server does not answer, or not in time.
    Unreachable(String),
    /// The server does not know the administrator, or not by this password.
    Credentials(String),
    /// The server refuses: a right is missing, it is full, it may not be written to.
    Refused(String),
    /// The server knows who it is, and lets no more of them in.
    Crowded(String),
    /// The server does not take a login that was made for an application: it is not published.
    LoginRefused(String),
    /// Another server answers than the one on record: nothing is done there.
    WrongServer(String),
    /// The API refuses or does not answer.
    Api(String),
    /// Another has changed the object: it is looked at anew.
    Conflict,
    /// The object, the server's or the claim's, cannot be honoured as it is written.
    Invalid(String),
    /// This process does not lead any more.
    NotLeading,
}

impl Trouble {
    /// One word for it, for conditions and figures.
    pub fn reason(&self) -> &'static str {
        match self {
            Trouble::Unreachable(_) => "ServerUnreachable",
            Trouble::Credentials(_) => "AdministratorRefused",
            Trouble::Refused(_) => "ServerRefuses",
            Trouble::Crowded(_) => "ConnectionLimit",
            Trouble::LoginRefused(_) => LOGIN_REFUSED,
            Trouble::WrongServer(_) => "WrongServer",
            Trouble::Api(_) => "ApiUnavailable",
            Trouble::Conflict => "Conflict",
            Trouble::Invalid(_) => INVALID,
            Trouble::NotLeading => "NotLeading",
        }
    }
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Trouble::Unreachable(why)
            | Trouble::Credentials(why)
            | Trouble::Refused(why)
            | Trouble::Crowded(why)
            | Trouble::LoginRefused(why)
            | Trouble::WrongServer(why)
            | Trouble::Invalid(why) => f.write_str(why),
            Trouble::Api(why) => write!(f, "the API: {why}"),
            Trouble::Conflict => f.write_str("somebody else changed it meanwhile; it is tried again"),
            Trouble::NotLeading => f.write_str("another process leads now"),
        }
    }
}

impl std::error::Error for Trouble {}
