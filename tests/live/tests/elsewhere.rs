//! A second controller with another system namespace, on the same API: by mistake, or because a user tries something
//! out. It cannot see the resources of the first, and must not judge what claims hold there.

use conductor::model::{Kind, TypeId};
use conductor_controller::Options;
use conductor_live::{Calls, Controller, Side, Turn, on_both_apis, turn_on, until};
use http::Request;
use kube::api::{DeleteParams, DynamicObject};
use serde_json::{Value, json};

on_both_apis! {
    a_controller_of_another_system_namespace_ends_no_binding,
}

const CLAIM: Kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);

async fn put_pair(turn: &Turn, name: &str) {
    turn.put(json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabase",
        "metadata": {"name": name, "namespace": "conductor-system"},
        "spec": {"engine": "postgresql", "version": "16.2", "capacity": {"storage": "20Gi"}},
    }))
    .await;
    turn.put(json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "metadata": {"name": name, "namespace": "both"},
        "spec": {"engine": "postgresql", "resourceName": name},
    }))
    .await;
}

async fn bound(turn: &Turn, name: &str) -> DynamicObject {
    until(&format!("claim {name} is Bound"), async || {
        let claim = turn.claim("both", name).await?;
        (claim.data.pointer("/status/phase")? == "Bound").then_some(claim)
    })
    .await
}

/// What was said about the claims, by reason.
async fn notes(turn: &Turn, reason: &str) -> Vec<Value> {
    let request = Request::get("/apis/events.k8s.io/v1/namespaces/both/events").body(Vec::new());
    let events: Value = turn.client().request(request.expect("it is a path")).await.expect("the API lists");
    let items = events["items"].as_array().into_iter().flatten();
    items.filter(|event| event["reason"] == reason).cloned().collect()
}

async fn a_controller_of_another_system_namespace_ends_no_binding(side: Side) {
    let turn = turn_on(side).await;
    for namespace in ["both", "elsewhere"] {
        turn.namespace(namespace).await;
    }
    let first = Controller::alone(turn.controller_client());
    for name in ["one", "two"] {
        put_pair(&turn, name).await;
    }
    let before = bound(&turn, "one").await;
    bound(&turn, "two").await;
    // It waits, and each of the two refuses it with its own message.
    turn.put(json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "metadata": {"name": "waits", "namespace": "both"},
        "spec": {"engine": "postgresql", "version": ">= 99"},
    }))
    .await;

    let calls = Calls::default();
    let options = Options { lease: None, system_namespace: "elsewhere".to_owned(), ..Options::default() };
    let second = Controller::start(turn.client_through(&calls), options);
    let reports = until("the second reports what it does not manage", async || {
        Some(notes(&turn, "NotManaged").await).filter(|notes| notes.len() >= 2)
    })
    .await;
    for note in &reports {
        let text = note["note"].as_str().unwrap_or_default();
        assert!(
            text.contains("in namespace conductor-system, which this controller does not manage"),
            "{text}"
        );
        assert!(text.contains("its system namespace is elsewhere"), "{text}");
    }
    let contested = until("the contest is reported", async || {
        Some(notes(&turn, "StatusContested").await).filter(|notes| !notes.is_empty())
    })
    .await;
    let text = contested[0]["note"].as_str().unwrap_or_default();
    assert!(text.contains("a second controller with another system namespace"), "{text}");
    // What begins while both run is decided by the one that can see the resource.
    put_pair(&turn, "three").await;
    bound(&turn, "three").await;
    turn.objects(CLAIM, "both").delete("two", &DeleteParams::default()).await.expect("it is there");
    until("a claim that is deleted goes", async || turn.claim("both", "two").await.is_none().then_some(()))
        .await;
    second.stop().await.expect("it stops");

    let after = bound(&turn, "one").await;
    assert_eq!(after.data["status"], before.data["status"], "nothing was written to it");
    assert_eq!(bound(&turn, "three").await.data["status"]["resourceRef"]["name"], "three");
    assert!(notes(&turn, "Lost").await.is_empty(), "no claim was lost for a moment");
    let to_bound =
        calls.writes().into_iter().filter(|call| call.path.contains("relationaldatabaseclaims/one"));
    assert_eq!(to_bound.count(), 0, "{:#?}", calls.writes());
    let contest =
        calls.writes().into_iter().filter(|call| call.path.contains("relationaldatabaseclaims/waits"));
    let count = contest.count();
    assert!(count < 100, "{count} writes to a claim that waits");
    first.stop().await.expect("it stops");
}
