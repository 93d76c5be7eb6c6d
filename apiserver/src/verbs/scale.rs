//! Scales: the number of replicas of an object, read and written through a path of its own.

use super::update::{Rules, change};
use crate::answer::Answer;
use crate::api::Api;
use crate::call::{Call, Media, WriteOptions};
use crate::decode::{decode, read_json};
use crate::encode::to_served;
use crate::fields::{Manager, track_update};
use crate::object;
use crate::patch::{apply_json, merge_patch};
use crate::registry::Scale;
use crate::scope::Scope;
use crate::status::{Cause, Status};
use serde_json::{Map, Value, json};

pub(super) fn read(api: &Api, call: &Call, scope: &Scope) -> Result<Answer, Status> {
    call.wanted()?;
    let stored =
        api.store.find(&scope.served.resource.table, &scope.key()).ok_or_else(|| scope.not_found())?;
    let object = to_served(&stored.value, &scope.served);
    let path = paths(scope)?.spec_replicas;
    if scope.served.resource.is_custom() && look(&object, &path).is_none() {
        return Err(Status::internal(&format!("the spec replicas field {path:?} does not exist")));
    }
    Ok(Answer::value(of(&object, scope)?))
}

pub(super) async fn update(api: &Api, call: &Call, scope: &Scope) -> Result<Answer, Status> {
    let options = WriteOptions::read(call, "UpdateOptions")?;
    let sent = decode(call)?.value;
    write(api, call, scope, options.dry_run, move |_| Ok(sent.clone())).await
}

pub(super) async fn patch(api: &Api, call: &Call, scope: &Scope) -> Result<Answer, Status> {
    let options = WriteOptions::read(call, "PatchOptions")?;
    let patch = read_json(&call.body).map_err(Status::bad_request)?.value;
    let media = call.media();
    let make = move |mut current: Value| {
        match media {
            Media::JsonPatch => apply_json(&mut current, &patch).map_err(|_| Status::unprocessable())?,
            Media::MergePatch | Media::StrategicPatch => {
                merge_patch(&mut current, patch.clone());
            }
            _ => return Err(Status::unsupported_media_type(&["application/merge-patch+json"])),
        }
        Ok(current)
    };
    write(api, call, scope, options.dry_run, make).await
}

async fn write(
    api: &Api,
    call: &Call,
    scope: &Scope,
    dry_run: bool,
    make: impl Fn(Value) -> Result<Value, Status>,
) -> Result<Answer, Status> {
    let paths = paths(scope)?;
    let manager = Manager::of(call, scope.sub, api.now());
    let make = |old: Option<&Value>| {
        let old = old.ok_or_else(|| scope.not_found())?;
        let scale = make(of(old, scope)?)?;
        let mut draft = old.clone();
        let replicas = scale.pointer("/spec/replicas").cloned().unwrap_or_else(|| 0.into());
        check_replicas(&replicas, scope)?;
        set(&mut draft, &paths.spec_replicas, replicas);
        let revision = object::meta_text(&scale, "resourceVersion").map_or(Value::Null, Value::from);
        object::set_meta(&mut draft, "resourceVersion", revision);
        track_update(&mut draft, Some(old), &scope.served, &manager);
        Ok(draft)
    };
    let rules = Rules { create_too: false, blind: true, by_uid: false, dry_run };
    let changed = change(api, scope, rules, make).await?;
    Ok(Answer::value(of(&to_served(&changed.stored.value, &scope.served), scope)?))
}

fn check_replicas(replicas: &Value, scope: &Scope) -> Result<(), Status> {
    let cause = match replicas.as_i64() {
        Some(0..) => return Ok(()),
        // A custom object is checked as a whole.
        Some(_) if scope.served.resource.is_custom() => return Ok(()),
        Some(_) => Cause::invalid("spec.replicas", replicas, "must be greater than or equal to 0"),
        None => Cause::type_invalid("spec.replicas", replicas, "must be an integer"),
    };
    let named = crate::status::Named { group: "autoscaling".to_owned(), name: "Scale".to_owned() };
    Err(Status::invalid(&named, &scope.name, &[cause]))
}

fn paths(scope: &Scope) -> Result<Scale, Status> {
    scope.served.version().scale.clone().ok_or_else(Status::no_such_path)
}

/// The scale of an object.
fn of(object: &Value, scope: &Scope) -> Result<Value, Status> {
    let paths = paths(scope)?;
    let number = |path: &str| look(object, path).and_then(Value::as_i64);
    let mut metadata = Map::new();
    for field in ["name", "namespace", "uid", "resourceVersion", "creationTimestamp"] {
        if let Some(value) = object::meta(object).and_then(|meta| meta.get(field)) {
            metadata.insert(field.to_owned(), value.clone());
        }
    }
    let mut status = json!({"replicas": number(&paths.status_replicas).unwrap_or(0)});
    let selector = match &paths.selector {
        Some(path) => look(object, path).and_then(Value::as_str).map(str::to_owned),
        None => labels(object),
    };
    if let Some(selector) = selector.filter(|selector| !selector.is_empty()) {
        status["selector"] = selector.into();
    }
    let replicas = number(&paths.spec_replicas).unwrap_or(0);
    let spec = if replicas == 0 { json!({}) } else { json!({ "replicas": replicas }) };
    Ok(json!({
        "kind": "Scale", "apiVersion": "autoscaling/v1", "metadata": metadata, "spec": spec, "status": status,
    }))
}

/// The selector of a Deployment as text.
fn labels(object: &Value) -> Option<String> {
    let labels = object.pointer("/spec/selector/matchLabels")?.as_object()?;
    let pairs = labels.iter().map(|(key, value)| format!("{key}={}", value.as_str().unwrap_or_default()));
    Some(pairs.collect::<Vec<_>>().join(","))
}

/// What is wrong with the replicas in an object whose kind has a scale.
pub(crate) fn check(object: &Value, scale: &Scale) -> Option<Cause> {
    let found = look(object, &scale.spec_replicas)?;
    let number = found.as_i64()?;
    (number < 0)
        .then(|| Cause::invalid(scale.spec_replicas.as_str(), found, "should be a non-negative integer"))
}

fn look<'a>(object: &'a Value, path: &str) -> Option<&'a Value> {
    path.trim_start_matches('.').split('.').try_fold(object, |value, part| value.get(part))
}

fn set(object: &mut Value, path: &str, value: Value) {
    let mut place = object;
    for part in path.trim_start_matches('.').split('.') {
        if !place.is_object() {
            *place = Value::Object(Map::new());
        }
        let Some(fields) = place.as_object_mut() else { return };
        place = fields.entry(part).or_insert(Value::Null);
    }
    *place = value;
}
