//! Operators as they are: slow, failing, flapping, late with what they have to say, refusing to let go. Each is stood
//! in for on either API, and what applications and administrators see of it is what is tested.

use conductor::model::{Kind, TypeId};
use conductor_live::operator::{self, ADDRESS, FLAPS, REFUSAL};
use conductor_live::{Calls, Controller, Side, Turn, kinds, on_both_apis, turn_on, until};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};
use std::time::Duration;
use tokio::task::JoinHandle;

const CLAIM: Kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);
const RESOURCE: Kind = Kind::Resource(TypeId::RELATIONAL_DATABASE);
const SYSTEM: &str = "conductor-system";

on_both_apis! {
    a_slow_operator_is_waited_for_and_nothing_is_made_twice,
    a_failing_operator_is_given_up_and_the_next_class_is_tried,
    what_is_stuck_is_given_up_at_the_deadline_and_a_restart_does_not_try_it_again,
    a_flapping_operator_unbinds_no_claim,
    a_status_that_comes_late_is_waited_for_with_the_key_that_is_missing,
    an_operator_that_refuses_deletion_is_reported_with_its_finalizer,
}

/// A class whose instances are treated in one manner.
fn class(manner: &str) -> Value {
    json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClass",
        "metadata": {"name": manner, "namespace": SYSTEM},
        "reclaimPolicy": "Delete",
        "template": {
            "apiVersion": "database.aws.conductor.io/v1alpha1", "kind": "RDSInstance",
            "spec": {"manner": manner},
        },
        "connection": {
            "host": "${objects.main.status.address}", "port": 5432, "database": "app",
            "username": "${secret.username}", "password": "${secret.password}", "secretRef": {"name": "login"},
        },
    })
}

fn claim(classes: &[&str]) -> Value {
    json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "metadata": {"name": "orders", "namespace": "shop"},
        "spec": {"engine": "postgresql", "classes": classes},
    })
}

/// A cluster with the kind, its operator, a Secret and a controller.
struct Scene {
    turn: Turn,
    operator: JoinHandle<()>,
    controller: Controller,
    calls: Calls,
}

impl Scene {
    async fn set(side: Side, classes: &[Value]) -> Scene {
        let turn = turn_on(side).await;
        turn.namespace("shop").await;
        turn.apply(&operator::definition());
        turn.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
        clear(&turn).await;
        turn.apply(&json!({
            "apiVersion": "v1", "kind": "Secret",
            "metadata": {"name": "login", "namespace": SYSTEM, "labels": {"conductor.io/publishable": "true"}},
            "stringData": {"username": "app", "password": "of-the-test"},
        }));
        let operator = tokio::spawn(operator::operate(turn.client()));
        let calls = Calls::default();
        let controller = Controller::alone(turn.client_through(&calls));
        for class in classes {
            turn.put(class.clone()).await;
        }
        Scene { turn, operator, controller, calls }
    }

    /// Nothing of it is left for the next test.
    async fn end(self) {
        self.controller.stop().await.expect("it stops");
        self.operator.abort();
        clear(&self.turn).await;
    }

    async fn resources(&self) -> Vec<DynamicObject> {
        let api = self.turn.objects(RESOURCE, SYSTEM);
        api.list(&ListParams::default()).await.expect("the API lists").items
    }

    async fn instances(&self) -> Vec<DynamicObject> {
        let api = kinds::api_of(&self.turn.client(), kinds::INSTANCE, Some(SYSTEM));
        api.list(&ListParams::default()).await.expect("the API lists").items
    }

    async fn claim(&self) -> Option<DynamicObject> {
        self.turn.claim("shop", "orders").await
    }

    /// Waits until a condition of the claim says so.
    async fn says(&self, kind: &str, reason: &str, text: &str) -> Value {
        let what = format!("{kind} of the claim says {reason} and {text}");
        until(&what, async || {
            let claim = self.claim().await?;
            condition(&claim, kind).filter(|c| c["reason"] == reason && contains(c, text))
        })
        .await
    }

    async fn is_bound(&self) -> String {
        until("the claim is Bound", async || {
            let claim = self.claim().await?;
            let name = claim.data.pointer("/status/resourceRef/name").and_then(Value::as_str)?;
            (claim.data["status"]["phase"] == "Bound").then(|| name.to_owned())
        })
        .await
    }

    async fn delete_claim(&self) {
        let api = self.turn.objects(CLAIM, "shop");
        api.delete("orders", &DeleteParams::default()).await.expect("it is there");
    }

    async fn all_gone(&self) {
        until("claim, resource and instances are gone", async || {
            let left = self.resources().await.len() + self.instances().await.len();
            (left == 0 && self.claim().await.is_none()).then_some(())
        })
        .await;
    }
}

/// Removes what other tests left, finalizers or not: no controller runs to withdraw what was published.
async fn clear(turn: &Turn) {
    let published = ["delete", "secrets,configmaps,services", "-n", "shop", "-l", "conductor.io/published"];
    turn.kubectl(&published);
    let api = kinds::api_of(&turn.client(), kinds::INSTANCE, Some(SYSTEM));
    let Ok(listed) = api.list(&ListParams::default()).await else { return };
    for instance in listed {
        let name = instance.metadata.name.unwrap_or_default();
        let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
        let _ = api.patch(&name, &PatchParams::default(), &bare).await;
        let _ = api.delete(&name, &DeleteParams::default()).await;
    }
}

fn condition(object: &DynamicObject, kind: &str) -> Option<Value> {
    let conditions = object.data.pointer("/status/conditions")?.as_array()?;
    conditions.iter().find(|c| c["type"] == kind).cloned()
}

fn contains(condition: &Value, text: &str) -> bool {
    condition["message"].as_str().is_some_and(|message| message.contains(text))
}

async fn a_slow_operator_is_waited_for_and_nothing_is_made_twice(side: Side) {
    let scene = Scene::set(side, &[class("slow")]).await;
    scene.turn.put(claim(&["slow"])).await;
    scene.says("Bound", "Provisioning", "from class slow").await;
    until("the resource shows what the operator says", async || {
        let resource = scene.resources().await.pop()?;
        condition(&resource, "Ready").filter(|c| contains(c, "Creating") || contains(c, "Configuring"))
    })
    .await;
    assert_ne!(scene.claim().await.expect("it is there").data["status"]["phase"], "Bound");
    scene.is_bound().await;
    scene.says("Ready", "ConnectionPublished", "orders").await;
    assert_eq!((scene.resources().await.len(), scene.instances().await.len()), (1, 1));
    let created =
        |c: &&conductor_live::Call| c.method == http::Method::POST && c.path.ends_with("/rdsinstances");
    assert_eq!(scene.calls.writes().iter().filter(created).count(), 1);
    scene.delete_claim().await;
    scene.all_gone().await;
    scene.end().await;
}

async fn a_failing_operator_is_given_up_and_the_next_class_is_tried(side: Side) {
    let scene = Scene::set(side, &[class("failing"), class("prompt")]).await;
    scene.turn.put(claim(&["failing", "prompt"])).await;
    let bound = scene.is_bound().await;
    let resource = scene.turn.resource(&bound).await.expect("it is there");
    assert_eq!(resource.data["spec"]["class"], "prompt");
    let refused = scene.claim().await.expect("it is there").data["status"]["refusedBy"][0].clone();
    assert_eq!(refused["class"], "failing");
    let why = refused["message"].as_str().unwrap_or_default();
    assert!(why.contains("no room for another instance"), "{why}");
    until("what was half made is reclaimed", async || {
        let manners: Vec<Value> =
            scene.instances().await.iter().map(|i| i.data["spec"]["manner"].clone()).collect();
        (manners == ["prompt"] && scene.resources().await.len() == 1).then_some(())
    })
    .await;
    scene.delete_claim().await;
    scene.all_gone().await;
    scene.end().await;
}

async fn what_is_stuck_is_given_up_at_the_deadline_and_a_restart_does_not_try_it_again(side: Side) {
    let mut stuck = class("stuck");
    stuck["deadline"] = json!("2s");
    let mut scene = Scene::set(side, &[stuck]).await;
    scene.turn.put(claim(&["stuck"])).await;
    scene.says("Bound", "ProvisioningFailed", "class stuck: it was not ready in the time").await;
    until("what was half made is reclaimed", async || {
        (scene.resources().await.is_empty() && scene.instances().await.is_empty()).then_some(())
    })
    .await;
    let next = Controller::alone(scene.turn.client_through(&scene.calls));
    std::mem::replace(&mut scene.controller, next).kill().await;
    // A claim that comes after it shows that the new controller has decided about this one too.
    let mut other = claim(&["stuck"]);
    other["metadata"]["name"] = json!("later");
    scene.turn.put(other).await;
    until("the later one is being made", async || (!scene.instances().await.is_empty()).then_some(())).await;
    scene.says("Bound", "ProvisioningFailed", "class stuck").await;
    let made = scene.calls.writes();
    let made =
        made.iter().filter(|c| c.method == http::Method::POST && c.path.ends_with("/relationaldatabases"));
    assert_eq!(made.count(), 2, "one for each claim");
    scene.end().await;
}

async fn a_flapping_operator_unbinds_no_claim(side: Side) {
    let scene = Scene::set(side, &[class("flapping")]).await;
    scene.turn.put(claim(&["flapping"])).await;
    let bound = scene.is_bound().await;
    let mut seen = Vec::new();
    until("the resource has come to rest", async || {
        let claim = scene.claim().await?;
        seen.push(claim.data["status"]["phase"].clone());
        let resource = scene.turn.resource(&bound).await?;
        let instance = scene.instances().await.pop()?;
        let rests = condition(&resource, "Ready").is_some_and(|c| c["status"] == "True");
        (rests && instance.data["status"]["phase"] == "Available" && seen.len() > 4 * FLAPS).then_some(())
    })
    .await;
    assert!(seen.iter().all(|phase| phase == "Bound"), "{seen:?}");
    scene.says("Ready", "ConnectionPublished", "orders").await;
    scene.end().await;
}

async fn a_status_that_comes_late_is_waited_for_with_the_key_that_is_missing(side: Side) {
    let scene = Scene::set(side, &[class("late")]).await;
    scene.turn.put(claim(&["late"])).await;
    scene.is_bound().await;
    scene.says("Ready", "ConnectionIncomplete", "host").await;
    scene.says("Ready", "ConnectionPublished", "orders").await;
    let host = ["get", "secret", "orders", "-n", "shop", "-o", "go-template={{.data.host | base64decode}}"];
    assert_eq!(scene.turn.kubectl(&host), ADDRESS);
    scene.end().await;
}

async fn an_operator_that_refuses_deletion_is_reported_with_its_finalizer(side: Side) {
    let scene = Scene::set(side, &[class("refusing")]).await;
    scene.turn.put(claim(&["refusing"])).await;
    let bound = scene.is_bound().await;
    until("the operator keeps it", async || {
        let instance = scene.instances().await.pop()?;
        instance.metadata.finalizers.filter(|f| f.iter().any(|f| f == REFUSAL))
    })
    .await;
    scene.delete_claim().await;
    until("the resource says what it waits for", async || {
        let resource = scene.turn.resource(&bound).await?;
        condition(&resource, "Ready").filter(|c| contains(c, REFUSAL) && contains(c, "requested at 20"))
    })
    .await;
    let writes = scene.calls.writes().len();
    tokio::time::sleep(Duration::from_secs(2)).await;
    assert_eq!(scene.calls.writes().len(), writes, "it is not written about again and again");
    let instance = scene.instances().await.pop().and_then(|i| i.metadata.name).expect("it is kept");
    let api = kinds::api_of(&scene.turn.client(), kinds::INSTANCE, Some(SYSTEM));
    let bare = Patch::Merge(json!({"metadata": {"finalizers": null}}));
    api.patch(&instance, &PatchParams::default(), &bare).await.expect("it is there");
    scene.all_gone().await;
    scene.end().await;
}
