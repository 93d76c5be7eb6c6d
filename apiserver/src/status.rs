//! Refusals as Kubernetes words them: a Status with a code, a reason, and causes by field. Nothing is decided here; the
//! caller chooses the kind.

use http::StatusCode;
use serde_json::{Map, Value, json};

/// A group and the plural (or the kind) in it, as messages name them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Named {
    pub group: String,
    pub name: String,
}

impl std::fmt::Display for Named {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.group.is_empty() {
            true => f.write_str(&self.name),
            false => write!(f, "{}.{}", self.name, self.group),
        }
    }
}

/// What is wrong with one field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Cause {
    /// The machine-readable reason: `FieldValueInvalid` and the like.
    pub kind: &'static str,
    pub field: String,
    /// Without the field's name.
    pub message: String,
}

impl Cause {
    pub fn invalid(field: impl Into<String>, value: &Value, why: &str) -> Cause {
        Cause::valued("FieldValueInvalid", "Invalid value", field, value, why)
    }

    /// As [`Cause::invalid`], with the value as Go would print it.
    pub fn invalid_text(field: impl Into<String>, value: &str, why: &str) -> Cause {
        Cause::invalid(field, &Value::String(value.to_owned()), why)
    }

    pub fn required(field: impl Into<String>, why: &str) -> Cause {
        let message = match why.is_empty() {
            true => "Required value".to_owned(),
            false => format!("Required value: {why}"),
        };
        Cause { kind: "FieldValueRequired", field: field.into(), message }
    }

    pub fn forbidden(field: impl Into<String>, why: &str) -> Cause {
        Cause { kind: "FieldValueForbidden", field: field.into(), message: format!("Forbidden: {why}") }
    }

    pub fn duplicate(field: impl Into<String>, value: &Value) -> Cause {
        Cause::valued("FieldValueDuplicate", "Duplicate value", field, value, "")
    }

    pub fn type_invalid(field: impl Into<String>, value: &Value, why: &str) -> Cause {
        Cause::valued("FieldValueTypeInvalid", "Invalid value", field, value, why)
    }

    pub fn unsupported(field: impl Into<String>, value: &Value, supported: &[&str]) -> Cause {
        let list = supported.iter().map(|one| format!("{one:?}")).collect::<Vec<_>>().join(", ");
        let why = format!("supported values: {list}");
        Cause::valued("FieldValueNotSupported", "Unsupported value", field, value, &why)
    }

    pub fn too_long(field: impl Into<String>, max: usize) -> Cause {
        let message = format!("Too long: may not be more than {max} bytes");
        Cause { kind: "FieldValueTooLong", field: field.into(), message }
    }

    pub fn valued(
        kind: &'static str,
        title: &str,
        field: impl Into<String>,
        value: &Value,
        why: &str,
    ) -> Cause {
        let shown = shown(value);
        let message = match why.is_empty() {
            true => format!("{title}: {shown}"),
            false => format!("{title}: {shown}: {why}"),
        };
        Cause { kind, field: field.into(), message }
    }
}

impl std::fmt::Display for Cause {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.field, self.message)
    }
}

/// A refusal.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Status {
    pub code: u16,
    pub reason: &'static str,
    pub message: String,
    pub details: Map<String, Value>,
    /// Details are included although empty, as by the outermost layers of a real server.
    pub hollow: bool,
    /// More metadata, such as where an expired list may go on.
    pub metadata: Map<String, Value>,
}

impl Status {
    fn new(code: u16, reason: &'static str, message: String) -> Status {
        Status { code, reason, message, details: Map::new(), hollow: false, metadata: Map::new() }
    }

    fn hollow(mut self) -> Status {
        self.hollow = true;
        self
    }

    fn about(mut self, named: &Named, name: &str) -> Status {
        let entries = [("name", name), ("group", named.group.as_str()), ("kind", named.name.as_str())];
        for (key, value) in entries.into_iter().filter(|(_, value)| !value.is_empty()) {
            self.details.insert(key.to_owned(), value.into());
        }
        self
    }

    /// No such path, kind or subresource.
    pub fn no_such_path() -> Status {
        Status::new(404, "NotFound", "the server could not find the requested resource".to_owned()).hollow()
    }

    pub fn not_found(resource: &Named, name: &str) -> Status {
        Status::new(404, "NotFound", format!("{resource} {name:?} not found")).about(resource, name)
    }

    pub fn already_exists(resource: &Named, name: &str) -> Status {
        Status::new(409, "AlreadyExists", format!("{resource} {name:?} already exists")).about(resource, name)
    }

    pub fn conflict(resource: &Named, name: &str, why: &str) -> Status {
        let message = format!("Operation cannot be fulfilled on {resource} {name:?}: {why}");
        Status::new(409, "Conflict", message).about(resource, name)
    }

    pub fn apply_conflict(message: String, causes: Vec<Value>) -> Status {
        let mut status = Status::new(409, "Conflict", message);
        status.details.insert("causes".to_owned(), causes.into());
        status
    }

    pub fn forbidden(resource: &Named, name: &str, why: &str) -> Status {
        let message = match name.is_empty() {
            true => format!("{resource} is forbidden: {why}"),
            false => format!("{resource} {name:?} is forbidden: {why}"),
        };
        Status::new(403, "Forbidden", message).about(resource, name)
    }

    pub fn unauthorized() -> Status {
        Status::new(401, "Unauthorized", "Unauthorized".to_owned())
    }

    pub fn bad_request(message: impl Into<String>) -> Status {
        Status::new(400, "BadRequest", message.into())
    }

    pub fn expired(message: impl Into<String>) -> Status {
        Status::new(410, "Expired", message.into())
    }

    pub fn method_not_allowed() -> Status {
        let message = "the server does not allow this method on the requested resource";
        Status::new(405, "MethodNotAllowed", message.to_owned()).hollow()
    }

    /// A verb that a part of a custom resource does not have.
    pub fn not_supported(resource: &Named, verb: &str) -> Status {
        let message = format!("{verb} is not supported on resources of kind {:?}", resource.to_string());
        Status::new(405, "MethodNotAllowed", message).about(resource, "")
    }

    pub fn not_acceptable(accepted: &[&str]) -> Status {
        let message = format!("406: Not Acceptable\n\nAvailable representations: {}", accepted.join(", "));
        Status::new(406, "NotAcceptable", message).hollow()
    }

    pub fn unsupported_media_type(accepted: &[&str]) -> Status {
        let message = format!(
            "the body of the request was in an unknown format - accepted media types include: {}",
            accepted.join(", ")
        );
        Status::new(415, "UnsupportedMediaType", message)
    }

    /// A patch in a form that there is not.
    pub fn unknown_patch() -> Status {
        Status::new(415, "UnsupportedMediaType", "415: Unsupported Media Type".to_owned()).hollow()
    }

    /// A failure that a real server does not put in any class.
    pub fn plain(message: impl Into<String>) -> Status {
        Status::new(500, "", message.into())
    }

    pub fn too_large(message: &str) -> Status {
        Status::new(413, "RequestEntityTooLarge", format!("Request entity too large: {message}"))
    }

    pub fn timeout(message: &str) -> Status {
        Status::new(504, "Timeout", format!("Timeout: {message}"))
    }

    /// A revision that does not exist yet.
    pub fn too_large_revision(asked: u64, current: u64) -> Status {
        let text = format!("Too large resource version: {asked}, current: {current}");
        let mut status = Status::timeout(&text);
        let cause = json!({"reason": "ResourceVersionTooLarge", "message": "Too large resource version"});
        status.details.insert("causes".to_owned(), json!([cause]));
        status.details.insert("retryAfterSeconds".to_owned(), 1.into());
        status
    }

    pub fn request_timeout(seconds: u64) -> Status {
        let message = format!("the body of the request did not arrive within {seconds} s");
        Status::new(408, "Timeout", message)
    }

    pub fn internal(message: &str) -> Status {
        let mut status = Status::new(500, "InternalError", format!("Internal error occurred: {message}"));
        status.details.insert("causes".to_owned(), json!([{ "message": message }]));
        status
    }

    /// What is deliberately absent; see `absent.rs` for the list.
    pub fn not_implemented(what: &str) -> Status {
        Status::new(501, "NotImplemented", format!("the embedded API does not do this: {what}"))
    }

    /// A patch that cannot be carried out. A real server says no more either.
    pub fn unprocessable() -> Status {
        let message = "the server rejected our request due to an error in our request";
        Status::new(422, "Invalid", message.to_owned()).hollow()
    }

    /// An object that cannot be, and why, field by field.
    pub fn invalid(kind: &Named, name: &str, causes: &[Cause]) -> Status {
        let mut texts: Vec<String> = Vec::new();
        for cause in causes {
            let text = cause.to_string();
            if !texts.contains(&text) {
                texts.push(text);
            }
        }
        let all = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = match causes.is_empty() {
            true => format!("{kind} {name:?} is invalid"),
            false => format!("{kind} {name:?} is invalid: {all}"),
        };
        let mut status = Status::new(422, "Invalid", message).about(kind, name);
        if !causes.is_empty() {
            let listed = causes
                .iter()
                .map(|cause| json!({"reason": cause.kind, "message": cause.message, "field": cause.field}));
            status.details.insert("causes".to_owned(), listed.collect());
        }
        status
    }

    pub fn status_code(&self) -> StatusCode {
        StatusCode::from_u16(self.code).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }

    /// The Status object.
    pub fn to_value(&self) -> Value {
        let mut value = json!({
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata,
            "status": "Failure",
            "message": self.message,
            "code": self.code,
        });
        if let Some(object) = value.as_object_mut() {
            if !self.reason.is_empty() {
                object.insert("reason".to_owned(), self.reason.into());
            }
            if !self.details.is_empty() || self.hollow {
                object.insert("details".to_owned(), Value::Object(self.details.clone()));
            }
        }
        value
    }
}

/// A value as messages show it: text in quotes, the rest as JSON.
fn shown(value: &Value) -> String {
    match value {
        Value::Null => "null".to_owned(),
        other => other.to_string(),
    }
}
