//! Dependents follow their owners, in each of the three ways.

use super::ask::{ask, delete, get, merge, post};
use conductor_apiserver::Embedded;
use http::Method;
use serde_json::{Value, json};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

async fn make(api: &Embedded, name: &str, owner: Option<&Value>) -> Value {
    let mut map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
    if let Some(owner) = owner {
        map["metadata"]["ownerReferences"] = json!([{
            "apiVersion": "v1", "kind": "ConfigMap", "name": owner["metadata"]["name"],
            "uid": owner["metadata"]["uid"], "blockOwnerDeletion": true,
        }]);
    }
    let made = post(api, MAPS, map).await;
    assert_eq!(made.code, 201, "{}", made.body);
    made.body
}

async fn remove(api: &Embedded, name: &str, policy: &str) -> u16 {
    let options = json!({"apiVersion": "v1", "kind": "DeleteOptions", "propagationPolicy": policy});
    ask(api, Method::DELETE, &format!("{MAPS}/{name}"), options).await.code
}

async fn code(api: &Embedded, name: &str) -> u16 {
    get(api, &format!("{MAPS}/{name}")).await.code
}

#[tokio::test]
async fn dependents_go_with_their_owner() {
    let api = Embedded::in_memory();
    let owner = make(&api, "owner", None).await;
    let child = make(&api, "child", Some(&owner)).await;
    make(&api, "grandchild", Some(&child)).await;
    assert_eq!(remove(&api, "owner", "Background").await, 200);
    for name in ["owner", "child", "grandchild"] {
        assert_eq!(code(&api, name).await, 404, "{name}");
    }
}

#[tokio::test]
async fn orphans_stay_and_forget_their_owner() {
    let api = Embedded::in_memory();
    let owner = make(&api, "owner", None).await;
    make(&api, "child", Some(&owner)).await;
    assert_eq!(remove(&api, "owner", "Orphan").await, 200);
    assert_eq!(code(&api, "owner").await, 404);
    let child = get(&api, &format!("{MAPS}/child")).await;
    assert_eq!((child.code, child.body["metadata"].get("ownerReferences")), (200, None));
}

#[tokio::test]
async fn an_owner_waits_in_the_foreground_for_what_blocks_it() {
    let api = Embedded::in_memory();
    let owner = make(&api, "owner", None).await;
    make(&api, "child", Some(&owner)).await;
    merge(&api, &format!("{MAPS}/child"), json!({"metadata": {"finalizers": ["example.com/hold"]}})).await;
    assert_eq!(remove(&api, "owner", "Foreground").await, 200);
    let waiting = get(&api, &format!("{MAPS}/owner")).await;
    assert_eq!(waiting.body["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    assert!(get(&api, &format!("{MAPS}/child")).await.body["metadata"]["deletionTimestamp"].is_string());
    merge(&api, &format!("{MAPS}/child"), json!({"metadata": {"finalizers": null}})).await;
    assert_eq!((code(&api, "child").await, code(&api, "owner").await), (404, 404));
}

#[tokio::test]
async fn preconditions_protect_a_successor() {
    let api = Embedded::in_memory();
    let first = make(&api, "one", None).await;
    delete(&api, &format!("{MAPS}/one")).await;
    make(&api, "one", None).await;
    let options = json!({"preconditions": {"uid": first["metadata"]["uid"]}});
    let refused = ask(&api, Method::DELETE, &format!("{MAPS}/one"), options).await;
    assert_eq!((refused.code, &refused.body["reason"]), (409, &json!("Conflict")));
    assert_eq!(code(&api, "one").await, 200);
}

#[tokio::test]
async fn a_collection_goes_by_its_labels() {
    let api = Embedded::in_memory();
    for (name, label) in [("a", "x"), ("b", "y"), ("c", "x")] {
        let map = json!({
            "apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "labels": {"l": label}},
        });
        post(&api, MAPS, map).await;
    }
    let gone = delete(&api, &format!("{MAPS}?labelSelector=l%3Dx")).await;
    assert_eq!((gone.code, gone.body["items"].as_array().map(Vec::len)), (200, Some(2)));
    assert_eq!((code(&api, "a").await, code(&api, "b").await, code(&api, "c").await), (404, 200, 404));
}
