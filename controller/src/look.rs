//! Everything that the engine reads, listed once or followed, for commands that only look. Nothing is written.

use super::error::Error;
use super::gate::Gate;
use super::metrics::Metrics;
use super::options::Options;
use super::owner::Message;
use super::watch::{KindReader, Reader, Watch};
use super::wire;
use conductor::event::Event;
use conductor::model::{Kind, Object, Revision};
use conductor_runtime::client_error::one_line;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use serde_json::Value;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Events that may wait for whoever follows.
const FOLLOWED_MAX: usize = 4_096;
/// How many objects outside of the system namespace are reported at a time.
const OUTSIDE_MAX: u32 = 100;
/// How often they are looked for.
const OUTSIDE_EVERY: Duration = Duration::from_secs(600);
/// How often a process that does not lead looks whether it does.
const LEADS_EVERY: Duration = Duration::from_millis(500);

/// Every object of every kind that takes part in decisions.
///
/// # Errors
/// The first kind that cannot be listed, with what to do about it.
pub async fn list_all(client: &Client, system_namespace: &str) -> Result<Vec<Object>, Error> {
    let lists = wire::kinds().into_iter().map(|kind| list(client, kind, None, system_namespace));
    let lists = futures::future::try_join_all(lists).await?;
    Ok(lists.into_iter().flatten().collect())
}

/// The objects of one kind, in one namespace or wherever they take part in decisions.
///
/// # Errors
/// As [`list_all`].
pub async fn list(
    client: &Client,
    kind: Kind,
    namespace: Option<&str>,
    system_namespace: &str,
) -> Result<Vec<Object>, Error> {
    let (inbox, _) = mpsc::channel(1);
    let namespace = namespace.map(str::to_owned).or_else(|| home(kind, system_namespace));
    let watch = watch(client, kind, KindReader(kind), namespace, inbox);
    let listed = watch.list().await;
    let (objects, _) = listed.map_err(|trouble| {
        let what = format!("{} ({})", watch.route.plural, kind.api_version());
        Error::List { what, why: watch.explain(&trouble) }
    })?;
    Ok(objects)
}

/// The classes or resources that live outside of the system namespace, where they take no part; nothing of other kinds.
///
/// # Errors
/// As [`list_all`]; who may look at the system namespace only is refused.
pub async fn list_outside(client: &Client, kind: Kind, system_namespace: &str) -> Result<Vec<Object>, Error> {
    if home(kind, system_namespace).is_none() {
        return Ok(Vec::new());
    }
    let route = wire::route(kind);
    let api_version = kind.api_version();
    let (group, version) = api_version.split_once('/').unwrap_or(("", &api_version));
    let resource = ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.name().to_owned(),
        plural: route.plural.clone(),
        api_version: api_version.clone(),
    };
    let api: Api<DynamicObject> = Api::all_with(client.clone(), &resource);
    let outside = ListParams::default().fields(&format!("metadata.namespace!={system_namespace}"));
    let listed = api.list(&outside.limit(OUTSIDE_MAX)).await.map_err(|error| {
        let what = format!("{} ({}) of every namespace", route.plural, kind.api_version());
        Error::List { what, why: one_line(&error) }
    })?;
    let object = |found: DynamicObject| Object { kind, metadata: found.metadata, body: found.data };
    let is_outside = |o: &Object| o.metadata.namespace.as_deref() != Some(system_namespace);
    Ok(listed.items.into_iter().map(object).filter(is_outside).collect())
}

/// Reports what lives outside of the system namespace, as soon as this process leads and from time to time.
pub(super) async fn report_outside(
    client: Client,
    system_namespace: String,
    gate: Gate,
    inbox: mpsc::Sender<Message>,
) {
    loop {
        if !gate.is_open() {
            tokio::time::sleep(LEADS_EVERY).await;
            continue;
        }
        for kind in wire::kinds() {
            // Without the right to look everywhere, nothing is known of it.
            for object in list_outside(&client, kind, &system_namespace).await.unwrap_or_default() {
                if inbox.send(Message::Event(Event::Seen(object))).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(OUTSIDE_EVERY).await;
    }
}

/// What is heard of kinds that are followed.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are events, and one allocation each would cost more"
)]
pub enum Followed {
    /// Something happened.
    Event(Event),
    /// A watch failed. What happens from now on is heard of when it is back, or never.
    Lost {
        /// What was watched.
        kind: Kind,
        /// What was said.
        why: String,
    },
    /// A watch is there again, from where it was lost: nothing was missed, it only comes late.
    Back {
        /// What is watched.
        kind: Kind,
    },
}

/// Reads a kind, and tells when its watch is lost.
struct FollowedReader(KindReader);

impl Reader for FollowedReader {
    type Item = Object;

    fn metric(&self) -> &'static str {
        self.0.metric()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn read(&self, json: Value) -> Result<Object, String> {
        self.0.read(json)
    }

    fn listed(&self, objects: Vec<Object>, revision: Revision) -> Event {
        self.0.listed(objects, revision)
    }

    fn seen(&self, object: Object) -> Event {
        self.0.seen(object)
    }

    fn gone(&self, object: Object) -> Event {
        self.0.gone(object)
    }

    fn advice(&self) -> String {
        self.0.advice()
    }

    fn lost(&self, why: Option<&str>) -> Option<Message> {
        Some(Message::Watch(self.0.0, why.map(str::to_owned)))
    }
}

/// Every kind that takes part in decisions, followed: first a list of each, then what changes; a further list of a kind
/// says that its watch was lost. Whoever does not keep up makes the watches wait.
pub fn follow_all(client: &Client, system_namespace: &str) -> mpsc::Receiver<Followed> {
    let (inbox, mut heard) = mpsc::channel(FOLLOWED_MAX);
    let (out, events) = mpsc::channel(1);
    for kind in wire::kinds() {
        let reader = FollowedReader(KindReader(kind));
        let watch = watch(client, kind, reader, home(kind, system_namespace), inbox.clone());
        tokio::spawn(watch.follow());
    }
    tokio::spawn(async move {
        while let Some(message) = heard.recv().await {
            let followed = match message {
                Message::Event(event) => Followed::Event(event),
                Message::Watch(kind, Some(why)) => Followed::Lost { kind, why },
                Message::Watch(kind, None) => Followed::Back { kind },
                Message::Leading => continue,
            };
            // When nobody listens any more the watches end with this task.
            if out.send(followed).await.is_err() {
                return;
            }
        }
    });
    events
}

fn watch<R: Reader>(
    client: &Client,
    kind: Kind,
    reader: R,
    namespace: Option<String>,
    inbox: mpsc::Sender<Message>,
) -> Watch<R> {
    let options = Options::default();
    Watch {
        client: client.clone(),
        reader,
        route: wire::route(kind),
        namespace,
        label: None,
        inbox,
        metrics: Arc::new(Metrics::new()),
        health: None,
        timeout: options.watch_timeout,
        page_size: options.page_size,
    }
}

/// The only namespace in which objects of a kind take part, where there is one.
pub(super) fn home(kind: Kind, system_namespace: &str) -> Option<String> {
    match kind {
        Kind::Resource(_) | Kind::Class(_) => Some(system_namespace.to_owned()),
        Kind::Claim(_)
        | Kind::Quota
        | Kind::ClusterQuota
        | Kind::Limits
        | Kind::Profile
        | Kind::Namespace => None,
    }
}
