//! Implementation objects: made from a resource's template, watched until they are ready, never adopted and
//! never silently replaced.

use crate::support::{
    CLAIM, Driver, RESOURCE, Run, Scene, With, annotation, answer_to, db, held_by, instance, is_write, makes,
    part_of, ready, requests, world,
};
use conductor::action::{Action, Change, PartAction};
use conductor::event::{Answer, WhyMissing};
use conductor::model::{Part, PartKey, PartKind};
use serde_json::{Value, json};

fn templated() -> Value {
    db(5).with(json!({"template": makes("Retain")["template"]}))
}

fn scene() -> Scene {
    world().resource("r", templated())
}

fn creating() -> Run {
    let run = scene().settle();
    assert_eq!(run.resource("r"), "Creating");
    run
}

fn available() -> Run {
    let mut run = creating();
    run.part_says("r", ready());
    assert_eq!(run.resource("r"), "Available");
    run
}

fn is_create(action: &Action) -> bool {
    matches!(action, Action::Part(PartAction::Create { .. }))
}

/// Carries everything out up to the part's create.
fn about_to_create(driver: &mut Driver) -> Action {
    loop {
        driver.run_holding_writes();
        let write = driver.take_write();
        if is_create(&write) {
            return write;
        }
        driver.carry_out(write);
    }
}

#[test]
fn a_part_names_its_resource_and_has_no_owner_reference() {
    let template = json!({
        "apiVersion": "example.com/v1", "kind": "Instance", "spec": {"size": "small"},
        "metadata": {"name": "mine", "namespace": "other", "labels": {"tier": "gold"},
                     "annotations": {"note": "x", "conductor.io/resource-uid": "forged"}},
    });
    let run = world().resource("r", db(5).with(json!({"template": template}))).uid("life-1").settle();
    let part = run.part("r").unwrap();
    let metadata = &part.metadata;
    assert_eq!(metadata.namespace.as_deref(), Some("conductor-system"));
    assert!(metadata.name.as_deref().unwrap().starts_with("r-"), "{metadata:?}");
    let labels = serde_json::to_value(&metadata.labels).unwrap();
    assert_eq!(labels, json!({"tier": "gold", "conductor.io/resource": "r", "conductor.io/part": "main"}));
    assert_eq!(annotation(part, "conductor.io/resource-uid"), Some("life-1"));
    assert_eq!(annotation(part, "note"), Some("x"));
    assert_eq!(metadata.owner_references, None);
    assert_eq!(part.body["spec"], json!({"size": "small"}));
}

#[test]
fn the_label_of_a_long_name_is_a_digest() {
    let name = "x".repeat(200);
    let run = world().resource(&name, templated()).settle();
    let labels = run.part(&name).unwrap().metadata.labels.clone().unwrap();
    assert_eq!(labels["conductor.io/resource"].len(), 12);
}

#[test]
fn the_finalizer_and_the_record_come_before_the_part() {
    let mut driver = Driver::start(scene().into_world());
    driver.run();
    let at = |wanted: fn(&Action) -> bool| driver.sent.iter().position(wanted).unwrap();
    let protected = at(|a| matches!(a, Action::Write(w) if matches!(w.change, Change::ResourceSpec { .. })));
    let recorded = at(|a| {
        matches!(a, Action::Write(w) if matches!(
            &w.change, Change::ResourceStatus { implementation: Some(parts), .. } if parts[0].uid.is_none()))
    });
    assert!(protected < recorded && recorded < at(is_create), "{:#?}", driver.sent);
    // And not before their answers either.
    let mut held = Driver::start(scene().into_world());
    for _ in 0..2 {
        held.run_holding_writes();
        held.wait_holding_writes(60_000);
        assert!(!held.sent.iter().any(is_create));
        let write = held.take_write();
        held.carry_out(write);
    }
    held.run();
    assert!(held.sent.iter().any(is_create));
}

#[test]
fn a_resource_is_creating_until_its_part_is_ready_and_repeats_what_it_says() {
    let mut run = creating();
    assert!(
        run.reported("r").starts_with("ImplementationNotReady: Instance.example.com r-"),
        "{}",
        run.reported("r")
    );
    run.part_says("r", json!({"phase": "Booting"}));
    assert!(run.reported("r").ends_with(": Booting"), "{}", run.reported("r"));
    let condition = json!({"type": "Ready", "status": "False", "reason": "NoDisk", "message": "none left"});
    run.part_says("r", json!({"phase": "Ready", "conditions": [condition]}));
    assert!(run.reported("r").ends_with("NoDisk: none left"), "{}", run.reported("r"));
    assert_eq!(run.resource("r"), "Creating");
    run.part_says("r", json!({"phase": "running"}));
    assert_eq!((run.resource("r").as_str(), run.reported("r").as_str()), ("Available", "Available: "));
}

#[test]
fn a_resource_records_what_implements_it() {
    let run = available();
    let part = run.part("r").unwrap();
    let expected = json!({
        "apiVersion": "example.com/v1", "kind": "Instance", "namespace": "conductor-system",
        "name": part.metadata.name, "uid": part.metadata.uid,
    });
    assert_eq!(run.body(RESOURCE, "r")["status"]["implementationRef"], expected);
}

#[test]
fn a_core_kind_is_ready_once_it_exists() {
    let template = json!({"apiVersion": "v1", "kind": "ConfigMap", "data": {"host": "db.example.com"}});
    let mut run = world().without_kinds().resource("r", db(5).with(json!({"template": template}))).settle();
    assert_eq!(run.resource("r"), "Creating");
    run.harness.touch_parts(|world| [world.install(&PartKind::new("v1", "ConfigMap"))]);
    assert_eq!(run.resource("r"), "Available");
    assert_eq!(run.part("r").unwrap().body["data"]["host"], "db.example.com");
}

#[test]
fn a_provisioned_claim_is_bound_with_few_writes() {
    let mut run = world()
        .class("fast", makes("Delete"))
        .claim("c", requests(1).with(json!({"class": "fast"})))
        .settle();
    let made = run.resources().pop().unwrap();
    run.part_says(&made, ready());
    assert_eq!(run.outcome("c"), format!("-> {made}"));
    // Claim: finalizer, Provisioning, Bound, record. Resource: create, intent, UID, Bound. Class: finalizer. Part.
    assert_eq!(run.harness.writes(), 10);
}

#[test]
fn a_missing_kind_is_reported_waited_for_and_affects_no_other() {
    for (why, word) in [
        (WhyMissing::NotInstalled, "KindNotInstalled"),
        (WhyMissing::NotNamespaced, "KindNotAllowed"),
        (WhyMissing::NotAllowed("instances is forbidden".to_owned()), "KindNotAllowed"),
    ] {
        let mut world = scene().without_kinds().resource("plain", db(1)).claim("c", requests(1)).into_world();
        world.uninstall(&instance(), why);
        let mut run = Run::on(world);
        assert_eq!((run.resource("r").as_str(), run.outcome("c").as_str()), ("Creating", "-> plain"));
        assert!(
            run.reported("r").starts_with(word) && run.reported("r").contains("Instance"),
            "{}",
            run.reported("r")
        );
        assert_eq!(run.notes("r"), [word]);
        let writes = run.harness.writes();
        run.harness.advance(120_000);
        assert_eq!(run.harness.writes(), writes, "it waits without writing");
        run.harness.touch_parts(|world| [world.install(&instance())]);
        run.part_says("r", ready());
        assert_eq!(run.resource("r"), "Available");
    }
}

#[test]
fn a_kind_that_goes_leaves_what_was_ready_in_its_phase() {
    let mut run = available();
    let why = WhyMissing::NotAllowed("forbidden".to_owned());
    run.harness.touch_parts(|world| [world.uninstall(&instance(), why)]);
    assert_eq!(run.resource("r"), "Available");
    assert!(run.reported("r").starts_with("KindNotAllowed"), "{}", run.reported("r"));
    run.harness.touch_parts(|world| [world.install(&instance())]);
    assert_eq!(run.reported("r"), "Available: ");
}

#[test]
fn a_kind_that_is_never_made_fails_the_resource_until_the_template_is_repaired() {
    for template in [
        json!({"apiVersion": "v1", "kind": "Secret"}),
        json!({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role"}),
        json!({"apiVersion": "example.com/v1"}),
    ] {
        let mut run = world().resource("r", db(5).with(json!({"template": template}))).settle();
        assert_eq!(run.resource("r"), "Failed");
        assert!(run.reported("r").starts_with("InvalidSpec: spec.template.kind"), "{}", run.reported("r"));
        assert_eq!((run.harness.world.parts().count(), run.notes("r")), (0, vec!["Failed"]));
        run.edit_spec(RESOURCE, "r", json!({"template": makes("Retain")["template"]}));
        run.part_says("r", ready());
        assert_eq!(run.resource("r"), "Available");
    }
}

#[test]
fn a_class_of_a_kind_that_is_never_made_provisions_nothing() {
    let template = json!({"template": {"apiVersion": "v1", "kind": "ServiceAccount"}});
    let run = world().class("fast", template).claim("c", requests(1).with(json!({"class": "fast"}))).settle();
    assert_eq!((run.resources().len(), run.notes("fast")), (0, vec!["InvalidSpec"]));
    assert_ne!(run.outcome("c"), "Provisioning");
}

/// The key that the part of `r` will have.
fn key_to_come() -> PartKey {
    scene().uid("life-1").settle().part_key("r")
}

fn foreign(key: &PartKey, owner: Option<&str>) -> Part {
    let annotations = owner.map(|uid| json!({"conductor.io/resource-uid": uid}));
    let metadata = json!({"namespace": &*key.namespace, "name": &*key.name, "annotations": annotations});
    let body = json!({"status": ready()});
    Part { kind: key.kind.clone(), metadata: serde_json::from_value(metadata).unwrap(), body }
}

#[test]
fn an_object_of_the_parts_name_is_never_adopted_and_waited_out() {
    for owner in [None, Some("another-owner")] {
        let key = key_to_come();
        let mut world = scene().uid("life-1").into_world();
        world.put_part(foreign(&key, owner));
        let mut run = Run::on(world);
        assert_eq!(run.resource("r"), "Creating");
        assert!(run.reported("r").starts_with("NameConflict"), "{}", run.reported("r"));
        assert_eq!(run.notes("r"), ["NameConflict"]);
        let writes = run.harness.writes();
        run.harness.advance(120_000);
        assert_eq!(run.harness.writes(), writes, "it reads, and writes nothing");
        run.harness.world.delete_part(&key);
        run.harness.advance(60_000);
        run.part_says("r", ready());
        assert_eq!(run.resource("r"), "Available");
    }
}

#[test]
fn a_create_of_a_part_that_meets_itself_is_a_success() {
    let mut driver = Driver::start(scene().into_world());
    let create = about_to_create(&mut driver);
    driver.world.apply(&create).unwrap();
    driver.deliver_event(answer_to(&create, Answer::Unknown("timed out".to_owned())));
    driver.run();
    driver.wait(60_000);
    let part = part_of(&driver.world, "r").unwrap().key();
    let event = driver.world.set_part_status(&part, ready()).unwrap();
    driver.deliver_event(event);
    driver.run();
    assert_eq!(driver.phase_of(RESOURCE, "r"), "Available");
    assert_eq!(driver.sent.iter().filter(|a| is_create(a)).count(), 1);
    // And where its successor has not seen it yet.
    let mut driver = Driver::start(scene().into_world());
    let create = about_to_create(&mut driver);
    driver.crash();
    let again = about_to_create(&mut driver);
    driver.world.apply(&create).unwrap();
    driver.carry_out(again);
    driver.run();
    assert_eq!(driver.world.parts().count(), 1);
    assert_eq!(driver.phase_of(RESOURCE, "r"), "Creating");
}

#[test]
fn a_refused_part_is_reported_and_retried_with_backoff() {
    let mut driver = Driver::start(scene().into_world());
    let mut tries = Vec::new();
    for _ in 0..100_000 {
        driver.run_holding_writes();
        let Some(at) = driver.outbox.iter().position(is_write) else {
            driver.wait_holding_writes(100);
            continue;
        };
        let write = driver.outbox.remove(at).unwrap();
        if !is_create(&write) {
            driver.carry_out(write);
        } else if tries.len() < 6 {
            tries.push(driver.now);
            driver.deliver_event(answer_to(&write, Answer::Invalid("spec.size: Required value".to_owned())));
        } else {
            driver.carry_out(write);
            break;
        }
        if tries.len() == 3 {
            let reported =
                driver.world.objects().find(|o| o.kind == RESOURCE).unwrap().body["status"].to_string();
            assert!(
                reported.contains("ImplementationRefused") && reported.contains("spec.size: Required value"),
                "{reported}"
            );
        }
    }
    let pauses: Vec<i64> = tries.windows(2).map(|w| w[1].0 - w[0].0).collect();
    assert!(pauses.len() == 5 && pauses.windows(2).all(|p| p[1] >= 2 * p[0] - 200), "{pauses:?}");
    driver.run();
    assert!(part_of(&driver.world, "r").is_some());
    let reported = |a: &Action| matches!(a, Action::Emit(n) if n.kind == RESOURCE && n.message.contains("Required value"));
    assert!(driver.sent.iter().any(reported));
}

#[test]
fn a_part_that_was_never_ready_is_made_again() {
    let mut run = creating();
    let (key, uid) = (run.part_key("r"), run.part("r").unwrap().metadata.uid.clone());
    run.harness.touch_parts(|world| world.delete_part(&key));
    assert_ne!(run.part("r").unwrap().metadata.uid, uid);
    run.part_says("r", ready());
    assert_eq!(run.resource("r"), "Available");
}

#[test]
fn a_part_that_was_ready_and_is_gone_fails_its_resource_and_is_not_made_again() {
    let mut run = scene().claim("c", requests(1)).settle();
    run.part_says("r", ready());
    assert_eq!(run.outcome("c"), "-> r");
    let key = run.part_key("r");
    run.harness.touch_parts(|world| world.delete_part(&key));
    assert_eq!(run.resource("r"), "Failed by c");
    assert!(run.reported("r").starts_with("ImplementationGone"), "{}", run.reported("r"));
    let note = run.harness.notes().iter().rfind(|n| &*n.key.name == "r").unwrap();
    assert!(note.warning && note.message.contains("not replaced by an empty one"), "{note:?}");
    assert_eq!(run.outcome("c"), "-> r", "no claim is unbound for it");
    run.harness.advance(120_000);
    let run = run.restart();
    assert_eq!((run.resource("r").as_str(), run.part("r")), ("Failed by c", None));
    assert_eq!(run.harness.writes(), 0);
}

#[test]
fn a_resource_whose_part_was_lost_is_reclaimed_like_any_other() {
    let spec = templated().with(json!({"reclaimPolicy": "Delete"}));
    let mut run = world().resource("r", spec).claim("c", requests(1)).settle();
    run.part_says("r", ready());
    let key = run.part_key("r");
    run.harness.touch_parts(|world| world.delete_part(&key));
    assert_eq!(run.resource("r"), "Failed by c");
    run.delete(CLAIM, "c");
    assert_eq!(run.resources(), Vec::<String>::new());
}

#[test]
fn a_part_that_was_replaced_fails_its_resource() {
    let mut run = available();
    let key = run.part_key("r");
    let mut copy = run.part("r").unwrap().clone();
    copy.metadata.uid = Some("another".to_owned());
    run.harness.world.delete_part(&key);
    run.harness.touch_parts(|world| world.put_part(copy));
    assert_eq!(run.resource("r"), "Failed");
    assert!(run.reported("r").contains("has taken its place"), "{}", run.reported("r"));
}

#[test]
fn a_part_that_lost_its_label_is_not_lost() {
    let mut run = available();
    let key = run.part_key("r");
    run.harness.touch_parts(|world| world.edit_part(&key, |part| part.metadata.labels = None));
    assert_eq!((run.resource("r").as_str(), run.reported("r").as_str()), ("Available", "Available: "));
    let run = run.restart();
    assert_eq!((run.resource("r").as_str(), run.harness.writes()), ("Available", 0));
}

#[test]
fn a_failing_part_is_reported_and_unbinds_no_claim() {
    let mut run = scene().claim("c", requests(1)).settle();
    run.part_says("r", ready());
    run.part_says("r", json!({"phase": "Restarting"}));
    assert_eq!((run.resource("r").as_str(), run.outcome("c").as_str()), ("Bound by c", "-> r"));
    assert!(run.reported("r").ends_with(": Restarting"), "{}", run.reported("r"));
    run.part_says("r", ready());
    assert_eq!(run.reported("r"), "Available: ");
}

#[test]
fn an_implementation_by_another_client_is_left_alone() {
    let status = json!({"phase": "Created", "implementationRef": "rds-instance-6763d"});
    let mut run = scene().status(status).settle();
    assert_eq!((run.resource("r").as_str(), run.harness.world.parts().count()), ("Available", 0));
    assert_eq!(run.body(RESOURCE, "r")["status"]["implementationRef"], "rds-instance-6763d");
    run.delete(RESOURCE, "r");
    assert_eq!(run.resources(), Vec::<String>::new());
}

#[test]
fn an_edit_of_the_template_makes_nothing_new() {
    let mut run = available();
    let key = run.part_key("r");
    run.harness.world.install(&PartKind::new("example.com/v1", "Other"));
    run.edit_spec(RESOURCE, "r", json!({"template": {"apiVersion": "example.com/v1", "kind": "Other"}}));
    assert_eq!((run.part_key("r"), run.resource("r").as_str()), (key, "Available"));
}

#[test]
fn a_template_that_is_edited_before_its_part_is_made_counts_as_edited() {
    let mut driver = Driver::start(scene().into_world());
    let create = about_to_create(&mut driver);
    driver.deliver_event(answer_to(&create, Answer::Invalid("no".to_owned())));
    let other = PartKind::new("example.com/v1", "Other");
    driver.world.install(&other);
    let key = conductor::model::ObjectKey::new("conductor-system", "r");
    let template = json!({"apiVersion": "example.com/v1", "kind": "Other"});
    let event = driver.world.edit(RESOURCE, &key, |o| o.body["spec"]["template"] = template);
    driver.deliver_event(event.unwrap());
    driver.run();
    driver.wait(60_000);
    assert_eq!(part_of(&driver.world, "r").unwrap().kind, other);
}

#[test]
fn a_successor_of_a_retained_resource_gets_a_part_of_its_own() {
    let mut run = available();
    let kept = run.part_key("r");
    run.delete(RESOURCE, "r");
    assert!(run.harness.world.part(&kept).is_some());
    run.put(crate::support::resource("r", templated()));
    assert_ne!(run.part_key("r"), kept);
    assert_eq!(run.resource("r"), "Creating");
}

#[test]
fn a_restart_makes_nothing_and_writes_nothing() {
    for run in [creating(), available()] {
        let parts = run.harness.world.parts().count();
        let run = run.restart();
        assert_eq!((run.harness.writes(), run.harness.world.parts().count()), (0, parts));
    }
}

#[test]
fn nothing_is_made_where_it_could_not_be_recorded_or_protected() {
    let unreadable = templated().with(json!({"sharing": {"maxClaims": 0}}));
    let mut run = world().resource("r", unreadable).settle();
    assert_eq!((run.resource("r").as_str(), run.harness.world.parts().count()), ("Failed", 0));
    run.edit_spec(RESOURCE, "r", json!({"sharing": {"maxClaims": 1}}));
    assert_eq!((run.resource("r").as_str(), run.harness.world.parts().count()), ("Creating", 1));
    // A resource that is being deleted takes no finalizer any more. This one is held, and was recorded.
    let mut run = scene().uid("life-1").settle();
    let record = run.body(RESOURCE, "r")["status"].clone().with(json!({"phase": "Creating"}));
    run = world()
        .resource("r", templated().with(held_by("c", "claim-1")))
        .uid("life-1")
        .status(without_uid(record))
        .deleting()
        .claim("c", requests(1))
        .uid("claim-1")
        .settle();
    assert_eq!(run.harness.world.parts().count(), 0);
}

fn without_uid(mut status: Value) -> Value {
    status["implementationRef"].as_object_mut().unwrap().remove("uid");
    status
}
