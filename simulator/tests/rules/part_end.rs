//! The end of implementation objects: with their resource, after live reads, and only where the policy says
//! Delete (rules 14 and 26 to 28).

use crate::support::{
    CLAIM, Driver, RESOURCE, Run, Scene, With, answer_to, claim_key, db, instance, is_write, makes, part_of,
    ready, requests, world,
};
use conductor::action::{Action, Change, PartAction};
use conductor::event::{Answer, Event, WhyMissing};
use conductor::model::ObjectKey;
use serde_json::{Value, json};

fn templated(policy: &str) -> Value {
    db(5).with(json!({"reclaimPolicy": policy, "template": makes("Delete")["template"]}))
}

fn scene(policy: &str) -> Scene {
    world().resource("r", templated(policy)).claim("c", requests(1))
}

fn bound(policy: &str) -> Run {
    let mut run = scene(policy).settle();
    run.part_says("r", ready());
    assert_eq!(run.outcome("c"), "-> r");
    run
}

fn r_key() -> ObjectKey {
    ObjectKey::new("conductor-system", "r")
}

/// A driver on a world in which `r` is implemented and the claim of `r` is bound.
fn bound_driver(policy: &str) -> Driver {
    let mut driver = Driver::start(scene(policy).into_world());
    driver.run();
    let part = part_of(&driver.world, "r").unwrap().key();
    let event = driver.world.set_part_status(&part, ready()).unwrap();
    driver.deliver_event(event);
    driver.run();
    assert_eq!(driver.outcome("c"), "-> r");
    driver
}

fn delete_claim(driver: &mut Driver) {
    let event = driver.world.delete(CLAIM, &claim_key("c")).unwrap();
    driver.deliver_event(event);
}

fn is_part_delete(action: &Action) -> bool {
    matches!(action, Action::Part(PartAction::Delete { .. }))
}

/// Carries everything out up to the part's deletion.
fn about_to_delete(driver: &mut Driver) -> Action {
    loop {
        driver.run_holding_writes();
        let write = driver.take_write();
        if is_part_delete(&write) {
            return write;
        }
        driver.carry_out(write);
    }
}

fn parts(run: &Run) -> usize {
    run.harness.world.parts().count()
}

#[test]
fn policy_delete_takes_the_part_along_with_the_last_claim() {
    let mut run = bound("Delete");
    run.delete(CLAIM, "c");
    assert_eq!((run.resources().len(), parts(&run)), (0, 0));
}

#[test]
fn policy_retain_leaves_the_part_alone_whatever_is_deleted() {
    let mut driver = bound_driver("Retain");
    delete_claim(&mut driver);
    driver.run();
    assert_eq!(driver.phase_of(RESOURCE, "r"), "Released");
    let event = driver.world.delete(RESOURCE, &r_key()).unwrap();
    driver.deliver_event(event);
    driver.run();
    assert!(driver.world.get(RESOURCE, &r_key()).is_none());
    assert_eq!(driver.world.parts().count(), 1);
    assert!(!driver.sent.iter().any(is_part_delete));
}

#[test]
fn an_unknown_policy_deletes_no_part() {
    let mut run = bound("Delete");
    run.edit_spec(RESOURCE, "r", json!({"reclaimPolicy": "Recycle"}));
    run.delete(CLAIM, "c");
    run.delete(RESOURCE, "r");
    assert_eq!((run.resources().len(), parts(&run)), (0, 1));
}

#[test]
fn an_administrator_who_deletes_an_unheld_resource_deletes_its_part_by_its_policy() {
    for (policy, left) in [("Delete", 0), ("Retain", 1)] {
        let mut run = world().resource("r", templated(policy)).settle();
        run.part_says("r", ready());
        run.delete(RESOURCE, "r");
        assert_eq!((run.resources().len(), parts(&run)), (0, left), "{policy}");
    }
}

#[test]
fn a_held_resource_that_is_deleted_keeps_its_part_until_the_claim_goes() {
    let mut run = bound("Delete");
    run.delete(RESOURCE, "r");
    assert_eq!((run.resource("r").as_str(), parts(&run)), ("Bound by c", 1));
    run.delete(CLAIM, "c");
    assert_eq!((run.resources().len(), parts(&run)), (0, 0));
}

#[test]
fn the_resource_and_the_part_are_read_live_before_the_part_is_deleted_and_the_part_after() {
    let mut driver = bound_driver("Delete");
    delete_claim(&mut driver);
    driver.run();
    let sent = &driver.sent;
    let delete = sent.iter().position(is_part_delete).unwrap();
    let written = sent[..delete].iter().rposition(is_write).unwrap();
    let reads_resource = |a: &Action| matches!(a, Action::Read { kind, .. } if *kind == RESOURCE);
    let reads_part = |a: &Action| matches!(a, Action::Part(PartAction::Read { .. }));
    assert!(sent[written..delete].iter().any(reads_resource), "{sent:#?}");
    assert!(sent[written..delete].iter().any(reads_part), "{sent:#?}");
    let freed = sent.iter().rposition(
        |a| matches!(a, Action::Write(w) if w.kind == RESOURCE && matches!(w.change, Change::ResourceSpec { .. })),
    );
    assert!(sent[delete..freed.unwrap()].iter().any(reads_part), "{sent:#?}");
}

#[test]
fn no_part_is_deleted_until_the_reads_are_answered() {
    for late_part in [true, false] {
        let mut driver = bound_driver("Delete");
        delete_claim(&mut driver);
        let mut held = Vec::new();
        loop {
            if let Some(action) = driver.outbox.pop_front() {
                let going =
                    driver.world.get(RESOURCE, &r_key()).unwrap().metadata.deletion_timestamp.is_some();
                let read = match &action {
                    Action::Part(PartAction::Read { .. }) => late_part,
                    Action::Read { kind, .. } => !late_part && *kind == RESOURCE,
                    _ => false,
                };
                if going && read && driver.phase_of(RESOURCE, "r") == "Deleting" {
                    held.push(action);
                } else {
                    driver.carry_out(action);
                }
            } else if let Some(event) = driver.inbox.pop_front() {
                driver.deliver_event(event);
            } else {
                break;
            }
        }
        assert_eq!((held.len(), driver.world.parts().count()), (1, 1), "{late_part}");
        held.into_iter().for_each(|read| driver.carry_out(read));
        driver.run();
        assert_eq!(crate::support::summary(&driver.world), Vec::<String>::new());
    }
}

#[test]
fn a_deletion_names_the_uid_and_the_revision_of_the_part_that_was_read() {
    let mut driver = bound_driver("Delete");
    delete_claim(&mut driver);
    let delete = about_to_delete(&mut driver);
    let part = part_of(&driver.world, "r").unwrap();
    let Action::Part(PartAction::Delete { key, uid, revision, .. }) = &delete else { unreachable!() };
    assert_eq!((key, Some(&**uid)), (&part.key(), part.metadata.uid.as_deref()));
    assert_eq!(Some(revision.to_string()), part.metadata.resource_version);
    // What changed since is read again before it is deleted.
    let key = part.key();
    driver.world.set_part_status(&key, json!({"phase": "Busy"}));
    driver.carry_out(delete);
    assert_eq!(driver.world.parts().count(), 1);
    driver.run();
    assert_eq!(driver.world.parts().count(), 0);
}

#[test]
fn a_policy_that_turns_to_retain_before_the_part_is_deleted_keeps_it() {
    let mut driver = bound_driver("Delete");
    delete_claim(&mut driver);
    // Up to the live reads that come before the part's deletion; the watch does not show the edit in time.
    while driver.world.get(RESOURCE, &r_key()).unwrap().metadata.deletion_timestamp.is_none() {
        driver.run_holding_writes();
        let write = driver.take_write();
        driver.carry_out(write);
    }
    driver.world.edit(RESOURCE, &r_key(), |o| o.body["spec"]["reclaimPolicy"] = json!("Retain"));
    driver.run();
    driver.wait(60_000);
    assert!(driver.world.get(RESOURCE, &r_key()).is_none());
    assert_eq!(driver.world.parts().count(), 1);
}

#[test]
fn a_resource_waits_for_a_part_that_takes_its_time() {
    let mut run = bound("Delete");
    let key = run.part_key("r");
    let keep = vec!["example.com/keep".to_owned()];
    run.harness.touch_parts(|world| world.edit_part(&key, |part| part.metadata.finalizers = Some(keep)));
    run.delete(CLAIM, "c");
    assert_eq!(run.resource("r"), "Deleting by c");
    let waits = format!(
        "Deleting: it waits for {key} to be gone, which was requested at 1970-01-01T00:00:00Z and waits for example.com/keep"
    );
    assert_eq!(run.reported("r"), waits);
    let writes = run.harness.writes();
    run.harness.advance(120_000);
    assert_eq!(run.harness.writes(), writes);
    let mut run = run.restart();
    assert_eq!(run.harness.writes(), 0);
    run.harness.touch_parts(|world| world.edit_part(&key, |part| part.metadata.finalizers = None));
    assert_eq!((run.resources().len(), parts(&run)), (0, 0));
}

/// Lets everything happen but what `refuse` picks out, which is refused so many times. Says how often the
/// resource was Failed meanwhile, and why.
fn with_refusals(driver: &mut Driver, times: usize, refuse: fn(&Action) -> bool) -> Vec<String> {
    let (mut refused, mut reported) = (0, Vec::new());
    for _ in 0..10_000 {
        driver.run_holding_writes();
        let Some(at) = driver.outbox.iter().position(is_write) else {
            if driver.world.get(RESOURCE, &r_key()).is_none() {
                break;
            }
            driver.wait_holding_writes(100);
            continue;
        };
        let write = driver.outbox.remove(at).unwrap();
        if refuse(&write) && refused < times {
            refused += 1;
            driver.deliver_event(answer_to(&write, Answer::Invalid("a webhook says no".to_owned())));
        } else {
            driver.carry_out(write);
        }
        if let Some(object) =
            driver.world.get(RESOURCE, &r_key()).filter(|o| o.body["status"]["phase"] == "Failed")
        {
            reported.push(object.body["status"]["conditions"].to_string());
        }
    }
    assert_eq!(refused, times);
    reported
}

#[test]
fn a_part_that_cannot_be_deleted_fails_its_resource_and_is_tried_again() {
    let mut driver = bound_driver("Delete");
    delete_claim(&mut driver);
    let reported = with_refusals(&mut driver, 4, is_part_delete);
    assert!(
        reported.iter().all(|t| t.contains("ReclaimFailed") && t.contains("a webhook says no")),
        "{reported:?}"
    );
    assert!(!reported.is_empty());
    assert_eq!(crate::support::summary(&driver.world), Vec::<String>::new());
}

#[test]
fn a_resource_that_cannot_be_deleted_is_failed_and_tried_again() {
    let mut driver = bound_driver("Delete");
    delete_claim(&mut driver);
    let reported = with_refusals(&mut driver, 4, |a| matches!(a, Action::Delete { .. }));
    assert!(
        reported.iter().all(|t| t.contains("ReclaimFailed") && t.contains("a webhook says no")),
        "{reported:?}"
    );
    assert!(!reported.is_empty());
    assert_eq!(crate::support::summary(&driver.world), Vec::<String>::new());
}

#[test]
fn a_failed_destruction_that_is_called_off_leaves_the_resource_released() {
    let mut driver = bound_driver("Delete");
    delete_claim(&mut driver);
    loop {
        driver.run_holding_writes();
        let Some(at) = driver.outbox.iter().position(is_write) else {
            if driver.phase_of(RESOURCE, "r") == "Failed" {
                break;
            }
            driver.wait_holding_writes(100);
            continue;
        };
        let write = driver.outbox.remove(at).unwrap();
        match write {
            Action::Delete { .. } => {
                driver.deliver_event(answer_to(&write, Answer::Invalid("no".to_owned())))
            }
            _ => driver.carry_out(write),
        }
    }
    let event = driver.world.edit(RESOURCE, &r_key(), |o| o.body["spec"]["reclaimPolicy"] = json!("Retain"));
    driver.deliver_event(event.unwrap());
    driver.run();
    driver.wait(120_000);
    assert_eq!((driver.phase_of(RESOURCE, "r").as_str(), driver.world.parts().count()), ("Released", 1));
}

#[test]
fn a_recorded_part_of_a_kind_that_is_gone_holds_its_resource_and_is_reported() {
    let mut run = bound("Delete");
    let why = WhyMissing::NotAllowed("instances is forbidden".to_owned());
    run.harness.touch_parts(|world| [world.uninstall(&instance(), why)]);
    run.delete(CLAIM, "c");
    assert_eq!(run.resource("r"), "Failed by c");
    assert!(
        run.reported("r").starts_with("ReclaimFailed") && run.reported("r").contains("forbidden"),
        "{}",
        run.reported("r")
    );
    run.harness.touch_parts(|world| [world.install(&instance())]);
    assert_eq!((run.resources().len(), parts(&run)), (0, 0));
}

#[test]
fn a_resource_whose_part_was_never_made_goes_without_its_kind() {
    let mut run = world()
        .without_kinds()
        .class("fast", makes("Delete"))
        .claim("c", requests(1).with(json!({"class": "fast"})))
        .settle();
    assert_eq!(run.outcome("c"), "Provisioning");
    run.delete(CLAIM, "c");
    assert_eq!((run.resources().len(), run.outcomes().len()), (0, 0));
}

#[test]
fn a_part_that_is_not_the_recorded_one_is_not_deleted() {
    let mut run = bound("Delete");
    let key = run.part_key("r");
    let mut copy = run.part("r").unwrap().clone();
    copy.metadata.uid = Some("another".to_owned());
    run.harness.world.delete_part(&key);
    run.harness.touch_parts(|world| world.put_part(copy));
    run.delete(CLAIM, "c");
    assert_eq!((run.resources().len(), parts(&run)), (0, 1));
}

#[test]
fn a_part_whose_create_is_on_its_way_is_waited_for_and_cleaned_up() {
    let mut driver = Driver::start(
        world()
            .class("fast", makes("Delete"))
            .claim("c", requests(1).with(json!({"class": "fast"})))
            .into_world(),
    );
    let create = loop {
        driver.run_holding_writes();
        let write = driver.take_write();
        if matches!(write, Action::Part(_)) {
            break write;
        }
        driver.carry_out(write);
    };
    delete_claim(&mut driver);
    driver.run();
    driver.wait(60_000);
    assert_eq!(
        driver.world.objects().filter(|o| o.kind == RESOURCE).count(),
        1,
        "the create is still out there"
    );
    driver.carry_out(create);
    driver.run();
    assert_eq!(crate::support::summary(&driver.world), Vec::<String>::new());
    driver.deliver_event(Event::Tick);
}

#[test]
fn a_part_that_lost_its_label_goes_with_its_resource_too() {
    let mut run = bound("Delete");
    let key = run.part_key("r");
    run.harness.touch_parts(|world| world.edit_part(&key, |part| part.metadata.labels = None));
    let mut run = run.restart();
    run.delete(CLAIM, "c");
    assert_eq!((run.resources().len(), parts(&run)), (0, 0));
}

#[test]
fn a_retained_resource_does_not_go_before_the_create_of_its_part_is_known() {
    let mut driver = Driver::start(world().resource("r", templated("Retain")).into_world());
    let create = loop {
        driver.run_holding_writes();
        let write = driver.take_write();
        if matches!(write, Action::Part(_)) {
            break write;
        }
        driver.carry_out(write);
    };
    let event = driver.world.delete(RESOURCE, &r_key()).unwrap();
    driver.deliver_event(event);
    driver.run();
    driver.wait(60_000);
    assert!(driver.world.get(RESOURCE, &r_key()).is_some(), "the create is still out there");
    driver.carry_out(create);
    driver.run();
    assert_eq!(crate::support::summary(&driver.world), ["Instance of r"]);
}
