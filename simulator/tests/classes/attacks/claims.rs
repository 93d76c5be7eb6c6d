//! Claims that try to be more than values: structure, expressions, marks of ours, inputs that explode; and objects that
//! stand where ours should.

use super::{INSTANCE, SCOPED, applied, applied_after, class, computes, kind, made_of, told};
use crate::stage::{SYSTEM, Stage};
use conductor::model::Part;
use serde_json::{Value, json};

/// What comes of an attack.
pub(super) enum Outcome {
    /// Nothing is made, and this is told.
    Told(&'static str),
    /// An object is made, and at this place it has this, which does no harm.
    Harmless(&'static str, Value),
}
use Outcome::{Harmless, Told};

/// Good classes, bad claims: the class, the claim's spec and metadata, and what comes of it.
pub(super) fn claims() -> Vec<(&'static str, Value, Value, Value, Outcome)> {
    let asks = |parameters: Value| json!({ "parameters": parameters });
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
            asks(json!({"a": "${secret.password}"})),
            none(),
            Harmless("/spec/value", json!("${secret.password}")),
        ),
        (
            "an expression between other text",
            text(),
            asks(json!({"a": "${claim}$${x}"})),
            none(),
            Harmless("/spec/value", json!("db-${claim}$${x}")),
        ),
        (
            "structure in a text",
            text(),
            asks(json!({"a": "x\"}, \"kind\": \"Secret\", \"y\": {\"z\": \"\nkind: Secret"})),
            none(),
            Harmless("/spec/value", json!("db-x\"}, \"kind\": \"Secret\", \"y\": {\"z\": \"\nkind: Secret")),
        ),
        (
            "a map for a text",
            text(),
            asks(json!({"a": {"kind": "Secret"}})),
            none(),
            Told("gives a list or a map"),
        ),
        ("nothing for a text", text(), asks(json!({"a": null})), none(), Told("gives nothing")),
        ("a parameter that is not there", text(), none(), none(), Told("asks for a, which is not set")),
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
            asks(json!({"a": 0})),
            none(),
            Told("divides by zero"),
        ),
        (
            "a text for a number",
            computes("1 + parameters.a"),
            asks(json!({"a": "1"})),
            none(),
            Told("different types"),
        ),
        (
            "a number without its opposite",
            computes("parameters.a * 3"),
            asks(json!({"a": i64::MIN})),
            none(),
            Told("gives a number that is too large"),
        ),
        (
            "a long list for a loop",
            computes("parameters.a.map(x, x + x)"),
            asks(json!({ "a": numbers })),
            none(),
            Told("walks over more than 8 KiB"),
        ),
        (
            "a map for a list",
            computes("parameters.a.map(x, x)"),
            asks(json!({"a": {"b": 1, "c": 2}})),
            none(),
            Told("whose keys have no order"),
        ),
        (
            "a pattern that explodes",
            computes("'aaaa'.matches(parameters.a)"),
            asks(json!({"a": "((((a{100}){100}){100}){100}){100}"})),
            none(),
            Told("gives a function an argument that it does not take"),
        ),
        (
            "an object of 300 KiB",
            class(
                json!({"value": "${parameters.a}${parameters.a}${parameters.a}${parameters.a}${parameters.a}"}),
            ),
            asks(json!({ "a": big })),
            none(),
            Told("comes out larger than 256 KiB"),
        ),
        (
            "a text, two hundred times",
            computes(&format!("{}parameters.a", "parameters.a + ".repeat(200))),
            asks(json!({ "a": "x".repeat(200_000) })),
            none(),
            Told("makes too much of what it is given"),
        ),
        (
            "parameters of 300 KiB",
            whole(),
            asks(json!({"a": "x", "b": "x".repeat(300_000)})),
            none(),
            Told("is larger than 256 KiB"),
        ),
        (
            "a parameter that is not offered",
            offers(),
            asks(json!({"a": 1, "b": 2})),
            none(),
            Told("spec.parameters.b"),
        ),
        ("a parameter out of range", offers(), asks(json!({"a": 99})), none(), Told("is out of range")),
        (
            "a parameter of another type",
            offers(),
            asks(json!({"a": {"kind": "Secret"}})),
            none(),
            Told("is no integer"),
        ),
        (
            "an index beyond the end",
            computes("parameters.a[7]"),
            asks(json!({"a": [1]})),
            none(),
            Told("not in the list"),
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
            Told("is not the system namespace"),
        ),
        ("a status of its own", placed, none(), none(), Harmless("/status", Value::Null)),
        (
            "a kind that lives in no namespace",
            kind(SCOPED.0, SCOPED.1),
            none(),
            none(),
            Told("lives in no namespace, and is never made"),
        ),
        (
            "a kind that nobody knows",
            kind("example.com/v9", "Instance"),
            none(),
            none(),
            Told("is not installed"),
        ),
    ]
}

#[test]
fn what_a_claim_says_is_a_value_and_nothing_else() {
    for (attack, class, spec, metadata, outcome) in claims() {
        let stage = applied(class, spec, metadata);
        let made: Vec<Value> = stage.parts().into_iter().map(|(_, part)| part).collect();
        match outcome {
            Told(expected) => {
                assert!(told(&stage).contains(expected), "{attack}: {}", told(&stage));
                assert_eq!(made, [Value::Null; 0], "{attack}");
            }
            Harmless(place, value) => {
                assert_eq!(made.len(), 1, "{attack}: {}", told(&stage));
                assert_eq!(made[0].pointer(place).unwrap_or(&Value::Null), &value, "{attack}");
                is_ours(attack, &made[0]);
            }
        }
    }
}

/// Whatever was tried: the object is where ours are, is known for ours, and for nobody else's.
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
    let squat = |stage: &mut Stage| stage.lab.touch_parts(|world| world.put_part(theirs));
    let stage = applied_after(squat, class(json!({})), json!({}), json!({}));
    assert_eq!(stage.part(INSTANCE).key(), made.key());
    assert_eq!(stage.part(INSTANCE).body["spec"], json!({"theirs": true}));
    assert!(
        told(&stage).contains("exists and is not this resource's: rename or delete it"),
        "{}",
        told(&stage)
    );
}
