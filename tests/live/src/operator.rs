//! The outside world of the trials: a kind `RDSInstance` and an operator that has each of them ready a moment
//! after it was made. It knows nothing of Conductor.

use crate::kinds::{INSTANCE, api_of};
use futures::TryStreamExt;
use kube::Client;
use kube::api::{ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use std::pin::pin;
use std::time::Duration;

/// The definition of the kind, for `kubectl apply`.
pub fn definition() -> Value {
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": "rdsinstances.database.aws.conductor.io"},
        "spec": {
            "group": "database.aws.conductor.io", "scope": "Namespaced",
            "names": {"kind": INSTANCE, "plural": "rdsinstances"},
            "versions": [{"name": "v1alpha1", "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}],
        },
    })
}

/// Works until it is dropped.
pub async fn operate(client: Client) {
    let all = api_of(&client, INSTANCE, None);
    loop {
        let listed = all.list(&ListParams::default()).await;
        let revision = listed.ok().and_then(|list| list.metadata.resource_version).unwrap_or_default();
        if let Ok(stream) = all.watch(&WatchParams::default(), &revision).await {
            let mut stream = pin!(stream);
            while let Ok(Some(event)) = stream.try_next().await {
                if let WatchEvent::Added(made) = event {
                    make_ready(&client, &made).await;
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

async fn make_ready(client: &Client, made: &kube::api::DynamicObject) {
    let (name, namespace) = (made.metadata.name.as_deref(), made.metadata.namespace.as_deref());
    let ready = json!({"status": {"phase": "Available"}});
    let api = api_of(client, INSTANCE, namespace);
    // One that is gone already needs no status.
    let _ = api.patch_status(name.unwrap_or_default(), &PatchParams::default(), &Patch::Merge(&ready)).await;
}
