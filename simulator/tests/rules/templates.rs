//! Templates with expressions: what a class makes of a claim, and the messages for its author and its users if that
//! fails. The language itself is tested beside it.

use crate::support::{CLAIM, RESOURCE, Run, With, ready, requests, world};
use serde_json::{Value, json};

/// A class that makes instances with this spec.
fn computes(spec: Value) -> Value {
    json!({
        "reclaimPolicy": "Delete",
        "parameters": {"tier": "small", "zone": "a"},
        "template": {
            "apiVersion": "example.com/v1", "kind": "Instance", "spec": spec,
            "metadata": {"labels": {"owner": "${claim.metadata.namespace}"}},
        },
    })
}

fn claim() -> Value {
    requests(5).with(json!({"class": "k", "parameters": {"tier": "large"}}))
}

fn provisioned(class: Value) -> Run {
    world().class("k", class).claim("c", claim()).settle()
}

/// The only resource.
fn made(run: &Run) -> String {
    let resources = run.resources();
    assert_eq!(resources.len(), 1, "{resources:?}");
    resources[0].split(' ').next().unwrap_or_default().to_owned()
}

#[test]
fn a_part_gets_what_claim_class_resource_and_parameters_say() {
    let run = provisioned(computes(json!({
        "name": "db-${claim.metadata.name}",
        "bytes": "${quantity(resource.spec.capacity.storage).asInteger()}",
        "tier": "${parameters.tier}", "zone": "${parameters.zone}", "class": "${class.metadata.name}",
        "plain": [1, {"two": true}],
    })));
    let part = run.part(&made(&run)).expect("it is made").clone();
    let expected = json!({
        "name": "db-c", "bytes": 5_368_709_120_i64, "tier": "large", "zone": "a", "class": "k",
        "plain": [1, {"two": true}],
    });
    assert_eq!(part.body["spec"], expected);
    let claim = run.find(CLAIM, "c").expect("it is there");
    assert_eq!(part.metadata.labels.expect("it has some").get("owner"), claim.metadata.namespace.as_ref());
}

#[test]
fn what_was_given_stays_with_the_resource_when_claim_and_class_change() {
    let mut run = provisioned(computes(json!({"tier": "${parameters.tier}"})));
    let resource = made(&run);
    run.edit_spec(CLAIM, "c", json!({"parameters": {"tier": "huge"}}));
    let given = &run.body(RESOURCE, &resource)["spec"]["inputs"];
    assert_eq!(given["parameters"]["tier"], "large");
    assert_eq!(given["claim"]["metadata"]["name"], "c");
    assert_eq!(run.part(&resource).expect("it is made").body["spec"]["tier"], "large");
}

#[test]
fn a_class_that_can_never_work_makes_nothing_and_says_where() {
    let run = provisioned(computes(json!({"engine": "${claim.spec.egnine}"})));
    assert!(run.resources().is_empty(), "{:?}", run.resources());
    let message = run.message("c");
    assert!(message.contains("template.spec.engine") && message.contains("claim.spec.egnine"), "{message}");
}

#[test]
fn an_expression_that_finds_nothing_fails_for_good_and_is_reported_on_the_claim() {
    let run = provisioned(computes(json!({"hint": "${parameters.hint}"})));
    assert!(
        run.resources().is_empty(),
        "nothing was made of it, and its policy says Delete: {:?}",
        run.resources()
    );
    let message = run.message("c");
    assert_eq!(run.outcome("c"), "ProvisioningFailed");
    assert!(message.contains("class k") && message.contains("template.spec.hint"), "{message}");
}

#[test]
fn the_next_class_is_tried_where_the_templates_of_one_cannot_be_rendered() {
    let broken = computes(json!({"size": "${1 / (parameters.tier == 'large' ? 0 : 1)}"}));
    let spec = requests(5).with(json!({"classes": ["broken", "k"], "parameters": {"tier": "large"}}));
    let run = world().class("broken", broken).class("k", computes(json!({}))).claim("c", spec).settle();
    assert_eq!(run.body(RESOURCE, &made(&run))["spec"]["class"], "k", "{}", run.message("c"));
    let refused = &run.body(CLAIM, "c")["status"]["refusedBy"][0];
    assert_eq!(refused["class"], "broken", "{refused}");
    assert!(refused["message"].as_str().is_some_and(|m| m.contains("template.spec.size")), "{refused}");
}

#[test]
fn what_keeps_a_resource_from_being_made_is_reported_on_its_claim() {
    let run = world().without_kinds().class("k", computes(json!({}))).claim("c", claim()).settle();
    let message = run.message("c");
    assert!(message.starts_with("making resource ") && message.contains("KindNotInstalled: "), "{message}");
}

#[test]
fn a_class_says_when_its_object_is_ready() {
    let class = computes(json!({})).with(json!({"ready": "object.status.members >= parameters.members"}));
    let class = class.with(json!({"parameters": {"members": 2}}));
    let mut run = provisioned(class);
    let resource = made(&run);
    run.part_says(&resource, ready());
    assert!(run.resource(&resource).starts_with("Creating"), "its own status does not count");
    run.part_says(&resource, json!({"members": 1}));
    assert!(run.resource(&resource).starts_with("Creating"), "{}", run.resource(&resource));
    run.part_says(&resource, json!({"members": 2}));
    assert_eq!(run.body(CLAIM, "c")["status"]["phase"], "Bound");
}

#[test]
fn an_invalid_ready_expression_is_reported_on_the_claim() {
    let mut run = provisioned(computes(json!({})).with(json!({"ready": "1 + 1"})));
    let resource = made(&run);
    run.part_says(&resource, ready());
    let message = run.message("c");
    assert!(message.contains("TemplateError") && message.contains("neither true nor false"), "{message}");
}

#[test]
fn labels_that_are_not_text_are_reported_with_their_path() {
    for (label, at_once) in [(json!(5), true), (json!("${size(claim.metadata.name)}"), false)] {
        let mut class = computes(json!({}));
        class["template"]["metadata"]["annotations"] = json!({"count": label});
        let run = provisioned(class);
        assert!(run.resources().is_empty(), "{:?}", run.resources());
        let message = run.message("c");
        assert!(message.contains("template.metadata.annotations.count"), "{at_once}: {message}");
        assert!(message.contains("string("), "{message}");
    }
}

#[test]
fn a_template_that_names_another_namespace_is_refused() {
    let class = |namespace: &str| {
        let mut class = computes(json!({}));
        class["template"]["metadata"]["namespace"] = json!(namespace);
        class
    };
    let run = provisioned(class("elsewhere"));
    assert!(run.resources().is_empty(), "{:?}", run.resources());
    let message = run.message("c");
    assert!(message.contains("template.metadata.namespace") && message.contains("elsewhere"), "{message}");
    assert_eq!(provisioned(class("conductor-system")).resources().len(), 1);
}

#[test]
fn defaults_that_violate_the_schema_are_reported_as_the_classes() {
    let schema = |default: Value| json!({"properties": {"tier": {"type": "string", "enum": ["small", "large"], "default": default}, "zone": {"type": "string"}}});
    let wrong_default = computes(json!({})).with(json!({"parameterSchema": schema(json!("huge"))}));
    let wrong_own = computes(json!({}))
        .with(json!({"parameterSchema": schema(json!("small")), "parameters": {"tier": "tiny"}}));
    for (class, reported) in
        [(wrong_default, "parameterSchema.properties.tier.default"), (wrong_own, "parameters.tier")]
    {
        let run = provisioned(class);
        let message = run.message("c");
        assert!(run.resources().is_empty() && message.contains(reported), "{message}");
        assert!(run.body(CLAIM, "c")["status"]["refusedBy"].is_null(), "it is not the claim's fault");
    }
}

#[test]
fn a_resource_of_an_administrator_may_compute_from_itself() {
    let template = json!({
        "apiVersion": "example.com/v1", "kind": "Instance",
        "spec": {"engine": "${resource.spec.engine}", "for": "${resource.metadata.name}"},
    });
    let spec = crate::support::db(5).with(json!({"template": template}));
    let run = world().resource("r", spec).settle();
    assert_eq!(run.part("r").expect("it is made").body["spec"], json!({"engine": "postgresql", "for": "r"}));
}
