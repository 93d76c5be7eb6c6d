//! What if: every kind of edit, and the rule that each claim's fate is put down to.

use conductor_simulator::compare::{Scenario, compare};
use conductor_simulator::load::{LoadOptions, load_with_stdin};
use conductor_simulator::plan::Options;
use conductor_simulator::whatif::{Edit, Target, WhatIf, class_impact, fit, size, what_if};
use expect_test::{Expect, expect};
use std::fmt::Write;

use conductor::model::Object;

fn objects(text: &str) -> Vec<Object> {
    let loaded = load_with_stdin(&["-"], text.as_bytes(), &LoadOptions::default()).unwrap();
    assert_eq!(loaded.problems, []);
    loaded.objects.into_iter().map(|l| l.object).collect()
}

fn claim(name: &str, rest: &str) -> String {
    format!(
        "---\napiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabaseClaim\n\
         metadata: {{name: '{name}', namespace: a, uid: uid-{name}}}\n{rest}\n"
    )
}

fn resource(name: &str, spec: &str) -> String {
    format!(
        "---\napiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabase\n\
         metadata: {{name: {name}, namespace: conductor-system, uid: uid-{name}}}\nspec: {{{spec}}}\n"
    )
}

/// A database that a claim holds, and the claim.
fn held(name: &str, by: &str, policy: &str) -> String {
    let holder = format!("{{namespace: a, name: '{by}', uid: uid-{by}}}");
    resource(name, &format!("engine: mysql, version: 8.0, reclaimPolicy: {policy}, claimRefs: [{holder}]"))
        + "status: {phase: Bound}\n"
        + &claim(
            by,
            &format!("spec: {{engine: mysql}}\nstatus: {{phase: Bound, resourceRef: {{name: {name}}}}}"),
        )
}

fn target(text: &str) -> Target {
    Target::read(text, "a", "conductor-system").unwrap()
}

fn set(text: &str) -> Edit {
    Edit::read_set(text, "a", "conductor-system").unwrap()
}

fn summary(answer: &WhatIf) -> String {
    let mut reported = String::new();
    for c in &answer.difference.claims {
        let to = c.after.as_ref().and_then(|f| f.resource.as_ref()).map(|r| format!(" {}", r.name));
        let (change, cause) = (c.change.label(), &c.cause);
        writeln!(
            reported,
            "{}: {change}{} ({}: {})",
            c.name,
            to.unwrap_or_default(),
            cause.rule,
            cause.message
        )
        .unwrap();
    }
    for r in &answer.difference.resources {
        writeln!(reported, "{}: {}", r.name, r.change.label()).unwrap();
    }
    reported
}

#[track_caller]
fn check(state: &str, edits: &[Edit], expected: Expect) {
    let answer = what_if(objects(state), edits, &Options::default()).unwrap();
    expected.assert_eq(&summary(&answer));
}

#[test]
fn a_change_that_changes_nothing_says_so() {
    let state = held("db", "x", "Delete");
    let answer =
        what_if(objects(&state), &[set("resource/db:spec.capacity.storage=9Gi")], &Options::default());
    let answer = answer.unwrap();
    assert!(answer.difference.is_empty());
    assert_eq!(answer.before, answer.after);
}

#[test]
fn a_lost_resource_loses_its_claim() {
    check(
        &held("db", "x", "Delete"),
        &[Edit::Lose(target("resource/db"))],
        expect![[r#"
            x: lost (Gone: resource db was deleted; the claim is not bound to other data. It is bound again if the same resource returns. To start over with an empty resource, create a claim of another name; deleting this claim deletes the record of its data)
            db: removed
        "#]],
    );
}

#[test]
fn a_deleted_claim_gives_its_resource_up_as_the_policy_says() {
    let state = held("gone", "x", "Delete") + &held("kept", "y", "Retain");
    check(
        &state,
        &[Edit::Delete(target("claim/a/x")), Edit::Delete(target("claim/a/y"))],
        expect![[r#"
            x: being deleted (Deleted: being deleted; gone is deleted with it)
            y: being deleted (Deleted: being deleted; kept is released and retained)
            gone: would be deleted
            kept: would be retained
        "#]],
    );
}

#[test]
fn a_namespace_takes_its_claims_along() {
    let rules = "---\napiVersion: conductor.io/v1alpha1\nkind: ClaimQuota\n\
                 metadata: {name: q, namespace: a}\nspec: {limits: [{claims: 9}]}\n";
    let there = "---\napiVersion: v1\nkind: Namespace\nmetadata: {name: a}\n";
    let other = claim("z", "spec: {engine: mysql}").replace("namespace: a", "namespace: b");
    let state = held("gone", "x", "Delete")
        + &held("kept", "y", "Retain")
        + &claim("waits", "spec: {engine: oracle}")
        + rules
        + &other;
    // A namespace may exist only through its objects.
    for state in [state.clone() + there, state] {
        check(
            &state,
            &[Edit::Delete(target("namespace/a"))],
            expect![[r#"
                waits: being deleted (Deleted: being deleted)
                x: being deleted (Deleted: being deleted; gone is deleted with it)
                y: being deleted (Deleted: being deleted; kept is released and retained)
                gone: would be deleted
                kept: would be retained
            "#]],
        );
        check(
            &state,
            &[Edit::Lose(target("namespace/a"))],
            expect![[r#"
                waits: removed (Gone: the claim no longer exists)
                x: removed (Gone: the claim no longer exists)
                y: removed (Gone: the claim no longer exists)
                gone: would be deleted
                kept: would be retained
            "#]],
        );
    }
    let error = what_if(objects(&other), &[Edit::Delete(target("namespace/a"))], &Options::default());
    assert!(error.unwrap_err().to_string().contains("there is no Namespace a"));
}

#[test]
fn a_namespace_takes_its_quota_along() {
    let quota = "---\napiVersion: conductor.io/v1alpha1\nkind: ClaimQuota\n\
                 metadata: {name: q, namespace: a}\nspec: {limits: [{claims: 0}]}\n";
    let mut later = objects(&claim("x", "spec: {engine: mysql}"));
    check(
        &(resource("db", "engine: mysql") + quota),
        &[Edit::Delete(target("namespace/a")), Edit::Apply(Box::new(later.remove(0)))],
        expect![[r#"
            x: added db (Added: would be bound to db)
        "#]],
    );
}

#[test]
fn each_flip_names_the_rule_that_stood_in_the_way() {
    let waiting =
        resource("db", "engine: mysql, version: 8.0, capacity: {storage: 5Gi}, unschedulable: true")
            + &claim("x", "spec: {engine: mysql}");
    check(
        &waiting,
        &[set("resource/db:spec.unschedulable=false")],
        expect![[r#"
            x: newly bound db (Cordoned: before: it is unschedulable)
        "#]],
    );
    let small = resource("db", "engine: mysql, capacity: {storage: 5Gi}")
        + &claim("x", "spec: {engine: mysql, resources: {requests: {storage: 6Gi}}}");
    check(
        &small,
        &[set("resource/db:spec.capacity.storage=8Gi")],
        expect![[r#"
            x: newly bound db (Capacity: before: it has storage 5Gi left, and 6Gi is requested)
        "#]],
    );
    let quota = "---\napiVersion: conductor.io/v1alpha1\nkind: ClaimQuota\n\
                 metadata: {name: q, namespace: a}\nspec: {limits: [{claims: 1}]}\n";
    let over =
        held("db", "x", "Retain") + &resource("free", "engine: mysql") + &claim("y", "spec: {}") + quota;
    check(
        &over,
        &[Edit::Delete(target("quota/a/q"))],
        expect![[r#"
            y: newly bound free (Quota: before: over quota a/q: claims 1 of 1 used, 1 more asked)
        "#]],
    );
}

#[test]
fn a_better_resource_moves_a_claim_that_is_not_bound_yet() {
    let state = resource("big", "engine: mysql, capacity: {storage: 9Gi}")
        + &claim("x", "spec: {engine: mysql, resources: {requests: {storage: 1Gi}}}");
    let mut small = objects(&resource("small", "engine: mysql, capacity: {storage: 1Gi}"));
    check(
        &state,
        &[Edit::Apply(Box::new(small.remove(0)))],
        expect![[r#"
            x: moved small (Preference: big fits too; small is preferred)
            small: added
        "#]],
    );
}

/// Two databases of which either serves both claims, `x` before `y`.
fn two_for_two() -> String {
    let claim = |name: &str, day: u8| {
        claim(name, "spec: {engine: mysql}").replace(
            &format!("uid: uid-{name}"),
            &format!("uid: uid-{name}, creationTimestamp: '2026-01-0{day}T00:00:00Z'"),
        )
    };
    let database = |name: &str, version: &str, slots: u8| {
        resource(name, &format!("engine: mysql, version: '{version}', sharing: {{maxClaims: {slots}}}"))
    };
    database("old", "8.0", 1) + &database("new", "9.0", 1) + &claim("x", 1) + &claim("y", 2)
}

#[test]
fn of_two_that_change_places_one_prefers_and_the_other_is_displaced() {
    let profile = "apiVersion: conductor.io/v1alpha1\nkind: SchedulingProfile\n\
                   metadata: {name: default}\nspec: {preferNewest: true}\n";
    check(
        &two_for_two(),
        &[Edit::Apply(Box::new(objects(profile).remove(0)))],
        expect![[r#"
            x: moved new (Preference: old fits too; new is preferred)
            y: moved old (Reserved: a/x has it)
        "#]],
    );
    check(
        &two_for_two(),
        &[set("claim/a/x:spec.resourceName=new")],
        expect![[r#"
            x: moved new (ResourceName: the claim names new)
            y: moved old (Reserved: a/x has it)
        "#]],
    );
    check(
        &two_for_two(),
        &[set("claim/a/y:spec.priority=7")],
        expect![[r#"
            x: moved new (Reserved: a/y has it)
            y: moved old (Preference: new fits too; old is preferred)
        "#]],
    );
}

#[test]
fn a_later_sharer_displaces_no_claim() {
    let profile = "apiVersion: conductor.io/v1alpha1\nkind: SchedulingProfile\n\
                   metadata: {name: default}\nspec: {preferNewest: true}\n";
    let sized = |rest: &str| {
        let capacity = "sharing: {maxClaims: 2}, capacity: {storage: 5Gi}";
        two_for_two()
            .replace("sharing: {maxClaims: 1}", capacity)
            .replace("spec: {engine: mysql}", &format!("spec: {{engine: mysql, {rest}}}"))
    };
    check(
        &sized("resources: {requests: {storage: 3Gi}}"),
        &[Edit::Apply(Box::new(objects(profile).remove(0)))],
        expect![[r#"
            x: moved new (Preference: old fits too; new is preferred)
            y: moved old (Capacity: it has storage 2Gi left, and 3Gi is requested)
        "#]],
    );
}

#[test]
fn a_manifest_applied_over_an_object_keeps_who_holds_it() {
    let mut db = objects(&resource("db", "engine: mysql, version: 8.0, reclaimPolicy: Retain"));
    check(&held("db", "x", "Delete"), &[Edit::Apply(Box::new(db.remove(0)))], expect![""]);
}

#[test]
fn edits_that_cannot_be_made_name_object_field_and_fix() {
    let state = held("db", "x", "Delete");
    for (edit, expected) in [
        (
            set("resource/nope:spec.version=1"),
            "there is no RelationalDatabase conductor-system/nope in the state",
        ),
        (set("claim/a/x:spec.engine.x=1"), "it leads through a value"),
        (set("claim/a/x:metadata.labels=1"), "`metadata.labels` is a number, not a mapping"),
        (
            set("resource/db:spec.capacity.storage=lots"),
            "then RelationalDatabase conductor-system/db cannot be read: spec.capacity.storage",
        ),
        (Edit::Copies { like: target("claim/a/x"), count: 99_999_999 }, "too many"),
        (Edit::Copies { like: target("namespace/a"), count: 1 }, "cannot be copied"),
    ] {
        let error = what_if(objects(&state), &[edit], &Options::default()).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    }
    for text in
        ["claim/a/x:metadata.name=y", "claim/a/x:spec.a", "claim/a/x", "pod/x:spec=1", "claim/a/x:spec.a=[1"]
    {
        assert!(Edit::read_set(text, "a", "conductor-system").is_err(), "{text}");
    }
}

#[test]
fn fit_counts_until_the_first_refusal() {
    let state = resource("db", "engine: mysql, capacity: {storage: 10Gi}, sharing: {maxClaims: 99}")
        + &claim("x", "spec: {engine: mysql, resources: {requests: {storage: 3Gi}}}");
    let found = fit(objects(&state), &target("claim/a/x"), 50, &Options::default()).unwrap();
    assert_eq!((found.fits, found.bound, found.provision, found.at_least), (2, 2, 0, false));
    assert!(found.limit.unwrap().message.contains("capacity"));
}

#[test]
fn fit_names_the_claims_whose_places_it_takes() {
    let state = resource("large", "engine: mysql, capacity: {storage: 10Gi}, sharing: {maxClaims: 2}")
        + &resource("small", "engine: mysql, capacity: {storage: 10Gi}")
        + &claim("x", "spec: {engine: mysql, priority: 5, resources: {requests: {storage: 1Gi}}}")
        + &claim("low", "spec: {engine: mysql, resources: {requests: {storage: 1Gi}}}");
    let found = fit(objects(&state), &target("claim/a/x"), 50, &Options::default()).unwrap();
    let displaced: Vec<&str> = found.displaced.iter().map(|d| d.claim.as_str()).collect();
    assert_eq!((found.fits, found.free, displaced), (2, 1, vec!["a/low"]));
    assert!(found.displaced[0].resource.is_some(), "and what it would have got");
    // A copy of the one that comes last takes nothing from other claims.
    let found = fit(objects(&state), &target("claim/a/low"), 50, &Options::default()).unwrap();
    assert_eq!((found.fits, found.free, found.displaced), (1, 1, Vec::new()));
}

#[test]
fn waste_is_reported_for_every_capacity() {
    let held = "claimRefs: [{namespace: a, name: x, uid: uid-x}]";
    let state =
        resource("db", &format!("engine: mysql, capacity: {{storage: 10Gi, connections: 100}}, {held}"))
            + "status: {phase: Bound}\n"
            + &claim(
                "x",
                "spec: {engine: mysql, resources: {requests: {storage: 10Gi, connections: 25}}}\n\
             status: {phase: Bound, resourceRef: {name: db}}",
            );
    let way = || Scenario { name: "s".to_owned(), objects: objects(&state), waiting: None };
    let found = compare(way(), way(), &Options::default()).a.waste_by_capacity;
    let reported: Vec<_> =
        found.iter().map(|(name, w)| (name.as_str(), w.left.as_str(), w.percent)).collect();
    assert_eq!(reported, [("connections", "75", 75), ("storage", "0", 0)]);
}

#[test]
fn copies_come_after_all_waiting_claims_with_unused_names() {
    // Neither has a time, and `x-copy-1` sorts before `y`.
    let state = resource("old", "engine: mysql, version: '8.0'")
        + &resource("new", "engine: mysql, version: '9.0'")
        + &claim("x", "spec: {engine: mysql}")
        + &claim("y", "spec: {engine: mysql}");
    let found = fit(objects(&state), &target("claim/a/x"), 5, &Options::default()).unwrap();
    assert_eq!((found.fits, found.tried), (0, 5));
    let one_left = state.clone() + &resource("more", "engine: mysql, version: '9.1'");
    let found = fit(objects(&one_left), &target("claim/a/x"), 5, &Options::default()).unwrap();
    assert_eq!((found.fits, found.places.len()), (1, 1));
    let taken = state + &claim("x-copy-1", "spec: {engine: oracle}");
    check(
        &taken,
        &[Edit::Copies { like: target("claim/a/x"), count: 2 }],
        expect![[r#"
            x-copy-2: added (Reserved: 0/2 resources fit: 2 reserved)
            x-copy-3: added (Reserved: 0/2 resources fit: 2 reserved)
        "#]],
    );
}

#[test]
fn size_is_the_least_number_that_serves_all_who_can_be_served() {
    let mut state = resource("db", "engine: mysql, capacity: {storage: 4Gi}, sharing: {maxClaims: 2}");
    for name in ["v", "w", "x", "y", "z"] {
        state += &claim(name, "spec: {engine: mysql, resources: {requests: {storage: 1Gi}}}");
    }
    state += &claim("never", "spec: {engine: oracle}");
    let found = size(&objects(&state), &target("resource/db"), &Options::default()).unwrap();
    assert_eq!((found.resources, found.waiting_before, found.waiting_after), (2, 4, 1));
    assert_eq!(found.waiting[0].claim, "a/never");
}

#[test]
fn a_narrower_class_is_reported_for_claims_it_has_served() {
    let class = |versions: &str| {
        format!(
            "---\napiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabaseClass\n\
             metadata: {{name: made, namespace: conductor-system}}\nengine: mysql\nversions: [{versions}]\n\
             template: {{apiVersion: x/v1, kind: Thing}}\n"
        )
    };
    let holder = "{namespace: a, name: x, uid: uid-x}";
    let state = class("'8', '9'")
        + &resource("rdb-x", &format!("engine: mysql, version: '9.1', class: made, claimRefs: [{holder}]"))
        + "status: {phase: Bound}\n"
        + &claim(
            "x",
            "spec: {class: made, version: '9'}\nstatus: {phase: Bound, resourceRef: {name: rdb-x}}",
        );
    let edited = objects(&class("'8'")).remove(0);
    let impact = class_impact(objects(&state), &edited, &Options::default()).unwrap();
    assert_eq!((impact.claims, impact.now.claims.len()), (1, 0), "who is bound stays bound");
    let [anew] = &impact.anew.claims[..] else { panic!("{:?}", impact.anew) };
    assert_eq!((anew.change.label(), anew.cause.rule.as_str()), ("waits", "Class"));
}
