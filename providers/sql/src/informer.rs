//! Lists and watches one kind, keeps a copy of its objects, and wakes the work queues. Watches the claims and resources of
//! a cluster only where there is an occasion to. A watch that fails is reported until the next list is complete.

use super::store::{Keys, Store, StoreWriter, store};
use conductor_runtime::backoff::Backoff;
use conductor_runtime::collection::Collection;
use conductor_runtime::list_watch::{ListWatch, News, Sink, WatchOptions, WatchState};
use conductor_runtime::rest::Route;
use http::StatusCode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use serde_json::Value;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use tokio::sync::{mpsc, watch};
use tokio::task::JoinSet;

/// The interval of checks for a kind that is not served, or that this process may not list.
const UNSERVED: Duration = Duration::from_secs(30);
/// The interval of these checks while the API does not answer.
const UNREACHABLE: Duration = Duration::from_secs(2);

const WATCH: WatchOptions = WatchOptions {
    timeout: Duration::from_secs(25),
    page_size: 500,
    backoff: Backoff { first: Duration::from_millis(500), max: Duration::from_secs(30) },
    // A list wakes everything: cheap here, and whatever a failed watch missed is caught up.
    relist_after: 1,
};

/// Reports that the watch of a kind fails, and why, or that it works again.
#[derive(Clone)]
pub struct WatchReport(Arc<Report>);

type Report = dyn Fn(&str, Option<&str>) + Send + Sync;

impl WatchReport {
    /// Calls this with the kind, and with what is wrong, if anything.
    pub fn new(report: impl Fn(&str, Option<&str>) + Send + Sync + 'static) -> WatchReport {
        WatchReport(Arc::new(report))
    }
}

impl fmt::Debug for WatchReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("WatchReport")
    }
}

/// Whether to watch claims and resources at all: in a cluster without servers, records, roles and DatabaseClaims the
/// provider has nothing to do with them, and they cost nothing.
#[derive(Clone, Debug)]
pub(super) struct Occasion {
    given: watch::Sender<bool>,
    report: WatchReport,
}

impl Occasion {
    pub fn none(report: WatchReport) -> Occasion {
        Occasion { given: watch::Sender::new(false), report }
    }

    fn give(&self) {
        self.given.send_if_modified(|given| !std::mem::replace(given, true));
    }

    async fn wait(&self) {
        // We hold the sender, so the channel stays open.
        let _ = self.given.subscribe().wait_for(|given| *given).await;
    }
}

/// How a kind relates to the occasion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Trigger {
    /// An object of this kind is an occasion.
    Gives,
    /// Watched once there is an occasion.
    Waits,
    /// Always watched, and no occasion.
    Neither,
}

/// What to watch.
pub(super) struct Watched {
    pub kind: ApiResource,
    /// The only namespace; `None` for all.
    pub home: Option<String>,
    pub keys: Keys,
    pub trigger: Trigger,
}

/// Where changes go.
pub(super) struct ChangeSink<'a, W> {
    /// The receiver.
    pub wakes: &'a mpsc::UnboundedSender<W>,
    /// Made of an object that has changed or was deleted.
    pub change: fn(Arc<DynamicObject>) -> W,
    /// Made of a new list: every object may have changed unseen.
    pub everything: fn() -> W,
}

/// Waits until a kind is installed and may be listed in all namespaces. Logs once, at level info, that it is not: both may
/// be intended. Discards what arrives by then, because the first list covers it.
pub(super) async fn until_served<W>(
    client: &Client,
    kind: &ApiResource,
    inbox: &mut mpsc::UnboundedReceiver<W>,
) {
    let api: Api<DynamicObject> = Api::all_with(client.clone(), kind);
    let mut is_logged = false;
    loop {
        let pause = match api.list_metadata(&ListParams::default().limit(1)).await {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if matches!(status.code, 403 | 404) => {
                if !is_logged {
                    tracing::info!(kind = kind.kind, code = status.code, "not served here");
                    is_logged = true;
                }
                UNSERVED
            }
            Err(_) => UNREACHABLE,
        };
        tokio::time::sleep(pause).await;
        while inbox.try_recv().is_ok() {}
    }
}

/// Starts to watch a kind.
pub(super) fn start<W: Send + 'static>(
    client: &Client,
    occasion: &Occasion,
    watched: Watched,
    sink: ChangeSink<'_, W>,
    tasks: &mut JoinSet<()>,
) -> Store {
    let ChangeSink { wakes, change, everything } = sink;
    let Watched { kind, home, keys, trigger } = watched;
    let (store, writer) = store(keys);
    let route = Route::namespaced(&kind.api_version, kind.plural);
    let collection = Collection { client: client.clone(), route, namespace: home, label: None };
    let (wakes, occasion, was_listed) = (wakes.clone(), occasion.clone(), AtomicBool::new(false));
    let sink =
        StoreSink { kind: kind.kind, writer, wakes, change, everything, trigger, occasion, was_listed };
    tasks.spawn(async move {
        if trigger == Trigger::Waits {
            sink.occasion.wait().await;
        }
        ListWatch { collection, sink, options: WATCH }.run().await;
    });
    store
}

/// Keeps the copy of one kind.
struct StoreSink<W> {
    kind: String,
    writer: StoreWriter,
    wakes: mpsc::UnboundedSender<W>,
    change: fn(Arc<DynamicObject>) -> W,
    everything: fn() -> W,
    trigger: Trigger,
    occasion: Occasion,
    was_listed: AtomicBool,
}

impl<W: Send> Sink for StoreSink<W> {
    type Item = DynamicObject;

    fn kind(&self) -> &str {
        &self.kind
    }

    fn read(&self, json: Value) -> Result<DynamicObject, String> {
        serde_json::from_value(json).map_err(|error| error.to_string())
    }

    async fn take(&self, news: News<DynamicObject>) -> bool {
        let wake = match news {
            News::Listed { items, revision: _ } => {
                self.writer.replace(items);
                (self.everything)()
            }
            News::Seen(object) => (self.change)(self.writer.put(object)),
            News::Deleted(mut object) => {
                // Deleted without a finalizer, it never had a timestamp.
                object.metadata.deletion_timestamp.get_or_insert(MetaTime(Timestamp::now()));
                (self.change)(self.writer.strike(object))
            }
        };
        if self.trigger == Trigger::Gives && self.writer.has_any() {
            self.occasion.give();
        }
        // Where the receiver has ended, this task ends with it.
        let _ = self.wakes.send(wake);
        true
    }

    fn advice(&self) -> String {
        "the kind is not installed: run `conductor crds | kubectl apply -f -`".to_owned()
    }

    async fn state(&self, state: WatchState<'_>) {
        let report = |why: Option<&str>| (self.occasion.report.0)(&self.kind, why);
        match state {
            WatchState::Listed => {
                self.was_listed.store(true, Ordering::Relaxed);
                report(None);
            }
            WatchState::Resumed => report(None),
            WatchState::ListFailed(error) | WatchState::WatchFailed(error) => {
                // A kind that was never served is absent on purpose.
                if self.was_listed.load(Ordering::Relaxed) || error.status != Some(StatusCode::NOT_FOUND) {
                    report(Some(&self.explain(error)));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::no_keys;
    use super::*;
    use conductor_runtime::client_error::logged::Warnings;
    use http::{Request, Response};
    use kube::client::Body;
    use kube::core::GroupVersionKind;
    use serde_json::json;
    use std::sync::Mutex;
    use std::sync::atomic::AtomicUsize;

    /// Generous: machines are slow at times.
    const WITHIN: Duration = Duration::from_secs(60);

    /// An API of one kind without objects, whose watches last, and which refuses so many calls first.
    fn api(refused: Arc<AtomicUsize>, calls: Arc<AtomicUsize>) -> Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            let (refused, calls) = (Arc::clone(&refused), Arc::clone(&calls));
            async move {
                calls.fetch_add(1, Ordering::SeqCst);
                let left =
                    refused.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
                let (code, body) = match left {
                    Ok(_) => (
                        500,
                        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
                        "message": "not now", "reason": "InternalError"}),
                    ),
                    Err(_) if request.uri().query().unwrap_or_default().contains("watch=1") => {
                        return std::future::pending().await;
                    }
                    Err(_) => (
                        200,
                        json!({"kind": "ThingList", "apiVersion": "example.com/v1",
                        "metadata": {"resourceVersion": "7"}, "items": []}),
                    ),
                };
                let answer = Response::builder().status(code).header("content-type", "application/json");
                Ok::<_, std::convert::Infallible>(
                    answer.body(Body::from(body.to_string().into_bytes())).unwrap(),
                )
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn a_watch_that_fails_is_reported_until_it_works_and_logged_once() {
        let warnings = Warnings::default();
        let _logged = tracing::subscriber::set_default(warnings.clone());
        let (refused, calls) = (Arc::new(AtomicUsize::new(3)), Arc::new(AtomicUsize::new(0)));
        let client = api(Arc::clone(&refused), Arc::clone(&calls));
        let said = Arc::new(Mutex::new(Vec::<(String, Option<String>)>::new()));
        let kept = Arc::clone(&said);
        let report = WatchReport::new(move |kind, why| {
            kept.lock().unwrap().push((kind.to_owned(), why.map(str::to_owned)));
        });
        let gvk = GroupVersionKind::gvk("example.com", "v1", "Thing");
        let kind = ApiResource::from_gvk_with_plural(&gvk, "things");
        let (wakes, _sink) = mpsc::unbounded_channel();
        let sink = ChangeSink { wakes: &wakes, change: drop, everything: || () };
        let mut tasks = JoinSet::new();
        let watched = Watched { kind, home: None, keys: no_keys, trigger: Trigger::Neither };
        let store = start(&client, &Occasion::none(report), watched, sink, &mut tasks);
        tokio::time::timeout(WITHIN, store.wait_until_listed()).await.expect("it is listed in the end");
        let said = said.lock().unwrap().clone();
        assert_eq!(said.len(), 4, "{said:?}");
        assert!(said.iter().all(|(kind, _)| kind == "Thing"), "{said:?}");
        assert!(
            said[..3].iter().all(|(_, why)| why.as_ref().is_some_and(|why| why.contains("not now"))),
            "{said:?}"
        );
        assert_eq!(said[3].1, None, "it works again");
        let warnings = warnings.all();
        assert!(warnings.len() == 1 && warnings[0].contains("Thing"), "{warnings:?}");
    }
}
