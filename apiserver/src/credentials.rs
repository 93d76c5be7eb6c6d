//! What clients need to reconnect after a restart: the administrator's token, the key of the certificate authority, and the
//! port. Kept in the data folder, in a file that only its owner reads. An API in memory keeps none.

use super::token::made_up;
use rcgen::KeyPair;
use serde_json::{Value, json};
use std::fs::{self, OpenOptions};
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

const FILE: &str = "access.json";

/// What is kept, and where. Neither token nor key is ever shown.
pub(super) struct Credentials {
    file: Option<PathBuf>,
    pub token: String,
    pub authority: KeyPair,
    pub port: Option<u16>,
}

impl Credentials {
    /// Reads them from a folder. What is missing or unreadable is created: clients then need the new kubeconfig.
    ///
    /// # Errors
    /// The key cannot be generated.
    pub fn open(folder: Option<&Path>) -> Result<Credentials, String> {
        let file = folder.map(|folder| folder.join(FILE));
        let kept = file.as_ref().and_then(|file| fs::read(file).ok());
        let kept: Value = kept.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        let authority = kept["authorityKey"].as_str().and_then(|text| KeyPair::from_pem(text).ok());
        let authority = match authority {
            Some(key) => key,
            None => KeyPair::generate().map_err(|error| error.to_string())?,
        };
        let token = kept["token"].as_str().filter(|token| !token.is_empty()).map(str::to_owned);
        let port = kept["port"].as_u64().and_then(|port| u16::try_from(port).ok());
        Ok(Credentials { file, token: token.unwrap_or_else(made_up), authority, port })
    }

    /// Stores them, in a temporary file first: a partial file would lock every client out.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&self, port: u16) -> std::io::Result<()> {
        let Some(file) = &self.file else { return Ok(()) };
        let text = json!({"token": self.token, "authorityKey": self.authority.serialize_pem(), "port": port});
        let beside = file.with_extension("new");
        if beside.exists() {
            fs::remove_file(&beside)?;
        }
        let mut new = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&beside)?;
        new.write_all(text.to_string().as_bytes())?;
        fs::rename(&beside, file)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_is_kept_comes_back_and_what_is_damaged_is_made_anew() {
        let folder = std::env::temp_dir().join(format!("conductor-credentials-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let first = Credentials::open(Some(&folder)).unwrap();
        first.keep(4711).unwrap();
        let again = Credentials::open(Some(&folder)).unwrap();
        assert_eq!((again.token.as_str(), again.port), (first.token.as_str(), Some(4711)));
        assert_eq!(again.authority.serialize_pem(), first.authority.serialize_pem());
        assert_eq!(fs::metadata(folder.join(FILE)).unwrap().permissions().mode() & 0o777, 0o600);
        fs::write(folder.join(FILE), "{\"token\": 7").unwrap();
        assert_ne!(Credentials::open(Some(&folder)).unwrap().token, first.token);
        assert_ne!(Credentials::open(None).unwrap().token, first.token, "nothing is shared in memory");
        fs::remove_dir_all(&folder).unwrap();
    }
}
