//! A database server as a process of this machine, from the installed binaries: made, started, stopped, removed.
//! Run as root, it is run as the user that the package made for it: no database server runs as root.

use crate::database::sql::Dialect;
use crate::provider::access::Access;
use crate::provider::pool::try_login;
use crate::provider::secret::Password;
use crate::provider::trouble::Trouble;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to answer after its start, and to end after it was told to.
const WITHIN: Duration = Duration::from_secs(60);

/// What to run, and where.
#[derive(Clone, Debug)]
pub struct Plan {
    /// What it speaks.
    pub dialect: Dialect,
    /// Folder of its own, made where it is not there.
    pub folder: PathBuf,
    /// Port on this machine's own address.
    pub port: u16,
    /// The administrator's password.
    pub password: Password,
    /// Most connections.
    pub max_connections: i32,
    /// Memory for pages, in MiB.
    pub cache_mebibytes: i32,
    /// Settings beyond these, as the server's command line has them.
    pub more: Vec<String>,
}

impl Plan {
    /// How the administrator logs in.
    pub fn access(&self) -> Access {
        let (username, database) = match self.dialect {
            Dialect::Postgresql => ("postgres", "postgres"),
            Dialect::Mariadb => ("root", "mysql"),
        };
        Access {
            dialect: self.dialect,
            host: "127.0.0.1".to_owned(),
            port: self.port,
            ssl_mode: crate::api::database::server::SslMode::Disable,
            username: username.to_owned(),
            password: self.password.clone(),
            database: database.to_owned(),
        }
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// What the server writes down.
    pub fn log(&self) -> PathBuf {
        self.folder.join("log")
    }
}

/// A server that runs. Dropped, it ends.
#[derive(Debug)]
pub struct Process {
    child: Child,
    dialect: Dialect,
}

impl Process {
    /// Makes the server's data where there is none, starts it and waits until it answers.
    ///
    /// # Errors
    /// What is not installed, with the package that has it; what the server said.
    pub async fn start(plan: Plan) -> Result<Process, Trouble> {
        let (spawned, access) = (plan.clone(), plan.access());
        let started = tokio::task::spawn_blocking(move || {
            end_predecessor(&spawned);
            spawn(&spawned)
        })
        .await;
        let mut process = started.map_err(|_| Trouble::Refused("the start was interrupted".to_owned()))??;
        let end = Instant::now() + WITHIN;
        loop {
            let trouble = match try_login(&access).await {
                Ok(()) => return Ok(process),
                Err(trouble) => trouble,
            };
            if process.has_ended() || Instant::now() > end {
                let log = tail(&plan.log());
                return Err(Trouble::Refused(format!("the server does not start: {trouble}: {log}")));
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    }

    /// Whether it is gone by itself.
    pub fn has_ended(&mut self) -> bool {
        !matches!(self.child.try_wait(), Ok(None))
    }

    /// Its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Ends it in order, and waits until it has.
    pub fn stop(&mut self) {
        let signal = match self.dialect {
            // Ends sessions, then itself.
            Dialect::Postgresql => "-INT",
            Dialect::Mariadb => "-TERM",
        };
        if self.has_ended() {
            return;
        }
        let _ = Command::new("kill").args([signal, &self.child.id().to_string()]).status();
        let end = Instant::now() + WITHIN;
        while !self.has_ended() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
        }
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.stop();
    }
}

/// A process of ours that was killed leaves its server running. It is ended, not taken over: only the one who started
/// a server notices when it ends.
fn end_predecessor(plan: &Plan) {
    let (note, signal) = match plan.dialect {
        Dialect::Postgresql => (plan.data().join("postmaster.pid"), "-INT"),
        Dialect::Mariadb => (plan.folder.join("pid"), "-TERM"),
    };
    let text = fs::read_to_string(note).unwrap_or_default();
    let Some(id) = text.lines().next().and_then(|line| line.trim().parse::<u32>().ok()) else { return };
    // The note may be old, and the number somebody else's by now.
    let is_ours = || {
        let command = fs::read(format!("/proc/{id}/cmdline")).unwrap_or_default();
        String::from_utf8_lossy(&command).contains(&plan.data().display().to_string())
    };
    if is_ours() {
        let _ = Command::new("kill").args([signal, &id.to_string()]).status();
        let end = Instant::now() + WITHIN;
        while is_ours() && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(50));
        }
    }
}

fn spawn(plan: &Plan) -> Result<Process, Trouble> {
    let user = RunAs::find(plan.dialect)?;
    let failed =
        |error: std::io::Error| Trouble::Refused(format!("folder {}: {error}", plan.folder.display()));
    fs::create_dir_all(&plan.folder).map_err(failed)?;
    user.own(&plan.folder).map_err(failed)?;
    let child = match plan.dialect {
        Dialect::Postgresql => spawn_postgresql(plan, &user)?,
        Dialect::Mariadb => spawn_mariadb(plan, &user)?,
    };
    Ok(Process { child, dialect: plan.dialect })
}

fn spawn_postgresql(plan: &Plan, user: &RunAs) -> Result<Child, Trouble> {
    let (initdb, postgres) = (binary("initdb", "postgresql")?, binary("postgres", "postgresql")?);
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
    // A process that was killed leaves its note behind; the server itself asks whether its writer still lives.
    let mut command = user.command(&postgres);
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

fn spawn_mariadb(plan: &Plan, user: &RunAs) -> Result<Child, Trouble> {
    let install = binary("mariadb-install-db", "mariadb-server")?;
    let mariadbd = binary("mariadbd", "mariadb-server")?;
    if !plan.data().join("mysql").exists() {
        fs::create_dir_all(plan.data())
            .and_then(|()| user.own(&plan.data()))
            .map_err(|error| Trouble::Refused(format!("folder {}: {error}", plan.data().display())))?;
        let mut made = user.command(&install);
        made.arg("--no-defaults").arg(format!("--datadir={}", plan.data().display())).args([
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
        ]);
        run(&mut made, &plan.log())?;
    }
    // Its own way to set a password before anybody can log in: statements that are read at the start.
    let secret = plan.folder.join("admin");
    let hash = crate::provider::secret::verifier(Dialect::Mariadb, &plan.password);
    let text = ["localhost", "127.0.0.1"].map(|host| {
        format!(
            "CREATE OR REPLACE USER 'root'@'{host}' IDENTIFIED VIA mysql_native_password USING '{hash}';\n\
             GRANT ALL PRIVILEGES ON *.* TO 'root'@'{host}' WITH GRANT OPTION;\n"
        )
    });
    write_secret(&secret, &text.concat(), user)?;
    let mut command = user.command(&mariadbd);
    command.args([
        "--no-defaults".to_owned(),
        format!("--datadir={}", plan.data().display()),
        format!("--init-file={}", secret.display()),
        format!("--port={}", plan.port),
        "--bind-address=127.0.0.1".to_owned(),
        format!("--socket={}", plan.folder.join("socket").display()),
        format!("--pid-file={}", plan.folder.join("pid").display()),
        "--skip-name-resolve".to_owned(),
        format!("--max-connections={}", plan.max_connections),
        format!("--innodb-buffer-pool-size={}M", plan.cache_mebibytes),
    ]);
    command.args(&plan.more);
    start(&mut command, &plan.log())
}

/// Who runs a server: ourselves, or where we are root, the user of its package.
struct RunAs(Option<(u32, u32)>);

impl RunAs {
    fn find(dialect: Dialect) -> Result<RunAs, Trouble> {
        let is_root = fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        if !is_root {
            return Ok(RunAs(None));
        }
        let (name, package) = match dialect {
            Dialect::Postgresql => ("postgres", "postgresql"),
            Dialect::Mariadb => ("mysql", "mariadb-server"),
        };
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let ids = users.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.first() == Some(&name))
                .then(|| Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?)))?
        });
        match ids {
            Some(ids) => Ok(RunAs(Some(ids))),
            None => Err(missing(&format!("user {name}"), package)),
        }
    }

    fn command(&self, binary: &Path) -> Command {
        let mut command = Command::new(binary);
        if let Some((user, group)) = self.0 {
            command.uid(user).gid(group);
        }
        // A signal for us, from a terminal, is not one for the server: it ends when we end it.
        command.process_group(0).current_dir("/").stdin(Stdio::null());
        command
    }

    fn own(&self, path: &Path) -> std::io::Result<()> {
        match self.0 {
            Some((user, group)) => chown(path, Some(user), Some(group)),
            None => Ok(()),
        }
    }
}

fn write_secret(path: &Path, text: &str, user: &RunAs) -> Result<(), Trouble> {
    let written = fs::write(path, "")
        .and_then(|()| fs::set_permissions(path, fs::Permissions::from_mode(0o600)))
        .and_then(|()| fs::write(path, text))
        .and_then(|()| user.own(path));
    written.map_err(|error| Trouble::Refused(format!("file {}: {error}", path.display())))
}

/// A program of a package: on the path, or where Debian keeps those of servers.
fn binary(name: &str, package: &str) -> Result<PathBuf, Trouble> {
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

fn run(command: &mut Command, log: &Path) -> Result<(), Trouble> {
    let name = command.get_program().to_string_lossy().into_owned();
    let mut child = start(command, log)?;
    match child.wait() {
        Ok(status) if status.success() => Ok(()),
        Ok(_) => Err(Trouble::Refused(format!("{name} failed: {}", tail(log)))),
        Err(error) => Err(Trouble::Refused(format!("{name}: {error}"))),
    }
}

fn start(command: &mut Command, log: &Path) -> Result<Child, Trouble> {
    let name = command.get_program().to_string_lossy().into_owned();
    let failed = |error: std::io::Error| Trouble::Refused(format!("{name} cannot be started: {error}"));
    let open = || fs::OpenOptions::new().create(true).append(true).open(log);
    command.stdout(open().map_err(failed)?).stderr(open().map_err(failed)?);
    command.spawn().map_err(failed)
}

/// The last words of a log.
fn tail(log: &Path) -> String {
    let text = fs::read(log).unwrap_or_default();
    let text = String::from_utf8_lossy(&text);
    let lines: Vec<&str> = text.lines().rev().take(5).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join(" / ")
}
