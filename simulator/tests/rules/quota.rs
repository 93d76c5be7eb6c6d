//! Quotas and limits: counted with the decision, reported with the numbers, blocking no other claim.

use crate::support::{
    CLAIM, Driver, RESOURCE, Run, Scene, With, check, claim, db, makes, quota, requests, resource, world,
};
use conductor::event::Event;
use conductor::model::{Kind, ObjectKey, Revision};
use serde_json::{Value, json};

fn plenty(mut scene: Scene) -> Scene {
    for at in 0..6 {
        scene = scene.resource(&format!("r-{at}"), db(10));
    }
    scene
}

#[test]
fn a_claim_over_quota_waits_with_the_numbers_and_blocks_none() {
    let run = plenty(world())
        .quota("blue/dbs", json!([{"claims": 1}]))
        .claim("blue/a", requests(1))
        .claim("blue/b", requests(1))
        .claim("green/c", requests(1))
        .settle();
    assert_eq!(run.outcomes(), ["blue/a -> r-0", "blue/b: QuotaExceeded", "green/c -> r-1"]);
    assert_eq!(run.message("blue/b"), "over quota blue/dbs: claims 1 of 1 used, 1 more asked");
}

#[test]
fn a_claim_over_quota_does_not_block_a_smaller_one_behind_it() {
    let run = plenty(world())
        .quota("q", json!([{"requests": {"storage": "5Gi"}}]))
        .claim("a", requests(6).with(json!({"priority": 100})))
        .claim("b", requests(5))
        .settle();
    assert_eq!(run.outcomes(), ["a: QuotaExceeded", "b -> r-0"]);
    assert_eq!(run.message("a"), "over quota app/q: storage 0 of 5Gi used, 6Gi more asked");
}

#[test]
fn quota_that_is_freed_wakes_the_next_claim() {
    let mut run = plenty(world())
        .quota("q", json!([{"claims": 1}]))
        .claim("a", requests(1))
        .claim("b", requests(1))
        .claim("c", requests(2))
        .settle();
    run.delete(CLAIM, "a");
    assert_eq!((run.outcome("b").as_str(), run.outcome("c").as_str()), ("-> r-1", "QuotaExceeded"));
    run.delete(CLAIM, "b");
    assert_eq!((run.outcome("c").as_str(), run.bound_after_flush()), ("-> r-2", 0));
}

#[test]
fn quota_that_is_raised_serves_as_many_as_it_allows() {
    let mut scene = plenty(world()).quota("q", json!([{"claims": 0}]));
    for at in 0..5 {
        scene = scene.claim(&format!("c-{at}"), requests(1));
    }
    let mut run = scene.settle();
    run.put(quota("q", json!([{"claims": 3}])));
    let bound = run.outcomes().iter().filter(|o| o.contains("->")).count();
    assert_eq!((bound, run.bound_after_flush()), (3, 0));
    run.delete(Kind::Quota, "q");
    let bound = run.outcomes().iter().filter(|o| o.contains("->")).count();
    assert_eq!((bound, run.bound_after_flush()), (5, 0));
}

#[test]
fn a_limit_counts_only_its_class_and_its_engine() {
    let limits = json!([{"class": "gold", "claims": 0}, {"engine": "Postgres", "claims": 1}]);
    check(
        world()
            .quota("q", limits)
            .resource("gold", db(5).with(json!({"class": "gold", "engine": "mysql"})))
            .resource("plain", db(5))
            .resource("more", db(5))
            .resource("mysql", json!({"engine": "mysql", "capacity": {"storage": "5Gi"}}))
            .claim("a", requests(1).with(json!({"engine": "mysql", "class": "gold"})))
            .claim("b", requests(1))
            .claim("c", requests(1).with(json!({"engine": "postgresql"})))
            .claim("d", requests(1).with(json!({"engine": "mysql"}))),
        &["a: QuotaExceeded", "b -> more", "c: QuotaExceeded", "d -> mysql"],
    );
}

#[test]
fn a_claim_falls_back_to_a_class_that_its_quota_allows() {
    let of = |class: &str| db(5).with(json!({ "class": class }));
    check(
        world()
            .quota("q", json!([{"class": "gold", "claims": 0}]))
            .resource("g", of("gold"))
            .resource("s", of("silver"))
            .claim("c", requests(1).with(json!({"classes": ["gold", "silver"]}))),
        &["c -> s"],
    );
}

#[test]
fn quota_counts_assumed_and_provisioning_claims_too() {
    let fast = || requests(1).with(json!({"class": "fast"}));
    let run = world()
        .class("fast", makes("Delete"))
        .quota("q", json!([{"claims": 2}]))
        .claim("a", fast())
        .claim("b", fast())
        .claim("c", fast())
        .settle();
    assert_eq!(run.outcomes(), ["a: Provisioning", "b: Provisioning", "c: QuotaExceeded"]);
    let scene =
        plenty(world()).quota("q", json!([{"claims": 1}])).claim("a", requests(1)).claim("b", requests(1));
    let mut driver = Driver::start(scene.into_world());
    driver.run_holding_writes();
    driver.put(claim("c", requests(1)));
    driver.run_holding_writes();
    let assumed = ["a", "b", "c"]
        .iter()
        .filter(|c| matches!(driver.binding(c), conductor::engine::Binding::Assumed { .. }))
        .count();
    assert_eq!(assumed, 1);
}

#[test]
fn quota_counts_what_was_bound_before_the_controller_started() {
    let mut run = plenty(world())
        .quota("q", json!([{"claims": 2}]))
        .claim("a", requests(1))
        .claim("b", requests(1))
        .settle()
        .restart();
    run.put(claim("c", requests(1)));
    assert_eq!(run.outcomes(), ["a -> r-0", "b -> r-1", "c: QuotaExceeded"]);
}

#[test]
fn what_is_bound_stays_bound_when_a_quota_shrinks() {
    let mut run = plenty(world()).claim("a", requests(1)).claim("b", requests(1)).settle();
    run.put(quota("q", json!([{"claims": 1}])));
    run.put(claim("c", requests(1)));
    assert_eq!(run.outcomes(), ["a -> r-0", "b -> r-1", "c: QuotaExceeded"]);
    assert_eq!(run.message("c"), "over quota app/q: claims 2 of 1 used, 1 more asked");
}

#[test]
fn a_quotas_status_shows_its_usage() {
    let run = plenty(world())
        .quota("q", json!([{"claims": 5, "requests": {"storage": "20Gi"}}]))
        .claim("a", requests(3))
        .claim("b", requests(4))
        .settle();
    assert_eq!(used(&run), json!([{"claims": 2, "requests": {"storage": "7Gi"}}]));
}

fn used(run: &Run) -> Value {
    run.body(Kind::Quota, "q")["status"]["used"].clone()
}

/// A quota of so many GiB.
fn storage(gib: u32) -> Value {
    json!([{"requests": {"storage": format!("{gib}Gi")}}])
}

/// A claim that says nothing of its size.
fn requests_no_size() -> Value {
    json!({"engine": "postgresql"})
}

#[test]
fn a_claim_that_requests_nothing_counts_what_it_holds() {
    let mut run =
        world().quota("q", storage(10)).resource("large", db(2000)).claim("a", requests_no_size()).settle();
    assert_eq!(run.outcomes(), ["a: QuotaExceeded"]);
    let message = "1/1 resources fit; over quota app/q: storage 0 of 10Gi used, resource large has 2000Gi";
    assert_eq!(run.message("a"), message);
    for name in ["r-1", "r-2"] {
        run.put(resource(name, db(5)));
    }
    run.put(claim("b", requests_no_size()));
    run.put(claim("c", requests_no_size()));
    assert_eq!(run.outcomes(), ["a -> r-1", "b -> r-2", "c: QuotaExceeded"]);
    assert_eq!(used(&run), json!([{"claims": 2, "requests": {"storage": "10Gi"}}]));
    // The same once a controller starts anew.
    let run = run.restart();
    assert_eq!(used(&run), json!([{"claims": 2, "requests": {"storage": "10Gi"}}]));
}

#[test]
fn a_claim_gets_the_best_fit_that_its_quota_allows() {
    let of = |gib: u32, connections: u32| {
        db(gib).with(json!({"capacity": {"storage": format!("{gib}Gi"), "connections": connections}}))
    };
    let mut run = world()
        .quota("q", json!([{"requests": {"connections": 50}}]))
        .resource("tight", of(5, 500))
        .resource("wide", of(9, 40))
        .claim("c", requests(1))
        .settle();
    assert_eq!(run.outcomes(), ["c -> wide"]);
    run.put(claim("d", requests(1)));
    let message =
        "1/2 resources fit: 1 reserved; over quota app/q: connections 40 of 50 used, resource tight has 500";
    assert_eq!((run.outcome("d").as_str(), run.message("d").as_str()), ("QuotaExceeded", message));
    // Smaller, it is within the quota.
    run.edit_spec(RESOURCE, "tight", json!({"capacity": {"storage": "5Gi", "connections": 10}}));
    assert_eq!((run.outcome("d").as_str(), run.bound_after_flush()), ("-> tight", 0));
    assert_eq!(used(&run), json!([{"claims": 2, "requests": {"connections": "50"}}]));
}

#[test]
fn beside_others_a_claim_counts_what_it_requests_and_must_request_it() {
    let mut run = world()
        .quota("q", storage(10))
        .resource("shared", db(2000).with(json!({"sharing": {"maxClaims": 5}})))
        .claim("a", requests(4))
        .claim("b", requests_no_size())
        .settle();
    assert_eq!(run.outcomes(), ["a -> shared", "b: QuotaExceeded"]);
    assert_eq!(
        run.message("b"),
        "1/1 resources fit; quota app/q limits storage, and the claim requests none of the shared resource shared that \
         could be counted: add spec.resources.requests.storage to the claim"
    );
    run.edit_spec(CLAIM, "b", json!({"resources": {"requests": {"storage": "6Gi"}}}));
    assert_eq!(run.outcome("b"), "-> shared");
    assert_eq!(used(&run), json!([{"claims": 2, "requests": {"storage": "10Gi"}}]));
}

#[test]
fn an_exclusive_claim_counts_all_of_a_shared_resource() {
    let run = world()
        .quota("q", storage(10))
        .resource("shared", db(2000).with(json!({"sharing": {"maxClaims": 5}})))
        .claim("c", requests_no_size().with(json!({"exclusive": true})))
        .settle();
    assert_eq!(run.outcomes(), ["c: QuotaExceeded"]);
    assert!(run.message("c").ends_with("resource shared has 2000Gi"), "{}", run.message("c"));
}

#[test]
fn what_cannot_be_counted_is_refused_until_it_can() {
    let mut run = world()
        .quota("q", storage(10))
        .resource("r", json!({"engine": "postgresql"}))
        .claim("c", json!({"engine": "postgresql"}))
        .claim("named", json!({"engine": "postgresql", "resourceName": "s"}))
        .claim("elsewhere/c", json!({"engine": "mysql"}))
        .resource("s", json!({"engine": "postgresql", "unschedulable": true}))
        .settle();
    assert!(run.message("c").ends_with(
        "quota app/q limits storage, and resource r lists none that could be counted: add spec.capacity.storage to it"
    ));
    run.edit_spec(RESOURCE, "r", json!({"capacity": {"storage": "4Gi"}}));
    run.edit_spec(RESOURCE, "s", json!({"unschedulable": false}));
    assert!(run.message("named").starts_with("quota app/q limits storage, and resource s lists none"));
    assert_eq!((run.outcome("c").as_str(), run.outcome("named").as_str()), ("-> r", "QuotaExceeded"));
    run.edit_spec(RESOURCE, "s", json!({"capacity": {"storage": "7Gi"}}));
    assert_eq!(run.message("named"), "over quota app/q: storage 4Gi of 10Gi used, resource s has 7Gi");
    run.edit_spec(RESOURCE, "s", json!({"capacity": {"storage": "6Gi"}}));
    assert_eq!((run.outcome("named").as_str(), run.bound_after_flush()), ("-> s", 0));
    assert_eq!(used(&run), json!([{"claims": 2, "requests": {"storage": "10Gi"}}]));
}

#[test]
fn what_a_class_makes_counts_at_its_size() {
    let sized = makes("Delete").with(json!({"capacity": {"storage": {"min": "4Gi", "max": "8Gi"}}}));
    let of = |class: &str| json!({"engine": "postgresql", "class": class});
    let mut run = world()
        .quota("q", storage(10))
        .class("sized", sized)
        .class("silent", makes("Delete"))
        .claim("a", of("sized"))
        .claim("b", of("sized"))
        .claim("c", of("sized"))
        .claim("d", of("silent"))
        .settle();
    assert_eq!(
        run.outcomes(),
        ["a: Provisioning", "b: Provisioning", "c: QuotaExceeded", "d: QuotaExceeded"]
    );
    assert!(run.message("c").ends_with(
        "0/1 classes fit: 1 quota (over quota app/q: storage 8Gi of 10Gi used, class sized makes 4Gi)"
    ));
    assert!(run.message("d").ends_with(
        "(quota app/q limits storage, and class silent declares none that could be counted: add capacity.storage to it)"
    ));
    run.edit(crate::support::CLASS, "silent", |class| class.body["capacity"] = json!({"storage": "2Gi"}));
    assert_eq!((run.outcome("d").as_str(), run.bound_after_flush()), ("Provisioning", 0));
    run.delete(CLAIM, "a");
    assert_eq!((run.outcome("c").as_str(), run.bound_after_flush()), ("Provisioning", 0));
}

#[test]
fn a_size_that_parameters_may_decide_is_refused_under_a_quota() {
    let class = |size: &str| {
        let mut class = makes("Delete").with(json!({"capacity": {"storage": {"min": "4Gi", "max": "8Ti"}}}));
        class["template"]["spec"] = json!({"size": size, "zone": "${parameters.zone}"});
        class
    };
    let requested = requests(5).with(json!({"parameters": {"size": "8Ti", "zone": "a"}}));
    let none = json!({"engine": "postgresql", "parameters": {"size": "8Ti", "zone": "a"}});
    let of = |class: &str, spec: &Value| spec.clone().with(json!({"class": class}));
    let limited = |limits: Value| {
        let scene = world()
            .quota("q", limits)
            .class("free", class("${parameters.size}"))
            .class(
                "either",
                class("${has(parameters.size) ? parameters.size : resource.spec.capacity.storage}"),
            )
            .class("taken", class("${resource.spec.capacity.storage}"));
        ["free", "either", "taken"].iter().fold(scene, |scene, class| {
            scene.claim(class, of(class, &requested)).claim(&format!("{class}-none"), of(class, &none))
        })
    };
    let run = limited(json!([{"requests": {"storage": "1Ti"}}])).settle();
    for claim in ["free", "free-none", "either", "either-none"] {
        assert_eq!(run.outcome(claim), "QuotaExceeded", "{claim}");
        let reported = "parameters may decide how much class";
        assert!(run.message(claim).contains(reported), "{claim}: {}", run.message(claim));
    }
    for claim in ["taken", "taken-none"] {
        assert!(run.outcome(claim).contains("Provisioning"), "{claim}: {}", run.outcome(claim));
    }
    // A quota that limits something else counts nothing of it.
    let run = limited(json!([{"claims": 9}])).settle();
    assert!(run.outcome("free").contains("Provisioning"), "{}", run.outcome("free"));
}

#[test]
fn a_resource_that_shrinks_under_its_claim_frees_quota() {
    let mut run = plenty(world())
        .quota("q", storage(20))
        .claim("a", requests_no_size())
        .claim("b", requests_no_size())
        .claim("c", requests_no_size())
        .settle();
    assert_eq!(run.outcomes(), ["a -> r-0", "b -> r-1", "c: QuotaExceeded"]);
    run.edit_spec(RESOURCE, "r-2", json!({"capacity": {"storage": "5Gi"}}));
    assert_eq!(run.outcome("c"), "QuotaExceeded");
    run.edit_spec(RESOURCE, "r-0", json!({"capacity": {"storage": "5Gi"}}));
    assert_eq!((run.outcome("c").as_str(), run.bound_after_flush()), ("-> r-2", 0));
}

#[test]
fn claims_placed_together_stay_within_their_quota() {
    let run = plenty(world())
        .profile(json!({"batch": "optimal"}))
        .quota("q", storage(25))
        .claim("a", requests_no_size())
        .claim("b", requests_no_size())
        .claim("c", requests_no_size())
        .settle();
    assert_eq!(run.outcomes(), ["a -> r-0", "b -> r-1", "c: QuotaExceeded"]);
}

#[test]
fn a_bound_claim_with_an_unreadable_version_counts_for_its_own_engine() {
    let limits = json!([{"engine": "mysql", "claims": 1}, {"engine": "postgresql", "claims": 1}]);
    let mut run = world()
        .quota("q", limits)
        .resource("m", json!({"engine": "mysql"}))
        .resource("p", json!({"engine": "postgresql"}))
        .claim("a", json!({"engine": "mysql"}))
        .settle();
    run.edit_spec(CLAIM, "a", json!({"version": "no version"}));
    run.put(claim("b", json!({"engine": "postgresql"})));
    assert_eq!(run.outcomes(), ["a -> m", "b -> p"]);
}

#[test]
fn a_quotas_line_for_people_follows_its_limits() {
    let mut run = plenty(world()).quota("q", json!([{"claims": 9}])).claim("a", requests(1)).settle();
    assert_eq!(run.body(Kind::Quota, "q")["status"]["summary"], "claims 1/9");
    run.edit_spec(Kind::Quota, "q", json!({"limits": [{"claims": 1}]}));
    assert_eq!(run.body(Kind::Quota, "q")["status"]["summary"], "claims 1/1");
}

#[test]
fn a_named_claim_and_a_reserved_one_are_under_quota_too() {
    check(
        world()
            .quota("q", json!([{"claims": 0}]))
            .resource("kept", db(5).with(crate::support::kept_for("a")))
            .resource("r", db(5))
            .claim("a", requests(1))
            .claim("b", requests(1).with(json!({"resourceName": "r"}))),
        &["a: QuotaExceeded", "b: QuotaExceeded"],
    );
}

#[test]
fn a_cluster_quota_counts_namespaces_by_their_labels_together() {
    let team = |name: &str| json!({ "team": name });
    let mut run = plenty(world())
        .namespace("blue-1", team("blue"))
        .namespace("blue-2", team("blue"))
        .namespace("green", team("green"))
        .cluster_quota("blue", json!({"matchLabels": {"team": "blue"}}), json!([{"claims": 1}]))
        .claim("blue-1/a", requests(1))
        .claim("blue-2/b", requests(1))
        .claim("green/c", requests(1))
        .settle();
    assert_eq!(run.outcomes(), ["blue-1/a -> r-0", "blue-2/b: QuotaExceeded", "green/c -> r-1"]);
    assert_eq!(run.message("blue-2/b"), "over cluster quota blue: claims 1 of 1 used, 1 more asked");
    // A namespace that changes its team leaves the quota, and its claim is woken.
    run.edit(Kind::Namespace, "blue-2", |o| {
        o.metadata.labels = Some([("team".to_owned(), "red".to_owned())].into())
    });
    assert_eq!((run.outcome("blue-2/b").as_str(), run.bound_after_flush()), ("-> r-2", 0));
}

#[test]
fn a_claim_freed_in_one_namespace_wakes_one_of_another_under_the_same_cluster_quota() {
    let mut run = plenty(world())
        .cluster_quota("all", json!({}), json!([{"claims": 1}]))
        .claim("a/x", requests(1))
        .claim("b/x", requests(1))
        .settle();
    run.delete(CLAIM, "a/x");
    assert_eq!((run.outcome("b/x").as_str(), run.bound_after_flush()), ("-> r-1", 0));
}

#[test]
fn a_claim_outside_the_limits_reports_them_until_they_move() {
    let limits = |max: &str| json!({"min": {"storage": "2Gi"}, "max": {"storage": max}});
    let mut run = plenty(world())
        .limits("l", limits("4Gi"))
        .claim("a", requests(1))
        .claim("b", requests(5))
        .claim("c", requests(3))
        .settle();
    assert_eq!(run.outcomes(), ["a: LimitsExceeded", "b: LimitsExceeded", "c -> r-0"]);
    assert!(run.message("b").contains("storage 5Gi is above the most allowed, 4Gi"), "{}", run.message("b"));
    run.edit_spec(Kind::Limits, "l", limits("5Gi"));
    assert_eq!((run.outcome("b").as_str(), run.bound_after_flush()), ("-> r-1", 0));
    run.delete(Kind::Limits, "l");
    assert_eq!((run.outcome("a").as_str(), run.bound_after_flush()), ("-> r-2", 0));
}

#[test]
fn a_claim_without_requests_gets_its_namespaces_default() {
    let run = world()
        .limits("l", json!({"default": {"storage": "3Gi"}}))
        .resource("small", db(1))
        .resource("large", db(4))
        .claim("c", json!({"engine": "postgresql"}))
        .claim("elsewhere/c", json!({"engine": "postgresql"}))
        .settle();
    assert_eq!(run.outcomes(), ["c -> large", "elsewhere/c -> small"]);
    assert_eq!(run.body(RESOURCE, "large")["spec"]["claimRefs"][0]["requests"], json!({"storage": "3Gi"}));
    let spec: &Value = &run.body(CLAIM, "c")["spec"];
    assert!(spec.get("resources").is_none(), "the claim itself is not altered");
}

#[test]
fn a_new_default_applies_to_waiting_claims() {
    let mut run = world().limits("l", json!({"default": {"storage": "9Gi"}})).claim("c", json!({})).settle();
    run.put(resource("r", db(5)));
    assert_eq!(run.outcome("c"), "NoMatch");
    run.edit_spec(Kind::Limits, "l", json!({"default": {"storage": "5Gi"}}));
    assert_eq!((run.outcome("c").as_str(), run.bound_after_flush()), ("-> r", 0));
}

#[test]
fn a_namespace_that_a_new_list_lacks_leaves_its_cluster_quota() {
    let world = plenty(world())
        .namespace("blue", json!({"team": "blue"}))
        .cluster_quota("blue", json!({"matchLabels": {"team": "blue"}}), json!([{"claims": 1}]))
        .claim("blue/a", requests(1))
        .into_world();
    let mut driver = Driver::start(world);
    driver.run();
    let used = |driver: &Driver| {
        let quota = driver.world.get(Kind::ClusterQuota, &ObjectKey::new("", "blue")).expect("it is there");
        quota.body["status"]["used"][0]["claims"].clone()
    };
    assert_eq!(used(&driver), 1);
    // The watch was lost when the namespace went: the list after it is all that says so.
    let (kind, objects, revision) = (Kind::Namespace, Vec::new(), Revision(1_000_000));
    driver.deliver_event(Event::Listed { kind, objects, revision });
    driver.run();
    assert_eq!(used(&driver), 0);
}
