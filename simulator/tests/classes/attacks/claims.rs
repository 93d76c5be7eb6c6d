//! Claims that try to be more than values: structure, expressions, marks of ours, inputs that explode; and objects that
//! stand where ours should.

use super::{INSTANCE, SCOPED, applied, applied_after, class, computes, kind, made_of, reported};
use crate::stage::{SYSTEM, Stage};
use conductor::model::Part;
use serde_json::{Value, json};

/// What comes of an attack.
pub(super) enum Outcome {
    /// Nothing is provisioned, and this message is reported.
    Reported(&'static str),
    /// An object is made, and at this place it has this, which does no harm.
    Harmless(&'static str, Value),
}
use Outcome::{Harmless, Reported};

/// Good classes, bad claims: the class, the claim's spec and metadata, and what comes of it.
pub(super) fn claims() -> Vec<(&'static str, Value, Value, Value, Outcome)> {
    let requests = |parameters: Value| json!({ "parameters": parameters });
    let text = || class(json!({"value": "db-${parameters.a}"}));
    let whole = || class(json!({"value": "${parameters.a}"}));
    let labelled = || {
        let mut class = class(json!({}));
        class["template"]["metadata"] =
            json!({"labels": "${claim.metadata.labels}", "annotations": "${claim.metadata.annotations}"});
        class
    };
    let offers = || {
        let mut class = computes("parameters.a");
        class["parameterSchema"] = json!({
            "type": "object", "additionalProperties": false,
            "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 4}},
        });
        class
    };
    let none = || json!({});
    let forged = json!({
        "conductor.io/resource": "another", "conductor.io/part": "other", "conductor.io/publishable": "true",
        "conductor.io/published": "true", "storage.conductor.io/x": "y", "team": "a",
    });
    let big = "x".repeat(60_000);
    let numbers: Vec<u32> = (0..5_000).collect();
    let placed = made_of(json!({
        "apiVersion": INSTANCE.0, "kind": INSTANCE.1, "spec": {},
        "metadata": {
            "name": "kube-root-ca", "finalizers": ["x/y"], "generateName": "x",
            "ownerReferences": [{"apiVersion": "v1", "kind": "Node", "name": "n", "uid": "u"}],
        },
        "status": {"phase": "Ready"},
    }));
    vec![
        (
            "an expression in a parameter",
            whole(),
            requests(json!({"a": "${secret.password}"})),
            none(),
            Harmless("/spec/value", json!("${secret.password}")),
        ),
        (
            "an expression between other text",
            text(),
            requests(json!({"a": "${claim}$${x}"})),
            none(),
            Harmless("/spec/value", json!("db-${claim}$${x}")),
        ),
        (
            "structure in a text",
            text(),
            requests(json!({"a": "x\"}, \"kind\": \"Secret\", \"y\": {\"z\": \"\nkind: Secret"})),
            none(),
            Harmless("/spec/value", json!("db-x\"}, \"kind\": \"Secret\", \"y\": {\"z\": \"\nkind: Secret")),
        ),
        (
            "a map for a text",
            text(),
            requests(json!({"a": {"kind": "Secret"}})),
            none(),
            Reported("returns a list or a map"),
        ),
        ("nothing for a text", text(), requests(json!({"a": null})), none(), Reported("returns null")),
        ("a parameter that is not there", text(), none(), none(), Reported("uses a, which is not set")),
        (
            "labels that forge whose it is",
            labelled(),
            none(),
            json!({"labels": forged, "annotations": {"conductor.io/resource-uid": "u-1", "note": "n"}}),
            Harmless("/metadata/labels/team", json!("a")),
        ),
        (
            "a division by zero",
            computes("1 / parameters.a"),
            requests(json!({"a": 0})),
            none(),
            Reported("divides by zero"),
        ),
        (
            "a text for a number",
            computes("1 + parameters.a"),
            requests(json!({"a": "1"})),
            none(),
            Reported("different types"),
        ),
        (
            "a number without its opposite",
            computes("parameters.a * 3"),
            requests(json!({"a": i64::MIN})),
            none(),
            Reported("returns a number that is too large"),
        ),
        (
            "a long list for a loop",
            computes("parameters.a.map(x, x + x)"),
            requests(json!({ "a": numbers })),
            none(),
            Reported("iterates over more than 8 KiB"),
        ),
        (
            "a map for a list",
            computes("parameters.a.map(x, x)"),
            requests(json!({"a": {"b": 1, "c": 2}})),
            none(),
            Reported("whose keys have no order"),
        ),
        (
            "a pattern that explodes",
            computes("'aaaa'.matches(parameters.a)"),
            requests(json!({"a": "((((a{100}){100}){100}){100}){100}"})),
            none(),
            Reported("calls a function with an argument of the wrong type"),
        ),
        (
            "an object of 300 KiB",
            class(
                json!({"value": "${parameters.a}${parameters.a}${parameters.a}${parameters.a}${parameters.a}"}),
            ),
            requests(json!({ "a": big })),
            none(),
            Reported("is larger than 256 KiB when rendered"),
        ),
        (
            "a text, two hundred times",
            computes(&format!("{}parameters.a", "parameters.a + ".repeat(200))),
            requests(json!({ "a": "x".repeat(200_000) })),
            none(),
            Reported("can produce a too large result"),
        ),
        (
            "parameters of 300 KiB",
            whole(),
            requests(json!({"a": "x", "b": "x".repeat(300_000)})),
            none(),
            Reported("is larger than 256 KiB"),
        ),
        (
            "a parameter that is not offered",
            offers(),
            requests(json!({"a": 1, "b": 2})),
            none(),
            Reported("spec.parameters.b"),
        ),
        (
            "a parameter out of range",
            offers(),
            requests(json!({"a": 99})),
            none(),
            Reported("is out of range"),
        ),
        (
            "a parameter of another type",
            offers(),
            requests(json!({"a": {"kind": "Secret"}})),
            none(),
            Reported("is not of type integer"),
        ),
        (
            "an index beyond the end",
            computes("parameters.a[7]"),
            requests(json!({"a": [1]})),
            none(),
            Reported("not in the list"),
        ),
        (
            "a name and owners of its own",
            placed.clone(),
            none(),
            none(),
            Harmless("/metadata/namespace", json!(SYSTEM)),
        ),
        (
            "a namespace of its own",
            made_of(json!({
                "apiVersion": INSTANCE.0, "kind": INSTANCE.1, "metadata": {"namespace": "kube-system"},
            })),
            none(),
            none(),
            Reported("is not the system namespace"),
        ),
        ("a status of its own", placed, none(), none(), Harmless("/status", Value::Null)),
        (
            "a kind that lives in no namespace",
            kind(SCOPED.0, SCOPED.1),
            none(),
            none(),
            Reported("is cluster-scoped, and is never created"),
        ),
        (
            "a kind that is not installed",
            kind("example.com/v9", "Instance"),
            none(),
            none(),
            Reported("is not installed"),
        ),
    ]
}

#[test]
fn what_a_claim_says_is_a_value_and_nothing_else() {
    for (attack, class, spec, metadata, outcome) in claims() {
        let stage = applied(class, spec, metadata);
        let made: Vec<Value> = stage.parts().into_iter().map(|(_, part)| part).collect();
        match outcome {
            Reported(expected) => {
                assert!(reported(&stage).contains(expected), "{attack}: {}", reported(&stage));
                assert_eq!(made, [Value::Null; 0], "{attack}");
            }
            Harmless(place, value) => {
                assert_eq!(made.len(), 1, "{attack}: {}", reported(&stage));
                assert_eq!(made[0].pointer(place).unwrap_or(&Value::Null), &value, "{attack}");
                is_ours(attack, &made[0]);
            }
        }
    }
}

/// Whatever is tried: the object is in the claim's place, labelled as ours, and belongs to this claim only.
fn is_ours(attack: &str, part: &Value) {
    let metadata = &part["metadata"];
    assert_eq!(metadata["namespace"], SYSTEM, "{attack}");
    assert!(metadata["name"].as_str().is_some_and(|name| name.starts_with("rdb-")), "{attack}: {metadata}");
    assert_eq!(metadata["labels"]["conductor.io/part"], "main", "{attack}");
    assert_eq!(
        (&metadata["ownerReferences"], &metadata["finalizers"]),
        (&Value::Null, &Value::Null),
        "{attack}"
    );
    for forged in ["conductor.io/publishable", "conductor.io/published", "storage.conductor.io/x"] {
        assert_eq!(metadata["labels"].get(forged), None, "{attack}");
    }
    assert_ne!(metadata["annotations"]["conductor.io/resource-uid"], "u-1", "{attack}");
}

#[test]
fn a_part_of_our_name_with_anothers_mark_is_not_taken_over() {
    let made = applied(class(json!({})), json!({}), json!({})).part(INSTANCE);
    let mut theirs: Part = made.clone();
    theirs.metadata.uid = Some("theirs".to_owned());
    theirs.body = json!({"spec": {"theirs": true}});
    let annotations = theirs.metadata.annotations.get_or_insert_default();
    annotations.insert("conductor.io/resource-uid".to_owned(), "another".to_owned());
    // The same world once more: what is made in it would have the same name.
    let squat = |stage: &mut Stage| stage.harness.touch_parts(|world| world.put_part(theirs));
    let stage = applied_after(squat, class(json!({})), json!({}), json!({}));
    assert_eq!(stage.part(INSTANCE).key(), made.key());
    assert_eq!(stage.part(INSTANCE).body["spec"], json!({"theirs": true}));
    assert!(
        reported(&stage).contains("exists and is not this resource's: rename or delete it"),
        "{}",
        reported(&stage)
    );
}
