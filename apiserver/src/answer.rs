//! Answers on their way out: a value, bytes that are written already, or a stream of them. What an answer says is
//! decided elsewhere.

use super::accept::Encoding;
use super::status::Status;
use bytes::Bytes;
use futures::Stream;
use futures::StreamExt;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, WARNING};
use http::{HeaderValue, Response, StatusCode};
use http_body::Frame;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full, StreamBody};
use serde_json::Value;
use std::convert::Infallible;
use std::pin::Pin;

/// The body of every response.
pub type Body = UnsyncBoxBody<Bytes, Infallible>;
/// Lines of a watch.
pub(super) type Lines = Pin<Box<dyn Stream<Item = Bytes> + Send>>;

/// What is sent.
pub(super) enum Content {
    Value(Value),
    /// JSON that is written already.
    Json(Bytes),
    Text(String),
    /// Bytes of a media type of their own.
    Raw(&'static str, &'static [u8]),
    Lines(Lines),
}

/// An answer before it is encoded.
pub(super) struct Answer {
    pub code: StatusCode,
    pub content: Content,
    /// The `Warning` headers of the answer.
    pub warnings: Vec<String>,
    /// Another content type than the plain one.
    pub media: Option<&'static str>,
    pub etag: Option<String>,
}

impl Answer {
    pub fn value(value: Value) -> Answer {
        Answer::of(StatusCode::OK, Content::Value(value))
    }

    pub fn created(value: Value) -> Answer {
        Answer::of(StatusCode::CREATED, Content::Value(value))
    }

    pub fn text(text: impl Into<String>) -> Answer {
        Answer::of(StatusCode::OK, Content::Text(text.into()))
    }

    pub fn of(code: StatusCode, content: Content) -> Answer {
        Answer { code, content, warnings: Vec::new(), media: None, etag: None }
    }

    pub fn warn(mut self, warnings: Vec<String>) -> Answer {
        self.warnings.extend(warnings);
        self
    }

    /// The response on the wire.
    pub fn encode(self, encoding: Encoding) -> Response<Body> {
        let (media, body) = match self.content {
            Content::Value(value) => written(&value, encoding),
            Content::Json(bytes) => match encoding {
                Encoding::Json => ("application/json", full(bytes)),
                Encoding::Yaml => {
                    written(&serde_json::from_slice(&bytes).unwrap_or(Value::Null), Encoding::Yaml)
                }
            },
            Content::Text(text) => ("text/plain; charset=utf-8", full(Bytes::from(text))),
            Content::Raw(media, bytes) => (media, full(Bytes::from_static(bytes))),
            Content::Lines(lines) => ("application/json", streamed(lines)),
        };
        let mut response = Response::new(body);
        *response.status_mut() = self.code;
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static(self.media.unwrap_or(media)));
        headers.insert(CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
        for warning in self.warnings {
            let text = format!("299 - {}", quoted(&warning));
            if let Ok(text) = HeaderValue::try_from(text) {
                headers.append(WARNING, text);
            }
        }
        if let Some(etag) = self.etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
            headers.insert(http::header::ETAG, etag);
        }
        response
    }
}

impl From<Status> for Answer {
    fn from(status: Status) -> Answer {
        Answer::of(status.status_code(), Content::Value(status.to_value()))
    }
}

fn written(value: &Value, encoding: Encoding) -> (&'static str, Body) {
    match encoding {
        Encoding::Json => ("application/json", full(Bytes::from(value.to_string()))),
        Encoding::Yaml => match serde_saphyr::to_string(value) {
            Ok(text) => ("application/yaml", full(Bytes::from(text))),
            // JSON is YAML too.
            Err(_) => ("application/yaml", full(Bytes::from(value.to_string()))),
        },
    }
}

fn full(bytes: Bytes) -> Body {
    Full::new(bytes).boxed_unsync()
}

fn streamed(lines: Lines) -> Body {
    StreamBody::new(lines.map(|line| Ok(Frame::data(line)))).boxed_unsync()
}

/// A quoted string of HTTP; what cannot stand in a header becomes a space.
fn quoted(text: &str) -> String {
    let plain = text.chars().map(|c| if c.is_control() { ' ' } else { c });
    let escaped = plain.flat_map(|c| match c {
        '"' | '\\' => vec!['\\', c],
        c => vec![c],
    });
    format!("\"{}\"", escaped.collect::<String>())
}
