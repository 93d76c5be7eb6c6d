//! What is installed on this machine for servers of our own, and who runs them. What is not installed is told with the
//! package that has it; installing is the administrator's.

use crate::trouble::Trouble;
use conductor_sql_plan::sql::Dialect;
use std::fs;
use std::os::unix::fs::{MetadataExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// Says what is missing for servers of an engine, with the package that has it; nothing where nothing is.
pub fn find_missing(dialect: Dialect) -> Option<String> {
    let programs: &[&str] = match dialect {
        Dialect::Postgresql => &["initdb", "postgres"],
        Dialect::Mariadb | Dialect::Mysql => &["mariadb-install-db", "mariadbd"],
    };
    let missing = programs.iter().find_map(|name| binary(name, package(dialect)).err());
    missing.or_else(|| RunAs::find(dialect).err()).map(|trouble| trouble.to_string())
}

/// The version of the servers that an engine would have here; nothing where none is installed or it does not say.
pub fn find_version(dialect: Dialect) -> Option<String> {
    let name = match dialect {
        Dialect::Postgresql => "postgres",
        Dialect::Mariadb | Dialect::Mysql => "mariadbd",
    };
    let program = binary(name, package(dialect)).ok()?;
    let said = Command::new(program).arg("--version").stdin(Stdio::null()).output().ok()?;
    read_version(&String::from_utf8_lossy(&said.stdout))
}

/// The first word that begins as a version does, without what a packager adds to it.
fn read_version(said: &str) -> Option<String> {
    let is_part = |c: char| c.is_ascii_digit() || c == '.';
    let mut words = said.split_whitespace().filter(|word| word.starts_with(|c: char| c.is_ascii_digit()));
    let word = words.next()?;
    let version = &word[..word.find(|c| !is_part(c)).unwrap_or(word.len())];
    Some(version.trim_end_matches('.').to_owned())
}

/// The package of an engine, by the name that Debian has for it.
pub(super) fn package(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgresql => "postgresql",
        Dialect::Mariadb | Dialect::Mysql => "mariadb-server",
    }
}

/// The user that the package makes.
fn user_of(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgresql => "postgres",
        Dialect::Mariadb | Dialect::Mysql => "mysql",
    }
}

/// Who runs a server: ourselves, or where we are root, the user of its package.
pub(super) struct RunAs(Option<(u32, u32)>, Dialect);

impl RunAs {
    pub fn find(dialect: Dialect) -> Result<RunAs, Trouble> {
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
        // A signal for us, from a terminal, is not one for the server: it ends when we end it.
        command.process_group(0).current_dir("/").stdin(Stdio::null());
        command
    }

    /// Says which folder on the way to a server's own it may not enter.
    pub fn can_enter(&self, folder: &Path) -> Result<(), Trouble> {
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
                Err(Trouble::Invalid(format!(
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

/// A program of a package: on the path, or where Debian keeps those of servers.
pub(super) fn binary(name: &str, package: &str) -> Result<PathBuf, Trouble> {
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

fn missing(what: &str, package: &str) -> Trouble {
    Trouble::Invalid(format!("{what} is not installed: apt-get install {package}"))
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
    fn what_is_not_installed_is_told_with_its_package() {
        let told =
            binary("no-such-server", package(Dialect::Mariadb)).expect_err("nobody has it").to_string();
        assert_eq!(told, "no-such-server is not installed: apt-get install mariadb-server");
    }

    #[test]
    fn a_folder_that_the_servers_user_cannot_enter_is_named() {
        let own = std::env::temp_dir().join(format!("conductor-shut-{}", std::process::id()));
        let inner = own.join("inner");
        fs::create_dir_all(&inner).expect("it can be made");
        fs::set_permissions(&own, fs::Permissions::from_mode(0o700)).expect("it is ours");
        // A user that owns nothing here.
        let told = RunAs(Some((4_000_001, 4_000_001)), Dialect::Postgresql).can_enter(&inner);
        let _ = fs::remove_dir_all(&own);
        let told = told.expect_err("it is shut").to_string();
        assert!(told.contains(&format!("may not enter {}:", own.display())), "{told}");
    }
}
