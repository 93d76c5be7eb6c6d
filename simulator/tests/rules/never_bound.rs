//! A claim that was never bound: no name, a name that is missing, wrong, taken or its own (rules 5 to 9).

use crate::support::{
    CLAIM, CLASS, RESOURCE, With, check, claim, db, held_by, kept_for, makes, requests, resource, world,
};
use serde_json::json;

fn named(gib: u32, resource: &str) -> serde_json::Value {
    requests(gib).with(json!({ "resourceName": resource }))
}

#[test]
fn without_a_match_a_class_provisions_and_without_a_class_the_claim_waits() {
    let run = world()
        .class("fast", makes("Delete"))
        .claim("classed", requests(1).with(json!({"class": "fast"})))
        .claim("plain", requests(1))
        .settle();
    assert_eq!(run.outcomes(), ["classed: Provisioning", "plain: NoMatch"]);
    assert_eq!(run.message("plain"), "0/0 resources fit");
}

#[test]
fn without_a_match_a_claim_that_names_no_class_is_of_the_default_class() {
    let run = world().default_class("standard", makes("Delete")).claim("c", requests(1)).settle();
    assert_eq!(run.outcome("c"), "Provisioning");
    assert_eq!(run.body(RESOURCE, &run.resources()[0])["spec"]["class"], "standard");
}

#[test]
fn a_missing_or_unsuitable_class_is_named_in_the_reason() {
    let run = world()
        .class("small", makes("Delete").with(json!({"capacity": {"storage": {"max": "5Gi"}}})))
        .class("groups", json!({}))
        .class("mysql", makes("Delete").with(json!({"engine": "mysql"})))
        .claim("a", requests(1).with(json!({"class": "missing"})))
        .claim("b", requests(9).with(json!({"class": "small"})))
        .claim("c", requests(1).with(json!({"class": "groups"})))
        .claim("d", requests(1).with(json!({"class": "mysql"})))
        .claim("e", requests(9).with(json!({"classes": ["groups", "small", "missing"]})))
        .settle();
    assert_eq!(
        run.messages(),
        [
            "a: 0/0 resources fit; 0/1 classes fit: 1 class (class missing does not exist)",
            "b: 0/0 resources fit; 0/1 classes fit: 1 capacity (class small makes storage up to 5Gi, and 9Gi is requested)",
            "c: 0/0 resources fit; 0/1 classes fit: 1 class (class groups has no template to make one from)",
            "d: 0/0 resources fit; 0/1 classes fit: 1 engine (class mysql makes mysql, and postgresql is requested)",
            "e: 0/0 resources fit; 0/3 classes fit: 2 class, 1 capacity (class groups has no template to make one from; \
             class small makes storage up to 5Gi, and 9Gi is requested; class missing does not exist)",
        ]
    );
}

#[test]
fn a_named_resource_that_is_missing_is_waited_for_and_wakes_the_claim_when_it_appears() {
    let mut run = world().resource("other", db(5)).claim("c", named(1, "mine")).settle();
    assert_eq!(run.outcome("c"), "WaitingForResource");
    run.put(resource("mine", db(5)));
    assert_eq!(run.outcome("c"), "-> mine");
    assert_eq!(run.bound_after_flush(), 0);
}

#[test]
fn a_named_resource_is_taken_even_where_a_tighter_one_fits() {
    check(
        world().resource("big", db(50)).resource("tight", db(1)).claim("c", named(1, "big")),
        &["c -> big"],
    );
}

/// Rule 7, row by row.
#[test]
fn a_named_resource_is_checked_for_size_class_version_engine_and_deletion() {
    let against = |spec: serde_json::Value, claim: serde_json::Value| {
        let run = world().resource("r", spec).claim("c", claim).settle();
        (run.outcome("c"), run.message("c"))
    };
    let mismatch = |message: &str| ("ResourceMismatch".to_owned(), format!("resource r: {message}"));
    assert_eq!(against(db(1), named(5, "r")), mismatch("it has storage 1Gi left, and 5Gi is requested"));
    assert_eq!(
        against(db(9).with(json!({"class": "fast"})), named(5, "r").with(json!({"class": "slow"}))),
        mismatch("it is of class fast, not of class slow")
    );
    assert_eq!(
        against(db(9).with(json!({"engine": "mysql"})), named(5, "r")),
        mismatch("its engine is mysql, not postgresql")
    );
    let (outcome, message) = against(db(9), named(5, "r").with(json!({"version": "15"})));
    assert_eq!(outcome, "ResourceMismatch");
    assert!(message.contains("14.2"), "{message}");
    let deleting = world().resource("r", db(9)).deleting().claim("c", named(5, "r")).settle();
    assert_eq!(deleting.outcome("c"), "ResourceMismatch");
}

#[test]
fn a_mismatch_is_reported_once_as_an_event() {
    let mut run = world().resource("r", db(1)).claim("c", named(5, "r")).settle();
    run.edit_spec(RESOURCE, "r", json!({"capacity": {"storage": "2Gi"}}));
    assert_eq!(run.message("c"), "resource r: it has storage 2Gi left, and 5Gi is requested");
    assert_eq!(run.notes("c"), ["ResourceMismatch"]);
}

#[test]
fn a_mismatch_that_is_repaired_on_either_side_binds_at_once() {
    let mut run = world()
        .resource("r", db(1))
        .resource("s", db(1))
        .claim("c", named(5, "r"))
        .claim("d", named(5, "s"))
        .settle();
    run.edit_spec(RESOURCE, "r", json!({"capacity": {"storage": "5Gi"}}));
    run.edit_spec(CLAIM, "d", requests(1));
    assert_eq!(run.outcomes(), ["c -> r", "d -> s"]);
    assert_eq!(run.bound_after_flush(), 0);
}

#[test]
fn a_named_resource_ignores_selector_and_phase() {
    let spec = named(1, "r").with(json!({"selector": {"matchLabels": {"tier": "gold"}}}));
    check(
        world()
            .resource("r", db(5).with(json!({"template": {}})))
            .status(json!({"phase": "Creating"}))
            .claim("c", spec),
        &["c -> r"],
    );
}

#[test]
fn a_named_resource_without_a_class_serves_a_claim_of_any_class() {
    check(world().resource("r", db(5)).claim("c", named(1, "r").with(json!({"class": "fast"}))), &["c -> r"]);
}

#[test]
fn a_bind_that_both_sides_name_is_finished_without_a_second_check() {
    let unfit = db(1).with(json!({"version": "9.6", "class": "fast"}));
    let claim = named(5, "r").with(json!({"version": "14"}));
    check(world().resource("r", unfit.clone().with(kept_for("c"))).claim("c", claim.clone()), &["c -> r"]);
    check(
        world().resource("r", unfit.with(held_by("c", "life-1"))).claim("c", claim).uid("life-1"),
        &["c -> r"],
    );
}

#[test]
fn a_named_resource_that_is_being_deleted_is_not_taken_even_where_it_names_the_claim() {
    check(
        world().resource("r", db(5).with(kept_for("c"))).deleting().claim("c", named(1, "r")),
        &["c: ResourceMismatch"],
    );
}

#[test]
fn a_named_resource_that_another_holds_or_is_kept_for_is_refused_and_had_once_it_is_free() {
    let mut run = world()
        .resource("r", db(5).with(kept_for("other")))
        .resource("s", db(5))
        .claim("a", requests(1))
        .claim("c", named(1, "r"))
        .claim("d", named(1, "s"))
        .settle();
    assert_eq!(run.outcomes(), ["a -> s", "c: ResourceTaken", "d: ResourceTaken"]);
    assert!(run.message("c").contains("app/other"), "{}", run.message("c"));
    run.edit_spec(RESOURCE, "r", json!({"claimRefs": []}));
    assert_eq!(run.outcome("c"), "-> r");
    assert_eq!(run.bound_after_flush(), 0);
}

#[test]
fn a_named_resource_that_names_another_life_of_the_claim_is_refused() {
    let run = world()
        .resource("r", db(5).with(held_by("c", "life-1")))
        .claim("c", named(1, "r"))
        .uid("life-2")
        .settle();
    assert_eq!(run.outcome("c"), "ResourceTaken");
    assert_eq!(run.resource("r"), "Released by c");
}

#[test]
fn a_users_link_is_kept_and_distinguished_from_ours() {
    let run = world()
        .resource("kept", db(5).with(kept_for("c")))
        .resource("free", db(5))
        .claim("c", requests(1))
        .claim("d", requests(1))
        .settle();
    assert_eq!(run.body(RESOURCE, "kept")["spec"]["claimRefs"][0]["reserved"], true);
    assert_eq!(run.body(RESOURCE, "free")["spec"]["claimRefs"][0].get("reserved"), None);
}

#[test]
fn the_commit_carries_the_claims_uid_and_what_it_takes() {
    let run = world().resource("r", db(5)).claim("c", requests(2)).settle();
    let claim_ref = &run.body(RESOURCE, "r")["spec"]["claimRefs"][0];
    assert_eq!(claim_ref["uid"], run.uid("c"));
    assert_eq!(claim_ref["requests"]["storage"], "2Gi");
}

#[test]
fn a_hundred_claims_race_for_one_reserved_resource_and_only_its_own_gets_it() {
    let mut scene = world().resource("r", db(5).with(kept_for("c-050")));
    for at in 0..101 {
        scene = scene.claim(&format!("c-{at:03}"), requests(1));
    }
    let mut run = scene.settle();
    let bound: Vec<String> = run.outcomes().into_iter().filter(|o| o.contains("->")).collect();
    assert_eq!(bound, ["c-050 -> r"]);
    run.put(claim("late", named(1, "r")));
    assert_eq!(run.outcome("late"), "ResourceTaken");
}

#[test]
fn a_claim_that_names_a_resource_of_a_class_is_tried_once_that_class_is_the_default() {
    let of_fast = db(5).with(json!({"class": "fast"}));
    let mut run =
        world().class("fast", makes("Delete")).resource("r", of_fast).claim("c", named(1, "r")).settle();
    assert_eq!(run.outcome("c"), "ResourceMismatch");
    run.edit(CLASS, "fast", |class| {
        let default = ("conductor.io/is-default-class".to_owned(), "true".to_owned());
        class.metadata.annotations = Some([default].into());
    });
    assert_eq!((run.outcome("c").as_str(), run.bound_after_flush()), ("-> r", 0));
}

/// As a second controller does that manages another system namespace: each would correct the other without end.
#[test]
fn a_refusal_that_another_client_overwrites_is_written_with_pauses() {
    let mut run = world().resource("r", db(1)).claim("c", requests(2)).settle();
    let (ours, before) = (run.message("c"), run.harness.writes());
    for n in 0..50 {
        run.edit(CLAIM, "c", |object| {
            object.body["status"]["conditions"][0]["message"] = json!(format!("0/0 resources fit {n}"));
        });
    }
    assert!(run.harness.writes() - before <= 5, "{} writes", run.harness.writes() - before);
    assert_eq!(run.notes("c").iter().filter(|note| **note == "StatusContested").count(), 1);
    run.harness.advance(3_600_000);
    assert_eq!(run.message("c"), ours, "our message wins when the other is quiet");
    // What is decided anew is written at once.
    run.put(resource("s", db(2)));
    assert_eq!(run.outcome("c"), "-> s");
}
