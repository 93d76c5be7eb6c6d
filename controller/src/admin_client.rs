//! Reads, creates and changes single objects for commands of an administrator. Finds kinds by discovery and refuses those
//! that the cluster does not serve. Decides and retries nothing.

use super::error::Error;
use super::options::Options;
use conductor::model::{ObjectKey, PartKind};
use conductor_runtime::call::{Reply, call, found, message};
use conductor_runtime::discovery::{NoRoute, Routes};
use conductor_runtime::rest::{self, RestRequest, Route};
use kube::Client;
use serde_json::Value;
use std::time::Duration;

/// A client for an administrator.
pub struct AdminClient {
    client: Client,
    routes: Routes,
    within: Duration,
}

impl std::fmt::Debug for AdminClient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AdminClient").finish_non_exhaustive()
    }
}

impl AdminClient {
    /// Acts on the cluster of this client.
    pub fn new(client: Client) -> AdminClient {
        let within = Options::default().request_timeout;
        AdminClient { routes: Routes::new(client.clone(), within), client, within }
    }

    /// Reads an object; `None` where it does not exist.
    ///
    /// # Errors
    /// The cluster does not serve the kind in namespaces, or the API refuses or does not answer.
    pub async fn read(&self, kind: &PartKind, key: &ObjectKey) -> Result<Option<Value>, Error> {
        let what = || format!("cannot read {kind} {key}");
        let path = self.path(kind, key, &what()).await?;
        let request = rest::get(&path).ok_or_else(|| no_request(&what()))?;
        found(call(&self.client, request, self.within).await)
            .map_err(|why| Error::Refused { what: what(), why })
    }

    /// Creates an object.
    ///
    /// # Errors
    /// The API refuses it or does not answer.
    pub async fn create(&self, kind: &PartKind, namespace: &str, object: &Value) -> Result<Value, Error> {
        let what = format!("cannot create {kind}");
        let route = self.route(kind, &what).await?;
        let request = rest::post(&route.collection(Some(namespace)), object);
        self.send(request, &what).await
    }

    /// Changes an object by a merge patch. A UID and a revision in its metadata make it conditional.
    ///
    /// # Errors
    /// As [`create`](AdminClient::create).
    pub async fn patch(&self, kind: &PartKind, key: &ObjectKey, patch: &Value) -> Result<Value, Error> {
        self.merge(kind, key, "", patch).await
    }

    /// Changes the status of an object by a merge patch.
    ///
    /// # Errors
    /// As [`create`](AdminClient::create).
    pub async fn patch_status(
        &self,
        kind: &PartKind,
        key: &ObjectKey,
        patch: &Value,
    ) -> Result<Value, Error> {
        self.merge(kind, key, "/status", patch).await
    }

    async fn merge(
        &self,
        kind: &PartKind,
        key: &ObjectKey,
        under: &str,
        patch: &Value,
    ) -> Result<Value, Error> {
        let what = format!("cannot change {kind} {key}");
        let path = self.path(kind, key, &what).await?;
        self.send(rest::merge_patch(&format!("{path}{under}"), patch), &what).await
    }

    async fn send(&self, request: Option<RestRequest>, what: &str) -> Result<Value, Error> {
        let request = request.ok_or_else(|| no_request(what))?;
        let refused = |why| Error::Refused { what: what.to_owned(), why };
        match call(&self.client, request, self.within).await {
            Reply::Answered { status, body, .. } if status.is_success() => Ok(body),
            Reply::Answered { status, body, .. } => Err(refused(message(status, &body))),
            Reply::Lost(why) => Err(refused(format!("{why}; it is not known whether the API did it"))),
        }
    }

    async fn path(&self, kind: &PartKind, key: &ObjectKey, what: &str) -> Result<String, Error> {
        self.route(kind, what).await?.object(&key.namespace, &key.name).ok_or_else(|| no_request(what))
    }

    async fn route(&self, kind: &PartKind, what: &str) -> Result<Route, Error> {
        self.routes.find(&kind.api_version, &kind.kind).await.map_err(|no| {
            let why = match no {
                NoRoute::NotNamespaced => format!("{kind} is cluster-scoped"),
                NoRoute::NotInstalled => {
                    format!("the cluster does not serve {} {}", kind.api_version, kind.kind)
                }
                NoRoute::Unknown(why) => why,
            };
            Error::Refused { what: what.to_owned(), why }
        })
    }
}

fn no_request(what: &str) -> Error {
    Error::Refused { what: what.to_owned(), why: "the name is invalid".to_owned() }
}
