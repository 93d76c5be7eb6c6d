//! Requests to the Kubernetes API: paths, verbs and bodies. Nothing is sent from here.

use http::{Method, Request, header};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

/// The manager of the fields that the controller writes.
pub const FIELD_MANAGER: &str = "conductor";

/// Everything that has a meaning in a path or a query.
const RESERVED: AsciiSet = NON_ALPHANUMERIC.remove(b'-').remove(b'.').remove(b'_').remove(b'~');

/// A request whose body is complete.
pub type RestRequest = Request<Vec<u8>>;

/// Where the API server serves the objects of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// `/api/v1` or `/apis/group/version`.
    pub base: String,
    /// The kind's name in paths.
    pub plural: String,
    /// Whether objects live in namespaces.
    pub namespaced: bool,
}

impl Route {
    /// The route of a namespaced kind.
    pub fn namespaced(api_version: &str, plural: impl Into<String>) -> Route {
        Route { base: base(api_version), plural: plural.into(), namespaced: true }
    }

    /// The path of all objects, or of those in one namespace.
    pub fn collection(&self, namespace: Option<&str>) -> String {
        match namespace.filter(|_| self.namespaced) {
            Some(namespace) => format!("{}/namespaces/{}/{}", self.base, escape(namespace), self.plural),
            None => format!("{}/{}", self.base, self.plural),
        }
    }

    /// The path of one object. `None` where no object can exist: users write names into references, and a name with a
    /// slash in it would lead to another object.
    pub fn object(&self, namespace: &str, name: &str) -> Option<String> {
        let is_segment = |name: &str| !matches!(name, "" | "." | "..") && !name.contains(['/', '%']);
        let placed = !self.namespaced || is_segment(namespace);
        (placed && is_segment(name)).then(|| format!("{}/{}", self.collection(Some(namespace)), escape(name)))
    }
}

/// The path under which an `apiVersion` is served.
pub fn base(api_version: &str) -> String {
    let root = if api_version.contains('/') { "apis" } else { "api" };
    format!("/{root}/{api_version}")
}

/// Percent-encodes everything that has a meaning in a path or a query.
pub fn escape(text: &str) -> String {
    utf8_percent_encode(text, &RESERVED).to_string()
}

/// A GET.
pub fn get(path: &str) -> Option<RestRequest> {
    request(Method::GET, path, None)
}

/// A POST of a new object.
pub fn post(collection: &str, body: &Value) -> Option<RestRequest> {
    let uri = format!("{collection}?fieldManager={FIELD_MANAGER}");
    request(Method::POST, &uri, Some(("application/json", body)))
}

/// A PUT of a whole object.
pub fn put(path: &str, body: &Value) -> Option<RestRequest> {
    request(Method::PUT, path, Some(("application/json", body)))
}

/// A merge patch.
pub fn merge_patch(uri: &str, body: &Value) -> Option<RestRequest> {
    request(Method::PATCH, uri, Some(("application/merge-patch+json", body)))
}

/// A JSON patch.
pub fn json_patch(path: &str, steps: &Value) -> Option<RestRequest> {
    let uri = format!("{path}?fieldManager={FIELD_MANAGER}");
    request(Method::PATCH, &uri, Some(("application/json-patch+json", steps)))
}

/// A forced server-side apply: takes over fields that other managers own, and removes our fields that `body` no longer
/// names.
pub fn apply(path: &str, body: &Value) -> Option<RestRequest> {
    let uri = format!("{path}?fieldManager={FIELD_MANAGER}&force=true");
    request(Method::PATCH, &uri, Some(("application/apply-patch+yaml", body)))
}

/// A DELETE of the object with this UID, and with this revision if one is given.
pub fn delete(path: &str, uid: &str, revision: Option<String>) -> Option<RestRequest> {
    let mut preconditions = json!({"uid": uid});
    if let Some(revision) = revision {
        preconditions["resourceVersion"] = Value::from(revision);
    }
    let options = json!({
        "apiVersion": "v1", "kind": "DeleteOptions",
        "preconditions": preconditions, "propagationPolicy": "Background",
    });
    request(Method::DELETE, path, Some(("application/json", &options)))
}

/// `None` where the URI is invalid.
fn request(method: Method, uri: &str, body: Option<(&str, &Value)>) -> Option<RestRequest> {
    let builder = Request::builder().method(method).uri(uri).header(header::ACCEPT, "application/json");
    match body {
        Some((kind, body)) => {
            builder.header(header::CONTENT_TYPE, kind).body(serde_json::to_vec(body).ok()?).ok()
        }
        None => builder.body(Vec::new()).ok(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_never_leads_elsewhere() {
        let route = Route::namespaced("g.io/v1", "things");
        let base = "/apis/g.io/v1/namespaces/team/things";
        assert_eq!(route.object("team", "db"), Some(format!("{base}/db")));
        assert_eq!(route.object("team", "a b?c#d~é"), Some(format!("{base}/a%20b%3Fc%23d~%C3%A9")));
        for (namespace, name) in
            [("", "db"), ("team", ""), ("team", ".."), ("..", "db"), ("team", "a/status"), ("team", "%2e%2e")]
        {
            assert_eq!(route.object(namespace, name), None, "{namespace:?} {name:?}");
        }
    }

    #[test]
    fn a_delete_is_tied_to_uid_and_revision() {
        let request = delete("/x", "u-1", Some("7".to_owned())).expect("the path is valid");
        let body: Value = serde_json::from_slice(request.body()).expect("it is JSON");
        assert_eq!(body["preconditions"], json!({"uid": "u-1", "resourceVersion": "7"}));
    }
}
