//! Attacks on classes, claims and connections, one line each: the attempt, and its message or why it is harmless. Nothing of an
//! attack is provisioned or published but what its outcome says.

mod claims;
mod connections;
mod templates;

use crate::stage::{SYSTEM, Stage, part_kind};
use conductor::event::WhyMissing;
use serde_json::{Value, json};

const INSTANCE: (&str, &str) = ("example.com/v1", "Instance");
const SCOPED: (&str, &str) = ("example.com/v1", "ClusterThing");

/// A class whose one object has this spec.
fn class(spec: Value) -> Value {
    made_of(json!({"apiVersion": INSTANCE.0, "kind": INSTANCE.1, "spec": spec}))
}

fn made_of(template: Value) -> Value {
    json!({ "template": template })
}

fn kind(api_version: &str, kind: &str) -> Value {
    made_of(json!({"apiVersion": api_version, "kind": kind}))
}

/// A class with several objects.
fn several(entries: &[(&str, Value)]) -> Value {
    let entry = |(id, spec): &(&str, Value)| json!({"id": id, "template": {"apiVersion": INSTANCE.0, "kind": INSTANCE.1, "spec": spec}});
    json!({"templates": entries.iter().map(entry).collect::<Vec<_>>()})
}

/// A class whose one object computes this.
fn computes(expression: &str) -> Value {
    class(json!({"value": format!("${{{expression}}}")}))
}

fn connects(connection: Value) -> Value {
    let mut class = class(json!({}));
    class["connection"] = connection;
    class
}

/// A class and a claim of it.
fn applied(class: Value, claim: Value, metadata: Value) -> Stage {
    applied_after(|_| {}, class, claim, metadata)
}

/// A class and a claim of it, in a cluster with an earlier object.
fn applied_after(before: impl FnOnce(&mut Stage), class: Value, claim: Value, metadata: Value) -> Stage {
    let mut stage = Stage::new(&[part_kind(INSTANCE)]);
    before(&mut stage);
    stage.harness.touch_parts(|world| [world.uninstall(&part_kind(SCOPED), WhyMissing::NotNamespaced)]);
    let mut class = class;
    class["apiVersion"] = json!("storage.conductor.io/v1alpha1");
    class["kind"] = json!("RelationalDatabaseClass");
    class["metadata"] = json!({"name": "k", "namespace": SYSTEM});
    stage.apply(class);
    let mut claim = json!({"spec": claim, "metadata": metadata});
    claim["apiVersion"] = json!("storage.conductor.io/v1alpha1");
    claim["kind"] = json!("RelationalDatabaseClaim");
    claim["metadata"]["name"] = json!("c");
    claim["metadata"]["namespace"] = json!("app");
    claim["spec"]["class"] = json!("k");
    stage.apply(claim);
    stage
}

/// All messages of the claim, the resource and the events.
fn reported(stage: &Stage) -> String {
    format!("{} | {}", stage.claim_says("app", "c", "Bound"), stage.resources().join(" | "))
}

#[test]
fn there_are_a_hundred_attacks_and_more() {
    let count = templates::classes().len()
        + claims::claims().len()
        + connections::connections().len()
        + connections::secrets().len();
    assert!(count >= 100, "{count}");
}
