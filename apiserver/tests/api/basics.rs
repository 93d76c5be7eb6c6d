//! Objects come, change and go.

use super::ask::{ask_with, delete, get, merge, post, put};
use conductor_apiserver::Embedded;
use http::Method;
use serde_json::{Value, json};
use std::sync::Arc;

const MAPS: &str = "/api/v1/namespaces/default/configmaps";

fn map(name: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"a": "1"}})
}

#[tokio::test]
async fn an_object_is_created_once_changed_and_deleted() {
    let api = Embedded::in_memory();
    let created = post(&api, MAPS, map("one")).await;
    assert_eq!(created.code, 201, "{}", created.body);
    assert!(created.body["metadata"]["uid"].is_string());
    let again = post(&api, MAPS, map("one")).await;
    assert_eq!((again.code, &again.body["reason"]), (409, &json!("AlreadyExists")));
    assert_eq!(again.body["message"], "configmaps \"one\" already exists");
    let path = format!("{MAPS}/one");
    let patched = merge(&api, &path, json!({"data": {"b": "2", "a": null}})).await;
    assert_eq!((patched.code, &patched.body["data"]), (200, &json!({"b": "2"})));
    let mut stale = created.body.clone();
    stale["data"] = json!({"c": "3"});
    let conflict = put(&api, &path, stale).await;
    assert_eq!((conflict.code, &conflict.body["reason"]), (409, &json!("Conflict")));
    let same = merge(&api, &path, json!({"data": {"b": "2"}})).await;
    assert_eq!(same.body["metadata"]["resourceVersion"], patched.body["metadata"]["resourceVersion"]);
    let deleted = delete(&api, &path).await;
    assert_eq!((deleted.code, &deleted.body["status"]), (200, &json!("Success")));
    assert_eq!(get(&api, &path).await.code, 404);
}

#[tokio::test]
async fn impersonation_is_refused() {
    let api = Embedded::in_memory();
    for header in [("impersonate-user", "alice"), ("Impersonate-Group", "ops"), ("impersonate-extra-a", "b")]
    {
        let headers = [header, ("user-agent", "tester/1.0")];
        let reply = ask_with(&api, Method::GET, MAPS, headers, String::new()).await;
        assert_eq!((reply.code, &reply.body["reason"]), (501, &json!("NotImplemented")), "{header:?}");
        assert!(
            reply.body["message"].as_str().is_some_and(|m| m.contains("impersonation")),
            "{}",
            reply.body
        );
    }
}

#[tokio::test]
async fn a_client_reads_its_own_user_and_discovery_lists_the_review() {
    let api = Embedded::in_memory();
    let group = "/apis/authentication.k8s.io/v1";
    let listed = get(&api, group).await;
    assert_eq!(listed.body["resources"][0]["kind"], "SelfSubjectReview", "{}", listed.body);
    let asked = json!({"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"});
    let review = post(&api, &format!("{group}/selfsubjectreviews"), asked).await;
    assert_eq!(review.code, 201, "{}", review.body);
    assert_eq!(review.body["status"]["userInfo"]["groups"], json!(["system:masters"]));
}

#[tokio::test]
async fn pages_of_a_list_are_of_one_revision() {
    let api = Embedded::in_memory();
    for name in ["a", "b", "c", "d"] {
        post(&api, MAPS, map(name)).await;
    }
    let first = get(&api, &format!("{MAPS}?limit=2")).await;
    assert_eq!(first.body["metadata"]["remainingItemCount"], 2);
    let token = first.body["metadata"]["continue"].as_str().expect("there is more").to_owned();
    delete(&api, &format!("{MAPS}/c")).await;
    post(&api, MAPS, map("bb")).await;
    let second = get(&api, &format!("{MAPS}?limit=2&continue={token}")).await;
    let names: Vec<_> =
        second.body["items"].as_array().unwrap().iter().map(|item| &item["metadata"]["name"]).collect();
    assert_eq!(names, ["c", "d"]);
    assert_eq!(second.body["metadata"]["resourceVersion"], first.body["metadata"]["resourceVersion"]);
    api.compact();
    let late = get(&api, &format!("{MAPS}?limit=2&continue={token}")).await;
    assert_eq!((late.code, &late.body["reason"]), (410, &json!("Expired")));
    assert!(late.body["metadata"]["continue"].is_string());
}

/// The last contents of a namespace go at the same moment: the sweep after one write meets that after another.
#[tokio::test(flavor = "multi_thread", worker_threads = 8)]
async fn a_namespace_goes_however_its_last_contents_meet() {
    const HELD: [&str; 8] = ["a", "b", "c", "d", "e", "f", "g", "h"];
    for round in 0..500 {
        let api = Arc::new(Embedded::in_memory());
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
        post(&api, "/api/v1/namespaces", namespace).await;
        let maps = "/api/v1/namespaces/team/configmaps";
        for name in HELD {
            let mut held = map(name);
            held["metadata"]["finalizers"] = json!(["example.com/hold"]);
            post(&api, maps, held).await;
        }
        delete(&api, "/api/v1/namespaces/team").await;
        let freed = HELD.map(|name| {
            let api = Arc::clone(&api);
            let free = json!({"metadata": {"finalizers": null}});
            tokio::spawn(async move { merge(&api, &format!("{maps}/{name}"), free).await.code })
        });
        for one in freed {
            assert_eq!(one.await.unwrap(), 200);
        }
        assert_eq!(get(&api, "/api/v1/namespaces/team").await.code, 404, "round {round}");
    }
}

#[tokio::test]
async fn a_namespace_goes_with_everything_in_it() {
    let api = Embedded::in_memory();
    let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    assert_eq!(post(&api, "/api/v1/namespaces", namespace).await.code, 201);
    let maps = "/api/v1/namespaces/team/configmaps";
    post(&api, maps, map("plain")).await;
    let mut held = map("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    post(&api, maps, held).await;
    assert_eq!(delete(&api, "/api/v1/namespaces/team").await.code, 200);
    assert_eq!(get(&api, &format!("{maps}/plain")).await.code, 404);
    let going = get(&api, "/api/v1/namespaces/team").await;
    assert_eq!(going.body["status"]["phase"], "Terminating");
    let late = post(&api, maps, map("late")).await;
    assert_eq!((late.code, &late.body["reason"]), (403, &json!("Forbidden")));
    assert_eq!(
        merge(&api, &format!("{maps}/held"), json!({"metadata": {"finalizers": null}})).await.code,
        200
    );
    assert_eq!(get(&api, "/api/v1/namespaces/team").await.code, 404);
}
