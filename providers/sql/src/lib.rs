//! The outside world of databases: servers asked and told, Secrets and records written. What is done is decided in
//! `database`; here it is carried out, step by step, while this process leads.
//!
//! ```text
//! watches (claims, resources, servers, records) --> queue of databases --> one worker per database
//!                                                                            survey -> next_step -> carry out, again
//! servers --> looked at every half minute --> their status, and what they offer
//! roles, grants --> queue of roles --> one worker per role: as a database, for another application's login
//! DatabaseClaims --> queue of fronts --> a claim of the same name, and a Secret with the keys of the front
//! configuration of a fleet --> servers, and classes that make them on demand
//! ```
//!
//! Claims and resources are followed from the first server, record, role or DatabaseClaim on: without any of these a
//! cluster's claims are no business of ours. A change is looked up by what it names, never searched for.
//!
//! Deliberately absent: decisions; retries of writes; anything that prints a password.

mod access;
mod admin_secret;
mod book;
mod clear_text;
mod clock;
pub mod command;
mod crypt;
mod desk;
mod figures;
mod follow;
mod front;
mod health;
mod hold;
mod identity;
mod leaving;
pub mod local;
mod mariadb;
mod mirror;
mod notice;
mod pass;
mod pool;
mod postgres;
mod record;
mod role;
mod rotation;
mod secret;
mod server;
mod tls;
mod trial;
mod trouble;
mod work;
mod world;

pub use access::Access;
pub use figures::Figures;
pub use follow::WatchReport;
pub use pool::{Health, Pool, Session, run_as};
pub use secret::{Password, verifier};
pub use trouble::Trouble;

use conductor_runtime::leadership::Leadership;
use desk::Desk;
use kube::{Client, ResourceExt};
use pass::Provider;
use std::collections::BTreeMap;
use std::path::PathBuf;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use world::{Wake, World};

/// How databases are made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where servers and records live.
    pub system_namespace: String,
    /// Folder for the data of servers that this process runs itself; without one it runs none.
    pub local_servers: Option<PathBuf>,
    /// The configuration of a fleet of servers: a file, or `configmap/NAME` in the system namespace.
    pub configuration: Option<String>,
}

/// Makes and keeps databases for claims until it is dropped.
///
/// # Guarantees
/// Nothing is written, on any server or through the API, while this process does not lead. Kinds that are not installed
/// make it wait, and nothing else. Every other watch that is not current is reported to `report`.
pub async fn run(
    client: Client,
    options: Options,
    leadership: Leadership,
    figures: Figures,
    report: WatchReport,
) {
    let Options { system_namespace, local_servers, configuration } = options;
    let (wakes, told) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    let (passed_on, inbox) = mpsc::unbounded_channel();
    let world = World::follow(&client, &system_namespace, report, &wakes, &mut tasks);
    let (change, changed) = watch::channel(());
    let (to_roles, for_roles) = mpsc::unbounded_channel();
    let (to_fronts, for_fronts) = mpsc::unbounded_channel();
    let others = (to_roles.clone(), to_fronts.clone());
    tasks.spawn(notice(told, passed_on, change, move |wake: &Wake| {
        // Whoever has ended has no more to hear.
        let _ = others.0.send(wake.clone().into());
        let _ = others.1.send(wake.clone().into());
    }));
    world.wait_for_servers().await;
    tracing::info!("databases: servers and records are listed");
    let desk = Desk { client, namespace: system_namespace, leadership };
    let provider = Provider { desk, world, pool: Pool::default(), figures };
    tasks.spawn(health::run(provider.clone(), changed.clone()));
    tasks.spawn(role::run(provider.clone(), to_roles, for_roles));
    tasks.spawn(front::run(provider.clone(), to_fronts, for_fronts));
    if let Some(source) = configuration {
        tasks.spawn(front::run_config(provider.clone(), source));
    }
    let work = work::run(provider.clone(), inbox);
    match local_servers {
        // Part of this task and none of its own: whoever waits for the end of this one waits until the servers have ended.
        Some(folder) => drop(futures::join!(work, local::run(provider, folder, changed))),
        None => work.await,
    }
}

/// Passes changes on; those that a server may care about are told to whoever looks at servers too.
async fn notice(
    mut told: mpsc::UnboundedReceiver<Wake>,
    pass_on: mpsc::UnboundedSender<Wake>,
    change: watch::Sender<()>,
    tell_others: impl Fn(&Wake),
) {
    let mut known = BTreeMap::new();
    while let Some(wake) = told.recv().await {
        let (is_news, is_for_servers) = match &wake {
            Wake::Server(_, server) => {
                let words = world::words_of_server(server);
                let is_news = known.insert(server.uid(), words.clone()) != Some(words);
                (is_news, is_news)
            }
            // Its last claim is gone: it can be given out again.
            Wake::Resource(resource) => (true, world::text(resource, "/status/phase") == "Released"),
            Wake::Everything => (true, true),
            Wake::Claim(_) | Wake::Record(_) => (true, false),
        };
        if is_for_servers {
            change.send_replace(());
        }
        if is_news {
            tell_others(&wake);
            let _ = pass_on.send(wake);
        }
    }
}
