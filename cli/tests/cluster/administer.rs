//! Administrators' commands about existing databases: import an object, compare an edited class with its resources,
//! abandon a stuck resource.

use super::{Cluster, err, out, until};
use conductor_live::operator;
use serde_json::{Value, json};
use std::process::{Child, Stdio};

const KIND: &str = "database.aws.conductor.io/v1alpha1/RDSInstance";

pub fn administrators_import_compare_and_abandon(cluster: &Cluster) {
    cluster.kubectl(&["apply", "-f", "-"], &operator::definition().to_string());
    cluster.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"], "");
    let mut child =
        Killed(cluster.run_with(Stdio::null(), &["--allow-kinds", "*.database.aws.conductor.io"]));
    until("/readyz says ok", || cluster.get("/readyz").filter(|(status, _)| *status == 200));
    import_is_refused_without_credentials(cluster);
    import_creates_a_resource_that_a_claim_can_use(cluster);
    diff_shows_what_an_edit_would_change(cluster);
    abandon_releases_only_stuck_resources(cluster);
    other_kinds_are_not_created(cluster);
    let _ = child.0.kill();
}

/// Whatever happens, no controller outlives the test.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn put(cluster: &Cluster, object: &Value) {
    cluster.kubectl(&["apply", "-f", "-"], &object.to_string());
}

fn secret(keys: Value) -> Value {
    let metadata = json!({"name": "orders-login", "namespace": "conductor-system"});
    json!({"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "stringData": keys})
}

#[track_caller]
fn refused(cluster: &Cluster, arguments: &[&str], reported: &str) {
    let output = cluster.conductor(arguments);
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {}", out(&output));
    assert!(err(&output).contains(reported), "{arguments:?}: {}", err(&output));
}

const IMPORT: [&str; 12] = [
    "import",
    KIND,
    "orders",
    "--as",
    "orders-db",
    "--engine",
    "mysql",
    "--version",
    "8.0.36",
    "--capacity",
    "storage=50Gi",
    "--host=orders.example.com",
];

fn import_is_refused_without_credentials(cluster: &Cluster) {
    let whole = [&IMPORT[..], &["--secret", "orders-login", "--database", "orders"]].concat();
    refused(cluster, &IMPORT, "--host, --database and --secret");
    refused(cluster, &whole, "RDSInstance.database.aws.conductor.io conductor-system/orders does not exist");
    let metadata = json!({"name": "orders", "namespace": "conductor-system"});
    put(
        cluster,
        &json!({"apiVersion": "database.aws.conductor.io/v1alpha1", "kind": "RDSInstance", "metadata": metadata}),
    );
    refused(cluster, &whole, "Secret conductor-system/orders-login does not exist");
    put(cluster, &secret(json!({"username": "app"})));
    refused(cluster, &whole, "has no key password");
    let mut unknown = whole.clone();
    unknown[1] = "database.aws.conductor.io/v1alpha1/Cluster";
    refused(cluster, &unknown, "the cluster does not serve");
}

fn import_creates_a_resource_that_a_claim_can_use(cluster: &Cluster) {
    put(cluster, &secret(json!({"username": "app", "password": "of-the-test"})));
    let whole = [&IMPORT[..], &["--secret", "orders-login", "--database", "orders"]].concat();
    let dry = cluster.conductor(&[&whole[..], &["--dry-run"]].concat());
    assert_eq!(dry.status.code(), Some(0), "{}", err(&dry));
    assert!(
        out(&dry).contains("kind: RelationalDatabase") && !out(&dry).contains("of-the-test"),
        "{}",
        out(&dry)
    );
    assert!(
        !cluster.kubectl(&["get", "rdb", "-A", "-o", "name"], "").contains("orders-db"),
        "a dry run changes nothing"
    );
    for _ in 0..2 {
        let done = cluster.conductor(&whole);
        assert_eq!(done.status.code(), Some(0), "an import may be repeated: {}", err(&done));
    }
    let mut twice = whole.clone();
    twice[4] = "other";
    refused(cluster, &twice, "is imported already, as orders-db");
    put(
        cluster,
        &json!({"apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
            "metadata": {"name": "orders", "namespace": "wordpress"},
            "spec": {"engine": "mysql", "version": "8.0", "resourceName": "orders-db"}}),
    );
    let template = "go-template={{.data.uri | base64decode}}";
    let uri = until("the connection is published", || {
        let output =
            cluster.plane.kubectl(&["get", "secret", "orders", "-n", "wordpress", "-o", template]).unwrap();
        output.status.success().then(|| out(&output))
    });
    assert_eq!(uri, "mysql://app:of-the-test@orders.example.com:3306/orders");
    let record = [
        "get",
        "rdb",
        "orders-db",
        "-n",
        "conductor-system",
        "-o",
        "jsonpath={.status.implementationRef.name}",
    ];
    assert_eq!(cluster.kubectl(&record, ""), "orders");
}

fn class(size: &str) -> Value {
    json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClass",
        "metadata": {"name": "gold", "namespace": "conductor-system"}, "reclaimPolicy": "Delete",
        "template": {"apiVersion": "database.aws.conductor.io/v1alpha1", "kind": "RDSInstance",
            "spec": {"size": size, "for": "${claim.metadata.name}"}},
    })
}

fn diff_shows_what_an_edit_would_change(cluster: &Cluster) {
    refused(cluster, &["diff", "class", "gold"], "no class gold");
    put(cluster, &class("small"));
    put(
        cluster,
        &json!({"apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
            "metadata": {"name": "made", "namespace": "wordpress"}, "spec": {"engine": "mysql", "class": "gold"}}),
    );
    until("the object is created", || instance_of(cluster, "gold"));
    let same = cluster.conductor(&["diff", "class", "gold"]);
    assert_eq!((same.status.code(), out(&same).as_str()), (Some(0), ""), "{}", err(&same));
    let file = std::env::temp_dir().join(format!("conductor-diff-{}.json", std::process::id()));
    std::fs::write(&file, class("large").to_string()).unwrap();
    let path = file.display().to_string();
    let edited = cluster.conductor(&["diff", "class", "gold", "-f", &path]);
    assert_eq!(edited.status.code(), Some(1), "{}", err(&edited));
    assert!(
        out(&edited).contains("spec.size") && err(&edited).contains("updatePolicy Never"),
        "{}",
        out(&edited)
    );
    let json = cluster.conductor(&["diff", "class", "gold", "-f", &path, "-o", "json"]);
    let json: Value = serde_json::from_str(&out(&json)).unwrap();
    let change = &json["resources"][0]["changes"][0];
    assert_eq!((&change["was"], &change["becomes"]), (&json!("small"), &json!("large")));
    let _ = std::fs::remove_file(&file);
}

/// The name of the object that implements a resource of a class.
fn instance_of(cluster: &Cluster, class: &str) -> Option<(String, String)> {
    let list = cluster.conductor(&["get", "resources", "-o", "json"]);
    let list: Value = serde_json::from_str(&out(&list)).ok()?;
    let resource = list["items"].as_array()?.iter().find(|r| r["spec"]["class"] == class)?.clone();
    let part = resource.pointer("/status/implementationRef")?;
    part["uid"].as_str()?;
    Some((resource["metadata"]["name"].as_str()?.to_owned(), part["name"].as_str()?.to_owned()))
}

fn abandon_releases_only_stuck_resources(cluster: &Cluster) {
    let (resource, instance) = until("the object is created", || instance_of(cluster, "gold"));
    refused(cluster, &["abandon", "nowhere", "--yes", "nowhere"], " does not exist");
    refused(cluster, &["abandon", &resource, "--yes", &resource], "is not being deleted");
    let keep = json!({"metadata": {"finalizers": ["example.com/backup"]}}).to_string();
    cluster.kubectl(
        &["patch", "rdsinstances", &instance, "-n", "conductor-system", "--type=merge", "-p", &keep],
        "",
    );
    cluster.kubectl(&["delete", "rdbc", "made", "-n", "wordpress", "--wait=false"], "");
    let waits =
        ["get", "rdb", &resource, "-n", "conductor-system", "-o", "jsonpath={.status.conditions[0].message}"];
    until("what it waits for is reported", || {
        Some(cluster.kubectl(&waits, "")).filter(|reported| reported.contains("example.com/backup"))
    });
    refused(cluster, &["abandon", &resource], &format!("--yes {resource}"));
    refused(cluster, &["abandon", &resource, "--yes", "another"], "repeat the name of the resource");
    let done = cluster.conductor(&["abandon", &resource, "--yes", &resource]);
    assert_eq!(done.status.code(), Some(0), "{}", err(&done));
    assert!(out(&done).contains(&instance), "{}", out(&done));
    until("the resource is deleted", || {
        (!cluster.kubectl(&["get", "rdb", "-A", "-o", "name"], "").contains(&resource)).then_some(())
    });
    let left = cluster.kubectl(&["get", "rdsinstances", "-n", "conductor-system", "-o", "name"], "");
    assert!(left.contains(&instance), "{left}");
}

/// `--allow-kinds` is the installation's list.
fn other_kinds_are_not_created(cluster: &Cluster) {
    let mut other = class("small");
    other["metadata"]["name"] = json!("other");
    other["template"] = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"a": "b"}});
    put(cluster, &other);
    put(
        cluster,
        &json!({"apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
            "metadata": {"name": "listed", "namespace": "wordpress"}, "spec": {"engine": "mysql", "class": "other"}}),
    );
    let why = ["get", "rdbc", "listed", "-n", "wordpress", "-o", "jsonpath={.status.conditions[0].message}"];
    until("the claim is reported", || {
        Some(cluster.kubectl(&why, ""))
            .filter(|reported| reported.contains("is not on this installation's list of kinds"))
    });
}
