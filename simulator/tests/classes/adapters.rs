//! Every adapter that comes with Conductor, on an object as its operator writes it: messages while it is not ready,
//! when it is, and the connection that an application finds.

use crate::operators::Recorded;
use crate::stage::{RESOURCE, SYSTEM, Stage, operators, part_kind};
use conductor::template::Adapters;
use serde_json::{Value, json};

/// A database whose implementation is the recorded object, and a claim for it.
fn staged(recorded: &Recorded) -> Stage {
    let mut stage = Stage::new(&[part_kind(recorded.kind())]);
    let object = recorded.at("object");
    let engine = recorded.connection().remove("type");
    stage.apply(json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabase",
        "metadata": {"name": "orders", "namespace": SYSTEM},
        "spec": {
            "engine": engine,
            "template": {"apiVersion": object["apiVersion"], "kind": object["kind"], "spec": object["spec"]},
        },
    }));
    stage
}

fn claimed(stage: &mut Stage) {
    stage.apply(json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabaseClaim",
        "metadata": {"name": "shop", "namespace": "app"},
        "spec": {"resourceName": "orders"},
    }));
}

fn phase(stage: &Stage) -> Value {
    stage.get(RESOURCE, SYSTEM, "orders")["status"]["phase"].clone()
}

#[test]
fn every_adapter_has_a_recorded_object() {
    let operators = operators();
    let recorded: Vec<_> = operators.all().map(|(_, recorded)| part_kind(recorded.kind())).collect();
    let adapters = Adapters::builtin();
    let is_recorded = |kind: &str, name: &str| {
        let kinds = recorded.iter().filter_map(|k| Some((k, adapters.find(k)?)));
        kinds.into_iter().any(|(k, adapter)| &*k.kind == kind && adapter.name == name)
    };
    for ((group, kind), adapter) in adapters.all() {
        // Our own servers are not recorded: tests/databases uses real ones.
        if *group == *conductor::api::database::GROUP {
            continue;
        }
        assert!(is_recorded(kind, &adapter.name), "{kind}.{group}: {}", adapter.name);
    }
}

#[test]
fn an_object_is_ready_when_its_operator_means_it() {
    for (file, recorded) in operators().all() {
        let mut stage = staged(recorded);
        let part = stage.part(recorded.kind());
        let recorded = recorded.of(&part.to_json());
        let stages = recorded.stages();
        assert_eq!(stages.last().map(|(_, says)| says.as_str()), Some("ready"), "{file}");
        for (status, says) in stages {
            stage.says(&part.key(), status);
            let reported = stage.resources().remove(0);
            match says.strip_prefix("not ready: ") {
                Some(why) => {
                    let expected = format!("Creating: False ImplementationNotReady: {}: {why}", part.key());
                    assert_eq!(reported, expected, "{file}");
                }
                None => assert_eq!(
                    (says.as_str(), phase(&stage)),
                    ("ready", json!("Available")),
                    "{file}: {reported}"
                ),
            }
        }
    }
}

#[test]
fn a_failed_object_fails_its_resource_with_the_operators_message() {
    let mut failures = 0;
    for (file, recorded) in operators().all() {
        let mut stage = staged(recorded);
        let part = stage.part(recorded.kind());
        let Some((status, says)) = recorded.of(&part.to_json()).failed() else { continue };
        failures += 1;
        stage.says(&part.key(), status);
        let why = says.strip_prefix("failed: ").unwrap_or_default();
        let expected = format!("Failed: False ImplementationFailed: {}: {why}", part.key());
        assert_eq!(stage.resources(), [expected], "{file}");
    }
    assert_eq!(failures, 6, "Percona's four operators report no failure");
}

#[test]
fn an_operator_that_says_too_much_is_repeated_in_part() {
    let operators = operators();
    let (_, recorded) =
        operators.all().find(|(file, _)| *file == "rds-instance.yaml").expect("it is recorded");
    let mut stage = staged(recorded);
    let part = stage.part(recorded.kind());
    stage.says(&part.key(), json!({"phase": "Creating", "message": "x".repeat(100_000)}));
    let reported = stage.resources().remove(0);
    assert!(reported.contains("Creating: xxx") && reported.len() < 500, "{} characters", reported.len());
}

#[test]
fn an_application_finds_what_the_operator_made() {
    for (file, recorded) in operators().all() {
        let mut stage = staged(recorded);
        claimed(&mut stage);
        let part = stage.part(recorded.kind());
        let recorded = recorded.of(&part.to_json());
        stage.says(&part.key(), recorded.ready());
        let waits = stage.claim_says("app", "shop", "Ready");
        assert!(waits.starts_with("False ConnectionIncomplete: Secret "), "{file}: {waits}");
        assert!(waits.ends_with(" does not exist yet"), "{file}: {waits}");
        stage.apply(recorded.at("secret").clone());
        let ready = stage.claim_says("app", "shop", "Ready");
        assert_eq!(ready, "True ConnectionPublished: published as Secret shop", "{file}");
        assert_eq!(stage.published("app", "shop"), recorded.connection(), "{file}");
    }
}

#[test]
fn missing_outputs_of_an_operator_are_named() {
    for (file, recorded) in operators().all() {
        let mut stage = staged(recorded);
        claimed(&mut stage);
        let part = stage.part(recorded.kind());
        // A database that was ready and has forgotten how it is reached, as an operator's restart may leave it.
        stage.says(&part.key(), recorded.of(&part.to_json()).ready());
        stage.says(&part.key(), json!({}));
        let reported = stage.claim_says("app", "shop", "Ready");
        for key in recorded.at("waits").as_array().into_iter().flatten().filter_map(Value::as_str) {
            assert!(
                reported.contains(&format!("{key} (")) && reported.contains("not known yet"),
                "{file}: {key}: {reported}"
            );
        }
    }
}

#[test]
fn a_secret_that_is_not_the_objects_is_not_handed_out() {
    for (file, recorded) in operators().all() {
        let mut stage = staged(recorded);
        claimed(&mut stage);
        let part = stage.part(recorded.kind());
        let recorded = recorded.of(&part.to_json());
        stage.says(&part.key(), recorded.ready());
        let mut foreign = recorded.at("secret").clone();
        let metadata = foreign["metadata"].as_object_mut().expect("it has some");
        metadata.remove("labels");
        metadata.remove("ownerReferences");
        stage.apply(foreign);
        let reported = stage.claim_says("app", "shop", "Ready");
        // Named after the part, a Secret is the part's: its operator's, or an administrator's who means it.
        let secret = recorded.at("secret")["metadata"]["name"].as_str().unwrap_or_default();
        let is_named = secret.starts_with(&format!("{}-", part.key().name));
        assert_eq!(reported.starts_with("False SecretNotAllowed"), !is_named, "{file}: {reported}");
    }
}
