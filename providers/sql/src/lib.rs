//! The controller of databases on SQL servers: it carries out, step by step, what `conductor-sql-plan` decides, on servers
//! and through the API, while this process leads.
//!
//! ```text
//! claims, resources, servers, LogicalDatabases -> queue of databases -> reconcile: survey -> next_step -> carry out
//! DatabaseRoles, DatabaseGrants                -> queue of roles     -> reconcile: the same, for another login
//! DatabaseClaims                               -> queue of DatabaseClaims -> a claim of the same name, and a Secret
//! servers, every 30 s                          -> their status, and the resources that they offer
//! configuration of servers                     -> DatabaseServers, and classes that create servers on demand
//! ```
//!
//! Claims and resources are watched from the first server, LogicalDatabase, role or DatabaseClaim on; without any of these
//! they do not concern this controller. Indexes find the objects that a change concerns.
//!
//! Deliberately absent: decisions; retries of writes; any output of a password.

mod access;
mod admin_secret;
mod api_client;
mod clear_text;
mod clock;
pub mod command;
mod database_claim;
mod error;
mod finalizer;
mod health;
mod hold;
mod identity;
mod informer;
mod informers;
pub mod local;
mod logical_database;
mod login_secrets;
mod mariadb;
mod metrics;
mod mysql_password;
mod notice;
mod pool;
mod postgres;
mod reconcile;
mod role;
mod rotation;
mod secret;
mod server;
mod server_finalizer;
mod store;
mod tls;
mod trial;
mod workqueue;

pub use access::Access;
pub use error::Error;
pub use informer::WatchReport;
pub use metrics::Metrics;
pub use pool::{Health, Pool, Session, run_as};
pub use secret::{Password, verifier};

use api_client::ApiClient;
use conductor_runtime::leadership::Leadership;
use informers::{Change, Informers};
use kube::{Client, ResourceExt};
use reconcile::Provider;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// The options of the controller.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespace of servers and LogicalDatabases.
    pub system_namespace: String,
    /// The folder for the data of local servers; without one there are none.
    pub local_servers: Option<PathBuf>,
    /// The configuration of servers: a file, or `configmap/NAME` in the system namespace.
    pub configuration: Option<String>,
}

/// Reconciles the databases of claims until it is dropped.
///
/// # Guarantees
/// Nothing is written, on any server or through the API, while this process does not lead. It waits for kinds that are not
/// installed. Every other watch that is not current is reported to `report`.
pub async fn run(
    client: Client,
    options: Options,
    leadership: Leadership,
    metrics: Metrics,
    report: WatchReport,
) {
    let Options { system_namespace, local_servers, configuration } = options;
    let (wakes, changes) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    let (passed_on, inbox) = mpsc::unbounded_channel();
    let informers = Informers::start(&client, &system_namespace, report, &wakes, &mut tasks);
    let (change, changed) = watch::channel(());
    let (to_roles, for_roles) = mpsc::unbounded_channel();
    let (to_claims, for_claims) = mpsc::unbounded_channel();
    let others = (to_roles.clone(), to_claims.clone());
    tasks.spawn(notice(changes, passed_on, change, move |wake: &Change| {
        // A closed queue needs no more changes.
        let _ = others.0.send(wake.clone().into());
        let _ = others.1.send(wake.clone().into());
    }));
    informers.wait_for_servers().await;
    tracing::info!("databases: servers and LogicalDatabases are listed");
    let cluster = ApiClient { client, namespace: system_namespace, leadership };
    let provider = Provider { cluster, informers, pool: Pool::default(), metrics };
    tasks.spawn(health::run(provider.clone(), changed.clone()));
    tasks.spawn(role::run(provider.clone(), to_roles, for_roles));
    tasks.spawn(database_claim::run(provider.clone(), to_claims, for_claims));
    if let Some(source) = configuration {
        tasks.spawn(database_claim::run_config(provider.clone(), source));
    }
    let work = workqueue::run(provider.clone(), inbox);
    match local_servers {
        // In this task, so that waiting for its end waits until the servers have ended.
        Some(folder) => drop(futures::join!(work, local::run(provider, folder, changed))),
        None => work.await,
    }
}

/// Forwards changes to the queues, and those that concern servers to the health checks too.
async fn notice(
    mut changes: mpsc::UnboundedReceiver<Change>,
    pass_on: mpsc::UnboundedSender<Change>,
    change: watch::Sender<()>,
    forward: impl Fn(&Change),
) {
    let mut known = BTreeMap::new();
    while let Some(wake) = changes.recv().await {
        let (is_news, is_for_servers) = match &wake {
            Change::Server(_, server) => {
                let relevant = informers::relevant_part(server);
                let is_news = known.insert(server.uid(), relevant.clone()) != Some(relevant);
                (is_news, is_news)
            }
            // Its last claim was deleted: it can be made available again.
            Change::Resource(resource) => (true, informers::text(resource, "/status/phase") == "Released"),
            Change::Everything => (true, true),
            Change::Claim(_) | Change::LogicalDatabase(_) => (true, false),
        };
        if is_for_servers {
            change.send_replace(());
        }
        if is_news {
            forward(&wake);
            let _ = pass_on.send(wake);
        }
    }
}
