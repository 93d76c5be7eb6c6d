//! One watch on one kind: a copy is kept, and every change is told to whoever works on it. What all claims and resources
//! of a cluster do is only followed where there is an occasion to. A watch that fails is reported until the list that
//! follows is whole: the library says when one fails, and not when it goes on.

use super::mirror::{Keys, Mirror, News, mirror};
use conductor_runtime::client_error::{Outage, one_line};
use futures::StreamExt;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;
use k8s_openapi::jiff::Timestamp;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use kube::runtime::watcher;
use std::fmt;
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

/// The pause after a first failure, doubled up to the longest.
const PAUSE_FIRST: Duration = Duration::from_millis(500);
const PAUSE_MAX: Duration = Duration::from_secs(30);

/// Where it is reported that the watch of a kind fails, and why, or that it works again.
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

/// Whether claims and resources have to be followed at all: where there is no server, no record and nobody who asks for
/// a database, a cluster full of claims is none of our business, and costs nothing.
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
        // We hold the sender ourselves: it cannot end.
        let _ = self.given.subscribe().wait_for(|given| *given).await;
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
        let begin = || watcher(api.clone(), config.clone()).boxed();
        let (mut events, mut health) = (begin(), Currency::of(&name, occasion.report.clone()));
        while let Some(event) = events.next().await {
            let event = match event {
                Ok(event) => event,
                Err(error) => {
                    tokio::time::sleep(health.fails(&error)).await;
                    // Begun anew, it ends the outage with a list that is whole.
                    events = begin();
                    continue;
                }
            };
            if !matches!(event, watcher::Event::Init | watcher::Event::InitApply(_)) {
                health.is_current();
            }
            let news = match event {
                watcher::Event::Delete(mut object) => {
                    // What is gone has gone, also where nothing held it up.
                    object.metadata.deletion_timestamp.get_or_insert(MetaTime(Timestamp::now()));
                    scribe.note(watcher::Event::Delete(object))
                }
                event => scribe.note(event),
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

/// Whether a watch is current, as it is logged and reported.
struct Currency {
    kind: String,
    report: WatchReport,
    outage: Outage,
    failures: u32,
    was_listed: bool,
}

impl Currency {
    fn of(kind: &str, report: WatchReport) -> Currency {
        let outage = Outage::none(kind);
        Currency { kind: kind.to_owned(), report, outage, failures: 0, was_listed: false }
    }

    /// A list was whole, or a change was heard of.
    fn is_current(&mut self) {
        if self.failures > 0 {
            (self.report.0)(&self.kind, None);
            self.outage.ends();
        }
        (self.failures, self.was_listed) = (0, true);
    }

    /// How long to wait until it is begun anew. That the API has forgotten where the watch was is no failure.
    fn fails(&mut self, error: &watcher::Error) -> Duration {
        if status_of(error) == Some(410) {
            tracing::info!(kind = self.kind, "the API no longer knows this revision, listing anew");
            return PAUSE_FIRST;
        }
        self.failures += 1;
        let why = one_line(error);
        self.outage.fails(&why);
        // A kind that was never there is meant to be absent: then nobody has a database.
        if self.was_listed || status_of(error) != Some(404) {
            (self.report.0)(&self.kind, Some(&why));
        }
        PAUSE_FIRST.saturating_mul(1 << (self.failures - 1).min(10)).min(PAUSE_MAX)
    }
}

fn status_of(error: &watcher::Error) -> Option<u16> {
    match error {
        watcher::Error::InitialListFailed(kube::Error::Api(status)) => Some(status.code),
        watcher::Error::WatchStartFailed(kube::Error::Api(status)) => Some(status.code),
        watcher::Error::WatchError(status) => Some(status.code),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::mirror::no_keys;
    use super::*;
    use conductor_runtime::client_error::logged::Warnings;
    use http::{Request, Response};
    use kube::client::Body;
    use kube::core::GroupVersionKind;
    use serde_json::json;
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Generous: machines are slow at times.
    const WITHIN: Duration = Duration::from_secs(60);

    /// An API of one kind without objects, whose watches last, and which refuses so many calls first.
    fn api(refused: Arc<AtomicUsize>, asked: Arc<AtomicUsize>) -> Client {
        let service = tower::service_fn(move |request: Request<Body>| {
            let (refused, asked) = (Arc::clone(&refused), Arc::clone(&asked));
            async move {
                asked.fetch_add(1, Ordering::SeqCst);
                let left =
                    refused.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| left.checked_sub(1));
                let (code, body) = match left {
                    Ok(_) => (
                        500,
                        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 500,
                        "message": "not now", "reason": "InternalError"}),
                    ),
                    Err(_) if request.uri().query().unwrap_or_default().contains("watch=true") => {
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
        let (refused, asked) = (Arc::new(AtomicUsize::new(3)), Arc::new(AtomicUsize::new(0)));
        let client = api(Arc::clone(&refused), Arc::clone(&asked));
        let said = Arc::new(Mutex::new(Vec::<(String, Option<String>)>::new()));
        let kept = Arc::clone(&said);
        let report = WatchReport::new(move |kind, why| {
            kept.lock().unwrap().push((kind.to_owned(), why.map(str::to_owned)));
        });
        let gvk = GroupVersionKind::gvk("example.com", "v1", "Thing");
        let kind = ApiResource::from_gvk_with_plural(&gvk, "things");
        let (wakes, _told) = mpsc::unbounded_channel();
        let told = Told { wakes: &wakes, change: drop, everything: || () };
        let mut tasks = JoinSet::new();
        let followed = Followed { kind, home: None, keys: no_keys, part: Part::Stands };
        let mirror = follow(&client, &Occasion::none(report), followed, told, &mut tasks);
        tokio::time::timeout(WITHIN, mirror.wait_until_listed()).await.expect("it is listed in the end");
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
