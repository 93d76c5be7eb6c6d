//! Making a resource for a claim (rules 19 to 24). The implementation is played by the test.

use crate::support::{
    CLAIM, CLASS, Driver, RESOURCE, Run, Scene, With, answer_to, class, db, is_write, makes, part_of, ready,
    requests, resource, world,
};
use conductor::action::{Action, Change};
use conductor::event::Answer;
use conductor::model::{ObjectKey, PartKind};
use serde_json::{Value, json};

fn of_class() -> Value {
    requests(1).with(json!({"class": "fast"}))
}

fn scene() -> Scene {
    world().class("fast", makes("Delete")).claim("c", of_class()).uid("1234-ABCD")
}

const MADE: &str = "rdb-1234-abcd";

fn provisioning() -> Run {
    let run = scene().settle();
    assert_eq!(run.outcome("c"), "Provisioning");
    run
}

#[test]
fn a_class_that_is_deleted_while_it_has_resources_says_what_it_waits_for() {
    let sized = makes("Delete").with(json!({"capacity": {"storage": "9Gi"}}));
    let mut run = world().class("k", sized).claim("c", requests(5).with(json!({"class": "k"}))).settle();
    run.delete(CLASS, "k");
    assert_eq!(run.notes("k"), ["InUse"]);
    run.harness.advance(3_600_000);
    assert_eq!(run.notes("k"), ["InUse"], "one event");
    run.delete(CLAIM, "c");
    assert!(run.find(CLASS, "k").is_none());
}

#[test]
fn an_existing_resource_is_preferred_to_a_new_one() {
    let run = scene().resource("there", db(500).with(json!({"class": "fast"}))).settle();
    assert_eq!((run.outcome("c").as_str(), run.resources()), ("-> there", vec!["there".to_owned()]));
}

#[test]
fn a_claim_stays_pending_until_its_new_resource_is_available() {
    let mut run = provisioning();
    assert_eq!(run.body(CLAIM, "c")["status"]["phase"], "Pending");
    run.becomes_available(MADE);
    assert_eq!(run.outcome("c"), format!("-> {MADE}"));
    assert_eq!(run.resource(MADE), "Bound by c");
}

#[test]
fn a_new_resource_carries_its_claim_its_class_and_who_made_it() {
    let run = provisioning();
    let object = run.find(RESOURCE, MADE).unwrap();
    let spec = &object.body["spec"];
    assert_eq!(spec["claimRefs"][0]["uid"], "1234-ABCD");
    assert_eq!(spec["class"], "fast");
    assert_eq!(spec["reclaimPolicy"], "Delete");
    assert_eq!(spec["engine"], "postgresql");
    assert_eq!(spec["capacity"], Value::Null, "a class that declares nothing makes no promise");
    assert_eq!(spec["template"]["kind"], "Instance");
    let annotations = object.metadata.annotations.as_ref().unwrap();
    assert_eq!(annotations["conductor.io/provisioned-by"], "fast");
    assert_eq!(annotations["conductor.io/provisioned-for"], "1234-ABCD");
}

#[test]
fn a_new_resource_is_as_large_as_its_class_makes_them() {
    let sizes = json!({"capacity": {"storage": {"min": "10Gi", "step": "5Gi", "max": "30Gi"}}});
    let run = world()
        .class("fast", makes("Delete").with(sizes))
        .claim("small", of_class())
        .claim("odd", requests(12).with(json!({"class": "fast"})))
        .claim("huge", requests(31).with(json!({"class": "fast"})))
        .settle();
    let size = |claim: &str| {
        run.body(RESOURCE, &format!("rdb-{}", run.uid(claim)))["spec"]["capacity"]["storage"].clone()
    };
    assert_eq!((size("small"), size("odd")), (json!("10Gi"), json!("15Gi")));
    assert_eq!(run.outcome("huge"), "NoMatch");
}

#[test]
fn the_claim_is_protected_before_anything_is_made() {
    let mut driver = Driver::start(scene().into_world());
    driver.run();
    let writes: Vec<&Action> = driver.sent.iter().filter(|a| is_write(a)).collect();
    let protected = writes.iter().position(
        |a| matches!(a, Action::Write(w) if w.kind == CLAIM && matches!(w.change, Change::ClaimSpec { .. })),
    );
    let created = writes.iter().position(|a| matches!(a, Action::Create { .. }));
    assert!(protected.unwrap() < created.unwrap(), "{writes:#?}");
    let mut held = Driver::start(scene().into_world());
    held.run_holding_writes();
    held.wait_holding_writes(60_000);
    assert!(!held.sent.iter().any(|a| matches!(a, Action::Create { .. })), "not before the answer either");
}

#[test]
fn a_create_that_meets_itself_is_a_success() {
    let mut driver = Driver::start(scene().into_world());
    // The first create lands, its answer is lost, and the engine dies: its successor has not seen it yet.
    while !driver.outbox.iter().any(|a| matches!(a, Action::Create { .. })) {
        driver.run_holding_writes();
        let write = driver.take_write();
        if matches!(write, Action::Create { .. }) {
            driver.world.apply(&write).unwrap();
            break;
        }
        driver.carry_out(write);
    }
    let mut successor = Driver::start_without(driver.world.clone(), &[RESOURCE]);
    successor.run();
    successor.wait(60_000);
    let key = ObjectKey::new("conductor-system", MADE);
    assert!(successor.world.get(RESOURCE, &key).is_some());
    let part = part_of(&successor.world, MADE).unwrap().key();
    let event = successor.world.set_part_status(&part, ready());
    successor.deliver_event(event.unwrap());
    successor.run();
    assert_eq!(successor.outcome("c"), format!("-> {MADE}"));
}

#[test]
fn a_taken_name_is_reported_and_used_once_it_is_free() {
    let mut run = scene().resource(MADE, json!({"engine": "mysql"})).settle();
    assert_eq!(run.outcome("c"), "ProvisioningFailed");
    assert!(run.message("c").contains(MADE), "{}", run.message("c"));
    assert_eq!(run.notes("c").iter().filter(|n| **n == "ProvisioningFailed").count(), 1);
    run.delete(RESOURCE, MADE);
    assert_eq!(run.outcome("c"), "Provisioning");
    assert_eq!(run.body(RESOURCE, MADE)["spec"]["engine"], "postgresql");
    assert_eq!(run.bound_after_flush(), 0);
}

#[test]
fn a_new_resource_whose_reference_was_cleared_is_still_its_claims() {
    let mut run = provisioning();
    run.edit_spec(RESOURCE, MADE, json!({"claimRefs": []}));
    run.becomes_available(MADE);
    assert_eq!(run.outcome("c"), format!("-> {MADE}"));
}

#[test]
fn a_new_resource_that_was_removed_is_made_again() {
    let mut run = provisioning();
    run.destroy(RESOURCE, MADE);
    assert_eq!(run.outcome("c"), "Provisioning");
    assert!(run.find(RESOURCE, MADE).is_some());
}

#[test]
fn a_create_that_fails_is_tried_again_with_growing_pauses_one_at_a_time() {
    let mut driver = Driver::start(scene().into_world());
    let mut tries = Vec::new();
    let mut pause = 0;
    while tries.len() < 6 {
        driver.run_holding_writes();
        let Some(at) = driver.outbox.iter().position(is_write) else {
            driver.wait_holding_writes(100);
            pause += 100;
            assert!(pause < 600_000, "it is never tried again");
            continue;
        };
        let write = driver.outbox.remove(at).unwrap();
        if matches!(write, Action::Create { .. }) {
            assert!(!driver.outbox.iter().any(|a| matches!(a, Action::Create { .. })));
            tries.push(driver.now);
            driver.deliver_event(answer_to(&write, Answer::Unknown("server error".to_owned())));
        } else {
            driver.carry_out(write);
        }
    }
    let pauses: Vec<i64> = tries.windows(2).map(|w| w[1].0 - w[0].0).collect();
    assert!(pauses.windows(2).all(|p| p[1] >= 2 * p[0] - 200), "{pauses:?}");
    driver.run();
    driver.wait(60_000);
    assert!(driver.world.get(RESOURCE, &ObjectKey::new("conductor-system", MADE)).is_some());
}

#[test]
fn a_create_that_the_api_refuses_is_reported_on_the_claim() {
    let mut driver = Driver::start(scene().into_world());
    loop {
        driver.run_holding_writes();
        let write = driver.take_write();
        if matches!(write, Action::Create { .. }) {
            driver.deliver_event(answer_to(&write, Answer::Invalid("denied by policy".to_owned())));
            break;
        }
        driver.carry_out(write);
    }
    let reported = |a: &Action| matches!(a, Action::Emit(n) if n.kind == CLAIM && n.message.contains("denied by policy"));
    assert!(driver.sent.iter().any(reported), "{:#?}", driver.sent);
}

#[test]
fn a_claim_deleted_while_its_resource_is_made_takes_it_along() {
    let mut run = provisioning();
    run.delete(CLAIM, "c");
    assert_eq!(run.resources(), Vec::<String>::new());
    assert!(run.find(CLAIM, "c").is_none());
}

#[test]
fn a_claim_deleted_while_its_resource_is_made_waits_until_the_create_is_known() {
    let mut driver = Driver::start(scene().into_world());
    let create = loop {
        driver.run_holding_writes();
        let write = driver.take_write();
        if matches!(write, Action::Create { .. }) {
            break write;
        }
        driver.carry_out(write);
    };
    let event = driver.world.delete(CLAIM, &crate::support::claim_key("c")).unwrap();
    driver.deliver_event(event);
    driver.run();
    driver.wait(60_000);
    assert!(
        driver.world.get(CLAIM, &crate::support::claim_key("c")).is_some(),
        "the create is still out there"
    );
    driver.carry_out(create);
    driver.run();
    assert_eq!(crate::support::summary(&driver.world), Vec::<String>::new());
}

#[test]
fn what_a_retaining_class_made_stays_when_its_claim_is_deleted_meanwhile() {
    let mut run = world().class("fast", makes("Retain")).claim("c", of_class()).uid("1234-ABCD").settle();
    run.delete(CLAIM, "c");
    assert_eq!(run.resource(MADE), "Released by c");
    assert!(run.find(CLAIM, "c").is_none());
}

#[test]
fn a_claim_that_is_being_deleted_is_neither_bound_nor_provisioned() {
    let run = world()
        .class("fast", makes("Delete"))
        .resource("r", db(5))
        .resource("kept", db(5).with(crate::support::kept_for("d")))
        .claim("c", requests(1))
        .deleting()
        .claim("d", requests(1))
        .deleting()
        .claim("e", of_class())
        .deleting()
        .settle();
    assert_eq!(run.outcomes(), ["c: untouched", "d: untouched", "e: untouched"]);
    assert_eq!(run.resource("r"), "Available");
    assert_eq!(run.resource("kept"), "Available by d (kept)");
    assert_eq!(run.resources().len(), 2);
}

#[test]
fn a_claim_that_was_bound_meanwhile_is_not_provisioned_for() {
    // Provision 11-7: at its turn, another client has bound it already.
    let run = scene().resource("there", db(5).with(crate::support::held_by("c", "1234-ABCD"))).settle();
    assert_eq!((run.outcome("c").as_str(), run.resources()), ("-> there", vec!["there".to_owned()]));
}

#[test]
fn a_class_that_appears_wakes_the_claims_that_name_it() {
    let mut run = world().claim("c", of_class()).settle();
    assert_eq!(run.outcome("c"), "NoMatch");
    run.put(class("fast", makes("Delete")));
    assert_eq!(run.outcome("c"), "Provisioning");
    assert_eq!(run.bound_after_flush(), 0);
}

#[test]
fn a_class_that_goes_while_its_resource_is_not_yet_made_sends_the_claim_back_to_wait() {
    let mut driver = Driver::start(scene().into_world());
    driver.run_holding_writes();
    let event = driver.world.delete(CLASS, &ObjectKey::new("conductor-system", "fast")).unwrap();
    driver.deliver_event(event);
    driver.run();
    assert_eq!(driver.outcome("c"), "NoMatch");
    driver.put(resource("there", db(5).with(json!({"class": "fast"}))));
    driver.run();
    assert_eq!(driver.outcome("c"), "-> there");
    assert_eq!(driver.engine.bound_after_flush(), 0);
}

/// A class that declares one engine and makes one instance of a fixed size.
fn local() -> Value {
    makes("Delete").with(json!({"engine": "postgresql", "capacity": {"storage": "10Gi"}}))
}

#[test]
fn a_class_offers_what_it_declares_and_nothing_else() {
    let drop = |field: &str| format!("take spec.{field} out of the claim, or declare it in the class");
    for (requested, predicate, reported) in [
        (json!({"highly-available": true}), "high availability", drop("highly-available")),
        (json!({"requests": ["postgis"]}), "capabilities", drop("requests")),
        (
            json!({"resources": {"requests": {"connections": 5}}}),
            "capacity",
            drop("resources.requests.connections"),
        ),
        (
            json!({"resources": {"requests": {"storage": "900Ti"}}}),
            "capacity",
            "class fast makes storage up to 10Gi, and 900Ti is requested".to_owned(),
        ),
    ] {
        let run = world().class("fast", local()).claim("c", of_class().with(requested.clone())).settle();
        assert_eq!(run.outcome("c"), "NoMatch", "{requested}");
        let message = run.message("c");
        assert!(message.contains(&format!("0/1 classes fit: 1 {predicate}")), "{message}");
        assert!(message.contains("class fast") && message.contains(&reported), "{message}");
        assert!(run.resources().is_empty(), "{requested}");
    }
    let requested = requests(3).with(json!({"class": "fast", "requests": []}));
    let run = world().class("fast", local()).claim("c", requested).settle();
    assert_eq!(run.outcome("c"), "Provisioning");
}

#[test]
fn what_a_template_takes_from_the_claim_is_offered() {
    let mut class = local();
    class["template"]["spec"] = json!({
        "instances": "${\"highly-available\" in claim.spec && claim.spec[\"highly-available\"] ? 2 : 1}",
        "version": "${resource.spec.version}", "extensions": "${claim.spec.requests}",
        "connections": "${claim.spec.resources.requests.connections}",
    });
    let requested = json!({
        "class": "fast", "engine": "postgresql", "highly-available": true, "requests": ["postgis"],
        "version": "15", "resources": {"requests": {"storage": "10Gi", "connections": 7}},
    });
    let run = world().class("fast", class).claim("c", requested).uid("1234-ABCD").settle();
    assert_eq!(run.outcome("c"), "Provisioning");
    let spec = run.body(RESOURCE, MADE)["spec"].clone();
    assert_eq!((&spec["highly-available"], &spec["version"]), (&json!(true), &json!("15")));
    assert_eq!(spec["capabilities"], json!(["postgis"]));
    assert_eq!(spec["capacity"], json!({"storage": "10Gi", "connections": "7"}));
}

#[test]
fn a_class_that_declares_nothing_is_believed_in_nothing() {
    let requested = of_class().with(json!({"version": "15"}));
    let run = world().class("fast", makes("Delete")).claim("c", requested).uid("1234-ABCD").settle();
    assert_eq!(run.outcome("c"), "Provisioning");
    let spec = run.body(RESOURCE, MADE)["spec"].clone();
    assert_eq!((&spec["version"], &spec["capacity"]), (&Value::Null, &Value::Null), "nothing is recorded");
    for requested in [json!({"highly-available": true}), json!({"requests": ["postgis"]})] {
        let run = world().class("fast", makes("Delete")).claim("c", of_class().with(requested)).settle();
        assert_eq!(run.outcome("c"), "NoMatch");
    }
}

#[test]
fn of_two_default_classes_the_one_not_used_says_so() {
    let both = || world().default_class("old", local()).created(1).default_class("new", local()).created(2);
    let mut run = both().settle();
    assert_eq!((run.notes("old"), run.notes("new").len()), (vec!["DefaultNotUsed"], 0));
    let message = run.harness.notes().iter().map(|note| note.message.clone()).collect::<Vec<_>>().join(" ");
    assert!(message.contains("the newest counts, which is new"), "{message}");
    run.edit(CLASS, "old", |class| class.metadata.annotations = None);
    run.edit(CLASS, "new", |class| class.body["reclaimPolicy"] = json!("Retain"));
    assert_eq!(run.notes("old").len(), 1, "one default class needs no event");
}

#[test]
fn a_class_that_declares_nothing_hears_that_sizes_are_not_checked() {
    let mut taking = makes("Delete");
    taking["template"]["spec"] = json!({"size": "${resource.spec.capacity.storage}"});
    let sized = makes("Delete").with(json!({"capacity": {"storage": "9Gi"}}));
    let scene = world().class("silent", makes("Delete")).class("taking", taking).class("sized", sized);
    let mut run = scene.class("groups", json!({"reclaimPolicy": "Retain"})).settle();
    assert_eq!(run.notes("silent"), ["SizesNotChecked"]);
    for fine in ["taking", "sized", "groups"] {
        assert!(run.notes(fine).is_empty(), "{fine}: {:?}", run.notes(fine));
    }
    run.put(class("late", makes("Delete")));
    assert_eq!(run.notes("late"), ["SizesNotChecked"]);
    let run = run.restart();
    assert_eq!(run.notes("silent"), ["SizesNotChecked"]);
}

#[test]
fn a_version_in_a_label_of_a_template_is_no_offer() {
    let mut labels = makes("Delete").with(json!({"engine": "postgresql", "capacity": {"storage": "9Gi"}}));
    labels["template"]["metadata"] = json!({"labels": {"ha": "ha-${claim.spec[\"highly-available\"]}"}});
    let requested = of_class().with(json!({"highly-available": true}));
    let run = world().class("fast", labels.clone()).claim("c", requested.clone()).settle();
    assert_eq!(run.outcome("c"), "NoMatch");
    labels["template"]["spec"] = json!({"ha": "${claim.spec[\"highly-available\"]}"});
    let run = world().class("fast", labels).claim("c", requested).settle();
    assert_eq!(run.outcome("c"), "Provisioning");
}

#[test]
fn what_lives_outside_the_system_namespace_is_reported() {
    let mut run = world().claim("c", of_class()).settle();
    let mut outside = class("fast", local());
    outside.metadata.namespace = Some("app".to_owned());
    run.put(outside);
    assert_eq!(run.notes("fast"), ["OutsideSystemNamespace"]);
    assert_eq!(run.outcome("c"), "NoMatch");
    // A wrong system namespace causes it everywhere: it must not advise deleting what claims hold.
    let message = &run.harness.notes().last().expect("it is reported").message;
    assert!(message.contains("conductor-system only") && !message.contains("delete"), "{message}");
}

#[test]
fn the_version_that_an_implementation_reports_wins() {
    let class = json!({
        "reclaimPolicy": "Delete", "engine": "postgresql", "version": "99",
        "template": {"apiVersion": "database.conductor.io/v1alpha1", "kind": "LocalServer", "spec": {}},
    });
    let requested = json!({"class": "fast", "engine": "postgresql", "version": "99"});
    let mut scene = world().class("fast", class).claim("c", requested).uid("1234-ABCD").into_world();
    scene.install(&PartKind::new("database.conductor.io/v1alpha1", "LocalServer"));
    let mut run = Run::on(scene);
    assert_eq!(run.body(RESOURCE, MADE)["spec"]["version"], "99");
    run.part_says(MADE, ready().with(json!({"version": "15.18 (Debian 15.18-0+deb12u1)"})));
    assert_eq!(run.body(RESOURCE, MADE)["status"]["version"], "15.18");
    assert_eq!(run.outcome("c"), format!("-> {MADE}"));
    let message = run.message("c");
    assert!(message.contains("its version 15.18 is not in 99"), "{message}");
}
