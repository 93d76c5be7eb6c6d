//! What an answer of the API means to the engine, case by case, as the simulator's world would have said it.
//! Nothing is sent and nothing is tried again here.

use super::call::{Reply, message};
use super::wire::{read_object, read_part};
use conductor::event::Answer;
use conductor::model::{Kind, Object, Part, PartKind};
use http::StatusCode;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::sync::Arc;

/// What was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Ask {
    /// A change of an object.
    Patch,
    /// A new object.
    Create,
    /// The end of one.
    Delete,
}

/// What the API said to a write, create or delete of an object of ours.
pub(super) fn to_write(ask: Ask, kind: Kind, reply: Reply) -> Answer {
    to_change(ask, reply, |body| {
        let object = read_object(kind, body)?;
        let gone = is_gone(&object.metadata);
        Ok(if gone { Answer::Deleted } else { Answer::Written(Arc::new(object)) })
    })
}

/// What the API said to a create or delete of a part.
pub(super) fn to_part_write(ask: Ask, kind: &PartKind, reply: Reply) -> Answer {
    to_change(ask, reply, |body| {
        let part = read_part(kind, body)?;
        let gone = is_gone(&part.metadata);
        Ok(if gone { Answer::Deleted } else { Answer::PartWritten(Box::new(part)) })
    })
}

fn to_change(ask: Ask, reply: Reply, read: impl FnOnce(Value) -> Result<Answer, String>) -> Answer {
    let (status, body) = match reply {
        Reply::Lost(why) => return Answer::Unknown(why),
        Reply::Answered { status, body, .. } => (status, body),
    };
    if status.is_success() {
        if is_status(&body) {
            return Answer::Deleted;
        }
        let unread = |why| Answer::Unknown(format!("the API's answer cannot be read: {why}"));
        return read(body).unwrap_or_else(unread);
    }
    let why = message(status, &body);
    match refusal(ask, status, &body) {
        Refusal::Conflict => Answer::Conflict,
        Refusal::Missing => Answer::Missing,
        Refusal::Exists => Answer::Exists,
        Refusal::Invalid => Answer::Invalid(why),
        Refusal::Unknown => Answer::Unknown(why),
    }
}

/// How a call was refused, whatever kind of object it was about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refusal {
    Conflict,
    Missing,
    Exists,
    Invalid,
    Unknown,
}

/// Sorts a status that is no success.
pub(super) fn refusal(ask: Ask, status: StatusCode, body: &Value) -> Refusal {
    match status {
        StatusCode::CONFLICT if reason(body) == "AlreadyExists" => Refusal::Exists,
        StatusCode::CONFLICT => Refusal::Conflict,
        // A create that finds nothing lacks its namespace or its kind: reading the object tells nothing,
        // and trying at once would go on for ever.
        StatusCode::NOT_FOUND if ask == Ask::Create => Refusal::Invalid,
        StatusCode::NOT_FOUND if names_object(body) => Refusal::Missing,
        // The kind is not served just now, which says nothing about the object.
        StatusCode::NOT_FOUND => Refusal::Unknown,
        // Another life of that name: the API calls a UID that differs a change of it.
        StatusCode::UNPROCESSABLE_ENTITY if is_about(body, "metadata.uid") => Refusal::Conflict,
        StatusCode::UNPROCESSABLE_ENTITY
        | StatusCode::BAD_REQUEST
        | StatusCode::FORBIDDEN
        | StatusCode::METHOD_NOT_ALLOWED
        | StatusCode::NOT_ACCEPTABLE
        | StatusCode::PAYLOAD_TOO_LARGE
        | StatusCode::UNSUPPORTED_MEDIA_TYPE => Refusal::Invalid,
        // Too many requests, credentials that are being renewed, server errors, and whatever a proxy in
        // between says: it is looked at again after a pause.
        _ => Refusal::Unknown,
    }
}

/// Whether an answer is a bare `Status`, as a DELETE gets when the object is gone.
fn is_status(body: &Value) -> bool {
    body.get("kind").and_then(Value::as_str) == Some("Status")
        && body.get("apiVersion").and_then(Value::as_str) == Some("v1")
}

/// The API shows an object once more when the write that took its last finalizer ended it.
fn is_gone(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some() && metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
}

/// What the API said to a read.
///
/// # Errors
/// Where it did not say whether the object is there: what follows may be final, so it is asked again.
pub(super) fn to_read(kind: Kind, reply: Reply) -> Result<Option<Object>, String> {
    found(reply)?.map(|body| read_object(kind, body)).transpose()
}

/// What the API said to a read of a part.
///
/// # Errors
/// As [`to_read`].
pub(super) fn to_part_read(kind: &PartKind, reply: Reply) -> Result<Option<Part>, String> {
    found(reply)?.map(|body| read_part(kind, body)).transpose()
}

/// The body of an answer to a read, or nothing where the object is not there.
///
/// # Errors
/// As [`to_read`].
pub(super) fn found(reply: Reply) -> Result<Option<Value>, String> {
    match reply {
        Reply::Lost(why) => Err(why),
        Reply::Answered { status, body, .. } if status.is_success() => Ok(Some(body)),
        Reply::Answered { status: StatusCode::NOT_FOUND, body, .. } if names_object(&body) => Ok(None),
        Reply::Answered { status, body, .. } => Err(message(status, &body)),
    }
}

fn reason(body: &Value) -> &str {
    body.get("reason").and_then(Value::as_str).unwrap_or_default()
}

/// Whether a 404 speaks of one object. One that does not means that the path is not served: a kind that
/// is not installed, or not yet.
fn names_object(body: &Value) -> bool {
    let name = body.pointer("/details/name").and_then(Value::as_str).unwrap_or_default();
    reason(body) == "NotFound" && !name.is_empty()
}

fn is_about(body: &Value, field: &str) -> bool {
    let causes = body.pointer("/details/causes").and_then(Value::as_array);
    causes.into_iter().flatten().any(|cause| cause.get("field").and_then(Value::as_str) == Some(field))
}

#[cfg(test)]
mod tests;
