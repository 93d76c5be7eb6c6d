//! A claim that was bound: Lost, restored, misbound (rules 10 and 11).

use crate::support::{
    CLAIM, Driver, RESOURCE, Run, With, claim, db, held_by, kept_for, requests, resource, system_key, world,
};
use conductor::action::{Action, Change};
use conductor::engine::Config;
use conductor::model::Object;
use serde_json::json;

fn one_bound() -> Run {
    let run = world().resource("r", db(5)).claim("c", requests(1)).settle();
    assert_eq!(run.outcome("c"), "-> r");
    run
}

fn clear_refs(object: &mut Object) {
    object.body["spec"]["claimRefs"] = json!([]);
}

#[test]
fn a_claim_whose_resource_is_deleted_is_lost_and_reported_once() {
    let mut run = one_bound();
    run.destroy(RESOURCE, "r");
    assert_eq!(run.outcome("c"), "Lost Lost");
    assert_eq!(run.notes("c"), ["Bound", "Lost"]);
    let run = run.restart();
    assert_eq!((run.outcome("c").as_str(), run.harness.writes()), ("Lost Lost", 0));
    assert!(run.notes("c").is_empty());
}

#[test]
fn a_lost_claim_keeps_the_name_of_what_it_lost() {
    let mut run = one_bound();
    run.destroy(RESOURCE, "r");
    assert!(run.message("c").contains("resource r was deleted"), "{}", run.message("c"));
    assert_eq!(run.body(CLAIM, "c")["status"]["resourceRef"]["name"], "r");
}

#[test]
fn a_claim_that_says_bound_and_names_nothing_is_lost() {
    let run = world().resource("r", db(5)).claim("c", requests(1)).status(json!({"phase": "Bound"})).settle();
    assert_eq!(run.outcome("c"), "Lost Lost");
    assert_eq!(run.resource("r"), "Available");
}

#[test]
fn lost_is_terminal_even_when_a_resource_of_that_name_comes_back() {
    let mut run = one_bound();
    run.destroy(RESOURCE, "r");
    run.put(resource("r", db(5)));
    run.harness.advance(3_600_000);
    assert_eq!(run.outcome("c"), "Lost Lost");
    assert_eq!(run.resource("r"), "Available");
    let run = run.restart();
    assert_eq!(run.outcome("c"), "Lost Lost");
}

#[test]
fn a_resource_replaced_during_downtime_makes_the_claim_lost() {
    let mut run = one_bound();
    let key = conductor::model::ObjectKey::new("conductor-system", "r");
    run.harness.world.edit(RESOURCE, &key, |object| object.metadata.finalizers = None);
    run.harness.world.delete(RESOURCE, &key);
    run.harness.world.put(resource("r", db(5)));
    let run = run.restart();
    assert_eq!(run.outcome("c"), "Lost Lost");
    assert_eq!(run.resource("r"), "Available");
}

#[test]
fn a_resource_that_was_replaced_before_our_eyes_is_other_data_and_the_claim_is_lost() {
    let mut run = one_bound();
    let bound_to = run.find(RESOURCE, "r").unwrap().metadata.uid.clone();
    let mut other = resource("r", db(5));
    other.metadata.uid = Some("another-life".to_owned());
    run.put(other);
    assert_eq!(run.outcome("c"), "Lost Lost");
    assert_eq!(run.body(CLAIM, "c")["status"]["resourceRef"]["uid"], json!(bound_to), "what it lost");
    assert_eq!(run.resource("r"), "Available");
}

#[test]
fn a_lost_claim_is_bound_anew_only_as_a_new_claim() {
    let mut run = one_bound();
    run.destroy(RESOURCE, "r");
    run.delete(CLAIM, "c");
    assert!(run.find(CLAIM, "c").is_none());
    run.put(resource("r", db(5)));
    run.put(claim("c", requests(1)));
    assert_eq!(run.outcome("c"), "-> r");
}

#[test]
fn a_reference_that_was_cleared_is_restored_without_asking_whether_it_fits() {
    let mut run = one_bound();
    run.edit(RESOURCE, "r", |object| {
        clear_refs(object);
        object.body["spec"]["version"] = json!("9.6");
        object.body["spec"]["class"] = json!("fast");
    });
    assert_eq!(run.outcome("c"), "-> r");
    assert_eq!(run.resource("r"), "Bound by c");
}

#[test]
fn a_reference_that_lost_its_uid_is_restored() {
    let mut run = one_bound();
    run.edit(RESOURCE, "r", |object| {
        object.body["spec"]["claimRefs"] = kept_for("c")["claimRefs"].clone();
    });
    assert_eq!(run.outcome("c"), "-> r");
    assert_eq!(run.body(RESOURCE, "r")["spec"]["claimRefs"][0]["uid"], run.uid("c"));
}

#[test]
fn a_reference_cleared_during_downtime_is_restored() {
    let mut run = one_bound();
    let key = conductor::model::ObjectKey::new("conductor-system", "r");
    run.harness.world.edit(RESOURCE, &key, clear_refs);
    let run = run.restart();
    assert_eq!((run.outcome("c").as_str(), run.resource("r").as_str()), ("-> r", "Bound by c"));
}

#[test]
fn a_bind_that_stands_is_left_alone() {
    let mut run = one_bound();
    let before = run.harness.writes();
    run.edit(RESOURCE, "r", |object| object.body["spec"]["note"] = json!("touched"));
    run.harness.advance(3_600_000);
    assert_eq!(run.outcome("c"), "-> r");
    assert!(run.harness.writes() - before <= 1, "at most the observed generation is written");
}

#[test]
fn a_static_bind_is_four_writes_and_speaks_of_the_last_generation() {
    let run = world().resource("r", db(5)).settle();
    let before = run.harness.writes();
    let mut run = run;
    run.put(crate::support::claim("c", requests(1)));
    assert_eq!((run.outcome("c").as_str(), run.harness.writes() - before), ("-> r", 4));
    let claim = run.find(CLAIM, "c").unwrap();
    assert_eq!(claim.body["status"]["observedGeneration"], json!(claim.metadata.generation));
}

#[test]
fn a_resource_that_names_another_claim_makes_its_former_claim_misbound() {
    let mut run = one_bound();
    run.put(claim("thief", requests(1)));
    let uid = run.uid("thief");
    run.edit(RESOURCE, "r", |object| {
        object.body["spec"]["claimRefs"] = held_by("thief", &uid)["claimRefs"].clone();
    });
    assert_eq!(run.outcomes(), ["c: Lost Misbound", "thief -> r"]);
    assert_eq!(run.resource("r"), "Bound by thief");
}

#[test]
fn a_resource_that_is_kept_for_another_claim_makes_its_former_claim_misbound() {
    let mut run = one_bound();
    run.edit(RESOURCE, "r", |object| {
        object.body["spec"]["claimRefs"] = kept_for("heir")["claimRefs"].clone();
    });
    assert_eq!(run.outcome("c"), "Lost Misbound");
    run.put(claim("heir", requests(1)));
    assert_eq!(run.outcomes(), ["c: Lost Misbound", "heir -> r"]);
}

#[test]
fn a_resource_that_names_another_life_of_the_claim_makes_this_one_misbound() {
    let run = world()
        .resource("r", db(5).with(held_by("c", "life-1")))
        .claim("c", requests(1))
        .uid("life-2")
        .status(json!({"phase": "Bound", "resourceRef": {"name": "r"}}))
        .settle();
    assert_eq!(run.outcome("c"), "Lost Misbound");
    assert_eq!(run.resource("r"), "Released by c");
}

#[test]
fn a_bound_claim_is_not_moved_when_its_spec_is_edited() {
    let mut run = world().resource("r", db(5)).resource("s", db(50)).claim("c", requests(1)).settle();
    run.edit_spec(CLAIM, "c", requests(40).with(json!({"class": "fast"})));
    run.edit_spec(CLAIM, "c", json!({"resourceName": "s"}));
    assert_eq!(run.outcome("c"), "-> r");
    assert_eq!(run.body(CLAIM, "c")["spec"]["resourceName"], "r");
    assert_eq!(run.resource("s"), "Available");
}

#[test]
fn a_claims_side_that_was_wiped_is_written_again_from_the_resource() {
    let mut run = one_bound();
    run.edit(CLAIM, "c", |object| {
        object.body.as_object_mut().unwrap().remove("status");
        object.body["spec"]["resourceName"] = json!(null);
        object.metadata.finalizers = None;
    });
    assert_eq!(run.outcome("c"), "-> r");
    assert_eq!(run.body(CLAIM, "c")["spec"]["resourceName"], "r");
}

#[test]
fn a_removed_reference_is_restored_with_its_original_requests() {
    let shared = db(20).with(json!({"sharing": {"maxClaims": 3}}));
    let mut run = world().resource("r", shared).claim("a", requests(5)).claim("b", requests(5)).settle();
    run.edit_spec(CLAIM, "a", requests(30));
    let before = run.body(RESOURCE, "r")["spec"]["claimRefs"].clone();
    run.edit(RESOURCE, "r", clear_refs);
    assert_eq!(run.outcomes(), ["a -> r", "b -> r"]);
    assert_eq!(run.body(RESOURCE, "r")["spec"]["claimRefs"], before);
    // A new claim finds no free slot.
    run.put(claim("late", requests(11)));
    assert_eq!(run.outcome("late"), "NoMatch");
}

#[test]
fn references_removed_during_downtime_are_restored_if_possible() {
    let shared = db(20).with(json!({"sharing": {"maxClaims": 3}}));
    let mut run = world().resource("r", shared).claim("a", requests(5)).claim("b", requests(5)).settle();
    run.edit_spec(CLAIM, "a", requests(30));
    let key = conductor::model::ObjectKey::new("conductor-system", "r");
    run.harness.world.edit(RESOURCE, &key, clear_refs);
    let run = run.restart();
    assert_eq!(run.outcomes(), ["a -> r", "b -> r"]);
    assert_eq!(run.resource("r"), "Bound by a, b");
}

#[test]
fn what_an_administrator_kept_stays_kept_when_its_reference_is_put_back() {
    let mut run = world().resource("r", db(5).with(kept_for("c"))).claim("c", requests(1)).settle();
    run.edit(RESOURCE, "r", clear_refs);
    assert_eq!(run.outcome("c"), "-> r");
    assert_eq!(run.body(RESOURCE, "r")["spec"]["claimRefs"][0]["reserved"], true);
}

/// The same world under a controller that manages another system namespace.
fn under_another_namespace(run: Run) -> Run {
    let config = Config { system_namespace: "elsewhere".into(), ..Config::default() };
    Run { harness: run.harness.restart(config) }
}

#[test]
fn a_claim_bound_in_another_namespace_is_left_as_it_is() {
    let mut run = under_another_namespace(one_bound());
    run.harness.advance(3_600_000);
    assert_eq!((run.outcome("c").as_str(), run.harness.writes()), ("-> r", 0));
    assert_eq!(run.notes("c"), ["NotManaged"]);
    run.edit_spec(CLAIM, "c", requests(2));
    assert_eq!((run.outcome("c").as_str(), run.harness.writes()), ("-> r", 0));
    let run = run.restart();
    assert_eq!((run.outcome("c").as_str(), run.resource("r").as_str()), ("-> r", "Bound by c"));
}

#[test]
fn a_wrong_system_namespace_ends_no_claim_that_is_deleted() {
    let mut run = under_another_namespace(one_bound());
    run.delete(CLAIM, "c");
    run.harness.advance(3_600_000);
    assert!(
        run.find(CLAIM, "c").is_some(),
        "its protection stays until its own controller has released the resource"
    );
    assert_eq!(run.harness.writes(), 0);
    let run = run.restart();
    assert!(run.find(CLAIM, "c").is_none());
    assert_eq!(run.resource("r"), "Released by c");
}

#[test]
fn lost_ends_when_the_same_resource_holds_the_claim_again() {
    let mut run = one_bound();
    let kept = run.find(RESOURCE, "r").unwrap().clone();
    run.destroy(RESOURCE, "r");
    assert_eq!(run.outcome("c"), "Lost Lost");
    run.harness.world.put(kept);
    let run = run.restart();
    assert_eq!((run.outcome("c").as_str(), run.resource("r").as_str()), ("-> r", "Bound by c"));
}

/// As after a backup from before the claim was bound: its UID says that it is the same.
fn without_references(mut object: Object) -> Object {
    clear_refs(&mut object);
    object.body["status"] = json!({});
    object
}

#[test]
fn lost_ends_when_the_same_resource_returns_without_its_reference() {
    for while_it_runs in [false, true] {
        let mut run = one_bound();
        let kept = without_references(run.find(RESOURCE, "r").unwrap().clone());
        run.destroy(RESOURCE, "r");
        assert_eq!(run.outcome("c"), "Lost Lost");
        let run = if while_it_runs {
            // One that saw it being deleted takes what comes later for an echo; another does not.
            let mut run = run.restart();
            run.put(kept);
            run
        } else {
            run.harness.world.put(kept);
            run.restart()
        };
        assert_eq!((run.outcome("c").as_str(), run.resource("r").as_str()), ("-> r", "Bound by c"));
        assert_eq!(run.body(RESOURCE, "r")["spec"]["claimRefs"][0]["uid"], run.uid("c"));
    }
}

#[test]
fn a_resource_that_returns_with_another_holder_stays_with_it() {
    let mut run = one_bound();
    let mut kept = run.find(RESOURCE, "r").unwrap().clone();
    run.destroy(RESOURCE, "r");
    assert_eq!(run.outcome("c"), "Lost Lost");
    let mut run = run.restart();
    kept.body["spec"]["claimRefs"] = kept_for("d")["claimRefs"].clone();
    run.put(kept);
    run.put(claim("d", requests(1)));
    assert_eq!((run.outcome("c").as_str(), run.outcome("d").as_str()), ("Lost Misbound", "-> r"));
    // Its data is the other's from then on.
    run.edit(RESOURCE, "r", clear_refs);
    run.harness.advance(3_600_000);
    assert_eq!((run.outcome("c").as_str(), run.outcome("d").as_str()), ("Lost Misbound", "-> r"));
    run.delete(CLAIM, "d");
    run.edit(RESOURCE, "r", clear_refs);
    let run = run.restart();
    assert_eq!(run.outcome("c"), "Lost Misbound");
}

#[test]
fn several_missing_resources_at_once_lose_no_claim() {
    let scene = (1..=3).fold(world(), |scene, n| scene.resource(&format!("r{n}"), db(5)));
    let scene = (1..=3).fold(scene, |scene, n| scene.claim(&format!("c{n}"), requests(1)));
    let mut run = scene.settle();
    let bound = run.outcomes();
    let kept: Vec<Object> = run.harness.world.objects().filter(|o| o.kind == RESOURCE).cloned().collect();
    for resource in &kept {
        let key = conductor_simulator::world::key_of(resource);
        run.harness.world.edit(RESOURCE, &key, |object| object.metadata.finalizers = None);
        run.harness.world.delete(RESOURCE, &key);
    }
    let braked = Config { lost_at_once_max: 2, ..Config::default() };
    let run = Run { harness: run.harness.restart(braked.clone()) };
    assert_eq!((run.outcomes(), run.harness.writes()), (bound.clone(), 0));
    assert_eq!(run.notes("c1"), ["ResourcesMissing"]);
    assert_eq!(run.harness.engine.withheld_losses(), 3);
    // Two of them return: one that is missing alone is lost, and says what that means.
    let mut harness = run.harness;
    kept[1..].iter().for_each(|resource| drop(harness.world.put(resource.clone())));
    let run = Run { harness: harness.restart(braked) };
    assert_eq!(run.outcomes(), ["c1: Lost Lost", "c2 -> r2", "c3 -> r3"]);
    assert!(run.message("c1").contains("deletes the record of its data"), "{}", run.message("c1"));
}

#[test]
fn a_reference_that_is_cleared_while_bound_is_being_written_is_put_back() {
    let world = world().resource("a", db(5)).resource("b", db(5)).claim("c", requests(1)).into_world();
    let mut driver = Driver::start(world);
    driver.run_holding_writes();
    let reference = driver.take_write();
    driver.carry_out(reference);
    // The reference is there, and the claim's status is on its way.
    driver.run_holding_writes();
    let cleared = driver.world.edit(RESOURCE, &system_key("a"), |object| {
        clear_refs(object);
        object.body["spec"]["unschedulable"] = json!(true);
    });
    driver.deliver_event(cleared.expect("it is there"));
    driver.run();
    assert_eq!(driver.outcome("c"), "-> a");
    let gives_b = |action: &Action| match action {
        Action::Write(write) => {
            let gives =
                matches!(&write.change, Change::ResourceSpec { claim_refs, .. } if !claim_refs.is_empty());
            gives && &*write.key.name == "b"
        }
        _ => false,
    };
    assert!(!driver.sent.iter().any(gives_b), "the other resource was given to it meanwhile");
}

#[test]
fn the_advice_of_earlier_versions_is_not_repeated() {
    let advice = "resource r was deleted; the claim is not bound to other data. Delete it to claim anew";
    let condition = json!({"type": "Bound", "status": "False", "reason": "Lost", "message": advice,
        "lastTransitionTime": "2024-01-03T16:40:00Z"});
    let place = json!({"namespace": "conductor-system", "name": "r", "uid": "uid-r"});
    let run = world()
        .claim("c", requests(1))
        .status(json!({"phase": "Lost", "resourceRef": place, "conditions": [condition]}))
        .settle();
    assert_eq!(run.outcome("c"), "Lost Lost");
    assert!(run.message("c").contains("create a claim of another name"), "{}", run.message("c"));
}
