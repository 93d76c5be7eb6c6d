//! Accepts connections, and serves each until its client disconnects, it expires or the server stops.

use super::Connections;
use bytes::Bytes;
use http::{Request, Response};
use http_body::Body;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::conn::auto::Builder;
use std::convert::Infallible;
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio_util::sync::CancellationToken;
use tower::BoxError;

/// The pause after a connection could not be accepted: there may be no file descriptor left.
const PAUSE: Duration = Duration::from_millis(20);

/// A connection after its handshake.
#[derive(Debug)]
pub struct Stream<T> {
    /// The stream of requests.
    pub io: T,
    /// Whether the handshake agreed on HTTP/2; HTTP/1.1 otherwise.
    pub http2: bool,
}

/// Serves until `stop`, or until the future is dropped; then every connection ends too.
///
/// `handshake` turns a connection into a stream of requests; `None` closes it. `service` must always be ready.
pub async fn serve<H, F, T, S, B>(
    listener: TcpListener,
    connections: Connections,
    stop: CancellationToken,
    handshake: H,
    service: S,
) where
    H: Fn(TcpStream) -> F + Clone + Send + 'static,
    F: Future<Output = Option<Stream<T>>> + Send + 'static,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: tower::Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let _ended = stop.clone().drop_guard();
    let mut id = 0;
    loop {
        let stream = tokio::select! {
            () = stop.cancelled() => return,
            accepted = listener.accept() => match accepted {
                Ok((stream, _)) => stream,
                // Out of file descriptors, or the client disconnected: the next one may succeed.
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        id += 1;
        // Close it at once if every slot is in use: a client that retries is better off than one that waits.
        let Some(connection) = connections.admit(id) else { continue };
        let (stop, handshake, service) = (stop.clone(), handshake.clone(), service.clone());
        tokio::spawn(async move {
            let connection = &connection;
            let serve = async move {
                let Some(_slot) = connection.take_slot().await else { return };
                // Watches send many small lines; waiting to fill a packet delays each.
                let _ = stream.set_nodelay(true);
                let Some(Stream { io, http2 }) = handshake(stream).await else { return };
                let builder = Builder::new(TokioExecutor::new());
                // The handshake agreed on a version: detecting it by reading would be another wait.
                let builder = if http2 { builder.http2_only() } else { builder.http1_only() };
                let service = connection.track(service);
                // A client that disconnects is not an error.
                let _ = builder.serve_connection_with_upgrades(TokioIo::new(io), service).await;
            };
            tokio::select! {
                () = stop.cancelled() => {}
                () = connection.expires() => {}
                () = serve => {}
            }
        });
    }
}
