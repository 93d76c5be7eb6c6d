//! The files of a mounted Secret, read as one login. A file that is missing, empty or half written makes no login.

use crate::Error;
use sha2::{Digest, Sha256};
use std::fmt;
use std::path::Path;
use tokio_postgres::Config;

/// A login, and a digest by which two can be told apart.
#[derive(Clone)]
pub struct Login {
    pub(crate) config: Config,
    pub(crate) digest: [u8; 32],
    user: String,
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Login").field("user", &self.user).finish_non_exhaustive()
    }
}

impl Login {
    /// Who logs in.
    pub fn user(&self) -> &str {
        &self.user
    }

    /// Reads a folder with the files host, port, username, password and database.
    ///
    /// # Errors
    /// The file that is missing or is not what it should be.
    pub async fn read(folder: &Path) -> Result<Login, Error> {
        let mut digest = Sha256::new();
        let mut values = Vec::new();
        for name in ["host", "port", "username", "password", "database"] {
            let path = folder.join(name);
            let text = tokio::fs::read_to_string(&path).await;
            let text = text.map_err(|error| Error::Incomplete(format!("file {}: {error}", path.display())))?;
            let text = text.trim_end_matches('\n').to_owned();
            if text.is_empty() {
                return Err(Error::Incomplete(format!("file {} is empty", path.display())));
            }
            digest.update([text.as_bytes(), b"\0"].concat());
            values.push(text);
        }
        let [host, port, user, password, database] = &values[..] else {
            return Err(Error::Incomplete("the folder holds no login".to_owned()));
        };
        let port: u16 = port
            .parse()
            .map_err(|_| Error::Incomplete(format!("file {}: no port", folder.join("port").display())))?;
        let mut config = Config::new();
        config.host(host).port(port).user(user).password(password).dbname(database);
        Ok(Login { config, digest: digest.finalize().into(), user: user.clone() })
    }
}
