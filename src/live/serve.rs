//! `/healthz`, `/readyz` and `/metrics`, for whoever watches over the process. Nothing can be changed here. A
//! connection that brings no request, or only part of one, is closed in time, and few are open at once.

use super::health::Health;
use super::metrics::Metrics;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// Connections at a time; the next ones wait until one is closed.
const CONNECTIONS_MAX: usize = 128;
/// How long a connection may go without an answer to it: no request here takes long.
const QUIET_MAX: Duration = Duration::from_secs(30);

/// Serves until it is dropped.
pub(super) async fn serve(
    listener: TcpListener,
    health: Arc<Health>,
    metrics: Arc<Metrics>,
) -> std::io::Result<()> {
    axum::serve(Doorman::new(listener, CONNECTIONS_MAX, QUIET_MAX), routes(health, metrics)).await
}

fn routes(health: Arc<Health>, metrics: Arc<Metrics>) -> Router {
    Router::new()
        .route("/healthz", get(healthz))
        .route("/readyz", get(readyz))
        .with_state(Arc::clone(&health))
        .route("/metrics", get(metrics_page).with_state((metrics, health)))
}

async fn healthz(State(health): State<Arc<Health>>) -> impl IntoResponse {
    match health.find_stuck() {
        None => (StatusCode::OK, "ok\n".to_owned()),
        Some(why) => (StatusCode::SERVICE_UNAVAILABLE, format!("{why}\n")),
    }
}

/// One line for each check that fails.
async fn readyz(State(health): State<Arc<Health>>) -> impl IntoResponse {
    let failing = health.checks().into_iter().filter_map(|(name, trouble)| Some((name, trouble?)));
    let lines: String = failing.map(|(name, why)| format!("[-]{name}: {why}\n")).collect();
    match lines.is_empty() {
        true => (StatusCode::OK, "ok\n".to_owned()),
        false => (StatusCode::SERVICE_UNAVAILABLE, lines),
    }
}

async fn metrics_page(State((metrics, health)): State<(Arc<Metrics>, Arc<Health>)>) -> impl IntoResponse {
    for (check, trouble) in health.checks() {
        metrics.ready(check, trouble.is_none());
    }
    let kind = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([(axum::http::header::CONTENT_TYPE, kind)], metrics.render())
}

/// Lets connections in, so many at a time.
struct Doorman {
    listener: TcpListener,
    places: Arc<Semaphore>,
    quiet_max: Duration,
}

impl Doorman {
    fn new(listener: TcpListener, places: usize, quiet_max: Duration) -> Doorman {
        Doorman { listener, places: Arc::new(Semaphore::new(places)), quiet_max }
    }
}

impl axum::serve::Listener for Doorman {
    type Io = Connection;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Connection, SocketAddr) {
        let place = Arc::clone(&self.places).acquire_owned().await;
        // Never closed: without a place it would be one too many, and nothing else.
        let place = place.ok();
        let (stream, address) = axum::serve::Listener::accept(&mut self.listener).await;
        let end = Box::pin(tokio::time::sleep(self.quiet_max));
        (Connection { stream, end, quiet_max: self.quiet_max, _place: place }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection that ends when nothing was answered for too long: every answer gives it more time, and what it sends
/// does not.
struct Connection {
    stream: TcpStream,
    end: Pin<Box<Sleep>>,
    quiet_max: Duration,
    _place: Option<OwnedSemaphorePermit>,
}

impl AsyncRead for Connection {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        if self.end.as_mut().poll(context).is_ready() {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Connection {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        if matches!(written, Poll::Ready(Ok(_))) {
            let end = Instant::now() + self.quiet_max;
            self.end.as_mut().reset(end);
        }
        written
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}

#[cfg(test)]
mod tests {
    use super::super::gate::Gate;
    use super::super::health::LeaseView;
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    /// Generous: machines are slow at times.
    const WITHIN: Duration = Duration::from_secs(60);

    async fn ask(address: SocketAddr, path: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        tokio::time::timeout(WITHIN, stream.read_to_string(&mut answer)).await.unwrap().unwrap();
        answer
    }

    async fn start(quiet_max: Duration, places: usize) -> (SocketAddr, Arc<Health>) {
        let health = Health::new(Vec::new(), LeaseView::Unneeded, Gate::new(), Vec::new());
        let (health, metrics) = (Arc::new(health), Arc::new(Metrics::new()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let doorman = Doorman::new(listener, places, quiet_max);
        let routes = routes(Arc::clone(&health), metrics);
        tokio::spawn(axum::serve(doorman, routes).into_future());
        (address, health)
    }

    #[tokio::test]
    async fn what_fails_is_in_readyz_and_in_the_metrics() {
        let (address, health) = start(WITHIN, 8).await;
        assert!(ask(address, "/readyz").await.starts_with("HTTP/1.1 200"));
        health.set_watch("RelationalDatabase", Some("no answer"));
        let answer = ask(address, "/readyz").await;
        assert!(answer.starts_with("HTTP/1.1 503"), "{answer}");
        assert!(answer.contains("[-]watches: RelationalDatabase: no answer"), "{answer}");
        assert!(ask(address, "/healthz").await.starts_with("HTTP/1.1 200"), "a restart would not help");
        let metrics = ask(address, "/metrics").await;
        assert!(metrics.contains("conductor_ready{check=\"watches\"} 0"), "{metrics}");
        assert!(metrics.contains("conductor_ready{check=\"lease\"} 1"), "{metrics}");
    }

    #[tokio::test]
    async fn a_connection_that_sends_no_request_makes_room() {
        let (address, _) = start(Duration::from_millis(200), 2).await;
        let mut silent = Vec::new();
        for _ in 0..3 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(b"GET /readyz HT").await.unwrap();
            silent.push(stream);
        }
        assert!(ask(address, "/readyz").await.starts_with("HTTP/1.1 200"));
    }
}
