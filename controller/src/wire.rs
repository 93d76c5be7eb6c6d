//! Kinds and objects as HTTP has them: paths, bodies, and the way back from JSON to an `Object`.
//! Nothing is sent from here, and no body is judged beyond having metadata.

use conductor::action::Write;
use conductor::model::{Kind, Object, ObjectKey, Part, PartKind, Revision, TypeId};
use http::{Method, Request, header};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Map, Value, json};

/// Whose the fields are that we write.
const MANAGER: &str = "conductor";
const FIELD_MANAGER: &str = "fieldManager=conductor";

/// Where the objects of a kind are served.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Route {
    /// `/api/v1` or `/apis/group/version`.
    pub base: String,
    /// The kind's name in paths.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

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
    Route { base: base(&kind.api_version()), plural, namespaced: !kind.is_cluster_scoped() }
}

/// The path under which an `apiVersion` is served.
pub(super) fn base(api_version: &str) -> String {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    format!("/{root}/{api_version}")
}

impl Route {
    /// The path of all objects, or of those in one namespace.
    pub fn collection(&self, namespace: Option<&str>) -> String {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{}/namespaces/{}/{}", self.base, escape(namespace), self.plural),
            None => format!("{}/{}", self.base, self.plural),
        }
    }

    /// The path of one object. Nothing where no object can be there: names come from references that
    /// people write, and one with a slash in it would lead somewhere else.
    pub fn object(&self, key: &ObjectKey) -> Option<String> {
        let is_segment = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
        let placed = !self.namespaced || is_segment(&key.namespace);
        let collection = self.collection(Some(&key.namespace));
        (placed && is_segment(&key.name)).then(|| format!("{collection}/{}", escape(&key.name)))
    }
}

/// Percent-encodes everything that has a meaning in a path.
pub(super) fn escape(text: &str) -> String {
    let encode = |byte: u8| match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => char::from(byte).to_string(),
        other => format!("%{other:02X}"),
    };
    text.bytes().map(encode).collect()
}

/// A change of one object, tied to its UID and, where the write says so, to its revision.
pub(super) fn patch_request(write: &Write) -> Option<Request<Vec<u8>>> {
    let path = route(write.kind).object(&write.key)?;
    let status = if write.change.is_status() { "/status" } else { "" };
    let mut patch = write.change.merge_patch();
    patch["metadata"]["uid"] = Value::from(&*write.uid);
    if let Some(revision) = write.revision.filter(|r| r.0 != 0) {
        patch["metadata"]["resourceVersion"] = Value::from(revision.to_string());
    }
    // Our own kinds, in words of our own: to look for fields that nobody knows would cost the API server another decoding.
    let uri = format!("{path}{status}?{FIELD_MANAGER}&fieldValidation=Ignore");
    request(Method::PATCH, &uri, Some(("application/merge-patch+json", &patch)))
}

/// A new object.
pub(super) fn create_request(object: &Object) -> Option<Request<Vec<u8>>> {
    let namespace = object.metadata.namespace.as_deref();
    let route = route(object.kind);
    if route.namespaced && namespace.is_none_or(str::is_empty) {
        return None;
    }
    post_request(&route.collection(namespace), &object.to_json())
}

/// A POST of a new object.
pub(super) fn post_request(collection: &str, body: &Value) -> Option<Request<Vec<u8>>> {
    request(Method::POST, &format!("{collection}?{FIELD_MANAGER}"), Some(("application/json", body)))
}

/// A server-side apply: fields that we have and others want are ours, and those that we no longer name go.
pub(super) fn apply_request(path: &str, body: &Value) -> Option<Request<Vec<u8>>> {
    let uri = format!("{path}?{FIELD_MANAGER}&force=true");
    request(Method::PATCH, &uri, Some(("application/apply-patch+yaml", body)))
}

/// A patch by steps.
pub(super) fn json_patch_request(path: &str, steps: &Value) -> Option<Request<Vec<u8>>> {
    let uri = format!("{path}?{FIELD_MANAGER}");
    request(Method::PATCH, &uri, Some(("application/json-patch+json", steps)))
}

/// The patch that hands the fields which we made by a POST over to server-side apply; nothing where there are
/// none. Tied to the revision of `object`.
pub(super) fn hand_over(object: &Value) -> Option<Value> {
    let managers = object.pointer("/metadata/managedFields")?.as_array()?;
    let text =
        |entry: &Value, field: &str| entry.get(field).and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_ours = |entry: &Value| {
        text(entry, "manager") == MANAGER
            && text(entry, "operation") == "Update"
            && text(entry, "subresource").is_empty()
    };
    let handed = |entry: &Value| {
        let mut entry = entry.clone();
        if is_ours(&entry) {
            entry["operation"] = Value::from("Apply");
        }
        entry
    };
    managers.iter().any(is_ours).then(|| {
        json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": object.pointer("/metadata/resourceVersion")},
            {"op": "replace", "path": "/metadata/managedFields", "value": managers.iter().map(handed).collect::<Vec<_>>()},
        ])
    })
}

/// A DELETE of the very object that is meant, as it was last seen.
pub(super) fn delete_request(path: &str, uid: &str, revision: Revision) -> Option<Request<Vec<u8>>> {
    let mut preconditions = json!({"uid": uid});
    if revision.0 != 0 {
        preconditions["resourceVersion"] = Value::from(revision.to_string());
    }
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "preconditions": preconditions, "propagationPolicy": "Background",
    });
    request(Method::DELETE, path, Some(("application/json", &options)))
}

/// A GET.
pub(super) fn get_request(path: &str) -> Option<Request<Vec<u8>>> {
    request(Method::GET, path, None)
}

/// A request with or without a JSON body. Nothing where the path is none.
pub(super) fn request(method: Method, uri: &str, body: Option<(&str, &Value)>) -> Option<Request<Vec<u8>>> {
    let builder = Request::builder().method(method).uri(uri).header(header::ACCEPT, "application/json");
    match body {
        Some((kind, body)) => {
            builder.header(header::CONTENT_TYPE, kind).body(serde_json::to_vec(body).ok()?).ok()
        }
        None => builder.body(Vec::new()).ok(),
    }
}

/// An object of a kind from its JSON.
///
/// # Errors
/// What is wrong with it, where it is no object with a name and readable metadata. That is the object's
/// trouble and nobody else's.
pub(super) fn read_object(kind: Kind, json: Value) -> Result<Object, String> {
    let (metadata, body) = take_apart(json)?;
    Ok(Object { kind, metadata, body: Value::Object(body) })
}

/// The metadata and everything beside it.
///
/// # Errors
/// As [`read_object`].
fn take_apart(json: Value) -> Result<(ObjectMeta, Map<String, Value>), String> {
    let Value::Object(mut body) = json else { return Err("it is no JSON object".to_owned()) };
    let mut metadata = body.remove("metadata").unwrap_or_default();
    if let Some(metadata) = metadata.as_object_mut() {
        // Often more than half of the object, and nothing that we read.
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

/// Where an object is.
pub(super) fn key_of(metadata: &ObjectMeta) -> ObjectKey {
    let text = |t: &Option<String>| t.as_deref().unwrap_or_default().to_owned();
    ObjectKey::new(text(&metadata.namespace), text(&metadata.name))
}

#[cfg(test)]
mod tests;
