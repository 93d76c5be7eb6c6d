//! Counts the requests of one connection, from their headers until their response is sent or dropped.

use super::{Activity, Connection, Connections};
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::Incoming;
use std::convert::Infallible;
use std::future::Future;
use std::pin::Pin;
use tokio::sync::watch;
use tokio::time::Instant;

/// A service whose requests are counted.
#[derive(Clone, Debug)]
pub(super) struct Tracked<S> {
    service: S,
    id: u64,
    connections: Connections,
    activity: watch::Sender<Activity>,
}

impl<S> Tracked<S> {
    pub fn new(service: S, connection: &Connection) -> Tracked<S> {
        Tracked {
            service,
            id: connection.id,
            connections: connection.connections.clone(),
            activity: connection.activity.clone(),
        }
    }
}

/// One request, until its response is sent or dropped.
struct Open(watch::Sender<Activity>);

impl Open {
    fn begin(activity: watch::Sender<Activity>) -> Open {
        activity.send_modify(|now| {
            *now = Activity { open: now.open + 1, any: true, since: Instant::now() };
        });
        Open(activity)
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.0.send_modify(|now| {
            *now = Activity { open: now.open - 1, any: true, since: Instant::now() };
        });
    }
}

impl<S, B> hyper::service::Service<Request<Incoming>> for Tracked<S>
where
    S: tower::Service<Request<Incoming>, Response = Response<B>, Error = Infallible> + Clone,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
{
    type Response = Response<UnsyncBoxBody<Bytes, B::Error>>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let open = Open::begin(self.activity.clone());
        let uri = request.uri().clone();
        let (id, connections) = (self.id, self.connections.clone());
        // Both services that use this package are always ready.
        let response = self.service.clone().call(request);
        Box::pin(async move {
            let response = response.await?;
            if (connections.identifies)(&uri, response.status()) {
                connections.forget(id);
            }
            Ok(response.map(|body| {
                let counted = body.map_frame(move |frame| {
                    let _ = &open;
                    frame
                });
                counted.boxed_unsync()
            }))
        })
    }
}
