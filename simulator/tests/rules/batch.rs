//! Claims that are placed together: the most are served, the important ones first, and greed is the fallback.

use crate::support::{Scene, With, db, makes, requests, world};
use serde_json::{Value, json};

fn of_version(version: &str) -> Value {
    db(5).with(json!({ "version": version }))
}

fn wants(range: &str) -> Value {
    requests(1).with(json!({ "version": range }))
}

fn optimal() -> Scene {
    world().profile(json!({"batch": "optimal"}))
}

#[test]
fn the_only_resource_that_fits_one_is_not_given_to_another_that_has_a_choice() {
    // Whatever the order of their turns, and whichever resource is the tighter fit.
    for (first, second) in [("picky", "easy"), ("easy", "picky")] {
        for (size14, size12) in [(5, 5), (4, 5), (5, 4)] {
            let range = |who: &str| wants(if who == "picky" { "14" } else { ">= 12" });
            let run = optimal()
                .resource(
                    "v14",
                    of_version("14.1").with(json!({"capacity": {"storage": format!("{size14}Gi")}})),
                )
                .resource(
                    "v12",
                    of_version("12.1").with(json!({"capacity": {"storage": format!("{size12}Gi")}})),
                )
                .claim(first, range(first))
                .created(1)
                .claim(second, range(second))
                .created(2)
                .settle();
            assert_eq!(run.outcomes(), ["easy -> v12", "picky -> v14"]);
        }
    }
}

#[test]
fn greedy_is_the_default_and_takes_claims_in_their_turn() {
    let run = world()
        .resource("v14", of_version("14.1").with(json!({"capacity": {"storage": "4Gi"}})))
        .resource("v12", of_version("12.1"))
        .claim("easy", wants(">= 12"))
        .claim("picky", wants("14"))
        .settle();
    assert_eq!(run.outcomes(), ["easy -> v14", "picky: NoMatch"]);
}

#[test]
fn a_chain_of_choices_is_unravelled() {
    let mut scene = optimal();
    for at in 10..20 {
        scene = scene.resource(&format!("v{at}"), of_version(&format!("{at}.1")));
    }
    for at in 10..20 {
        scene = scene.claim(&format!("c{at}"), wants(&format!(">= {at}"))).created(i64::from(30 - at));
    }
    let run = scene.settle();
    let expected: Vec<String> = (10..20).map(|at| format!("c{at} -> v{at}")).collect();
    assert_eq!(run.outcomes(), expected);
}

#[test]
fn a_higher_priority_is_served_before_any_number_of_lower_ones() {
    let run = optimal()
        .resource("r", db(10))
        .resource("s", db(3))
        .claim("important", requests(9).with(json!({"priority": 10})))
        .created(9)
        .claim("many-1", requests(5))
        .created(1)
        .claim("many-2", requests(2))
        .created(2)
        .settle();
    assert_eq!(run.outcomes(), ["important -> r", "many-1: NoMatch", "many-2 -> s"]);
}

#[test]
fn among_placements_that_serve_as_many_the_least_is_left_over() {
    let run = optimal()
        .resource("big", db(10))
        .resource("small", db(5))
        .claim("a", requests(5))
        .claim("b", requests(9))
        .settle();
    assert_eq!(run.outcomes(), ["a -> small", "b -> big"]);
}

#[test]
fn a_batch_keeps_within_its_quota_together() {
    let mut scene = optimal().quota("q", json!([{"claims": 2}]));
    for at in 0..4 {
        scene = scene.resource(&format!("r-{at}"), db(5)).claim(&format!("c-{at}"), requests(1));
    }
    let run = scene.settle();
    assert_eq!(run.outcomes(), ["c-0 -> r-0", "c-1 -> r-1", "c-2: QuotaExceeded", "c-3: QuotaExceeded"]);
}

#[test]
fn what_finds_no_place_in_a_batch_may_still_share_or_be_made() {
    let run = optimal()
        .class("fast", makes("Delete"))
        .resource("r", db(50).with(json!({"sharing": {"maxClaims": 2}})))
        .claim("a", requests(1))
        .claim("b", requests(1))
        .claim("c", requests(1))
        .claim("d", requests(1).with(json!({"class": "fast"})))
        .settle();
    assert_eq!(run.outcomes(), ["a -> r", "b -> r", "c: NoMatch", "d: Provisioning"]);
}

#[test]
fn a_reserved_resource_stays_its_claims_in_a_batch() {
    let run = optimal()
        .resource("kept", db(5).with(crate::support::kept_for("z")))
        .resource("free", db(5))
        .claim("a", requests(1))
        .claim("z", requests(1))
        .settle();
    assert_eq!(run.outcomes(), ["a -> free", "z -> kept"]);
}

#[test]
fn a_batch_that_is_too_large_is_placed_one_by_one_and_says_so() {
    let mut scene = optimal();
    for at in 0..280 {
        scene = scene.resource(&format!("r-{at:03}"), db(1000)).claim(&format!("c-{at:03}"), requests(at));
    }
    let run = scene.settle();
    assert!(run.outcomes().iter().all(|o| o.contains("->")));
    assert_eq!(run.harness.engine.stats().batches_given_up, 1);
    let reported: Vec<_> = run.harness.notes().iter().filter(|n| n.reason == "BatchTooLarge").collect();
    assert_eq!(reported.len(), 1);
    assert!(
        reported[0].message.starts_with("placed one by one: 280 claims have over"),
        "{}",
        reported[0].message
    );
}
