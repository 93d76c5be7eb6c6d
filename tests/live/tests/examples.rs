//! The classes under `examples/classes` on a real API server: each is applied as it stands, operators that say what
//! was recorded of real ones do their work, and every application finds its connection; then all of it goes again.

#[allow(dead_code, reason = "only some of the questions of the world in memory are used here")]
#[path = "../../../simulator/tests/classes/operators.rs"]
mod operators;

use conductor::model::{Kind, TypeId};
use conductor_live::{Controller, Side, Turn, on_both_apis, root, turn_on, until};
use kube::api::{Api, ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use operators::Operators;
use serde_json::{Value, json};
use std::time::Duration;

const CLAIM: Kind = Kind::Claim(TypeId::RELATIONAL_DATABASE);
const SYSTEM: &str = "conductor-system";

/// The kinds that examples make, and how many of them there are in the end.
const KINDS: [(&str, &str, &str, usize); 11] = [
    ("acid.zalan.do", "v1", "postgresql", 1),
    ("database.aws.conductor.io", "v1alpha1", "RDSInstance", 1),
    ("external-secrets.io", "v1", "ExternalSecret", 1),
    ("generators.external-secrets.io", "v1alpha1", "Password", 1),
    ("pgv2.percona.com", "v2", "PerconaPGCluster", 1),
    ("postgresql.cnpg.io", "v1", "Cluster", 3),
    ("postgresql.cnpg.io", "v1", "Pooler", 1),
    ("postgresql.cnpg.io", "v1", "ScheduledBackup", 1),
    ("pxc.percona.com", "v1", "PerconaXtraDBCluster", 1),
    ("rds.aws.m.upbound.io", "v1beta1", "Instance", 1),
    ("rds.services.k8s.aws", "v1alpha1", "DBInstance", 2),
];

/// The examples, each with its claim and the name of its Secret.
const EXAMPLES: [(&str, (&str, &str, &str)); 11] = [
    ("ack-rds.yaml", ("shop", "invoices-db", "invoices-db")),
    ("cloudnative-pg.yaml", ("shop", "orders-db", "orders-db-login")),
    ("crossplane-rds.yaml", ("shop", "billing-db", "billing-db")),
    ("defaults.yaml", ("shop", "notes-db", "notes-db")),
    ("fallback.yaml", ("shop", "payments-db", "payments-db")),
    ("graph.yaml", ("shop", "sessions-db", "sessions-db")),
    ("percona.yaml", ("shop", "wordpress-db", "wordpress-db")),
    ("rds.yaml", ("shop", "shop-db", "shop-db")),
    ("sizes.yaml", ("shop", "search-db", "search-db")),
    ("shared-server.yaml", ("shop", "catalogue-db", "catalogue-db")),
    // Joins the one before it.
    ("shared-server-next.yaml", ("reports", "catalogue-reports", "catalogue-reports")),
];

/// What every connection has.
const KEYS: [&str; 8] = ["host", "port", "username", "password", "database", "uri", "type", "provider"];

fn resource(group: &str, version: &str, kind: &str) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    let plural = format!("{}s", kind.to_lowercase());
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural,
    }
}

fn objects(client: &Client, (group, version, kind): (&str, &str, &str)) -> Api<DynamicObject> {
    Api::namespaced_with(client.clone(), SYSTEM, &resource(group, version, kind))
}

/// A definition that takes anything, with a status of its own, as operators install theirs.
fn definition(group: &str, version: &str, kind: &str) -> Value {
    let plural = format!("{}s", kind.to_lowercase());
    let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {
            "group": group, "scope": "Namespaced", "names": {"kind": kind, "plural": plural},
            "versions": [{"name": version, "served": true, "storage": true,
                "schema": {"openAPIV3Schema": schema}, "subresources": {"status": {}}}],
        },
    })
}

/// The Secret that the first class of the fallback asks an administrator for.
fn master() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "stringData": {"password": "m"},
        "metadata": {"name": "cloud-first-master", "namespace": SYSTEM, "labels": {"conductor.io/publishable": "true"}},
    })
}

/// Lets every object say what its operator would, once; works until it is dropped.
async fn operate(client: Client, operators: Operators) {
    loop {
        for (group, version, kind, _) in KINDS {
            let api = objects(&client, (group, version, kind));
            let listed = api.list(&ListParams::default()).await.map(|list| list.items).unwrap_or_default();
            for object in listed.iter().filter(|object| object.data["status"].is_null()) {
                answer(&client, &operators, &api, object).await;
            }
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// The Secret first, as operators do: who is ready can be reached.
async fn answer(client: &Client, operators: &Operators, api: &Api<DynamicObject>, object: &DynamicObject) {
    let answer = operators.answer(&serde_json::to_value(object).unwrap_or_default());
    if let Some(secret) = answer.secret {
        let name = secret["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let secrets = objects(client, ("", "v1", "Secret"));
        let _ = secrets.patch(&name, &PatchParams::apply("operator").force(), &Patch::Apply(&secret)).await;
    }
    if let Some(status) = answer.status {
        let patch = Patch::Merge(json!({ "status": status }));
        // One that is gone already needs no status.
        let _ = api.patch_status(&object.name_any(), &PatchParams::default(), &patch).await;
    }
}

fn condition(object: &DynamicObject, which: &str) -> Value {
    let conditions = object.data["status"]["conditions"].as_array().cloned().unwrap_or_default();
    conditions.into_iter().find(|condition| condition["type"] == which).unwrap_or_default()
}

/// How many objects of each kind there are.
async fn counts(turn: &Turn) -> Vec<usize> {
    let mut counts = Vec::new();
    for (group, version, kind, _) in KINDS {
        let listed = objects(&turn.client(), (group, version, kind)).list(&ListParams::default()).await;
        counts.push(listed.expect("the API lists").items.len());
    }
    counts
}

async fn connection_of(turn: &Turn, namespace: &str, secret: &str) -> Value {
    let api: Api<DynamicObject> =
        Api::namespaced_with(turn.client(), namespace, &resource("", "v1", "Secret"));
    api.get(secret).await.expect("it is published").data
}

on_both_apis!(every_example_is_applied_bound_and_reached);

async fn every_example_is_applied_bound_and_reached(side: Side) {
    let turn = turn_on(side).await;
    for namespace in ["shop", "reports"] {
        turn.namespace(namespace).await;
    }
    for (group, version, kind, _) in KINDS {
        turn.put(definition(group, version, kind)).await;
    }
    turn.kubectl(&["wait", "--for=condition=Established", "--timeout=60s", "crd", "--all"]);
    let operators = Operators::read(&root("tests/fixtures/adapters"));
    let operator = tokio::spawn(operate(turn.client(), operators));
    let controller = Controller::alone(turn.controller_client());
    turn.put(master()).await;
    for (file, (namespace, name, secret)) in EXAMPLES {
        let path = root("examples/classes").join(file);
        turn.kubectl(&["apply", "-f", &path.display().to_string()]);
        let claim = until(&format!("{file}: claim {namespace}/{name} is ready"), async || {
            let claim = turn.claim(namespace, name).await?;
            (condition(&claim, "Ready")["status"] == "True").then_some(claim)
        })
        .await;
        assert_eq!(claim.data["status"]["phase"], "Bound", "{file}");
        assert_eq!(claim.data["status"]["binding"]["name"], secret, "{file}");
        let published = connection_of(&turn, namespace, secret).await;
        let missing: Vec<_> = KEYS.iter().filter(|key| published["data"][**key].is_null()).collect();
        assert!(missing.is_empty(), "{file}: {missing:?} of {published}");
        let kind = published["type"].as_str().unwrap_or_default();
        assert!(kind.starts_with("servicebinding.io/"), "{file}: {kind}");
    }
    assert_eq!(counts(&turn).await, KINDS.map(|(.., count)| count), "no object is made twice");
    leave(&turn).await;
    operator.abort();
    controller.stop().await.expect("it stops");
}

/// All claims go, and with them what was made for them; what the default class made is retained.
async fn leave(turn: &Turn) {
    for (_, (namespace, name, _)) in EXAMPLES {
        let gone = turn.objects(CLAIM, namespace).delete(name, &DeleteParams::default()).await;
        gone.expect("it is there");
    }
    let retained = KINDS.map(|(_, _, kind, _)| usize::from(kind == "postgresql"));
    until("everything that is not retained is gone", async || (counts(turn).await == retained).then_some(()))
        .await;
}
