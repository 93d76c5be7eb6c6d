//! One kind followed: listed page by page, then watched, listed anew when the API has forgotten where we were.
//! It turns JSON into events and keeps no objects; what they mean is the engine's.

use super::call::{Reply, call, message};
use super::chance;
use super::health::Health;
use super::metrics::{EXPIRED, FAILED, Metrics};
use super::owner::Message;
use super::wire::{self, Route};
use conductor::event::{Event, Gone};
use conductor::model::{Kind, Object, Revision, Uid};
use conductor_runtime::client_error::{Outage, one_line};
use futures::AsyncBufReadExt;
use http::StatusCode;
use kube::Client;
use serde_json::Value;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::sync::mpsc;

/// A watch that nothing is heard of for this long after its end is dead.
const SILENCE_AFTER_END: Duration = Duration::from_secs(5);
/// How long one page of a list may take.
const LIST_WITHIN: Duration = Duration::from_secs(60);
const PAUSE_FIRST: Duration = Duration::from_millis(250);
const PAUSE_MAX: Duration = Duration::from_secs(10);
/// After so many failed watches in a row the list is taken anew: the revision may be one that the API,
/// restored from an older state, has never heard of.
const RELIST_AFTER: u32 = 4;
/// A watch that ends sooner than this without a word has failed.
const SHORTEST: Duration = Duration::from_secs(1);

/// Turns what is served into events.
pub(super) trait Reader: Send + Sync {
    /// One object.
    type Item: Send;
    /// The kind's name in metrics, one of a fixed set.
    fn metric(&self) -> &'static str;
    /// The kind's name for people.
    fn name(&self) -> &str;
    /// One object from its JSON.
    fn read(&self, json: Value) -> Result<Self::Item, String>;
    /// All of them.
    fn listed(&self, items: Vec<Self::Item>, revision: Revision) -> Event;
    /// One that is new or has changed.
    fn seen(&self, item: Self::Item) -> Event;
    /// One that is gone.
    fn gone(&self, item: Self::Item) -> Event;
    /// What to do about a kind that is not served.
    fn advice(&self) -> String;
    /// What is told where it may not be listed, if somebody waits for the list.
    fn refused(&self) -> Option<Event> {
        None
    }
    /// What is told where the watch failed, or, without a reason, where it is there again.
    fn lost(&self, _why: Option<&str>) -> Option<Message> {
        None
    }
}

/// Reads the kinds of the engine.
pub(super) struct KindReader(pub Kind);

impl Reader for KindReader {
    type Item = Object;

    fn metric(&self) -> &'static str {
        self.0.name()
    }

    fn name(&self) -> &str {
        self.0.name()
    }

    fn read(&self, json: Value) -> Result<Object, String> {
        wire::read_object(self.0, json)
    }

    fn listed(&self, objects: Vec<Object>, revision: Revision) -> Event {
        Event::Listed { kind: self.0, objects, revision }
    }

    fn seen(&self, object: Object) -> Event {
        Event::Seen(object)
    }

    fn gone(&self, object: Object) -> Event {
        let uid = Uid::from(object.metadata.uid.as_deref().unwrap_or_default());
        let revision = Revision::read(object.metadata.resource_version.as_deref());
        Event::Gone(Gone { kind: self.0, key: wire::key_of(&object.metadata), uid, revision })
    }

    fn advice(&self) -> String {
        "the kind is not installed: run `conductor crds | kubectl apply -f -`".to_owned()
    }
}

/// What is followed, and how.
pub(super) struct Watch<R> {
    pub client: Client,
    pub reader: R,
    pub route: Route,
    /// Only here; everywhere where it is absent.
    pub namespace: Option<String>,
    /// Only those with this label.
    pub label: Option<&'static str>,
    pub inbox: mpsc::Sender<Message>,
    pub metrics: Arc<Metrics>,
    /// Where it is reported whether the watch is current, if anywhere.
    pub health: Option<Arc<Health>>,
    pub timeout: Duration,
    pub page_size: u32,
}

/// Why something could not be had, and whether the API said so.
#[derive(Debug)]
pub(super) struct Trouble {
    pub status: Option<StatusCode>,
    pub why: String,
}

/// How a watch ended.
enum End {
    /// As it should: its time was over.
    Over,
    /// The API no longer knows the revision.
    Expired,
    Failed(String),
    /// Nobody listens any more.
    Unheard,
}

impl<R: Reader> Watch<R> {
    /// Follows until it is dropped or nobody listens.
    pub async fn follow(self) {
        let (mut failures, mut outage) = (0_u32, Outage::none(self.reader.name()));
        while !self.inbox.is_closed() {
            let trouble = self.follow_while_served(&mut failures, &mut outage).await;
            failures += 1;
            outage.fails(&self.explain(&trouble));
            self.tell_lost(Some(&self.explain(&trouble))).await;
            if trouble.status == Some(StatusCode::FORBIDDEN)
                && let Some(event) = self.reader.refused()
            {
                // The engine can do without this list where it is denied on purpose.
                self.report(None);
                self.tell(event).await;
            }
            tokio::time::sleep(chance::backoff(failures, PAUSE_FIRST, PAUSE_MAX)).await;
        }
    }

    /// Follows until the list cannot be had; says why. Counts failures anew once it has been; an outage ends when a watch
    /// lasts, because a list alone may be followed by a watch that fails.
    pub async fn follow_while_served(&self, failures: &mut u32, outage: &mut Outage) -> Trouble {
        loop {
            let (items, revision) = match self.list().await {
                Ok(listed) => listed,
                Err(trouble) => return trouble,
            };
            *failures = 0;
            self.report(None);
            tracing::debug!(kind = self.reader.name(), objects = items.len(), revision, "listed");
            let read = Revision::read(Some(&revision));
            if !self.tell(self.reader.listed(items, read)).await {
                return Trouble { status: None, why: "nobody listens any more".to_owned() };
            }
            self.watch_from(revision, outage).await;
        }
    }

    async fn tell(&self, event: Event) -> bool {
        self.inbox.send(Message::Event(event)).await.is_ok()
    }

    /// Reports whether the watch is current.
    pub fn report(&self, trouble: Option<&str>) {
        if let Some(health) = &self.health {
            health.set_watch(self.reader.name(), trouble);
        }
    }

    async fn tell_lost(&self, why: Option<&str>) {
        self.report(why);
        if let Some(message) = self.reader.lost(why) {
            // Nobody listens any more: the next event finds that out.
            let _ = self.inbox.send(message).await;
        }
    }

    /// What went wrong, and what to do about it.
    pub fn explain(&self, trouble: &Trouble) -> String {
        match trouble.status {
            Some(StatusCode::NOT_FOUND) => self.reader.advice(),
            Some(StatusCode::FORBIDDEN) => format!("{}: grant list and watch to this user", trouble.why),
            Some(_) | None => trouble.why.clone(),
        }
    }

    /// Every object, page by page, and the revision as of which they are all.
    pub async fn list(&self) -> Result<(Vec<R::Item>, String), Trouble> {
        let mut items = Vec::new();
        let mut page = String::new();
        loop {
            let Body { metadata, items: read } = self.list_page(&page).await?;
            items.extend(read.into_iter().filter_map(|json| self.read(json)));
            let text = |field| metadata.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
            page = text("continue");
            if page.is_empty() {
                return Ok((items, text("resourceVersion")));
            }
        }
    }

    async fn list_page(&self, page: &str) -> Result<Body, Trouble> {
        let mut uri = format!("{}?limit={}", self.collection(), self.page_size);
        if let Some(label) = self.label {
            uri.push_str(&format!("&labelSelector={}", wire::escape(label)));
        }
        if !page.is_empty() {
            uri.push_str(&format!("&continue={}", wire::escape(page)));
        }
        let trouble = |status, why| Trouble { status, why };
        let request = wire::get_request(&uri).ok_or_else(|| trouble(None, format!("{uri} is no path")))?;
        match call(&self.client, request, LIST_WITHIN).await {
            Reply::Lost(why) => Err(trouble(None, why)),
            Reply::Answered { status, mut body, .. } if status.is_success() => {
                let metadata = body.get_mut("metadata").map(Value::take).unwrap_or_default();
                match body.get_mut("items").map(Value::take) {
                    Some(Value::Array(items)) => Ok(Body { metadata, items }),
                    // Go writes an empty list as null.
                    Some(Value::Null) => Ok(Body { metadata, items: Vec::new() }),
                    Some(_) | None => Err(trouble(None, "the API's answer is no list".to_owned())),
                }
            }
            Reply::Answered { status, body, .. } => Err(trouble(Some(status), message(status, &body))),
        }
    }

    fn collection(&self) -> String {
        self.route.collection(self.namespace.as_deref())
    }

    /// One object; a bad one is told and passed over, and hurts nobody else.
    fn read(&self, json: Value) -> Option<R::Item> {
        match self.reader.read(json) {
            Ok(item) => Some(item),
            Err(why) => {
                self.metrics.unreadable(self.reader.metric());
                tracing::warn!(kind = self.reader.name(), why, "an object cannot be read and is passed over");
                None
            }
        }
    }

    /// Watches from a revision until the list must be taken anew.
    async fn watch_from(&self, mut revision: String, outage: &mut Outage) {
        let (kind, mut failures) = (self.reader.name(), 0_u32);
        loop {
            match self.watch_once(&mut revision, failures > 0).await {
                End::Over => {
                    failures = 0;
                    outage.ends();
                }
                End::Expired => {
                    self.metrics.watch_restarted(self.reader.metric(), EXPIRED);
                    tracing::info!(kind, revision, "the API no longer knows this revision, listing anew");
                    return;
                }
                End::Failed(why) => {
                    failures += 1;
                    self.tell_lost(Some(&why)).await;
                    self.metrics.watch_restarted(self.reader.metric(), FAILED);
                    outage.fails(&why);
                    if failures >= RELIST_AFTER {
                        return;
                    }
                    tokio::time::sleep(chance::backoff(failures, PAUSE_FIRST, PAUSE_MAX)).await;
                }
                End::Unheard => return,
            }
        }
    }

    async fn watch_once(&self, revision: &mut String, was_lost: bool) -> End {
        let mut uri = format!(
            "{}?watch=1&allowWatchBookmarks=true&resourceVersion={}&timeoutSeconds={}",
            self.collection(),
            wire::escape(revision),
            self.timeout.as_secs().max(1),
        );
        if let Some(label) = self.label {
            uri.push_str(&format!("&labelSelector={}", wire::escape(label)));
        }
        let Some(request) = wire::get_request(&uri) else { return End::Failed(format!("{uri} is no path")) };
        let (begun, silence) = (Instant::now(), self.timeout + SILENCE_AFTER_END);
        let stream = match tokio::time::timeout(silence, self.client.request_stream(request)).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(kube::Error::Api(status))) if status.code == 410 => return End::Expired,
            Ok(Err(kube::Error::Api(status))) => return End::Failed(status.message),
            Ok(Err(error)) => return End::Failed(one_line(&error)),
            Err(_) => return End::Failed("no answer".to_owned()),
        };
        if was_lost {
            self.tell_lost(None).await;
        }
        let mut stream = Box::pin(stream);
        let (mut line, mut heard) = (String::new(), false);
        loop {
            line.clear();
            match tokio::time::timeout(silence, stream.read_line(&mut line)).await {
                Ok(Ok(0)) if heard || begun.elapsed() >= SHORTEST => return End::Over,
                Ok(Ok(0)) => return End::Failed("it ended at once".to_owned()),
                Ok(Ok(_)) => heard = true,
                Ok(Err(error)) => return End::Failed(one_line(&error)),
                Err(_) => return End::Failed("nothing was heard, not even its end".to_owned()),
            }
            if let Some(end) = self.take(&line, revision).await {
                return end;
            }
        }
    }

    /// Takes in one line of a watch; says so where it is its end.
    async fn take(&self, line: &str, revision: &mut String) -> Option<End> {
        let Ok(mut news) = serde_json::from_str::<Value>(line) else {
            // The last line of a broken connection is cut off anywhere; the next watch sends it again.
            return Some(End::Failed("a line that is no JSON".to_owned()));
        };
        let object = news.get_mut("object").map(Value::take).unwrap_or_default();
        let what = news.get("type").and_then(Value::as_str).unwrap_or_default();
        if what == "ERROR" {
            let code = object.get("code").and_then(Value::as_u64).unwrap_or(0);
            let said = object.get("message").and_then(Value::as_str).unwrap_or_default();
            return Some(if code == 410 { End::Expired } else { End::Failed(said.to_owned()) });
        }
        if let Some(seen) = object.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
            seen.clone_into(revision);
        }
        let event = match what {
            "ADDED" | "MODIFIED" => self.read(object).map(|item| self.reader.seen(item)),
            "DELETED" => self.read(object).map(|item| self.reader.gone(item)),
            // A bookmark tells the revision and nothing else.
            _ => None,
        };
        match event {
            Some(event) => (!self.tell(event).await).then_some(End::Unheard),
            None => None,
        }
    }
}

/// One page of a list.
struct Body {
    metadata: Value,
    items: Vec<Value>,
}

#[cfg(test)]
mod tests {
    use super::super::gate::Gate;
    use super::super::health::LeaseView;
    use super::*;
    use conductor_runtime::client_error::logged::Warnings;
    use http::{Request, Response};
    use kube::client::Body;
    use serde_json::json;
    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Generous: machines are slow at times.
    const WITHIN: Duration = Duration::from_secs(60);
    /// After its first list the API refuses so many calls: a few watches, and the lists that follow.
    const REFUSED: usize = RELIST_AFTER as usize + 3;

    fn api() -> Client {
        let calls = Arc::new(AtomicUsize::new(0));
        let service = tower::service_fn(move |request: Request<Body>| {
            let call = calls.fetch_add(1, Ordering::SeqCst);
            async move {
                let is_watch = request.uri().query().unwrap_or_default().contains("watch=1");
                let (code, body) = match (call, is_watch) {
                    (1..=REFUSED, _) => (500, json!({"kind": "Status", "code": 500, "message": "not now"})),
                    (_, true) => return std::future::pending().await,
                    (_, false) => (200, json!({"metadata": {"resourceVersion": "7"}, "items": []})),
                };
                let answer = Response::builder().status(code);
                Ok::<_, std::convert::Infallible>(
                    answer.body(Body::from(body.to_string().into_bytes())).unwrap(),
                )
            }
        });
        Client::new(service, "default")
    }

    #[tokio::test]
    async fn a_watch_that_fails_is_logged_once_an_outage_with_its_kind() {
        let warnings = Warnings::default();
        let _logged = tracing::subscriber::set_default(warnings.clone());
        let health = Arc::new(Health::new(Vec::new(), LeaseView::Unneeded, Gate::new(), Vec::new()));
        let (inbox, mut heard) = mpsc::channel(16);
        let watch = Watch {
            client: api(),
            reader: KindReader(Kind::Quota),
            route: wire::route(Kind::Quota),
            namespace: None,
            label: None,
            inbox,
            metrics: Arc::new(Metrics::new()),
            health: Some(Arc::clone(&health)),
            timeout: WITHIN,
            page_size: 10,
        };
        let followed = tokio::spawn(watch.follow());
        for _ in 0..2 {
            let event = tokio::time::timeout(WITHIN, heard.recv()).await.expect("it is listed");
            assert!(matches!(event, Some(Message::Event(Event::Listed { .. }))));
        }
        followed.abort();
        let all = warnings.all();
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].contains("ClaimQuota") && all[0].contains("not now"), "{all:?}");
    }
}
