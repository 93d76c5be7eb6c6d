//! Every field of a claim's spec, edited while the claim is bound: the edit takes effect, or the claim reports that it does
//! not. The fields come from the schema, so that none can be forgotten.

use crate::support::{CLAIM, Run, With, db, kept_for, makes, requests, world};
use conductor::api::{RelationalDatabaseClaim, crds};
use conductor::model::{Object, Slot};
use conductor::scheduler::TAKES_EFFECT;
use kube::Resource;
use serde_json::{Value, json};

/// The fields of a claim's spec, with their schemas.
fn fields() -> Vec<(String, Value)> {
    let plural = RelationalDatabaseClaim::plural(&());
    let crd = crds().into_iter().find(|crd| crd.spec.names.plural == plural).unwrap();
    let crd = serde_json::to_value(&crd).unwrap();
    let spec = crd.pointer("/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties").unwrap();
    spec.as_object().unwrap().clone().into_iter().collect()
}

/// A value of a field that no resource of these tests has.
fn another(field: &str, schema: &Value) -> Value {
    match (field, schema["type"].as_str()) {
        ("version", _) => json!("99"),
        ("resources", _) => json!({"requests": {"storage": "99Gi"}}),
        ("selector", _) => json!({"matchLabels": {"x": "y"}}),
        ("connection", _) => json!({"secretName": "x"}),
        (_, Some("string")) => json!("x"),
        (_, Some("boolean")) => json!(true),
        (_, Some("integer")) => json!(3),
        (_, Some("array")) => json!(["x"]),
        (_, Some("object")) => json!({"x": "y"}),
        other => panic!("a value for {other:?} is missing here"),
    }
}

/// Checks each field on claims that `bound` binds to the resource r.
fn check(bound: impl Fn() -> Run) {
    let unheard_of = ("unheard-of".to_owned(), json!({"type": "string"}));
    for (field, schema) in fields().into_iter().chain([unheard_of]) {
        let mut run = bound();
        assert_eq!((run.outcome("c").as_str(), run.message("c").as_str()), ("-> r", "bound to r"));
        run.edit_spec(CLAIM, "c", json!({&field: another(&field, &schema)}));
        assert_eq!(run.outcome("c"), "-> r", "{field}");
        let is_reported = run.message("c") != "bound to r" && run.notes("c").contains(&"NotAsAsked");
        let takes_effect = TAKES_EFFECT.iter().find(|(known, _)| *known == field);
        match takes_effect {
            Some((_, how)) => assert!(!how.is_empty() && !is_reported, "{field}: {}", run.message("c")),
            None => assert!(is_reported, "spec.{field} was edited in silence"),
        }
        // What was reported is in the status and survives a restart.
        let message = run.message("c");
        let mut run = run.restart();
        assert_eq!((run.harness.writes(), run.message("c")), (0, message), "{field}");
        if takes_effect.is_none() {
            run.edit_spec(CLAIM, "c", json!({&field: bound().body(CLAIM, "c")["spec"][&field]}));
            assert_eq!(run.message("c"), "bound to r", "{field} was edited back");
        }
    }
}

#[test]
fn no_field_of_a_bound_claim_is_edited_in_silence() {
    check(|| world().resource("r", db(5)).claim("c", requests(1)).settle());
}

#[test]
fn nor_where_the_resource_does_not_say_what_it_has() {
    check(|| world().resource("r", kept_for("c")).claim("c", json!({})).settle());
}

#[test]
fn an_edit_while_no_controller_runs_is_reported_by_the_next() {
    let mut run = world().resource("r", db(5)).claim("c", requests(1)).settle();
    let key = crate::support::claim_key("c");
    run.harness.world.edit(CLAIM, &key, |claim: &mut Object| claim.body["spec"]["priority"] = json!(7));
    let run = run.restart();
    let reported = "spec.priority was edited after the claim was bound: that has no effect any more";
    assert!(run.message("c").ends_with(reported), "{}", run.message("c"));
}

#[test]
fn an_edited_resource_name_is_restored_and_an_event_says_so() {
    let scene = world().resource("r", db(5)).resource("s", db(50)).claim("c", requests(1));
    for edit in [json!("s"), json!(null)] {
        let mut run = scene.clone().settle();
        run.edit_spec(CLAIM, "c", json!({"resourceName": edit}));
        assert_eq!(run.body(CLAIM, "c")["spec"]["resourceName"], "r");
        assert_eq!(run.notes("c"), ["Bound", "ResourceNameRestored"]);
    }
}

#[test]
fn a_claim_that_becomes_exclusive_beside_others_hears_of_them() {
    let shared = db(10).with(json!({"sharing": {"maxClaims": 3}}));
    let mut run = world().resource("r", shared).claim("a", requests(2)).claim("b", requests(2)).settle();
    run.edit_spec(CLAIM, "a", json!({"exclusive": true}));
    assert_eq!(run.notes("a"), ["Bound", "SharedWithOthers"]);
    run.delete(CLAIM, "b");
    run.edit_spec(CLAIM, "a", json!({"exclusive": false}));
    run.edit_spec(CLAIM, "a", json!({"exclusive": true}));
    assert_eq!(run.notes("a"), ["Bound", "SharedWithOthers"]);
}

#[test]
fn parameters_are_reported_one_by_one() {
    let mut class = makes("Delete");
    class["template"]["spec"] = json!({"size": "${parameters.size}"});
    let requested = requests(1).with(json!({"class": "fast", "parameters": {"size": "small", "zone": "a"}}));
    let mut run = world().class("fast", class).claim("c", requested).uid("a").settle();
    run.becomes_available("rdb-a");
    run.edit_spec(CLAIM, "c", json!({"parameters": {"size": "small", "zone": "b"}}));
    assert!(run.message("c").contains("spec.parameters.zone was edited"), "{}", run.message("c"));
    assert!(!run.message("c").contains("parameters.size"), "{}", run.message("c"));
}

#[test]
fn a_database_on_a_server_follows_what_it_can_and_the_rest_is_reported() {
    let server = db(50).with(json!({"sharing": {"maxClaims": 9}, "connection": {
        "host": "h", "port": 5432, "database": "d", "username": "u", "password": "${secret.pw}", "secretRef": "login",
    }}));
    let of = |parameters: Value| json!({"parameters": parameters});
    let scene =
        world().resource("r", server).annotated(json!({"database.conductor.io/server": "DatabaseServer/r"}));
    let requested = requests(1).with(of(json!({"databaseName": "shop"})));
    let mut run = scene.clone().claim("c", requested.clone()).settle();
    // Nothing is published yet: a name that was refused can still be corrected.
    run.edit_spec(CLAIM, "c", of(json!({"databaseName": "store", "userName": "app"})));
    assert_eq!(run.message("c"), "bound to r");
    let pw = k8s_openapi::ByteString(b"pw".to_vec());
    let login = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": {"pw": pw},
        "metadata": {"namespace": "conductor-system", "name": "login", "labels": {"conductor.io/publishable": "true"}}});
    run.harness.touch_parts(|world| [world.put_side(Slot::Secret, login)]);
    assert_eq!(run.body(CLAIM, "c")["status"]["binding"]["name"], "c");
    run.edit_spec(
        CLAIM,
        "c",
        of(json!({"databaseName": "store", "userName": "app", "schemas": ["a"], "reclaimPolicy": "Retain"})),
    );
    assert_eq!(run.message("c"), "bound to r");
    let listed = |schemas: Value| of(json!({"databaseName": "store", "userName": "app", "schemas": schemas}));
    let bound = run.body(CLAIM, "c")["status"]["boundSpec"].as_str().unwrap_or_default().to_owned();
    run.edit(CLAIM, "c", |claim| {
        claim.body["status"]["boundSpec"] = json!(format!("{bound} parameters.schemas.a=00000000"));
    });
    run.edit_spec(CLAIM, "c", listed(json!(["b"])));
    let reported = "spec.parameters.schemas.a was removed after the claim was bound: what exists of it in the database stays";
    assert!(run.message("c").ends_with(reported), "{}", run.message("c"));
    run.edit_spec(CLAIM, "c", listed(json!(["b", "a"])));
    assert_eq!(run.message("c"), "bound to r");
    run.edit_spec(CLAIM, "c", of(json!({"databaseName": "other", "userName": null})));
    for field in ["databaseName", "userName", "schemas.a"] {
        let reported = format!("spec.parameters.{field} was ");
        assert!(run.message("c").contains(&reported), "{}", run.message("c"));
    }
    let typo = scene.claim("c", requested.with(of(json!({"databseName": "shop"})))).settle();
    assert!(typo.message("c").contains("spec.parameters.databseName is not used"), "{}", typo.message("c"));
}
