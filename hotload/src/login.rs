//! A login: where a database is and who logs in, read from the files of a Secret. Its output never has the password.

use crate::Error;
use crate::dsn::{self, Parts, common_name};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use secrecy::{ExposeSecret, SecretString};
use std::collections::BTreeMap;
use std::fmt;

/// The protocol of a server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Engine {
    /// PostgreSQL.
    Postgresql,
    /// MySQL or MariaDB.
    Mysql,
}

impl Engine {
    fn find(name: &str) -> Option<Engine> {
        match name.to_ascii_lowercase().as_str() {
            "postgres" | "postgresql" => Some(Engine::Postgresql),
            "mysql" | "mariadb" => Some(Engine::Mysql),
            _ => None,
        }
    }

    fn scheme(self) -> &'static str {
        match self {
            Engine::Postgresql => "postgresql",
            Engine::Mysql => "mysql",
        }
    }

    fn port(self) -> u16 {
        match self {
            Engine::Postgresql => 5432,
            Engine::Mysql => 3306,
        }
    }
}

/// How a connection is encrypted, with libpq's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SslMode {
    /// Never.
    Disable,
    /// If the server supports it.
    Prefer,
    /// Always, with any certificate.
    Require,
    /// Always, with a trusted certificate.
    VerifyCa,
    /// Always, with a trusted certificate for this host.
    VerifyFull,
}

impl SslMode {
    fn find(name: &str) -> Option<SslMode> {
        Some(match name.to_ascii_lowercase().replace('_', "-").as_str() {
            "disable" | "disabled" => SslMode::Disable,
            "allow" | "prefer" | "preferred" => SslMode::Prefer,
            "require" | "required" => SslMode::Require,
            "verify-ca" => SslMode::VerifyCa,
            "verify-full" | "verify-identity" => SslMode::VerifyFull,
            _ => return None,
        })
    }
}

/// Where a database is, and who logs in.
#[derive(Clone)]
pub struct Login {
    engine: Engine,
    host: String,
    port: u16,
    username: String,
    password: SecretString,
    database: String,
    ssl_mode: SslMode,
    /// Further parameters of the driver. Users put secrets here too, so they are never printed.
    parameters: BTreeMap<String, String>,
}

impl Login {
    /// Reads a login from the files of a Secret, by their names. With `dsn`, from that file alone; without, from the keys
    /// host, port, username, password and database, or else from `uri`, `dsn.txt` or `dsn`.
    ///
    /// # Errors
    /// A file is missing or invalid. The error has its name, never its content.
    pub fn from_files(files: &BTreeMap<String, String>, dsn: Option<&str>) -> Result<Login, Error> {
        let incomplete = |problem: String| Error::Incomplete(problem);
        let chosen = match dsn {
            Some(name) => Some(name),
            None if has_keys(files) => None,
            None => DSN_FILES.into_iter().find(|name| files.contains_key(*name)),
        };
        let parts = match chosen {
            Some(name) => {
                let text = files.get(name).filter(|text| !text.trim().is_empty());
                let text = text.ok_or_else(|| incomplete(format!("file {name} is missing or empty")))?;
                dsn::parse(text).map_err(|problem| incomplete(format!("file {name}: {problem}")))?
            }
            None => keys(files).map_err(incomplete)?,
        };
        Login::from_parts(parts, files).map_err(incomplete)
    }

    fn from_parts(mut parts: Parts, files: &BTreeMap<String, String>) -> Result<Login, String> {
        let named =
            parts.remove("scheme").or_else(|| parts.remove("type")).or_else(|| files.get("type").cloned());
        let engine = match named.as_deref() {
            None => Engine::Postgresql,
            Some(name) => Engine::find(name)
                .ok_or_else(|| format!("type {name:?} is not known: write postgresql, mysql or mariadb"))?,
        };
        let mut require = |name: &str| {
            let value = parts.remove(name).filter(|value| !value.is_empty());
            value.ok_or_else(|| format!("{name} is missing or empty"))
        };
        let (host, username, password, database) =
            (require("host")?, require("username")?, require("password")?, require("database")?);
        let port = match parts.remove("port") {
            None => engine.port(),
            Some(text) => {
                let port = text.trim().parse().ok().filter(|port| *port != 0);
                port.ok_or("port is not a number from 1 to 65535")?
            }
        };
        let ssl_mode = match parts.remove("sslmode") {
            None => SslMode::Prefer,
            Some(name) => SslMode::find(&name).ok_or_else(|| {
                format!(
                    "sslmode {name:?} is not known: write disable, prefer, require, verify-ca or verify-full"
                )
            })?,
        };
        Ok(Login {
            engine,
            host,
            port,
            username,
            password: password.into(),
            database,
            ssl_mode,
            parameters: parts,
        })
    }

    /// The server's protocol.
    pub fn engine(&self) -> Engine {
        self.engine
    }

    /// The server's name or address.
    pub fn host(&self) -> &str {
        &self.host
    }

    /// The server's port.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// The user.
    pub fn username(&self) -> &str {
        &self.username
    }

    /// The password. Never print it.
    pub fn password(&self) -> &SecretString {
        &self.password
    }

    /// The database.
    pub fn database(&self) -> &str {
        &self.database
    }

    /// How the connection is encrypted.
    pub fn ssl_mode(&self) -> SslMode {
        self.ssl_mode
    }

    /// Further parameters of the driver, by name.
    pub fn parameters(&self) -> &BTreeMap<String, String> {
        &self.parameters
    }

    /// The login as an address, without its SSL mode: drivers disagree on its names.
    pub fn address(&self) -> SecretString {
        let host = match self.host.contains(':') {
            true => format!("[{}]", self.host),
            false => escape(&self.host),
        };
        let mut address = format!(
            "{}://{}:{}@{host}:{}/{}",
            self.engine.scheme(),
            escape(&self.username),
            escape(self.password.expose_secret()),
            self.port,
            escape(&self.database)
        );
        for (at, (name, value)) in self.parameters.iter().enumerate() {
            address.push(if at == 0 { '?' } else { '&' });
            address.push_str(&format!("{}={}", escape(name), escape(value)));
        }
        address.into()
    }
}

impl PartialEq for Login {
    fn eq(&self, other: &Login) -> bool {
        let Login { engine, host, port, username, password, database, ssl_mode, parameters } = self;
        *engine == other.engine
            && *host == other.host
            && *port == other.port
            && *username == other.username
            && password.expose_secret() == other.password.expose_secret()
            && *database == other.database
            && *ssl_mode == other.ssl_mode
            && *parameters == other.parameters
    }
}

impl fmt::Display for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Login { engine, host, port, username, database, .. } = self;
        write!(f, "{}://{username}@{host}:{port}/{database}", engine.scheme())
    }
}

impl fmt::Debug for Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Login({self})")
    }
}

/// Files that may hold a connection string, if the keys are missing.
const DSN_FILES: [&str; 3] = ["uri", "dsn.txt", "dsn"];
/// Files with one value each, under every common name.
const KEYS: [&str; 13] = [
    "type", "host", "hostname", "port", "username", "user", "password", "database", "dbname", "sslmode",
    "sslMode", "options", "uri",
];
/// Characters with a meaning in an address.
const ESCAPED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// Every file that a login can be read from.
pub(crate) fn file_names(dsn: Option<&str>) -> Vec<&str> {
    match dsn {
        Some(name) => vec![name, "type"],
        None => KEYS.into_iter().chain(DSN_FILES).collect(),
    }
}

fn escape(text: &str) -> String {
    utf8_percent_encode(text, ESCAPED).to_string()
}

fn has_keys(files: &BTreeMap<String, String>) -> bool {
    let has = |name: &str| files.contains_key(name);
    has("password") && (has("host") || has("hostname"))
}

/// The keys, and what the address beside them adds.
fn keys(files: &BTreeMap<String, String>) -> Result<Parts, String> {
    let mut parts = Parts::new();
    let beside = files.get("uri").map(|uri| dsn::parse(uri)).transpose();
    let beside = beside.map_err(|problem| format!("file uri: {problem}"))?;
    for (name, value) in files {
        if KEYS.contains(&name.as_str()) && !["uri", "options", "type"].contains(&name.as_str()) {
            parts.insert(common_name(name).to_owned(), value.clone());
        }
    }
    if let Some(address) = beside {
        agree(&parts, &address)?;
        for (name, value) in address.into_iter().filter(|(name, _)| name != "scheme") {
            parts.entry(name).or_insert(value);
        }
    }
    if let Some(options) = files.get("options") {
        let problem = |_| "file options is not of the form name=value&name=value".to_owned();
        dsn::put_query(&mut parts, options).map_err(problem)?;
    }
    Ok(parts)
}

/// Refuses files of two moments: while they are written one after the other, the address has another login.
fn agree(parts: &Parts, address: &Parts) -> Result<(), String> {
    let differs = |name: &&str| match (parts.get(*name), address.get(*name)) {
        (Some(one), Some(other)) => one != other,
        _ => false,
    };
    match ["username", "password"].iter().find(|name| differs(name)) {
        Some(name) => Err(format!("file uri has another {name} than file {name}: update both")),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn files(pairs: &[(&str, &str)]) -> BTreeMap<String, String> {
        pairs.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
    }

    fn shown(pairs: &[(&str, &str)], dsn: Option<&str>) -> String {
        match Login::from_files(&files(pairs), dsn) {
            Ok(login) => login.address().expose_secret().to_owned() + &format!(" {:?}", login.ssl_mode()),
            Err(error) => error.to_string(),
        }
    }

    const WHOLE: [(&str, &str); 5] =
        [("host", "h"), ("port", "5433"), ("username", "a"), ("password", "s3cret/"), ("database", "d")];

    #[test]
    fn every_form_of_a_login_is_read() {
        assert_eq!(shown(&WHOLE, None), "postgresql://a:s3cret%2F@h:5433/d Prefer");
        let published =
            [("type", "mariadb"), ("provider", "conductor"), ("uri", "mysql://a:s3cret%2F@h:5433/d")];
        assert_eq!(shown(&[&WHOLE[..], &published].concat(), None), "mysql://a:s3cret%2F@h:5433/d Prefer");
        let seed =
            [("hostname", "h"), ("user", "a"), ("password", "p"), ("dbname", "d"), ("sslmode", "require")];
        assert_eq!(shown(&seed, None), "postgresql://a:p@h:5432/d Require");
        let more = [("options", "application_name=orders&sslmode=verify-full")];
        let more = shown(&[&WHOLE[..], &more].concat(), None);
        assert_eq!(more, "postgresql://a:s3cret%2F@h:5433/d?application_name=orders VerifyFull");
        for name in ["uri", "dsn", "dsn.txt"] {
            let alone = shown(&[(name, "postgres://a:p@h/d")], None);
            assert_eq!(alone, "postgresql://a:p@h:5432/d Prefer", "{name}");
        }
        let chosen = shown(&[("main", "host=h user=a password=p dbname=d"), ("host", "other")], Some("main"));
        assert_eq!(chosen, "postgresql://a:p@h:5432/d Prefer");
    }

    #[test]
    fn a_missing_value_is_named() {
        for (pairs, dsn, expected) in [
            (&[][..], None, "host is missing or empty"),
            (&[("uri", "postgres://a:p@h")], None, "database is missing or empty"),
            (&[("uri", "x")], Some("dsn.txt"), "file dsn.txt is missing or empty"),
            (&[("dsn.txt", " ")], Some("dsn.txt"), "file dsn.txt is missing or empty"),
            (
                &[("uri", "redis://a:p@h/0")],
                None,
                "type \"redis\" is not known: write postgresql, mysql or mariadb",
            ),
            (&[("uri", "postgres://a:p@h:0/d")], None, "port is not a number from 1 to 65535"),
        ] {
            assert_eq!(shown(pairs, dsn), expected);
        }
        for (name, _) in WHOLE.iter().filter(|(name, _)| *name != "port") {
            let rest: Vec<_> =
                WHOLE.into_iter().map(|pair| if pair.0 == *name { (pair.0, "") } else { pair }).collect();
            assert_eq!(shown(&rest, None), format!("{name} is missing or empty"));
        }
        let two = [&WHOLE[..], &[("uri", "postgresql://a:before@h:5433/d")]].concat();
        assert_eq!(shown(&two, None), "file uri has another password than file password: update both");
    }

    #[test]
    fn a_login_prints_no_password() {
        let mut all = WHOLE.to_vec();
        all.push(("options", "sslpassword=s3cret2"));
        let login = Login::from_files(&files(&all), None).expect("it is complete");
        for text in [format!("{login}"), format!("{login:?}"), format!("{login:#?}")] {
            assert!(!text.contains("s3cret") && text.contains("postgresql://a@h:5433/d"), "{text}");
        }
    }
}
