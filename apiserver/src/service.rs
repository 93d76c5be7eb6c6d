//! The API as a tower service: one type for the client in this process, whom we trust, and for connections, who show
//! a token.

use super::answer::{Answer, Body};
use super::api::Api;
use super::call::{BODY_MAX, Call, User};
use super::status::Status;
use super::token::Tokens;
use bytes::Bytes;
use futures::future::BoxFuture;
use http::{Request, Response, header};
use http_body_util::{BodyExt, Collected, Limited};
use std::convert::Infallible;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

/// How long the body of a request may take that comes over a connection.
const BODY_WITHIN: Duration = Duration::from_secs(60);

type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// Answers requests.
#[derive(Clone, Debug)]
pub struct Service {
    api: Arc<Api>,
    door: Door,
}

/// Who comes in.
#[derive(Clone, Debug)]
enum Door {
    /// Every client in this process is the administrator.
    Open,
    /// Only those whose token is known.
    Guarded(Arc<Tokens>),
}

impl Service {
    pub(super) fn trusting(api: Arc<Api>) -> Service {
        Service { api, door: Door::Open }
    }

    pub(super) fn guarded(api: Arc<Api>, tokens: Arc<Tokens>) -> Service {
        Service { api, door: Door::Guarded(tokens) }
    }

    fn admit(&self, request: &http::request::Parts) -> Result<User, Status> {
        match &self.door {
            // A token is not needed here; one that is shown cannot be known.
            Door::Open if request.headers.contains_key(header::AUTHORIZATION) => Err(Status::unauthorized()),
            Door::Open => Ok(User::admin()),
            // Health and version need no authentication, as on a real server.
            Door::Guarded(_) if is_public(request.uri.path()) => Ok(User::anonymous()),
            Door::Guarded(tokens) => {
                let shown = request.headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
                let token = shown.and_then(|value| value.strip_prefix("Bearer ")).map(str::trim);
                token.and_then(|token| tokens.find(token)).ok_or_else(Status::unauthorized)
            }
        }
    }
}

/// An impersonating client would get the rights of its own user.
fn refuse_impersonation(request: &http::request::Parts) -> Result<(), Status> {
    match request.headers.keys().any(|name| name.as_str().starts_with("impersonate-")) {
        true => Err(Status::not_implemented("impersonation: every known token may do everything")),
        false => Ok(()),
    }
}

pub(super) fn is_public(path: &str) -> bool {
    let first = path.trim_matches('/').split('/').next().unwrap_or_default();
    matches!(first, "healthz" | "livez" | "readyz" | "version")
}

impl<B> tower::Service<Request<B>> for Service
where
    B: http_body::Body<Data = Bytes> + Send + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    type Response = Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Response<Body>, Infallible>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: Request<B>) -> Self::Future {
        let service = self.clone();
        Box::pin(async move { Ok(service.answer(request).await) })
    }
}

impl Service {
    async fn answer<B>(&self, request: Request<B>) -> Response<Body>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    {
        let (parts, body) = request.into_parts();
        let refuse = |status: Status| Answer::from(status).encode(super::accept::Encoding::Json);
        let user = match self.admit(&parts).and_then(|user| refuse_impersonation(&parts).map(|()| user)) {
            Ok(user) => user,
            Err(status) => return refuse(status),
        };
        if is_public(parts.uri.path()) {
            // These require no token: a body is not waited for, or it would keep the connection busy.
            return self.carry_out(Call::new(parts, Bytes::new(), user)).await;
        }
        let collected = match self.collect(body).await {
            Some(collected) => collected,
            None => return refuse(Status::request_timeout(BODY_WITHIN.as_secs())),
        };
        match collected {
            Ok(collected) => self.carry_out(Call::new(parts, collected.to_bytes(), user)).await,
            Err(error) if error.is::<http_body_util::LengthLimitError>() => {
                refuse(Status::too_large(&format!("limit is {BODY_MAX}")))
            }
            Err(error) => refuse(Status::bad_request(format!("the body could not be read: {error}"))),
        }
    }

    /// The body. A connection may send it slowly, but not for ever; none where it did not come in time.
    async fn collect<B>(&self, body: B) -> Option<Result<Collected<Bytes>, BoxError>>
    where
        B: http_body::Body<Data = Bytes> + Send + 'static,
        B::Error: Into<BoxError>,
    {
        let all = Limited::new(body, BODY_MAX).collect();
        match &self.door {
            Door::Open => Some(all.await),
            Door::Guarded(_) => tokio::time::timeout(BODY_WITHIN, all).await.ok(),
        }
    }

    /// A write that has begun is carried out with all that follows from it, whether or not its asker stays for the
    /// answer: half of it would be left for ever.
    async fn carry_out(&self, call: Call) -> Response<Body> {
        if call.method.is_safe() {
            return self.api.handle(call).await;
        }
        let api = Arc::clone(&self.api);
        match tokio::spawn(async move { api.handle(call).await }).await {
            Ok(answer) => answer,
            Err(error) => {
                Answer::from(Status::internal(&error.to_string())).encode(super::accept::Encoding::Json)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Embedded;
    use super::*;
    use futures::stream::pending;
    use http::StatusCode;
    use http_body::Frame;
    use http_body_util::StreamBody;

    /// Any stranger could keep a connection busy with one.
    #[tokio::test]
    async fn a_body_that_does_not_come_is_not_waited_for_where_no_token_is_needed() {
        let api = Embedded::in_memory();
        let service = Service::guarded(Arc::clone(&api.api), Arc::new(Tokens::new(std::iter::empty())));
        for path in ["/healthz", "/version"] {
            let never = StreamBody::new(pending::<Result<Frame<Bytes>, Infallible>>());
            let request = Request::get(path).body(never).expect("a request");
            assert_eq!(service.answer(request).await.status(), StatusCode::OK, "{path}");
        }
    }
}
