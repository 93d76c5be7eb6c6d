//! Real servers, started for a test and ended with it. A missing server fails the test with the name of its package.

use conductor_controlplane::free_port;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

static COUNT: AtomicU32 = AtomicU32::new(0);
/// Long enough for any machine.
const WITHIN: Duration = Duration::from_secs(60);

/// The administrator's password.
pub const ADMIN: &str = "the-administrator";

/// What a server speaks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Speaks {
    Postgresql,
    Mariadb,
}

/// A server that runs.
pub struct Server {
    speaks: Speaks,
    folder: PathBuf,
    pub port: u16,
    settings: Vec<String>,
    child: Option<Child>,
}

impl Server {
    /// Makes one and starts it.
    pub fn start(speaks: Speaks) -> Server {
        Server::start_with(speaks, |_| Vec::new())
    }

    /// With settings of the test's, which may need files in the server's folder.
    pub fn start_with(speaks: Speaks, settings: impl FnOnce(&Path) -> Vec<String>) -> Server {
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        let folder = std::env::temp_dir().join(format!("hotload-server-{}-{count}", std::process::id()));
        fs::create_dir_all(&folder).expect("a folder can be made");
        let settings = settings(&folder);
        let port = free_port().expect("a port is free");
        let mut server = Server { speaks, folder, port, settings, child: None };
        for entry in fs::read_dir(&server.folder).expect("it can be listed").flatten() {
            server.own(&entry.path());
        }
        server.own(&server.folder);
        server.make();
        server.restart();
        server
    }

    /// Ends it, and the sessions on it.
    pub fn stop(&mut self) {
        let Some(mut child) = self.child.take() else { return };
        let signal = if self.speaks == Speaks::Postgresql { "-INT" } else { "-TERM" };
        let _ = Command::new("kill").args([signal, &child.id().to_string()]).status();
        let end = Instant::now() + WITHIN;
        while matches!(child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(20));
        }
        let _ = child.kill();
        let _ = child.wait();
    }

    /// Starts it again, with its data and on its port.
    pub fn restart(&mut self) {
        self.stop();
        let log =
            || fs::File::options().create(true).append(true).open(self.folder.join("log")).expect("a log");
        let mut command = match self.speaks {
            Speaks::Postgresql => self.postgres(),
            Speaks::Mariadb => self.mariadbd(),
        };
        self.child = Some(command.stdout(log()).stderr(log()).spawn().expect("the server can be started"));
        let end = Instant::now() + WITHIN;
        while std::net::TcpStream::connect(("127.0.0.1", self.port)).is_err() {
            assert!(Instant::now() < end, "the server does not answer: {}", self.log());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// What the server has written down.
    pub fn log(&self) -> String {
        String::from_utf8_lossy(&fs::read(self.folder.join("log")).unwrap_or_default()).into_owned()
    }

    fn make(&self) {
        let made = match self.speaks {
            Speaks::Postgresql => self.initdb(),
            Speaks::Mariadb => self.install_db(),
        };
        assert!(made.status.success(), "no data was created: {}", String::from_utf8_lossy(&made.stderr));
    }

    fn initdb(&self) -> std::process::Output {
        let secret = self.folder.join("admin");
        fs::write(&secret, ADMIN).expect("the password can be written");
        self.own(&secret);
        let mut command = self.command("initdb", "postgresql");
        command.arg("--pgdata").arg(self.data()).arg("--pwfile").arg(secret);
        command.args([
            "--username=postgres",
            "--auth=scram-sha-256",
            "--encoding=UTF8",
            "--locale=C",
            "--no-sync",
        ]);
        command.output().expect("initdb can be run")
    }

    fn postgres(&self) -> Command {
        let mut command = self.command("postgres", "postgresql");
        command.arg("-D").arg(self.data()).arg("-p").arg(self.port.to_string()).arg("-k").arg(&self.folder);
        let fixed = ["listen_addresses=127.0.0.1", "fsync=off"];
        for setting in fixed.into_iter().chain(self.settings.iter().map(String::as_str)) {
            command.arg("-c").arg(setting);
        }
        command
    }

    fn install_db(&self) -> std::process::Output {
        fs::create_dir(self.data()).expect("a folder can be made");
        self.own(&self.data());
        let mut command = self.command("mariadb-install-db", "mariadb-server");
        command.arg("--no-defaults").arg(format!("--datadir={}", self.data().display()));
        command.args(["--auth-root-authentication-method=normal", "--skip-test-db", "--skip-name-resolve"]);
        command.output().expect("mariadb-install-db can be run")
    }

    fn mariadbd(&self) -> Command {
        let first = self.folder.join("first.sql");
        let text = format!(
            "CREATE OR REPLACE USER 'root'@'127.0.0.1' IDENTIFIED BY '{ADMIN}';\n\
             GRANT ALL PRIVILEGES ON *.* TO 'root'@'127.0.0.1' WITH GRANT OPTION;\n"
        );
        fs::write(&first, text).expect("it can be written");
        self.own(&first);
        let mut command = self.command("mariadbd", "mariadb-server");
        command.arg("--no-defaults").arg(format!("--datadir={}", self.data().display()));
        command.arg(format!("--init-file={}", first.display())).arg(format!("--port={}", self.port));
        command.arg(format!("--socket={}", self.folder.join("socket").display()));
        command.arg(format!("--pid-file={}", self.folder.join("pid").display()));
        command.args([
            "--bind-address=127.0.0.1",
            "--skip-name-resolve",
            "--innodb-flush-log-at-trx-commit=0",
        ]);
        command.args(&self.settings);
        command
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// No database server runs as root: it is run as the user that its package made.
    fn user(&self) -> Option<(u32, u32)> {
        let (name, package) = match self.speaks {
            Speaks::Postgresql => ("postgres", "postgresql"),
            Speaks::Mariadb => ("mysql", "mariadb-server"),
        };
        if !fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0) {
            return None;
        }
        let users = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let ids = users.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.first() == Some(&name))
                .then(|| Some((fields.get(2)?.parse().ok()?, fields.get(3)?.parse().ok()?)))?
        });
        Some(ids.unwrap_or_else(|| panic!("user {name} is missing: apt-get install {package}")))
    }

    fn command(&self, program: &str, package: &str) -> Command {
        let mut command = Command::new(find(program, package));
        if let Some((user, group)) = self.user() {
            command.uid(user).gid(group);
        }
        // MariaDB clears the folder for temporary files when it starts: each server has its own.
        command.current_dir("/").stdin(Stdio::null()).env("TMPDIR", &self.folder);
        command
    }

    fn own(&self, path: &Path) {
        if let Some((user, group)) = self.user() {
            chown(path, Some(user), Some(group)).expect("the owner can be changed");
        }
        let mode = if path.is_dir() { 0o700 } else { 0o600 };
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).expect("the mode can be changed");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stop();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// A program of a package: where Debian keeps those of servers, or on the path.
fn find(program: &str, package: &str) -> PathBuf {
    let mut folders: Vec<PathBuf> = fs::read_dir("/usr/lib/postgresql")
        .map(|found| found.flatten().map(|entry| entry.path().join("bin")).collect())
        .unwrap_or_default();
    folders.sort();
    folders.reverse();
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    folders.extend(["/usr/sbin", "/usr/local/sbin"].map(PathBuf::from));
    let found = folders.into_iter().map(|folder| folder.join(program)).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("{program} is not installed: apt-get install {package}"))
}
