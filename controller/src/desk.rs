//! What an administrator does by hand, one object at a time: read it, make it, change it. Kinds are found by
//! discovery, and one that the cluster does not know is refused. Nothing is decided here, and nothing is tried twice.

use super::answer::found;
use super::call::{Reply, call, message};
use super::error::Error;
use super::options::Options;
use super::parts::{NoRoute, Routes};
use super::wire::{self, Route};
use conductor::event::WhyMissing;
use conductor::model::{ObjectKey, PartKind};
use http::{Method, Request};
use kube::Client;
use serde_json::Value;
use std::time::Duration;

/// Somebody with a client and a pair of hands.
pub struct Desk {
    client: Client,
    routes: Routes,
    within: Duration,
}

impl std::fmt::Debug for Desk {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Desk").finish_non_exhaustive()
    }
}

impl Desk {
    /// A desk at the cluster of this client.
    pub fn new(client: Client) -> Desk {
        let within = Options::default().request_timeout;
        Desk { routes: Routes::new(client.clone(), within), client, within }
    }

    /// An object as it is now; nothing where there is none.
    ///
    /// # Errors
    /// A kind that the cluster does not serve in namespaces, or an answer that is none.
    pub async fn read(&self, kind: &PartKind, key: &ObjectKey) -> Result<Option<Value>, Error> {
        let what = || format!("cannot read {kind} {key}");
        let path = self.path(kind, key, &what()).await?;
        let request = wire::get_request(&path).ok_or_else(|| no_request(&what()))?;
        found(call(&self.client, request, self.within).await)
            .map_err(|why| Error::Refused { what: what(), why })
    }

    /// Makes an object that is not there yet.
    ///
    /// # Errors
    /// What the API says against it.
    pub async fn create(&self, kind: &PartKind, namespace: &str, object: &Value) -> Result<Value, Error> {
        let what = format!("cannot create {kind}");
        let route = self.route(kind, &what).await?;
        let request = wire::post_request(&route.collection(Some(namespace)), object);
        self.send(request, &what).await
    }

    /// Changes an object by a merge patch. A UID and a revision in its metadata tie it to what was seen.
    ///
    /// # Errors
    /// What the API says against it.
    pub async fn patch(&self, kind: &PartKind, key: &ObjectKey, patch: &Value) -> Result<Value, Error> {
        self.merge(kind, key, "", patch).await
    }

    /// The same for its status.
    ///
    /// # Errors
    /// What the API says against it.
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
        let body = Some(("application/merge-patch+json", patch));
        self.send(wire::request(Method::PATCH, &format!("{path}{under}"), body), &what).await
    }

    async fn send(&self, request: Option<Request<Vec<u8>>>, what: &str) -> Result<Value, Error> {
        let request = request.ok_or_else(|| no_request(what))?;
        let refused = |why| Error::Refused { what: what.to_owned(), why };
        match call(&self.client, request, self.within).await {
            Reply::Answered { status, body, .. } if status.is_success() => Ok(body),
            Reply::Answered { status, body, .. } => Err(refused(message(status, &body))),
            Reply::Lost(why) => Err(refused(format!("{why}; whether it was done is not known"))),
        }
    }

    async fn path(&self, kind: &PartKind, key: &ObjectKey, what: &str) -> Result<String, Error> {
        self.route(kind, what).await?.object(key).ok_or_else(|| no_request(what))
    }

    async fn route(&self, kind: &PartKind, what: &str) -> Result<Route, Error> {
        self.routes.find(kind).await.map_err(|no| {
            let why = match no {
                NoRoute::Missing(WhyMissing::NotNamespaced) => format!("{kind} lives in no namespace"),
                NoRoute::Missing(_) => {
                    format!("the cluster does not know {} {}", kind.api_version, kind.kind)
                }
                NoRoute::Unknown(why) => why,
            };
            Error::Refused { what: what.to_owned(), why }
        })
    }
}

fn no_request(what: &str) -> Error {
    Error::Refused { what: what.to_owned(), why: "the name is none that an object can have".to_owned() }
}
