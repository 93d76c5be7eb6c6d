//! The outside world of databases: servers asked and told, Secrets and records written. What is done is decided in
//! `database`; here it is carried out, step by step, while this process leads.
//!
//! ```text
//! watches (claims, resources, servers, records) --> queue of databases --> one worker per database
//!                                                                            survey -> next_step -> carry out, again
//! servers --> looked at every half minute --> their status, and what they offer
//! ```
//!
//! Deliberately absent: decisions; retries of writes; anything that prints a password.

mod access;
mod book;
mod clock;
pub mod command;
mod desk;
mod figures;
mod health;
pub mod local;
mod mariadb;
mod pass;
mod pool;
mod postgres;
mod record;
mod secret;
mod server;
mod tls;
mod trouble;
mod work;
mod world;

pub use access::Access;
pub use desk::Leader;
pub use figures::Figures;
pub use pool::{Health, Pool, Session};
pub use secret::{Password, verifier};
pub use trouble::Trouble;

use desk::Desk;
use kube::Client;
use pass::Provider;
use std::path::PathBuf;
use std::sync::Arc;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;
use work::Work;
use world::{Wake, World};

/// How databases are made.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where servers and records live.
    pub system_namespace: String,
    /// Folder for the data of servers that this process runs itself; without one it runs none.
    pub local_servers: Option<PathBuf>,
}

/// Makes and keeps databases for claims until it is dropped.
///
/// # Guarantees
/// Nothing is written, on any server or through the API, while `leader` does not lead. Kinds that are not installed
/// make it wait, and nothing else.
pub async fn run(client: Client, options: Options, leader: Arc<dyn Leader>, figures: Figures) {
    let Options { system_namespace, local_servers } = options;
    let (wakes, told) = mpsc::unbounded_channel();
    let mut tasks = JoinSet::new();
    let (passed_on, inbox) = mpsc::unbounded_channel();
    let world = World::follow(&client, &system_namespace, &wakes, &mut tasks);
    let (change, changed) = watch::channel(());
    tasks.spawn(notice(told, passed_on, change));
    world.wait_until_ready().await;
    tracing::info!("databases: everything is listed");
    let desk = Desk { client, namespace: system_namespace, leader };
    let provider = Provider { desk, world, pool: Pool::default(), figures };
    tasks.spawn(health::run(provider.clone(), changed.clone()));
    if let Some(folder) = local_servers {
        tasks.spawn(local::run(provider.clone(), folder, changed));
    }
    Work::default().run(provider, inbox).await;
}

/// Passes changes on; those that a server may care about are told to whoever looks at servers too.
async fn notice(
    mut told: mpsc::UnboundedReceiver<Wake>,
    pass_on: mpsc::UnboundedSender<Wake>,
    change: watch::Sender<()>,
) {
    while let Some(wake) = told.recv().await {
        if matches!(wake, Wake::Server | Wake::Resource(_)) {
            change.send_replace(());
        }
        let _ = pass_on.send(wake);
    }
}
