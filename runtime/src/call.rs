//! One call to the API: a request under a timeout, its reply as status and JSON, and what a reply says about the object.
//! Nothing is retried here.

use super::client_error::one_line;
use super::rest::RestRequest;
use http::{StatusCode, header};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use std::time::Duration;

/// Longest text of a reply without JSON that errors quote.
const TEXT_MAX: usize = 200;

/// The outcome of a call.
#[derive(Debug)]
pub enum Reply {
    /// The API answered.
    Answered {
        /// The HTTP status.
        status: StatusCode,
        /// The body; a string where it is no JSON.
        body: Value,
        /// The pause that the API demands.
        retry_after: Option<Duration>,
    },
    /// No answer: a timeout, a reset, no connection. It is not known whether the API did it.
    Lost(String),
}

/// Sends a request.
pub async fn call(client: &Client, request: RestRequest, within: Duration) -> Reply {
    match tokio::time::timeout(within, send(client, request)).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => Reply::Lost(one_line(&error)),
        Err(_) => Reply::Lost(format!("no answer within {} s", within.as_secs_f32())),
    }
}

async fn send(client: &Client, request: RestRequest) -> Result<Reply, kube::Error> {
    let response = client.send(request.map(Body::from)).await?;
    let status = response.status();
    let seconds = response.headers().get(header::RETRY_AFTER).and_then(|v| v.to_str().ok()?.parse().ok());
    let bytes = response.into_body().collect_bytes().await?;
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| {
        Value::from(String::from_utf8_lossy(&bytes).chars().take(TEXT_MAX).collect::<String>())
    });
    Ok(Reply::Answered { status, body, retry_after: seconds.map(Duration::from_secs) })
}

/// The message of a `Status`, or the text of any other body.
pub fn message(status: StatusCode, body: &Value) -> String {
    let said = body.get("message").and_then(Value::as_str).or_else(|| body.as_str()).unwrap_or_default();
    match said.trim() {
        "" => status.to_string(),
        said => said.to_owned(),
    }
}

/// The body of a reply to a read; `None` where the object does not exist.
///
/// # Errors
/// The reply does not say whether the object exists. What follows may be final, so the caller reads again.
pub fn found(reply: Reply) -> Result<Option<Value>, String> {
    match reply {
        Reply::Lost(why) => Err(why),
        Reply::Answered { status, body, .. } if status.is_success() => Ok(Some(body)),
        Reply::Answered { status: StatusCode::NOT_FOUND, body, .. } if names_object(&body) => Ok(None),
        Reply::Answered { status, body, .. } => Err(message(status, &body)),
    }
}

/// What a request changes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteVerb {
    /// Changes an object.
    Patch,
    /// Creates an object.
    Create,
    /// Deletes an object.
    Delete,
}

/// Why the API refused a write, whatever the kind of the object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The object has changed since it was read.
    Conflict,
    /// The object does not exist.
    Missing,
    /// An object of this name exists.
    Exists,
    /// The API will not accept this request, however often it is sent.
    Invalid,
    /// The reply says nothing about the object: retry after a pause.
    Unknown,
}

/// Classifies a status that is no success.
pub fn refusal(verb: WriteVerb, status: StatusCode, body: &Value) -> Refusal {
    match status {
        StatusCode::CONFLICT if reason(body) == "AlreadyExists" => Refusal::Exists,
        StatusCode::CONFLICT => Refusal::Conflict,
        // A create that finds nothing lacks its namespace or its kind: reading the object would not help, and
        // retrying at once would never end.
        StatusCode::NOT_FOUND if verb == WriteVerb::Create => Refusal::Invalid,
        StatusCode::NOT_FOUND if names_object(body) => Refusal::Missing,
        // The kind is not served just now, which says nothing about the object.
        StatusCode::NOT_FOUND => Refusal::Unknown,
        // Another object of that name: to the API, a UID that differs is a change of it.
        StatusCode::UNPROCESSABLE_ENTITY if is_about(body, "metadata.uid") => Refusal::Conflict,
        StatusCode::UNPROCESSABLE_ENTITY
        | StatusCode::BAD_REQUEST
        | StatusCode::FORBIDDEN
        | StatusCode::METHOD_NOT_ALLOWED
        | StatusCode::NOT_ACCEPTABLE
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE => Refusal::Invalid,
        // Too many requests, credentials that are being renewed, server errors, and whatever a proxy in between sends.
        _ => Refusal::Unknown,
    }
}

fn reason(body: &Value) -> &str {
    body.get("reason").and_then(Value::as_str).unwrap_or_default()
}

/// Whether a 404 is about one object. Otherwise the path is not served: the kind is not installed, or not yet.
fn names_object(body: &Value) -> bool {
    let name = body.pointer("/details/name").and_then(Value::as_str).unwrap_or_default();
    reason(body) == "NotFound" && !name.is_empty()
}

fn is_about(body: &Value, field: &str) -> bool {
    let causes = body.pointer("/details/causes").and_then(Value::as_array);
    causes.into_iter().flatten().any(|cause| cause.get("field").and_then(Value::as_str) == Some(field))
}
