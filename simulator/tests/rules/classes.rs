//! What a class says to a claim before anything is made, and what becomes of what it made when it is edited: its
//! parameters, its labels, its kinds, its update policy.

use crate::support::{
    CLAIM, CLASS, RESOURCE, Run, START, Scene, With, makes, part_of, ready, requests, world,
};
use conductor::engine::Config;
use conductor::model::AllowedKinds;
use conductor_simulator::harness::Harness;
use serde_json::{Value, json};

const MADE: &str = "rdb-1234-abcd";

/// A class with sizes to choose from.
fn sized() -> Value {
    json!({
        "reclaimPolicy": "Delete",
        "parameters": {"owner": "ops"},
        "parameterSchema": {"type": "object", "properties": {
            "size": {"type": "string", "enum": ["small", "large"], "default": "small"},
            "replicas": {"type": "integer", "minimum": 1, "maximum": 5},
            "release": {"type": "string", "versions": ">=14 <17"},
            "owner": {"type": "string"},
        }},
        "template": {"apiVersion": "example.com/v1", "kind": "Instance", "spec": {
            "size": "${parameters.size}", "owner": "${parameters.owner}",
        }},
    })
}

fn scene(class: Value, spec: Value) -> Scene {
    world().class("k", class).claim("c", requests(5).with(json!({"class": "k"})).with(spec)).uid("1234-ABCD")
}

fn spec_of_part(run: &Run) -> Value {
    part_of(&run.harness.world, MADE).expect("it is made").body["spec"].clone()
}

fn becomes_ready(run: &mut Run) {
    let key = part_of(&run.harness.world, MADE).expect("it is made").key();
    run.harness.touch_parts(|world| world.set_part_status(&key, ready()));
}

#[test]
fn parameters_are_the_schemas_then_the_classes_then_the_claims() {
    let run = scene(sized(), json!({})).settle();
    assert_eq!(spec_of_part(&run), json!({"size": "small", "owner": "ops"}));
    let run = scene(sized(), json!({"parameters": {"size": "large", "owner": "me"}})).settle();
    assert_eq!(spec_of_part(&run), json!({"size": "large", "owner": "me"}));
}

#[test]
fn a_parameter_that_the_class_does_not_allow_is_reported_before_anything_is_made() {
    for (parameters, reported) in [
        (json!({"size": "huge"}), "class k: spec.parameters.size: `huge` is not offered"),
        (json!({"replicas": 9}), "use at most 5"),
        (json!({"release": "17.2"}), "use a version in \">=14 <17\""),
        (json!({"sise": "large"}), "spec.parameters.sise: `large` is not known to the class"),
    ] {
        let run = scene(sized(), json!({"parameters": parameters})).settle();
        assert_eq!(run.outcome("c"), "ProvisioningFailed", "{parameters}");
        assert!(run.message("c").contains(reported), "{parameters}: {}", run.message("c"));
        assert!(run.resources().is_empty() && run.harness.world.parts().next().is_none());
    }
}

#[test]
fn a_parameter_that_is_repaired_is_tried_and_so_is_a_class() {
    let huge = json!({"parameters": {"size": "huge"}});
    let mut run = scene(sized(), huge.clone()).settle();
    let writes = run.harness.writes();
    run.harness.advance(600_000);
    assert_eq!(run.harness.writes(), writes, "it is not tried again by itself");
    run.edit_spec(CLAIM, "c", json!({"parameters": {"size": "large"}}));
    assert_eq!(spec_of_part(&run)["size"], "large");
    let mut run = scene(sized(), huge).settle();
    run.edit(CLASS, "k", |class| {
        class.body["parameterSchema"]["properties"]["size"]["enum"] = json!(["huge"]);
        class.body["parameterSchema"]["properties"]["size"]["default"] = json!("huge");
    });
    assert_eq!(spec_of_part(&run)["size"], "huge");
}

#[test]
fn an_unsupported_schema_provisions_nothing_and_is_reported() {
    let mut class = sized();
    class["parameterSchema"]["properties"]["size"]["$ref"] = json!("elsewhere");
    let run = scene(class, json!({})).settle();
    assert!(run.message("c").contains("parameterSchema.properties.size.$ref"), "{}", run.message("c"));
    assert!(run.resources().is_empty());
}

#[test]
fn a_selector_matches_the_class_whose_resources_get_its_labels() {
    let dev = json!({"selector": {"matchLabels": {"env": "dev"}}});
    let run = scene(makes("Delete"), dev.clone()).settle();
    assert!(run.message("c").contains("does not have the labels"), "{}", run.message("c"));
    let run = scene(makes("Delete").with(json!({"labels": {"env": "dev"}})), dev).settle();
    let labels = run.find(RESOURCE, MADE).expect("it is made").metadata.labels.clone().unwrap_or_default();
    assert_eq!(labels.get("env").map(String::as_str), Some("dev"));
}

#[test]
fn a_class_makes_no_kind_that_is_not_on_its_own_list() {
    let listed = |kinds: Value| makes("Delete").with(json!({"allowedKinds": kinds}));
    let run = scene(listed(json!(["Cluster.postgresql.cnpg.io"])), json!({})).settle();
    let reported = run.message("c");
    assert!(reported.contains("allowedKinds") && reported.contains("Instance.example.com"), "{reported}");
    assert!(run.resources().is_empty());
    for kinds in [json!(["Instance.example.com"]), json!(["*.example.com"])] {
        assert_eq!(scene(listed(kinds), json!({})).settle().outcome("c"), "Provisioning");
    }
}

#[test]
fn an_installation_creates_only_kinds_on_its_list() {
    let start = |scene: Scene, kinds: &[&str]| {
        let allowed_kinds = AllowedKinds::new(kinds.iter().map(|kind| (*kind).to_owned()));
        let config = Config { allowed_kinds, ..Config::default() };
        Run { harness: Harness::start(scene.into_world(), config, START) }
    };
    let run = start(scene(makes("Delete"), json!({})), &["Cluster.postgresql.cnpg.io"]);
    let reported = run.message("c");
    assert!(
        reported.contains("`Instance.example.com` is not on this installation's list of kinds"),
        "{reported}"
    );
    assert!(run.resources().is_empty());
    // An administrator's own resource is under the same list.
    let by_hand =
        world().resource("r", crate::support::db(5).with(json!({"template": makes("Delete")["template"]})));
    let run = start(by_hand.clone(), &[]);
    assert!(run.reported("r").starts_with("KindNotAllowed"), "{}", run.reported("r"));
    assert!(run.harness.world.parts().next().is_none());
    assert!(
        start(by_hand, &["instance.EXAMPLE.com"]).harness.world.parts().next().is_some(),
        "case does not count"
    );
}

#[test]
fn an_edited_class_reaches_what_it_made_only_where_it_says_so() {
    for (policy, size) in [(json!("Follow"), "large"), (json!("Never"), "small"), (Value::Null, "small")] {
        let mut run = scene(sized().with(json!({"updatePolicy": policy})), json!({})).settle();
        becomes_ready(&mut run);
        let before = part_of(&run.harness.world, MADE).expect("it is made").metadata.uid.clone();
        run.edit(CLASS, "k", |class| {
            class.body["parameterSchema"]["properties"]["size"]["default"] = json!("large")
        });
        assert_eq!(spec_of_part(&run)["size"], size, "{policy}");
        assert_eq!(part_of(&run.harness.world, MADE).expect("it is made").metadata.uid, before);
        assert_eq!(run.resource(MADE), "Bound by c");
        let writes = run.harness.writes();
        run.harness.advance(600_000);
        assert_eq!(run.harness.writes(), writes, "{policy}: nothing is written once all is well");
    }
}

#[test]
fn a_resource_whose_parameters_an_edited_class_no_longer_allows_stays_as_it_is() {
    let large = json!({"parameters": {"size": "large"}});
    let mut run = scene(sized().with(json!({"updatePolicy": "Follow"})), large).settle();
    becomes_ready(&mut run);
    run.edit(CLASS, "k", |class| {
        class.body["parameterSchema"]["properties"]["size"]["enum"] = json!(["small"])
    });
    assert_eq!(spec_of_part(&run)["size"], "large");
    assert_eq!(run.resource(MADE), "Bound by c");
}

#[test]
fn what_is_retained_says_where_it_is_on_the_resource_and_when_that_goes() {
    let mut run = scene(makes("Retain"), json!({})).settle();
    becomes_ready(&mut run);
    let part = part_of(&run.harness.world, MADE).expect("it is made").key().to_string();
    run.delete(CLAIM, "c");
    assert!(
        run.reported(MADE).contains(&format!("Its implementation stays: {part}")),
        "{}",
        run.reported(MADE)
    );
    run.delete(RESOURCE, MADE);
    assert!(run.find(RESOURCE, MADE).is_none());
    assert_eq!(run.harness.world.parts().count(), 1);
    let note = run.harness.notes().iter().find(|note| note.reason == "ImplementationRetained");
    assert!(note.is_some_and(|note| note.message.contains(&part)), "{:?}", run.harness.notes());
}

#[test]
fn a_deletion_that_is_stuck_says_since_when_and_on_what() {
    let mut run = scene(makes("Delete"), json!({})).settle();
    becomes_ready(&mut run);
    let key = part_of(&run.harness.world, MADE).expect("it is made").key();
    let keep = vec!["example.com/backup".to_owned()];
    run.harness.touch_parts(|world| world.edit_part(&key, |part| part.metadata.finalizers = Some(keep)));
    run.delete(CLAIM, "c");
    let reported = run.reported(MADE);
    assert!(
        reported.contains("requested at 1970-01-01T00:00:00Z and waits for example.com/backup"),
        "{reported}"
    );
    let writes = run.harness.writes();
    run.harness.advance(600_000);
    assert_eq!(run.harness.writes(), writes, "what is stuck is not written about again and again");
}

#[test]
fn a_class_of_several_engines_provisions_the_requested_one() {
    let class = || {
        let declared = json!({"engine": "mysql", "engines": ["mariadb"], "capacity": {"storage": "9Gi"}});
        makes("Delete").with(declared)
    };
    let engine_of = |run: &Run| {
        let made = run.harness.world.objects().find(|object| object.kind == RESOURCE).expect("it is made");
        made.body["spec"]["engine"].clone()
    };
    for (requested, made) in
        [(json!({"engine": "mariadb"}), "mariadb"), (json!({"engine": "MySQL"}), "mysql")]
    {
        assert_eq!(engine_of(&scene(class(), requested).settle()), made);
    }
    assert_eq!(engine_of(&scene(class(), json!({"engine": null})).settle()), "mysql", "the first, unasked");
    let run = scene(class(), json!({"engine": "postgresql"})).settle();
    let reported = "class k makes mysql or mariadb, and postgresql is requested";
    assert!(run.message("c").contains(reported), "{}", run.message("c"));
}
