//! Lists one kind, watches it, and lists it again when the API no longer knows the revision. Passes objects on to a
//! [`Sink`] and keeps none. Not kube's own watcher, because its errors do not say when a watch works again and because
//! one object that cannot be read fails its whole list.

use super::backoff::Backoff;
use super::client_error::{Outage, one_line};
use super::collection::{Collection, Trouble};
use futures::AsyncBufReadExt;
use http::StatusCode;
use serde_json::Value;
use std::time::{Duration, Instant};

/// A watch that is silent for this long after its end is dead.
const SILENCE_AFTER_END: Duration = Duration::from_secs(5);
/// A watch that ends sooner than this without an event has failed.
const SHORTEST: Duration = Duration::from_secs(1);

/// What a list or watch brings.
#[derive(Debug)]
pub enum News<T> {
    /// Every object that exists, as of a revision.
    Listed {
        /// The objects.
        items: Vec<T>,
        /// The revision of the list.
        revision: String,
    },
    /// An object that is new or has changed.
    Seen(T),
    /// An object that was deleted, as it was last.
    Deleted(T),
}

/// The state of a watch.
#[derive(Debug)]
pub enum WatchState<'a> {
    /// The list failed.
    ListFailed(&'a Trouble),
    /// The watch failed.
    WatchFailed(&'a Trouble),
    /// The list is complete.
    Listed,
    /// The watch continues where it failed: no event was missed.
    Resumed,
}

/// Why a watch was started again before its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Restart {
    /// The API no longer knows the revision.
    Expired,
    /// The watch failed.
    Failed,
}

/// Takes what a watch brings.
pub trait Sink: Send + Sync {
    /// One object.
    type Item: Send;
    /// The kind's name for logs.
    fn kind(&self) -> &str;
    /// Reads one object.
    ///
    /// # Errors
    /// What is wrong with the object. It is skipped and affects no other object.
    fn read(&self, json: Value) -> Result<Self::Item, String>;
    /// Takes news; `false` ends the watch.
    fn take(&self, news: News<Self::Item>) -> impl Future<Output = bool> + Send;
    /// Whether the watch should end.
    fn is_closed(&self) -> bool {
        false
    }
    /// What to do where the kind is not served.
    fn advice(&self) -> String;
    /// What failed, and what to do about it.
    fn explain(&self, trouble: &Trouble) -> String {
        match trouble.status {
            Some(StatusCode::NOT_FOUND) => self.advice(),
            Some(StatusCode::FORBIDDEN) => format!("{}: grant list and watch to this user", trouble.why),
            Some(_) | None => trouble.why.clone(),
        }
    }
    /// Called when the state of the watch changes.
    fn state(&self, state: WatchState<'_>) -> impl Future<Output = ()> + Send;
    /// Called for each object that cannot be read.
    fn unreadable(&self) {}
    /// Called for each watch that was started again before its time.
    fn restarted(&self, _why: Restart) {}
}

/// How to watch.
#[derive(Clone, Copy, Debug)]
pub struct WatchOptions {
    /// How long one watch lasts. A connection that died silently is noticed a little later than this.
    pub timeout: Duration,
    /// Objects on one page of a list.
    pub page_size: u32,
    /// The pauses after failures.
    pub backoff: Backoff,
    /// List again after this many failed watches in a row: an API server that was restored from an older state may never
    /// have known the revision.
    pub relist_after: u32,
}

/// One kind to list and watch.
pub struct ListWatch<S> {
    /// What to watch.
    pub collection: Collection,
    /// Where events go.
    pub sink: S,
    /// How to watch.
    pub options: WatchOptions,
}

/// Why a watch ended.
enum End {
    /// Its time was over.
    Over,
    /// The API no longer knows the revision.
    Expired,
    Failed(Trouble),
    /// The sink is closed.
    Closed,
}

impl End {
    fn of(trouble: Trouble) -> End {
        match trouble.status {
            Some(StatusCode::GONE) => End::Expired,
            Some(_) | None => End::Failed(trouble),
        }
    }
}

impl<S: Sink> ListWatch<S> {
    /// Runs until it is dropped or the sink is closed.
    pub async fn run(self) {
        let (mut failures, mut outage) = (0_u32, Outage::none(self.sink.kind()));
        while !self.sink.is_closed() {
            let trouble = self.run_while_served(&mut failures, &mut outage).await;
            failures += 1;
            outage.fails(&self.sink.explain(&trouble));
            self.sink.state(WatchState::ListFailed(&trouble)).await;
            tokio::time::sleep(self.options.backoff.pause(failures)).await;
        }
    }

    /// Runs until a list fails. A list resets `failures`. Only a watch that lasts ends the outage, because the watch that
    /// follows a list may fail.
    pub async fn run_while_served(&self, failures: &mut u32, outage: &mut Outage) -> Trouble {
        loop {
            let (items, revision) = match self.list().await {
                Ok(listed) => listed,
                Err(trouble) => return trouble,
            };
            *failures = 0;
            self.sink.state(WatchState::Listed).await;
            tracing::debug!(kind = self.sink.kind(), objects = items.len(), revision, "listed");
            if !self.sink.take(News::Listed { items, revision: revision.clone() }).await {
                return Trouble::unanswered("the watch is no longer needed");
            }
            self.watch_from(revision, outage).await;
        }
    }

    /// Every object, and the revision of the list.
    ///
    /// # Errors
    /// The list cannot be read.
    pub async fn list(&self) -> Result<(Vec<S::Item>, String), Trouble> {
        let mut items = Vec::new();
        let revision =
            self.collection.list(self.options.page_size, |json| items.extend(self.read(json))).await?;
        Ok((items, revision))
    }

    fn read(&self, json: Value) -> Option<S::Item> {
        match self.sink.read(json) {
            Ok(item) => Some(item),
            Err(why) => {
                self.sink.unreadable();
                tracing::warn!(kind = self.sink.kind(), why, "skipping an object that cannot be read");
                None
            }
        }
    }

    /// Watches from a revision until a new list is required.
    async fn watch_from(&self, mut revision: String, outage: &mut Outage) {
        let mut failures = 0_u32;
        loop {
            match self.watch_once(&mut revision, failures > 0).await {
                End::Over => {
                    failures = 0;
                    outage.ends();
                }
                End::Expired => {
                    self.sink.restarted(Restart::Expired);
                    let kind = self.sink.kind();
                    tracing::info!(kind, revision, "the API no longer knows this revision, listing again");
                    return;
                }
                End::Failed(trouble) => {
                    failures += 1;
                    self.sink.state(WatchState::WatchFailed(&trouble)).await;
                    self.sink.restarted(Restart::Failed);
                    outage.fails(&self.sink.explain(&trouble));
                    // Also before a list: where lists work and watches fail, the API server must not get them in a loop.
                    tokio::time::sleep(self.options.backoff.pause(failures)).await;
                    if failures >= self.options.relist_after {
                        return;
                    }
                }
                End::Closed => return,
            }
        }
    }

    async fn watch_once(&self, revision: &mut String, was_lost: bool) -> End {
        let (begun, silence) = (Instant::now(), self.options.timeout + SILENCE_AFTER_END);
        let failed = |why: &str| End::Failed(Trouble::unanswered(why));
        let watch = self.collection.watch(revision, self.options.timeout);
        let stream = match tokio::time::timeout(silence, watch).await {
            Ok(Ok(stream)) => stream,
            Ok(Err(trouble)) => return End::of(trouble),
            Err(_) => return failed("no answer"),
        };
        if was_lost {
            self.sink.state(WatchState::Resumed).await;
        }
        let mut stream = Box::pin(stream);
        let (mut line, mut heard) = (String::new(), false);
        loop {
            line.clear();
            match tokio::time::timeout(silence, stream.read_line(&mut line)).await {
                Ok(Ok(0)) if heard || begun.elapsed() >= SHORTEST => return End::Over,
                Ok(Ok(0)) => return failed("the watch ended at once"),
                Ok(Ok(_)) => heard = true,
                Ok(Err(error)) => return failed(&one_line(&error)),
                Err(_) => return failed("the watch was silent past its end"),
            }
            if let Some(end) = self.take(&line, revision).await {
                return end;
            }
        }
    }

    /// Takes one line of a watch; returns the end of the watch if the line is its last.
    async fn take(&self, line: &str, revision: &mut String) -> Option<End> {
        let Ok(mut event) = serde_json::from_str::<Value>(line) else {
            // A broken connection cuts its last line anywhere; the next watch sends it again.
            return Some(End::Failed(Trouble::unanswered("a line is not JSON")));
        };
        let object = event.get_mut("object").map(Value::take).unwrap_or_default();
        let what = event.get("type").and_then(Value::as_str).unwrap_or_default();
        if what == "ERROR" {
            let code = object.get("code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
            let why = object.get("message").and_then(Value::as_str).unwrap_or_default().to_owned();
            return Some(End::of(Trouble { status: code.and_then(|c| StatusCode::from_u16(c).ok()), why }));
        }
        if let Some(seen) = object.pointer("/metadata/resourceVersion").and_then(Value::as_str) {
            seen.clone_into(revision);
        }
        let news = match what {
            "ADDED" | "MODIFIED" => News::Seen(self.read(object)?),
            "DELETED" => News::Deleted(self.read(object)?),
            // A bookmark carries a revision and nothing else.
            _ => return None,
        };
        (!self.sink.take(news).await).then_some(End::Closed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::client_error::logged::Warnings;
    use crate::rest::Route;
    use http::{Request, Response};
    use kube::Client;
    use kube::client::Body;
    use serde_json::json;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};
    use tokio::sync::mpsc;

    /// Generous: machines are slow at times.
    const WITHIN: Duration = Duration::from_secs(60);
    /// After so many failed watches the kind is listed again.
    const RELIST_AFTER: u32 = 4;
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

    struct Lists(mpsc::Sender<String>);

    impl Sink for Lists {
        type Item = Value;

        fn kind(&self) -> &str {
            "ClaimQuota"
        }

        fn read(&self, json: Value) -> Result<Value, String> {
            Ok(json)
        }

        async fn take(&self, news: News<Value>) -> bool {
            let News::Listed { revision, .. } = news else { return true };
            self.0.send(revision).await.is_ok()
        }

        fn advice(&self) -> String {
            "install it".to_owned()
        }

        async fn state(&self, _: WatchState<'_>) {}
    }

    #[tokio::test]
    async fn a_watch_that_fails_is_logged_once_an_outage_with_its_kind() {
        let warnings = Warnings::default();
        let _logged = tracing::subscriber::set_default(warnings.clone());
        let (lists, mut listed) = mpsc::channel(16);
        let watch = ListWatch {
            collection: Collection {
                client: api(),
                route: Route::namespaced("example.com/v1", "things"),
                namespace: None,
                label: None,
            },
            sink: Lists(lists),
            options: WatchOptions {
                timeout: WITHIN,
                page_size: 10,
                backoff: Backoff { first: Duration::from_millis(20), max: Duration::from_secs(1) },
                relist_after: RELIST_AFTER,
            },
        };
        let running = tokio::spawn(watch.run());
        for _ in 0..2 {
            let revision = tokio::time::timeout(WITHIN, listed.recv()).await.expect("it is listed");
            assert_eq!(revision.as_deref(), Some("7"));
        }
        running.abort();
        let all = warnings.all();
        assert_eq!(all.len(), 1, "{all:?}");
        assert!(all[0].contains("ClaimQuota") && all[0].contains("not now"), "{all:?}");
    }
}
