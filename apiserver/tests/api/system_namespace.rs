//! The system namespace, which the controllers cannot do without: it cannot be deleted, and one whose deletion an
//! earlier version began is Active again at the next start.

use super::ask::{delete, get, merge, post};
use conductor_apiserver::{Embedded, Options};
use serde_json::json;
use std::path::PathBuf;
use std::time::{Duration, Instant};

const NAMESPACES: &str = "/api/v1/namespaces";
const HOME: &str = "conductor-system";
const RESOURCES: &str = "/apis/storage.conductor.io/v1alpha1/namespaces/conductor-system/relationaldatabases";

fn guarded() -> Options {
    Options { system_namespace: Some(HOME.to_owned()), ..Options::default() }
}

async fn with_a_held_resource(api: &Embedded) {
    for crd in conductor::api::crds() {
        let object = serde_json::to_value(&crd).expect("a definition is JSON");
        let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        assert_eq!(post(api, path, object).await.code, 201);
    }
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}});
    assert_eq!(post(api, NAMESPACES, namespace).await.code, 201);
    let resource = json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabase",
        "metadata": {"name": "db-1", "namespace": HOME, "finalizers": ["conductor.io/protect"]},
        "spec": {
            "engine": "postgresql", "version": "16.2",
            "claimRefs": [{"namespace": "shop", "name": "orders", "uid": "u-1"}],
        },
    });
    let created = post(api, RESOURCES, resource).await;
    assert_eq!(created.code, 201, "{:?}", created.body);
}

#[tokio::test]
async fn the_system_namespace_is_not_deleted_and_says_why() {
    let api = Embedded::in_memory_with(guarded());
    with_a_held_resource(&api).await;
    let refused = delete(&api, &format!("{NAMESPACES}/{HOME}")).await;
    assert_eq!(refused.code, 403, "{:?}", refused.body);
    let message = refused.body["message"].as_str().unwrap_or_default();
    assert!(message.contains("claim shop/orders holds a resource in it"), "{message}");
    assert_eq!(get(&api, &format!("{NAMESPACES}/{HOME}")).await.body["status"]["phase"], "Active");
    let other = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    post(&api, NAMESPACES, other).await;
    assert_eq!(delete(&api, &format!("{NAMESPACES}/shop")).await.code, 200, "others are deleted as ever");
}

#[tokio::test]
async fn a_system_namespace_being_deleted_is_active_after_a_start() {
    let folder = std::env::temp_dir().join(format!("conductor-embedded-terminating-{}", std::process::id()));
    let _ = std::fs::remove_dir_all(&folder);
    let api = Embedded::open(&folder).expect("it opens");
    with_a_held_resource(&api).await;
    assert_eq!(delete(&api, &format!("{NAMESPACES}/{HOME}")).await.code, 200);
    assert_eq!(get(&api, &format!("{NAMESPACES}/{HOME}")).await.body["status"]["phase"], "Terminating");
    drop(api);
    let api = open(&folder).await;
    assert!(api.restored_system_namespace());
    let found = get(&api, &format!("{NAMESPACES}/{HOME}")).await.body;
    assert_eq!(
        (&found["status"]["phase"], found["metadata"].get("deletionTimestamp")),
        (&json!("Active"), None)
    );
    let kept = get(&api, &format!("{RESOURCES}/db-1")).await.body;
    assert_eq!(kept["spec"]["claimRefs"][0]["name"], "orders", "what is held is kept");
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}});
    assert_eq!(post(&api, &format!("{NAMESPACES}/{HOME}/configmaps"), map).await.code, 201);
    drop(api);
    let _ = std::fs::remove_dir_all(folder);
}

/// The thread that writes ends with the last of the API.
async fn open(folder: &PathBuf) -> Embedded {
    let end = Instant::now() + Duration::from_secs(60);
    loop {
        match Embedded::open_with(folder, guarded()) {
            Ok(api) => return api,
            Err(error) => assert!(Instant::now() < end, "{error}"),
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test]
async fn what_is_ignored_where_it_is_is_warned_about_when_it_is_written() {
    let api = Embedded::in_memory_with(guarded());
    with_a_held_resource(&api).await;
    let shop = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}});
    post(&api, NAMESPACES, shop).await;
    let object = |kind: &str, more: serde_json::Value| {
        let mut object =
            json!({"apiVersion": "storage.conductor.io/v1alpha1", "kind": kind, "metadata": {"name": "x"}});
        object.as_object_mut().expect("a map").extend(more.as_object().cloned().expect("a map"));
        object
    };
    let ignored = "is read in the system namespace only";
    let quotes = "write it in quotes, because 5.10 without them is 5.1";
    for (namespace, plural, kind, more, expected) in [
        (
            "shop",
            "relationaldatabaseclasses",
            "RelationalDatabaseClass",
            json!({"engine": "mysql"}),
            vec![ignored],
        ),
        (HOME, "relationaldatabaseclasses", "RelationalDatabaseClass", json!({"engine": "mysql"}), vec![]),
        (
            "shop",
            "relationaldatabases",
            "RelationalDatabase",
            json!({"spec": {"engine": "mysql", "version": 5.1}}),
            vec![ignored, quotes],
        ),
        (
            HOME,
            "relationaldatabases",
            "RelationalDatabase",
            json!({"spec": {"engine": "mysql", "version": "5.10"}}),
            vec![],
        ),
        (
            "shop",
            "relationaldatabaseclaims",
            "RelationalDatabaseClaim",
            json!({"spec": {"version": 15}}),
            vec![],
        ),
    ] {
        let path = format!("/apis/storage.conductor.io/v1alpha1/namespaces/{namespace}/{plural}");
        let created = post(&api, &path, object(kind, more)).await;
        assert_eq!(created.code, 201, "{:?}", created.body);
        assert_eq!(created.warnings.len(), expected.len(), "{namespace} {kind}: {:?}", created.warnings);
        for (warning, expected) in created.warnings.iter().zip(expected) {
            assert!(warning.starts_with("299 - ") && warning.contains(expected), "{warning}");
        }
    }
    let path = "/apis/storage.conductor.io/v1alpha1/namespaces/shop/relationaldatabaseclaims/x";
    let edited = merge(&api, path, json!({"spec": {"version": 5.1}})).await;
    assert!(edited.code == 200 && edited.warnings.concat().contains(quotes), "{:?}", edited.warnings);
    let plain = Embedded::in_memory_with(Options::default());
    assert_eq!(
        post(
            &plain,
            NAMESPACES,
            json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
        )
        .await
        .code,
        201
    );
    let crd = conductor::api::crds().into_iter().find(|crd| crd.spec.names.plural == "relationaldatabases");
    let path = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
    post(&plain, path, serde_json::to_value(crd).expect("a definition is JSON")).await;
    let path = "/apis/storage.conductor.io/v1alpha1/namespaces/shop/relationaldatabases";
    let created = post(
        &plain,
        path,
        object("RelationalDatabase", json!({"spec": {"engine": "mysql", "version": 5.1}})),
    )
    .await;
    assert_eq!(
        (created.code, created.warnings.len()),
        (201, 0),
        "which namespace is the system's is not known"
    );
}
