//! The load of `pgbench`: its tables, and the transactions of its built-in script (TPC-B as it were), through a pool.
//! pgbench itself holds its connections; an application with a pool takes one for each transaction.

use deadpool_postgres::tokio_postgres::Client;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;
use tokio::task::JoinSet;

/// Long enough for any machine; nothing waits for it to pass.
const WITHIN: Duration = Duration::from_secs(120);
/// Rows of pgbench's tables per scale.
const ACCOUNTS: u64 = 100_000;
const TELLERS: u64 = 10;

/// Tables as `pgbench -i` creates them, by the user that logs in.
pub fn make_tables(scale: u64, port: u16, user: &str, password: &str, database: &str) {
    let mut command = Command::new(pgbench());
    command.args(["--initialize", "--quiet", "--host=127.0.0.1"]).arg(format!("--scale={scale}"));
    command.arg(format!("--port={port}")).arg(format!("--username={user}")).arg(database);
    let made = command.env("PGPASSWORD", password).output().expect("pgbench can be run");
    assert!(made.status.success(), "{}", String::from_utf8_lossy(&made.stderr));
}

/// Where Debian keeps the programs of servers, or on the path.
fn pgbench() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut folders: Vec<PathBuf> = versions.map(|entry| entry.path().join("bin")).collect();
    folders.extend(std::env::split_paths(&std::env::var_os("PATH").unwrap_or_default()));
    let found = folders.into_iter().map(|folder| folder.join("pgbench")).find(|path| path.is_file());
    found.expect("pgbench is not installed: apt-get install postgresql")
}

/// The script's values for one transaction.
#[derive(Clone, Copy, Debug)]
pub struct Script {
    pub account: i32,
    pub branch: i32,
    pub teller: i32,
    pub delta: i32,
}

/// The script's statements, in order, without its BEGIN and END.
pub const UPDATE_ACCOUNT: &str = "UPDATE pgbench_accounts SET abalance = abalance + $1 WHERE aid = $2";
pub const SELECT_ACCOUNT: &str = "SELECT abalance FROM pgbench_accounts WHERE aid = $1";
pub const UPDATE_TELLER: &str = "UPDATE pgbench_tellers SET tbalance = tbalance + $1 WHERE tid = $2";
pub const UPDATE_BRANCH: &str = "UPDATE pgbench_branches SET bbalance = bbalance + $1 WHERE bid = $2";
pub const INSERT_HISTORY: &str =
    "INSERT INTO pgbench_history (tid, bid, aid, delta, mtime) VALUES ($1, $2, $3, $4, CURRENT_TIMESTAMP)";

/// A client that runs transactions.
pub trait Application: Clone + Send + Sync + 'static {
    /// Runs one, from taking a connection to the commit.
    fn run(&self, script: Script) -> impl Future<Output = Result<(), String>> + Send;
}

impl Application for hotload::deadpool::Pool {
    async fn run(&self, script: Script) -> Result<(), String> {
        let shown = |error: deadpool_postgres::tokio_postgres::Error| format!("{error:?}");
        let Script { account, branch, teller, delta } = script;
        let mut client = self.get().await.map_err(|error| error.to_string())?;
        let transaction = client.transaction().await.map_err(shown)?;
        let steps: [(&str, &[&(dyn deadpool_postgres::tokio_postgres::types::ToSql + Sync)]); 5] = [
            (UPDATE_ACCOUNT, &[&delta, &account]),
            (SELECT_ACCOUNT, &[&account]),
            (UPDATE_TELLER, &[&delta, &teller]),
            (UPDATE_BRANCH, &[&delta, &branch]),
            (INSERT_HISTORY, &[&teller, &branch, &account, &delta]),
        ];
        for (text, values) in steps {
            let statement = transaction.prepare_cached(text).await.map_err(shown)?;
            transaction.query(&statement, values).await.map_err(shown)?;
        }
        transaction.commit().await.map_err(shown)
    }
}

impl Application for sqlx::PgPool {
    async fn run(&self, script: Script) -> Result<(), String> {
        let shown = |error: sqlx::Error| format!("{error:?}");
        let Script { account, branch, teller, delta } = script;
        let mut transaction = self.begin().await.map_err(shown)?;
        let steps: [(&'static str, &[i32]); 5] = [
            (UPDATE_ACCOUNT, &[delta, account]),
            (SELECT_ACCOUNT, &[account]),
            (UPDATE_TELLER, &[delta, teller]),
            (UPDATE_BRANCH, &[delta, branch]),
            (INSERT_HISTORY, &[teller, branch, account, delta]),
        ];
        for (text, values) in steps {
            let query = values.iter().fold(sqlx::query(text), |query, value| query.bind(*value));
            query.execute(&mut *transaction).await.map_err(shown)?;
        }
        transaction.commit().await.map_err(shown)
    }
}

/// Clients that run one transaction after the other until they are stopped.
pub struct Load {
    stop: Arc<AtomicBool>,
    count: Arc<Count>,
    clients: JoinSet<()>,
}

/// What the clients have done.
#[derive(Default)]
pub struct Count {
    pub committed: AtomicU64,
    pub failed: AtomicU64,
    pub last_failure: std::sync::Mutex<String>,
}

impl Count {
    pub fn committed(&self) -> u64 {
        self.committed.load(Ordering::SeqCst)
    }

    pub fn failed(&self) -> u64 {
        self.failed.load(Ordering::SeqCst)
    }
}

impl Load {
    /// Begins with so many clients on tables of this scale.
    pub fn start(application: &impl Application, clients: u64, scale: u64) -> Load {
        let (stop, count) = (Arc::new(AtomicBool::new(false)), Arc::new(Count::default()));
        let mut running = JoinSet::new();
        for client in 0..clients {
            let (stop, count, application) = (Arc::clone(&stop), Arc::clone(&count), application.clone());
            running.spawn(async move {
                let mut dice = Dice(client + 1);
                while !stop.load(Ordering::SeqCst) {
                    match application.run(dice.script(scale)).await {
                        Ok(()) => drop(count.committed.fetch_add(1, Ordering::SeqCst)),
                        Err(why) => {
                            count.failed.fetch_add(1, Ordering::SeqCst);
                            *count.last_failure.lock().unwrap() = why;
                        }
                    }
                }
            });
        }
        Load { stop, count, clients: running }
    }

    pub fn count(&self) -> &Count {
        &self.count
    }

    /// Waits until so many more have been committed.
    pub async fn run_on(&self, transactions: u64) {
        let goal = self.count.committed() + transactions;
        let waited = tokio::time::timeout(WITHIN, async {
            while self.count.committed() < goal {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        });
        let last = || self.count.last_failure.lock().unwrap().clone();
        waited.await.unwrap_or_else(|_| panic!("the load stands still: {}", last()));
    }

    /// Lets every client end its transaction.
    pub async fn stop(mut self) -> Arc<Count> {
        self.stop.store(true, Ordering::SeqCst);
        while let Some(ended) = self.clients.join_next().await {
            ended.expect("a client does not panic");
        }
        self.count
    }
}

/// What the tables say: rows of history, and the four sums that must be equal.
pub async fn books(client: &Client) -> (u64, [i64; 4]) {
    let sums = "SELECT (SELECT count(*) FROM pgbench_history), \
                (SELECT COALESCE(sum(delta), 0)::bigint FROM pgbench_history), \
                (SELECT sum(abalance)::bigint FROM pgbench_accounts), \
                (SELECT sum(tbalance)::bigint FROM pgbench_tellers), \
                (SELECT sum(bbalance)::bigint FROM pgbench_branches)";
    let row = client.query_one(sums, &[]).await.expect("the tables are there");
    let rows: i64 = row.get(0);
    (u64::try_from(rows).expect("a count"), [1, 2, 3, 4].map(|at| row.get(at)))
}

/// Numbers that are the same in every run.
struct Dice(u64);

impl Dice {
    fn script(&mut self, scale: u64) -> Script {
        let branch = self.below(scale) + 1;
        let teller = self.below(TELLERS * scale) + 1;
        let account = self.below(ACCOUNTS * scale) + 1;
        let delta = self.below(10_001) - 5_000;
        Script { account, branch, teller, delta }
    }

    fn below(&mut self, end: u64) -> i32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        i32::try_from((self.0 >> 33) % end).expect("the tables are small")
    }
}
