//! Resources with several claims: slots, summed capacity, exclusiveness, who may share.

use crate::support::{CLAIM, Driver, RESOURCE, With, check, claim_key, db, requests, system_key, world};
use serde_json::{Value, json};

fn shared(gib: u32, slots: u32) -> Value {
    db(gib).with(json!({"sharing": {"maxClaims": slots}}))
}

#[test]
fn a_resource_takes_one_claim_unless_it_says_otherwise() {
    check(
        world().resource("r", db(50)).claim("a", requests(1)).claim("b", requests(1)),
        &["a -> r", "b: NoMatch"],
    );
}

#[test]
fn a_shared_resource_takes_claims_while_it_has_slots() {
    let run = world()
        .resource("r", shared(50, 2))
        .claim("a", requests(1))
        .claim("b", requests(1))
        .claim("c", requests(1))
        .settle();
    assert_eq!(run.outcomes(), ["a -> r", "b -> r", "c: NoMatch"]);
    assert_eq!(run.message("c"), "0/1 resources fit: 1 sharing");
    assert_eq!(run.resource("r"), "Bound by a, b");
}

#[test]
fn a_shared_resource_takes_claims_while_every_capacity_allows() {
    let both = |storage: &str, connections: u32| json!({"engine": "postgresql", "resources": {"requests": {"storage": storage, "connections": connections}}});
    let capacity = json!({"capacity": {"storage": "10Gi", "connections": 100}});
    let run = world()
        .resource("r", shared(10, 9).with(capacity))
        .claim("a", both("4Gi", 50))
        .claim("b", both("7Gi", 1))
        .claim("c", both("1Gi", 51))
        .claim("d", both("6Gi", 50))
        .settle();
    assert_eq!(run.outcomes(), ["a -> r", "b: NoMatch", "c: NoMatch", "d -> r"]);
    let allocated = &run.body(RESOURCE, "r")["status"]["allocated"];
    assert_eq!(allocated, &json!({"storage": "10Gi", "connections": "100"}));
}

#[test]
fn a_claim_releases_its_capacity() {
    let mut run = world()
        .resource("r", shared(10, 9))
        .claim("a", requests(6))
        .claim("b", requests(3))
        .claim("c", requests(6))
        .settle();
    assert_eq!(run.outcomes(), ["a -> r", "b -> r", "c: NoMatch"]);
    run.delete(CLAIM, "a");
    assert_eq!((run.outcome("c").as_str(), run.bound_after_flush()), ("-> r", 0));
}

#[test]
fn what_only_the_one_who_left_took_of_is_no_longer_allocated() {
    let capacity = json!({"capacity": {"storage": "10Gi", "connections": 100}});
    let connected =
        requests(1).with(json!({"resources": {"requests": {"storage": "1Gi", "connections": 7}}}));
    let scene =
        world().resource("r", shared(10, 9).with(capacity)).claim("a", requests(2)).claim("b", connected);
    let mut driver = Driver::start(scene.into_world());
    driver.run();
    let allocated = |driver: &Driver| {
        driver.world.get(RESOURCE, &system_key("r")).unwrap().body["status"]["allocated"].clone()
    };
    assert_eq!(allocated(&driver), json!({"storage": "3Gi", "connections": "7"}));
    let gone = driver.world.delete(CLAIM, &claim_key("b"));
    gone.into_iter().for_each(|event| driver.deliver_event(event));
    driver.run();
    assert_eq!(allocated(&driver), json!({"storage": "2Gi"}));
}

#[test]
fn an_allocation_that_cannot_be_read_is_written_anew() {
    let scene =
        world().resource("r", shared(10, 9)).status(json!({"allocated": {"storage": "much", "more": -1}}));
    let run = scene.claim("a", requests(2)).settle();
    let allocated = &run.body(RESOURCE, "r")["status"]["allocated"];
    assert_eq!(allocated, &json!({"storage": "2Gi"}));
}

#[test]
fn an_exclusive_claim_refuses_a_resource_that_has_others() {
    check(
        world()
            .resource("r", shared(50, 3))
            .claim("a", requests(1))
            .claim("b", requests(1).with(json!({"exclusive": true}))),
        &["a -> r", "b: NoMatch"],
    );
    check(
        world().resource("r", shared(50, 3)).claim("b", requests(1).with(json!({"exclusive": true}))),
        &["b -> r"],
    );
}

#[test]
fn no_claim_joins_an_exclusive_one_until_it_allows_it() {
    let alone = requests(1).with(json!({"exclusive": true}));
    let named = requests(1).with(json!({"resourceName": "r"}));
    let mut run = world()
        .resource("r", shared(50, 3))
        .claim("alone", alone)
        .created(1)
        .claim("b", requests(1))
        .created(2)
        .claim("n", named)
        .created(3)
        .settle();
    assert_eq!(run.outcomes(), ["alone -> r", "b: NoMatch", "n: ResourceTaken"]);
    let mut run = {
        run.put(crate::support::claim("late", requests(1)));
        run.restart()
    };
    assert_eq!(run.outcomes(), ["alone -> r", "b: NoMatch", "late: NoMatch", "n: ResourceTaken"]);
    run.edit_spec(CLAIM, "alone", json!({"exclusive": false}));
    // The claim that waits longest goes first: a restart tries all at one moment.
    assert_eq!(run.resource("r"), "Bound by alone, b, n");
    assert_eq!((run.outcome("late").as_str(), run.bound_after_flush()), ("NoMatch", 0));
}

#[test]
fn who_is_kept_out_by_an_exclusive_claim_gets_the_next_that_fits() {
    let alone = requests(1).with(json!({"exclusive": true}));
    let mut run = world()
        .resource("r", shared(50, 3))
        .claim("alone", alone)
        .created(1)
        .claim("b", requests(1))
        .settle();
    assert_eq!(run.outcomes(), ["alone -> r", "b: NoMatch"]);
    run.put(crate::support::resource("s", shared(1, 2)));
    assert_eq!(run.outcome("b"), "-> s");
}

#[test]
fn an_exclusive_claim_that_names_its_resource_refuses_company_too() {
    check(
        world()
            .resource("r", shared(50, 3))
            .claim("a", requests(1))
            .claim("b", requests(1).with(json!({"exclusive": true, "resourceName": "r"}))),
        &["a -> r", "b: ResourceTaken"],
    );
}

#[test]
fn a_resource_is_open_to_the_namespaces_that_it_lists() {
    let open =
        shared(50, 9).with(json!({"sharing": {"maxClaims": 9, "allowedNamespaces": ["blue", "green"]}}));
    check(
        world()
            .resource("r", open)
            .claim("blue/c", requests(1))
            .claim("green/c", requests(1))
            .claim("red/c", requests(1))
            .claim("red/d", requests(1).with(json!({"resourceName": "r"}))),
        &["blue/c -> r", "green/c -> r", "red/c: NoMatch", "red/d: ResourceTaken"],
    );
}

#[test]
fn reclaim_happens_when_the_last_claim_is_gone() {
    let spec = shared(10, 2).with(json!({"reclaimPolicy": "Delete"}));
    let mut run = world().resource("r", spec).claim("a", requests(1)).claim("b", requests(1)).settle();
    run.delete(CLAIM, "a");
    assert_eq!(run.resource("r"), "Bound by b");
    run.delete(CLAIM, "b");
    assert_eq!(run.resources(), Vec::<String>::new());
}

#[test]
fn what_is_left_of_a_shared_resource_counts_for_best_fit() {
    check(
        world()
            .resource("big", shared(20, 2))
            .resource("small", shared(8, 2))
            .claim("a", requests(15))
            .created(1)
            .claim("b", requests(3))
            .created(2),
        &["a -> big", "b -> big"],
    );
}

#[test]
fn a_slot_that_is_kept_for_a_claim_is_not_given_to_another() {
    let kept = shared(50, 2).with(crate::support::kept_for("late"));
    let mut run = world().resource("r", kept).claim("a", requests(1)).claim("b", requests(1)).settle();
    assert_eq!(run.outcomes(), ["a -> r", "b: NoMatch"]);
    run.put(crate::support::claim("late", requests(1)));
    assert_eq!(run.outcome("late"), "-> r");
}
