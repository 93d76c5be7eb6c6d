//! A claim that is edited after it was bound, and a resource that is edited under its claims: both stay bound, and the
//! claim reports once what it does not get.

use crate::support::{CLAIM, RESOURCE, Run, With, db, kept_for, makes, requests, world};
use conductor::model::Kind;
use serde_json::{Value, json};

const LACKS: &str = "bound to r; what the claim requests now it does not get: ";

fn one_bound() -> Run {
    let plain = |spec: Value| spec.with(json!({"class": "plain"}));
    let run = world().resource("r", plain(db(5))).claim("c", plain(requests(1))).settle();
    assert_eq!(run.message("c"), "bound to r");
    run
}

fn storage(amount: &str) -> Value {
    json!({"resources": {"requests": {"storage": amount}}})
}

#[test]
fn an_edit_that_is_not_met_is_reported_and_unbinds_no_claim() {
    let cases = [
        (json!({"version": ">= 16"}), "its version 14.2 is not in >= 16"),
        (json!({"engine": "mysql"}), "its engine is postgresql, not mysql"),
        (storage("6Gi"), "it has storage 5Gi, and 6Gi is requested"),
        (json!({"requests": ["postgis"]}), "it lacks postgis"),
        (json!({"class": "gold"}), "it is of class plain, not of class gold"),
        (
            json!({"version": "15", "resources": {"requests": {"storage": "9Gi"}}}),
            "its version 14.2 is not in 15; it has storage 5Gi, and 9Gi is requested",
        ),
    ];
    for (edit, lack) in cases {
        let mut run = one_bound();
        run.edit_spec(CLAIM, "c", edit);
        assert_eq!((run.outcome("c").as_str(), run.message("c")), ("-> r", format!("{LACKS}{lack}")));
        assert_eq!(run.notes("c"), ["Bound", "NotAsAsked"], "{lack}");
        assert_eq!(run.resource("r"), "Bound by c");
        let run = run.restart();
        assert_eq!((run.harness.writes(), run.notes("c").len()), (0, 0), "{lack}: reported once");
    }
}

#[test]
fn an_unreadable_edit_is_reported_with_its_place() {
    let mut run = one_bound();
    run.edit_spec(CLAIM, "c", json!({"version": ">= what"}));
    assert_eq!(run.outcome("c"), "-> r");
    assert!(run.message("c").starts_with(&format!("{LACKS}spec.version")), "{}", run.message("c"));
}

#[test]
fn an_edit_that_is_taken_back_is_forgotten() {
    let mut run = one_bound();
    run.edit_spec(CLAIM, "c", storage("6Gi"));
    run.edit_spec(CLAIM, "c", storage("5Gi"));
    assert_eq!(run.message("c"), "bound to r");
    assert_eq!(run.notes("c"), ["Bound", "NotAsAsked", "Bound"]);
}

#[test]
fn a_resource_that_is_edited_under_its_claim_is_reported_too() {
    let mut run = one_bound();
    run.edit_spec(CLAIM, "c", json!({"version": "14"}));
    assert_eq!(run.message("c"), "bound to r");
    run.edit_spec(RESOURCE, "r", json!({"version": "15.1"}));
    assert_eq!(run.message("c"), format!("{LACKS}its version 15.1 is not in 14"));
    run.edit_spec(RESOURCE, "r", json!({"version": "14.9"}));
    assert_eq!(run.message("c"), "bound to r");
}

#[test]
fn of_a_shared_resource_a_claim_holds_what_it_was_given() {
    let shared = db(10).with(json!({"sharing": {"maxClaims": 3}}));
    let mut run = world().resource("r", shared).claim("a", requests(2)).claim("b", requests(2)).settle();
    assert_eq!(run.outcomes(), ["a -> r", "b -> r"]);
    run.edit_spec(CLAIM, "a", storage("3Gi"));
    assert_eq!(run.message("a"), format!("{LACKS}it holds storage 2Gi, and 3Gi is requested"));
    run.edit_spec(CLAIM, "a", storage("1Gi"));
    assert_eq!((run.message("a").as_str(), run.message("b").as_str()), ("bound to r", "bound to r"));
    run.edit_spec(RESOURCE, "r", json!({"capacity": {"storage": "1Gi"}}));
    assert_eq!(run.message("b"), format!("{LACKS}it has storage 1Gi, and 2Gi is requested"));
}

#[test]
fn without_requests_a_shared_holder_has_nothing_a_sole_one_all() {
    let shared = db(10).with(json!({"sharing": {"maxClaims": 3}}));
    let scene =
        world().resource("r", shared).claim("a", requests(8)).claim("b", json!({"engine": "postgresql"}));
    let mut run = scene.settle();
    run.edit_spec(CLAIM, "b", storage("3Gi"));
    assert_eq!(run.message("b"), format!("{LACKS}it holds storage 0, and 3Gi is requested"));
    let shared = db(10).with(json!({"sharing": {"maxClaims": 3}}));
    let alone = requests(2).with(json!({"exclusive": true}));
    let mut run = world().resource("r", shared).claim("a", alone).settle();
    run.edit_spec(CLAIM, "a", storage("9Gi"));
    assert_eq!(run.message("a"), "bound to r");
}

#[test]
fn what_is_kept_for_a_claim_is_given_whatever_its_class() {
    let kept = db(5).with(json!({"class": "gold"})).with(kept_for("c"));
    let run = world().resource("r", kept).claim("c", requests(1).with(json!({"class": "plain"}))).settle();
    assert_eq!((run.outcome("c").as_str(), run.message("c").as_str()), ("-> r", "bound to r"));
}

#[test]
fn what_the_profile_does_not_ask_is_not_missed() {
    let scene = world().profile(json!({"plugins": {"disabled": ["Version"]}})).resource("r", db(5));
    let run = scene.claim("c", requests(1).with(json!({"version": "16"}))).settle();
    assert_eq!((run.outcome("c").as_str(), run.message("c").as_str()), ("-> r", "bound to r"));
    let mut run = run;
    run.edit(Kind::Profile, "default", |profile| profile.body["spec"] = json!({}));
    assert_eq!(run.message("c"), format!("{LACKS}its version 14.2 is not in 16"));
}

#[test]
fn fields_that_a_resource_leaves_out_contradict_no_claim() {
    let run = world()
        .resource("silent", json!({}).with(kept_for("c")))
        .claim(
            "c",
            json!({"resourceName": "silent", "version": "14", "resources": {"requests": {"storage": "1Gi"}}}),
        )
        .class("makes", makes("Delete"))
        .claim("made", requests(3).with(json!({"class": "makes", "version": "14"})))
        .settle();
    assert_eq!((run.outcome("c").as_str(), run.message("c").as_str()), ("-> silent", "bound to silent"));
    assert!(!run.message("made").contains("does not get"), "{}", run.message("made"));
}

#[test]
fn an_edited_selector_is_reported_until_it_matches_again() {
    let mut run = one_bound();
    let selects = |env: &str| json!({"selector": {"matchLabels": {"env": env}}});
    run.edit_spec(CLAIM, "c", selects("prod"));
    assert_eq!(run.message("c"), format!("{LACKS}its labels do not match the selector env in (prod)"));
    let mut run = run.restart();
    assert_eq!((run.harness.writes(), run.outcome("c")), (0, "-> r".to_owned()), "reported once, and kept");
    run.edit_spec(CLAIM, "c", json!({"priority": 3}));
    assert!(run.message("c").contains("its labels do not match"), "{}", run.message("c"));
    run.edit_spec(CLAIM, "c", json!({"selector": null, "priority": null}));
    assert_eq!(run.message("c"), "bound to r");
}

#[test]
fn labels_that_change_under_a_claim_are_not_an_edit_of_it() {
    let requested = requests(1).with(json!({"resourceName": "r", "class": "gold"}));
    let requested = requested.with(json!({"selector": {"matchLabels": {"env": "prod"}}}));
    let run = world().resource("r", db(5)).claim("c", requested).settle();
    assert_eq!(run.message("c"), "bound to r", "it named the resource, so neither counts");
}

#[test]
fn a_class_named_after_a_classless_resource_was_bound_is_reported() {
    let mut run = world().resource("r", db(5)).claim("c", requests(1)).settle();
    run.edit_spec(CLAIM, "c", json!({"class": "gold"}));
    assert_eq!(run.message("c"), format!("{LACKS}it has no class, not class gold"));
    run.edit_spec(CLAIM, "c", json!({"class": null}));
    assert_eq!(run.message("c"), "bound to r");
}

#[test]
fn parameters_that_are_edited_after_they_were_used_are_reported() {
    let mut class = makes("Delete");
    class["template"]["spec"] = json!({"size": "${parameters.size}"});
    let requested = requests(1).with(json!({"class": "fast", "parameters": {"size": "small"}}));
    let mut run = world().class("fast", class).claim("c", requested).uid("a").settle();
    run.becomes_available("rdb-a");
    assert_eq!(run.message("c"), "bound to rdb-a");
    run.edit_spec(CLAIM, "c", json!({"parameters": {"size": "large"}}));
    let reported = "spec.parameters.size was edited after rdb-a was made, which keeps what it was made from";
    assert!(run.message("c").ends_with(reported), "{}", run.message("c"));
    assert_eq!(run.notes("c").last(), Some(&"NotAsAsked"));
    run.edit_spec(CLAIM, "c", json!({"parameters": {"size": "small"}}));
    assert_eq!(run.message("c"), "bound to rdb-a");
}
