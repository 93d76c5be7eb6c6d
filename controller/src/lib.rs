//! The controller: watches become events for the engine, and its actions become calls. Decides nothing; the engine is the
//! one that the simulator runs.
//!
//! ```text
//!  watches --> sink --> event loop: engine.handle --> writer --> API
//!                         ^    |                        |
//!                         |    +--> events --> log, Events
//!                         +------- answers -------------+
//!
//!  elector --> leadership: checked before every write
//! ```

mod admin_client;
mod error;
mod event_loop;
mod events;
mod health;
mod list_watch;
mod metrics;
mod options;
mod part_watch;
mod part_writer;
mod publish;
mod response;
mod rest;
mod running;
mod serve;
mod sink;
mod system_namespace;
mod write_priority;
mod writer;

pub use admin_client::AdminClient;
pub use conductor_runtime::elector::LeaseLost;
pub use conductor_runtime::lease::LeaseOptions;
pub use conductor_runtime::{ConnectError, connect, find_cluster};
pub use error::Error;
pub use list_watch::{Followed, follow_all, list, list_all, list_outside};
pub use options::{Check, Options};
pub use rest::kinds;

use conductor::api::names;
use conductor::engine::Config;
use conductor::model::{Name, Slot};
use conductor_runtime::collection::Collection;
use conductor_runtime::discovery::Routes;
use conductor_runtime::elector::{Elector, LeaseState};
use conductor_runtime::leadership::Leadership;
use conductor_runtime::lease::LeaseReader;
use conductor_runtime::list_watch::ListWatch;
use conductor_runtime::rate_limit::RateLimit;
use conductor_runtime::rest::Route;
use conductor_sql::WatchReport;
use event_loop::{EventLoop, Message};
use events::{EventRecorder, EventSender};
use health::Health;
use kube::Client;
use metrics::Metrics;
use part_watch::PartWatches;
use running::{Running, WRITER, named};
use sink::{EngineSink, Reader, kind_reader};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use writer::{Executor, Writer};

/// Events that may wait for the engine; beyond that the watches wait.
const INBOX: usize = 4_096;

/// Runs the controller on a cluster until `stop`, or until it must not continue.
///
/// # Guarantees
/// Writes nothing before everything is listed and this process leads, and nothing after it lost the lease. Dropping the
/// future ends everything, as if the process had been killed.
///
/// # Assumptions
/// `client` retries nothing by itself; [`connect`] creates such a client.
///
/// # Errors
/// The lease was lost, or the address for health and metrics is not available. All other failures are retried.
pub async fn run(client: Client, options: Options, stop: CancellationToken) -> Result<(), Error> {
    let lease = options.lease.as_ref();
    let reader = lease
        .map(|lease| LeaseReader::new(client.clone(), &options.identity, lease, options.request_timeout));
    let leadership = Leadership::new(reader.clone());
    let _resign = leadership.resign_on_drop();
    let state = if lease.is_some() { LeaseState::Unread } else { LeaseState::Unneeded };
    let kinds = rest::kinds().into_iter().map(|kind| kind.name()).collect();
    let health = Arc::new(Health::new(kinds, state, leadership.clone(), options.checks.clone()));
    let elector = reader.zip(options.lease.clone()).map(|(reader, lease)| {
        let observer: Arc<Health> = Arc::clone(&health);
        Elector::new(reader, lease, leadership.clone(), observer)
    });
    let (inbox, events) = mpsc::channel(INBOX);
    let parts = Parts { client, options, inbox, leadership, health, metrics: Arc::new(Metrics::new()) };
    let mut tasks = JoinSet::new();
    let halt = CancellationToken::new();
    parts.serve(&mut tasks).await?;
    parts.start_event_loop(events, &halt, &mut tasks);
    parts.start_watches(&mut tasks);
    if parts.options.databases {
        parts.start_databases(&mut tasks);
    }
    let Parts { options, inbox, leadership, metrics, .. } = parts;
    let mut running = Running { tasks, elector, inbox, leadership, metrics, halt, drain: options.drain };
    tokio::select! {
        () = stop.cancelled() => {}
        error = running.lead() => return Err(error),
    }
    running.wind_down().await;
    Ok(())
}

/// What the parts of the controller share.
struct Parts {
    client: Client,
    options: Options,
    inbox: mpsc::Sender<Message>,
    leadership: Leadership,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
}

type Tasks = JoinSet<&'static str>;

impl Parts {
    async fn serve(&self, tasks: &mut Tasks) -> Result<(), Error> {
        let Some(address) = self.options.listen else { return Ok(()) };
        let failed = |error| Error::Listen { address, error };
        let listener = match &self.options.listener {
            Some(open) => serve::share(open).map_err(failed)?,
            None => tokio::net::TcpListener::bind(address).await.map_err(failed)?,
        };
        // The bound address: port 0 stands for any free port.
        let address = listener.local_addr().map_err(failed)?;
        tracing::info!(%address, "serving health and metrics");
        let served = serve::serve(listener, Arc::clone(&self.health), Arc::clone(&self.metrics));
        tasks.spawn(named("server of health and metrics", served));
        Ok(())
    }

    /// Starts the event loop, and the parts that take its actions.
    fn start_event_loop(&self, events: mpsc::Receiver<Message>, halt: &CancellationToken, tasks: &mut Tasks) {
        let Parts { client, options, inbox, leadership, health, metrics } = self;
        let (jobs, waiting_jobs) = mpsc::unbounded_channel();
        let (watch_kind, kinds) = mpsc::unbounded_channel();
        let (recorder, notes) = EventRecorder::new(Arc::clone(metrics));
        let routes = Routes::new(client.clone(), options.request_timeout);
        let executor = Executor {
            client: client.clone(),
            leadership: leadership.clone(),
            routes: routes.clone(),
            rate_limit: RateLimit::new(options.writes_per_second, options.burst),
            metrics: Arc::clone(metrics),
            within: options.request_timeout,
            allowed_kinds: options.allowed_kinds.clone(),
        };
        let writer = Writer::new(executor, waiting_jobs, inbox.clone(), options.parallel_writes);
        tasks.spawn(named(WRITER, writer.run(halt.clone())));
        let part_watches = PartWatches {
            client: client.clone(),
            routes,
            kinds,
            inbox: inbox.clone(),
            metrics: Arc::clone(metrics),
            health: Arc::clone(health),
            options: options.clone(),
        };
        tasks.spawn(named("watches of implementations", part_watches.run()));
        let identity = options.identity.clone();
        let sender = EventSender { client: client.clone(), leadership: leadership.clone(), identity, notes };
        tasks.spawn(named("sender of Events", sender.run()));
        let (metrics, health) = (Arc::clone(metrics), Arc::clone(health));
        let config = engine_config(options);
        let event_loop = EventLoop::new(config, events, jobs, watch_kind, recorder, metrics, health);
        tasks.spawn(named("event loop", event_loop.run(halt.clone())));
    }

    fn start_watches(&self, tasks: &mut Tasks) {
        let system = &self.options.system_namespace;
        for kind in rest::kinds() {
            let namespace = list_watch::home(kind, system);
            let watch = self.watch(kind_reader(kind), rest::route(kind), namespace, None);
            tasks.spawn(named("watch", watch.run()));
        }
        for slot in Slot::LISTED {
            let watch = self.watch(
                publish::published_reader(slot),
                publish::route(slot),
                None,
                Some(names::PUBLISHED),
            );
            tasks.spawn(named("watch of published objects", watch.run()));
        }
        let watch =
            self.watch(publish::source_reader(), publish::route(Slot::Secret), Some(system.clone()), None);
        tasks.spawn(named("watch of Secrets", watch.run()));
        let outside = list_watch::report_outside(
            self.client.clone(),
            system.clone(),
            self.leadership.clone(),
            self.inbox.clone(),
        );
        tasks.spawn(named("lists outside of the system namespace", outside));
        let resync = publish::resync(self.options.recheck, self.inbox.clone());
        tasks.spawn(named("resync of published Secrets", resync));
    }

    fn watch<T>(
        &self,
        reader: Reader<T>,
        route: Route,
        namespace: Option<String>,
        label: Option<&'static str>,
    ) -> ListWatch<EngineSink<T>> {
        let sink = EngineSink {
            reader,
            inbox: self.inbox.clone(),
            metrics: Arc::clone(&self.metrics),
            health: Arc::clone(&self.health),
        };
        let collection = Collection { client: self.client.clone(), route, namespace, label };
        ListWatch { collection, sink, options: self.options.watch() }
    }

    fn start_databases(&self, tasks: &mut Tasks) {
        let options = conductor_sql::Options {
            system_namespace: self.options.system_namespace.clone(),
            local_servers: self.options.local_servers.clone(),
            configuration: self.options.database_config.clone(),
        };
        let figures = self.metrics.databases.clone();
        let health = Arc::clone(&self.health);
        // The engine watches some of these kinds too: each of the two watches may fail alone.
        let report = WatchReport::new(move |kind, trouble| {
            health.set_watch(&format!("{kind} (databases)"), trouble);
        });
        let leadership = self.leadership.clone();
        let provider = conductor_sql::run(self.client.clone(), options, leadership, figures, report);
        tasks.spawn(named("provider of databases", provider));
    }
}

fn engine_config(options: &Options) -> Config {
    Config {
        system_namespace: Name::from(options.system_namespace.as_str()),
        adapters: Arc::clone(&options.adapters),
        allowed_kinds: options.allowed_kinds.clone(),
        lost_at_once_max: options.lost_at_once_max,
        ..Config::default()
    }
}
