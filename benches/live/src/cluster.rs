//! The API server that is measured, and a client that asks it many things at a time.

use anyhow::{Context, Result, ensure};
use conductor_controlplane::{ControlPlane, Part};
use futures::{StreamExt, TryStreamExt, stream};
use http::Request;
use kube::Client;
use serde_json::{Value, json};

/// Calls on their way at the same time when objects are made.
const PARALLEL: usize = 32;

/// One control plane with our kinds installed.
pub struct Cluster {
    pub plane: ControlPlane,
    pub client: Client,
}

impl Cluster {
    pub async fn start() -> Result<Cluster> {
        let plane = ControlPlane::start().context("the control plane does not start")?;
        let crds = concat!(env!("CARGO_MANIFEST_DIR"), "/../../crds");
        for arguments in [
            &["apply", "--server-side", "-f", crds][..],
            &["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"],
            &["create", "namespace", "conductor-system"],
            &["create", "namespace", "bench"],
        ] {
            let output = plane.kubectl(arguments)?;
            ensure!(output.status.success(), "kubectl: {}", String::from_utf8_lossy(&output.stderr));
        }
        let config = conductor_controller::find_cluster(Some(plane.kubeconfig()), None).await?;
        let client = conductor_controller::connect(config)?;
        Ok(Cluster { plane, client })
    }

    /// Makes objects, many at a time.
    pub async fn create_all(&self, objects: Vec<(String, Value)>) -> Result<()> {
        let made = stream::iter(objects)
            .map(|(path, object)| async move { self.create(&path, &object).await })
            .buffer_unordered(PARALLEL);
        made.try_for_each(|_| async { Ok(()) }).await
    }

    /// Makes one object.
    pub async fn create(&self, path: &str, object: &Value) -> Result<Value> {
        let request = Request::post(path).header("Content-Type", "application/json");
        Ok(self.client.request(request.body(serde_json::to_vec(object)?)?).await?)
    }

    /// Changes an object.
    pub async fn patch(&self, path: &str, patch: &Value) -> Result<Value> {
        let request = Request::patch(path).header("Content-Type", "application/merge-patch+json");
        Ok(self.client.request(request.body(serde_json::to_vec(patch)?)?).await?)
    }

    /// Changes an object's status.
    pub async fn patch_status(&self, path: &str, status: Value) -> Result<()> {
        self.patch(&format!("{path}/status"), &json!({ "status": status })).await?;
        Ok(())
    }

    /// How many objects of a collection are in a phase.
    pub async fn count_phase(&self, collection: &str, phase: &str) -> Result<usize> {
        let list: Value = self.client.request(Request::get(collection).body(Vec::new())?).await?;
        let items = list["items"].as_array().map(Vec::as_slice).unwrap_or_default();
        Ok(items.iter().filter(|item| item.pointer("/status/phase") == Some(&json!(phase))).count())
    }

    /// The processes of the control plane that run, by name.
    pub fn processes(&self) -> Vec<(&'static str, u32)> {
        let parts = [
            ("kube-apiserver", Part::ApiServer),
            ("etcd", Part::Etcd),
            ("kube-controller-manager", Part::ControllerManager),
        ];
        parts.into_iter().filter_map(|(name, part)| Some((name, self.plane.pid(part)?))).collect()
    }
}
