//! How a server is reached and by whom: everything that opening a connection takes, and nothing about who asked.

use super::secret::Password;
use conductor::api::database::server::SslMode;
use conductor_sql_plan::sql::Dialect;

/// Everything that opening a connection takes.
#[derive(Clone, Debug)]
pub struct Access {
    /// What the server speaks.
    pub dialect: Dialect,
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// How the connection is protected.
    pub ssl_mode: SslMode,
    /// Who logs in.
    pub username: String,
    /// With what.
    pub password: Password,
    /// To which database.
    pub database: String,
}

impl Access {
    /// The same server, as somebody else, in another database.
    pub fn log_in_as(&self, username: &str, password: Password, database: &str) -> Access {
        Access { username: username.to_owned(), password, database: database.to_owned(), ..self.clone() }
    }

    /// The same administrator, in another database.
    pub fn inside(&self, database: &str) -> Access {
        Access { database: database.to_owned(), ..self.clone() }
    }

    /// Whether a connection that was opened by `other` may be used for this.
    pub fn is_same(&self, other: &Access) -> bool {
        let Access { dialect, host, port, ssl_mode, username, password, database } = self;
        *dialect == other.dialect
            && *host == other.host
            && *port == other.port
            && *ssl_mode == other.ssl_mode
            && *username == other.username
            && password.expose() == other.password.expose()
            && *database == other.database
    }

    /// Where it leads, for people.
    pub fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}
