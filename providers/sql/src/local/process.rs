//! A database server as a process of this machine, from the installed programs (see `installed`). It never outlives us.

use super::installed::{RunAs, binary, package};
use crate::access::Access;
use crate::error::Error;
use crate::secret::Password;
use crate::trial::try_login;
use conductor_sql_plan::sql::Dialect;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Time limit for a server's start and end.
const WITHIN: Duration = Duration::from_secs(60);

/// Lines of a log that are searched for the reason of a failure.
const LOG_LINES: usize = 60;
/// The kernel's native asynchronous I/O is limited for the whole machine: a few servers take all of it, and the next one
/// would not start.
const NO_NATIVE_AIO: &str = "--innodb-use-native-aio=0";
/// MariaDB's folder for temporary tables. It clears the folder when it starts, so two servers that start at once in the
/// system's folder delete each other's.
const OWN_TEMPORARY: &str = "TMPDIR";

/// A server to run.
#[derive(Clone, Debug)]
pub struct Plan {
    /// Its dialect.
    pub dialect: Dialect,
    /// Its own folder, created if missing.
    pub folder: PathBuf,
    /// Its port on the loopback address.
    pub port: u16,
    /// The administrator's password.
    pub password: Password,
    /// Most connections.
    pub max_connections: i32,
    /// Memory for pages, in MiB.
    pub cache_mebibytes: i32,
    /// Further settings, in the notation of the server's command line.
    pub more: Vec<String>,
}

impl Plan {
    /// The administrator's login.
    pub fn access(&self) -> Access {
        let (username, database) = match self.dialect {
            Dialect::Postgresql => ("postgres", "postgres"),
            Dialect::Mariadb | Dialect::Mysql => ("root", "mysql"),
        };
        Access {
            dialect: self.dialect,
            host: "127.0.0.1".to_owned(),
            port: self.port,
            ssl_mode: conductor::api::database::server::SslMode::Disable,
            username: username.to_owned(),
            password: self.password.clone(),
            database: database.to_owned(),
        }
    }

    fn data(&self) -> PathBuf {
        data_in(&self.folder)
    }

    /// The server's log.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

/// A server runs under a shell that holds a pipe from us: when the pipe closes, even because we were killed, the shell shuts
/// the server down, so that none is left behind.
const GUARD: &str = r#"
signal=$1; shift
exec 3<&0
"$@" </dev/null 3<&- &
server=$!
{ read -r _ <&3; kill "$signal" "$server" 2>/dev/null; } &
guard=$!
wait "$server"; code=$?
kill "$guard" 2>/dev/null
exit "$code"
"#;

/// A running server. Dropped, it ends.
#[derive(Debug)]
pub struct Process {
    /// The shell that guards it; its standard input is the pipe.
    guard: Child,
}

impl Process {
    /// Creates the server's data if missing, starts it and waits until it answers.
    ///
    /// # Errors
    /// What is not installed, with its package; or the server's error.
    pub async fn start(plan: Plan) -> Result<Process, Error> {
        let (spawned, access) = (plan.clone(), plan.access());
        let started = tokio::task::spawn_blocking(move || spawn(&spawned)).await;
        let mut process = started.map_err(|_| Error::Refused("the start was interrupted".to_owned()))??;
        let end = Instant::now() + WITHIN;
        loop {
            let error = match try_login(&access).await {
                Ok(()) => return Ok(process),
                Err(error) => error,
            };
            if process.has_ended() || Instant::now() > end {
                let log = reason(&plan.log());
                return Err(Error::Refused(format!("the server does not start: {error}: {log}")));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Whether it has ended.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.guard.try_wait(), Ok(None))
    }

    /// The id of the group of its processes.
    pub fn id(&self) -> u32 {
        self.guard.id()
    }

    /// Shuts it down, and waits until it has ended.
    pub fn stop(&mut self) {
        drop(self.guard.stdin.take());
        let end = Instant::now() + WITHIN;
        while !self.has_ended() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
        }
        if !self.has_ended() {
            let group = format!("-{}", self.guard.id());
            let _ = Command::new("kill").args(["-KILL", "--", &group]).status();
            let _ = self.guard.wait();
        }
    }
}

/// The signal that makes a server end its sessions, then itself.
fn ending(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Postgresql => "-INT",
        Dialect::Mariadb | Dialect::Mysql => "-TERM",
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Ends the server that an earlier process of ours left running in a folder when it was killed. It is not taken over: only
/// the parent of a process notices when it ends. Its port is free from then on.
pub fn end_predecessor(dialect: Dialect, folder: &Path) {
    let data = data_in(folder);
    let note = match dialect {
        Dialect::Postgresql => data.join("postmaster.pid"),
        Dialect::Mariadb | Dialect::Mysql => folder.join("pid"),
    };
    let text = fs::read_to_string(note).unwrap_or_default();
    let Some(id) = text.lines().next().and_then(|line| line.trim().parse::<u32>().ok()) else { return };
    // The file may be stale, and the id another process's by now.
    let is_ours = || {
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(&data.display().to_string())
    };
    if is_ours() {
        let _ = Command::new("kill").args([ending(dialect), &id.to_string()]).status();
        let end = Instant::now() + WITHIN;
        while is_ours() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn data_in(folder: &Path) -> PathBuf {
    folder.join("data")
}

fn spawn(plan: &Plan) -> Result<Process, Error> {
    let user = RunAs::find(plan.dialect)?;
    let failed = |error: std::io::Error| Error::Refused(format!("folder {}: {error}", plan.folder.display()));
    make_own(&plan.folder, &user).map_err(failed)?;
    user.can_enter(&plan.folder)?;
    let guard = match plan.dialect {
        Dialect::Postgresql => spawn_postgresql(plan, &user)?,
        Dialect::Mariadb | Dialect::Mysql => spawn_mariadb(plan, &user)?,
    };
    Ok(Process { guard })
}

/// Creates a folder that only the server's user may enter, or closes an existing one to others: it contains users' data.
fn make_own(folder: &Path, user: &RunAs) -> std::io::Result<()> {
    fs::create_dir_all(folder)?;
    fs::set_permissions(folder, fs::Permissions::from_mode(0o700))?;
    user.own(folder)
}

fn spawn_postgresql(plan: &Plan, user: &RunAs) -> Result<Child, Error> {
    let package = package(plan.dialect);
    let (initdb, postgres) = (binary("initdb", package)?, binary("postgres", package)?);
    if !plan.data().join("PG_VERSION").exists() {
        let secret = plan.folder.join("admin");
        write_secret(&secret, plan.password.expose(), user)?;
        let mut made = user.command(&initdb);
        made.arg("--pgdata").arg(plan.data()).arg("--pwfile").arg(&secret).args([
            "--username=postgres",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]);
        let made = run(&mut made, &plan.log());
        let _ = fs::remove_file(&secret);
        made?;
    }
    // A killed server leaves its pid file behind; the next one checks whether that process still exists.
    let mut command = guarded(plan.dialect, &postgres, user);
    command.arg("-D").arg(plan.data()).arg("-p").arg(plan.port.to_string()).arg("-k").arg(&plan.folder);
    let settings = [
        "listen_addresses=127.0.0.1".to_owned(),
        "password_encryption=scram-sha-256".to_owned(),
        format!("max_connections={}", plan.max_connections),
        format!("shared_buffers={}MB", plan.cache_mebibytes),
    ];
    for setting in settings.iter().chain(&plan.more) {
        command.arg("-c").arg(setting);
    }
    start(&mut command, &plan.log())
}

fn spawn_mariadb(plan: &Plan, user: &RunAs) -> Result<Child, Error> {
    let package = package(plan.dialect);
    let (install, mariadbd) = (binary("mariadb-install-db", package)?, binary("mariadbd", package)?);
    make_own(&plan.data(), user)
        .map_err(|error| Error::Refused(format!("folder {}: {error}", plan.data().display())))?;
    if !plan.data().join("mysql").exists() {
        let mut made = user.command(&install);
        made.env(OWN_TEMPORARY, &plan.folder);
        made.arg("--no-defaults").arg(format!("--datadir={}", plan.data().display())).args([
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            NO_NATIVE_AIO,
        ]);
        run(&mut made, &plan.log())?;
    }
    // Its way to set a password before any login: statements that it reads at the start.
    let secret = plan.folder.join("admin");
    let hash = crate::secret::verifier(Dialect::Mariadb, &plan.password);
    let text = ["localhost", "127.0.0.1"].map(|host| {
        format!(
            "CREATE OR REPLACE USER 'root'@'{host}' IDENTIFIED VIA mysql_native_password USING '{hash}';\n\
             GRANT ALL PRIVILEGES ON *.* TO 'root'@'{host}' WITH GRANT OPTION;\n"
        )
    });
    write_secret(&secret, &text.concat(), user)?;
    let mut command = guarded(plan.dialect, &mariadbd, user);
    command.env(OWN_TEMPORARY, &plan.folder);
    command.args([
        "--no-defaults".to_owned(),
        format!("--datadir={}", plan.data().display()),
        format!("--init-file={}", secret.display()),
        format!("--port={}", plan.port),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--socket={}", plan.folder.join("socket").display()),
        format!("--pid-file={}", plan.folder.join("pid").display()),
        "--skip-name-resolve".to_owned(),
        NO_NATIVE_AIO.to_owned(),
        format!("--max-connections={}", plan.max_connections),
        format!("--innodb-buffer-pool-size={}M", plan.cache_mebibytes),
    ]);
    command.args(&plan.more);
    start(&mut command, &plan.log())
}

/// A server's command under its guard; further arguments are the server's.
fn guarded(dialect: Dialect, server: &Path, user: &RunAs) -> Command {
    let mut command = user.command(Path::new("/bin/sh"));
    command.args(["-c", GUARD, "sh", ending(dialect)]).arg(server).stdin(Stdio::piped());
    command
}

fn write_secret(path: &Path, text: &str, user: &RunAs) -> Result<(), Error> {
    let written = fs::write(path, "")
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o600)))
        .and_then(|()| fs::write(path, text))
        .and_then(|()| user.own(path));
    written.map_err(|error| Error::Refused(format!("file {}: {error}", path.display())))
}

fn run(command: &mut Command, log: &Path) -> Result<(), Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = start(command, log)?;
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Error::Refused(format!("{name} failed: {}", reason(log)))),
        Err(error) => Err(Error::Refused(format!("{name}: {error}"))),
    }
}

fn start(command: &mut Command, log: &Path) -> Result<Child, Error> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| Error::Refused(format!("{name} cannot be started: {error}"));
    let open = || fs::OpenOptions::new().create(true).append(true).open(log);
    command.stdout(open().map_err(failed)?).stderr(open().map_err(failed)?);
    command.spawn().map_err(failed)
}

/// The reason in a log: its first error, else its last lines.
fn reason(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let is_error =
        |line: &&&str| ["ERROR", "FATAL", "PANIC", "error:"].iter().any(|label| line.contains(label));
    let last = &lines[lines.len().saturating_sub(5)..];
    // Of the last start: the log spans several.
    match lines.iter().rev().take(LOG_LINES).rev().find(is_error) {
        Some(error) => (*error).to_owned(),
        None => last.join(" / "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::MetadataExt;

    #[test]
    fn a_servers_folder_is_closed_to_others_even_an_existing_one() {
        let folder = std::env::temp_dir().join(format!("conductor-own-folder-{}", std::process::id()));
        let Ok(user) = RunAs::find(Dialect::Mariadb) else { return };
        fs::create_dir_all(&folder).expect("it can be made");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o755)).expect("it is ours");
        make_own(&folder, &user).expect("it can be shut");
        let mode = fs::metadata(&folder).expect("it is there").mode() & 0o777;
        let _ = fs::remove_dir_all(&folder);
        assert_eq!(mode, 0o700);
    }
}
