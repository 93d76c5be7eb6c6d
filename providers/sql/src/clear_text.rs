//! Never sends a password in clear text to an unauthenticated server. PostgreSQL servers may request one (`password`,
//! `ldap`, `pam` in `pg_hba.conf`), and the driver would answer: the server's messages up to the authentication pass
//! through here, and such a request ends the connection before the driver sees it. MD5 and SCRAM do not reveal the
//! password and pass. Over TLS with `verify-full` the server is authenticated, and the driver may answer.
//!
//! Deliberately absent: MySQL's `mysql_clear_password`, which its driver refuses by itself.

use std::convert::Infallible;
use std::fmt;
use std::future::{Future, Ready, ready};
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};

/// The problem and its fix.
pub(super) const FIX: &str = "requests the password in clear text and does not get it: set spec.sslMode of the \
                              DatabaseServer to verify-full, or let the server use scram-sha-256";

/// Bytes that a server may send before the session is authenticated.
const START_MAX: usize = 64 * 1024;
/// `AuthenticationOk`, and the request for a password in clear text.
const LET_IN: u32 = 0;
const CLEAR_TEXT: u32 = 3;

/// A server requested a password in clear text.
#[derive(Debug)]
pub(super) struct ClearText;

impl fmt::Display for ClearText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "it {FIX}")
    }
}

impl std::error::Error for ClearText {}

/// Whether a connection failed for that reason.
pub(super) fn is_cause_of(error: &tokio_postgres::Error) -> bool {
    let source = std::error::Error::source(error).and_then(|source| source.downcast_ref::<io::Error>());
    source.and_then(io::Error::get_ref).is_some_and(|inner| inner.is::<ClearText>())
}

/// A stream whose server is watched until the session is authenticated.
pub(super) struct Guard<S> {
    inner: S,
    channel_binding: fn(&S) -> ChannelBinding,
    /// The bytes of an incomplete message; none once the session is authenticated.
    start: Option<Vec<u8>>,
}

impl<S> Guard<S> {
    fn new(inner: S, channel_binding: fn(&S) -> ChannelBinding) -> Guard<S> {
        Guard { inner, channel_binding, start: Some(Vec::new()) }
    }

    /// Reads the received messages: one byte for the kind, four for the length, which includes itself.
    fn watch(&mut self, bytes: &[u8]) -> io::Result<()> {
        let Some(start) = &mut self.start else { return Ok(()) };
        start.extend_from_slice(bytes);
        let number = |at: &[u8]| at.first_chunk().map(|four| u32::from_be_bytes(*four));
        while let Some(length) = start.get(1..).and_then(number) {
            let code = (start[0] == b'R').then(|| start.get(5..).and_then(number)).flatten();
            match code {
                Some(CLEAR_TEXT) => {
                    return Err(io::Error::new(io::ErrorKind::PermissionDenied, ClearText));
                }
                Some(LET_IN) => {
                    self.start = None;
                    return Ok(());
                }
                Some(_) | None => {}
            }
            let whole = usize::try_from(length).unwrap_or(usize::MAX).saturating_add(1);
            if whole > start.len() {
                break;
            }
            drop(start.drain(..whole));
        }
        match start.len() > START_MAX {
            true => Err(io::Error::other("the server does not speak PostgreSQL's protocol")),
            false => Ok(()),
        }
    }
}

impl<S: AsyncRead + Unpin> AsyncRead for Guard<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        into: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let before = into.filled().len();
        let polled = Pin::new(&mut self.inner).poll_read(cx, into);
        if let Poll::Ready(Ok(())) = &polled
            && let Err(refused) = self.watch(&into.filled()[before..])
        {
            into.set_filled(before);
            return Poll::Ready(Err(refused));
        }
        polled
    }
}

impl<S: AsyncWrite + Unpin> AsyncWrite for Guard<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.inner).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.inner).poll_shutdown(cx)
    }
}

/// A connection without TLS, which the driver sees as TLS, because it accepts no other wrapper around a connection. With
/// `SslNegotiation::Direct` not one byte on the wire differs.
#[derive(Clone, Copy, Debug)]
pub(super) struct Plain;

impl<S: AsyncRead + AsyncWrite + Unpin> MakeTlsConnect<S> for Plain {
    type Stream = Guard<S>;
    type TlsConnect = Plain;
    type Error = Infallible;

    fn make_tls_connect(&mut self, _: &str) -> Result<Plain, Infallible> {
        Ok(Plain)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsConnect<S> for Plain {
    type Stream = Guard<S>;
    type Error = Infallible;
    type Future = Ready<Result<Guard<S>, Infallible>>;

    fn connect(self, stream: S) -> Self::Future {
        ready(Ok(Guard::new(stream, |_| ChannelBinding::none())))
    }
}

/// TLS that accepts any certificate: encrypted, and watched all the same.
#[derive(Clone, Debug)]
pub(super) struct Watched<M>(pub M);

impl<S, M> MakeTlsConnect<S> for Watched<M>
where
    M: MakeTlsConnect<S>,
    M::TlsConnect: Send + 'static,
    <M::TlsConnect as TlsConnect<S>>::Future: Send + 'static,
{
    type Stream = Guard<M::Stream>;
    type TlsConnect = Watched<M::TlsConnect>;
    type Error = M::Error;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Self::TlsConnect, Self::Error> {
        self.0.make_tls_connect(domain).map(Watched)
    }
}

impl<S, C> TlsConnect<S> for Watched<C>
where
    C: TlsConnect<S>,
    C::Future: Send + 'static,
{
    type Stream = Guard<C::Stream>;
    type Error = C::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Guard<C::Stream>, C::Error>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let connected = self.0.connect(stream);
        Box::pin(async move { connected.await.map(|stream| Guard::new(stream, TlsStream::channel_binding)) })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Guard<S> {
    fn channel_binding(&self) -> ChannelBinding {
        (self.channel_binding)(&self.inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(kind: u8, body: &[u8]) -> Vec<u8> {
        let length = u32::try_from(body.len() + 4).expect("short");
        [&[kind], &length.to_be_bytes()[..], body].concat()
    }

    #[test]
    fn a_request_for_clear_text_is_seen_however_it_arrives() {
        let notice = message(b'N', b"SNOTICE\0Mhello\0\0");
        let scram = message(b'R', &[&10_u32.to_be_bytes()[..], b"SCRAM-SHA-256\0\0"].concat());
        let md5 = message(b'R', &[0, 0, 0, 5, 1, 2, 3, 4]);
        let (clear, ok) = (message(b'R', &CLEAR_TEXT.to_be_bytes()), message(b'R', &LET_IN.to_be_bytes()));
        for (said, is_refused) in [
            (vec![&clear], true),
            (vec![&notice, &clear], true),
            (vec![&scram, &clear], true),
            (vec![&scram, &ok], false),
            (vec![&md5, &ok], false),
            // Rows of an authenticated session are no requests.
            (vec![&ok, &clear], false),
        ] {
            let bytes: Vec<u8> = said.into_iter().flatten().copied().collect();
            for size in [1, 3, 9, bytes.len()] {
                let mut guard = Guard::new((), |()| ChannelBinding::none());
                let refused = bytes.chunks(size).any(|chunk| guard.watch(chunk).is_err());
                assert_eq!(refused, is_refused, "{bytes:?} by {size}");
            }
        }
        let mut guard = Guard::new((), |()| ChannelBinding::none());
        assert!((0..2_000).any(|_| guard.watch(&[0xff; 64]).is_err()), "nor is anything kept without end");
    }
}
