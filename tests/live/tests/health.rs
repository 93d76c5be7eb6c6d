//! `/readyz` of a running controller, as a probe asks it: it says which watch is not current, also of the kinds that are
//! followed for databases only, and is ready again when the API answers.

use conductor_controller::Options;
use conductor_live::{Controller, Side, on_both_apis, turn_on, until};
use futures::future::{Either, Ready, ready};
use http::{Request, Response};
use kube::client::Body;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use tower::{Layer, Service};

on_both_apis! {
    a_watch_for_databases_that_fails_is_in_readyz,
}

/// While it is set, the API refuses to speak of databases.
#[derive(Clone, Default)]
struct Refuse(Arc<AtomicBool>);

impl<S> Layer<S> for Refuse {
    type Service = Refused<S>;

    fn layer(&self, inner: S) -> Refused<S> {
        Refused { inner, refuse: self.clone() }
    }
}

struct Refused<S> {
    inner: S,
    refuse: Refuse,
}

impl<S: Service<Request<Body>, Response = Response<Body>>> Service<Request<Body>> for Refused<S> {
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Either<Ready<Result<Response<Body>, S::Error>>, S::Future>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let is_refused = request.uri().path().ends_with("/logicaldatabases");
        if is_refused && self.refuse.0.load(Ordering::SeqCst) {
            let status =
                r#"{"kind":"Status","apiVersion":"v1","status":"Failure","code":500,"message":"not now"}"#;
            let refused = Response::builder().status(500).body(Body::from(status.as_bytes().to_vec()));
            return Either::Left(ready(Ok(refused.expect("a response"))));
        }
        Either::Right(self.inner.call(request))
    }
}

fn get(address: SocketAddr, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// What `/readyz` says, as soon as it has this status.
async fn readyz(address: SocketAddr, status: u16) -> String {
    let begins = format!("HTTP/1.1 {status} ");
    until(&format!("/readyz is {status}"), async || {
        let answer = tokio::task::spawn_blocking(move || get(address, "/readyz")).await;
        answer.ok()?.ok().filter(|answer| answer.starts_with(&begins))
    })
    .await
}

async fn a_watch_for_databases_that_fails_is_in_readyz(side: Side) {
    let turn = turn_on(side).await;
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let refuse = Refuse::default();
    refuse.0.store(true, Ordering::SeqCst);
    let options = Options {
        lease: None,
        databases: true,
        listen: Some(address),
        listener: Some(Arc::new(listener)),
        ..Options::default()
    };
    let controller = Controller::start(turn.client_through(&refuse), options);
    let what = "LogicalDatabase (databases): ";
    let unready = until("the watch is named", async || {
        Some(readyz(address, 503).await).filter(|answer| answer.contains(what))
    })
    .await;
    let line = unready.lines().find(|line| line.starts_with("[-]watches: ")).unwrap_or_default();
    assert!(line.contains(what) && line.contains("not now"), "{unready}");
    refuse.0.store(false, Ordering::SeqCst);
    readyz(address, 200).await;
    controller.stop().await.expect("it stops");
}
