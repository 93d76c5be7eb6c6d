//! `sim explain`: the counts, the near misses and the nearest changes, as people read them.

use super::*;
use expect_test::expect;

const TEAMS: &str = "examples/plan/teams.yaml";

#[test]
fn a_claim_that_waits_is_explained() {
    expect![[r#"
        reports/warehouse is Pending: 0/4 resources fit: 3 class, 1 version; 0/1 classes fit: 1 class (class analytics has no template to make one from)

          COUNT  PREDICATE  MESSAGE
          3      Class      3 resources are not of class analytics
          1      Version    1 resource has no version in >= 17
          1      Class      class analytics has no template to make one from

          NEAR MISS   LACKS
          columns-16  Version: its version 16.2 is not in >= 17

          BINDS       CHANGE (EACH IS ENOUGH FOR THIS CLAIM ALONE)
          columns-16  widen the claim's version to >= 16
    "#]].assert_eq(&succeed(&run(&["sim", "explain", TEAMS, "--claim", "reports/warehouse"])));
}

#[test]
fn a_quota_in_the_way_is_reported_with_what_would_lift_it() {
    expect![[r#"
        shop/tests is Pending: over quota shop/shop: storage 40Gi of 50Gi used, 20Gi more asked

          COUNT  PREDICATE  MESSAGE
          1      Quota      over quota shop/shop: storage 40Gi of 50Gi used, 20Gi more asked

          BINDS         CHANGE (EACH IS ENOUGH FOR THIS CLAIM ALONE)
          shared-mysql  raise storage of quota shop/shop by 10Gi
    "#]]
    .assert_eq(&succeed(&run(&["sim", "explain", TEAMS, "--claim", "shop/tests"])));
}

#[test]
fn a_claim_that_is_served_says_so() {
    let reported = succeed(&run(&["sim", "explain", TEAMS, "--claim", "shop/orders"]));
    assert_eq!(reported, "shop/orders is Bound: would be bound to orders-primary\n");
}

#[test]
fn without_a_claim_all_that_wait_are_explained() {
    let explained = json(&run(&["sim", "explain", TEAMS, "-o", "json"]));
    assert_eq!(
        (&explained["kind"], &explained["apiVersion"]),
        (&"Explanation".into(), &"simulator.conductor.io/v1alpha1".into())
    );
    let names: Vec<&str> =
        explained["claims"].as_array().unwrap().iter().map(|c| c["name"].as_str().unwrap()).collect();
    assert_eq!(names, ["old-blog", "warehouse", "tests"]);
    assert_eq!(explained["claims"][1]["nearMisses"][0]["resource"]["name"], "columns-16");
    let idle = run_with(&["sim", "explain", "-"], &documents(&[resource("db-1", "")]));
    assert_eq!(succeed(&idle), "no claim waits\n");
}

#[test]
fn claims_that_wait_alike_are_explained_once() {
    let claims: Vec<String> = (0..8).map(|at| claim(&format!("c{at}"), "engine: mysql")).collect();
    let reported = succeed(&run_with(&["sim", "explain", "-"], &documents(&claims)));
    assert_eq!(reported, "a/c0, a/c1, a/c2, a/c3, a/c4 and 3 more are Pending: 0/0 resources fit\n");
}

#[test]
fn an_unknown_claim_is_refused_with_those_that_are_there() {
    let reported = refused(&run(&["sim", "explain", TEAMS, "--claim", "shop/comments"]));
    assert_eq!(reported, "error: no claim shop/comments in the input; there is blog/comments\n");
    let reported = refused(&run(&["sim", "explain", TEAMS, "--claim", "unknown"]));
    assert!(
        reported.starts_with("error: no claim default/unknown in the input; there are blog/comments, "),
        "{reported}"
    );
}
