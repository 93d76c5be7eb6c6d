//! Watches send every change once, in order, from any revision that the log holds.

use super::ask::{delete, get, merge, post};
use conductor_apiserver::Embedded;
use futures::{StreamExt, TryStreamExt};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::Api;
use kube::api::{ObjectMeta, PostParams};
use kube::runtime::watcher;
use kube::runtime::{WatchStreamExt, reflector};
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn make(api: &Embedded, name: &str, label: &str) -> Value {
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"l": label}}});
    post(api, MAPS, map).await.body
}

/// Types and names of every event that a watch of one second sends.
async fn events(api: &Embedded, query: &str) -> Vec<String> {
    let reply = get(api, &format!("{MAPS}?watch=1&timeoutSeconds=1&{query}")).await;
    let text = match reply.body {
        Value::String(text) => text,
        one => one.to_string(),
    };
    let events = text.lines().map(|line| serde_json::from_str::<Value>(line).expect("a line is an event"));
    events
        .map(|event| {
            let name = event["object"]["metadata"]["name"].as_str().unwrap_or_default();
            let reason = event["object"]["reason"].as_str().unwrap_or_default();
            format!("{} {name}{reason}", event["type"].as_str().unwrap_or_default())
        })
        .collect()
}

#[tokio::test]
async fn a_watch_resumes_where_it_was() {
    let api = Embedded::in_memory();
    let first = make(&api, "a", "x").await;
    let revision = first["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    merge(&api, &format!("{MAPS}/a"), json!({"data": {"k": "v"}})).await;
    make(&api, "b", "x").await;
    delete(&api, &format!("{MAPS}/a")).await;
    let query = format!("resourceVersion={revision}");
    assert_eq!(events(&api, &query).await, ["MODIFIED a", "ADDED b", "DELETED a"]);
    assert_eq!(events(&api, "").await, ["ADDED b"]);
    api.compact();
    assert_eq!(events(&api, &query).await, ["ERROR Expired"]);
}

#[tokio::test]
async fn what_stops_matching_is_deleted_for_the_watcher() {
    let api = Embedded::in_memory();
    let first = make(&api, "a", "x").await;
    let revision = first["metadata"]["resourceVersion"].as_str().unwrap().to_owned();
    merge(&api, &format!("{MAPS}/a"), json!({"metadata": {"labels": {"l": "y"}}})).await;
    merge(&api, &format!("{MAPS}/a"), json!({"metadata": {"labels": {"l": "x"}}})).await;
    let query = format!("resourceVersion={revision}&labelSelector=l%3Dx");
    assert_eq!(events(&api, &query).await, ["DELETED a", "ADDED a"]);
}

#[tokio::test]
async fn a_streaming_list_says_when_it_has_said_everything() {
    let api = Embedded::in_memory();
    make(&api, "a", "x").await;
    let query = "sendInitialEvents=true&resourceVersionMatch=NotOlderThan&allowWatchBookmarks=true";
    assert_eq!(events(&api, query).await, ["ADDED a", "BOOKMARK ", "BOOKMARK "]);
}

#[tokio::test]
async fn the_reflector_of_the_client_library_runs_unchanged() {
    for streaming in [false, true] {
        let embedded = Embedded::in_memory();
        let maps: Api<ConfigMap> = Api::default_namespaced(embedded.client());
        let map = |name: &str| ConfigMap {
            metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
            ..ConfigMap::default()
        };
        maps.create(&PostParams::default(), &map("before")).await.expect("it can be created");
        let (reader, writer) = reflector::store();
        let config = watcher::Config::default();
        let config = if streaming { config.streaming_lists() } else { config };
        let events = watcher(maps.clone(), config).reflect(writer).applied_objects();
        let mut names = Box::pin(events.map_ok(|map| map.metadata.name.unwrap_or_default()));
        assert_eq!(names.next().await.expect("there is one").expect("it is sent"), "before");
        maps.create(&PostParams::default(), &map("after")).await.expect("it can be created");
        assert_eq!(names.next().await.expect("there is one").expect("it is sent"), "after");
        assert_eq!(reader.state().len(), 2);
    }
}
