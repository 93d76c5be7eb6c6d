//! One watch on one kind: a copy is kept, and every change is told to whoever works on it. What all claims and resources
//! of a cluster do is only followed where there is an occasion to.

use super::mirror::{Keys, Mirror, News, mirror};
use crate::client_error::one_line;
use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::runtime::{WatchStreamExt, watcher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// Between two looks at a kind that is not served, or that this process may not list.
const UNSERVED: Duration = Duration::from_secs(30);
/// Between two looks while the API cannot be asked.
const UNREACHABLE: Duration = Duration::from_secs(2);

/// How long one watch lasts: a connection that died silently is noticed after a little more than this.
const WATCH_SECONDS: u32 = 25;

/// Whether claims and resources have to be followed at all: where there is no server, no record and nobody who asks for
/// a database, a cluster full of claims is none of our business, and costs nothing.
#[derive(Clone, Debug)]
pub(super) struct Occasion(watch::Sender<bool>);

impl Occasion {
    pub fn none() -> Occasion {
        Occasion(watch::Sender::new(false))
    }

    fn give(&self) {
        self.0.send_if_modified(|given| !std::mem::replace(given, true));
    }

    async fn wait(&self) {
        // We hold the sender ourselves: it cannot end.
        let _ = self.0.subscribe().wait_for(|given| *given).await;
    }
}

/// What a kind is to the occasion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// One such object gives it.
    Gives,
    /// It is followed once that is given.
    Waits,
    /// Neither.
    Stands,
}

/// What is followed.
pub(super) struct Followed {
    pub kind: ApiResource,
    /// In one namespace, or in all.
    pub home: Option<String>,
    pub keys: Keys,
    pub part: Part,
}

/// Who is told of changes, and how.
pub(super) struct Told<'a, W> {
    /// Who.
    pub wakes: &'a mpsc::UnboundedSender<W>,
    /// An object has changed, or gone.
    pub change: fn(Arc<DynamicObject>) -> W,
    /// A list was read anew: whatever happened while nobody watched concerns everybody.
    pub everything: fn() -> W,
}

/// Waits until a kind is installed and may be listed, in all namespaces; that it is not is said once and calmly, as both
/// may be meant. What is told by then is let go: the first list tells everything.
pub(super) async fn until_served<W>(
    client: &Client,
    kind: &ApiResource,
    inbox: &mut mpsc::UnboundedReceiver<W>,
) {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), kind);
    let mut is_told = false;
    loop {
        let pause = match api.list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
                if !is_told {
                    tracing::info!(kind = kind.kind, code = status.code, "not served here");
                    is_told = true;
                }
                UNSERVED
            }
            Err(_) => UNREACHABLE,
        };
        tokio::time::sleep(pause).await;
        while inbox.try_recv().is_ok() {}
    }
}

/// Begins to follow a kind.
pub(super) fn follow<W: Send + 'static>(
    client: &Client,
    occasion: &Occasion,
    followed: Followed,
    told: Told<'_, W>,
    tasks: &mut JoinSet<()>,
) -> Mirror {
    let Told { wakes, change, everything } = told;
    let Followed { kind, home, keys, part } = followed;
    let api: Api<DynamicObject> = match home {
        Some(namespace) => Api::namespaced_with(client.clone(), &namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let (mirror, mut scribe) = mirror(keys);
    let config = watcher::Config::default().timeout(WATCH_SECONDS);
    let (wakes, occasion, name) = (wakes.clone(), occasion.clone(), kind.kind);
    tasks.spawn(async move {
        if part == Part::Waits {
            occasion.wait().await;
        }
        let mut events = watcher(api, config).default_backoff().boxed();
        let mut warned = None;
        while let Some(event) = events.next().await {
            if !matches!(event, Err(_) | Ok(watcher::Event::Init)) {
                warned = None;
            }
            let news = match event {
                Ok(watcher::Event::Delete(mut object)) => {
                    // What is gone has gone, also where nothing held it up.
                    object.metadata.deletion_timestamp.get_or_insert(MetaTime(Timestamp::now()));
                    scribe.note(watcher::Event::Delete(object))
                }
                Ok(event) => scribe.note(event),
                Err(error) => {
                    // The library logs it as well, each time and without the kind: its lines are left out.
                    let why = one_line(&error);
                    if warned.as_ref() != Some(&why) {
                        tracing::warn!(kind = name, why, "the watch failed, trying again");
                        warned = Some(why);
                    }
                    None
                }
            };
            if part == Part::Gives && news.is_some() && scribe.has_any() {
                occasion.give();
            }
            match news {
                Some(News::Changed(object)) => drop(wakes.send(change(object))),
                Some(News::Everything) => drop(wakes.send(everything())),
                None => {}
            }
        }
    });
    mirror
}
