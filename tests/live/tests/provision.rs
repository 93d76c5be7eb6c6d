//! Provisioning on either API: a class of three objects, an operator that reports their outputs and creates a
//! Secret, and an application that finds its connection. Then changes, foreign objects, and the end.

use conductor::model::{Kind, TypeId};
use conductor_live::{Controller, Side, Turn, kinds, on_both_apis, operator, turn_on, until};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use serde_json::{Value, json};

const CLAIM: Kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);
const PASSWORD: &str = "a-password-of-the-test";

on_both_apis! {
    three_objects_become_a_connection_that_follows_them_and_goes_with_the_claim,
    a_foreign_secret_stays_and_no_password_is_logged,
}

fn object(id: &str, spec: Value) -> Value {
    let kind =
        json!({"apiVersion": "database.aws.conductor.io/v1alpha1", "kind": "RDSInstance", "spec": spec});
    json!({"id": id, "template": kind, "ready": "has(object.status.address)"})
}

fn class() -> Value {
    json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClass",
        "metadata": {"name": "three", "namespace": "conductor-system"},
        "reclaimPolicy": "Delete",
        "templates": [
            object("proxy", json!({"to": "${objects.server.status.address}", "extra": "yes"})),
            object("server", json!({"in": "${objects.net.status.address}", "size": "${resource.spec.capacity.storage}"})),
            object("net", json!({"for": "${claim.metadata.name}"})),
        ],
        "connection": {
            "host": "${objects.proxy.status.address}", "port": 5432, "database": "${claim.metadata.name}",
            "username": "${secret.user}", "password": "${secret.password}",
            "secretRef": {"name": "${objects.server.metadata.name}-login"},
        },
    })
}

fn claim(name: &str) -> Value {
    json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "metadata": {"name": name, "namespace": "shop"},
        "spec": {"engine": "postgresql", "class": "three", "resources": {"requests": {"storage": "10Gi"}}},
    })
}

/// The objects that were made, by id.
async fn parts(turn: &Turn) -> Vec<(String, DynamicObject)> {
    let api = kinds::api_of(&turn.client(), kinds::INSTANCE, Some("conductor-system"));
    let listed = api.list(&ListParams::default()).await.expect("the API lists");
    let id = |o: &DynamicObject| o.metadata.labels.as_ref().and_then(|l| l.get("conductor.io/part").cloned());
    let mut parts: Vec<_> = listed.items.into_iter().filter_map(|o| Some((id(&o)?, o))).collect();
    parts.sort_by(|one, other| one.0.cmp(&other.0));
    parts
}

async fn part(turn: &Turn, wanted: &str) -> DynamicObject {
    let found = async || parts(turn).await.into_iter().find(|(id, _)| id == wanted).map(|(_, part)| part);
    until(&format!("object {wanted} is made"), found).await
}

/// What the operator reports of an object.
async fn says(turn: &Turn, id: &str, address: &str) -> DynamicObject {
    let name = part(turn, id).await.metadata.name.unwrap_or_default();
    let api = kinds::api_of(&turn.client(), kinds::INSTANCE, Some("conductor-system"));
    let status = json!({"status": {"address": address}});
    api.patch_status(&name, &PatchParams::default(), &Patch::Merge(&status)).await.expect("it is there")
}

fn login(turn: &Turn, server: &DynamicObject, password: &str) {
    let (name, uid) = (server.metadata.name.clone().unwrap_or_default(), server.metadata.uid.clone());
    let secret = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": format!("{name}-login"), "namespace": "conductor-system", "ownerReferences": [
            {"apiVersion": "database.aws.conductor.io/v1alpha1", "kind": "RDSInstance", "name": name, "uid": uid}]},
        "stringData": {"user": "app", "password": password},
    });
    turn.apply(&secret);
}

async fn condition(turn: &Turn, claim: &str) -> Option<Value> {
    let claim = turn.claim("shop", claim).await?;
    let conditions = claim.data.pointer("/status/conditions")?.as_array()?.clone();
    conditions.into_iter().find(|c| c["type"] == "Ready")
}

async fn ready_is(turn: &Turn, claim: &str, reason: &str, text: &str) -> Value {
    let what = format!("Ready of {claim} says {reason} and {text}");
    let says = |c: &Value| c["reason"] == reason && c["message"].as_str().is_some_and(|m| m.contains(text));
    until(&what, async || condition(turn, claim).await.filter(says)).await
}

/// A key of the published Secret, in clear.
fn published(turn: &Turn, name: &str, key: &str) -> String {
    let template = format!("go-template={{{{.data.{key} | base64decode}}}}");
    turn.kubectl(&["get", "secret", name, "-n", "shop", "-o", &template])
}

async fn three_objects_become_a_connection_that_follows_them_and_goes_with_the_claim(side: Side) {
    let turn = turn_on(side).await;
    install(&turn).await;
    let controller = Controller::alone(turn.controller_client());
    turn.put(class()).await;
    turn.put(claim("orders")).await;

    says(&turn, "net", "n-1").await;
    let server = says(&turn, "server", "10.0.0.1").await;
    assert_eq!(server.data["spec"], json!({"in": "n-1", "size": "10Gi"}));
    assert_eq!(part(&turn, "proxy").await.data["spec"]["to"], "10.0.0.1");
    says(&turn, "proxy", "proxy.example.com").await;
    ready_is(&turn, "orders", "ConnectionIncomplete", "-login does not exist yet").await;
    login(&turn, &server, PASSWORD);
    ready_is(&turn, "orders", "ConnectionPublished", "orders").await;
    assert_eq!(published(&turn, "orders", "password"), PASSWORD);
    assert_eq!(
        published(&turn, "orders", "uri"),
        format!("postgresql://app:{PASSWORD}@proxy.example.com:5432/orders")
    );
    assert_eq!(
        turn.kubectl(&["get", "secret", "orders", "-n", "shop", "-o", "jsonpath={.type}"]),
        "servicebinding.io/postgresql"
    );
    assert_eq!(
        turn.kubectl(&["get", "service", "orders", "-n", "shop", "-o", "jsonpath={.spec.externalName}"]),
        "proxy.example.com"
    );
    let bound = turn.claim("shop", "orders").await.expect("it is there");
    assert_eq!(bound.data["status"]["binding"]["name"], "orders");

    // A password that is changed at the source, an output that moves, and an object that another client deleted.
    login(&turn, &server, "the-next-one");
    until("the next password is published", async || {
        (published(&turn, "orders", "password") == "the-next-one").then_some(())
    })
    .await;
    says(&turn, "proxy", "moved.example.com").await;
    until("the next host is published", async || {
        (published(&turn, "orders", "host") == "moved.example.com").then_some(())
    })
    .await;
    turn.kubectl(&["delete", "configmap", "orders", "-n", "shop"]);
    let config = ["get", "configmap", "orders", "-n", "shop", "-o", "jsonpath={.data.host}"];
    until("the ConfigMap is back", async || (turn.try_kubectl(&config) == "moved.example.com").then_some(()))
        .await;

    update_in_place(&turn).await;

    turn.objects(CLAIM, "shop").delete("orders", &DeleteParams::default()).await.expect("it is there");
    until("the claim is gone", async || turn.claim("shop", "orders").await.is_none().then_some(())).await;
    until("the objects are gone", async || parts(&turn).await.is_empty().then_some(())).await;
    let left = turn.kubectl(&[
        "get",
        "secrets,configmaps,services",
        "-n",
        "shop",
        "-l",
        "conductor.io/published",
        "-o",
        "name",
    ]);
    assert_eq!(left, "");
    controller.stop().await.expect("it stops");
}

/// A template that is edited changes its object by server-side apply: what is no longer wanted goes, what others
/// wrote stays, and it is still the same object.
async fn update_in_place(turn: &Turn) {
    let before = part(turn, "proxy").await;
    let name = before.metadata.name.clone().unwrap_or_default();
    let api = kinds::api_of(&turn.client(), kinds::INSTANCE, Some("conductor-system"));
    let theirs = json!({"spec": {"theirs": 1}});
    api.patch(&name, &PatchParams::default(), &Patch::Merge(&theirs)).await.expect("it is there");
    let listed = turn.objects(Kind::Resource(TypeId::RELATIONAL_DATABASE), "conductor-system");
    let resource = listed.list(&ListParams::default()).await.expect("the API lists").items.remove(0);
    let mut templates = resource.data["spec"]["templates"].clone();
    let at = templates
        .as_array()
        .and_then(|all| all.iter().position(|t| t["id"] == "proxy"))
        .expect("it is there");
    templates[at]["template"]["spec"] = json!({"to": "${objects.server.status.address}", "size": 2});
    let edit = json!({"spec": {"templates": templates}});
    let name = resource.metadata.name.unwrap_or_default();
    listed.patch(&name, &PatchParams::default(), &Patch::Merge(&edit)).await.expect("it is there");
    let wanted = json!({"to": "10.0.0.1", "size": 2, "theirs": 1});
    let after = until("the object follows its template", async || {
        Some(part(turn, "proxy").await).filter(|part| part.data["spec"] == wanted)
    })
    .await;
    assert_eq!(after.metadata.uid, before.metadata.uid);
    assert_eq!(after.data["status"]["address"], "moved.example.com");
}

async fn a_foreign_secret_stays_and_no_password_is_logged(side: Side) {
    let turn = turn_on(side).await;
    install(&turn).await;
    let theirs = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "mine", "namespace": "shop"},
        "stringData": {"own": "content"},
    });
    turn.apply(&theirs);
    let controller = Controller::alone(turn.controller_client());
    let admin = json!({
        "apiVersion": "v1", "kind": "Secret", "metadata": {"name": "admin", "namespace": "conductor-system"},
        "stringData": {"username": "app", "password": PASSWORD},
    });
    turn.apply(&admin);
    turn.put(json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabase",
        "metadata": {"name": "stands", "namespace": "conductor-system"},
        "spec": {
            "engine": "mysql", "version": "8.0.36", "capacity": {"storage": "20Gi"},
            "connection": {"host": "10.9.8.7", "port": 3306, "database": "app", "secretRef": "admin"},
        },
    }))
    .await;
    let mut asks = claim("mine");
    asks["spec"] = json!({"engine": "mysql", "resources": {"requests": {"storage": "1Gi"}}});
    turn.put(asks).await;
    ready_is(&turn, "mine", "SecretNotAllowed", "conductor.io/publishable=true").await;
    let mut allowed = admin.clone();
    allowed["metadata"]["labels"] = json!({"conductor.io/publishable": "true"});
    turn.apply(&allowed);
    ready_is(&turn, "mine", "SecretConflict", "Secret shop/mine").await;
    assert_eq!(published(&turn, "mine", "own"), "content");
    turn.kubectl(&["delete", "secret", "mine", "-n", "shop"]);
    ready_is(&turn, "mine", "ConnectionPublished", "mine").await;
    assert_eq!(published(&turn, "mine", "uri"), format!("mysql://app:{PASSWORD}@10.9.8.7:3306/app"));
    let slice = ["get", "endpointslice", "mine", "-n", "shop", "-o", "jsonpath={.endpoints[0].addresses[0]}"];
    assert_eq!(turn.kubectl(&slice), "10.9.8.7");
    let open = turn.kubectl(&[
        "get",
        "rdb,rdbc,rdbclass,events,configmaps,services,endpointslices",
        "-A",
        "-o",
        "yaml",
    ]);
    assert!(open.contains("ConnectionPublished") && !open.contains(PASSWORD), "{open}");
    turn.objects(CLAIM, "shop").delete("mine", &DeleteParams::default()).await.expect("it is there");
    until("the claim is gone", async || turn.claim("shop", "mine").await.is_none().then_some(())).await;
    let left =
        turn.kubectl(&["get", "secrets,configmaps,services,endpointslices", "-n", "shop", "-o", "name"]);
    assert_eq!(left, "");
    controller.stop().await.expect("it stops");
}

async fn install(turn: &Turn) {
    turn.namespace("shop").await;
    turn.apply(&operator::definition());
    turn.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
}
