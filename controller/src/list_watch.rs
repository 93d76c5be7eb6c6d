//! Lists and watches everything that the engine reads, for commands that read only. Writes nothing.

use super::error::Error;
use super::event_loop::Message;
use super::options::Options;
use super::rest;
use super::sink::{Reader, kind_reader};
use conductor::event::Event;
use conductor::model::{Kind, Object};
use conductor_runtime::client_error::one_line;
use conductor_runtime::collection::Collection;
use conductor_runtime::leadership::Leadership;
use conductor_runtime::list_watch::{ListWatch, News, Sink, WatchState};
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use serde_json::Value;
use std::time::Duration;
use tokio::sync::mpsc;

/// Events that may wait for the receiver.
const FOLLOWED_MAX: usize = 4_096;
/// Objects outside of the system namespace that are reported at a time.
const OUTSIDE_MAX: u32 = 100;
/// The interval of these reports.
const OUTSIDE_EVERY: Duration = Duration::from_secs(600);
/// How often a standby process checks whether it leads.
const LEADS_EVERY: Duration = Duration::from_millis(500);

/// Every object of every kind that takes part in decisions.
///
/// # Errors
/// The first kind that cannot be listed, with what to do about it.
pub async fn list_all(client: &Client, system_namespace: &str) -> Result<Vec<Object>, Error> {
    let lists = rest::kinds().into_iter().map(|kind| list(client, kind, None, system_namespace));
    let lists = futures::future::try_join_all(lists).await?;
    Ok(lists.into_iter().flatten().collect())
}

/// The objects of one kind in one namespace, or in every namespace where they take part in decisions.
///
/// # Errors
/// As [`list_all`].
pub async fn list(
    client: &Client,
    kind: Kind,
    namespace: Option<&str>,
    system_namespace: &str,
) -> Result<Vec<Object>, Error> {
    let (out, _) = mpsc::channel(1);
    let namespace = namespace.map(str::to_owned).or_else(|| home(kind, system_namespace));
    let watch = watch(client, kind, namespace, out);
    let (objects, _) = watch.list().await.map_err(|trouble| {
        let what = format!("{} ({})", watch.collection.route.plural, kind.api_version());
        Error::List { what, why: watch.sink.explain(&trouble) }
    })?;
    Ok(objects)
}

/// The classes or resources outside of the system namespace, where they take no part in decisions; none of other kinds.
///
/// # Errors
/// As [`list_all`]; a user that may read the system namespace only is refused.
pub async fn list_outside(client: &Client, kind: Kind, system_namespace: &str) -> Result<Vec<Object>, Error> {
    if home(kind, system_namespace).is_none() {
        return Ok(Vec::new());
    }
    let route = rest::route(kind);
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

/// Reports classes and resources outside of the system namespace to the engine while this process leads.
pub(super) async fn report_outside(
    client: Client,
    system_namespace: String,
    leadership: Leadership,
    inbox: mpsc::Sender<Message>,
) {
    loop {
        if !leadership.leads() {
            tokio::time::sleep(LEADS_EVERY).await;
            continue;
        }
        for kind in rest::kinds() {
            // Without the right to list every namespace there is nothing to report.
            for object in list_outside(&client, kind, &system_namespace).await.unwrap_or_default() {
                if inbox.send(Message::Event(Event::Seen(object))).await.is_err() {
                    return;
                }
            }
        }
        tokio::time::sleep(OUTSIDE_EVERY).await;
    }
}

/// What a watch of [`follow_all`] brings.
#[derive(Debug)]
#[allow(
    clippy::large_enum_variant,
    reason = "nearly all are events, and one allocation each would cost more"
)]
pub enum Followed {
    /// An object or list of objects.
    Event(Event),
    /// A watch failed. Its events come late, or, after a new list, never.
    Lost {
        /// The kind of the watch.
        kind: Kind,
        /// Why it failed.
        why: String,
    },
    /// A watch continues where it failed: no event was missed.
    Back {
        /// The kind of the watch.
        kind: Kind,
    },
}

/// Lists and watches one kind for a command.
struct FollowSink {
    kind: Kind,
    reader: Reader<Object>,
    out: mpsc::Sender<Followed>,
}

impl Sink for FollowSink {
    type Item = Object;

    fn kind(&self) -> &str {
        &self.reader.name
    }

    fn read(&self, json: Value) -> Result<Object, String> {
        (self.reader.read)(json)
    }

    async fn take(&self, news: News<Object>) -> bool {
        self.out.send(Followed::Event((self.reader.event)(news))).await.is_ok()
    }

    fn is_closed(&self) -> bool {
        self.out.is_closed()
    }

    fn advice(&self) -> String {
        self.reader.advice.to_owned()
    }

    async fn state(&self, state: WatchState<'_>) {
        let kind = self.kind;
        let followed = match state {
            WatchState::ListFailed(trouble) | WatchState::WatchFailed(trouble) => {
                Followed::Lost { kind, why: self.explain(trouble) }
            }
            WatchState::Resumed => Followed::Back { kind },
            WatchState::Listed => return,
        };
        // A closed receiver ends the watch at its next event.
        let _ = self.out.send(followed).await;
    }
}

/// Lists every kind that takes part in decisions and watches it. A further list of a kind means that its watch missed
/// events. A receiver that is too slow makes the watches wait.
pub fn follow_all(client: &Client, system_namespace: &str) -> mpsc::Receiver<Followed> {
    let (out, followed) = mpsc::channel(FOLLOWED_MAX);
    for kind in rest::kinds() {
        tokio::spawn(watch(client, kind, home(kind, system_namespace), out.clone()).run());
    }
    followed
}

fn watch(
    client: &Client,
    kind: Kind,
    namespace: Option<String>,
    out: mpsc::Sender<Followed>,
) -> ListWatch<FollowSink> {
    let collection = Collection { client: client.clone(), route: rest::route(kind), namespace, label: None };
    let sink = FollowSink { kind, reader: kind_reader(kind), out };
    ListWatch { collection, sink, options: Options::default().watch() }
}

/// The only namespace whose objects of a kind take part in decisions, if there is one.
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
