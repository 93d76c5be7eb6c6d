//! Adds and removes the finalizers of objects.

use super::api_client::ApiClient;
use super::error::Error;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use serde_json::json;

/// Adds a finalizer, unless the object has it.
pub(super) async fn add(
    cluster: &ApiClient,
    api: &Api<DynamicObject>,
    object: &impl ResourceExt,
    finalizer: &str,
) -> Result<(), Error> {
    if object.finalizers().iter().any(|own| own == finalizer) {
        return Ok(());
    }
    let all: Vec<&str> = object.finalizers().iter().map(String::as_str).chain([finalizer]).collect();
    let metadata =
        json!({"uid": object.uid(), "resourceVersion": object.resource_version(), "finalizers": all});
    cluster.merge(api, &object.name_any(), json!({"metadata": metadata})).await.map(drop)
}

/// Removes a finalizer, which deletes an object that only waits for it; on this revision, if one is given.
pub(super) async fn remove(
    cluster: &ApiClient,
    api: &Api<DynamicObject>,
    object: &impl ResourceExt,
    finalizer: &str,
    revision: Option<String>,
) -> Result<(), Error> {
    let rest: Vec<&String> = object.finalizers().iter().filter(|own| *own != finalizer).collect();
    if rest.len() == object.finalizers().len() {
        return Ok(());
    }
    let mut change = json!({"metadata": {"uid": object.uid(), "finalizers": rest}});
    if let Some(revision) = revision {
        change["metadata"]["resourceVersion"] = revision.into();
    }
    match cluster.merge(api, &object.name_any(), change).await {
        Err(Error::Api(why)) if why.starts_with("404") => Ok(()),
        other => other.map(drop),
    }
}
