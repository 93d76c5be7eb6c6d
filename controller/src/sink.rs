//! Turns what the watches bring into events for the engine, and their state into health and metrics. Keeps no objects.

use super::event_loop::Message;
use super::health::Health;
use super::metrics::{EXPIRED, FAILED, Metrics};
use super::rest;
use conductor::event::{Event, Gone};
use conductor::model::{Kind, Object, Revision, Uid};
use conductor_runtime::collection::Trouble;
use conductor_runtime::list_watch::{News, Restart, Sink, WatchState};
use http::StatusCode;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Turns the objects of one kind into events.
pub(super) trait Reader: Send + Sync {
    /// One object.
    type Item: Send;
    /// The kind's name in metrics, one of a fixed set.
    fn metric(&self) -> &'static str;
    /// The kind's name in logs and health checks.
    fn name(&self) -> &str;
    /// Reads one object from its JSON.
    fn read(&self, json: Value) -> Result<Self::Item, String>;
    /// The event for a list.
    fn listed(&self, items: Vec<Self::Item>, revision: Revision) -> Event;
    /// The event for an object that is new or has changed.
    fn seen(&self, item: Self::Item) -> Event;
    /// The event for an object that was deleted.
    fn gone(&self, item: Self::Item) -> Event;
    /// The event for any news.
    fn event(&self, news: News<Self::Item>) -> Event {
        match news {
            News::Listed { items, revision } => self.listed(items, Revision::read(Some(&revision))),
            News::Seen(item) => self.seen(item),
            News::Deleted(item) => self.gone(item),
        }
    }
    /// What to do where the kind is not served.
    fn advice(&self) -> String;
    /// The event for a list that RBAC denies, if the engine can do without it.
    fn refused(&self) -> Option<Event> {
        None
    }
}

/// Passes the events of a [`Reader`] to the event loop.
pub(super) struct EngineSink<R> {
    pub reader: R,
    pub inbox: mpsc::Sender<Message>,
    pub metrics: Arc<Metrics>,
    pub health: Arc<Health>,
}

impl<R: Reader> EngineSink<R> {
    /// Reports whether the watch is current.
    pub fn report(&self, trouble: Option<&str>) {
        self.health.set_watch(self.reader.name(), trouble);
    }

    /// Whether the event loop took the event.
    pub async fn send(&self, event: Event) -> bool {
        self.inbox.send(Message::Event(event)).await.is_ok()
    }

    fn is_optional(&self, trouble: &Trouble) -> Option<Event> {
        (trouble.status == Some(StatusCode::FORBIDDEN)).then(|| self.reader.refused()).flatten()
    }
}

impl<R: Reader> Sink for EngineSink<R> {
    type Item = R::Item;

    fn kind(&self) -> &str {
        self.reader.name()
    }

    fn read(&self, json: Value) -> Result<R::Item, String> {
        self.reader.read(json)
    }

    async fn take(&self, news: News<R::Item>) -> bool {
        self.send(self.reader.event(news)).await
    }

    fn is_closed(&self) -> bool {
        self.inbox.is_closed()
    }

    fn advice(&self) -> String {
        self.reader.advice()
    }

    async fn state(&self, state: WatchState<'_>) {
        match state {
            WatchState::Listed | WatchState::Resumed => self.report(None),
            WatchState::WatchFailed(trouble) => self.report(Some(&self.explain(trouble))),
            WatchState::ListFailed(trouble) => match self.is_optional(trouble) {
                // Denied on purpose: no failure of the watch.
                Some(event) => {
                    self.report(None);
                    self.send(event).await;
                }
                None => self.report(Some(&self.explain(trouble))),
            },
        }
    }

    fn unreadable(&self) {
        self.metrics.unreadable(self.reader.metric());
    }

    fn restarted(&self, why: Restart) {
        let why = match why {
            Restart::Expired => EXPIRED,
            Restart::Failed => FAILED,
        };
        self.metrics.watch_restarted(self.reader.metric(), why);
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
        rest::read_object(self.0, json)
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
        Event::Gone(Gone { kind: self.0, key: rest::key_of(&object.metadata), uid, revision })
    }

    fn advice(&self) -> String {
        "the kind is not installed: run `conductor crds | kubectl apply -f -`".to_owned()
    }
}
