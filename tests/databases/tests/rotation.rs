//! Logins rotated under load, and searched: applications probe twenty times a second with what is published while
//! logins rotate repeatedly; afterwards every password that ever existed is searched in everything that others
//! can read: the server's own log, ours, statuses, Events, figures.

use conductor_databases::{Cluster, Login, Metrics, RealServer, SYSTEM};
use conductor_live::{Controller, until};
use conductor_sql_plan::sql::Dialect;
use kube::api::ListParams;
use serde_json::json;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const PROBES_A_SECOND: u64 = 20;
const CHANGES: usize = 6;

/// The log of the controller and its libraries, at the highest level.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn start() -> Log {
        let log = Log::default();
        let writer = log.clone();
        let filter = tracing_subscriber::EnvFilter::new("debug,conductor=trace");
        let logging = tracing_subscriber::fmt().with_env_filter(filter).with_ansi(false);
        logging.with_writer(move || writer.clone()).try_init().expect("no other subscriber is set");
        log
    }

    fn text(&self) -> String {
        let bytes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

impl std::io::Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// What the probes found.
#[derive(Debug, Default)]
struct Probes {
    tried: AtomicUsize,
    failed: AtomicUsize,
    ended: AtomicBool,
}

/// Logs in with what is published, again and again. An application hears of a change a little later than it happens,
/// so each probe uses what was published a second ago.
async fn probe(cluster: Arc<Cluster>, dialect: Dialect, probes: Arc<Probes>) {
    let mut tick = tokio::time::interval(Duration::from_millis(1_000 / PROBES_A_SECOND));
    let mut held = cluster.published("app", "orders").await;
    let mut since = tokio::time::Instant::now();
    while !probes.ended.load(Ordering::Relaxed) {
        tick.tick().await;
        if since.elapsed() > Duration::from_secs(1) {
            (held, since) = (cluster.published("app", "orders").await, tokio::time::Instant::now());
        }
        let login = Login::new(dialect, held.clone().unwrap_or_default());
        let probes = Arc::clone(&probes);
        tokio::spawn(async move {
            let answer = login.run("SELECT 1").await;
            probes.tried.fetch_add(1, Ordering::Relaxed);
            if let Err(why) = answer {
                println!("a probe failed: {why}");
                probes.failed.fetch_add(1, Ordering::Relaxed);
            }
        });
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn no_login_fails_while_logins_change_and_no_password_is_ever_shown() {
    let log = Log::start();
    for dialect in [Dialect::Postgresql, Dialect::Mariadb] {
        let server = RealServer::start(dialect).await;
        let cluster = Arc::new(Cluster::enter().await);
        cluster.register("main", &server, json!({})).await;
        let metrics = Metrics::choose();
        let controller = Controller::start(cluster.turn.controller_client(), metrics.options());
        let id = cluster.claim("app", "orders", "main", json!({})).await;
        let mut before = cluster.login(dialect, "app", "orders").await;
        let mut passwords = BTreeSet::from([before.get("password").to_owned()]);
        let probes = Arc::new(Probes::default());
        let probing = tokio::spawn(probe(Arc::clone(&cluster), dialect, Arc::clone(&probes)));
        for count in 0..CHANGES {
            // Applications hear of one change before the next: that is what the period is for.
            tokio::time::sleep(Duration::from_millis(2_500)).await;
            cluster.rotate(&id, &format!("soft-{count}")).await;
            before = next(&cluster, dialect, &before).await;
            passwords.insert(before.get("password").to_owned());
        }
        tokio::time::sleep(Duration::from_secs(2)).await;
        probes.ended.store(true, Ordering::Relaxed);
        probing.await.expect("the probes end");
        tokio::time::sleep(Duration::from_secs(1)).await;
        let (tried, failed) = (probes.tried.load(Ordering::Relaxed), probes.failed.load(Ordering::Relaxed));
        println!("{dialect:?}: {CHANGES} changes, {tried} logins tried, {failed} failed");
        assert!(failed == 0 && tried > 100, "{failed} of {tried} logins failed");
        cluster.rotate(&id, "hard-1").await;
        let last = next(&cluster, dialect, &before).await;
        last.run("SELECT 1").await.expect("the new one works");
        before.run("SELECT 1").await.expect_err("the one before ends at once");
        passwords.insert(last.get("password").to_owned());
        assert_eq!(passwords.len(), CHANGES + 2);
        scan(&cluster, &server, (metrics, &log), &passwords).await;
        controller.stop().await.expect("it stops on request");
    }
}

async fn next(cluster: &Cluster, dialect: Dialect, before: &Login) -> Login {
    until("another login is published", async || {
        let now = Login::new(dialect, cluster.published("app", "orders").await?);
        (now != *before).then_some(now)
    })
    .await
}

/// Searches every password in everything that others can read.
async fn scan(
    cluster: &Cluster,
    server: &RealServer,
    (metrics, log): (Metrics, &Log),
    passwords: &BTreeSet<String>,
) {
    let mut read = vec![("the server's log", server.log())];
    assert!(read[0].1.contains("conductor:"), "the log holds the statements");
    for kind in ["LogicalDatabase", "DatabaseServer"] {
        let objects = cluster.api(kind).list(&ListParams::default()).await.expect("the API lists");
        read.push(("objects", serde_json::to_string(&objects.items).expect("JSON")));
    }
    let claim = cluster.turn.claim("app", "orders").await.expect("it exists");
    read.push(("the claim", serde_json::to_string(&claim).expect("JSON")));
    read.push(("events", cluster.turn.kubectl(&["get", "events", "-A", "-o", "json"])));
    read.push(("config maps", cluster.turn.kubectl(&["get", "configmaps", "-n", "app", "-o", "json"])));
    let metrics = metrics.text().await;
    assert!(metrics.contains("conductor_database_rotations_total"), "{metrics}");
    read.push(("figures", metrics));
    let log = log.text();
    assert!(log.contains("SetPassword"), "our log contains the steps");
    read.push(("our log", log));
    for figure in ["users_created", "rotations", "claim_load_seconds", "statements"] {
        assert!(
            read.iter().any(|(_, text)| text.contains(&format!("conductor_database_{figure}"))),
            "{figure}"
        );
    }
    let admin = server.access().password;
    for (place, text) in &read {
        for password in passwords.iter().map(String::as_str).chain([admin.expose()]) {
            assert!(!text.contains(password), "a password stands in {place}");
        }
    }
    let secrets = cluster.secrets(SYSTEM).list(&ListParams::default()).await.expect("the API lists");
    assert!(secrets.items.len() >= 3, "the administrator's, the rotation state and the login");
}
