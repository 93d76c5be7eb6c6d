//! The provider's only access to the API: reads are live, writes carry the revision that they were decided on. Retries
//! nothing, and writes nothing while this process does not lead.

use super::error::Error;
use conductor::api::database::LogicalDatabase;
use conductor_runtime::leadership::Leadership;
use conductor_sql_plan::names::Names;
use k8s_openapi::api::core::v1::Secret;
use kube::api::{
    Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions,
};
use kube::{Client, Resource, ResourceExt};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::fmt::Debug;
use std::time::Duration;

/// The manager of the fields that the provider writes.
pub(super) const MANAGER: &str = "conductor-databases";
/// How long one call may take.
const WITHIN: Duration = Duration::from_secs(15);

/// What the API reads and returns.
pub(super) trait Object: Clone + DeserializeOwned + Debug {}

impl<T: Clone + DeserializeOwned + Debug> Object for T {}

/// The API, for the leader.
#[derive(Clone)]
pub(super) struct ApiClient {
    pub client: Client,
    pub namespace: String,
    pub leadership: Leadership,
}

impl ApiClient {
    pub fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn secrets_in(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub fn records(&self) -> Api<LogicalDatabase> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Objects of a kind without a Rust type, in a namespace.
    pub fn others(&self, kind: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, kind)
    }

    pub async fn find<T: Object>(&self, api: &Api<T>, name: &str) -> Result<Option<T>, Error> {
        within(api.get_opt(name)).await
    }

    pub async fn list(&self, api: &Api<DynamicObject>) -> Result<Vec<DynamicObject>, Error> {
        Ok(within(api.list(&ListParams::default())).await?.items)
    }

    pub async fn create<T: Object + Serialize>(&self, api: &Api<T>, object: &T) -> Result<T, Error> {
        self.may_write()?;
        within(api.create(&PostParams::default(), object)).await
    }

    /// Replaces an object, if it is still as it was read.
    pub async fn replace<T>(&self, api: &Api<T>, object: &T) -> Result<T, Error>
    where
        T: Object + Serialize + Resource,
    {
        self.may_write()?;
        within(api.replace(&object.name_any(), &PostParams::default(), object)).await
    }

    /// Merges into an object; `patch` should carry the revision where that matters.
    pub async fn merge<T: Object>(&self, api: &Api<T>, name: &str, patch: Value) -> Result<T, Error> {
        self.may_write()?;
        within(api.patch(name, &patch_params(), &Patch::Merge(patch))).await
    }

    pub async fn merge_status<T: Object>(&self, api: &Api<T>, name: &str, status: Value) -> Result<T, Error> {
        self.patch_status(api, name, json!({"status": status})).await
    }

    /// Merges into the status of an object, if it is still as it was read.
    pub async fn merge_status_of<T: Object + Resource>(
        &self,
        api: &Api<T>,
        object: &T,
        status: Value,
    ) -> Result<T, Error> {
        let guard = json!({"resourceVersion": object.resource_version(), "uid": object.uid()});
        self.patch_status(api, &object.name_any(), json!({"metadata": guard, "status": status})).await
    }

    async fn patch_status<T: Object>(&self, api: &Api<T>, name: &str, patch: Value) -> Result<T, Error> {
        self.may_write()?;
        within(api.patch_status(name, &patch_params(), &Patch::Merge(patch))).await
    }

    pub async fn apply(&self, api: &Api<DynamicObject>, name: &str, object: &Value) -> Result<(), Error> {
        self.may_write()?;
        within(api.patch(name, &PatchParams::apply(MANAGER).force(), &Patch::Apply(object))).await.map(drop)
    }

    /// Deletes the object with this UID; succeeds where it does not exist.
    pub async fn delete<T: Object>(
        &self,
        api: &Api<T>,
        name: &str,
        uid: Option<String>,
    ) -> Result<(), Error> {
        self.delete_if(api, name, Preconditions { uid, resource_version: None }).await
    }

    /// Deletes an object, if it is still as it was read.
    pub async fn delete_as_read(
        &self,
        api: &Api<DynamicObject>,
        object: &DynamicObject,
    ) -> Result<(), Error> {
        let preconditions = Preconditions { uid: object.uid(), resource_version: object.resource_version() };
        self.delete_if(api, &object.name_any(), preconditions).await
    }

    async fn delete_if<T: Object>(
        &self,
        api: &Api<T>,
        name: &str,
        preconditions: Preconditions,
    ) -> Result<(), Error> {
        self.may_write()?;
        let parameters = DeleteParams { preconditions: Some(preconditions), ..DeleteParams::default() };
        match tokio::time::timeout(WITHIN, api.delete(name, &parameters)).await {
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(()),
            other => answer(other).map(drop),
        }
    }

    pub fn may_write(&self) -> Result<(), Error> {
        self.leadership.require().map_err(|_| Error::NotLeading)
    }

    /// Confirms the leadership by the Lease, before anything is destroyed.
    pub async fn may_destroy(&self) -> Result<(), Error> {
        self.may_write()?;
        self.leadership.confirm().await.map_err(|_| Error::NotLeading)
    }
}

fn patch_params() -> PatchParams {
    PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() }
}

async fn within<T>(call: impl Future<Output = Result<T, kube::Error>>) -> Result<T, Error> {
    answer(tokio::time::timeout(WITHIN, call).await)
}

type Called<T> = Result<Result<T, kube::Error>, tokio::time::error::Elapsed>;

/// A refusal without any content of the request: the API may quote the object.
fn answer<T>(called: Called<T>) -> Result<T, Error> {
    match called {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(Error::Conflict),
        Ok(Err(kube::Error::Api(status))) => Err(Error::Api(format!("{} {}", status.code, status.reason))),
        Ok(Err(_)) => Err(Error::Api("no answer".to_owned())),
        Err(_) => Err(Error::Api(format!("no answer within {} s", WITHIN.as_secs()))),
    }
}

/// The name of a database's record.
pub(super) fn record_name(id: &str) -> String {
    plain("db", id)
}

/// The name of the Secret with the source of a claim's connection.
pub(super) fn login_name(claim_uid: &str) -> String {
    plain("login", claim_uid)
}

/// The name of the Secret that holds a database's passwords.
pub(super) fn ledger_name(id: &str) -> String {
    plain("ledger", id)
}

/// A name from a UID; one that cannot be part of a name gets a derived one.
fn plain(prefix: &str, id: &str) -> String {
    let is_plain = id.len() <= 63
        && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && id.ends_with(|c: char| c.is_ascii_alphanumeric());
    match is_plain {
        true => format!("{prefix}-{id}"),
        false => format!("{prefix}-{}", Names::new(id, None).owner.as_str().trim_start_matches("c_")),
    }
}
