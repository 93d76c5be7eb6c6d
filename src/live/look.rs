//! Everything that the engine reads, listed once or followed, for commands that only look. Nothing is written.

use super::error::Error;
use super::metrics::Metrics;
use super::options::Options;
use super::owner::Message;
use super::watch::{KindReader, Reader, Watch};
use super::wire;
use crate::event::Event;
use crate::model::{Kind, Object, Revision};
use kube::Client;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Events that may wait for whoever follows.
const FOLLOWED_MAX: usize = 4_096;

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
