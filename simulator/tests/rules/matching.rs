//! Which resource a claim gets: hard filters, reservations, best fit, class (rules 1 to 4).

use crate::support::{RESOURCE, With, check, claim, db, held_by, kept_for, makes, requests, resource, world};
use serde_json::json;

#[test]
fn a_claim_binds_to_the_resource_that_fits() {
    let run = world().resource("r", db(10)).claim("c", requests(10)).settle();
    assert_eq!(run.outcome("c"), "-> r");
    assert_eq!(run.resource("r"), "Bound by c");
}

#[test]
fn prefers_the_smallest_resource_that_fits() {
    check(
        world()
            .resource("big", db(10))
            .resource("small", db(2))
            .resource("tiny", db(1))
            .claim("c", requests(2)),
        &["c -> small"],
    );
}

#[test]
fn equal_fits_go_to_the_lowest_version_then_to_the_first_name() {
    let newer = || db(5).with(json!({"version": "15.1"}));
    check(
        world().resource("a", newer()).resource("b", db(5)).resource("c", db(5)).claim("c", requests(1)),
        &["c -> b"],
    );
    check(world().resource("b", db(5)).resource("a", db(5)).claim("c", requests(1)), &["c -> a"]);
}

#[test]
fn ten_is_newer_than_nine_when_versions_break_a_tie() {
    let version = |text: &str| db(5).with(json!({ "version": text }));
    check(
        world().resource("ten", version("9.10")).resource("nine", version("9.9")).claim("c", requests(1)),
        &["c -> nine"],
    );
}

#[test]
fn a_claim_without_a_fit_reports_counts_by_predicate() {
    let run = world()
        .resource("small", db(1))
        .resource("old", db(10).with(json!({"version": "12.1"})))
        .resource("mysql", json!({"engine": "mysql"}))
        .resource("fast", db(10).with(json!({"class": "fast"})))
        .claim("c", requests(5).with(json!({"version": "14"})))
        .settle();
    assert_eq!(run.outcome("c"), "NoMatch");
    assert_eq!(run.message("c"), "0/4 resources fit: 1 class, 1 engine, 1 version, 1 capacity");
}

/// Rule 1, row by row: what a reservation does not overrule.
#[test]
fn a_reserved_resource_must_still_be_free_large_enough_of_the_engine_and_not_deleting() {
    let kept = |spec: serde_json::Value| world().resource("kept", spec.with(kept_for("c")));
    check(kept(db(10)).claim("c", requests(5)), &["c -> kept"]);
    check(kept(db(4)).claim("c", requests(5)), &["c: NoMatch"]);
    check(kept(db(10).with(json!({"engine": "mysql"}))).claim("c", requests(5)), &["c: NoMatch"]);
    check(kept(db(10)).claim("c", requests(5).with(json!({"version": "15"}))), &["c: NoMatch"]);
    check(
        world().resource("kept", db(10).with(kept_for("c"))).deleting().claim("c", requests(5)),
        &["c: NoMatch"],
    );
    check(world().resource("kept", db(10).with(kept_for("other"))).claim("c", requests(5)), &["c: NoMatch"]);
}

#[test]
fn a_reserved_resource_wins_over_a_tighter_fit() {
    check(
        world()
            .resource("tight", db(5))
            .resource("kept", db(100).with(kept_for("c")))
            .claim("c", requests(5)),
        &["c -> kept"],
    );
}

#[test]
fn a_reserved_resource_wins_over_selector_class_and_phase() {
    let kept = db(10).with(json!({"class": "fast", "template": {}})).with(kept_for("c"));
    check(
        world()
            .resource("plain", db(10))
            .labelled(json!({"tier": "gold"}))
            .resource("kept", kept)
            .status(json!({"phase": "Creating"}))
            .claim("c", requests(5).with(json!({"selector": {"matchLabels": {"tier": "gold"}}}))),
        &["c -> kept"],
    );
}

#[test]
fn a_resource_kept_for_more_claims_than_it_can_have_goes_to_those_who_come_first() {
    let kept = |names: &[&str], slots: u32| {
        let refs: Vec<_> = names.iter().map(|name| json!({"namespace": "app", "name": name})).collect();
        db(10).with(json!({"claimRefs": refs, "sharing": {"maxClaims": slots}}))
    };
    let mut run = world()
        .resource("one", kept(&["a", "b"], 1))
        .claim("b", requests(5))
        .created(1)
        .claim("a", requests(5))
        .created(2)
        .settle();
    assert_eq!(run.outcomes(), ["a: NoMatch", "b -> one"]);
    assert_eq!(run.resource("one"), "Bound by a (kept), b");
    run.put(claim("stranger", requests(1)));
    assert_eq!(run.outcome("stranger"), "NoMatch");
    let three = world().resource("two", kept(&["a", "b", "c"], 2));
    check(
        three
            .claim("a", requests(1))
            .created(1)
            .claim("b", requests(1))
            .created(2)
            .claim("c", requests(1))
            .created(3),
        &["a -> two", "b -> two", "c: NoMatch"],
    );
    // With a slot for each, what is kept for one who has not come stays kept.
    let exclusive = requests(1).with(json!({"exclusive": true}));
    check(world().resource("two", kept(&["a", "b"], 2)).claim("a", exclusive), &["a: NoMatch"]);
}

#[test]
fn of_two_reserved_resources_the_smaller_is_taken_and_the_other_stays_reserved() {
    let run = world()
        .resource("a", db(20).with(kept_for("c")))
        .resource("b", db(10).with(kept_for("c")))
        .claim("c", requests(5))
        .settle();
    assert_eq!(run.outcome("c"), "-> b");
    assert_eq!(run.resource("a"), "Available by c (kept)");
}

#[test]
fn a_resource_that_names_this_life_of_the_claim_is_its_own() {
    check(
        world()
            .resource("small", db(5))
            .resource("mine", db(100).with(held_by("c", "life-1")))
            .claim("c", requests(5))
            .uid("life-1"),
        &["c -> mine"],
    );
}

#[test]
fn a_reservation_for_a_name_in_another_namespace_is_not_for_this_claim() {
    check(
        world().resource("kept", db(10).with(kept_for("other/c"))).claim("c", requests(5)),
        &["c: NoMatch"],
    );
}

/// Rule 3, row by row.
#[test]
fn only_available_resources_are_matched() {
    for (phase, outcome) in [
        ("Available", "c -> r"),
        ("Creating", "c: NoMatch"),
        ("Pending", "c: NoMatch"),
        ("Released", "c: NoMatch"),
        ("Failed", "c: NoMatch"),
    ] {
        let made = db(10).with(json!({"template": {}})).with(held_by("gone", "uid-gone"));
        let spec = if phase == "Released" { made } else { db(10).with(json!({"template": {}})) };
        let scene = world().resource("r", spec).status(json!({ "phase": phase })).claim("c", requests(5));
        assert_eq!(scene.settle().outcomes(), [outcome], "phase {phase}");
    }
}

#[test]
fn a_resource_that_is_being_deleted_is_not_matched() {
    check(world().resource("r", db(10)).deleting().claim("c", requests(5)), &["c: NoMatch"]);
}

#[test]
fn all_four_selector_operators_choose_among_labels() {
    let select = |expression: serde_json::Value| {
        requests(1).with(json!({"selector": {"matchExpressions": [expression]}}))
    };
    for (expression, expected) in [
        (json!({"key": "tier", "operator": "In", "values": ["gold"]}), "c -> b"),
        (json!({"key": "tier", "operator": "NotIn", "values": ["gold", "silver"]}), "c -> c"),
        (json!({"key": "tier", "operator": "Exists"}), "c -> a"),
        (json!({"key": "tier", "operator": "DoesNotExist"}), "c -> c"),
    ] {
        let scene = world()
            .resource("a", db(5))
            .labelled(json!({"tier": "silver"}))
            .resource("b", db(5))
            .labelled(json!({"tier": "gold"}))
            .resource("c", db(5))
            .claim("c", select(expression.clone()));
        assert_eq!(scene.settle().outcomes(), [expected], "{expression}");
    }
}

#[test]
fn a_selector_that_nothing_matches_leaves_the_claim_pending() {
    let run = world()
        .resource("r", db(5))
        .claim("c", requests(1).with(json!({"selector": {"matchLabels": {"tier": "gold"}}})))
        .settle();
    assert_eq!(run.message("c"), "0/1 resources fit: 1 selector");
}

#[test]
fn a_claim_that_names_a_class_gets_resources_of_that_class_only() {
    let of = |class: &str| db(5).with(json!({ "class": class }));
    check(
        world()
            .resource("plain", db(5))
            .resource("fast", of("fast"))
            .resource("slow", of("slow"))
            .claim("c", requests(1).with(json!({"class": "fast"})))
            .claim("d", requests(1).with(json!({"class": "gone"}))),
        &["c -> fast", "d: NoMatch"],
    );
}

#[test]
fn an_empty_class_is_not_an_absent_one() {
    let scene = |spec: serde_json::Value| {
        world()
            .default_class("standard", makes("Retain"))
            .resource("of-default", db(5).with(json!({"class": "standard"})))
            .claim("c", spec)
    };
    check(scene(requests(1)), &["c -> of-default"]);
    check(scene(requests(1).with(json!({"class": ""}))), &["c: NoMatch"]);
}

#[test]
fn the_default_class_applies_only_if_no_classless_resource_fits() {
    let classed = db(1).with(json!({"class": "standard"}));
    let scene = || world().default_class("standard", makes("Retain")).resource("classed", classed.clone());
    // The classless one is a far worse fit, and still comes first.
    check(scene().resource("plain", db(50)).claim("c", requests(1)), &["c -> plain"]);
    check(scene().resource("plain", db(50)).claim("c", requests(60)), &["c: Provisioning"]);
    check(scene().resource("plain", db(0)).claim("c", requests(1)), &["c -> classed"]);
}

#[test]
fn of_several_default_classes_the_newest_counts_then_the_first_name() {
    let scene = |ages: [i64; 3]| {
        let mut scene = world();
        for (name, age) in ["a", "b", "c"].iter().zip(ages) {
            let spec = db(5).with(json!({ "class": name }));
            scene = scene.default_class(name, makes("Retain")).created(age).resource(name, spec);
        }
        scene.claim("claim", requests(1))
    };
    check(scene([1, 3, 2]), &["claim -> b"]);
    check(scene([3, 1, 3]), &["claim -> a"]);
}

#[test]
fn defaulting_alters_neither_a_bound_claim_nor_one_with_a_class() {
    let mut run = world()
        .resource("plain", db(5))
        .claim("bound", requests(1))
        .claim("classed", requests(1).with(json!({"class": "other"})))
        .settle();
    let before = run.body(crate::support::CLAIM, "bound").clone();
    run.put(crate::support::class("standard", makes("Retain")));
    run.edit(crate::support::CLASS, "standard", |class| {
        let default = [("conductor.io/is-default-class".to_owned(), "true".to_owned())];
        class.metadata.annotations = Some(default.into());
    });
    assert_eq!(run.body(crate::support::CLAIM, "bound"), &before);
    assert_eq!(run.outcome("classed"), "NoMatch");
}

#[test]
fn the_choice_does_not_depend_on_the_order_in_which_objects_came() {
    let mut orders = vec![vec![0, 1, 2], vec![2, 1, 0], vec![1, 2, 0]];
    let all: Vec<Vec<String>> = orders
        .drain(..)
        .map(|order| {
            let mut run = world()
                .claim("c", requests(1))
                .claim("d", requests(1).with(json!({"exclusive": true})))
                .settle();
            // Cordoned first, so that no claim binds before all are there.
            for at in &order {
                let spec = db(5).with(json!({"unschedulable": true}));
                run.put(resource(["x", "y", "z"][*at], spec));
            }
            let mut run = run.restart();
            for at in 0..3 {
                run.edit_spec(RESOURCE, ["x", "y", "z"][at], json!({"unschedulable": false}));
            }
            run.outcomes()
        })
        .collect();
    assert_eq!(all[0], ["c -> x", "d -> y"]);
    assert!(all.iter().all(|outcomes| *outcomes == all[0]), "{all:?}");
}

#[test]
fn a_resource_without_a_version_fits_no_claim_with_a_range() {
    let unversioned = json!({"engine": "postgresql", "capacity": {"storage": "5Gi"}});
    check(
        world()
            .resource("r", unversioned)
            .claim("any", requests(1).with(json!({"version": "*"})))
            .claim("none", requests(1)),
        &["any: NoMatch", "none -> r"],
    );
}

#[test]
fn a_value_that_should_be_a_map_is_reported_and_ignored() {
    for spec in [json!([1]), json!("x"), json!({"resources": "5Gi"})] {
        let run = world().resource("r", db(5)).claim("c", spec.clone()).settle();
        assert_eq!(run.outcome("c"), "InvalidSpec", "{spec}");
        assert!(run.message("c").contains("is not a map"), "{spec}: {}", run.message("c"));
    }
    let shared = db(5).with(json!({"sharing": "yes please"}));
    assert!(world().resource("r", shared).settle().reported("r").contains("spec.sharing"));
}

#[test]
fn an_unreadable_range_affects_no_other_claim() {
    let run = world()
        .resource("r", db(5))
        .claim("a", requests(1).with(json!({"version": ">= fourteen"})))
        .claim("b", requests(1))
        .settle();
    assert_eq!(run.outcomes(), ["a: InvalidSpec", "b -> r"]);
    assert!(run.message("a").contains("spec.version"), "{}", run.message("a"));
}

#[test]
fn a_cordoned_resource_keeps_its_claims_and_takes_no_new_one() {
    let mut run = world()
        .resource("r", db(10).with(json!({"sharing": {"maxClaims": 2}})))
        .claim("first", requests(1))
        .settle();
    run.edit_spec(RESOURCE, "r", json!({"unschedulable": true}));
    run.put(claim("second", requests(1)));
    assert_eq!(run.outcomes(), ["first -> r", "second: NoMatch"]);
    assert_eq!(run.message("second"), "0/1 resources fit: 1 cordoned");
    run.edit_spec(RESOURCE, "r", json!({"unschedulable": false}));
    assert_eq!(run.outcome("second"), "-> r");
}

#[test]
fn a_list_of_classes_is_tried_in_order() {
    let of = |class: &str, gib: u32| db(gib).with(json!({ "class": class }));
    let both = || requests(1).with(json!({"classes": ["fast", "slow"]}));
    check(
        world().resource("fast", of("fast", 90)).resource("slow", of("slow", 1)).claim("c", both()),
        &["c -> fast"],
    );
    check(world().resource("slow", of("slow", 1)).claim("c", both()), &["c -> slow"]);
    check(
        world().class("fast", json!({})).class("slow", makes("Retain")).claim("c", both()),
        &["c: Provisioning"],
    );
}
