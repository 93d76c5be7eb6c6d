//! Translates replies of the API into answers for the engine, the same ones that the simulator's world gives. Sends and
//! retries nothing.

use super::rest::{read_object, read_part};
use conductor::event::Answer;
use conductor::model::{Kind, Object, Part, PartKind};
use conductor_runtime::call::{Refusal, Reply, WriteVerb, found, message, refusal};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::Value;
use std::sync::Arc;

/// The answer to a write of one of our objects.
pub(super) fn to_write(verb: WriteVerb, kind: Kind, reply: Reply) -> Answer {
    to_change(verb, reply, |body| {
        let object = read_object(kind, body)?;
        let gone = is_gone(&object.metadata);
        Ok(if gone { Answer::Deleted } else { Answer::Written(Arc::new(object)) })
    })
}

/// The answer to a write of a part.
pub(super) fn to_part_write(verb: WriteVerb, kind: &PartKind, reply: Reply) -> Answer {
    to_change(verb, reply, |body| {
        let part = read_part(kind, body)?;
        let gone = is_gone(&part.metadata);
        Ok(if gone { Answer::Deleted } else { Answer::PartWritten(Box::new(part)) })
    })
}

fn to_change(verb: WriteVerb, reply: Reply, read: impl FnOnce(Value) -> Result<Answer, String>) -> Answer {
    let (status, body) = match reply {
        Reply::Lost(why) => return Answer::Unknown(why),
        Reply::Answered { status, body, .. } => (status, body),
    };
    if status.is_success() {
        if is_status(&body) {
            return Answer::Deleted;
        }
        let unread = |why| Answer::Unknown(format!("cannot read the API's answer: {why}"));
        return read(body).unwrap_or_else(unread);
    }
    let why = message(status, &body);
    match refusal(verb, status, &body) {
        Refusal::Conflict => Answer::Conflict,
        Refusal::Missing => Answer::Missing,
        Refusal::Exists => Answer::Exists,
        Refusal::Invalid => Answer::Invalid(why),
        Refusal::Unknown => Answer::Unknown(why),
    }
}

/// Whether a body is a bare `Status`, as a DELETE returns when the object no longer exists.
fn is_status(body: &Value) -> bool {
    body.get("kind").and_then(Value::as_str) == Some("Status")
        && body.get("apiVersion").and_then(Value::as_str) == Some("v1")
}

/// The API returns an object once more when a write that removed its last finalizer deleted it.
fn is_gone(metadata: &ObjectMeta) -> bool {
    metadata.deletion_timestamp.is_some() && metadata.finalizers.as_ref().is_none_or(Vec::is_empty)
}

/// The object that a read returned.
///
/// # Errors
/// The reply does not say whether the object exists: retry.
pub(super) fn to_read(kind: Kind, reply: Reply) -> Result<Option<Object>, String> {
    found(reply)?.map(|body| read_object(kind, body)).transpose()
}

/// The part that a read returned.
///
/// # Errors
/// As [`to_read`].
pub(super) fn to_part_read(kind: &PartKind, reply: Reply) -> Result<Option<Part>, String> {
    found(reply)?.map(|body| read_part(kind, body)).transpose()
}

#[cfg(test)]
mod tests;
