//! Publishing with exactly the rights of deploy/, by the real API server's own authoriser: no Secret can be listed where
//! claims are, and connections are published, repaired and withdrawn all the same; the admission policy refuses what is not Conductor's.
//! Who may do what else, the tests of the manifests say.

use conductor::model::{Kind, TypeId};
use conductor_controller::Options;
use conductor_live::{Controller, Turn, kinds, root, turn, until};
use kube::api::{DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, WatchParams};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::time::Duration;

const CLAIM: Kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);
const SYSTEM: &str = "conductor-system";
const PASSWORD: &str = "a-password-of-the-test";

/// The shipped roles, a database that stands somewhere, and a controller with its own account's rights.
async fn install(turn: &Turn) -> Controller {
    for namespace in ["shop", "other"] {
        turn.namespace(namespace).await;
    }
    for file in [
        "controller-roles.yaml",
        "publishing-roles.yaml",
        "admission-policy.yaml",
        // The namespace `shop`, as `conductor grant shop` prints it.
        "optional/publishing-in-a-namespace.yaml",
    ] {
        turn.kubectl(&["apply", "--server-side", "-f", &root("deploy").join(file).display().to_string()]);
    }
    let admin = json!({
        "apiVersion": "v1", "kind": "Secret",
        "metadata": {"name": "admin", "namespace": SYSTEM, "labels": {"conductor.io/publishable": "true"}},
        "stringData": {"username": "app", "password": PASSWORD},
    });
    turn.apply(&admin);
    turn.put(json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabase",
        "metadata": {"name": "stands", "namespace": SYSTEM},
        "spec": {
            "engine": "mysql", "version": "8.0.36", "capacity": {"storage": "20Gi"}, "sharing": {"maxClaims": 4},
            "connection": {"host": "db.example.com", "port": 3306, "database": "app", "secretRef": "admin"},
        },
    }))
    .await;
    // Resynced every two seconds: what the test deletes is restored in time.
    let recheck = Duration::from_secs(2);
    Controller::start(
        turn.account_client("conductor"),
        Options { lease: None, recheck, ..Options::default() },
    )
}

async fn claims(turn: &Turn, namespace: &str, name: &str) {
    turn.put(json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"engine": "mysql", "resources": {"requests": {"storage": "1Gi"}}},
    }))
    .await;
}

async fn ready_is(turn: &Turn, namespace: &str, claim: &str, reason: &str, text: &str) {
    let what = format!("Ready of {claim} says {reason} and {text}");
    let says = |c: &&Value| {
        c["type"] == "Ready"
            && c["reason"] == reason
            && c["message"].as_str().is_some_and(|message| message.contains(text))
    };
    until(&what, async || {
        let claim = turn.claim(namespace, claim).await?;
        let conditions = claim.data.pointer("/status/conditions")?.as_array()?.clone();
        conditions.iter().find(says).map(|_| ())
    })
    .await;
}

/// The password in a Secret of the namespace `shop`, where there is one.
async fn password(client: &Client, name: &str) -> Option<Value> {
    let api = kinds::api_of(client, kinds::SECRET, Some("shop"));
    Some(api.get_opt(name).await.expect("it may be read")?.data["data"]["password"].clone())
}

fn is_forbidden<T>(answer: Result<T, kube::Error>) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.code == 403)
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_live_and_end_without_the_right_to_list_secrets() {
    let turn = turn().await;
    let controller = install(&turn).await;
    let account = turn.account_client("conductor");
    claims(&turn, "shop", "mine").await;
    ready_is(&turn, "shop", "mine", "ConnectionPublished", "Secret mine").await;

    for namespace in [Some("shop"), Some("kube-system"), None] {
        let secrets = kinds::api_of(&account, kinds::SECRET, namespace);
        assert!(is_forbidden(secrets.list(&ListParams::default()).await), "list in {namespace:?}");
        let published = ListParams::default().labels("conductor.io/published");
        assert!(is_forbidden(secrets.list(&published).await), "list by label in {namespace:?}");
        assert!(is_forbidden(secrets.watch(&WatchParams::default(), "0").await), "watch in {namespace:?}");
        let gone = secrets.delete_collection(&DeleteParams::default(), &ListParams::default()).await;
        assert!(is_forbidden(gone), "deletecollection in {namespace:?}");
    }
    let sources = kinds::api_of(&account, kinds::SECRET, Some(SYSTEM));
    assert!(sources.list(&ListParams::default()).await.is_ok(), "connections come from the system namespace");
    let published = password(&account, "mine").await.expect("it is published");

    // Deleted, and edited, by another client.
    turn.kubectl(&["delete", "secret", "mine", "-n", "shop"]);
    until("the Secret is back", async || password(&account, "mine").await.filter(|p| *p == published)).await;
    let api = kinds::api_of(&turn.client(), kinds::SECRET, Some("shop"));
    let edit = json!({"stringData": {"password": "of-another-client"}});
    api.patch("mine", &PatchParams::default(), &Patch::Merge(&edit)).await.expect("it is there");
    until("the Secret is as it was", async || password(&account, "mine").await.filter(|p| *p == published))
        .await;

    // Renamed while no controller runs.
    controller.kill().await;
    let other = json!({"spec": {"connection": {"secretName": "login"}}});
    let claim = turn.objects(CLAIM, "shop");
    claim.patch("mine", &PatchParams::default(), &Patch::Merge(&other)).await.expect("it is there");
    let controller = install(&turn).await;
    until("the other Secret is there", async || password(&account, "login").await).await;
    until("the first one is gone", async || password(&account, "mine").await.is_none().then_some(())).await;
    ready_is(&turn, "shop", "mine", "ConnectionPublished", "Secret login").await;

    claim.delete("mine", &DeleteParams::default()).await.expect("it is there");
    until("the claim is gone", async || turn.claim("shop", "mine").await.is_none().then_some(())).await;
    let left = turn.kubectl(&[
        "get",
        "secrets,configmaps,services",
        "-n",
        "shop",
        "-o",
        "name",
        "-l",
        "conductor.io/published",
    ]);
    assert_eq!(left, "");
    controller.stop().await.expect("it stops");
}

#[tokio::test(flavor = "multi_thread")]
async fn connections_are_published_in_granted_namespaces_only() {
    let turn = turn().await;
    turn.kubectl(&["delete", "rolebinding", "conductor-publisher", "-n", "other", "--ignore-not-found"]);
    let controller = install(&turn).await;
    claims(&turn, "shop", "named").await;
    ready_is(&turn, "shop", "named", "ConnectionPublished", "Secret named").await;
    let account = turn.account_client("conductor");
    let elsewhere = kinds::api_of(&account, kinds::SECRET, Some("other"));
    until("the authoriser knows", async || is_forbidden(elsewhere.get_opt("x").await).then_some(())).await;
    claims(&turn, "other", "unnamed").await;
    ready_is(&turn, "other", "unnamed", "Publishing", "conductor grant other | kubectl apply -f -").await;
    // What that command prints: the same binding in the other namespace. No client touches the claim.
    let shop =
        std::fs::read_to_string(root("deploy/optional/publishing-in-a-namespace.yaml")).expect("it is there");
    let binding: Value =
        serde_saphyr::from_str(&shop.replace("namespace: shop", "namespace: other")).expect("YAML");
    turn.apply(&binding);
    ready_is(&turn, "other", "unnamed", "ConnectionPublished", "Secret unnamed").await;
    for (namespace, claim) in [("shop", "named"), ("other", "unnamed")] {
        turn.objects(CLAIM, namespace).delete(claim, &DeleteParams::default()).await.expect("it is there");
        until("the claim is gone", async || turn.claim(namespace, claim).await.is_none().then_some(())).await;
    }
    assert_eq!(password(&account, "named").await, None);
    turn.kubectl(&["delete", "rolebinding", "conductor-publisher", "-n", "other"]);
    controller.stop().await.expect("it stops");
}

/// An object as the controller would publish it, but for what the test changes.
fn published(kind: &str, name: &str, more: &Value) -> DynamicObject {
    let owner = json!({"apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "name": "mine", "uid": "a-uid"});
    let mut object = json!({"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": "shop",
        "labels": {"conductor.io/published": "true"}, "ownerReferences": [owner]}});
    for (field, value) in more.as_object().into_iter().flatten() {
        match field.as_str() {
            "labels" | "ownerReferences" | "annotations" => object["metadata"][field] = value.clone(),
            _ => object[field] = value.clone(),
        }
    }
    serde_json::from_value(object).expect("it is an object")
}

fn is_denied<T>(answer: &Result<T, kube::Error>, by: &str) -> bool {
    matches!(answer, Err(kube::Error::Api(status)) if status.message.contains("conductor-controller")
        && status.message.contains(by))
}

#[tokio::test(flavor = "multi_thread")]
async fn the_controllers_token_mints_no_token_and_takes_nothing() {
    let turn = turn().await;
    let controller = install(&turn).await;
    controller.stop().await.expect("it stops");
    let account = turn.account_client("conductor");
    let secrets = kinds::api_of(&account, kinds::SECRET, Some("shop"));
    let parameters = PostParams::default();
    let mint = published(
        "Secret",
        "minted",
        &json!({"type": "kubernetes.io/service-account-token",
        "annotations": {"kubernetes.io/service-account.name": "default"}}),
    );
    // A policy takes effect a little later than it is written.
    until("no token is minted", async || {
        let answer = secrets.create(&parameters, &mint).await;
        if answer.is_ok() {
            turn.kubectl(&["delete", "secret", "minted", "-n", "shop"]);
        }
        is_denied(&answer, "type Opaque").then_some(())
    })
    .await;
    let system = kinds::api_of(&account, kinds::SECRET, Some(SYSTEM));
    let mut at_home = mint.clone();
    at_home.metadata.namespace = Some(SYSTEM.to_owned());
    assert!(
        is_denied(&system.create(&parameters, &at_home).await, "type Opaque"),
        "nor in the system namespace"
    );

    let bare = published("Secret", "bare", &json!({"type": "Opaque", "labels": {}}));
    assert!(is_denied(&secrets.create(&parameters, &bare).await, "labels"));
    let orphan = published("Secret", "orphan", &json!({"type": "Opaque", "ownerReferences": []}));
    assert!(is_denied(&secrets.create(&parameters, &orphan).await, "owns"));
    let ours = published("Secret", "ours", &json!({"type": "Opaque"}));
    secrets.create(&parameters, &ours).await.expect("a Secret of its own may be created");
    secrets.delete("ours", &DeleteParams::default()).await.expect("and deleted");

    // What others have is neither changed, nor taken over by adding labels, nor deleted.
    let theirs = json!({"apiVersion": "v1", "kind": "ConfigMap",
        "metadata": {"name": "theirs", "namespace": "shop"}, "data": {"a": "b"}});
    turn.apply(&theirs);
    let config = kube::api::ApiResource::erase::<k8s_openapi::api::core::v1::ConfigMap>(&());
    let configs: Api<DynamicObject> = Api::namespaced_with(account.clone(), "shop", &config);
    let found = configs.get("theirs").await.expect("it may be read");
    let mut taken = published("ConfigMap", "theirs", &json!({"data": {"a": "c"}}));
    taken.metadata.resource_version = found.metadata.resource_version;
    assert!(is_denied(&configs.replace("theirs", &parameters, &taken).await, "not its own"));
    assert!(is_denied(&configs.delete("theirs", &DeleteParams::default()).await, "not its own"));
    turn.kubectl(&["delete", "configmap", "theirs", "-n", "shop"]);
}
