//! The rooms with windows: watches become events, actions become calls. Nothing is decided here; the engine is
//! the same that the simulator runs.
//!
//! ```text
//!  watch (one per kind) --+                          +--> writer --> API
//!                         +--> owner: engine.handle --+
//!  writer's answers ------+      (one task)          +--> notes --> log, Events
//!                                     ^
//!  lease --> leading -----------------+        gate: asked before every write
//! ```

mod answer;
mod apply;
mod call;
mod chance;
mod clock;
mod connect;
mod databases;
mod desk;
mod error;
mod exec_plugin;
mod gate;
mod health;
mod home;
mod kubeconfig;
mod lanes;
mod lease;
mod look;
mod metrics;
mod notes;
mod options;
mod owner;
mod parts;
mod publish;
mod serve;
mod token_file;
mod watch;
mod wire;
mod writer;

pub use connect::{connect, find_cluster};
pub use desk::Desk;
pub use error::Error;
pub use look::{Followed, follow_all, list, list_all, list_outside};
pub use options::{Check, LeaseOptions, Options};
pub use wire::kinds;

use conductor::api::names;
use conductor::engine::Config;
use conductor::model::{Name, Slot};
use conductor_sql::WatchReport;
use gate::Gate;
use health::{Health, LeaseView};
use kube::Client;
use lease::Elector;
use metrics::Metrics;
use notes::{Postman, Teller};
use owner::{Message, Owner};
use parts::{Followers, Routes};
use publish::{PublishedReader, SourceReader};
use std::sync::Arc;
use tokio::sync::mpsc;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use watch::{KindReader, Watch};
use writer::{Governor, Hands, Writer};

/// Events that may wait for the engine; beyond that the watches wait.
const INBOX: usize = 4_096;
/// The part that is waited for at the end.
const WRITER: &str = "writer";

/// Runs the controller on a cluster until `stop`, or until it must not go on.
///
/// # Guarantees
/// Nothing is written before everything has been listed and this process leads, and nothing after it lost the
/// lease. When the future is dropped everything ends with it, as if the process had been killed.
///
/// # Assumptions
/// `client` retries nothing by itself; [`connect`] makes such a one.
///
/// # Errors
/// The lease was lost, or the address for health and metrics cannot be had. Everything else is waited out.
pub async fn run(client: Client, options: Options, stop: CancellationToken) -> Result<(), Error> {
    let gate = Gate::new();
    let _shut = gate.shut_on_drop();
    let mut controller = Controller::start(client, options, gate).await?;
    let ended = tokio::select! {
        () = stop.cancelled() => Ok(()),
        error = controller.work() => Err(error),
    };
    match ended {
        Ok(()) => {
            controller.wind_down().await;
            Ok(())
        }
        Err(error) => Err(error),
    }
}

/// Everything that runs. Dropped, it takes all of it along.
struct Controller {
    tasks: JoinSet<&'static str>,
    elector: Option<Elector>,
    inbox: mpsc::Sender<Message>,
    gate: Gate,
    metrics: Arc<Metrics>,
    health: Arc<Health>,
    halt: CancellationToken,
    client: Client,
    options: Options,
}

impl Controller {
    async fn start(client: Client, options: Options, gate: Gate) -> Result<Controller, Error> {
        let (inbox, events) = mpsc::channel(INBOX);
        let kinds = wire::kinds().into_iter().map(|kind| kind.name()).collect();
        let lease = if options.lease.is_some() { LeaseView::Unread } else { LeaseView::Unneeded };
        let health = Arc::new(Health::new(kinds, lease, gate.clone(), options.checks.clone()));
        let elector = options.lease.clone().map(|lease| {
            let within = options.request_timeout;
            let health = Arc::clone(&health);
            Elector::new(client.clone(), &options.identity, lease, gate.clone(), health, within)
        });
        let mut controller = Controller {
            tasks: JoinSet::new(),
            elector,
            inbox,
            gate,
            metrics: Arc::new(Metrics::new()),
            health,
            halt: CancellationToken::new(),
            client,
            options,
        };
        controller.serve().await?;
        controller.start_owner(events);
        controller.start_watches();
        controller.start_databases();
        Ok(controller)
    }

    async fn serve(&mut self) -> Result<(), Error> {
        let Some(address) = self.options.listen else { return Ok(()) };
        let failed = |error| Error::Listen { address, error };
        let listener = match &self.options.listener {
            Some(open) => share(open).map_err(failed)?,
            None => tokio::net::TcpListener::bind(address).await.map_err(failed)?,
        };
        // The one that is bound: port 0 asks for any that is free.
        let address = listener.local_addr().map_err(failed)?;
        tracing::info!(%address, "serving health and metrics");
        let served = serve::serve(listener, Arc::clone(&self.health), Arc::clone(&self.metrics));
        self.tasks.spawn(named("server of health and metrics", served));
        Ok(())
    }

    /// The owner of the engine, and everybody whom it hands its actions to.
    fn start_owner(&mut self, events: mpsc::Receiver<Message>) {
        let (jobs, todo) = mpsc::unbounded_channel();
        let (follow, kinds) = mpsc::unbounded_channel();
        let (teller, told) = Teller::new(Arc::clone(&self.metrics));
        let (client, metrics, options) = (&self.client, &self.metrics, &self.options);
        let routes = Routes::new(client.clone(), options.request_timeout);
        let hands = Hands {
            client: client.clone(),
            gate: self.gate.clone(),
            lease: self.elector.as_ref().map(Elector::reader),
            routes: routes.clone(),
            governor: Governor::new(options),
            metrics: Arc::clone(metrics),
            within: options.request_timeout,
            allowed_kinds: options.allowed_kinds.clone(),
        };
        let writer = Writer::new(hands, todo, self.inbox.clone(), options.parallel_writes);
        self.tasks.spawn(named(WRITER, writer.run(self.halt.clone())));
        let followers = Followers {
            client: client.clone(),
            routes,
            kinds,
            inbox: self.inbox.clone(),
            metrics: Arc::clone(metrics),
            health: Arc::clone(&self.health),
            options: options.clone(),
        };
        self.tasks.spawn(named("followers of implementations", followers.run()));
        let identity = options.identity.clone();
        let postman = Postman { client: client.clone(), gate: self.gate.clone(), identity, told };
        self.tasks.spawn(named("sender of Events", postman.run()));
        let (metrics, health) = (Arc::clone(metrics), Arc::clone(&self.health));
        let owner = Owner::new(engine_config(options), events, jobs, follow, teller, metrics, health);
        self.tasks.spawn(named("owner of the engine", owner.run(self.halt.clone())));
    }

    fn start_watches(&mut self) {
        for kind in wire::kinds() {
            let watch = Watch {
                client: self.client.clone(),
                reader: KindReader(kind),
                route: wire::route(kind),
                namespace: look::home(kind, &self.options.system_namespace),
                label: None,
                inbox: self.inbox.clone(),
                metrics: Arc::clone(&self.metrics),
                health: Some(Arc::clone(&self.health)),
                timeout: self.options.watch_timeout,
                page_size: self.options.page_size,
            };
            self.tasks.spawn(named("watch", watch.follow()));
        }
        for slot in Slot::LISTED {
            let watch = self.watch(PublishedReader(slot), slot, None, Some(names::PUBLISHED));
            self.tasks.spawn(named("watch of what is published", watch.follow()));
        }
        let home = Some(self.options.system_namespace.clone());
        let watch = self.watch(SourceReader, Slot::Secret, home, None);
        self.tasks.spawn(named("watch of Secrets", watch.follow()));
        let outside = look::report_outside(
            self.client.clone(),
            self.options.system_namespace.clone(),
            self.gate.clone(),
            self.inbox.clone(),
        );
        self.tasks.spawn(named("looks outside of the system namespace", outside));
        let rechecks = publish::recheck(self.options.recheck, self.inbox.clone());
        self.tasks.spawn(named("looks at published Secrets", rechecks));
    }

    fn start_databases(&mut self) {
        if self.options.databases {
            let lease = self.elector.as_ref().map(Elector::reader);
            let leader = Arc::new(databases::Leading { gate: self.gate.clone(), lease });
            let options = conductor_sql::Options {
                system_namespace: self.options.system_namespace.clone(),
                local_servers: self.options.local_servers.clone(),
                configuration: self.options.database_config.clone(),
            };
            let figures = self.metrics.databases.clone();
            let health = Arc::clone(&self.health);
            // Some kinds are followed twice, here and by the engine: each of the two watches may fail alone.
            let report = WatchReport::new(move |kind, trouble| {
                health.set_watch(&format!("{kind} (databases)"), trouble);
            });
            let provider = conductor_sql::run(self.client.clone(), options, leader, figures, report);
            self.tasks.spawn(named("provider of databases", provider));
        }
    }

    fn watch<R>(
        &self,
        reader: R,
        slot: Slot,
        namespace: Option<String>,
        label: Option<&'static str>,
    ) -> Watch<R> {
        Watch {
            client: self.client.clone(),
            reader,
            route: publish::route(slot),
            namespace,
            label,
            inbox: self.inbox.clone(),
            metrics: Arc::clone(&self.metrics),
            health: Some(Arc::clone(&self.health)),
            timeout: self.options.watch_timeout,
            page_size: self.options.page_size,
        }
    }

    /// Leads as soon as it may, and goes on until it must not.
    async fn work(&mut self) -> Error {
        let (tasks, elector) = (&mut self.tasks, &mut self.elector);
        let (inbox, gate, metrics) = (&self.inbox, &self.gate, &self.metrics);
        let lead = async {
            match elector {
                Some(elector) => elector.acquire().await,
                None => gate.open(),
            }
            metrics.leads(true);
            // The owner ends before us only when everything ends.
            let _ = inbox.send(Message::Leading).await;
            match elector {
                Some(elector) => {
                    tracing::info!(lease = elector.name(), "this process leads");
                    elector.hold().await
                }
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            error = lead => error,
            ended = tasks.join_next() => match ended {
                Some(Ok(part)) => Error::PartEnded { part, why: "it returned".to_owned() },
                Some(Err(error)) => Error::PartEnded { part: "controller", why: error.to_string() },
                None => Error::PartEnded { part: "controller", why: "nothing runs".to_owned() },
            },
        }
    }

    /// Begins nothing more, waits a while for what is on its way, and gives the lease back.
    async fn wind_down(mut self) {
        tracing::info!("stopping: waiting for what is on its way");
        self.halt.cancel();
        let writers = async {
            while let Some(ended) = self.tasks.join_next().await {
                if matches!(ended, Ok(WRITER)) {
                    return;
                }
            }
        };
        let drain = self.options.drain;
        if tokio::time::timeout(drain, writers).await.is_err() {
            tracing::warn!(seconds = drain.as_secs_f32(), "some calls were not answered in time");
        }
        self.tasks.shutdown().await;
        if let Some(elector) = self.elector.take() {
            elector.release().await;
        }
    }
}

/// What the engine is told once.
fn engine_config(options: &Options) -> Config {
    Config {
        system_namespace: Name::from(options.system_namespace.as_str()),
        adapters: Arc::clone(&options.adapters),
        allowed_kinds: options.allowed_kinds.clone(),
        lost_at_once_max: options.lost_at_once_max,
        ..Config::default()
    }
}

/// Another handle of an open socket, for the async runtime.
fn share(open: &std::net::TcpListener) -> std::io::Result<tokio::net::TcpListener> {
    let listener = open.try_clone()?;
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

/// A part with its name, which it tells when it ends.
async fn named<T>(name: &'static str, part: impl Future<Output = T>) -> &'static str {
    part.await;
    name
}
