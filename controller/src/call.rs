//! One call to the API: a request under a timeout, and its answer as a status and JSON. What an answer
//! means is not decided here, and nothing is tried twice.

use conductor_runtime::client_error::one_line;
use http::{Request, StatusCode, header};
use kube::Client;
use kube::client::Body;
use serde_json::Value;
use std::time::Duration;

/// Longest text of an answer that is no JSON that is repeated to people.
const TEXT_MAX: usize = 200;

/// What came back.
#[derive(Debug)]
pub(super) enum Reply {
    /// The API answered.
    Answered {
        /// How.
        status: StatusCode,
        /// With what; a text that is no JSON is a string.
        body: Value,
        /// How long it asks us to wait.
        retry_after: Option<Duration>,
    },
    /// No answer: a timeout, a reset, no connection. Whether it was done is not known.
    Lost(String),
}

/// Sends a request.
pub(super) async fn call(client: &Client, request: Request<Vec<u8>>, within: Duration) -> Reply {
    match tokio::time::timeout(within, send(client, request)).await {
        Ok(Ok(reply)) => reply,
        Ok(Err(error)) => Reply::Lost(one_line(&error)),
        Err(_) => Reply::Lost(format!("no answer within {} s", within.as_secs_f32())),
    }
}

async fn send(client: &Client, request: Request<Vec<u8>>) -> Result<Reply, kube::Error> {
    let response = client.send(request.map(Body::from)).await?;
    let status = response.status();
    let seconds = response.headers().get(header::RETRY_AFTER).and_then(|v| v.to_str().ok()?.parse().ok());
    let bytes = response.into_body().collect_bytes().await?;
    let body = serde_json::from_slice(&bytes).unwrap_or_else(|_| {
        Value::from(String::from_utf8_lossy(&bytes).chars().take(TEXT_MAX).collect::<String>())
    });
    Ok(Reply::Answered { status, body, retry_after: seconds.map(Duration::from_secs) })
}

/// What the API says in an answer that is a `Status`, or whatever it said instead.
pub(super) fn message(status: StatusCode, body: &Value) -> String {
    let said = body.get("message").and_then(Value::as_str).or_else(|| body.as_str()).unwrap_or_default();
    match said.trim() {
        "" => status.to_string(),
        said => said.to_owned(),
    }
}
