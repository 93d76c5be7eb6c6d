//! The outside world of the tests: a kind `RDSInstance` and an operator that behaves as operators do. The field
//! `spec.manner` of an instance selects its behaviour: `slow`, `stuck`, `failing`, `flapping`, `late`, `refusing`, or none
//! for one that is ready a moment after its creation. It knows nothing of Conductor.

use crate::kinds::{INSTANCE, api_of};
use futures::TryStreamExt;
use kube::Client;
use kube::api::{DynamicObject, ListParams, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use std::pin::pin;
use std::time::Duration;
use tokio::task::JoinSet;

/// The address of every instance, the same in every run.
pub const ADDRESS: &str = "db.example.com";
/// The finalizer of an instance whose manner is `refusing`, until a test removes it.
pub const REFUSAL: &str = "stand-in.example.com/backup";
/// How long a slow one takes, and a late one after it is ready.
pub const PAUSE: Duration = Duration::from_secs(2);
/// How often a flapping one fails.
pub const FLAPS: usize = 5;

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

/// Runs until it is dropped.
pub async fn operate(client: Client) {
    let all = api_of(&client, INSTANCE, None);
    let mut slow = JoinSet::new();
    loop {
        let listed = all.list(&ListParams::default()).await;
        let revision = listed.ok().and_then(|list| list.metadata.resource_version).unwrap_or_default();
        if let Ok(stream) = all.watch(&WatchParams::default(), &revision).await {
            let mut stream = pin!(stream);
            while let Ok(Some(event)) = stream.try_next().await {
                if let WatchEvent::Added(made) = event {
                    let hand = Hand { client: client.clone(), made };
                    match hand.manner() {
                        Some(_) => drop(slow.spawn(hand.treat())),
                        None => hand.says(ready()).await,
                    }
                }
            }
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

fn ready() -> Value {
    json!({"phase": "Available", "address": ADDRESS})
}

/// One instance of the operator.
struct Hand {
    client: Client,
    made: DynamicObject,
}

impl Hand {
    fn manner(&self) -> Option<String> {
        self.made.data.pointer("/spec/manner").and_then(Value::as_str).map(str::to_owned)
    }

    async fn treat(self) {
        match self.manner().as_deref() {
            Some("slow") => {
                for phase in ["Pending", "Creating", "Configuring"] {
                    self.says(json!({"phase": phase})).await;
                    tokio::time::sleep(PAUSE / 3).await;
                }
                self.says(ready()).await;
            }
            Some("stuck") => self.says(json!({"phase": "Creating"})).await,
            Some("failing") => self.says(failed()).await,
            Some("flapping") => {
                for _ in 0..FLAPS {
                    self.says(ready()).await;
                    tokio::time::sleep(Duration::from_millis(200)).await;
                    self.says(json!({"phase": "Restarting"})).await;
                    tokio::time::sleep(Duration::from_millis(200)).await;
                }
                self.says(ready()).await;
            }
            Some("late") => {
                tokio::time::sleep(PAUSE).await;
                self.says(json!({"phase": "Available"})).await;
                tokio::time::sleep(PAUSE).await;
                self.says(ready()).await;
            }
            Some("refusing") => {
                let keep = json!({"metadata": {"finalizers": [REFUSAL]}});
                // Deleted already.
                let _ = self.api().patch(self.name(), &PatchParams::default(), &Patch::Merge(&keep)).await;
                self.says(ready()).await;
            }
            Some(_) | None => self.says(ready()).await,
        }
    }

    fn api(&self) -> kube::Api<DynamicObject> {
        api_of(&self.client, INSTANCE, self.made.metadata.namespace.as_deref())
    }

    fn name(&self) -> &str {
        self.made.metadata.name.as_deref().unwrap_or_default()
    }

    async fn says(&self, status: Value) {
        let status = json!({ "status": status });
        // A deleted one needs no status.
        let _ = self.api().patch_status(self.name(), &PatchParams::default(), &Patch::Merge(&status)).await;
    }
}

fn failed() -> Value {
    json!({"phase": "Failed", "message": "the account has no room for another instance"})
}
