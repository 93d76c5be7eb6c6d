//! Serves `/healthz`, `/readyz` and `/metrics`, read-only. Limits the number of connections; the package
//! `conductor-connections` decides which of them to close.

use super::health::Health;
use super::metrics::Metrics;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use axum::routing::get;
use conductor_connections::{Connections, Limits, Stream};
use std::sync::Arc;
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;

/// For unauthenticated clients and short requests.
const LIMITS: Limits = Limits {
    connections_max: 128,
    unidentified_max: 128,
    first_request_within: Duration::from_secs(20),
    idle_max: Duration::from_secs(60),
    response_within: Duration::from_secs(30),
};

/// Another handle of an open socket, for the async runtime.
pub(super) fn share(open: &std::net::TcpListener) -> std::io::Result<TcpListener> {
    let listener = open.try_clone()?;
    listener.set_nonblocking(true)?;
    TcpListener::from_std(listener)
}

/// Serves until it is dropped.
pub(super) async fn serve(listener: TcpListener, health: Arc<Health>, metrics: Arc<Metrics>) {
    serve_within(LIMITS, listener, routes(health, metrics)).await;
}

async fn serve_within(limits: Limits, listener: TcpListener, routes: Router) {
    let connections = Connections::new(limits, |_, _| false);
    let plain = |io: TcpStream| async move { Some(Stream { io, http2: false }) };
    conductor_connections::serve(listener, connections, CancellationToken::new(), plain, routes).await;
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

#[cfg(test)]
mod tests {
    use super::*;
    use conductor_runtime::elector::LeaseState;
    use conductor_runtime::leadership::Leadership;
    use std::net::SocketAddr;
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

    /// With limits of time that no test reaches.
    const PATIENT: Limits = Limits {
        connections_max: 128,
        unidentified_max: 128,
        first_request_within: Duration::from_secs(3600),
        idle_max: Duration::from_secs(3600),
        response_within: Duration::from_secs(3600),
    };

    async fn start(limits: Limits) -> (SocketAddr, Arc<Health>) {
        let health = Health::new(Vec::new(), LeaseState::Unneeded, Leadership::new(None), Vec::new());
        let (health, metrics) = (Arc::new(health), Arc::new(Metrics::new()));
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        tokio::spawn(serve_within(limits, listener, routes(Arc::clone(&health), metrics)));
        (address, health)
    }

    async fn until_closed(mut stream: TcpStream) {
        let mut buffer = [0_u8; 64];
        let closed = async { while !matches!(stream.read(&mut buffer).await, Ok(0) | Err(_)) {} };
        tokio::time::timeout(WITHIN, closed).await.expect("the server closes it");
    }

    #[tokio::test]
    async fn what_fails_is_in_readyz_and_in_the_metrics() {
        let (address, health) = start(PATIENT).await;
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
    async fn silent_and_slow_connections_block_no_other() {
        let (address, _) = start(PATIENT).await;
        let mut held = Vec::new();
        for n in 0..320 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            if n % 2 == 0 {
                stream.write_all(b"GET /readyz HTTP/1.1\r\nHos").await.unwrap();
            }
            held.push(stream);
        }
        // The youngest continue, byte by byte, while the honest ones send requests.
        let slow = tokio::spawn(async move {
            for byte in b"t: client.example.com\r\n".iter().cycle() {
                for stream in &mut held[200..] {
                    // Those that were closed meanwhile made room.
                    let _ = stream.write_all(&[*byte]).await;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            held
        });
        for path in ["/healthz", "/readyz", "/metrics", "/healthz"] {
            let answer = ask(address, path).await;
            assert!(answer.starts_with("HTTP/1.1 200"), "{path}: {answer}");
        }
        slow.abort();
    }

    #[tokio::test]
    async fn an_honest_connection_that_waits_is_not_closed_first() {
        let few = Limits { connections_max: 4, unidentified_max: 4, ..PATIENT };
        let (address, _) = start(few).await;
        let oldest = TcpStream::connect(address).await.unwrap();
        let mut others = Vec::new();
        for _ in 0..3 {
            others.push(TcpStream::connect(address).await.unwrap());
        }
        assert!(ask(address, "/healthz").await.starts_with("HTTP/1.1 200"));
        until_closed(oldest).await;
        // Where one has closed, no other has to make room.
        let request = b"GET /healthz HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n";
        let mut answer = String::new();
        let mut kept = others.pop().unwrap();
        kept.write_all(request).await.unwrap();
        tokio::time::timeout(WITHIN, kept.read_to_string(&mut answer)).await.unwrap().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    }

    #[tokio::test]
    async fn a_connection_that_sends_no_request_or_no_further_one_is_closed() {
        let brief = Duration::from_millis(200);
        let (address, _) = start(Limits { first_request_within: brief, ..PATIENT }).await;
        until_closed(TcpStream::connect(address).await.unwrap()).await;
        let mut half = TcpStream::connect(address).await.unwrap();
        half.write_all(b"GET /readyz HT").await.unwrap();
        until_closed(half).await;
        let (address, _) = start(Limits { idle_max: brief, ..PATIENT }).await;
        let mut idle = TcpStream::connect(address).await.unwrap();
        idle.write_all(b"GET /readyz HTTP/1.1\r\nHost: test\r\n\r\n").await.unwrap();
        until_closed(idle).await;
    }
}
