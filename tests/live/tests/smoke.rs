//! The main job, on a real API server and on the embedded one: claims bind, are released and counted, with no call too many.
//! Faults and crashes are in files of their own.

use conductor::model::{Kind, TypeId};
use conductor_controller::{Error, LeaseOptions, Options};
use conductor_live::{Call, Calls, Controller, Side, Turn, on_both_apis, root, turn_on, until};
use http::{Method, Request};
use kube::api::{DeleteParams, DynamicObject, ListParams};
use serde_json::{Value, json};
use std::time::Duration;

on_both_apis! {
    the_seed_binds_with_four_writes_and_then_rests,
    a_retained_resource_outlives_its_claim_and_a_deleted_one_goes_with_it,
    a_quota_reports_what_is_used_of_it,
    claims_are_followed_for_databases_from_the_first_server_on,
    one_leads_the_other_takes_over_and_who_lost_the_lease_ends,
}

const CLAIM: Kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);

fn phase(object: &DynamicObject) -> &str {
    object.data.pointer("/status/phase").and_then(Value::as_str).unwrap_or_default()
}

/// Waits until a claim is in a phase, and gives it.
async fn claim_in(turn: &Turn, namespace: &str, name: &str, wanted: &str) -> DynamicObject {
    let what = format!("claim {namespace}/{name} in phase {wanted}");
    until(&what, async || turn.claim(namespace, name).await.filter(|claim| phase(claim) == wanted)).await
}

async fn resource_in(turn: &Turn, name: &str, wanted: &str) -> DynamicObject {
    let what = format!("resource {name} in phase {wanted}");
    until(&what, async || turn.resource(name).await.filter(|resource| phase(resource) == wanted)).await
}

fn database(name: &str, policy: &str) -> Value {
    json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabase",
        "metadata": {"name": name, "namespace": "conductor-system"},
        "spec": {
            "engine": "postgresql", "version": "16.2", "capacity": {"storage": "20Gi"},
            "reclaimPolicy": policy,
        },
    })
}

fn claim(namespace: &str, name: &str) -> Value {
    json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"engine": "postgres", "version": "16", "resources": {"requests": {"storage": "10Gi"}}},
    })
}

async fn delete_claim(turn: &Turn, namespace: &str, name: &str) {
    turn.objects(CLAIM, namespace).delete(name, &DeleteParams::default()).await.expect("it is there");
}

/// Waits until no write has been sent for a while, and gives how many there were.
async fn settled(calls: &Calls) -> usize {
    until("no write for two seconds", async || {
        let before = calls.writes().len();
        tokio::time::sleep(Duration::from_secs(2)).await;
        (calls.writes().len() == before).then_some(before)
    })
    .await
}

async fn the_seed_binds_with_four_writes_and_then_rests(side: Side) {
    let turn = turn_on(side).await;
    turn.namespace("wordpress").await;
    let seeds = root("tests/fixtures/seed-004");
    let apply = |file: &str| turn.kubectl(&["apply", "-f", &seeds.join(file).display().to_string()]);
    apply("relational-database-class.yaml");
    apply("relational-database.yaml");
    let calls = Calls::default();
    let controller = Controller::alone(turn.client_through(&calls));
    // What is done for a resource without a claim is not part of a bind.
    let before = settled(&calls).await;
    apply("relational-database-claim.yaml");
    claim_in(&turn, "wordpress", "wordpress-db", "Bound").await;
    let writes = settled(&calls).await;
    assert!(writes - before <= 4, "{:#?}", &calls.writes()[before..]);

    let claim = turn.claim("wordpress", "wordpress-db").await.expect("it is there");
    let resource = turn.resource("database-445").await.expect("it is there");
    assert_eq!(claim.data["status"]["resourceRef"]["name"], "database-445");
    assert_eq!(claim.data["status"]["resourceRef"]["uid"], json!(resource.metadata.uid));
    assert_eq!(claim.metadata.finalizers, Some(vec!["conductor.io/claim-protection".to_owned()]));
    assert_eq!(resource.metadata.finalizers, Some(vec!["conductor.io/resource-protection".to_owned()]));
    let held = &resource.data["spec"]["claimRefs"];
    assert_eq!(held[0]["uid"], json!(claim.metadata.uid));
    assert_eq!(held[0]["requests"]["storage"], "25Gi");
    assert_eq!(held.as_array().map(Vec::len), Some(1));

    let bound =
        until("an Event about the bind", async || find_event(&turn, "wordpress", "Bound").await).await;
    assert_eq!(bound["regarding"]["name"], "wordpress-db");
    assert_eq!(bound["note"], "bound to database-445");

    // A new controller finds everything as it should be and writes nothing at all.
    controller.stop().await.expect("it stops");
    let again = Calls::default();
    let controller = Controller::alone(turn.client_through(&again));
    let watches = |calls: &Calls| calls.all().iter().filter(|call| call.method == Method::GET).count();
    until("every kind is watched", async || (watches(&again) >= 16).then_some(())).await;
    assert_eq!(settled(&again).await, 0, "{:#?}", again.writes());
    controller.stop().await.expect("it stops");
}

async fn find_event(turn: &Turn, namespace: &str, reason: &str) -> Option<Value> {
    let path = format!("/apis/events.k8s.io/v1/namespaces/{namespace}/events");
    let request = Request::get(path).body(Vec::new()).expect("it is a path");
    let events: Value = turn.client().request(request).await.expect("the API lists");
    events["items"].as_array()?.iter().find(|event| event["reason"] == reason).cloned()
}

async fn a_retained_resource_outlives_its_claim_and_a_deleted_one_goes_with_it(side: Side) {
    let turn = turn_on(side).await;
    turn.namespace("release").await;
    let controller = Controller::alone(turn.controller_client());
    for (name, policy) in [("kept", "Retain"), ("gone", "Delete")] {
        turn.put(database(name, policy)).await;
        let mut named = claim("release", name);
        named["spec"]["resourceName"] = json!(name);
        turn.put(named).await;
        claim_in(&turn, "release", name, "Bound").await;
        resource_in(&turn, name, "Bound").await;
        delete_claim(&turn, "release", name).await;
        until("the claim is gone", async || turn.claim("release", name).await.is_none().then_some(())).await;
    }
    let kept = resource_in(&turn, "kept", "Released").await;
    assert_eq!(kept.data["spec"]["claimRefs"][0]["name"], "kept", "it still shows its last claim");
    until("the resource is gone", async || turn.resource("gone").await.is_none().then_some(())).await;
    // What was released is not given to the next.
    turn.put(claim("release", "next")).await;
    let next = claim_in(&turn, "release", "next", "Pending").await;
    let condition = &next.data["status"]["conditions"][0];
    assert_eq!(condition["reason"], "NoMatch");
    assert_eq!(condition["message"], "0/1 resources fit: 1 phase");
    controller.stop().await.expect("it stops");
}

/// Where no claim can be on a server of ours, the part that makes databases asks nothing about claims.
async fn claims_are_followed_for_databases_from_the_first_server_on(side: Side) {
    let turn = turn_on(side).await;
    turn.namespace("plain").await;
    let calls = Calls::default();
    // Timeouts distinguish the engine's watches from the others.
    let watch_timeout = Duration::from_secs(280);
    let options = Options { lease: None, databases: true, watch_timeout, ..Options::default() };
    let controller = Controller::start(turn.client_through(&calls), options);
    let others_watch = |kind: &str| {
        let is_on = |call: &Call| call.path.ends_with(&format!("/{kind}")) && call.query.contains("watch=");
        calls.all().iter().any(|call| is_on(call) && !call.query.contains("timeoutSeconds=280"))
    };
    until("records are watched", async || others_watch("logicaldatabases").then_some(())).await;
    turn.put(database("plain", "Retain")).await;
    turn.put(claim("plain", "app")).await;
    claim_in(&turn, "plain", "app", "Bound").await;
    settled(&calls).await;
    let is_followed = || others_watch("relationaldatabaseclaims") || others_watch("relationaldatabases");
    assert!(!is_followed(), "only the engine watches claims and resources: {:#?}", calls.all());
    assert!(!calls.all().iter().any(|call| call.path.contains("/logicaldatabases/")), "{:#?}", calls.all());

    turn.put(json!({
        "apiVersion": "database.conductor.io/v1alpha1", "kind": "DatabaseServer",
        "metadata": {"name": "away", "namespace": "conductor-system"},
        "spec": {
            "engine": "postgresql", "host": "127.0.0.1", "port": 1,
            "admin": {"secretName": "absent"},
        },
    }))
    .await;
    until("claims and resources are followed for it", async || {
        (others_watch("relationaldatabaseclaims") && others_watch("relationaldatabases")).then_some(())
    })
    .await;
    controller.stop().await.expect("it stops");
}

async fn a_quota_reports_what_is_used_of_it(side: Side) {
    let turn = turn_on(side).await;
    turn.namespace("counted").await;
    turn.put(json!({
        "apiVersion": "conductor.io/v1alpha1", "kind": "ClaimQuota",
        "metadata": {"name": "few", "namespace": "counted"},
        "spec": {"limits": [{"claims": 1, "requests": {"storage": "50Gi"}}]},
    }))
    .await;
    for name in ["one", "two"] {
        turn.put(database(name, "Retain")).await;
    }
    let controller = Controller::alone(turn.controller_client());
    turn.put(claim("counted", "first")).await;
    claim_in(&turn, "counted", "first", "Bound").await;
    turn.put(claim("counted", "second")).await;
    let second = claim_in(&turn, "counted", "second", "Pending").await;
    assert_eq!(second.data["status"]["conditions"][0]["reason"], "QuotaExceeded");
    let used = || async {
        let quotas = turn.objects(Kind::Quota, "counted").list(&ListParams::default()).await;
        quotas.expect("the API lists").items[0].data["status"].clone()
    };
    let status = until("the quota counts one claim", async || {
        Some(used().await).filter(|status| status["used"][0]["claims"] == 1)
    })
    .await;
    assert_eq!(status["used"][0]["requests"]["storage"], "10Gi");
    assert_eq!(status["summary"], "claims 1/1, storage 10Gi/50Gi");
    delete_claim(&turn, "counted", "first").await;
    claim_in(&turn, "counted", "second", "Bound").await;
    controller.stop().await.expect("it stops");
}

/// A candidate whose lease runs out in a few seconds.
fn candidate(name: &str) -> Options {
    let lease = LeaseOptions {
        duration: Duration::from_secs(4),
        renew_deadline: Duration::from_secs(3),
        retry: Duration::from_millis(500),
        ..LeaseOptions::default()
    };
    Options { identity: name.to_owned(), lease: Some(lease), ..Options::default() }
}

async fn holder(turn: &Turn) -> Option<Value> {
    let path = "/apis/coordination.k8s.io/v1/namespaces/conductor-system/leases/conductor";
    let request = Request::get(path).body(Vec::new()).expect("it is a path");
    let lease: Option<Value> = turn.client().request(request).await.ok();
    lease.map(|lease| lease["spec"]["holderIdentity"].clone())
}

async fn one_leads_the_other_takes_over_and_who_lost_the_lease_ends(side: Side) {
    let turn = turn_on(side).await;
    turn.namespace("led").await;
    let led_by = async |name: &str| {
        until(&format!("{name} leads"), async || holder(&turn).await.filter(|held| held == name)).await
    };
    let first = Controller::start(turn.controller_client(), candidate("first"));
    led_by("first").await;
    let calls = Calls::default();
    let second = Controller::start(turn.client_through(&calls), candidate("second"));
    turn.put(database("one", "Retain")).await;
    turn.put(claim("led", "one")).await;
    claim_in(&turn, "led", "one", "Bound").await;
    assert_eq!(calls.writes(), [], "who stands by writes nothing");

    first.kill().await;
    turn.put(database("two", "Retain")).await;
    turn.put(claim("led", "two")).await;
    claim_in(&turn, "led", "two", "Bound").await;
    led_by("second").await;

    turn.put(json!({
        "apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
        "metadata": {"name": "conductor", "namespace": "conductor-system"},
        "spec": {"holderIdentity": "thief"},
    }))
    .await;
    match second.end().await {
        Err(Error::LeaseLost(lost)) => assert!(lost.why.contains("thief"), "{lost}"),
        other => panic!("{other:?}"),
    }
    let (before, name) = (calls.writes().len(), "three");
    turn.put(database(name, "Retain")).await;
    turn.put(claim("led", name)).await;
    tokio::time::sleep(Duration::from_secs(1)).await;
    assert_eq!(calls.writes().len(), before, "who lost the lease writes nothing more");
}
