//! Provisioning that fails for good: the class's deadline, the message, the unfinished objects, and the next class of a
//! claim that lists several.

use crate::support::{CLAIM, CLASS, RESOURCE, Run, START, With, makes, ready, requests, world};
use conductor::engine::Config;
use conductor::model::PartKind;
use conductor::model::part::WhyMissing;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use k8s_openapi::jiff::Timestamp;
use serde_json::{Value, json};

fn within(policy: &str, deadline: &str) -> Value {
    makes(policy).with(json!({"deadline": deadline}))
}

/// Two classes, the first of them in a hurry.
fn two(policy: &str) -> Run {
    let mut run = world()
        .class("first", within(policy, "10m"))
        .class("second", makes("Delete"))
        .claim("c", requests(5).with(json!({"classes": ["first", "second"]})))
        .settle();
    born_now(&mut run);
    run
}

fn one(policy: &str) -> Run {
    let mut run = world()
        .class("first", within(policy, "10m"))
        .claim("c", requests(5).with(json!({"class": "first"})))
        .settle();
    born_now(&mut run);
    run
}

/// The world has no clock: the test sets the resources' age.
pub fn born_now(run: &mut Run) {
    let born = Timestamp::from_millisecond(run.harness.now().0).expect("it is a time");
    for name in names(run) {
        run.edit(RESOURCE, &name, |resource| {
            resource.metadata.creation_timestamp.get_or_insert(Time(born));
        });
    }
}

fn names(run: &Run) -> Vec<String> {
    run.resources().iter().filter_map(|line| line.split(' ').next().map(str::to_owned)).collect()
}

fn class_of(run: &Run, name: &str) -> String {
    run.body(RESOURCE, name)["spec"]["class"].as_str().unwrap_or_default().to_owned()
}

#[test]
fn what_is_not_ready_in_time_has_failed_and_the_next_class_is_tried() {
    let mut run = two("Delete");
    assert_eq!(names(&run).len(), 1);
    run.harness.advance(599_000);
    assert_eq!(class_of(&run, &names(&run)[0]), "first", "not before its time");
    run.harness.advance(2_000);
    let made = names(&run);
    assert_eq!(made.iter().map(|name| class_of(&run, name)).collect::<Vec<_>>(), ["second"]);
    assert_eq!(run.harness.world.parts().count(), 1, "what the first made half is gone");
    let part = run.harness.world.parts().next().expect("it is made").key();
    run.harness.touch_parts(|world| world.set_part_status(&part, ready()));
    assert_eq!(run.outcome("c"), format!("-> {}", made[0]));
    let refused = &run.body(CLAIM, "c")["status"]["refusedBy"][0];
    assert_eq!(refused["class"], "first");
    assert!(refused["message"].as_str().is_some_and(|m| m.contains("not ready in the time")), "{refused}");
}

#[test]
fn what_is_ready_in_time_is_not_judged_by_the_clock_any_more() {
    let mut run = one("Delete");
    let part = run.harness.world.parts().next().expect("it is made").key();
    run.harness.touch_parts(|world| world.set_part_status(&part, ready()));
    run.harness.touch_parts(|world| world.set_part_status(&part, json!({"phase": "Restarting"})));
    run.harness.advance(3_600_000);
    assert_eq!(run.body(CLAIM, "c")["status"]["phase"], "Bound");
    assert_eq!(names(&run).len(), 1);
}

#[test]
fn a_failure_for_good_is_reported_on_the_claim_and_not_tried_again() {
    let mut run = one("Delete");
    run.harness.advance(601_000);
    assert_eq!(run.outcome("c"), "ProvisioningFailed");
    assert!(run.message("c").contains("class first: it was not ready in the time"), "{}", run.message("c"));
    assert_eq!(
        (names(&run).len(), run.harness.world.parts().count()),
        (0, 0),
        "what was half made is reclaimed"
    );
    // Refused classes are counted again when parked claims are resynced.
    run.harness.advance(600_000);
    let writes = run.harness.writes();
    run.harness.advance(3_600_000);
    assert_eq!(run.harness.writes(), writes);
}

#[test]
fn a_controller_that_starts_anew_does_not_try_what_has_failed_for_good() {
    let mut run = one("Delete");
    run.harness.advance(1_201_000);
    let reported = run.message("c");
    let mut run = Run { harness: run.harness.restart(Config::default()) };
    run.harness.advance(3_600_000);
    assert_eq!((run.outcome("c"), run.message("c")), ("ProvisioningFailed".to_owned(), reported));
    assert!(names(&run).is_empty());
    assert_eq!(run.harness.writes(), 0);
}

#[test]
fn a_class_that_is_repaired_is_tried_again_and_so_is_a_claim_that_is_edited() {
    let mut run = one("Delete");
    run.harness.advance(601_000);
    run.edit(CLASS, "first", |class| class.body["deadline"] = json!("1h"));
    assert_eq!((run.outcome("c"), names(&run).len()), ("Provisioning".to_owned(), 1));
    let mut run = one("Delete");
    run.harness.advance(601_000);
    run.edit_spec(CLAIM, "c", json!({"parameters": {"note": "once more"}}));
    assert_eq!((run.outcome("c"), names(&run).len()), ("Provisioning".to_owned(), 1));
}

#[test]
fn a_second_failure_of_a_repaired_class_is_reported_too() {
    let mut run = one("Delete");
    run.harness.advance(601_000);
    run.edit(CLASS, "first", |class| class.body["deadline"] = json!("20m"));
    born_now(&mut run);
    run.harness.advance(1_201_000);
    assert_eq!((run.outcome("c"), names(&run).len()), ("ProvisioningFailed".to_owned(), 0));
}

#[test]
fn what_failed_under_retain_is_kept_and_said_to_be() {
    let mut run = two("Retain");
    let failed = names(&run)[0].clone();
    run.harness.advance(601_000);
    assert_eq!(run.resource(&failed), "Failed");
    assert!(run.reported(&failed).starts_with("DeadlineExceeded"), "{}", run.reported(&failed));
    assert_eq!(names(&run).len(), 2);
    assert_eq!(run.harness.world.parts().count(), 2, "what the first made is retained");
}

#[test]
fn a_class_whose_object_lives_in_no_namespace_is_left_for_the_next() {
    let mut nodes = makes("Delete");
    nodes["template"]["kind"] = json!("Plot");
    let mut world = world()
        .class("first", nodes)
        .class("second", makes("Delete"))
        .claim("c", requests(5).with(json!({"classes": ["first", "second"]})))
        .into_world();
    world.uninstall(&PartKind::new("example.com/v1", "Plot"), WhyMissing::NotNamespaced);
    let run = Run::on(world);
    let classes: Vec<String> = names(&run).iter().map(|name| class_of(&run, name)).collect();
    assert_eq!(classes, ["second"], "{}", run.message("c"));
    let refused = &run.body(CLAIM, "c")["status"]["refusedBy"][0];
    assert!(refused["message"].as_str().is_some_and(|m| m.contains("is cluster-scoped")), "{refused}");
}

#[test]
fn one_that_waits_for_another_class_does_not_keep_its_like_from_being_served() {
    let mut run = two("Delete");
    run.put(crate::support::claim("d", requests(5).with(json!({"classes": ["first", "second"]}))));
    run.harness.advance(601_000);
    let classes: Vec<String> = names(&run).iter().map(|name| class_of(&run, name)).collect();
    assert!(classes.contains(&"first".to_owned()) && classes.contains(&"second".to_owned()), "{classes:?}");
}

#[test]
fn a_claim_that_goes_while_its_class_fails_leaves_nothing() {
    let mut run = two("Delete");
    run.harness.advance(601_000);
    run.delete(CLAIM, "c");
    assert_eq!((names(&run).len(), run.harness.world.parts().count()), (0, 0));
    assert!(run.find(CLAIM, "c").is_none());
    assert!(run.harness.now().0 > START.0);
}

/// A class that retains, and whose template needs a parameter that the claim may lack.
fn needs_a_tier() -> Value {
    makes("Retain").with(json!({"template": {
        "apiVersion": "example.com/v1", "kind": "Instance", "spec": {"tier": "${claim.spec.parameters.tier}"},
    }}))
}

#[test]
fn what_cannot_be_rendered_leaves_nothing_though_its_class_retains() {
    let scene =
        || world().class("first", needs_a_tier()).claim("c", requests(5).with(json!({"class": "first"})));
    let mut run = scene().settle();
    assert_eq!(run.outcome("c"), "ProvisioningFailed");
    assert!(run.message("c").contains("tier"), "{}", run.message("c"));
    assert!(names(&run).is_empty(), "{:?}", run.resources());
    run.delete(CLAIM, "c");
    assert!(run.find(CLAIM, "c").is_none() && names(&run).is_empty());
    // A claim that is repaired is served, and so is one whose class is.
    let mut run = scene().settle();
    run.edit_spec(CLAIM, "c", json!({"parameters": {"tier": "gold"}}));
    assert_eq!((run.outcome("c"), run.harness.world.parts().count()), ("Provisioning".to_owned(), 1));
    let mut run = scene().settle();
    run.edit(CLASS, "first", |class| class.body["template"]["spec"]["tier"] = json!("silver"));
    assert_eq!((run.outcome("c"), run.harness.world.parts().count()), ("Provisioning".to_owned(), 1));
    // Once something was made, it is retained.
    run.delete(CLAIM, "c");
    assert_eq!((names(&run).len(), run.harness.world.parts().count()), (1, 1));
}

#[test]
fn a_claim_that_goes_before_anything_could_be_made_leaves_nothing() {
    let mut world = world()
        .class("first", makes("Retain"))
        .claim("c", requests(5).with(json!({"class": "first"})))
        .into_world();
    world.uninstall(&PartKind::new("example.com/v1", "Instance"), WhyMissing::NotInstalled);
    let mut run = Run::on(world);
    assert_eq!(names(&run).len(), 1);
    run.delete(CLAIM, "c");
    assert!(run.find(CLAIM, "c").is_none() && names(&run).is_empty(), "{:?}", run.resources());
}

#[test]
fn a_retained_resource_whose_status_was_lost_stays() {
    let mut run = one("Retain");
    let name = names(&run)[0].clone();
    run.edit(RESOURCE, &name, |resource| resource.body["status"] = Value::Null);
    run.delete(CLAIM, "c");
    assert_eq!((names(&run), run.harness.world.parts().count()), (vec![name], 1));
}
