//! One watch on one kind: a copy is kept, and every change is told to whoever works on it.

use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::runtime::reflector::{Store, store::Writer};
use kube::runtime::{WatchStreamExt, watcher};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::JoinSet;

/// Between two looks at a kind that is not served, or that this process may not list.
const UNSERVED: Duration = Duration::from_secs(30);
/// Between two looks while the API cannot be asked.
const UNREACHABLE: Duration = Duration::from_secs(2);

/// How long one watch lasts: a connection that died silently is noticed after a little more than this.
const WATCH_SECONDS: u32 = 25;

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

/// Begins to follow a kind, in one namespace or in all.
pub(super) fn follow<W: Send + 'static>(
    client: &Client,
    kind: ApiResource,
    home: Option<&str>,
    told: Told<'_, W>,
    tasks: &mut JoinSet<()>,
) -> Store<DynamicObject> {
    let Told { wakes, change, everything } = told;
    let api: Api<DynamicObject> = match home {
        Some(namespace) => Api::namespaced_with(client.clone(), namespace, &kind),
        None => Api::all_with(client.clone(), &kind),
    };
    let writer = Writer::<DynamicObject>::new(kind.clone());
    let store = writer.as_reader();
    let config = watcher::Config::default().timeout(WATCH_SECONDS);
    let (wakes, name) = (wakes.clone(), kind.kind);
    tasks.spawn(async move {
        let mut events = watcher(api, config).default_backoff().reflect(writer).boxed();
        while let Some(event) = events.next().await {
            match event {
                Ok(watcher::Event::Apply(object)) => {
                    let _ = wakes.send(change(Arc::new(object)));
                }
                Ok(watcher::Event::Delete(mut object)) => {
                    // What is gone has gone, also where nothing held it up.
                    object.metadata.deletion_timestamp.get_or_insert(MetaTime(Timestamp::now()));
                    let _ = wakes.send(change(Arc::new(object)));
                }
                Ok(watcher::Event::InitDone) => {
                    let _ = wakes.send(everything());
                }
                Ok(watcher::Event::Init | watcher::Event::InitApply(_)) => {}
                Err(_) => tracing::debug!(kind = name, "a watch failed; it begins anew"),
            }
        }
    });
    store
}
