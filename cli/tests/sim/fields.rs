//! Fields that no schema has: refused in manifests that the user tries out, reported in a state.

use super::*;

const TEAMS: &str = "examples/plan/teams.yaml";

fn quota(limits: &str) -> String {
    format!(
        "apiVersion: conductor.io/v1alpha1\nkind: ClaimQuota\nmetadata: {{name: shop, namespace: shop}}\n\
         spec: {{limits: [{limits}]}}\n"
    )
}

fn profile(spec: &str) -> String {
    format!(
        "apiVersion: conductor.io/v1alpha1\nkind: SchedulingProfile\nmetadata: {{name: default}}\nspec: {{{spec}}}\n"
    )
}

/// A file in a folder of its own.
fn file(name: &str, text: &str) -> String {
    let path = folder(name).join("x.yaml");
    std::fs::write(&path, text).unwrap();
    path.display().to_string()
}

#[test]
fn a_misspelt_policy_passes_no_gate() {
    let folder = folder("fields-gate");
    std::fs::copy(root().join(TEAMS), folder.join("state.yaml")).unwrap();
    let suite = folder.join("suite.yaml");
    std::fs::write(
        &suite,
        "apiVersion: simulator.conductor.io/v1alpha1\nkind: GateSuite\nstate: [state.yaml]\npolicies: [p.yaml]\n\
         thresholds: {lost: 0}\n",
    )
    .unwrap();
    for (policy, expected) in [
        (
            quota("{claims: 9}, {request: {storage: 1Gi}}"),
            "p.yaml:1: ClaimQuota shop/shop: spec.limits[1].request: no such field; spec.limits[1].requests?\n",
        ),
        (
            profile("preferNewst: true, ordr: [existing]"),
            "SchedulingProfile default: spec.ordr: no such field; spec.order? (and 1 field more that no schema has)\n",
        ),
        (
            quota("{claims: 1}").replace("v1alpha1", "v1alpha2"),
            "conductor.io/v1alpha2/ClaimQuota is not a kind",
        ),
    ] {
        std::fs::write(folder.join("p.yaml"), policy).unwrap();
        let reported = refused(&run(&["sim", "gate", suite.to_str().unwrap()]));
        assert!(reported.contains(expected), "{expected}\n{reported}");
    }
}

#[test]
fn what_is_tried_has_fields_that_there_are() {
    let set = |edit: &str| refused(&run(&["sim", "whatif", TEAMS, "--set", edit]));
    for (edit, expected) in [
        (
            "claim/shop/tests:spec.engin=postgresql",
            "error: RelationalDatabaseClaim shop/tests: spec.engin: no such field; spec.engine?\n",
        ),
        ("quota/shop/shop:spec.limits[0].request.storage=1Gi", "spec.limits[0].request: no such field"),
        ("quota/shop/shop:spec.limits=[{request: {storage: 1Gi}}]", "spec.limits[0].requests?"),
        ("claim/shop/tests:metadata.lables.a=b", "metadata.labels?"),
        ("claim/shop/tests:spec.vresion=", "spec.version?"),
    ] {
        assert!(set(edit).contains(expected), "{edit}\n{}", set(edit));
    }
    let misspelt = file("fields-file", &profile("preferNewst: true"));
    for arguments in [
        &["sim", "whatif", TEAMS, "-f", &misspelt][..],
        &["sim", "compare", TEAMS, "--a", "built-in", "--b", &misspelt],
    ] {
        let reported = refused(&run(arguments));
        assert!(reported.contains("spec.preferNewst: no such field; spec.preferNewest?"), "{reported}");
    }
}

#[test]
fn a_state_is_taken_as_it_is_and_its_unknown_fields_are_reported_in_a_line() {
    let plain = documents(&[resource("db-1", "engine: mysql"), claim("x", "engine: mysql")]);
    let odd = documents(&[
        resource("db-1", "engine: mysql"),
        claim("x", "engine: mysql, vresion: '8', colour: red"),
    ]);
    let arguments = ["sim", "plan", "-", "-o", "json"];
    let output = run_with(&arguments, &odd);
    assert_eq!(succeed(&output), succeed(&run_with(&arguments, &plain)));
    assert_eq!(
        text(&output.stderr),
        "warning: ignored 2 fields that no schema has: RelationalDatabaseClaim a/x: spec.colour, \
         RelationalDatabaseClaim a/x: spec.vresion (spec.version?)\n"
    );
}

#[test]
fn an_api_version_that_we_do_not_have_is_a_kind_that_is_not_known() {
    let later = quota("{claims: 0}").replace("v1alpha1", "v1alpha2");
    let output = run_with(&["sim", "plan", "-"], &documents(&[later, claim("x", "")]));
    succeed(&output);
    assert_eq!(
        text(&output.stderr),
        "ignored 1 object of kinds that decisions do not read: 1 conductor.io/v1alpha2/ClaimQuota\n"
    );
}

#[test]
fn no_example_has_a_field_that_there_is_not() {
    let output = run(&["sim", "plan", "examples", "-o", "json"]);
    succeed(&output);
    let reported = text(&output.stderr);
    assert!(!reported.contains("no schema has"), "{reported}");
}
