//! A wire between the controller and the API that numbers every call and fails at one of them: the process dies there,
//! or the answer is an error, or the answer is lost. Decides nothing about objects.

use http::{Method, Request, Response, StatusCode};
use kube::Client;
use kube::client::Body;
use serde_json::json;
use std::collections::BTreeMap;
use std::future::pending;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Notify;
use tower::BoxError;

/// A fault at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// The process dies before the call is sent.
    CrashBefore,
    /// The call is committed, and the process dies before it has the answer.
    CrashAfter,
    /// The API answers with this status and does nothing.
    Status(u16),
    /// The call is committed, and the connection is reset before the answer.
    Reset,
}

impl Fault {
    /// The faults that trials inject at every call.
    pub const ALL: [Fault; 8] = [
        Fault::CrashBefore,
        Fault::CrashAfter,
        Fault::Status(409),
        Fault::Status(422),
        Fault::Status(429),
        Fault::Status(500),
        Fault::Status(503),
        Fault::Reset,
    ];
}

/// One call of a workflow: its request, and its number among equal requests. Calls go out in parallel, so their order
/// differs from run to run; this name of a call does not.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Call {
    /// Method, resource, name.
    pub what: String,
    /// From 1.
    pub time: usize,
}

impl std::fmt::Display for Call {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} #{}", self.what, self.time)
    }
}

#[derive(Debug)]
struct State {
    /// Calls since the wire was armed, in the order in which they were sent.
    trace: Vec<Call>,
    counts: BTreeMap<String, usize>,
    armed: Option<(Call, Fault)>,
    hit: bool,
    dead: bool,
    calls: usize,
    writes: usize,
    in_flight: usize,
    last: Instant,
    /// The calls without Events, which are sent at their own pace.
    last_but_events: Instant,
}

/// The wire of one life of a controller.
#[derive(Clone, Debug)]
pub struct Wire {
    state: Arc<Mutex<State>>,
    death: Arc<Notify>,
}

enum Verdict {
    Send(Option<Fault>),
    Answer(u16),
    Die,
}

impl Default for Wire {
    fn default() -> Self {
        let state = State {
            trace: Vec::new(),
            counts: BTreeMap::new(),
            armed: None,
            hit: false,
            dead: false,
            calls: 0,
            writes: 0,
            in_flight: 0,
            last: Instant::now(),
            last_but_events: Instant::now(),
        };
        Wire { state: Arc::new(Mutex::new(state)), death: Arc::new(Notify::new()) }
    }
}

impl Wire {
    /// A client whose calls go over this wire to `api`, seeing only what is in `scope`.
    pub fn client(&self, api: &Client, scope: crate::scope::Scope) -> Client {
        let (wire, api) = (self.clone(), api.clone());
        let carry = move |request| wire.clone().carry(api.clone(), scope.narrow(request));
        Client::new(tower::service_fn(carry), "default")
    }

    /// Forgets the calls so far; from now on the named one fails.
    pub fn arm(&self, fault: Option<(Call, Fault)>) {
        let mut state = self.lock();
        state.trace.clear();
        state.counts.clear();
        state.armed = fault;
    }

    /// The calls since the wire was armed.
    pub fn trace(&self) -> Vec<Call> {
        self.lock().trace.clone()
    }

    /// Whether the armed fault has happened.
    pub fn was_hit(&self) -> bool {
        self.lock().hit
    }

    /// Whether the process has died by the armed fault.
    pub fn is_dead(&self) -> bool {
        self.lock().dead
    }

    /// Waits until the process is to die.
    pub async fn death(&self) {
        while !self.is_dead() {
            self.death.notified().await;
        }
    }

    /// Makes the wire carry nothing more, as the end of a process does.
    pub fn cut(&self) {
        self.lock().dead = true;
        self.death.notify_one();
    }

    /// How long the controller has sent nothing. Watches and leases do not count.
    pub fn quiet_for(&self) -> Duration {
        let state = self.lock();
        // A controller without any call is not idle, it has not begun.
        if state.in_flight > 0 || state.calls == 0 { Duration::ZERO } else { state.last.elapsed() }
    }

    /// How long the controller has sent nothing, Events not counted either.
    pub fn quiet_but_for_events(&self) -> Duration {
        let state = self.lock();
        if state.calls == 0 { Duration::ZERO } else { state.last_but_events.elapsed() }
    }

    /// All calls and all writes over this wire, watches and leases excepted.
    pub fn counts(&self) -> (usize, usize) {
        let state = self.lock();
        (state.calls, state.writes)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn carry(self, api: Client, request: Request<Body>) -> Result<Response<Body>, BoxError> {
        let Some(what) = describe(&request) else {
            if self.is_dead() {
                return pending().await;
            }
            return Ok(api.send(request).await?);
        };
        match self.admit(what, request.method()) {
            Verdict::Die => {
                self.death.notify_one();
                pending().await
            }
            Verdict::Answer(code) => Ok(refusal(code)),
            Verdict::Send(fault) => {
                let flight = Flight::new(&self);
                let answer = api.send(request).await;
                drop(flight);
                self.deliver(answer, fault).await
            }
        }
    }

    /// Counts a call and returns its fate.
    fn admit(&self, what: String, method: &Method) -> Verdict {
        let mut state = self.lock();
        if state.dead {
            return Verdict::Die;
        }
        let time = state.counts.entry(what.clone()).or_default();
        *time += 1;
        let call = Call { what, time: *time };
        state.last = Instant::now();
        if !call.what.ends_with(" events") {
            state.last_but_events = state.last;
        }
        state.calls += 1;
        state.writes += usize::from(method != Method::GET);
        let fault = state.armed.as_ref().filter(|(at, _)| *at == call).map(|(_, fault)| *fault);
        state.trace.push(call);
        state.hit |= fault.is_some();
        match fault {
            Some(Fault::CrashBefore) => {
                state.dead = true;
                Verdict::Die
            }
            Some(Fault::Status(code)) => Verdict::Answer(code),
            Some(fault @ (Fault::CrashAfter | Fault::Reset)) => Verdict::Send(Some(fault)),
            None => Verdict::Send(None),
        }
    }

    async fn deliver(
        &self,
        answer: kube::Result<Response<Body>>,
        fault: Option<Fault>,
    ) -> Result<Response<Body>, BoxError> {
        match fault {
            Some(Fault::CrashAfter) => {
                self.cut();
                pending().await
            }
            Some(Fault::Reset) => {
                // The server has answered, so the write is committed, but its answer is lost.
                Err(io::Error::new(io::ErrorKind::ConnectionReset, "connection reset by the test").into())
            }
            Some(Fault::CrashBefore | Fault::Status(_)) | None => Ok(answer?),
        }
    }
}

/// Counts a call in flight, also where its sender gives up.
struct Flight(Wire);

impl Flight {
    fn new(wire: &Wire) -> Flight {
        wire.lock().in_flight += 1;
        Flight(wire.clone())
    }
}

impl Drop for Flight {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.in_flight -= 1;
        state.last = Instant::now();
    }
}

/// The name of a call, or nothing for watches and leases, which no workflow is made of.
fn describe(request: &Request<Body>) -> Option<String> {
    let query = request.uri().query().unwrap_or_default();
    if query.split('&').any(|word| matches!(word, "watch=true" | "watch=1")) {
        return None;
    }
    let segments: Vec<&str> = request.uri().path().split('/').filter(|s| !s.is_empty()).collect();
    let after_version = match segments.first() {
        Some(&"api") => 2,
        Some(&"apis") => 3,
        Some(_) | None => return None,
    };
    let rest = segments.get(after_version..).unwrap_or_default();
    // A namespace is an object itself where nothing follows its name.
    let rest = if rest.first() == Some(&"namespaces") && rest.len() > 2 { &rest[2..] } else { rest };
    let name = rest.get(1).map(|name| without_uid(name)).unwrap_or_default();
    match rest {
        ["leases", ..] => None,
        ["events", ..] => Some(format!("{} events", request.method())),
        [plural] => Some(format!("{} {plural}", request.method())),
        [plural, _] => Some(format!("{} {plural} {name}", request.method())),
        [plural, _, sub] => Some(format!("{} {plural}/{sub} {name}", request.method())),
        _ => Some(format!("{} {}", request.method(), request.uri().path())),
    }
}

/// Names that derive from a UID differ from run to run.
fn without_uid(name: &str) -> String {
    crate::normal::without_made_names(name, "UID")
}

/// The API's answer with a status other than success.
fn refusal(code: u16) -> Response<Body> {
    let reason = match code {
        409 => "Conflict",
        422 => "Invalid",
        429 => "TooManyRequests",
        503 => "ServiceUnavailable",
        _ => "InternalError",
    };
    let status = json!({
        "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "reason": reason, "message": format!("{code} by the test"), "code": code,
    });
    let mut response = Response::new(Body::from(status.to_string().into_bytes()));
    *response.status_mut() = StatusCode::from_u16(code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    if code == 429 {
        response.headers_mut().insert(http::header::RETRY_AFTER, http::HeaderValue::from_static("1"));
    }
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_are_named_alike_in_every_run() {
        let uid = "3e8b1c52-7a0f-4a53-9d0c-1f2e3d4c5b6a";
        for (method, uri, name) in [
            ("GET", "/apis/g/v1/relationaldatabases?limit=500".to_owned(), Some("GET relationaldatabases")),
            ("GET", "/apis/g/v1/namespaces/a/things".to_owned(), Some("GET things")),
            ("GET", "/apis/g/v1/things?watch=true".to_owned(), None),
            ("GET", "/apis/g/v1/things?a=b&watch=1&c=d".to_owned(), None),
            ("PATCH", "/apis/g/v1/namespaces/a/things/x/status".to_owned(), Some("PATCH things/status x")),
            ("DELETE", format!("/apis/g/v1/namespaces/a/things/rdb-{uid}"), Some("DELETE things rdb-UID")),
            ("POST", "/apis/events.k8s.io/v1/namespaces/a/events".to_owned(), Some("POST events")),
            ("PATCH", "/apis/events.k8s.io/v1/namespaces/a/events/x.1".to_owned(), Some("PATCH events")),
            ("GET", "/api/v1/namespaces/a".to_owned(), Some("GET namespaces a")),
            ("PUT", "/apis/coordination.k8s.io/v1/namespaces/a/leases/conductor".to_owned(), None),
        ] {
            let request = Request::builder().method(method).uri(&uri).body(Body::empty()).unwrap();
            assert_eq!(describe(&request).as_deref(), name, "{method} {uri}");
        }
    }
}
