//! Logins that Conductor changes, in an application that follows them with `hotload`: the load of pgbench through pools,
//! the Secret mounted as a kubelet does it. Graceful changes fail no transaction, and every client that logs in with what is
//! mounted gets in; after a hard one the application goes on by itself.

#[path = "../../../hotload/tests/servers/load.rs"]
mod load;
#[path = "../../../hotload/tests/servers/mount.rs"]
#[allow(dead_code, reason = "other tests use the rest of it")]
mod mount;
#[path = "../../../hotload/tests/servers/probe.rs"]
mod probe;

use conductor_databases::{Cluster, Login, RealServer};
use conductor_live::until;
use conductor_sql_plan::sql::Dialect;
use deadpool_postgres::tokio_postgres::{Client, NoTls, connect};
use hotload::Source;
use load::{Application, Load, books, make_tables};
use mount::Mount;
use probe::Probe;
use serde_json::json;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinHandle;

const SCALE: u64 = 2;
const CLIENTS: u64 = 6;
/// Fewer than clients: connections are lent all the time.
const CONNECTIONS: usize = 4;
const GRACEFUL: u64 = 6;
/// Transactions between two changes.
const BETWEEN: u64 = 500;
/// How many times as many the failures of a hard change may take to end.
const INTERVALS_MAX: usize = 20;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn pools_under_load_follow_every_change_of_their_login() {
    let server = RealServer::start(Dialect::Postgresql).await;
    let cluster = Arc::new(Cluster::enter().await);
    cluster.register("main", &server, json!({})).await;
    let controller = cluster.controller();
    for name in ["deadpool", "sqlx"] {
        let id = cluster.claim("app", name, "main", json!({})).await;
        cluster.login(Dialect::Postgresql, "app", name).await;
        let mounted = Mounted::start(&cluster, name).await;
        let source = Source::at(&mounted.folder).open().await.expect("the login works");
        let claim = Claim { cluster: Arc::clone(&cluster), name, id, source, folder: mounted.folder.clone() };
        match name {
            "deadpool" => {
                let pool = hotload::deadpool::pool(&claim.source, CONNECTIONS);
                changes_under_load(claim, &server, pool).await;
            }
            _ => {
                let options = sqlx::postgres::PgPoolOptions::new().max_connections(CONNECTIONS as u32);
                let pool = hotload::sqlx::postgres(&claim.source, options).expect("it is PostgreSQL");
                changes_under_load(claim, &server, pool.clone()).await;
                pool.close().await;
            }
        }
        mounted.tail.abort();
        cluster.release("app", name).await;
    }
    controller.stop().await.expect("it stops on request");
}

/// A claim, and what its application knows.
struct Claim {
    cluster: Arc<Cluster>,
    name: &'static str,
    id: String,
    source: Source,
    folder: PathBuf,
}

impl Claim {
    /// Requests a rotation, and waits until the application has adopted it.
    async fn change(&mut self, token: &str) {
        let before = self.source.generation();
        self.cluster.rotate(&self.id, token).await;
        until("the login is adopted", async || (self.source.generation() > before).then_some(())).await;
    }
}

async fn changes_under_load(mut claim: Claim, server: &RealServer, application: impl Application) {
    let (name, login) = (claim.name, claim.source.login());
    let password = claim.cluster.published("app", name).await.expect("it is published")["password"].clone();
    make_tables(SCALE, login.port(), login.username(), &password, login.database());
    let books_of = admin(server, login.database()).await;

    let probe = Probe::start(claim.folder.clone());
    let load = Load::start(&application, CLIENTS, SCALE);
    for turn in 0..GRACEFUL {
        load.run_on(BETWEEN).await;
        claim.change(&format!("soft-{turn}")).await;
    }
    load.run_on(BETWEEN).await;
    let count = load.stop().await;
    let (logins, refused) = probe.stop().await;
    let (rows, sums) = books(&books_of).await;
    println!(
        "{name}: {GRACEFUL} graceful changes by Conductor, {} transactions, {} failed; {logins} logins, {} refused",
        count.committed(),
        count.failed(),
        refused.len()
    );
    assert_eq!(count.failed(), 0, "{}", count.last_failure.lock().expect("no thread panicked"));
    assert!(logins > 0 && refused.is_empty(), "{refused:?}");
    assert_eq!(rows, count.committed());
    assert!(sums.iter().all(|sum| *sum == sums[0]), "{sums:?}");

    let load = Load::start(&application, CLIENTS, SCALE);
    load.run_on(BETWEEN).await;
    let leaked = claim.cluster.published("app", name).await.expect("it is published");
    claim.change("hard-1").await;
    let leaked = Login::new(Dialect::Postgresql, leaked);
    leaked.run("SELECT 1").await.expect_err("the login that leaked is refused");
    // What used the old login fails and is over soon, later on a busy machine; then nothing fails for a whole interval.
    let mut failed = load.count().failed();
    for _ in 0..INTERVALS_MAX {
        load.run_on(BETWEEN).await;
        let before = std::mem::replace(&mut failed, load.count().failed());
        if before == failed {
            break;
        }
    }
    load.run_on(BETWEEN).await;
    let hard = load.stop().await;
    let (all, sums) = books(&books_of).await;
    println!(
        "{name}: 1 hard change by Conductor, {} transactions, {} failed",
        hard.committed(),
        hard.failed()
    );
    assert_eq!(hard.failed(), failed, "{}", hard.last_failure.lock().expect("no thread panicked"));
    // A commit whose answer was lost may have happened.
    let range = rows + hard.committed()..=rows + hard.committed() + hard.failed();
    assert!(
        range.contains(&all) && sums.iter().all(|sum| *sum == sums[0]),
        "{all} rows, {range:?}, {sums:?}"
    );
}

/// A Secret that is mounted, and refreshed when it changes.
struct Mounted {
    folder: PathBuf,
    tail: JoinHandle<()>,
}

impl Mounted {
    async fn start(cluster: &Arc<Cluster>, name: &'static str) -> Mounted {
        let (cluster, mut mount) = (Arc::clone(cluster), Mount::new());
        let folder = mount.folder();
        let mut known = cluster.published("app", name).await.expect("it is published");
        mount.publish(&known);
        let tail = tokio::spawn(async move {
            loop {
                tokio::time::sleep(Duration::from_millis(100)).await;
                if let Some(now) = cluster.published("app", name).await.filter(|now| *now != known) {
                    mount.publish(&now);
                    known = now;
                }
            }
        });
        Mounted { folder, tail }
    }
}

/// The administrator in the application's database.
async fn admin(server: &RealServer, database: &str) -> Client {
    let access = server.access();
    let (user, password) = (&access.username, access.password.expose());
    let address =
        format!("host=127.0.0.1 port={} user={user} password={password} dbname={database}", access.port);
    let (client, connection) = connect(&address, NoTls).await.expect("the server answers");
    tokio::spawn(connection);
    client
}
