//! The connections of an HTTP port, and how long they may do nothing: one implementation for the embedded API and for
//! the port of health and metrics. Which requests there are, who may send them and how a stream is encrypted is the
//! caller's.
//!
//! A connection is *unidentified* until one of its requests shows who its client is; where the port knows no clients,
//! it stays so. Only so many are unidentified at a time: at the limit, the oldest one that has no request open is
//! closed to make room for the next. Any number of connections that are silent, or that send their request byte by
//! byte, therefore keeps no client out.

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

/// How many connections a port has, and how long each may do nothing.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Connections at a time; more are refused.
    pub connections_max: usize,
    /// Unidentified connections at a time; the oldest of them without a request makes room for the next.
    pub unidentified_max: usize,
    /// How long a connection may take until its first request has arrived, the TLS handshake included.
    pub first_request_within: Duration,
    /// How long a connection without a request stays open, and how long it may take to send the next one.
    pub idle_max: Duration,
    /// How long a request of an unidentified connection may take until its answer is sent. Of an identified connection a
    /// request may last: watches do.
    pub answer_within: Duration,
}

/// Whether the answer to a request identifies the client that sent it.
pub type Identifies = fn(&Uri, StatusCode) -> bool;

/// The connections of a port.
#[derive(Clone, Debug)]
pub struct Connections {
    limits: Limits,
    identifies: Identifies,
    places: Arc<Semaphore>,
    unidentified: Arc<Mutex<VecDeque<Entry>>>,
}

impl Connections {
    /// None yet.
    pub fn new(limits: Limits, identifies: Identifies) -> Connections {
        let places = Arc::new(Semaphore::new(limits.connections_max));
        Connections { limits, identifies, places, unidentified: Arc::default() }
    }

    /// Admits a new connection, and closes an older one where there is no room; none where every place is in use.
    fn admit(&self, id: u64) -> Option<Connection> {
        let mut unidentified = self.unidentified.lock();
        let full = self.places.available_permits() == 0;
        if full || unidentified.len() >= self.limits.unidentified_max.max(1) {
            // The oldest has had the longest time to send its request. One whose request is being answered stays open: in
            // a burst of clients that is most of them.
            let idle = unidentified.iter().position(|entry| entry.activity.borrow().open == 0);
            // An answer that its client does not take keeps nobody out either.
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

/// What a connection does.
#[derive(Clone, Copy, Debug)]
struct Activity {
    /// Requests that are not answered to the end.
    open: usize,
    /// Whether there ever was one.
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
    /// Waits for the place itself: the connection that made room for this one leaves at once.
    async fn take_place(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.connections.places).acquire_owned().await.ok()
    }

    /// Returns when the connection is to be closed: it made room, or did nothing for too long.
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
                (_, _) => limits.answer_within,
            };
            // The sender is ours: it exists as long as we do.
            let changed = tokio::time::timeout_at(now.since + limit, activity.changed()).await.is_ok();
            if changed {
                continue;
            }
            if now.open > 0 && !self.connections.is_unidentified(self.id) {
                // A watch, for as long as its client wants.
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
