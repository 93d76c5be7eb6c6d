//! Kinds that are not ours, followed because a resource is implemented by them: found by discovery, watched by our
//! label in the system namespace. Nothing is created here, and no kind that lives in no namespace is touched.

use super::answer::found;
use super::call::{Reply, call};
use super::chance;
use super::health::Health;
use super::metrics::Metrics;
use super::options::Options;
use super::owner::Message;
use super::watch::{Reader, Trouble, Watch};
use super::wire::{self, Route};
use conductor::api::names;
use conductor::event::{Event, PartEvent, WhyMissing};
use conductor::model::{Part, PartKind, Revision, Uid};
use conductor_runtime::client_error::Outage;
use http::StatusCode;
use kube::Client;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

const ASK_AGAIN_FIRST: Duration = Duration::from_secs(1);
const ASK_AGAIN_MAX: Duration = Duration::from_secs(10);
/// The name of all of them in metrics, whose labels are a fixed set.
pub(super) const METRIC: &str = "Part";

/// Where kinds are served, as discovery told.
#[derive(Clone)]
pub(super) struct Routes {
    client: Client,
    within: Duration,
    known: Arc<Mutex<BTreeMap<PartKind, Route>>>,
}

/// Why a route is not known.
#[derive(Debug)]
pub(super) enum NoRoute {
    /// The cluster says so.
    Missing(WhyMissing),
    /// The cluster did not say.
    Unknown(String),
}

impl Routes {
    pub fn new(client: Client, within: Duration) -> Routes {
        Routes { client, within, known: Arc::default() }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<PartKind, Route>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Where a kind is served, asked for where it is not known.
    pub async fn find(&self, kind: &PartKind) -> Result<Route, NoRoute> {
        if let Some(route) = self.known().get(kind) {
            return Ok(route.clone());
        }
        let route = self.discover(kind).await?;
        self.known().insert(kind.clone(), route.clone());
        Ok(route)
    }

    /// Forgets a route that led nowhere.
    pub fn forget(&self, kind: &PartKind) {
        self.known().remove(kind);
    }

    async fn discover(&self, kind: &PartKind) -> Result<Route, NoRoute> {
        let base = wire::base(&kind.api_version);
        let request = wire::get_request(&base).ok_or(NoRoute::Missing(WhyMissing::NotInstalled))?;
        match call(&self.client, request, self.within).await {
            Reply::Answered { status: StatusCode::NOT_FOUND, .. } => {
                Err(NoRoute::Missing(WhyMissing::NotInstalled))
            }
            reply => match found(reply) {
                Ok(list) => choose(&base, &kind.kind, &list.unwrap_or_default()).map_err(NoRoute::Missing),
                Err(why) => Err(NoRoute::Unknown(why)),
            },
        }
    }
}

/// The route of a kind among the resources that a group serves.
fn choose(base: &str, kind: &str, list: &Value) -> Result<Route, WhyMissing> {
    let resources = list.get("resources").and_then(Value::as_array).into_iter().flatten();
    let name = |r: &Value| r.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_kind = |r: &&Value| r.get("kind").and_then(Value::as_str) == Some(kind) && !name(r).contains('/');
    let resource = resources.into_iter().find(is_kind).ok_or(WhyMissing::NotInstalled)?;
    match resource.get("namespaced").and_then(Value::as_bool) {
        Some(true) => Ok(Route { base: base.to_owned(), plural: name(resource), namespaced: true }),
        Some(false) | None => Err(WhyMissing::NotNamespaced),
    }
}

/// Reads the parts of one kind.
pub(super) struct PartReader {
    kind: PartKind,
    name: String,
}

impl PartReader {
    pub fn new(kind: PartKind) -> PartReader {
        PartReader { name: kind.to_string(), kind }
    }
}

impl Reader for PartReader {
    type Item = Part;

    fn metric(&self) -> &'static str {
        METRIC
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn read(&self, json: Value) -> Result<Part, String> {
        wire::read_part(&self.kind, json)
    }

    fn listed(&self, parts: Vec<Part>, revision: Revision) -> Event {
        Event::Part(PartEvent::Listed { kind: self.kind.clone(), parts, revision })
    }

    fn seen(&self, part: Part) -> Event {
        Event::Part(PartEvent::Seen(Box::new(part)))
    }

    fn gone(&self, part: Part) -> Event {
        let uid = Uid::from(part.metadata.uid.as_deref().unwrap_or_default());
        Event::Part(PartEvent::Gone { key: part.key(), uid })
    }

    fn advice(&self) -> String {
        "the kind is not installed: install it, or name another in the class".to_owned()
    }
}

/// Follows every kind that it is told to.
pub(super) struct Followers {
    pub client: Client,
    pub routes: Routes,
    pub kinds: mpsc::UnboundedReceiver<PartKind>,
    pub inbox: mpsc::Sender<Message>,
    pub metrics: Arc<Metrics>,
    pub health: Arc<Health>,
    pub options: Options,
}

impl Followers {
    /// Works until nobody tells it of kinds any more. All followers end with it.
    pub async fn run(mut self) {
        let (mut tasks, mut followed) = (JoinSet::new(), BTreeSet::new());
        while let Some(kind) = self.kinds.recv().await {
            if followed.insert(kind.clone()) {
                tasks.spawn(self.follower(kind).run());
            }
        }
    }

    fn follower(&self, kind: PartKind) -> Follower {
        let Followers { client, routes, kinds: _, inbox, metrics, health, options } = self;
        let watch = Watch {
            client: client.clone(),
            reader: PartReader::new(kind.clone()),
            route: Route { base: String::new(), plural: String::new(), namespaced: true },
            namespace: Some(options.system_namespace.clone()),
            label: Some(names::PART),
            inbox: inbox.clone(),
            health: Some(Arc::clone(health)),
            metrics: Arc::clone(metrics),
            timeout: options.watch_timeout,
            page_size: options.page_size,
        };
        Follower { kind, routes: routes.clone(), watch, told: None }
    }
}

/// Follows one kind, installed or not.
struct Follower {
    kind: PartKind,
    routes: Routes,
    watch: Watch<PartReader>,
    /// Why it cannot be had, as far as the engine has been told.
    told: Option<WhyMissing>,
}

impl Follower {
    async fn run(mut self) {
        let (mut failures, mut outage) = (0_u32, Outage::none(&self.kind.to_string()));
        while !self.watch.inbox.is_closed() {
            match self.routes.find(&self.kind).await {
                Ok(route) => {
                    self.watch.route = route;
                    let trouble = self.watch.follow_while_served(&mut failures, &mut outage).await;
                    self.routes.forget(&self.kind);
                    let why = self.watch.explain(&trouble);
                    outage.fails(&why);
                    self.watch.report(Some(&why));
                    self.tell(&trouble).await;
                }
                // Not to be had at all: the resources that are to be made of it say so, and everything else goes on.
                Err(NoRoute::Missing(why)) => {
                    self.watch.report(None);
                    self.tell_missing(why).await;
                }
                Err(NoRoute::Unknown(why)) => tracing::debug!(kind = %self.kind, why, "cannot discover"),
            }
            failures += 1;
            tokio::time::sleep(chance::backoff(failures, ASK_AGAIN_FIRST, ASK_AGAIN_MAX)).await;
        }
    }

    async fn tell(&mut self, trouble: &Trouble) {
        self.told = None;
        // A kind that is gone is told of by the next discovery.
        if trouble.status == Some(StatusCode::FORBIDDEN) {
            self.watch.report(None);
            self.tell_missing(WhyMissing::NotAllowed(trouble.why.clone())).await;
        }
    }

    async fn tell_missing(&mut self, why: WhyMissing) {
        if self.told.as_ref() != Some(&why) {
            tracing::warn!(kind = %self.kind, ?why, "a kind of implementation cannot be had, asking again");
            self.told = Some(why.clone());
            let event = Event::Part(PartEvent::KindMissing { kind: self.kind.clone(), why });
            let _ = self.watch.inbox.send(Message::Event(event)).await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_kind_in_namespaces_has_a_route() {
        let list = json!({"resources": [
            {"name": "clusters/status", "kind": "Cluster", "namespaced": true},
            {"name": "clusters", "kind": "Cluster", "namespaced": true},
            {"name": "nodes", "kind": "Node", "namespaced": false},
        ]});
        let route = choose("/apis/g/v1", "Cluster", &list).expect("it is served");
        assert_eq!(route.collection(Some("s")), "/apis/g/v1/namespaces/s/clusters");
        assert_eq!(choose("/api/v1", "Node", &list), Err(WhyMissing::NotNamespaced));
        assert_eq!(choose("/apis/g/v1", "Pooler", &list), Err(WhyMissing::NotInstalled));
        assert_eq!(choose("/apis/g/v1", "Cluster", &json!({})), Err(WhyMissing::NotInstalled));
    }
}
