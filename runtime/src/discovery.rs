//! Where the API server serves a kind that is known by `apiVersion` and name only, by discovery. Found routes are kept
//! until one turns out to be stale.

use super::call::{Reply, call, found};
use super::rest::{self, Route};
use http::StatusCode;
use kube::Client;
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// The known routes, shared by clones.
#[derive(Clone)]
pub struct Routes {
    client: Client,
    within: Duration,
    known: Arc<Mutex<BTreeMap<(String, String), Route>>>,
}

/// Why there is no route.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoRoute {
    /// The cluster does not serve the kind.
    NotInstalled,
    /// The kind is cluster-scoped.
    NotNamespaced,
    /// Discovery failed.
    Unknown(String),
}

impl Routes {
    /// Discovers with this client; each call may take `within`.
    pub fn new(client: Client, within: Duration) -> Routes {
        Routes { client, within, known: Arc::default() }
    }

    fn known(&self) -> MutexGuard<'_, BTreeMap<(String, String), Route>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The route of a namespaced kind.
    ///
    /// # Errors
    /// The cluster does not serve the kind in namespaces, or discovery failed.
    pub async fn find(&self, api_version: &str, kind: &str) -> Result<Route, NoRoute> {
        let key = (api_version.to_owned(), kind.to_owned());
        if let Some(route) = self.known().get(&key) {
            return Ok(route.clone());
        }
        let route = self.discover(api_version, kind).await?;
        self.known().insert(key, route.clone());
        Ok(route)
    }

    /// Forgets a route that turned out to be stale.
    pub fn forget(&self, api_version: &str, kind: &str) {
        self.known().remove(&(api_version.to_owned(), kind.to_owned()));
    }

    async fn discover(&self, api_version: &str, kind: &str) -> Result<Route, NoRoute> {
        let request = rest::get(&rest::base(api_version)).ok_or(NoRoute::NotInstalled)?;
        match call(&self.client, request, self.within).await {
            Reply::Answered { status: StatusCode::NOT_FOUND, .. } => Err(NoRoute::NotInstalled),
            reply => {
                let list = found(reply).map_err(NoRoute::Unknown)?;
                choose(api_version, kind, &list.unwrap_or_default())
            }
        }
    }
}

/// The route of a kind among the resources of its group.
fn choose(api_version: &str, kind: &str, list: &Value) -> Result<Route, NoRoute> {
    let resources = list.get("resources").and_then(Value::as_array).into_iter().flatten();
    let name = |r: &Value| r.get("name").and_then(Value::as_str).unwrap_or_default().to_owned();
    let is_kind = |r: &&Value| r.get("kind").and_then(Value::as_str) == Some(kind) && !name(r).contains('/');
    let resource = resources.into_iter().find(is_kind).ok_or(NoRoute::NotInstalled)?;
    match resource.get("namespaced").and_then(Value::as_bool) {
        Some(true) => Ok(Route::namespaced(api_version, name(resource))),
        Some(false) | None => Err(NoRoute::NotNamespaced),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_a_kind_in_namespaces_has_a_route() {
        let list = json!({"resources": [
            {"name": "clusters/status", "kind": "Cluster", "namespaced": true},
            {"name": "clusters", "kind": "Cluster", "namespaced": true},
            {"name": "nodes", "kind": "Node", "namespaced": false},
        ]});
        let route = choose("g/v1", "Cluster", &list).expect("it is served");
        assert_eq!(route.collection(Some("s")), "/apis/g/v1/namespaces/s/clusters");
        assert_eq!(choose("v1", "Node", &list), Err(NoRoute::NotNamespaced));
        assert_eq!(choose("g/v1", "Pooler", &list), Err(NoRoute::NotInstalled));
        assert_eq!(choose("g/v1", "Cluster", &json!({})), Err(NoRoute::NotInstalled));
    }
}
