//! The live controller on the embedded API: the job of the seed, from manifests to a bound claim.

use super::ask::{get, post};
use conductor::live;
use conductor_simulator::embedded::Embedded;
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

#[tokio::test(flavor = "multi_thread")]
async fn the_seed_s_claim_binds_to_the_database_that_it_names() {
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
    let stop = CancellationToken::new();
    let options = live::Options { lease: None, ..live::Options::default() };
    let controller = tokio::spawn(live::run(api.client(), options, stop.clone()));
    for file in ["relational-database-class", "relational-database", "relational-database-claim"] {
        apply(&api, read(&format!("tests/fixtures/seed-004/{file}.yaml"))).await;
    }
    let path =
        "/apis/storage.conductor.io/v1alpha1/namespaces/wordpress/relationaldatabaseclaims/wordpress-db";
    let until = Instant::now() + PATIENCE;
    loop {
        let claim = get(&api, path).await.body;
        if claim["status"]["phase"] == "Bound" {
            assert_eq!(claim["spec"]["resourceName"], "database-445", "{claim}");
            break;
        }
        assert!(Instant::now() < until, "the claim is not bound: {claim}");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    stop.cancel();
    controller.await.expect("it does not panic").expect("it ends as asked");
}
