//! Watches the kinds of implementation objects (parts): found by discovery, selected by our label, in the system
//! namespace. Creates nothing, and touches no cluster-scoped kind.

use super::event_loop::Message;
use super::health::Health;
use super::metrics::Metrics;
use super::options::Options;
use super::rest;
use super::sink::{EngineSink, Reader};
use conductor::api::names;
use conductor::event::{Event, PartEvent, WhyMissing};
use conductor::model::{Part, PartKind, Revision, Uid};
use conductor_runtime::backoff::Backoff;
use conductor_runtime::client_error::Outage;
use conductor_runtime::collection::{Collection, Trouble};
use conductor_runtime::discovery::{NoRoute, Routes};
use conductor_runtime::list_watch::{ListWatch, News, Sink};
use conductor_runtime::rest::Route;
use http::StatusCode;
use kube::Client;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const DISCOVER_AGAIN: Backoff = Backoff { first: Duration::from_secs(1), max: Duration::from_secs(10) };
/// The name of every part in metrics, whose labels are a fixed set.
pub(super) const METRIC: &str = "Part";

/// Reads the parts of one kind.
fn part_reader(kind: PartKind) -> Reader<Part> {
    let name = kind.to_string();
    let of_list = kind.clone();
    Reader {
        metric: METRIC,
        name,
        read: Box::new(move |json| rest::read_part(&kind, json)),
        event: Box::new(move |news| {
            Event::Part(match news {
                News::Listed { items: parts, revision } => {
                    let revision = Revision::read(Some(&revision));
                    PartEvent::Listed { kind: of_list.clone(), parts, revision }
                }
                News::Seen(part) => PartEvent::Seen(Box::new(part)),
                News::Deleted(part) => {
                    let uid = Uid::from(part.metadata.uid.as_deref().unwrap_or_default());
                    PartEvent::Gone { key: part.key(), uid }
                }
            })
        }),
        advice: "the kind is not installed: install it, or name another in the class",
        optional: None,
    }
}

/// Watches every kind that the engine requests.
pub(super) struct PartWatches {
    pub client: Client,
    pub routes: Routes,
    pub kinds: mpsc::UnboundedReceiver<PartKind>,
    pub inbox: mpsc::Sender<Message>,
    pub metrics: Arc<Metrics>,
    pub health: Arc<Health>,
    pub options: Options,
}

impl PartWatches {
    /// Runs until the engine ends. All watches end with it.
    pub async fn run(mut self) {
        let (mut tasks, mut watched) = (JoinSet::new(), BTreeSet::new());
        while let Some(kind) = self.kinds.recv().await {
            if watched.insert(kind.clone()) {
                tasks.spawn(self.watch(kind).run());
            }
        }
    }

    fn watch(&self, kind: PartKind) -> PartWatch {
        let PartWatches { client, routes, kinds: _, inbox, metrics, health, options } = self;
        let collection = Collection {
            client: client.clone(),
            route: Route::namespaced("", ""),
            namespace: Some(options.system_namespace.clone()),
            label: Some(names::PART),
        };
        let sink = EngineSink {
            reader: part_reader(kind.clone()),
            inbox: inbox.clone(),
            metrics: Arc::clone(metrics),
            health: Arc::clone(health),
        };
        let watch = ListWatch { collection, sink, options: options.watch() };
        PartWatch { kind, routes: routes.clone(), watch, reported: None }
    }
}

/// Watches one kind, installed or not.
struct PartWatch {
    kind: PartKind,
    routes: Routes,
    watch: ListWatch<EngineSink<Part>>,
    /// The last reason that the engine got.
    reported: Option<WhyMissing>,
}

impl PartWatch {
    async fn run(mut self) {
        let (mut failures, mut outage) = (0_u32, Outage::none(&self.kind.to_string()));
        while !self.watch.sink.is_closed() {
            match find_route(&self.routes, &self.kind).await {
                Ok(route) => {
                    self.watch.collection.route = route;
                    let trouble = self.watch.run_while_served(&mut failures, &mut outage).await;
                    self.routes.forget(&self.kind.api_version, &self.kind.kind);
                    let why = self.watch.sink.explain(&trouble);
                    outage.fails(&why);
                    self.watch.sink.report(Some(&why));
                    self.report(&trouble).await;
                }
                // Resources that require this kind report it; everything else goes on.
                Err(MissingRoute::Missing(why)) => {
                    self.watch.sink.report(None);
                    self.report_missing(why).await;
                }
                Err(MissingRoute::Unknown(why)) => {
                    tracing::debug!(kind = %self.kind, why, "cannot discover");
                }
            }
            failures += 1;
            tokio::time::sleep(DISCOVER_AGAIN.pause(failures)).await;
        }
    }

    async fn report(&mut self, trouble: &Trouble) {
        self.reported = None;
        // A kind that was deleted is reported by the next discovery.
        if trouble.status == Some(StatusCode::FORBIDDEN) {
            self.watch.sink.report(None);
            self.report_missing(WhyMissing::NotAllowed(trouble.why.clone())).await;
        }
    }

    async fn report_missing(&mut self, why: WhyMissing) {
        if self.reported.as_ref() != Some(&why) {
            tracing::warn!(kind = %self.kind, ?why, "a kind of implementation is not available, retrying");
            self.reported = Some(why.clone());
            let event = Event::Part(PartEvent::KindMissing { kind: self.kind.clone(), why });
            self.watch.sink.send(event).await;
        }
    }
}

/// Why a kind has no route.
#[derive(Debug)]
pub(super) enum MissingRoute {
    /// The cluster does not serve it in namespaces.
    Missing(WhyMissing),
    /// Discovery failed.
    Unknown(String),
}

/// The route of a kind, by discovery.
pub(super) async fn find_route(routes: &Routes, kind: &PartKind) -> Result<Route, MissingRoute> {
    routes.find(&kind.api_version, &kind.kind).await.map_err(|no_route| match no_route {
        NoRoute::NotInstalled => MissingRoute::Missing(WhyMissing::NotInstalled),
        NoRoute::NotNamespaced => MissingRoute::Missing(WhyMissing::NotNamespaced),
        NoRoute::Unknown(why) => MissingRoute::Unknown(why),
    })
}
