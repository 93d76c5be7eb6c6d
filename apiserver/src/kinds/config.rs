//! Secrets, ConfigMaps and Leases: data under keys, and what may not change once it is immutable.

use super::{put, text};
use crate::object::names::bad_data_key;
use crate::status::Cause;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value};

const SIZE_MAX: usize = 1024 * 1024;

/// Text becomes data: `stringData` is only ever written.
pub(super) fn default_secret(object: &mut Value) {
    put(object, "type", "Opaque");
    let Some(fields) = object.as_object_mut() else { return };
    let Some(Value::Object(texts)) = fields.remove("stringData") else { return };
    if texts.is_empty() {
        return;
    }
    let data = fields.entry("data").or_insert_with(|| Value::Object(Map::new()));
    let Some(data) = data.as_object_mut() else { return };
    for (key, value) in texts {
        let value = STANDARD.encode(value.as_str().unwrap_or_default());
        data.insert(key, Value::String(value));
    }
}

pub(super) fn check_secret(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = check_keys(object, &["data"]);
    let size: usize = values(object, "data").map(|value| value.len() / 4 * 3).sum();
    if size > SIZE_MAX {
        causes.push(Cause::too_long("data", SIZE_MAX));
    }
    if let Some(old) = old {
        if text(object, "type") != text(old, "type") {
            causes.push(Cause::invalid_text("type", text(object, "type"), "field is immutable"));
        }
        causes.extend(check_immutable(object, old, &["data"]));
    }
    causes.extend(check_typed(object));
    causes
}

/// Types of Secrets that promise keys.
fn check_typed(object: &Value) -> Vec<Cause> {
    let needed: &[&str] = match text(object, "type") {
        "kubernetes.io/tls" => &["tls.crt", "tls.key"],
        "kubernetes.io/ssh-auth" => &["ssh-privatekey"],
        "kubernetes.io/dockerconfigjson" => &[".dockerconfigjson"],
        _ => &[],
    };
    let has = |key: &str| object.get("data").and_then(|data| data.get(key)).is_some();
    if text(object, "type") == "kubernetes.io/basic-auth" && !has("username") && !has("password") {
        return ["username", "password"].map(|key| Cause::required(format!("data[{key}]"), "")).to_vec();
    }
    if text(object, "type") == "kubernetes.io/dockerconfigjson" && has(".dockerconfigjson") {
        return check_docker(object).into_iter().collect();
    }
    needed.iter().filter(|key| !has(key)).map(|key| Cause::required(format!("data[{key}]"), "")).collect()
}

/// The file of a registry must be JSON; no message shows what it holds.
fn check_docker(object: &Value) -> Option<Cause> {
    let encoded = object.get("data")?.get(".dockerconfigjson")?.as_str()?;
    let decoded = STANDARD.decode(encoded).ok()?;
    serde_json::from_slice::<Value>(&decoded).err()?;
    Some(Cause::invalid_text("data[.dockerconfigjson]", "<secret contents redacted>", "it is no JSON"))
}

pub(super) fn check_map(object: &Value, old: Option<&Value>) -> Vec<Cause> {
    let mut causes = check_keys(object, &["data", "binaryData"]);
    let both = object.get("data").and_then(Value::as_object).into_iter().flatten();
    for (key, _) in
        both.filter(|(key, _)| object.get("binaryData").is_some_and(|data| data.get(*key).is_some()))
    {
        causes.push(Cause::invalid_text(
            format!("data[{key}]"),
            key,
            "duplicate of key present in binaryData",
        ));
    }
    let size: usize = values(object, "data").map(str::len).sum::<usize>()
        + values(object, "binaryData").map(|value| value.len() / 4 * 3).sum::<usize>();
    if size > SIZE_MAX {
        causes.push(Cause::too_long("", SIZE_MAX));
    }
    if let Some(old) = old {
        causes.extend(check_immutable(object, old, &["data", "binaryData"]));
    }
    causes
}

pub(super) fn check_lease(object: &Value) -> Vec<Cause> {
    let mut causes = Vec::new();
    let spec = object.get("spec");
    let number = |field: &str| spec.and_then(|spec| spec.get(field)).and_then(Value::as_i64);
    if let Some(seconds) = number("leaseDurationSeconds").filter(|seconds| *seconds <= 0) {
        causes.push(Cause::invalid("spec.leaseDurationSeconds", &seconds.into(), "must be greater than 0"));
    }
    if let Some(count) = number("leaseTransitions").filter(|count| *count < 0) {
        causes.push(Cause::invalid(
            "spec.leaseTransitions",
            &count.into(),
            "must be greater than or equal to 0",
        ));
    }
    causes
}

fn check_keys(object: &Value, fields: &[&str]) -> Vec<Cause> {
    let mut causes = Vec::new();
    for field in fields {
        for (key, _) in object.get(*field).and_then(Value::as_object).into_iter().flatten() {
            for why in bad_data_key(key) {
                causes.push(Cause::invalid_text(format!("{field}[{key}]"), key, &why));
            }
        }
    }
    causes
}

fn check_immutable(object: &Value, old: &Value, fields: &[&str]) -> Vec<Cause> {
    let is_set = |object: &Value| object.get("immutable").and_then(Value::as_bool) == Some(true);
    if !is_set(old) {
        return Vec::new();
    }
    let why = "field is immutable when `immutable` is set";
    let mut causes = Vec::new();
    if !is_set(object) {
        causes.push(Cause::forbidden("immutable", why));
    }
    let empty =
        |value: Option<&Value>| value.is_none_or(|value| value.as_object().is_some_and(Map::is_empty));
    for field in fields {
        let (new, old) = (object.get(*field), old.get(*field));
        if new != old && !(empty(new) && empty(old)) {
            causes.push(Cause::forbidden(*field, why));
        }
    }
    causes
}

fn values<'a>(object: &'a Value, field: &str) -> impl Iterator<Item = &'a str> {
    let map = object.get(field).and_then(Value::as_object).into_iter().flatten();
    map.filter_map(|(_, value)| value.as_str())
}
