//! The live controller on the embedded API: the job of the seed, from manifests to a bound claim.

use super::ask::{delete, get, merge, post};
use conductor_apiserver::Embedded;
use serde_json::{Value, json};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use tokio_util::sync::CancellationToken;

/// Generous: tests share the machine with builds.
const PATIENCE: Duration = Duration::from_secs(60);

fn read(path: &str) -> Value {
    let path = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/..")).join(path);
    let text = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    serde_saphyr::from_str(&text).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// Creates an object where its kind lives.
async fn apply(api: &Embedded, object: Value) {
    let kind = object["kind"].as_str().expect("a manifest has a kind").to_lowercase();
    let namespace = object["metadata"]["namespace"].as_str();
    let plural = if kind.ends_with('s') { format!("{kind}es") } else { format!("{kind}s") };
    let version = object["apiVersion"].as_str().expect("a manifest has a version");
    let base = if version.contains('/') { format!("/apis/{version}") } else { format!("/api/{version}") };
    let path = match namespace {
        Some(namespace) => format!("{base}/namespaces/{namespace}/{plural}"),
        None => format!("{base}/{plural}"),
    };
    let reply = post(api, &path, object).await;
    assert_eq!(reply.code, 201, "{path}: {}", reply.body);
}

/// An API with our kinds and two namespaces.
async fn prepared() -> Embedded {
    let api = Embedded::in_memory();
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../crds"));
    let mut crds = 0;
    for entry in std::fs::read_dir(folder).expect("there are CRDs").flatten() {
        if entry.path().extension().is_some_and(|extension| extension == "yaml") {
            let name = entry.file_name();
            apply(&api, read(&format!("crds/{}", name.to_string_lossy()))).await;
            crds += 1;
        }
    }
    assert!(crds > 0);
    for name in ["conductor-system", "wordpress"] {
        apply(&api, json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})).await;
    }
    api
}

/// Waits until an object is as it should be.
async fn until(api: &Embedded, path: &str, is_done: impl Fn(&Value) -> bool) -> Value {
    let until = Instant::now() + PATIENCE;
    loop {
        let object = get(api, path).await.body;
        if is_done(&object) {
            return object;
        }
        assert!(Instant::now() < until, "{path}: {object}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_seed_s_claim_binds_to_the_database_that_it_names() {
    let api = prepared().await;
    let stop = CancellationToken::new();
    let options = conductor_controller::Options { lease: None, ..conductor_controller::Options::default() };
    let controller = tokio::spawn(conductor_controller::run(api.client(), options, stop.clone()));
    for file in ["relational-database-class", "relational-database", "relational-database-claim"] {
        apply(&api, read(&format!("tests/fixtures/seed-004/{file}.yaml"))).await;
    }
    let path =
        "/apis/storage.conductor.io/v1alpha1/namespaces/wordpress/relationaldatabaseclaims/wordpress-db";
    let claim = until(&api, path, |claim| claim["status"]["phase"] == "Bound").await;
    assert_eq!(claim["spec"]["resourceName"], "database-445", "{claim}");
    stop.cancel();
    controller.await.expect("it does not panic").expect("it ends as asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_class_outside_the_system_namespace_gets_an_event() {
    let api = prepared().await;
    let class = json!({"apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClass",
        "metadata": {"name": "stray", "namespace": "wordpress"}, "engine": "mysql"});
    apply(&api, class).await;
    let stop = CancellationToken::new();
    let options = conductor_controller::Options { lease: None, ..conductor_controller::Options::default() };
    let controller = tokio::spawn(conductor_controller::run(api.client(), options, stop.clone()));
    let path = "/apis/events.k8s.io/v1/namespaces/wordpress/events";
    let is_reported = |events: &Value| events["items"].to_string().contains("OutsideSystemNamespace");
    let events = until(&api, path, is_reported).await;
    assert!(events["items"].to_string().contains("conductor-system only"), "{events}");
    stop.cancel();
    controller.await.expect("it does not panic").expect("it ends as asked");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_connection_of_another_type_and_family_replaces_what_no_client_may_change() {
    let api = prepared().await;
    let stop = CancellationToken::new();
    let options = conductor_controller::Options { lease: None, ..conductor_controller::Options::default() };
    let controller = tokio::spawn(conductor_controller::run(api.client(), options, stop.clone()));
    let kinds = "storage.conductor.io/v1alpha1";
    apply(
        &api,
        json!({"apiVersion": "v1", "kind": "Secret", "stringData": {"username": "u", "password": "p"}, "metadata": {
            "name": "admin", "namespace": "conductor-system", "labels": {"conductor.io/publishable": "true"}}}),
    )
    .await;
    apply(
        &api,
        json!({"apiVersion": kinds, "kind": "RelationalDatabase",
            "metadata": {"name": "r", "namespace": "conductor-system"},
            "spec": {"engine": "postgresql", "connection": {"host": "10.0.0.7", "port": 5432, "database": "d", "secretRef": "admin"}}}),
    )
    .await;
    apply(
        &api,
        json!({"apiVersion": kinds, "kind": "RelationalDatabaseClaim",
            "metadata": {"name": "c", "namespace": "wordpress"}, "spec": {"engine": "postgresql"}}),
    )
    .await;
    let (secret, slice) = (
        "/api/v1/namespaces/wordpress/secrets/c",
        "/apis/discovery.k8s.io/v1/namespaces/wordpress/endpointslices/c",
    );
    until(&api, secret, |secret| secret["type"] == "servicebinding.io/postgresql").await;
    assert_eq!(get(&api, slice).await.body["addressType"], "IPv4");
    let change = json!({"spec": {"connection": {"type": "cockroach", "host": "2001:db8::7"}}});
    let resource = format!("/apis/{kinds}/namespaces/conductor-system/relationaldatabases/r");
    assert_eq!(merge(&api, &resource, change).await.code, 200);
    until(&api, secret, |secret| secret["type"] == "servicebinding.io/cockroach").await;
    until(&api, slice, |slice| slice["addressType"] == "IPv6").await;
    let claim = format!("/apis/{kinds}/namespaces/wordpress/relationaldatabaseclaims/c");
    until(&api, &claim, |claim| {
        let conditions = claim["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().any(|c| c["type"] == "Ready" && c["status"] == "True")
    })
    .await;
    stop.cancel();
    controller.await.expect("it does not panic").expect("it ends as asked");
}

#[tokio::test]
async fn a_claim_names_no_secret_that_could_never_be_made() {
    let api = prepared().await;
    let kinds = "storage.conductor.io/v1alpha1";
    let path = format!("/apis/{kinds}/namespaces/wordpress/relationaldatabaseclaims");
    for (name, code) in [("a..b", 422), ("a.-b", 422), (".a", 422), ("a-", 422), ("a.b-c.d", 201)] {
        let claim = json!({"apiVersion": kinds, "kind": "RelationalDatabaseClaim", "metadata": {"name": "c"},
            "spec": {"connection": {"secretName": name}}});
        assert_eq!(post(&api, &path, claim).await.code, code, "{name}");
    }
}

/// The body of one plain request, whatever its status.
async fn ask_web(address: std::net::SocketAddr, path: &str) -> String {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let mut stream = tokio::net::TcpStream::connect(address).await.expect("it listens");
    let request = format!("GET {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\n\r\n");
    stream.write_all(request.as_bytes()).await.expect("it is sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("it is answered");
    answer
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_system_namespace_keeps_what_is_bound() {
    let api = prepared().await;
    let stop = CancellationToken::new();
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("loopback has a free port");
    let address = listener.local_addr().expect("it is bound");
    let lease = conductor_controller::LeaseOptions {
        retry: Duration::from_millis(50),
        ..conductor_controller::LeaseOptions::default()
    };
    let options = conductor_controller::Options {
        lease: Some(lease),
        listen: Some(address),
        listener: Some(std::sync::Arc::new(listener)),
        ..conductor_controller::Options::default()
    };
    let controller = tokio::spawn(conductor_controller::run(api.client(), options, stop.clone()));
    let kinds = "storage.conductor.io/v1alpha1";
    apply(
        &api,
        json!({"apiVersion": kinds, "kind": "RelationalDatabase",
            "metadata": {"name": "r", "namespace": "conductor-system"}, "spec": {"engine": "postgresql"}}),
    )
    .await;
    apply(
        &api,
        json!({"apiVersion": kinds, "kind": "RelationalDatabaseClaim",
            "metadata": {"name": "c", "namespace": "wordpress"}, "spec": {"engine": "postgresql"}}),
    )
    .await;
    let claim = format!("/apis/{kinds}/namespaces/wordpress/relationaldatabaseclaims/c");
    let resource = format!("/apis/{kinds}/namespaces/conductor-system/relationaldatabases/r");
    until(&api, &claim, |claim| claim["status"]["phase"] == "Bound").await;
    until(&api, &resource, |resource| resource["status"]["phase"] == "Bound").await;

    let home = "/api/v1/namespaces/conductor-system";
    assert_eq!(delete(&api, home).await.code, 200);
    let events = "/apis/events.k8s.io/v1/namespaces/default/events";
    until(&api, events, |events| events.to_string().contains("SystemNamespaceTerminating")).await;
    let ready = ask_web(address, "/readyz").await;
    assert!(ready.starts_with("HTTP/1.1 503"), "{ready}");
    assert!(ready.contains("[-]system_namespace: namespace conductor-system is being deleted"), "{ready}");
    let metrics = ask_web(address, "/metrics").await;
    assert!(metrics.contains("conductor_ready{check=\"system_namespace\"} 0"), "{metrics}");

    // It leads on: the Lease is marked, kept and renewed.
    let lease = "/apis/coordination.k8s.io/v1/namespaces/conductor-system/leases/conductor";
    for _ in 0..5 {
        let before = get(&api, lease).await.body["metadata"]["resourceVersion"].clone();
        let renewed = until(&api, lease, |lease| lease["metadata"]["resourceVersion"] != before).await;
        assert!(renewed["metadata"]["deletionTimestamp"].is_string(), "{renewed}");
    }
    assert_eq!(get(&api, &claim).await.body["status"]["phase"], "Bound");
    let held = get(&api, &resource).await.body;
    assert_eq!(held["spec"]["claimRefs"][0]["name"], "c", "{held}");

    // And the way out works: without claims everything in it goes, and the namespace with it.
    assert_eq!(delete(&api, &claim).await.code, 200);
    until(&api, home, |namespace| namespace["reason"] == "NotFound").await;
    stop.cancel();
    // Without the namespace there is no Lease to hold: how it ends is not the matter here.
    let _ = controller.await.expect("it does not panic");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_deleted_lease_is_created_anew_by_its_leader() {
    let api = prepared().await;
    let stop = CancellationToken::new();
    let lease = conductor_controller::LeaseOptions {
        retry: Duration::from_millis(50),
        ..conductor_controller::LeaseOptions::default()
    };
    let options =
        conductor_controller::Options { lease: Some(lease), ..conductor_controller::Options::default() };
    let controller = tokio::spawn(conductor_controller::run(api.client(), options, stop.clone()));
    let path = "/apis/coordination.k8s.io/v1/namespaces/conductor-system/leases/conductor";
    let first = until(&api, path, |lease| lease["metadata"]["finalizers"].is_array()).await;
    assert_eq!(delete(&api, path).await.code, 200);
    until(&api, path, |lease| {
        lease["metadata"]["uid"].is_string() && lease["metadata"]["uid"] != first["metadata"]["uid"]
    })
    .await;
    stop.cancel();
    controller.await.expect("it does not panic").expect("it ends as asked");
    let released = get(&api, path).await.body;
    assert_eq!(released["metadata"].get("finalizers"), None, "a released Lease blocks nothing");
}
