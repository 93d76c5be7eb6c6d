//! The options of the controller, with defaults for a cluster.

use conductor::model::AllowedKinds;
use conductor::template::Adapters;
use conductor_runtime::backoff::{self, Backoff};
use conductor_runtime::lease::LeaseOptions;
use conductor_runtime::list_watch::WatchOptions;
use std::fmt;
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

/// The options of the controller.
#[derive(Clone, Debug)]
pub struct Options {
    /// The namespace of resources and classes.
    pub system_namespace: String,
    /// The identity of this process in the Lease and in Events; different for every process.
    pub identity: String,
    /// Leader election; without it this process always leads.
    pub lease: Option<LeaseOptions>,
    /// Calls a second, in the long run.
    pub writes_per_second: u32,
    /// Calls at once, after a pause.
    pub burst: u32,
    /// Calls in flight.
    pub parallel_writes: usize,
    /// How long one call may take; after that it is not known whether the API did it.
    pub request_timeout: Duration,
    /// How long one watch lasts. A connection that died silently is noticed a little later than this.
    pub watch_timeout: Duration,
    /// Objects on one page of a list.
    pub page_size: u32,
    /// The resync interval of published Secrets: one that another client deleted or edited is repaired within that time,
    /// or as soon as its claim changes.
    pub recheck: Duration,
    /// The address of health and metrics.
    pub listen: Option<SocketAddr>,
    /// An open socket to serve health and metrics on instead.
    pub listener: Option<Arc<TcpListener>>,
    /// Further checks of readiness.
    pub checks: Vec<Check>,
    /// How long the controller waits for calls in flight when it stops.
    pub drain: Duration,
    /// The kinds whose objects classes may create; some kinds are denied in any case.
    pub allowed_kinds: AllowedKinds,
    /// How many resources of bound claims may be missing at once for their claims to become Lost; with more, the
    /// claims keep their status and Events report the loss.
    pub lost_at_once_max: usize,
    /// Whether this process provisions databases for claims on database servers.
    pub databases: bool,
    /// Folder for the data of database servers that this process runs itself; without one it runs none.
    pub local_servers: Option<PathBuf>,
    /// The configuration of database servers: a file, or `configmap/NAME` in the system namespace.
    pub database_config: Option<String>,
    /// The adapters of well-known kinds of implementation.
    pub adapters: Arc<Adapters>,
}

/// A check of readiness outside the controller, such as the disk of an embedded API.
#[derive(Clone)]
pub struct Check {
    /// The name in `/readyz` and in the metrics.
    pub name: &'static str,
    /// Returns what is wrong now, if anything. Called at each probe: must not block.
    pub ask: Arc<dyn Fn() -> Option<String> + Send + Sync>,
}

impl Options {
    /// How the engine's kinds are watched.
    pub(super) fn watch(&self) -> WatchOptions {
        WatchOptions {
            timeout: self.watch_timeout,
            page_size: self.page_size,
            backoff: Backoff { first: Duration::from_millis(250), max: Duration::from_secs(10) },
            relist_after: 4,
        }
    }
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
            adapters: Adapters::builtin(),
        }
    }
}

/// A unique name for this process: that of its host, if known, and a random number.
fn identity() -> String {
    let host = std::env::var("HOSTNAME").unwrap_or_default();
    let host = if host.is_empty() { "conductor".to_owned() } else { host };
    format!("{host}-{:016x}", backoff::random())
}
