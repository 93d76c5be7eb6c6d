//! Events, kept once and served in two groups: the field names of `events.k8s.io` are converted to those of `v1` and back.

use super::{put, text};
use crate::object::names::bad_key;
use crate::object::namespace;
use crate::status::Cause;
use serde_json::{Map, Value};

/// The field in `events.k8s.io`, the field in `v1`.
const FIELD_NAMES: [(&str, &str); 9] = [
    ("note", "message"),
    ("regarding", "involvedObject"),
    ("reportingController", "reportingComponent"),
    ("reportingInstance", "reportingInstance"),
    ("deprecatedSource", "source"),
    ("deprecatedFirstTimestamp", "firstTimestamp"),
    ("deprecatedLastTimestamp", "lastTimestamp"),
    ("deprecatedCount", "count"),
    ("related", "related"),
];

/// What a struct always writes.
pub(super) fn default(object: &mut Value) {
    let is_new = text(object, "apiVersion").starts_with("events.k8s.io/");
    if !is_new {
        put(object, "involvedObject", Value::Object(Map::new()));
        put(object, "source", Value::Object(Map::new()));
        put(object, "firstTimestamp", Value::Null);
        put(object, "lastTimestamp", Value::Null);
        put(object, "eventTime", Value::Null);
        put(object, "reportingComponent", "");
        put(object, "reportingInstance", "");
    }
}

/// An Event of the new group as it is kept.
pub(crate) fn from_new(mut event: Value) -> Value {
    rename(&mut event, |(new, old)| (new, old));
    if let Some(fields) = event.as_object_mut() {
        fields.insert("apiVersion".to_owned(), "v1".into());
    }
    default(&mut event);
    event
}

/// An Event with the field names of `events.k8s.io`.
pub(crate) fn to_new(mut event: Value) -> Value {
    rename(&mut event, |(new, old)| (old, new));
    if let Some(fields) = event.as_object_mut() {
        fields.insert("apiVersion".to_owned(), "events.k8s.io/v1".into());
    }
    event
}

fn rename(event: &mut Value, order: impl Fn((&'static str, &'static str)) -> (&'static str, &'static str)) {
    let Some(fields) = event.as_object_mut() else { return };
    for (from, to) in FIELD_NAMES.into_iter().map(order).filter(|(from, to)| from != to) {
        if let Some(value) = fields.remove(from) {
            fields.insert(to.to_owned(), value);
        }
    }
}

/// Both groups share the rules of the older one; the newer adds its own.
pub(super) fn check(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let is_new = text(object, "apiVersion").starts_with("events.k8s.io/");
    let kept = if is_new { from_new(object.clone()) } else { object.clone() };
    let mut causes = match text(&kept, "eventTime").is_empty() {
        true => check_namespace(&kept, &["default"]),
        false => check_timed(&kept, is_new),
    };
    if is_new && old.is_none() {
        causes.extend(check_new(&kept));
    }
    causes
}

fn check_namespace(event: &Value, homes: &[&str]) -> Vec<Cause> {
    let about = event.get("involvedObject").map(|about| text(about, "namespace")).unwrap_or_default();
    let own = namespace(event);
    let fits = if about.is_empty() { own.is_empty() || homes.contains(&own) } else { about == own };
    match fits {
        true => Vec::new(),
        false => {
            vec![Cause::invalid_text("involvedObject.namespace", about, "does not match event.namespace")]
        }
    }
}

/// Events with a time of their own say who reports what.
fn check_timed(event: &Value, is_new: bool) -> Vec<Cause> {
    let mut causes = Vec::new();
    if event.get("involvedObject").is_none_or(|about| text(about, "namespace").is_empty()) {
        causes.extend(check_namespace(event, &["default", "kube-system"]));
    }
    let controller = if is_new { "reportingController" } else { "reportingComponent" };
    let fields = [
        (controller, "reportingComponent", usize::MAX),
        ("reportingInstance", "reportingInstance", 128),
        ("action", "action", 128),
        ("reason", "reason", 128),
    ];
    for (shown, field, max) in fields {
        let value = text(event, field);
        if value.is_empty() {
            causes.push(Cause::required(shown, ""));
        }
        if field == "reportingComponent" {
            let bad = bad_key(value).into_iter();
            causes.extend(bad.map(|why| Cause::invalid_text(shown, value, &why)));
        }
        if value.len() > max {
            causes.push(Cause::invalid_text(shown, "", &format!("can have at most {max} characters")));
        }
    }
    if text(event, "message").len() > 1024 {
        causes.push(Cause::invalid_text("message", "", "can have at most 1024 characters"));
    }
    causes
}

fn check_new(event: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    if text(event, "eventTime").is_empty() {
        causes.push(Cause::required("eventTime", ""));
    }
    let kind = text(event, "type");
    if kind != "Normal" && kind != "Warning" {
        causes.push(Cause::invalid_text("type", "", &format!("has invalid value: {kind}")));
    }
    for field in ["firstTimestamp", "lastTimestamp"] {
        if !text(event, field).is_empty() {
            causes.push(Cause::invalid_text(field, "", "needs to be unset"));
        }
    }
    if event.get("count").and_then(Value::as_i64).unwrap_or(0) != 0 {
        causes.push(Cause::invalid_text("count", "", "needs to be unset"));
    }
    causes
}

#[test]
fn both_groups_serve_one_event() {
    let new = serde_json::json!({
        "apiVersion": "events.k8s.io/v1", "kind": "Event", "note": "hello", "regarding": {"name": "a"},
        "reportingController": "c", "reportingInstance": "i",
    });
    let kept = from_new(new.clone());
    assert_eq!(kept["message"], "hello");
    assert_eq!(kept["involvedObject"]["name"], "a");
    let back = to_new(kept);
    for field in ["note", "regarding", "reportingController", "reportingInstance", "apiVersion"] {
        assert_eq!(back[field], new[field], "{field}");
    }
}
