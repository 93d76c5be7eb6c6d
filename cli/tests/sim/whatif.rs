//! `sim whatif`, `fit`, `size`, `class-impact`: exit codes, and tables that say only what changes.

use super::*;
use expect_test::expect;

const TEAMS: &str = "examples/plan/teams.yaml";

#[test]
fn what_changes_is_reported_with_its_rule_and_exit_code_1() {
    let edit = "quota/shop/shop:spec.limits[0].requests.storage=80Gi";
    let output = run(&["sim", "whatif", TEAMS, "--set", edit, "--double-run"]);
    assert_eq!(output.status.code(), Some(1));
    expect![[r#"
        CLAIM       CHANGE       FROM     TO            RULE   MESSAGE
        shop/tests  newly bound  Pending  shared-mysql  Quota  before: over quota shop/shop: storage 40Gi
                                                               of 50Gi used, 20Gi more asked

        1 claim changes: bound 4 -> 5, pending 3 -> 2
    "#]]
    .assert_eq(&text(&output.stdout));
}

#[test]
fn nothing_changed_is_exit_code_0() {
    let reported = succeed(&run(&["sim", "whatif", TEAMS, "--set", "claim/shop/orders:spec.priority=11"]));
    assert_eq!(reported, "nothing changes: 8 claims\n");
}

#[test]
fn a_version_is_set_as_it_is_written() {
    let claim = "claim/shop/orders:spec.version";
    for (value, reported) in [("9.10", "9.10"), ("!=15.6", "!=15.6"), (">= 16", ">= 16"), ("*", "*")] {
        let output = run(&["sim", "whatif", TEAMS, "--set", &format!("{claim}={value}"), "-o", "json"]);
        let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        let expected = format!("set spec.version of RelationalDatabaseClaim shop/orders to \"{reported}\"");
        assert_eq!(document["edits"][0], expected);
    }
}

#[test]
fn json_has_edits_figures_and_changes() {
    let output = run(&["sim", "whatif", TEAMS, "--claims", "3", "--like", "blog/comments", "-o", "json"]);
    assert_eq!(output.status.code(), Some(1));
    let document: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(document["kind"], "WhatIf");
    assert_eq!(document["edits"][0], "add 3 like RelationalDatabaseClaim blog/comments");
    assert_eq!((&document["before"]["claims"], &document["after"]["claims"]), (&8.into(), &11.into()));
    assert_eq!(document["claims"].as_array().map(Vec::len), Some(3));
    assert_eq!(document["claims"][0]["change"], "Added");
}

#[test]
fn wrong_edits_are_exit_code_2() {
    for (arguments, expected) in [
        (&["sim", "whatif", TEAMS][..], "no edit: give"),
        (&["sim", "whatif", TEAMS, "--lose", "resource/nope"], "there is no RelationalDatabase"),
        (&["sim", "whatif", TEAMS, "--set", "claim/x"], "sets nothing"),
        (&["sim", "whatif", TEAMS, "--delete", "pod/x"], "is not a kind"),
        (
            &["sim", "whatif", TEAMS, "--set", "quota/shop/shop:spec.limits[0].requests.storage=80Gx"],
            "then ClaimQuota shop/shop cannot be read: spec.limits[0].requests.storage",
        ),
        (
            &["sim", "whatif", TEAMS, "--set", "resource/shared-mysql:spec.capacity.storage=lots"],
            "then RelationalDatabase conductor-system/shared-mysql cannot be read: spec.capacity.storage",
        ),
        (
            &["sim", "whatif", TEAMS, "--set", "claim/shop/orders:metadata.deletionTimestamp=soon"],
            "`metadata.deletionTimestamp` is \"soon\", not a time",
        ),
        (
            &["sim", "whatif", TEAMS, "--claims", "99999999999999", "--like", "blog/comments"],
            "are too many: request at most",
        ),
        (&["sim", "fit", TEAMS, "--most", "999999999999", "--like", "blog/comments"], "are too many"),
        (&["sim", "whatif", TEAMS, "--claims", "3"], "--like"),
        (&["sim", "whatif", TEAMS, "-f", "nowhere.yaml"], "nowhere.yaml"),
        (&["sim", "class-impact", TEAMS, "-f", TEAMS], "contains 2 classes"),
        (&["sim", "size", TEAMS, "--class", "nope"], "no resource of class nope"),
    ] {
        let reported = refused(&run(arguments));
        assert!(reported.contains(expected), "{arguments:?}: {reported}");
    }
}

#[test]
fn fit_names_who_would_wait_for_its_sake() {
    let folder = folder("displaced");
    let state = folder.join("state.yaml");
    let database = "---\napiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabase\n\
                    metadata: {name: only, namespace: conductor-system}\nspec: {engine: mysql, sharing: {maxClaims: 3}}\n";
    let urgent = claim("urgent", "engine: mysql, priority: 9");
    let low = claim("low", "engine: mysql");
    std::fs::write(&state, format!("{urgent}---\n{low}{database}")).unwrap();
    let reported = succeed(&run(&["sim", "fit", state.to_str().unwrap(), "--like", "a/urgent"]));
    assert!(reported.contains("a/low") && reported.contains("DISPLACED CLAIM"), "{reported}");
    let sentence = "2 more of a/urgent would be served, 1 of them in place of 1 claim of lower priority";
    assert!(reported.contains(sentence), "{reported}");
}

#[test]
fn fit_and_size_answer_in_a_sentence() {
    let reported = succeed(&run(&["sim", "fit", TEAMS, "--like", "blog/comments"]));
    assert!(
        reported.contains("1 more of blog/comments would be served; the next one is refused: 0/4"),
        "{reported}"
    );
    let reported = succeed(&run(&["sim", "fit", TEAMS, "--like", "blog/search", "--most", "7"]));
    assert!(reported.contains("at least 7 more of blog/search would be served"), "{reported}");
    let reported = succeed(&run(&["sim", "size", TEAMS, "--class", "analytics"]));
    assert!(reported.contains("no claim waits for a resource like columns-16"), "{reported}");
}
