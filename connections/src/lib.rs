//! The connections of an HTTP port, and how long they may idle: one implementation for the embedded API and for the port
//! of health and metrics. Requests, authorization and encryption are the caller's.
//!
//! A connection is *unidentified* until one of its requests identifies its client; on a port without clients' identities
//! it stays so. The number of unidentified connections is limited: at the limit, the oldest one without an open request
//! is closed to admit the next. Any number of connections that are silent, or that send their request byte by byte,
//! therefore keeps no client out.

mod serve;
mod track;

pub use serve::{Stream, serve};

use http::{StatusCode, Uri};
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;
use track::Tracked;

/// How many connections a port has, and how long each may idle.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// The most connections at a time; more are refused.
    pub connections_max: usize,
    /// The most unidentified connections at a time; the oldest one without a request is closed for the next.
    pub unidentified_max: usize,
    /// How long a connection may take until its first request has arrived, including the TLS handshake.
    pub first_request_within: Duration,
    /// How long a connection without a request stays open, and how long it may take to send the next one.
    pub idle_max: Duration,
    /// How long a request of an unidentified connection may take until its response is sent. Requests of identified
    /// connections may last, as watches do.
    pub response_within: Duration,
}

/// Whether the response to a request identifies its client.
pub type Identifies = fn(&Uri, StatusCode) -> bool;

/// The connections of a port.
#[derive(Clone, Debug)]
pub struct Connections {
    limits: Limits,
    identifies: Identifies,
    slots: Arc<Semaphore>,
    unidentified: Arc<Mutex<VecDeque<Entry>>>,
}

impl Connections {
    /// A port without connections.
    pub fn new(limits: Limits, identifies: Identifies) -> Connections {
        let slots = Arc::new(Semaphore::new(limits.connections_max));
        Connections { limits, identifies, slots, unidentified: Arc::default() }
    }

    /// Admits a new connection, and closes an older one at the limit; `None` if every slot is in use.
    fn admit(&self, id: u64) -> Option<Connection> {
        let mut unidentified = self.unidentified.lock();
        let full = self.slots.available_permits() == 0;
        if full || unidentified.len() >= self.limits.unidentified_max.max(1) {
            // The oldest has had the longest time to send its request. One with an open request stays: in a burst of
            // clients that is most of them.
            let idle = unidentified.iter().position(|entry| entry.activity.borrow().open == 0);
            // A response that its client does not read keeps no other client out either.
            let stalled = || unidentified.iter().position(|entry| self.is_stalled(entry));
            match idle.or_else(stalled).and_then(|at| unidentified.remove(at)) {
                Some(entry) => entry.closed.cancel(),
                None if full => return None,
                None => {}
            }
        }
        let (closed, activity) = (CancellationToken::new(), watch::Sender::new(Activity::new()));
        unidentified.push_back(Entry { id, closed: closed.clone(), activity: activity.clone() });
        drop(unidentified);
        Some(Connection { id, closed, connections: self.clone(), activity })
    }

    fn is_stalled(&self, entry: &Entry) -> bool {
        entry.activity.borrow().since.elapsed() >= self.limits.first_request_within
    }

    fn is_unidentified(&self, id: u64) -> bool {
        self.unidentified.lock().iter().any(|entry| entry.id == id)
    }

    fn forget(&self, id: u64) {
        self.unidentified.lock().retain(|entry| entry.id != id);
    }
}

/// An unidentified connection.
#[derive(Debug)]
struct Entry {
    id: u64,
    closed: CancellationToken,
    activity: watch::Sender<Activity>,
}

/// The activity of a connection.
#[derive(Clone, Copy, Debug)]
struct Activity {
    /// Requests whose response is not complete.
    open: usize,
    /// Whether there was any request.
    any: bool,
    /// When the number of open requests last changed.
    since: Instant,
}

impl Activity {
    fn new() -> Activity {
        Activity { open: 0, any: false, since: Instant::now() }
    }
}

/// One connection.
#[derive(Debug)]
struct Connection {
    id: u64,
    closed: CancellationToken,
    connections: Connections,
    activity: watch::Sender<Activity>,
}

impl Drop for Connection {
    fn drop(&mut self) {
        self.connections.forget(self.id);
    }
}

impl Connection {
    /// Waits for a slot: the connection that was closed for this one frees its own at once.
    async fn take_slot(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.connections.slots).acquire_owned().await.ok()
    }

    /// Returns when the connection must close: for another one, or because it idled too long.
    async fn expires(&self) {
        tokio::select! {
            () = self.closed.cancelled() => {}
            () = self.idles() => {}
        }
    }

    async fn idles(&self) {
        let limits = self.connections.limits;
        let mut activity = self.activity.subscribe();
        loop {
            let now = *activity.borrow_and_update();
            let limit = match (now.open, now.any) {
                (0, false) => limits.first_request_within,
                (0, true) => limits.idle_max,
                (_, _) => limits.response_within,
            };
            // The connection holds the sender, so the channel stays open.
            let changed = tokio::time::timeout_at(now.since + limit, activity.changed()).await.is_ok();
            if changed {
                continue;
            }
            if now.open > 0 && !self.connections.is_unidentified(self.id) {
                // A watch lasts as long as its client wants.
                let _ = activity.changed().await;
                continue;
            }
            return;
        }
    }

    /// Counts the requests of this connection.
    fn track<S>(&self, service: S) -> Tracked<S> {
        Tracked::new(service, self)
    }
}
