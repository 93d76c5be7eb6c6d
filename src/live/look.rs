//! Everything that the engine reads, listed once or followed, for commands that only look. Nothing is written.

use super::error::Error;
use super::metrics::Metrics;
use super::options::Options;
use super::owner::Message;
use super::watch::{KindReader, Watch};
use super::wire;
use crate::event::Event;
use crate::model::{Kind, Object};
use kube::Client;
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
    let watch = watch(client, kind, namespace, inbox);
    let listed = watch.list().await;
    let (objects, _) = listed.map_err(|trouble| {
        let what = format!("{} ({})", watch.route.plural, kind.api_version());
        Error::List { what, why: watch.explain(&trouble) }
    })?;
    Ok(objects)
}

/// Every kind that takes part in decisions, followed: first a list of each, then what changes; a further list of a kind
/// says that its watch was lost. Whoever does not keep up makes the watches wait.
pub fn follow_all(client: &Client, system_namespace: &str) -> mpsc::Receiver<Event> {
    let (inbox, mut heard) = mpsc::channel(FOLLOWED_MAX);
    let (out, events) = mpsc::channel(1);
    for kind in wire::kinds() {
        let watch = watch(client, kind, home(kind, system_namespace), inbox.clone());
        tokio::spawn(watch.follow());
    }
    tokio::spawn(async move {
        while let Some(Message::Event(event)) = heard.recv().await {
            // When nobody listens any more the watches end with this task.
            if out.send(event).await.is_err() {
                return;
            }
        }
    });
    events
}

fn watch(
    client: &Client,
    kind: Kind,
    namespace: Option<String>,
    inbox: mpsc::Sender<Message>,
) -> Watch<KindReader> {
    let options = Options::default();
    Watch {
        client: client.clone(),
        reader: KindReader(kind),
        route: wire::route(kind),
        namespace,
        label: None,
        inbox,
        metrics: Arc::new(Metrics::new()),
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
