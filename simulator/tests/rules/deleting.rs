//! Protection, order of deletion, live reads before anything is destroyed (rules 25 to 28).

use crate::support::{
    CLAIM, CLASS, Driver, RESOURCE, Run, With, answer_to, claim_key, db, held_by, makes, requests, world,
};
use conductor::action::Action;
use conductor::event::{Answer, Event};
use conductor::model::ObjectKey;
use serde_json::json;

fn one_bound(policy: &str) -> Run {
    world()
        .class("fast", json!({}))
        .resource("r", db(5).with(json!({"reclaimPolicy": policy, "class": "fast"})))
        .claim("c", requests(1).with(json!({"class": "fast"})))
        .settle()
}

#[test]
fn a_bound_resource_is_not_removed_under_its_claim() {
    let mut run = one_bound("Delete");
    run.delete(RESOURCE, "r");
    assert_eq!(run.outcome("c"), "-> r");
    assert_eq!(run.resource("r"), "Bound by c");
    run.delete(CLAIM, "c");
    assert_eq!((run.resources().len(), run.outcomes().len()), (0, 0));
}

#[test]
fn a_resource_that_is_being_deleted_takes_no_further_claim() {
    let mut run = world()
        .resource("r", db(5).with(json!({"sharing": {"maxClaims": 3}})))
        .claim("c", requests(1))
        .settle();
    run.delete(RESOURCE, "r");
    run.put(crate::support::claim("d", requests(1)));
    assert_eq!(run.outcomes(), ["c -> r", "d: NoMatch"]);
}

#[test]
fn a_class_with_resources_is_not_removed_until_the_last_is_gone() {
    let mut run = one_bound("Retain");
    run.delete(CLASS, "fast");
    assert!(run.find(CLASS, "fast").is_some());
    run.delete(CLAIM, "c");
    assert!(run.find(CLASS, "fast").is_some(), "a released resource is still of the class");
    run.delete(RESOURCE, "r");
    assert!(run.find(CLASS, "fast").is_none());
}

#[test]
fn an_unused_class_is_deleted_at_once() {
    let mut run = world().class("fast", makes("Delete")).settle();
    run.delete(CLASS, "fast");
    assert!(run.find(CLASS, "fast").is_none());
}

#[test]
fn a_class_that_is_being_deleted_provisions_nothing() {
    let run = world()
        .class("fast", makes("Delete"))
        .deleting()
        .claim("c", requests(1).with(json!({"class": "fast"})))
        .settle();
    assert_eq!(run.outcome("c"), "NoMatch");
    assert!(run.message("c").contains("class fast is being deleted"), "{}", run.message("c"));
}

#[test]
fn deletion_in_any_order_ends_in_the_same_state() {
    let things = [(RESOURCE, "r"), (CLAIM, "c"), (CLASS, "fast")];
    for policy in ["Retain", "Delete"] {
        for order in [[0, 1, 2], [0, 2, 1], [1, 0, 2], [1, 2, 0], [2, 0, 1], [2, 1, 0]] {
            let mut run = one_bound(policy);
            for at in order {
                let (kind, name) = things[at];
                if run.find(kind, name).is_some() {
                    run.delete(kind, name);
                }
            }
            assert_eq!(run.harness.world.objects().count(), 0, "{policy} {order:?}");
        }
    }
}

#[test]
fn a_policy_that_is_changed_counts_for_what_is_deleted_afterwards() {
    let mut kept = one_bound("Delete");
    kept.edit_spec(RESOURCE, "r", json!({"reclaimPolicy": "Retain"}));
    kept.delete(CLAIM, "c");
    assert_eq!(kept.resource("r"), "Released by c");
    // And the other way: what was retained is destroyed once the administrator says so.
    kept.edit_spec(RESOURCE, "r", json!({"reclaimPolicy": "Delete"}));
    assert_eq!(kept.resources(), Vec::<String>::new());
}

#[test]
fn deleting_a_retained_resource_sends_no_deletion_of_ours() {
    let mut driver = Driver::start(
        world()
            .resource("r", db(5).with(json!({"template": {}})))
            .status(json!({"phase": "Available"}))
            .into_world(),
    );
    driver.put(crate::support::claim("c", requests(1)));
    driver.run();
    for (kind, key) in [(CLAIM, claim_key("c")), (RESOURCE, ObjectKey::new("conductor-system", "r"))] {
        let event = driver.world.delete(kind, &key).unwrap();
        driver.deliver_event(event);
        driver.run();
    }
    assert_eq!(driver.world.objects().count(), 0);
    assert!(!driver.sent.iter().any(|a| matches!(a, Action::Delete { .. })));
}

/// A world in which the claim of a Delete resource is gone, up to the point where the reads are sent.
fn about_to_destroy() -> Driver {
    let spec = db(5).with(json!({"reclaimPolicy": "Delete"}));
    let mut driver = Driver::start(world().resource("r", spec).claim("c", requests(1)).into_world());
    driver.run();
    let key = claim_key("c");
    // A user removes the claim's finalizer, so that it is deleted before the resource is released.
    driver.world.edit(CLAIM, &key, |o| o.metadata.finalizers = None);
    let gone = driver.world.delete(CLAIM, &key).unwrap();
    driver.deliver_event(gone);
    driver
}

#[test]
fn before_anything_is_destroyed_claim_and_resource_are_both_read_live() {
    let mut driver = about_to_destroy();
    driver.run();
    let delete = driver.sent.iter().position(|a| matches!(a, Action::Delete { .. })).unwrap();
    let released = driver.sent[..delete].iter().rposition(|a| matches!(a, Action::Write(_))).unwrap();
    let reads: Vec<_> = driver.sent[..delete]
        .iter()
        .enumerate()
        .filter_map(|(at, a)| match a {
            Action::Read { kind, .. } => Some((at, *kind)),
            _ => None,
        })
        .collect();
    assert!(reads.iter().any(|(at, kind)| *at > released && *kind == CLAIM), "{:#?}", driver.sent);
    assert!(reads.iter().any(|(at, kind)| *at > released && *kind == RESOURCE), "{:#?}", driver.sent);
}

#[test]
fn nothing_is_destroyed_until_both_reads_are_answered() {
    for late in [CLAIM, RESOURCE] {
        let mut driver = about_to_destroy();
        let mut held = Vec::new();
        loop {
            if let Some(action) = driver.outbox.pop_front() {
                let released = driver.phase_of(RESOURCE, "r") == "Released";
                match &action {
                    Action::Read { kind, .. } if released && *kind == late => held.push(action),
                    _ => driver.carry_out(action),
                }
            } else if let Some(event) = driver.inbox.pop_front() {
                driver.deliver_event(event);
            } else {
                break;
            }
        }
        assert_eq!(held.len(), 1);
        assert!(!driver.sent.iter().any(|a| matches!(a, Action::Delete { .. })), "{late:?}");
        held.into_iter().for_each(|read| driver.carry_out(read));
        driver.run();
        assert_eq!(crate::support::summary(&driver.world), Vec::<String>::new());
    }
}

#[test]
fn a_destruction_names_the_uid_and_the_revision_that_were_read() {
    let mut driver = about_to_destroy();
    driver.run_holding_writes();
    let mut write = driver.take_write();
    while !matches!(write, Action::Delete { .. }) {
        driver.carry_out(write);
        driver.run_holding_writes();
        write = driver.take_write();
    }
    let object = driver.world.get(RESOURCE, &ObjectKey::new("conductor-system", "r")).unwrap();
    let Action::Delete { uid, revision, .. } = &write else { unreachable!() };
    assert_eq!(Some(&**uid), object.metadata.uid.as_deref());
    assert_eq!(Some(revision.to_string()), object.metadata.resource_version);
    // A change that slips in between makes the precondition fail: nothing is destroyed on old knowledge.
    let key = ObjectKey::new("conductor-system", "r");
    driver.world.edit(RESOURCE, &key, |o| o.body["spec"]["reclaimPolicy"] = json!("Retain"));
    driver.carry_out(write);
    driver.run();
    driver.wait(60_000);
    assert_eq!(driver.phase_of(RESOURCE, "r"), "Released");
}

#[test]
fn a_resource_that_a_live_read_finds_bound_again_is_not_destroyed() {
    // Delete 8-7: the cache says that the claim is gone, the API says that it is there.
    let spec = db(5).with(json!({"reclaimPolicy": "Delete"})).with(held_by("c", "life-1"));
    let scene = world()
        .resource("r", spec)
        .status(json!({"phase": "Released"}))
        .claim("c", requests(1))
        .uid("life-1")
        .status(json!({"phase": "Bound", "resourceRef": {"name": "r"}}));
    let mut driver = Driver::start_without(scene.into_world(), &[CLAIM]);
    driver.run();
    assert!(!driver.sent.iter().any(|a| matches!(a, Action::Delete { .. })));
    assert_eq!((driver.phase_of(RESOURCE, "r").as_str(), driver.outcome("c").as_str()), ("Bound", "-> r"));
}

#[test]
fn a_destruction_that_fails_is_tried_again_after_a_pause() {
    let mut driver = about_to_destroy();
    let mut failed = 0;
    let mut patience = 0;
    while driver.world.get(RESOURCE, &ObjectKey::new("conductor-system", "r")).is_some() {
        driver.run_holding_writes();
        patience += 1;
        assert!(patience < 10_000, "it is never tried again");
        let Some(at) = driver.outbox.iter().position(crate::support::is_write) else {
            driver.wait_holding_writes(100);
            continue;
        };
        let write = driver.outbox.remove(at).unwrap();
        if matches!(write, Action::Delete { .. }) && failed < 3 {
            failed += 1;
            driver.deliver_event(answer_to(&write, Answer::Unknown("server error".to_owned())));
        } else {
            driver.carry_out(write);
        }
    }
    assert_eq!(failed, 3);
}

#[test]
fn a_claim_is_held_back_until_its_resource_is_released() {
    let mut driver = Driver::start(world().resource("r", db(5)).claim("c", requests(1)).into_world());
    driver.run();
    let event = driver.world.delete(CLAIM, &claim_key("c")).unwrap();
    driver.deliver_event(event);
    driver.run_holding_writes();
    assert!(driver.world.get(CLAIM, &claim_key("c")).is_some());
    let release = driver.take_write();
    driver.carry_out(release);
    driver.run();
    assert!(driver.world.get(CLAIM, &claim_key("c")).is_none());
    assert_eq!(driver.phase_of(RESOURCE, "r"), "Released");
    driver.deliver_event(Event::Tick);
}
