//! Tables: readiness of parts, kinds that are never created, names of parts.

use super::*;
use crate::model::{Kind, Object, Resource};

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

fn resource(name: &str, uid: &str, body: Value) -> Resource {
    let metadata = json!({"namespace": "conductor-system", "name": name, "uid": uid});
    let object =
        Object { kind: Kind::Resource(TYPE), metadata: serde_json::from_value(metadata).unwrap(), body };
    Resource::read(TYPE, &object)
}

fn templated(template: Value) -> Template {
    resource("db", "u-1", json!({"spec": {"template": template}})).template
}

fn key_of(name: &str, uid: &str) -> String {
    let template = json!({"apiVersion": "example.com/v1", "kind": "Instance"});
    match resource(name, uid, json!({"spec": {"template": template}})).template {
        Template::Objects(objects) => objects[0].key.name.to_string(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_part_is_ready_by_condition_then_phase_then_group() {
    let ready = |status: &str| json!({"conditions": [{"type": "Ready", "status": status}]});
    for (api_version, status, expected) in [
        ("example.com/v1", ready("True"), true),
        ("example.com/v1", ready("False"), false),
        ("example.com/v1", ready("Unknown"), false),
        ("example.com/v1", json!({"conditions": [{"type": "Synced", "status": "True"}]}), false),
        ("example.com/v1", json!({"phase": "Running"}), true),
        ("example.com/v1", json!({"phase": "available"}), true),
        ("example.com/v1", json!({"state": "READY"}), true),
        ("example.com/v1", json!({"state": "ready", "phase": "Pending"}), false),
        ("example.com/v1", json!({"phase": "Cluster in healthy state"}), false),
        ("example.com/v1", json!({}), false),
        ("example.com/v1", Value::Null, false),
        ("v1", Value::Null, true),
        ("v1", json!({"loadBalancer": {}}), true),
        ("v1", json!({"phase": "Pending"}), false),
        ("v1", json!({"phase": "Bound"}), true),
    ] {
        let mut condition_wins = status.clone();
        if let Some(conditions) = condition_wins.get("conditions").cloned() {
            condition_wins = json!({"phase": "Ready", "conditions": conditions});
        }
        for status in [status.clone(), condition_wins] {
            let decided_by_phase = status.get("phase").is_some()
                && status["conditions"].as_array().is_some_and(|c| c[0]["type"] != "Ready");
            let body = json!({"status": status});
            let readiness = Readiness::read(&PartKind::new(api_version, "Thing"), &body);
            assert_eq!(readiness == Readiness::Ready, expected || decided_by_phase, "{api_version} {body}");
        }
    }
}

#[test]
fn a_part_that_is_not_ready_is_quoted() {
    let kind = PartKind::new("example.com/v1", "Instance");
    let condition =
        json!({"type": "Ready", "status": "False", "reason": "Creating", "message": "waiting for a disk"});
    for (status, says) in [
        (json!({"conditions": [condition]}), "Creating: waiting for a disk"),
        (json!({"phase": "Starting"}), "Starting"),
    ] {
        let readiness = Readiness::read(&kind, &json!({"status": status}));
        assert_eq!(readiness, Readiness::NotReady(Name::from(says)));
    }
}

#[test]
fn kinds_that_grant_rights_or_are_ours_are_never_created() {
    for (api_version, kind, denied) in [
        ("rbac.authorization.k8s.io/v1", "Role", true),
        ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration", true),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition", true),
        ("apiregistration.k8s.io/v1", "APIService", true),
        ("coordination.k8s.io/v1", "Lease", true),
        ("v1", "Namespace", true),
        ("v1", "Node", true),
        ("v1", "ServiceAccount", true),
        ("v1", "Secret", true),
        ("v1", "Pod", true),
        ("conductor.io/v1alpha1", "ClaimQuota", true),
        ("storage.conductor.io/v1alpha1", "RelationalDatabaseClaim", true),
        ("database.aws.conductor.io/v1alpha1", "RDSInstance", false),
        ("example.com/v1", "Pod", false),
        ("v1", "ConfigMap", false),
        ("apps/v1", "StatefulSet", false),
    ] {
        let template = templated(json!({"apiVersion": api_version, "kind": kind}));
        assert_eq!(matches!(template, Template::Unreadable(_)), denied, "{api_version} {kind}: {template:?}");
    }
}

#[test]
fn an_invalid_template_names_the_field() {
    for (template, field) in [
        (json!({"apiVersion": "v1"}), "spec.template.kind"),
        (json!({"kind": "Instance"}), "spec.template.apiVersion"),
        (json!({"apiVersion": 1, "kind": "Instance"}), "spec.template.apiVersion"),
        (json!("Instance"), "spec.template.apiVersion"),
        (json!({"apiVersion": "v1", "kind": "Secret"}), "spec.template.kind"),
    ] {
        let Template::Unreadable(error) = templated(template.clone()) else { panic!("{template}") };
        assert_eq!(error.field, field, "{error}");
    }
}

#[test]
fn several_objects_have_their_own_names_and_ids_are_used_once() {
    let entry =
        |id: &str, kind: &str| json!({"id": id, "template": {"apiVersion": "example.com/v1", "kind": kind}});
    let several = |entries: Value| resource("db", "u-1", json!({"spec": {"templates": entries}})).template;
    let template = several(json!([entry("main", "Instance"), entry("read_replica", "Instance")]));
    let names: Vec<&str> = template.objects().iter().map(|part| &*part.key.name).collect();
    assert_eq!(names[0], key_of("db", "u-1"));
    assert!(names[1].starts_with("db-read-replica-"), "{names:?}");
    for (entries, field) in [
        (json!([entry("a", "Instance"), entry("a", "Instance")]), "spec.templates[1].id"),
        (json!([{"template": {"apiVersion": "v1", "kind": "ConfigMap"}}]), "spec.templates[0].id"),
        (json!([entry("a", "")]), "spec.templates[0].template.kind"),
        (json!([]), "spec.templates"),
    ] {
        let Template::Unreadable(error) = several(entries.clone()) else { panic!("{entries}") };
        assert_eq!(error.field, field, "{error}");
    }
}

#[test]
fn part_names_are_short_and_differ_for_a_recreated_resource() {
    assert_eq!(key_of("db", "u-1"), key_of("db", "u-1"));
    assert_ne!(key_of("db", "u-1"), key_of("db", "u-2"));
    let long = "x".repeat(253);
    for name in ["445.db", "db", "a-very.dotted.name-", &long] {
        let key = key_of(name, "u-1");
        assert!(key.len() <= 57 && key.starts_with(|c: char| c.is_ascii_lowercase()), "{key}");
        assert!(key.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-'), "{key}");
    }
}

#[test]
fn a_record_is_ours_only_with_the_name_that_we_choose() {
    let record = |value: Value| {
        let status = json!({"spec": {}, "status": {"implementationRef": value}});
        resource("db", "u-1", status).status.implementation
    };
    let ours = json!({"apiVersion": "example.com/v1", "kind": "Instance", "namespace": "conductor-system",
                      "name": key_of("db", "u-1"), "uid": "p-1"});
    let Record::Ours(found) = record(ours.clone()) else { panic!("{ours}") };
    assert_eq!((found[0].uid.as_deref(), record_json(&found)), (Some("p-1"), ours.clone()));
    let mut other = ours.clone();
    other["name"] = json!("db");
    assert_eq!(record(other), Record::Foreign);
    assert_eq!(record(json!("rds-instance-6763d")), Record::Foreign);
    assert_eq!(record(Value::Null), Record::Absent);
}
