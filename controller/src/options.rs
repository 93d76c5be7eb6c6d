//! What the controller is told once, with defaults that suit a cluster. Where they come from is the caller's.

use super::chance;
use conductor::model::AllowedKinds;
use conductor::template::Adapters;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// How the controller runs.
#[derive(Clone, Debug)]
pub struct Options {
    /// Where resources and classes live.
    pub system_namespace: String,
    /// Who we are in the Lease and in Events; different for every process.
    pub identity: String,
    /// Leader election; without it this process takes itself for the only one.
    pub lease: Option<LeaseOptions>,
    /// Calls a second, in the long run.
    pub writes_per_second: u32,
    /// Calls at once, after a pause.
    pub burst: u32,
    /// Calls on their way at the same time.
    pub parallel_writes: usize,
    /// How long one call may take; after that nobody knows whether it was done.
    pub request_timeout: Duration,
    /// How long one watch lasts. A connection that died silently is noticed after a little more than this.
    pub watch_timeout: Duration,
    /// Objects on one page of a list.
    pub page_size: u32,
    /// Within about how long each published Secret is looked at once: one that somebody removed or edited is put right
    /// within that time. A claim that is touched is looked at at once.
    pub recheck: Duration,
    /// Where health and metrics are served, if anywhere.
    pub listen: Option<SocketAddr>,
    /// A socket that is open already, to serve health and metrics on instead.
    pub listener: Option<Arc<TcpListener>>,
    /// What readiness depends on beside the controller itself.
    pub checks: Vec<Check>,
    /// How long calls on their way are waited for when asked to stop.
    pub drain: Duration,
    /// The kinds of which classes may make objects; those that are always denied are denied whatever stands here.
    pub allowed_kinds: AllowedKinds,
    /// How many resources of bound claims may be missing at once for their claims to become Lost; with more, the
    /// claims keep their status and Events report the loss.
    pub lost_at_once_max: usize,
    /// Whether claims on database servers get databases of their own, made by this process.
    pub databases: bool,
    /// Folder for the data of database servers that this process runs itself; without one it runs none.
    pub local_servers: Option<PathBuf>,
    /// The configuration of a fleet of database servers: a file, or `configmap/NAME` in the system namespace.
    pub database_config: Option<String>,
    /// What is known of well-known kinds of implementation.
    pub adapters: Arc<Adapters>,
}

/// Something outside the controller that its readiness depends on, such as the disk of an embedded API.
#[derive(Clone)]
pub struct Check {
    /// What it is called in `/readyz` and in the metrics.
    pub name: &'static str,
    /// What is wrong with it now, if anything. Called at each probe: it must not wait.
    pub ask: Arc<dyn Fn() -> Option<String> + Send + Sync>,
}

impl fmt::Debug for Check {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Check").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Default for Options {
    fn default() -> Self {
        Options {
            system_namespace: "conductor-system".to_owned(),
            identity: identity(),
            lease: Some(LeaseOptions::default()),
            writes_per_second: 2_000,
            burst: 2_000,
            // An API server that is busy does no more with 64 than with 32, but each call takes twice as long,
            // and so does the next one that an application waits for.
            parallel_writes: 32,
            request_timeout: Duration::from_secs(10),
            watch_timeout: Duration::from_secs(25),
            page_size: 1_000,
            recheck: Duration::from_secs(600),
            listen: None,
            listener: None,
            checks: Vec::new(),
            drain: Duration::from_secs(5),
            allowed_kinds: AllowedKinds::default(),
            lost_at_once_max: 2,
            databases: false,
            local_servers: None,
            database_config: None,
            adapters: Adapters::shipped(),
        }
    }
}

/// How the leader is elected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseOptions {
    /// Where the Lease is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// How long others respect a Lease that is not renewed.
    pub duration: Duration,
    /// How long we lead without having renewed it. Shorter than `duration`, so that our last call has
    /// ended when others begin.
    pub renew_deadline: Duration,
    /// How often it is looked at or renewed.
    pub retry: Duration,
}

impl Default for LeaseOptions {
    fn default() -> Self {
        LeaseOptions {
            namespace: "conductor-system".to_owned(),
            name: "conductor".to_owned(),
            duration: Duration::from_secs(15),
            renew_deadline: Duration::from_secs(10),
            retry: Duration::from_secs(2),
        }
    }
}

/// A name for this process that no other has: the host's, where it is known, and something random.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_default();
    let host = if host.is_empty() { "conductor".to_owned() } else { host };
    format!("{host}-{:016x}", chance::number())
}
