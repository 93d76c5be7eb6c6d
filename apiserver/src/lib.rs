//! A Kubernetes API server of our own: in process for `kube::Client`, over HTTPS on loopback for kubectl and other clients,
//! in memory or durable in one folder. `unsupported.rs` lists what it deliberately leaves out.
//!
//! ```text
//!  kube::Client -----+
//!                    +--> service: which user? --> route: which path? --> scope: which resource?
//!  socket --> serve -+                                                       |
//!       +--------------------------------------------------------------------+
//!       v
//!  verbs: get list watch create update patch delete deletecollection
//!       |  read body (decode)  -->  admit: prune, default, prepare, check  <-- schema: nodes, CEL rules
//!       |                           fields: who manages what, apply         <-- kinds: the common ones
//!       v
//!  store.commit(expected revision) --> [redb: group commit] --> state: objects + log --> watchers
//!       |
//!       v
//!  builtin controllers: CRDs take effect, garbage is collected, namespaces empty out
//!       |
//!       v
//!  encode: requested version, Table, metadata only --> answer: JSON, YAML, lines of a watch
//! ```
//!
//! The types remember progress: a `Call` has been read, a `Scope` exists, a draft `Value` has been admitted, a
//! `Stored` object is kept and never changes. Every step refuses with a Kubernetes `Status`. The
//! store knows no Kubernetes and the rooms above it know no disk; one revision orders every write, and a watch is a
//! walk along the log from a revision, so that a list at an earlier revision, a resumed watch and a page of a list are
//! all the same idea. What a cluster's controllers would do (conditions of CRDs, garbage, namespaces) is done before a
//! write is answered, so that a world made twice is the same world.

mod accept;
mod admit;
mod advice;
mod answer;
mod api;
mod call;
mod clock;
mod credentials;
mod decode;
mod discovery;
mod encode;
mod fields;
mod kinds;
mod object;
mod openapi;
mod patch;
mod protobuf;
mod query;
mod registry;
mod review;
mod route;
mod schema;
mod scope;
mod select;
mod serve;
mod service;
mod status;
mod store;
mod table;
mod token;
mod unsupported;
mod verbs;

pub use answer::Body;
pub use call::User;
pub use clock::Clock;
pub use serve::Served;
pub use service::Service;

use api::Api;
use std::fmt;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use store::{LogLimits, Store};

/// How an embedded API behaves.
#[derive(Clone)]
pub struct Options {
    /// How many changes each resource remembers, for watches that resume and lists that go on.
    pub log_max: usize,
    /// How much memory those changes take at most, about, for each resource. A watch that would go on from an older
    /// revision is answered with 410 and lists again.
    pub log_bytes_max: usize,
    /// A namespace that cannot be deleted, and that is Active again at the next start where an earlier version let its
    /// deletion begin: the controllers on this API cannot run without it. Clients that write a class or a resource elsewhere get a warning.
    pub system_namespace: Option<String>,
    /// Connections at a time; more are refused.
    pub connections_max: usize,
    /// Connections at a time that have not shown a known token yet; the oldest of them that is silent makes room for the
    /// next.
    pub strangers_max: usize,
    /// How long a connection may take for its TLS handshake and its first request.
    pub greet_within: Duration,
    /// How long a connection without a request stays open. A watch is a request for as long as it lasts.
    pub idle_max: Duration,
    /// Returns the time that objects carry.
    pub clock: Clock,
    /// Serve addresses other than loopback too.
    pub listen_anywhere: bool,
    /// The administrator's token; made up where there is none.
    pub token: Option<String>,
    /// Further tokens, and whose they are.
    pub tokens: Vec<(String, User)>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            log_max: 10_000,
            log_bytes_max: 32 << 20,
            system_namespace: None,
            // Half of the descriptors that a process usually has: the rest is the controllers' and the databases'.
            connections_max: 512,
            // A controller opens a connection for each of its watches at once, and none of them is a stranger for long.
            strangers_max: 512,
            greet_within: Duration::from_secs(20),
            idle_max: Duration::from_secs(120),
            clock: Clock::system(),
            listen_anywhere: false,
            token: None,
            tokens: Vec::new(),
        }
    }
}

impl Options {
    fn log_limits(&self) -> LogLimits {
        LogLimits { count: self.log_max, bytes: self.log_bytes_max }
    }
}

impl fmt::Debug for Options {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Tokens are secrets.
        let Options {
            log_max,
            log_bytes_max,
            system_namespace,
            connections_max,
            strangers_max,
            greet_within,
            idle_max,
            clock: _,
            listen_anywhere,
            token: _,
            tokens,
        } = self;
        f.debug_struct("Options")
            .field("log_max", log_max)
            .field("log_bytes_max", log_bytes_max)
            .field("system_namespace", system_namespace)
            .field("connections_max", connections_max)
            .field("strangers_max", strangers_max)
            .field("greet_within", greet_within)
            .field("idle_max", idle_max)
            .field("listen_anywhere", listen_anywhere)
            .field("tokens", &tokens.len())
            .finish()
    }
}

/// Why an embedded API did not start.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// The folder cannot be used, or what it holds cannot be read.
    #[error("the data of the embedded API cannot be used: {0}")]
    Data(String),
    /// The address cannot be had.
    #[error("cannot listen on {0}: {1}")]
    Listen(SocketAddr, std::io::Error),
    /// The address can be reached from other hosts, and the options do not allow that.
    #[error("{0} is not a loopback address: name one such as 127.0.0.1:0, or allow others on purpose")]
    NotLoopback(SocketAddr),
    /// No certificate could be made.
    #[error("no certificate could be made: {0}")]
    Certificate(String),
}

/// A Kubernetes API. Cheap to clone: all clones are one.
#[derive(Clone, Debug)]
pub struct Embedded {
    api: Arc<Api>,
    options: Arc<Options>,
    /// Where it is kept, if anywhere.
    folder: Option<Arc<Path>>,
    /// Whether the system namespace was on its way out when it was opened.
    restored: bool,
}

/// The embedded API by another name, for those who think of it as a server.
pub type Server = Embedded;

impl Embedded {
    /// An API that ends with the process.
    pub fn in_memory() -> Embedded {
        Embedded::in_memory_with(Options::default())
    }

    /// As [`Embedded::in_memory`], with options.
    pub fn in_memory_with(options: Options) -> Embedded {
        let api = Api::new(Store::in_memory(options.log_limits()), &options);
        // Nothing in memory waits, so the first writes are done when they are first asked about.
        let seeded = futures::executor::block_on(api.seed());
        debug_assert!(seeded.is_ok(), "an empty store takes the first namespaces: {seeded:?}");
        Embedded { api: Arc::new(api), options: Arc::new(options), folder: None, restored: false }
    }

    /// An API whose objects are kept in a folder.
    ///
    /// # Guarantees
    /// A write that was answered is there after any end of the process.
    ///
    /// # Errors
    /// When the folder cannot be used, or another process uses it.
    pub fn open(folder: impl AsRef<Path>) -> Result<Embedded, Error> {
        Embedded::open_with(folder, Options::default())
    }

    /// As [`Embedded::open`], with options.
    ///
    /// # Errors
    /// As [`Embedded::open`].
    pub fn open_with(folder: impl AsRef<Path>, options: Options) -> Result<Embedded, Error> {
        let store = Store::open(folder.as_ref(), options.log_limits()).map_err(Error::Data)?;
        let api = Api::new(store, &options);
        // The store answers from a thread of its own, so this needs no runtime.
        let restored = futures::executor::block_on(async {
            api.seed().await?;
            // Before the builtin controllers, which would go on deleting its content.
            let restored = verbs::restore::system_namespace(&api).await?;
            verbs::builtin_controllers::everything(&api).await;
            Ok(restored)
        })
        .map_err(Error::Data)?;
        let folder = Some(Arc::from(folder.as_ref()));
        Ok(Embedded { api: Arc::new(api), options: Arc::new(options), folder, restored })
    }

    /// The API as a tower service, for trusted code in this process.
    pub fn service(&self) -> Service {
        Service::trusting(Arc::clone(&self.api))
    }

    /// A client in this process. Must be called within a tokio runtime.
    pub fn client(&self) -> kube::Client {
        kube::Client::new(self.service(), "default")
    }

    /// Serves the API over HTTPS until the answer is dropped or shut down. One that is kept in a folder keeps its token,
    /// its certificate authority and, where no port is requested and it is free, its port.
    ///
    /// # Errors
    /// The address is in use, or is not loopback and the options do not allow that.
    pub async fn serve(&self, listen: SocketAddr) -> Result<Served, Error> {
        serve::serve(Arc::clone(&self.api), &self.options, self.folder.as_deref(), listen).await
    }

    /// Compacts the log up to now: a watch from an older revision must list again.
    pub fn compact(&self) {
        self.api.store.compact();
    }

    /// Whether the system namespace was being deleted when this was opened, and was made Active again.
    pub fn restored_system_namespace(&self) -> bool {
        self.restored
    }

    /// Why no write can be made durable at present, such as a full disk; none while writes are accepted. It changes by
    /// itself when the disk can be written again.
    pub fn trouble(&self) -> Option<String> {
        self.api.trouble()
    }

    /// As [`Embedded::trouble`], to be followed; none where nothing is kept on disk.
    pub fn follow_trouble(&self) -> Option<tokio::sync::watch::Receiver<Option<String>>> {
        self.api.store.trouble()
    }

    /// Ends every watch, as a server that goes away would.
    pub fn end_watches(&self) {
        self.api.closing.cancel();
    }
}
