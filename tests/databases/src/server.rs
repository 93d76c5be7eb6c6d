//! A real server, started for a test and gone with it. Its log holds every statement, for those who scan it.

use crate::mysql::Mysqld;
use conductor_controlplane::free_port;
use conductor_sql::local::process::{Plan, Process};
use conductor_sql::{Access, Password};
use conductor_sql_plan::sql::Dialect;
use std::path::PathBuf;
use std::process::Command;
use std::sync::atomic::{AtomicU32, Ordering};

static COUNT: AtomicU32 = AtomicU32::new(0);

/// A server of the test's own.
#[derive(Debug)]
pub struct RealServer {
    /// How it is run.
    pub plan: Plan,
    process: Option<Running>,
    folder: PathBuf,
}

/// MySQL is no server that Conductor runs itself: that is the test's alone.
#[derive(Debug)]
enum Running {
    Conductors(Process),
    Mysql(Mysqld),
}

impl Running {
    async fn start(plan: &Plan) -> Running {
        match plan.dialect {
            Dialect::Mysql => Running::Mysql(Mysqld::start(plan).await),
            Dialect::Postgresql | Dialect::Mariadb => {
                Running::Conductors(Process::start(plan.clone()).await.expect("the server starts"))
            }
        }
    }

    fn id(&self) -> u32 {
        match self {
            Running::Conductors(process) => process.id(),
            Running::Mysql(process) => process.id(),
        }
    }
}

impl RealServer {
    /// Starts one that writes down every statement.
    ///
    /// # Panics
    /// When it does not start; `scripts/install-packages` installs what it needs.
    pub async fn start(dialect: Dialect) -> RealServer {
        RealServer::start_with(dialect, 200, &[]).await
    }

    /// Starts one with settings of the test's.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start_with(dialect: Dialect, max_connections: i32, more: &[&str]) -> RealServer {
        RealServer::start_in(new_folder(), dialect, max_connections, more).await
    }

    /// Starts one in a folder of the test's.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn start_in(
        folder: PathBuf,
        dialect: Dialect,
        max_connections: i32,
        more: &[&str],
    ) -> RealServer {
        let logging: &[&str] = match dialect {
            Dialect::Postgresql => &["log_statement=all", "fsync=off", "full_page_writes=off"],
            Dialect::Mariadb | Dialect::Mysql => &["--general-log=1", "--innodb-flush-log-at-trx-commit=0"],
        };
        let more: Vec<String> = logging.iter().chain(more).map(|setting| (*setting).to_owned()).collect();
        let plan = Plan {
            dialect,
            folder: folder.clone(),
            port: free_port().expect("a port is free"),
            password: Password::make(24),
            max_connections,
            cache_mebibytes: 32,
            more,
        };
        let process = Running::start(&plan).await;
        RealServer { plan, process: Some(process), folder }
    }

    /// How the administrator logs in.
    pub fn access(&self) -> Access {
        self.plan.access()
    }

    /// Ends it.
    pub fn stop(&mut self) {
        self.process = None;
    }

    /// Starts it again, with its data.
    ///
    /// # Panics
    /// When it does not start.
    pub async fn restart(&mut self) {
        self.stop();
        self.process = Some(Running::start(&self.plan).await);
    }

    /// Lets it hang, or go on: `STOP` and `CONT`.
    ///
    /// # Panics
    /// When it does not run.
    pub fn signal(&self, signal: &str) {
        let id = self.process.as_ref().expect("it runs").id();
        for process in family(id) {
            let _ = Command::new("kill").args([&format!("-{signal}"), &process.to_string()]).status();
        }
    }

    /// Everything that the server has written down.
    pub fn log(&self) -> String {
        read(&self.plan.log()) + &self.logs_in_data("log") + &self.logs_in_data("err")
    }

    /// The part of it that holds the statements, and nothing else on MariaDB.
    pub fn statements(&self) -> String {
        match self.plan.dialect {
            Dialect::Postgresql => read(&self.plan.log()),
            Dialect::Mariadb | Dialect::Mysql => self.logs_in_data("log"),
        }
    }

    fn logs_in_data(&self, ending: &str) -> String {
        let entries = std::fs::read_dir(self.folder.join("data")).into_iter().flatten().flatten();
        let files = entries.map(|entry| entry.path());
        files
            .filter(|path| path.extension().is_some_and(|found| found == ending))
            .map(|path| read(&path))
            .collect()
    }
}

/// A path for a folder of its own, which does not exist yet.
pub fn new_folder() -> PathBuf {
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    std::env::temp_dir().join(format!("conductor-db-{}-{count}", std::process::id()))
}

/// A process and its descendants: on PostgreSQL each session is a process.
fn family(id: u32) -> Vec<u32> {
    let children = std::fs::read_to_string(format!("/proc/{id}/task/{id}/children")).unwrap_or_default();
    let children = children.split_whitespace().filter_map(|child| child.parse().ok());
    children.flat_map(family).chain([id]).collect()
}

fn read(path: &std::path::Path) -> String {
    String::from_utf8_lossy(&std::fs::read(path).unwrap_or_default()).into_owned()
}

impl Drop for RealServer {
    fn drop(&mut self) {
        self.process = None;
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
