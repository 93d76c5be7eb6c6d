//! The engine's objects as the API has them: their routes, the requests that write them, and their JSON. Sends nothing,
//! and validates no body beyond its metadata.

use conductor::action::Write;
use conductor::model::{Kind, Object, ObjectKey, Part, PartKind, Revision, TypeId};
use conductor_runtime::rest::{self, FIELD_MANAGER, RestRequest, Route};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value};

/// Every kind that the engine reads.
pub fn kinds() -> Vec<Kind> {
    let of_type = |ty| [Kind::Claim(ty), Kind::Resource(ty), Kind::Class(ty)];
    let others = [Kind::Quota, Kind::ClusterQuota, Kind::Limits, Kind::Profile, Kind::Namespace];
    TypeId::all().flat_map(of_type).chain(others).collect()
}

/// Where a kind is served.
pub(super) fn route(kind: Kind) -> Route {
    let name = kind.name().to_lowercase();
    let plural = match kind {
        Kind::Class(_) => format!("{name}es"),
        // Its name is a plural.
        Kind::Limits => name,
        Kind::Claim(_)
        | Kind::Resource(_)
        | Kind::Quota
        | Kind::ClusterQuota
        | Kind::Profile
        | Kind::Namespace => format!("{name}s"),
    };
    Route { namespaced: !kind.is_cluster_scoped(), ..Route::namespaced(&kind.api_version(), plural) }
}

/// A change of one object, tied to its UID and, if the write has one, to its revision.
pub(super) fn patch_request(write: &Write) -> Option<RestRequest> {
    let path = route(write.kind).object(&write.key.namespace, &write.key.name)?;
    let status = if write.change.is_status() { "/status" } else { "" };
    let mut patch = write.change.merge_patch();
    patch["metadata"]["uid"] = Value::from(&*write.uid);
    if let Some(revision) = write.revision.and_then(precondition) {
        patch["metadata"]["resourceVersion"] = Value::from(revision);
    }
    // These are our own kinds: a search for unknown fields would cost the API server another decoding.
    let uri = format!("{path}{status}?fieldManager={FIELD_MANAGER}&fieldValidation=Ignore");
    rest::merge_patch(&uri, &patch)
}

/// A new object.
pub(super) fn create_request(object: &Object) -> Option<RestRequest> {
    let namespace = object.metadata.namespace.as_deref();
    let route = route(object.kind);
    if route.namespaced && namespace.is_none_or(str::is_empty) {
        return None;
    }
    rest::post(&route.collection(namespace), &object.to_json())
}

/// A DELETE of an object as it was last seen.
pub(super) fn delete_request(
    route: &Route,
    key: &ObjectKey,
    uid: &str,
    revision: Revision,
) -> Option<RestRequest> {
    rest::delete(&route.object(&key.namespace, &key.name)?, uid, precondition(revision))
}

/// A revision as the API has it; `None` where it is unknown.
fn precondition(revision: Revision) -> Option<String> {
    (revision.0 != 0).then(|| revision.to_string())
}

/// An object of a kind from its JSON.
///
/// # Errors
/// What is wrong with it, if it has no name or no valid metadata.
pub(super) fn read_object(kind: Kind, json: Value) -> Result<Object, String> {
    let (metadata, body) = take_apart(json)?;
    Ok(Object { kind, metadata, body: Value::Object(body) })
}

/// The metadata, and all other fields.
///
/// # Errors
/// As [`read_object`].
fn take_apart(json: Value) -> Result<(ObjectMeta, Map<String, Value>), String> {
    let Value::Object(mut body) = json else { return Err("it is not a JSON object".to_owned()) };
    let mut metadata = body.remove("metadata").unwrap_or_default();
    if let Some(metadata) = metadata.as_object_mut() {
        // Often more than half of the object, and never read.
        metadata.remove("managedFields");
    }
    let metadata: ObjectMeta = serde_json::from_value(metadata).map_err(|e| format!("its metadata: {e}"))?;
    if metadata.name.as_deref().is_none_or(str::is_empty) {
        return Err("it has no metadata.name".to_owned());
    }
    body.remove("apiVersion");
    body.remove("kind");
    Ok((metadata, body))
}

/// A part from its JSON.
///
/// # Errors
/// As [`read_object`].
pub(super) fn read_part(kind: &PartKind, json: Value) -> Result<Part, String> {
    let (metadata, body) = take_apart(json)?;
    Ok(Part { kind: kind.clone(), metadata, body: Value::Object(body) })
}

/// The namespace and name of an object.
pub(super) fn key_of(metadata: &ObjectMeta) -> ObjectKey {
    let text = |t: &Option<String>| t.as_deref().unwrap_or_default().to_owned();
    ObjectKey::new(text(&metadata.namespace), text(&metadata.name))
}

#[cfg(test)]
mod tests;
