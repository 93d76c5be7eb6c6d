//! What the owner of an application sees with the rights of `edit` in one namespace, and after `conductor grant`.

use super::{Cluster, err, out, root, until};
use conductor_controlplane::Part;
use serde_json::json;
use std::fs;
use std::process::Output;

pub fn owners_see_what_is_offered_and_why_they_wait(cluster: &mut Cluster) {
    // Roles are aggregated by Kubernetes' own controllers.
    cluster.plane.start_part(Part::ControllerManager).unwrap();
    cluster.kubectl(&["apply", "-f", &root("deploy/people-roles.yaml")], "");
    cluster.kubectl(&["create", "namespace", "shop"], "");
    cluster
        .kubectl(&["create", "rolebinding", "owner", "--clusterrole=edit", "--user=owner", "-n", "shop"], "");
    for object in objects() {
        cluster.kubectl(&["apply", "-f", "-"], &object.to_string());
    }
    let kubeconfig = cluster.plane.kubeconfig().with_file_name("owner.kubeconfig");
    let admin = fs::read_to_string(cluster.plane.kubeconfig()).unwrap();
    fs::write(&kubeconfig, admin.replace("'}\ncontexts", "', as: owner}\ncontexts")).unwrap();
    let kubeconfig = kubeconfig.display().to_string();
    let as_owner = |arguments: &[&str]| -> Output {
        cluster.conductor(&[arguments, &["--kubeconfig", &kubeconfig]].concat())
    };
    let succeeds = |arguments: &[&str]| Some(as_owner(arguments)).filter(|output| output.status.success());

    until("claims are the owner's to read", || succeeds(&["get", "claims", "-n", "shop"]));
    assert!(!as_owner(&["get", "claims", "-A"]).status.success(), "those of others are not");
    assert!(!as_owner(&["get", "resources"]).status.success(), "nor are resources");
    let classes = until("classes can be read", || succeeds(&["get", "classes"]));
    assert!(out(&classes).contains("offered"), "{}", out(&classes));
    let quotas = until("quotas can be read", || succeeds(&["get", "quotas", "-n", "shop"]));
    assert!(out(&quotas).contains("shop/limits"), "{}", out(&quotas));
    let explained = until("a claim is explained", || succeeds(&["explain", "claim", "shop/waits"]));
    assert!(out(&explained).starts_with("shop/waits is Pending: "), "{}", out(&explained));
    assert!(err(&explained).contains("conductor grant shop --user"), "{}", err(&explained));

    let grant = out(&cluster.conductor(&["grant", "shop", "--user", "owner"]));
    cluster.kubectl(&["apply", "-f", &root("deploy/publishing-roles.yaml")], "");
    cluster.kubectl(&["apply", "-f", "-"], &grant);
    let reported = |output: &Output| out(output).contains("widen the claim's version");
    let explained = until("each resource is explained", || {
        succeeds(&["explain", "claim", "shop/waits"]).filter(reported)
    });
    assert!(err(&explained).contains("claims outside shop"), "{}", err(&explained));
    assert!(!as_owner(&["get", "claims", "-A"]).status.success(), "claims of others stay theirs");
}

fn objects() -> [serde_json::Value; 4] {
    let storage = "storage.conductor.io/v1alpha1";
    [
        json!({"apiVersion": storage, "kind": "RelationalDatabaseClass",
            "metadata": {"name": "offered", "namespace": "conductor-system"}, "reclaimPolicy": "Retain"}),
        json!({"apiVersion": storage, "kind": "RelationalDatabase",
            "metadata": {"name": "older", "namespace": "conductor-system"},
            "spec": {"engine": "postgresql", "version": "16.2", "class": "offered"}}),
        json!({"apiVersion": "conductor.io/v1alpha1", "kind": "ClaimQuota",
            "metadata": {"name": "limits", "namespace": "shop"}, "spec": {"limits": [{"claims": 5}]}}),
        json!({"apiVersion": storage, "kind": "RelationalDatabaseClaim",
            "metadata": {"name": "waits", "namespace": "shop"},
            "spec": {"engine": "postgresql", "version": ">= 17", "class": "offered"}}),
    ]
}
