//! The one place in this room that speaks with the API: reads are live, writes carry the revision that they were
//! decided on, nothing is tried twice, and nothing is sent by who does not lead.

use super::trouble::Trouble;
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

/// Who we are in the fields that we own.
pub(super) const MANAGER: &str = "conductor-databases";
/// How long one call may take.
const WITHIN: Duration = Duration::from_secs(15);

/// The API, for one who leads.
#[derive(Clone)]
pub(super) struct Desk {
    pub client: Client,
    pub namespace: String,
    pub leadership: Leadership,
}

impl Desk {
    pub fn secrets(&self) -> Api<Secret> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    pub fn secrets_in(&self, namespace: &str) -> Api<Secret> {
        Api::namespaced(self.client.clone(), namespace)
    }

    pub fn records(&self) -> Api<LogicalDatabase> {
        Api::namespaced(self.client.clone(), &self.namespace)
    }

    /// Objects of a kind that is not known by its type, in a namespace.
    pub fn others(&self, kind: &ApiResource, namespace: &str) -> Api<DynamicObject> {
        Api::namespaced_with(self.client.clone(), namespace, kind)
    }

    pub async fn find<T>(&self, api: &Api<T>, name: &str) -> Result<Option<T>, Trouble>
    where
        T: Clone + DeserializeOwned + Debug,
    {
        answer(tokio::time::timeout(WITHIN, api.get_opt(name)).await)
    }

    pub async fn list(&self, api: &Api<DynamicObject>) -> Result<Vec<DynamicObject>, Trouble> {
        let listed = answer(tokio::time::timeout(WITHIN, api.list(&ListParams::default())).await)?;
        Ok(listed.items)
    }

    pub async fn create<T>(&self, api: &Api<T>, object: &T) -> Result<T, Trouble>
    where
        T: Clone + DeserializeOwned + Debug + Serialize,
    {
        self.may_write()?;
        answer(tokio::time::timeout(WITHIN, api.create(&PostParams::default(), object)).await)
    }

    /// Puts an object in the place of the one that it was read as.
    pub async fn replace<T>(&self, api: &Api<T>, object: &T) -> Result<T, Trouble>
    where
        T: Clone + DeserializeOwned + Debug + Serialize + Resource,
    {
        self.may_write()?;
        let name = object.name_any();
        answer(tokio::time::timeout(WITHIN, api.replace(&name, &PostParams::default(), object)).await)
    }

    /// Merges into an object; `patch` should carry the revision where that matters.
    pub async fn merge<T>(&self, api: &Api<T>, name: &str, patch: Value) -> Result<T, Trouble>
    where
        T: Clone + DeserializeOwned + Debug,
    {
        self.may_write()?;
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        answer(tokio::time::timeout(WITHIN, api.patch(name, &parameters, &Patch::Merge(patch))).await)
    }

    pub async fn merge_status<T>(&self, api: &Api<T>, name: &str, status: Value) -> Result<T, Trouble>
    where
        T: Clone + DeserializeOwned + Debug,
    {
        self.patch_status(api, name, json!({"status": status})).await
    }

    /// The same, where the object is still as it was read.
    pub async fn merge_status_of<T>(&self, api: &Api<T>, object: &T, status: Value) -> Result<T, Trouble>
    where
        T: Clone + DeserializeOwned + Debug + Resource,
    {
        let guard = json!({"resourceVersion": object.resource_version(), "uid": object.uid()});
        self.patch_status(api, &object.name_any(), json!({"metadata": guard, "status": status})).await
    }

    async fn patch_status<T>(&self, api: &Api<T>, name: &str, patch: Value) -> Result<T, Trouble>
    where
        T: Clone + DeserializeOwned + Debug,
    {
        self.may_write()?;
        let parameters = PatchParams { field_manager: Some(MANAGER.to_owned()), ..PatchParams::default() };
        let patch = Patch::Merge(patch);
        answer(tokio::time::timeout(WITHIN, api.patch_status(name, &parameters, &patch)).await)
    }

    pub async fn apply(&self, api: &Api<DynamicObject>, name: &str, object: &Value) -> Result<(), Trouble> {
        self.may_write()?;
        let parameters = PatchParams::apply(MANAGER).force();
        let patch = Patch::Apply(object);
        let sent = api.patch(name, &parameters, &patch);
        answer(tokio::time::timeout(WITHIN, sent).await).map(drop)
    }

    /// Deletes an object of this UID; one that is gone is gone.
    pub async fn delete<T>(&self, api: &Api<T>, name: &str, uid: Option<String>) -> Result<(), Trouble>
    where
        T: Clone + DeserializeOwned + Debug,
    {
        self.may_write()?;
        let preconditions = Some(Preconditions { uid, resource_version: None });
        let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
        match tokio::time::timeout(WITHIN, api.delete(name, &parameters)).await {
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(()),
            other => answer(other).map(drop),
        }
    }

    /// Deletes an object where it is still as it was read.
    pub async fn delete_as_read(
        &self,
        api: &Api<DynamicObject>,
        object: &DynamicObject,
    ) -> Result<(), Trouble> {
        self.may_write()?;
        let preconditions =
            Some(Preconditions { uid: object.uid(), resource_version: object.resource_version() });
        let parameters = DeleteParams { preconditions, ..DeleteParams::default() };
        match tokio::time::timeout(WITHIN, api.delete(&object.name_any(), &parameters)).await {
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(()),
            other => answer(other).map(drop),
        }
    }

    pub fn may_write(&self) -> Result<(), Trouble> {
        self.leadership.require().map_err(|_| Trouble::NotLeading)
    }

    /// Asked before anything is taken away.
    pub async fn may_destroy(&self) -> Result<(), Trouble> {
        self.may_write()?;
        self.leadership.confirm().await.map_err(|_| Trouble::NotLeading)
    }
}

type Called<T> = Result<Result<T, kube::Error>, tokio::time::error::Elapsed>;

/// A refusal in words that hold nothing of what was sent: the API may quote an object back.
fn answer<T>(called: Called<T>) -> Result<T, Trouble> {
    match called {
        Ok(Ok(answer)) => Ok(answer),
        Ok(Err(kube::Error::Api(status))) if status.code == 409 => Err(Trouble::Conflict),
        Ok(Err(kube::Error::Api(status))) => Err(Trouble::Api(format!("{} {}", status.code, status.reason))),
        Ok(Err(_)) => Err(Trouble::Api("no answer".to_owned())),
        Err(_) => Err(Trouble::Api(format!("no answer within {} s", WITHIN.as_secs()))),
    }
}

/// The name of a database's record.
pub(super) fn record_name(id: &str) -> String {
    plain("db", id)
}

/// The name of the Secret that a claim's connection comes from.
pub(super) fn login_name(claim_uid: &str) -> String {
    plain("login", claim_uid)
}

/// The name of the Secret that holds a database's passwords.
pub(super) fn ledger_name(id: &str) -> String {
    plain("ledger", id)
}

/// UIDs are what the API made them; one that could be no part of a name gets one of ours.
fn plain(prefix: &str, id: &str) -> String {
    let is_plain = id.len() <= 63
        && id.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        && id.ends_with(|c: char| c.is_ascii_alphanumeric());
    match is_plain {
        true => format!("{prefix}-{id}"),
        false => format!("{prefix}-{}", Names::new(id, None).owner.as_str().trim_start_matches("c_")),
    }
}
