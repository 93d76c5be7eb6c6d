//! What a scheduling profile changes: the order of means, the predicates, the scores.

use crate::support::{Scene, With, check, db, kept_for, makes, profile, requests, world};
use serde_json::{Value, json};

/// A vacant, a shared and a makeable resource of one class; the shared one already has a claim.
fn three_means() -> Scene {
    world()
        .class("fast", makes("Delete"))
        .resource(
            "shared",
            db(50).with(json!({"class": "fast", "sharing": {"maxClaims": 5}})).with(kept_for("first")),
        )
        .resource("vacant", db(50).with(json!({"class": "fast"})))
        .claim("c", requests(1).with(json!({"class": "fast"})))
}

#[test]
fn the_order_of_existing_share_and_provision_is_the_profiles() {
    for (order, expected) in [
        (json!(["existing", "share", "provision"]), "c -> vacant"),
        (json!(["share", "existing", "provision"]), "c -> shared"),
        (json!(["provision", "existing", "share"]), "c: Provisioning"),
        (json!(["provision"]), "c: Provisioning"),
        (json!(["share"]), "c -> shared"),
    ] {
        let run = three_means().profile(json!({ "order": order })).settle();
        assert_eq!(run.outcomes(), [expected], "{order}");
    }
}

#[test]
fn a_means_that_the_profile_leaves_out_is_never_used() {
    check(
        world()
            .class("fast", makes("Delete"))
            .profile(json!({"order": ["existing"]}))
            .claim("c", requests(1).with(json!({"class": "fast"}))),
        &["c: NoMatch"],
    );
}

/// Each row: a predicate, a resource that fails it alone, a claim.
#[test]
fn a_disabled_plugin_is_not_consulted() {
    let rows: Vec<(&str, Value, Value)> = vec![
        ("Class", db(5).with(json!({"class": "fast"})), requests(1)),
        ("Engine", db(5).with(json!({"engine": "mysql"})), requests(1)),
        ("Version", db(5), requests(1).with(json!({"version": "99"}))),
        ("HighlyAvailable", db(5), requests(1).with(json!({"highly-available": true}))),
        ("Capabilities", db(5), requests(1).with(json!({"requests": ["tls"]}))),
        ("Selector", db(5), requests(1).with(json!({"selector": {"matchLabels": {"a": "b"}}}))),
        ("Capacity", db(1), requests(5)),
    ];
    for (predicate, spec, wants) in rows {
        let scene = || world().resource("r", spec.clone()).claim("c", wants.clone());
        let run = scene().settle();
        assert_eq!(run.outcome("c"), "NoMatch", "{predicate}");
        assert!(run.message("c").starts_with("0/1 resources fit: 1 "), "{}", run.message("c"));
        let off = scene().profile(json!({"plugins": {"disabled": [predicate]}})).settle();
        assert_eq!(off.outcome("c"), "-> r", "{predicate}: {}", off.message("c"));
    }
}

#[test]
fn quota_and_limits_can_be_switched_off() {
    let scene = || {
        world()
            .quota("q", json!([{"claims": 0}]))
            .limits("l", json!({"max": {"storage": "1Gi"}}))
            .resource("r", db(5))
            .claim("c", requests(2))
    };
    check(scene(), &["c: LimitsExceeded"]);
    check(scene().profile(json!({"plugins": {"disabled": ["Limits"]}})), &["c: QuotaExceeded"]);
    check(scene().profile(json!({"plugins": {"disabled": ["Limits", "Quota"]}})), &["c -> r"]);
}

#[test]
fn what_keeps_data_safe_cannot_be_switched_off() {
    for predicate in ["Phase", "Reserved", "Sharing", "Cordoned", "Nonsense"] {
        let run = world()
            .profile(json!({"plugins": {"disabled": [predicate]}}))
            .resource("r", db(5))
            .claim("c", requests(1))
            .settle();
        assert_eq!(run.outcome("c"), "InvalidSpec", "{predicate}");
        assert!(
            run.message("c").contains("scheduling profile default cannot be read"),
            "{}",
            run.message("c")
        );
        assert_eq!(run.notes("default"), ["InvalidSpec"]);
    }
}

#[test]
fn a_claim_may_choose_its_profile_and_waits_for_one_that_does_not_exist() {
    let mut run = world()
        .resource("r", db(5).with(json!({"version": "14.2"})))
        .resource("s", db(5).with(json!({"version": "15.1"})))
        .claim("c", requests(1))
        .annotated(json!({"conductor.io/scheduling-profile": "newest"}))
        .settle();
    assert_eq!(run.outcome("c"), "InvalidSpec");
    run.put(profile("newest", json!({"preferNewest": true})));
    assert_eq!((run.outcome("c").as_str(), run.bound_after_flush()), ("-> s", 0));
}

#[test]
fn among_equal_fits_the_newest_version_is_taken_where_the_profile_prefers_it() {
    let scene = || {
        world()
            .resource("old", db(5))
            .resource("new", db(5).with(json!({"version": "15.1"})))
            .resource("newest-but-larger", db(6).with(json!({"version": "16.0"})))
            .claim("c", requests(1))
    };
    check(scene(), &["c -> old"]);
    check(scene().profile(json!({"preferNewest": true})), &["c -> new"]);
}

/// Each row: a score, and who wins by it among the same resources.
#[test]
fn each_score_chooses_by_what_it_names() {
    let shared =
        |gib: u32, version: &str| db(gib).with(json!({"version": version, "sharing": {"maxClaims": 9}}));
    let scene = || {
        let two = json!({"claimRefs": [{"namespace": "x", "name": "a"}, {"namespace": "x", "name": "b"}]});
        world()
            .resource("busy", shared(30, "14.1").with(two))
            .resource("tight", shared(10, "15.1").with(kept_for("x/c")))
            .resource("newest", shared(20, "16.1").with(kept_for("x/d")))
            .resource("oldest", shared(40, "13.1").with(kept_for("x/e")))
            .labelled(json!({"ssd": "true"}))
            .resource("vacant", shared(50, "15.0"))
            .claim("c", requests(1))
    };
    let likes = json!({"labels": [{"key": "ssd", "value": "true", "weight": 5}, {"key": "none"}]});
    for (score, expected) in [
        (json!({"name": "BestFit"}), "c -> tight"),
        (json!({"name": "BestFit", "weight": -1}), "c -> vacant"),
        (json!({"name": "NewestVersion"}), "c -> newest"),
        (json!({"name": "OldestVersion"}), "c -> oldest"),
        (json!({"name": "Spread"}), "c -> vacant"),
        (json!({"name": "Pack"}), "c -> busy"),
        (json!({"name": "LabelPreference", "parameters": likes}), "c -> oldest"),
    ] {
        let run = scene().profile(json!({ "scores": [score] })).settle();
        assert_eq!(run.outcomes(), [expected], "{score}");
    }
}

#[test]
fn scores_are_weighed_against_each_other() {
    let scene = |pack: i32, newest: i32| {
        world()
            .resource("busy", db(9).with(json!({"version": "13.1", "sharing": {"maxClaims": 5}})).with(kept_for("x/a")))
            .resource("new", db(9).with(json!({"version": "16.1"})))
            .profile(json!({"scores": [{"name": "Pack", "weight": pack}, {"name": "NewestVersion", "weight": newest}]}))
            .claim("c", requests(1))
    };
    check(scene(3, 1), &["c -> busy"]);
    check(scene(1, 3), &["c -> new"]);
}

#[test]
fn without_a_difference_in_score_best_fit_decides() {
    check(
        world()
            .resource("big", db(9))
            .resource("small", db(2))
            .profile(json!({"scores": [{"name": "Spread"}]}))
            .claim("c", requests(1)),
        &["c -> small"],
    );
}
