//! Turns what the watches bring into events for the engine, and their state into health and metrics. Keeps no objects.

use super::event_loop::Message;
use super::health::Health;
use super::metrics::{EXPIRED, FAILED, Metrics};
use super::rest;
use conductor::event::{Event, Gone, PublishEvent};
use conductor::model::{Kind, Object, Revision, Slot, Uid};
use conductor_runtime::collection::Trouble;
use conductor_runtime::list_watch::{News, Restart, Sink, WatchState};
use http::StatusCode;
use serde_json::Value;
use std::sync::Arc;
use tokio::sync::mpsc;

/// Turns the objects of one kind into events.
pub(super) struct Reader<T> {
    /// The kind's name in metrics, one of a fixed set.
    pub metric: &'static str,
    /// The kind's name in logs and health checks.
    pub name: String,
    /// Reads one object, or returns what is wrong with it.
    pub read: Box<dyn Fn(Value) -> Result<T, String> + Send + Sync>,
    /// The event for news of the kind.
    pub event: Box<dyn Fn(News<T>) -> Event + Send + Sync>,
    /// What to do where the kind is not served.
    pub advice: &'static str,
    /// Set where the engine can do without the list if RBAC denies it.
    pub optional: Option<Slot>,
}

/// Passes the events of a [`Reader`] to the event loop.
pub(super) struct EngineSink<T> {
    pub reader: Reader<T>,
    pub inbox: mpsc::Sender<Message>,
    pub metrics: Arc<Metrics>,
    pub health: Arc<Health>,
}

impl<T> EngineSink<T> {
    /// Reports whether the watch is current.
    pub fn report(&self, trouble: Option<&str>) {
        self.health.set_watch(&self.reader.name, trouble);
    }

    /// Whether the event loop took the event.
    pub async fn send(&self, event: Event) -> bool {
        self.inbox.send(Message::Event(event)).await.is_ok()
    }

    fn denied(&self, trouble: &Trouble) -> Option<Event> {
        let slot = self.reader.optional.filter(|_| trouble.status == Some(StatusCode::FORBIDDEN))?;
        Some(Event::Publish(PublishEvent::Refused(slot)))
    }
}

impl<T: Send> Sink for EngineSink<T> {
    type Item = T;

    fn kind(&self) -> &str {
        &self.reader.name
    }

    fn read(&self, json: Value) -> Result<T, String> {
        (self.reader.read)(json)
    }

    async fn take(&self, news: News<T>) -> bool {
        self.send((self.reader.event)(news)).await
    }

    fn is_closed(&self) -> bool {
        self.inbox.is_closed()
    }

    fn advice(&self) -> String {
        self.reader.advice.to_owned()
    }

    async fn state(&self, state: WatchState<'_>) {
        match state {
            WatchState::Listed | WatchState::Resumed => self.report(None),
            WatchState::WatchFailed(trouble) => self.report(Some(&self.explain(trouble))),
            WatchState::ListFailed(trouble) => match self.denied(trouble) {
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
        self.metrics.unreadable(self.reader.metric);
    }

    fn restarted(&self, why: Restart) {
        let why = match why {
            Restart::Expired => EXPIRED,
            Restart::Failed => FAILED,
        };
        self.metrics.watch_restarted(self.reader.metric, why);
    }
}

/// Reads a kind of the engine.
pub(super) fn kind_reader(kind: Kind) -> Reader<Object> {
    Reader {
        metric: kind.name(),
        name: kind.name().to_owned(),
        read: Box::new(move |json| rest::read_object(kind, json)),
        event: Box::new(move |news| match news {
            News::Listed { items: objects, revision } => {
                Event::Listed { kind, objects, revision: Revision::read(Some(&revision)) }
            }
            News::Seen(object) => Event::Seen(object),
            News::Deleted(object) => {
                let uid = Uid::from(object.metadata.uid.as_deref().unwrap_or_default());
                let revision = Revision::read(object.metadata.resource_version.as_deref());
                Event::Gone(Gone { kind, key: rest::key_of(&object.metadata), uid, revision })
            }
        }),
        advice: "the kind is not installed: run `conductor crds | kubectl apply -f -`",
        optional: None,
    }
}
