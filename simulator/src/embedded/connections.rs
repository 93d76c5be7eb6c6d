//! Connections and how long they may do nothing. One that does not finish its handshake, or sends no request, is closed
//! in time; one that waits with a watch is not. Those that have not shown a known token make room for each other, so
//! that any number of silent ones keeps no client out.

use super::Options;
use super::answer::Body;
use super::service::{Service, is_public};
use http::{Request, Response, StatusCode};
use http_body_util::BodyExt;
use hyper::body::Incoming;
use parking_lot::Mutex;
use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio_util::sync::CancellationToken;

/// The connections of a server.
#[derive(Clone, Debug)]
pub(super) struct Connections {
    places: Arc<Semaphore>,
    strangers: Arc<Mutex<VecDeque<Stranger>>>,
    strangers_max: usize,
    pub greet_within: Duration,
    idle_max: Duration,
}

impl Connections {
    pub fn new(options: &Options) -> Connections {
        Connections {
            places: Arc::new(Semaphore::new(options.connections_max)),
            strangers: Arc::default(),
            strangers_max: options.strangers_max.max(1),
            greet_within: options.greet_within,
            idle_max: options.idle_max,
        }
    }

    /// A place for a new connection; none where all are taken by clients that have shown a token.
    pub fn enter(&self, id: u64) -> Option<Guest> {
        let mut strangers = self.strangers.lock();
        let full = self.places.available_permits() == 0;
        if full || strangers.len() >= self.strangers_max {
            // The oldest has had the longest time to say who it is. One whose request is being answered has said it: in a
            // burst of clients that is most of them, and they stay open.
            let silent = strangers.iter().position(|stranger| stranger.used.borrow().open == 0);
            match silent.and_then(|at| strangers.remove(at)) {
                Some(silent) => silent.closed.cancel(),
                None if full => return None,
                None => {}
            }
        }
        let (closed, used) = (CancellationToken::new(), watch::Sender::new(Use::default()));
        strangers.push_back(Stranger { id, closed: closed.clone(), used: used.clone() });
        drop(strangers);
        Some(Guest { id, closed, connections: self.clone(), used })
    }

    fn forget(&self, id: u64) {
        self.strangers.lock().retain(|stranger| stranger.id != id);
    }
}

/// A connection that has not shown a known token.
#[derive(Debug)]
struct Stranger {
    id: u64,
    closed: CancellationToken,
    used: watch::Sender<Use>,
}

/// What a connection is used for.
#[derive(Clone, Copy, Debug, Default)]
struct Use {
    /// Requests that are not answered to the end.
    open: usize,
    /// Whether there ever was one.
    any: bool,
}

/// One connection.
#[derive(Debug)]
pub(super) struct Guest {
    id: u64,
    closed: CancellationToken,
    connections: Connections,
    used: watch::Sender<Use>,
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.connections.forget(self.id);
    }
}

impl Guest {
    /// Waits for the place itself: whoever made room for it leaves at once.
    pub async fn sit(&self) -> Option<OwnedSemaphorePermit> {
        let place = Arc::clone(&self.connections.places).acquire_owned();
        tokio::time::timeout(self.connections.greet_within, place).await.ok()?.ok()
    }

    /// Returns when the connection is to be closed: it made room, or did nothing for too long.
    pub async fn expires(&self) {
        tokio::select! {
            () = self.closed.cancelled() => {}
            () = self.idles() => {}
        }
    }

    async fn idles(&self) {
        let mut used = self.used.subscribe();
        loop {
            let now = *used.borrow_and_update();
            let limit = if now.any { self.connections.idle_max } else { self.connections.greet_within };
            // The sender is ours: it is there as long as we are.
            if now.open > 0 {
                let _ = used.changed().await;
            } else if tokio::time::timeout(limit, used.changed()).await.is_err() {
                return;
            }
        }
    }

    /// The service for the requests of this connection.
    pub fn serve(&self, service: Service) -> Watched {
        Watched { service, id: self.id, connections: self.connections.clone(), used: self.used.clone() }
    }
}

/// Counts the requests of a connection.
#[derive(Clone, Debug)]
pub(super) struct Watched {
    service: Service,
    id: u64,
    connections: Connections,
    used: watch::Sender<Use>,
}

/// One request, until the last of its answer is sent or dropped.
struct Open(watch::Sender<Use>);

impl Open {
    fn begin(used: watch::Sender<Use>) -> Open {
        used.send_modify(|now| *now = Use { open: now.open + 1, any: true });
        Open(used)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|now| now.open -= 1);
    }
}

impl hyper::service::Service<Request<Incoming>> for Watched {
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let open = Open::begin(self.used.clone());
        let is_public = is_public(request.uri().path());
        let (id, connections) = (self.id, self.connections.clone());
        let answer = tower::Service::call(&mut self.service.clone(), request);
        Box::pin(async move {
            let response = answer.await?;
            if !is_public && response.status() != StatusCode::UNAUTHORIZED {
                connections.forget(id);
            }
            Ok(response.map(|body| {
                body.map_frame(move |frame| {
                    let _ = &open;
                    frame
                })
                .boxed_unsync()
            }))
        })
    }
}
