//! Plain requests, and what came back.

use conductor_apiserver::Embedded;
use http::{Method, Request};
use http_body_util::{BodyExt, Full};
use serde_json::Value;
use tower::ServiceExt;

/// What came back.
#[derive(Debug)]
pub struct Reply {
    pub code: u16,
    pub body: Value,
    pub warnings: Vec<String>,
}

/// Asks with a JSON body.
pub async fn ask(api: &Embedded, method: Method, path: &str, body: Value) -> Reply {
    ask_as(api, method, path, "application/json", body.to_string()).await
}

/// Asks with any body.
pub async fn ask_as(api: &Embedded, method: Method, path: &str, media: &str, body: String) -> Reply {
    ask_with(api, method, path, [("content-type", media), ("user-agent", "tester/1.0")], body).await
}

/// Asks with two headers.
pub async fn ask_with(
    api: &Embedded,
    method: Method,
    path: &str,
    [one, other]: [(&str, &str); 2],
    body: String,
) -> Reply {
    let request = Request::builder()
        .method(method)
        .uri(path)
        .header(one.0, one.1)
        .header(other.0, other.1)
        .body(Full::new(bytes::Bytes::from(body)))
        .expect("a request of ours is well formed");
    let Ok(response) = api.service().oneshot(request).await;
    let code = response.status().as_u16();
    let warnings = response.headers().get_all("warning").iter();
    let warnings = warnings.map(|value| value.to_str().unwrap_or_default().to_owned()).collect();
    let bytes = response.into_body().collect().await.unwrap_or_else(|never| match never {}).to_bytes();
    let body = serde_json::from_slice(&bytes)
        .unwrap_or_else(|_| Value::String(String::from_utf8_lossy(&bytes).into_owned()));
    Reply { code, body, warnings }
}

pub async fn get(api: &Embedded, path: &str) -> Reply {
    ask_as(api, Method::GET, path, "", String::new()).await
}

pub async fn post(api: &Embedded, path: &str, body: Value) -> Reply {
    ask(api, Method::POST, path, body).await
}

pub async fn put(api: &Embedded, path: &str, body: Value) -> Reply {
    ask(api, Method::PUT, path, body).await
}

pub async fn delete(api: &Embedded, path: &str) -> Reply {
    ask_as(api, Method::DELETE, path, "application/json", String::new()).await
}

pub async fn merge(api: &Embedded, path: &str, body: Value) -> Reply {
    ask_as(api, Method::PATCH, path, "application/merge-patch+json", body.to_string()).await
}
