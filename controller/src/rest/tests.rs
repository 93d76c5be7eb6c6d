//! Paths and bodies as the API server expects them, compared with our CRDs.

use super::*;
use conductor::action::Change;
use conductor::api;
use conductor::model::{ClaimPhase, Uid, WriteId};
use http::Method;
use serde_json::json;

#[test]
fn paths_are_those_of_our_crds() {
    // The provider reads servers and the databases on them.
    let providers = [api::database::GROUP, api::database::front::FRONT_GROUP];
    for crd in api::crds().into_iter().filter(|crd| !providers.contains(&crd.spec.group.as_str())) {
        let version = format!("{}/{}", crd.spec.group, crd.spec.versions[0].name);
        let kind = Kind::find(&version, &crd.spec.names.kind).expect("the engine reads every kind of ours");
        let route = route(kind);
        assert_eq!(route.plural, crd.spec.names.plural);
        assert_eq!(route.base, format!("/apis/{version}"));
        assert_eq!(route.namespaced, crd.spec.scope == "Namespaced", "{version}");
    }
}

#[test]
fn a_name_never_leads_elsewhere() {
    let claims = route(Kind::Claim(TypeId::RELATIONAL_DATABASE));
    let path = |namespace: &str, name: &str| claims.object(namespace, name);
    let base = "/apis/storage.conductor.io/v1alpha1/namespaces/team";
    assert_eq!(path("team", "db"), Some(format!("{base}/relationaldatabaseclaims/db")));
    assert_eq!(path("team", "a b?c#d"), Some(format!("{base}/relationaldatabaseclaims/a%20b%3Fc%23d")));
    for (namespace, name) in
        [("", "db"), ("team", ""), ("team", ".."), ("..", "db"), ("team", "a/status"), ("team", "%2e%2e")]
    {
        assert_eq!(path(namespace, name), None, "{namespace:?} {name:?}");
    }
    let namespace = route(Kind::Namespace).object("", "team");
    assert_eq!(namespace.as_deref(), Some("/api/v1/namespaces/team"));
}

#[test]
fn a_write_is_tied_to_uid_and_revision() {
    let write = Write {
        id: WriteId(1),
        kind: Kind::Claim(TypeId::RELATIONAL_DATABASE),
        key: ObjectKey::new("team", "db"),
        uid: Uid::from("u-1"),
        revision: Some(Revision(7)),
        may_wait: false,
        change: Change::ClaimStatus {
            phase: ClaimPhase::Bound,
            resource: None,
            conditions: Vec::new(),
            observed_generation: 1,
            binding: None,
            bound_spec: None,
        },
    };
    let request = patch_request(&write).expect("the name is valid");
    assert_eq!(request.method(), Method::PATCH);
    assert!(request.uri().path().ends_with("/namespaces/team/relationaldatabaseclaims/db/status"));
    let body: Value = serde_json::from_slice(request.body()).expect("it is JSON");
    assert_eq!(body["metadata"], json!({"uid": "u-1", "resourceVersion": "7"}));
    assert_eq!(body["status"]["phase"], "Bound");
}

#[test]
fn a_delete_is_tied_to_uid_and_revision() {
    let request = delete_request(&route(Kind::Quota), &ObjectKey::new("team", "x"), "u-1", Revision(7))
        .expect("the path is valid");
    let body: Value = serde_json::from_slice(request.body()).expect("it is JSON");
    assert_eq!(body["preconditions"], json!({"uid": "u-1", "resourceVersion": "7"}));
}

#[test]
fn an_object_comes_back_as_it_was_sent() {
    let kind = Kind::Resource(TypeId::RELATIONAL_DATABASE);
    let json = json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabase",
        "metadata": {"name": "db", "namespace": "s", "managedFields": [{"manager": "x"}]},
        "spec": {"version": 5.6},
    });
    let object = read_object(kind, json).expect("it has metadata");
    assert_eq!(object.body, json!({"spec": {"version": 5.6}}));
    assert_eq!(object.metadata.managed_fields, None);
    let request = create_request(&object).expect("it has a namespace");
    assert!(request.uri().path().ends_with("/namespaces/s/relationaldatabases"));
    let sent: Value = serde_json::from_slice(request.body()).expect("it is JSON");
    assert_eq!(sent["apiVersion"], "storage.conductor.io/v1alpha1");
    assert_eq!(read_object(kind, sent), Ok(object));
}

#[test]
fn what_is_no_object_is_refused_with_a_reason() {
    for (json, complaint) in [
        (json!("x"), "not a JSON object"),
        (json!({}), "metadata"),
        (json!({"metadata": 3}), "metadata"),
        (json!({"metadata": {"labels": {"a": 1}, "name": "x"}}), "metadata"),
        (json!({"metadata": {}}), "metadata.name"),
    ] {
        let error = read_object(Kind::Quota, json.clone()).expect_err("it is none");
        assert!(error.contains(complaint), "{json}: {error}");
    }
}
