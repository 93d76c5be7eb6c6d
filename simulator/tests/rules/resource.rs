//! The resource's side: phases, reservations that wake, live reads, release (rules 12 to 16).

use crate::support::{
    CLAIM, Driver, RESOURCE, Run, With, claim, db, held_by, kept_for, makes, requests, resource, world,
};
use conductor::action::Action;
use serde_json::json;

fn one_bound(policy: &str) -> Run {
    world().resource("r", db(5).with(json!({"reclaimPolicy": policy}))).claim("c", requests(1)).settle()
}

#[test]
fn an_unclaimed_resource_becomes_available() {
    let run = world().resource("r", db(5)).resource("kept", db(5).with(kept_for("c"))).settle();
    assert_eq!(run.resource("r"), "Available");
    assert_eq!(run.resource("kept"), "Available by c (kept)");
}

#[test]
fn a_resource_with_a_template_is_available_only_once_it_is_made() {
    let spec = db(5).with(json!({"template": makes("Delete")["template"]}));
    let mut run = world().resource("r", spec).claim("c", requests(1)).settle();
    assert_eq!((run.resource("r").as_str(), run.outcome("c").as_str()), ("Creating", "NoMatch"));
    run.becomes_available("r");
    assert_eq!((run.resource("r").as_str(), run.outcome("c").as_str()), ("Bound by c", "-> r"));
    assert_eq!(run.bound_after_flush(), 0);
}

#[test]
fn a_claim_that_came_first_binds_at_once_when_its_resource_appears() {
    let mut run = world().claim("c", requests(1)).settle();
    run.put(resource("r", db(5)));
    assert_eq!(run.outcome("c"), "-> r");
    assert_eq!(run.bound_after_flush(), 0);
}

#[test]
fn a_claim_that_came_first_binds_at_once_when_a_resource_is_kept_for_it() {
    let mut run =
        world().resource("r", db(5).with(json!({"class": "fast"}))).claim("c", requests(1)).settle();
    assert_eq!(run.outcome("c"), "NoMatch");
    run.edit_spec(RESOURCE, "r", kept_for("c"));
    assert_eq!(run.outcome("c"), "-> r");
    assert_eq!(run.bound_after_flush(), 0);
}

#[test]
fn a_reservation_that_is_lifted_wakes_the_others() {
    let mut run = world().resource("r", db(5).with(kept_for("missing"))).claim("c", requests(1)).settle();
    assert_eq!(run.message("c"), "0/1 resources fit: 1 reserved");
    run.edit_spec(RESOURCE, "r", json!({"claimRefs": []}));
    assert_eq!(run.outcome("c"), "-> r");
    assert_eq!(run.bound_after_flush(), 0);
}

#[test]
fn a_holder_that_the_cache_does_not_know_is_read_live_before_anything_is_released() {
    // The claim exists, but the watch has not brought it: a live read beats the stale cache.
    let scene =
        world().resource("r", db(5).with(held_by("c", "life-1"))).claim("c", requests(1)).uid("life-1");
    let mut driver = Driver::start_without(scene.into_world(), &[CLAIM]);
    let requested = driver.sent.iter().any(|a| matches!(a, Action::Read { kind, .. } if *kind == CLAIM));
    assert!(requested, "{:?}", driver.sent);
    driver.run();
    assert_eq!(driver.phase_of(RESOURCE, "r"), "Bound");
    assert_eq!(driver.phase_of(CLAIM, "c"), "Bound");
}

#[test]
fn nothing_is_reclaimed_while_one_of_its_references_cannot_be_read() {
    let refs = json!([{"namespace": "app", "name": true, "uid": "u8"}, {"namespace": "app", "name": "z", "uid": "u9"}]);
    let spec = db(5)
        .with(json!({"reclaimPolicy": "Delete", "sharing": {"maxClaims": 2}, "claimRefs": refs.clone()}));
    let run = world().resource("r", spec).settle();
    assert_eq!(run.body(RESOURCE, "r")["spec"]["claimRefs"], refs, "what cannot be read is not written over");
    assert_eq!(run.body(RESOURCE, "r")["status"]["phase"], "Failed");
    assert!(run.reported("r").contains("spec.claimRefs[0].name"), "{}", run.reported("r"));
}

#[test]
fn a_resource_that_is_deleted_under_its_claim_says_what_that_waits_for() {
    let mut run = world().resource("r", db(5)).claim("c", requests(1)).settle();
    run.delete(RESOURCE, "r");
    assert_eq!(run.reported("r"), "Available: its deletion waits until app/c releases it");
}

#[test]
fn a_holder_of_the_same_name_and_another_uid_is_read_live_too() {
    let scene =
        world().resource("r", db(5).with(held_by("c", "life-1"))).claim("c", requests(1)).uid("life-2");
    let mut driver = Driver::start_without(scene.into_world(), &[]);
    assert!(driver.sent.iter().any(|a| matches!(a, Action::Read { kind, .. } if *kind == CLAIM)));
    driver.run();
    assert_eq!(driver.phase_of(RESOURCE, "r"), "Released");
    assert_eq!(driver.phase_of(CLAIM, "c"), "Pending");
}

#[test]
fn a_retained_resource_keeps_its_reference_and_is_not_offered() {
    let mut run = one_bound("Retain");
    run.delete(CLAIM, "c");
    assert!(run.find(CLAIM, "c").is_none(), "nothing holds the claim back");
    assert_eq!(run.resource("r"), "Released by c");
    run.put(claim("d", requests(1)));
    run.put(claim("c", requests(1)));
    run.harness.advance(3_600_000);
    assert_eq!(run.outcomes(), ["c: NoMatch", "d: NoMatch"]);
    assert_eq!(run.resource("r"), "Released by c");
}

#[test]
fn a_resource_of_policy_delete_goes_with_its_last_claim() {
    let mut run = one_bound("Delete");
    run.delete(CLAIM, "c");
    assert_eq!(run.resources(), Vec::<String>::new());
    assert!(run.find(CLAIM, "c").is_none());
}

#[test]
fn without_a_policy_nothing_is_destroyed() {
    let mut run = world().resource("r", db(5)).claim("c", requests(1)).settle();
    run.delete(CLAIM, "c");
    assert_eq!(run.resource("r"), "Released by c");
}

#[test]
fn failed_is_never_overwritten_by_released_and_never_destroyed() {
    let mut run = one_bound("Delete");
    run.edit(RESOURCE, "r", |object| object.body["status"]["phase"] = json!("Failed"));
    run.delete(CLAIM, "c");
    run.harness.advance(3_600_000);
    assert_eq!(run.resource("r"), "Failed by c");
}

#[test]
fn an_unknown_policy_deletes_nothing_until_it_is_repaired() {
    let mut run = one_bound("Recycle");
    run.delete(CLAIM, "c");
    assert_eq!(run.resource("r"), "Failed by c");
    assert!(run.notes("r").contains(&"Failed"));
    run.edit_spec(RESOURCE, "r", json!({"reclaimPolicy": "Retain"}));
    assert_eq!(run.resource("r"), "Released by c");
}

#[test]
fn a_resource_that_failed_at_its_reclaim_is_withdrawn_like_a_released_one() {
    let mut run = one_bound("Recycle");
    run.delete(CLAIM, "c");
    run.edit_spec(RESOURCE, "r", json!({"claimRefs": []}));
    assert_eq!(run.resource("r"), "Failed");
    run.put(claim("d", requests(1)));
    assert_eq!(run.message("d"), "0/1 resources fit: 1 phase");
    // Kept for another, it is not given before its last claim is known to be gone, also after a restart.
    let condition = json!({"type": "Ready", "status": "False", "reason": "ReclaimFailed", "message": "",
        "lastTransitionTime": "2024-01-03T16:40:00Z"});
    let shared = db(5).with(json!({"reclaimPolicy": "Recycle", "sharing": {"maxClaims": 2}, "claimRefs": [
        {"namespace": "app", "name": "gone", "uid": "uid-gone"}, {"namespace": "app", "name": "d"},
    ]}));
    let run = world()
        .resource("r", shared)
        .status(json!({"phase": "Failed", "conditions": [condition]}))
        .claim("d", requests(1))
        .settle();
    assert_eq!(run.outcome("d"), "NoMatch");
}

#[test]
fn a_released_resource_is_offered_again_only_as_the_administrator_says() {
    let mut run = one_bound("Retain");
    run.delete(CLAIM, "c");
    run.put(claim("c", requests(1)));
    run.put(claim("d", requests(1)));
    // Opt-in: the reference keeps its name and loses its UID. It is c's again, not d's.
    run.edit_spec(RESOURCE, "r", kept_for("c"));
    assert_eq!(run.outcomes(), ["c -> r", "d: NoMatch"]);
}

#[test]
fn a_released_resource_without_reference_is_still_not_offered() {
    let mut run = one_bound("Retain");
    run.delete(CLAIM, "c");
    run.edit_spec(RESOURCE, "r", json!({"claimRefs": []}));
    assert_eq!(run.resource("r"), "Released");
    run.put(claim("d", requests(1)));
    assert_eq!(run.message("d"), "0/1 resources fit: 1 phase");
    run.edit_spec(RESOURCE, "r", kept_for("d"));
    assert_eq!(run.outcome("d"), "-> r");
}

#[test]
fn a_resource_without_a_template_is_there_at_once_whatever_phase_was_written() {
    for phase in ["Pending", "Creating"] {
        let found = world().resource("r", db(5)).status(json!({"phase": phase}));
        let run = found.claim("c", requests(1)).settle();
        assert_eq!(run.outcome("c"), "-> r", "{phase}");
    }
    for phase in ["Released", "Deleting"] {
        let found = world().resource("r", db(5)).status(json!({"phase": phase}));
        let run = found.claim("c", requests(1)).settle();
        assert_eq!(run.message("c"), "0/1 resources fit: 1 phase", "{phase}");
        assert_eq!(run.resource("r"), phase);
    }
}

#[test]
fn of_two_resources_that_hold_one_claim_the_loser_is_rolled_back() {
    let mut run = world()
        .resource("a", db(5).with(held_by("c", "life-1")))
        .resource("b", db(5).with(held_by("c", "life-1")))
        .claim("c", requests(1))
        .uid("life-1")
        .settle();
    assert_eq!(run.outcome("c"), "-> a");
    assert_eq!((run.resource("a").as_str(), run.resource("b").as_str()), ("Bound by c", "Available"));
    run.put(claim("d", requests(1)));
    assert_eq!(run.outcome("d"), "-> b");
}

#[test]
fn the_claims_own_record_says_which_of_two_holders_is_the_loser() {
    let run = world()
        .resource("a", db(5).with(held_by("c", "life-1")))
        .resource("b", db(5).with(held_by("c", "life-1")))
        .claim("c", requests(1))
        .uid("life-1")
        .status(json!({"phase": "Bound", "resourceRef": {"name": "b"}}))
        .settle();
    assert_eq!(run.outcome("c"), "-> b");
    assert_eq!(run.resource("a"), "Available");
}

#[test]
fn a_loser_that_the_user_reserved_keeps_the_name_and_loses_the_uid() {
    let mut reserved = held_by("c", "life-1");
    reserved["claimRefs"][0]["reserved"] = json!(true);
    let run = world()
        .resource("a", db(5).with(held_by("c", "life-1")))
        .resource("b", db(5).with(reserved))
        .claim("c", requests(1))
        .uid("life-1")
        .settle();
    assert_eq!(run.outcome("c"), "-> a");
    assert_eq!(run.resource("b"), "Available by c (kept)");
}

#[test]
fn a_loser_that_was_made_for_the_claim_is_destroyed_where_its_policy_says_so() {
    let two = |policy: &str| {
        let made = db(5).with(json!({"reclaimPolicy": policy})).with(held_by("c", "life-1"));
        world()
            .resource("a", db(5).with(held_by("c", "life-1")))
            .resource("b", made)
            .annotated(json!({"conductor.io/provisioned-for": "life-1"}))
            .claim("c", requests(1))
            .uid("life-1")
            .settle()
    };
    let destroyed = two("Delete");
    assert_eq!((destroyed.outcome("c").as_str(), destroyed.resources()), ("-> a", vec!["a".to_owned()]));
    let kept = two("Retain");
    assert_eq!((kept.outcome("c").as_str(), kept.resource("b").as_str()), ("-> a", "Available"));
}

#[test]
fn a_claim_that_binds_elsewhere_meanwhile_leaves_what_was_made_for_it_to_its_policy() {
    let mut run = world()
        .class("fast", makes("Delete"))
        .claim("c", requests(1).with(json!({"class": "fast"})))
        .settle();
    let made = run.resources().remove(0);
    let uid = run.uid("c");
    run.put(resource("found", db(5).with(json!({"class": "fast"})).with(held_by("c", &uid))));
    run.edit(CLAIM, "c", |object| {
        object.body["status"]["phase"] = json!("Bound");
        object.body["status"]["resourceRef"] = json!({"name": "found"});
    });
    assert_eq!(run.outcome("c"), "-> found");
    assert!(run.find(RESOURCE, &made).is_none(), "{:?}", run.resources());
}

#[test]
fn an_unreadable_resource_is_reported_and_not_offered() {
    let mut run = world()
        .resource("r", db(5).with(json!({"capacity": {"storage": "lots"}})))
        .claim("c", requests(1))
        .settle();
    assert_eq!((run.resource("r").as_str(), run.outcome("c").as_str()), ("Failed", "NoMatch"));
    run.edit_spec(RESOURCE, "r", db(5));
    assert_eq!((run.resource("r").as_str(), run.outcome("c").as_str()), ("Bound by c", "-> r"));
    assert_eq!(run.bound_after_flush(), 0);
}

#[test]
fn a_restart_unbinds_nothing_and_writes_nothing() {
    let mut scene = world().class("fast", makes("Delete"));
    for at in 0..40 {
        scene = scene.resource(&format!("r-{at}"), db(at)).claim(&format!("c-{at}"), requests(40 - at));
    }
    let mut run = scene.claim("made", requests(1).with(json!({"class": "fast"}))).settle();
    // A refusal counts what was there when it was decided; the flush brings all of them up to date.
    run.harness.advance(301_000);
    let before = run.outcomes();
    let run = run.restart();
    assert_eq!(run.outcomes(), before);
    assert_eq!(run.harness.writes(), 0);
}
