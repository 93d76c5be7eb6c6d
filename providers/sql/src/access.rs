//! The address of a server and the login for it: everything that opening a connection requires.

use super::secret::Password;
use conductor::api::database::server::SslMode;
use conductor_sql_plan::sql::Dialect;

/// Everything that opening a connection requires.
#[derive(Clone, Debug)]
pub struct Access {
    /// The server's dialect.
    pub dialect: Dialect,
    /// The server's name or address.
    pub host: String,
    /// The server's port.
    pub port: u16,
    /// The TLS mode.
    pub ssl_mode: SslMode,
    /// The user's name.
    pub username: String,
    /// The user's password.
    pub password: Password,
    /// The database.
    pub database: String,
}

impl Access {
    /// The same server with another login, in another database.
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

    /// The address, for messages.
    pub fn place(&self) -> String {
        format!("{}:{}", self.host, self.port)
    }
}
