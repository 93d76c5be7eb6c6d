//! A tower layer that records every call of a client and changes none.

use http::{Method, Request};
use kube::client::Body;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use tower::{Layer, Service};

/// One call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Call {
    /// GET, PATCH and so on.
    pub method: Method,
    /// The path, without the query.
    pub path: String,
    /// The query.
    pub query: String,
}

impl Call {
    /// Whether it writes an object other than a Lease or an Event.
    pub fn is_write(&self) -> bool {
        let aside = ["/apis/coordination.k8s.io/", "/apis/events.k8s.io/"];
        self.method != Method::GET && !aside.iter().any(|prefix| self.path.starts_with(prefix))
    }
}

/// Every call so far; clones share it.
#[derive(Clone, Debug, Default)]
pub struct Calls(Arc<Mutex<Vec<Call>>>);

impl Calls {
    /// All calls in the order in which they were sent.
    pub fn all(&self) -> Vec<Call> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The writes among them.
    pub fn writes(&self) -> Vec<Call> {
        self.all().into_iter().filter(Call::is_write).collect()
    }
}

impl<S> Layer<S> for Calls {
    type Service = Listening<S>;

    fn layer(&self, inner: S) -> Listening<S> {
        Listening { inner, calls: self.clone() }
    }
}

/// A service whose calls are recorded.
#[derive(Clone, Debug)]
pub struct Listening<S> {
    inner: S,
    calls: Calls,
}

impl<S: Service<Request<Body>>> Service<Request<Body>> for Listening<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> S::Future {
        let (method, uri) = (request.method().clone(), request.uri());
        let query = uri.query().unwrap_or_default().to_owned();
        let call = Call { method, path: uri.path().to_owned(), query };
        self.calls.0.lock().unwrap_or_else(PoisonError::into_inner).push(call);
        self.inner.call(request)
    }
}
