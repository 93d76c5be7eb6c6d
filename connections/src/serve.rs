//! Accepts connections, and serves each until its client leaves, its time is over or the server stops.

use super::{Connection, Connections};
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

/// How long no connection is accepted after one could not be: there may be no descriptor left.
const PAUSE: Duration = Duration::from_millis(20);

/// A connection after its handshake.
#[derive(Debug)]
pub struct Stream<T> {
    /// What requests are read from.
    pub io: T,
    /// HTTP/2 was agreed on; HTTP/1.1 otherwise.
    pub http2: bool,
}

/// Serves until `stop`, or until the future is dropped; then every connection ends too.
///
/// `handshake` makes of a connection what requests are read from; none closes it. `service` must always be ready.
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
                // Out of descriptors, or a client that left: the next one may do better.
                Err(_) => {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                }
            },
        };
        id += 1;
        // Closed at once where every place is in use: a client that tries again later is better off than one that waits.
        let Some(connection) = connections.admit(id) else { continue };
        let (stop, handshake, service) = (stop.clone(), handshake.clone(), service.clone());
        tokio::spawn(async move {
            tokio::select! {
                () = stop.cancelled() => {}
                () = connection.expires() => {}
                () = converse(stream, &connection, handshake, service) => {}
            }
        });
    }
}

/// Serves one connection until its client goes away.
async fn converse<H, F, T, S, B>(stream: TcpStream, connection: &Connection, handshake: H, service: S)
where
    H: Fn(TcpStream) -> F,
    F: Future<Output = Option<Stream<T>>>,
    T: AsyncRead + AsyncWrite + Unpin + Send + 'static,
    S: tower::Service<Request<Incoming>, Response = Response<B>, Error = Infallible>,
    S: Clone + Send + 'static,
    S::Future: Send + 'static,
    B: Body<Data = Bytes> + Send + 'static,
    B::Error: Into<BoxError>,
{
    let Some(_place) = connection.take_place().await else { return };
    // Watches are many small lines; waiting to fill a packet delays each.
    let _ = stream.set_nodelay(true);
    let Some(Stream { io, http2 }) = handshake(stream).await else { return };
    let builder = Builder::new(TokioExecutor::new());
    // By what was agreed on in the handshake: to find out by reading would be another wait.
    let builder = if http2 { builder.http2_only() } else { builder.http1_only() };
    // A client that goes away is its own affair.
    let _ = builder.serve_connection_with_upgrades(TokioIo::new(io), connection.track(service)).await;
}
