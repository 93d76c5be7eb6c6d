//! Patches: what is kept, changed as the patch says, and written like an update.

use super::update::{Rules, change};
use crate::admit::{fit, unknown};
use crate::answer::{Answer, Content};
use crate::api::Api;
use crate::call::{Call, Media, Strictness, WriteOptions};
use crate::decode::{read_json, read_yaml};
use crate::encode;
use crate::fields::{Manager, apply, find_untyped, track_update};
use crate::object;
use crate::patch::{Failure, apply_json, merge_patch, merge_strategic};
use crate::scope::{Scope, Sub};
use crate::status::{Cause, Named, Status};
use http::StatusCode;
use parking_lot::Mutex;
use serde_json::Value;

pub(super) async fn answer(api: &Api, call: &Call, scope: &Scope) -> Result<Answer, Status> {
    let wanted = call.wanted()?;
    let resource = &scope.served.resource;
    match (call.media(), resource.is_custom()) {
        (Media::JsonPatch | Media::MergePatch | Media::ApplyPatch, _) | (Media::StrategicPatch, false) => {}
        (_, true) => return Err(Status::unsupported_media_type(resource.patch_media())),
        (_, false) => return Err(Status::unknown_patch()),
    }
    let options = WriteOptions::read(call, "PatchOptions")?;
    let patch = read_patch(call)?;
    let manager = Manager::of(call, scope.sub, api.now());
    let warnings = Mutex::new(Vec::new());
    let is_apply = call.media() == Media::ApplyPatch;
    let make = |old: Option<&Value>| {
        let (draft, warned) = patched(call, scope, &options, &patch, &manager, old)?;
        *warnings.lock() = warned;
        Ok(draft)
    };
    let rules = Rules {
        create_too: is_apply && scope.sub == Sub::Whole,
        blind: true,
        by_uid: false,
        dry_run: options.dry_run,
    };
    let changed = change(api, scope, rules, make).await?;
    let code = if changed.created { StatusCode::CREATED } else { StatusCode::OK };
    let content = Content::Json(encode::object(&changed.stored, &scope.served, wanted.shape));
    Ok(Answer::of(code, content).warn(warnings.into_inner()))
}

fn read_patch(call: &Call) -> Result<Value, Status> {
    let read = match call.media() {
        Media::ApplyPatch => read_yaml(&call.body),
        _ => read_json(&call.body),
    };
    read.map(|decoded| decoded.value)
        .map_err(|why| Status::bad_request(format!("error decoding patch: {why}")))
}

/// The new state of an object, and the warnings for the client.
fn patched(
    call: &Call,
    scope: &Scope,
    options: &WriteOptions,
    patch: &Value,
    manager: &Manager,
    old: Option<&Value>,
) -> Result<(Value, Vec<String>), Status> {
    let served = &scope.served;
    if call.media() == Media::ApplyPatch {
        return applied(scope, options, patch, manager, old);
    }
    let Some(old) = old else { return Err(scope.not_found()) };
    let mut draft = old.clone();
    match call.media() {
        Media::JsonPatch => apply_json(&mut draft, patch).map_err(|failure| match failure {
            Failure::NoList => not_a(patch, "[]handlers.jsonPatchOp"),
            Failure::TooMany(why) => Status::too_large(&why),
            Failure::Refused(_) => Status::unprocessable(),
        })?,
        Media::MergePatch => {
            if !patch.is_object() {
                return Err(not_a(patch, "map[string]interface {}"));
            }
            merge_patch(&mut draft, patch.clone());
        }
        Media::StrategicPatch => {
            if !patch.is_object() {
                return Err(not_a(patch, "map[string]interface {}"));
            }
            merge_strategic(&mut draft, patch, &served.version().schema)
                .map_err(|_| Status::unprocessable())?;
        }
        Media::ApplyPatch | Media::Json | Media::Yaml | Media::Other => {
            return Err(Status::unsupported_media_type(scope.served.resource.patch_media()));
        }
    }
    let warned = settle(&mut draft, scope, options)?;
    track_update(&mut draft, Some(old), served, manager);
    Ok((draft, warned))
}

/// An applied configuration: fitted to the schema on its own, then merged with what others manage.
fn applied(
    scope: &Scope,
    options: &WriteOptions,
    config: &Value,
    manager: &Manager,
    old: Option<&Value>,
) -> Result<(Value, Vec<String>), Status> {
    let served = &scope.served;
    let mut config = config.clone();
    if object::meta(&config).is_some_and(|meta| meta.contains_key("managedFields")) {
        return Err(Status::bad_request("metadata.managedFields must be nil"));
    }
    let warned = know_config(&mut config, scope)?;
    let name = object::name(&config);
    if !name.is_empty() && name != scope.name {
        let message =
            format!("the name of the object ({name}) does not match the name on the URL ({})", scope.name);
        return Err(Status::bad_request(message));
    }
    object::set_meta(&mut config, "name", scope.name.as_str().into());
    if served.resource.namespaced {
        object::set_meta(&mut config, "namespace", scope.namespace.as_str().into());
    }
    let mut draft = apply(old, &config, served, manager, options.force)?;
    fit(&mut draft, served);
    Ok((draft, warned))
}

/// A patched object is read as if it had been sent whole.
fn settle(draft: &mut Value, scope: &Scope, options: &WriteOptions) -> Result<Vec<String>, Status> {
    let warned = know(draft, scope, options)?;
    fit(draft, &scope.served);
    let name = object::name(draft);
    if name != scope.name {
        let message =
            format!("the name of the object ({name}) does not match the name on the URL ({})", scope.name);
        return Err(Status::bad_request(message));
    }
    Ok(warned)
}

/// An applied configuration may only say what its schema knows.
fn know_config(config: &mut Value, scope: &Scope) -> Result<Vec<String>, Status> {
    let served = &scope.served;
    if !config.is_object() {
        return Err(not_a(config, "map[string]interface {}"));
    }
    match_kind(config, scope)?;
    let place = format!("{}/{}", object::namespace(config), object::name(config));
    let kind = gvk(&served.api_version(), &served.resource.kind);
    let place = format!("failed to create typed patch object ({place}; {kind})");
    let mut texts = find_untyped(config, &served.version().fields);
    if texts.is_empty() {
        let unknown = unknown(config, served).map_err(|why| Status::plain(format!("{place}: {why}")))?;
        texts.extend(unknown.iter().map(|field| format!(".{field}: field not declared in schema")));
    }
    match texts.as_slice() {
        [] => Ok(Vec::new()),
        [one] => Err(Status::plain(format!("{place}: {one}"))),
        many => Err(Status::plain(format!("{place}: errors:\n  {}", many.join("\n  ")))),
    }
}

/// Sees that an object says that it is what the path says.
fn match_kind(object: &Value, scope: &Scope) -> Result<(), Status> {
    let served = &scope.served;
    let text = |field: &str| object.get(field).and_then(Value::as_str).unwrap_or_default();
    let (version, kind) = (text("apiVersion"), text("kind"));
    match version == served.api_version() && kind == served.resource.kind {
        true => Ok(()),
        false => Err(Status::bad_request(format!("invalid object type: {}", gvk(version, kind)))),
    }
}

/// Group, version and kind as the server shows them.
fn gvk(api_version: &str, kind: &str) -> String {
    match api_version.contains('/') {
        true => format!("{api_version}, Kind={kind}"),
        false => format!("/{api_version}, Kind={kind}"),
    }
}

/// Sees that an object is of the kind that it is sent as, and drops what the kind does not know.
fn know(draft: &mut Value, scope: &Scope, options: &WriteOptions) -> Result<Vec<String>, Status> {
    let served = &scope.served;
    if !draft.is_object() {
        return Err(Status::bad_request("the patched object is no object"));
    }
    let handled = |why: &str| {
        Status::bad_request(format!(
            "{kind} in version {:?} cannot be handled as a {kind}: {why}",
            served.version().name,
            kind = served.resource.kind
        ))
    };
    match_kind(draft, scope)?;
    let unknown = unknown(draft, served).map_err(|why| handled(&why))?;
    let warned: Vec<String> = unknown.iter().map(|field| format!("unknown field {field:?}")).collect();
    if options.strictness == Strictness::Strict && !warned.is_empty() {
        let why = format!("strict decoding error: {}", warned.join(", "));
        if served.resource.is_custom() {
            return Err(handled(&why));
        }
        let cause = Cause::invalid_text("patch", &draft.to_string(), &why);
        let unnamed = Named { group: String::new(), name: String::new() };
        return Err(Status::invalid(&unnamed, "", &[cause]));
    }
    match options.strictness {
        Strictness::Ignore => Ok(Vec::new()),
        Strictness::Warn | Strictness::Strict => Ok(warned),
    }
}

/// A patch of the wrong shape.
fn not_a(patch: &Value, wanted: &str) -> Status {
    let found = match patch {
        Value::Object(_) => "object",
        Value::Array(_) => "array",
        Value::String(_) => "string",
        Value::Number(_) => "number",
        Value::Bool(_) => "bool",
        Value::Null => "null",
    };
    Status::bad_request(format!(
        "error decoding patch: json: cannot unmarshal {found} into Go value of type {wanted}"
    ))
}
