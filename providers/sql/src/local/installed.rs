//! Finds the installed programs for local servers, and the user that runs them. A missing program is reported with its
//! package; the administrator installs it.

use crate::error::Error;
use conductor_sql_plan::sql::Dialect;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// What is missing for servers of an engine, with its package.
pub fn find_missing(dialect: Dialect) -> Option<String> {
    let programs: &[&str] = match dialect {
        Dialect::Postgresql => &["initdb", "postgres"],
        Dialect::Mariadb | Dialect::Mysql => &["mariadb-install-db", "mariadbd"],
    };
    let missing = programs.iter().find_map(|name| binary(name, package(dialect)).err());
    missing.or_else(|| RunAs::find(dialect).err()).map(|error| error.to_string())
}

/// The version of an engine's installed servers, if any.
pub fn find_version(dialect: Dialect) -> Option<String> {
    let name = match dialect {
        Dialect::Postgresql => "postgres",
        Dialect::Mariadb | Dialect::Mysql => "mariadbd",
    };
    let program = binary(name, package(dialect)).ok()?;
    let said = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    read_version(&String::from_utf8_lossy(&said.stdout))
}

/// The first version number in a text, without a packager's suffix.
fn read_version(said: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let mut candidates =
        said.split_whitespace().filter(|candidate| candidate.starts_with(|c: char| c.is_ascii_digit()));
    let candidate = candidates.next()?;
    let version = &candidate[..candidate.find(|c| !is_part(c)).unwrap_or(candidate.len())];
    Some(version.trim_end_matches('.').to_owned())
}

/// Debian's package of an engine.
pub(super) fn package(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgresql => "postgresql",
        Dialect::Mariadb | Dialect::Mysql => "mariadb-server",
    }
}

/// The user that the package creates.
fn user_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgresql => "postgres",
        Dialect::Mariadb | Dialect::Mysql => "mysql",
    }
}

/// The user that runs a server: ours, or if we are root, that of its package.
pub(super) struct RunAs(Option<(u32, u32)>, Dialect);

impl RunAs {
    pub fn find(dialect: Dialect) -> Result<RunAs, Error> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if !is_root {
            return Ok(RunAs(None, dialect));
        }
        let name = user_of(dialect);
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let ids = users.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.first() == Some(&name))
                .then(|| Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?)))?
        });
        match ids {
            Some(ids) => Ok(RunAs(Some(ids), dialect)),
            None => Err(missing(&format!("user {name}"), package(dialect))),
        }
    }

    pub fn command(&self, binary: &Path) -> Command {
        let mut command = Command::new(binary);
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        // A signal from a terminal is for us only: we end the server.
        command.process_group(0).current_dir("/").stdin(Stdio::null());
        command
    }

    /// Checks that it may enter every folder above a server's own.
    pub fn can_enter(&self, folder: &Path) -> Result<(), Error> {
        let Some((user, group)) = self.0 else { return Ok(()) };
        let is_shut = |path: &&Path| {
            fs::metadata(path).is_ok_and(|found| {
                let bit = match found.uid() == user {
                    true => 0o100,
                    false if found.gid() == group => 0o010,
                    false => 0o001,
                };
                found.mode() & bit == 0
            })
        };
        match folder.ancestors().filter(|path| !path.as_os_str().is_empty()).find(is_shut) {
            None => Ok(()),
            Some(shut) => {
                let (shut, user) = (shut.display(), user_of(self.1));
                Err(Error::Invalid(format!(
                    "servers run as {user}, who may not enter {shut}: chmod o+x {shut}, or keep data elsewhere"
                )))
            }
        }
    }

    pub fn own(&self, path: &Path) -> std::io::Result<()> {
        match self.0 {
            Some((user, group)) => chown(path, Some(user), Some(group)),
            None => Ok(()),
        }
    }
}

/// A program of a package: on the path, or in Debian's folders for servers.
pub(super) fn binary(name: &str, package: &str) -> Result<PathBuf, Error> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|found| found.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    // The newest first.
    folders.sort();
    folders.reverse();
    folders.extend(std::env::split_paths(&path));
    folders.extend(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let found = folders.into_iter().map(|folder| folder.join(name)).find(|path| path.is_file());
    found.ok_or_else(|| missing(name, package))
}

fn missing(what: &str, package: &str) -> Error {
    Error::Invalid(format!("{what} is not installed: apt-get install {package}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn a_server_says_its_version_in_its_own_way() {
        for (said, version) in [
            ("postgres (PostgreSQL) 15.18 (Debian 15.18-0+deb12u1)", Some("15.18")),
            ("postgres (PostgreSQL) 18beta2", Some("18")),
            ("mariadbd  Ver 10.11.19-MariaDB-0+deb12u1 for debian-linux-gnu on x86_64", Some("10.11.19")),
            ("no such thing", None),
            ("", None),
        ] {
            assert_eq!(read_version(said).as_deref(), version, "{said}");
        }
    }

    #[test]
    fn a_missing_program_is_reported_with_its_package() {
        let message =
            binary("no-such-server", package(Dialect::Mariadb)).expect_err("it is not installed").to_string();
        assert_eq!(message, "no-such-server is not installed: apt-get install mariadb-server");
    }

    #[test]
    fn a_folder_that_the_servers_user_cannot_enter_is_named() {
        let own = std::env::temp_dir().join(format!("conductor-shut-{}", std::process::id()));
        let inner = own.join("inner");
        fs::create_dir_all(&inner).expect("it can be made");
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).expect("it is ours");
        // A user that owns nothing here.
        let message = RunAs(Some((4_000_001, 4_000_001)), Dialect::Postgresql).can_enter(&inner);
        let _ = fs::remove_dir_all(&own);
        let message = message.expect_err("it is shut").to_string();
        assert!(message.contains(&format!("may not enter {}:", own.display())), "{message}");
    }
}
