//! The connection in the claim's namespace: where it comes from, what an application finds, what keeps a claim from
//! Ready, and that it goes with the claim. Nothing but the published Secret ever holds a password.

use crate::support::{CLAIM, Driver, RESOURCE, Run, With, claim_key, db, ready, requests, world};
use conductor::action::{Action, Change};
use conductor::event::{Event, PublishEvent};
use conductor::lifecycle::decode;
use conductor::model::{ObjectKey, PartKind, Slot};
use serde_json::{Value, json};
use std::collections::BTreeMap;

const PASSWORD: &str = "p/ss w:rd@7";

/// `base` with `more` over it, at every depth; null takes away.
fn over(mut base: Value, more: Value) -> Value {
    let Value::Object(fields) = more else { return more };
    for (key, value) in fields {
        match value {
            Value::Null => drop(base.as_object_mut().and_then(|fields| fields.remove(&key))),
            value => base[&key] = over(base[&key].take(), value),
        }
    }
    base
}

/// A Secret in the system namespace.
fn secret(name: &str, more: Value, data: &[(&str, &str)]) -> Value {
    let encode = |text: &str| json!(k8s_openapi::ByteString(text.as_bytes().to_vec()));
    let data: BTreeMap<&str, Value> = data.iter().map(|(key, text)| (*key, encode(text))).collect();
    let whole = json!({"apiVersion": "v1", "kind": "Secret", "type": "Opaque", "data": data,
        "metadata": {"namespace": "conductor-system", "name": name,
                     "labels": {"conductor.io/publishable": "true"}}});
    over(whole, more)
}

fn admin() -> Value {
    secret("admin", json!({}), &[("user", "app"), ("pw", PASSWORD)])
}

/// How a database that stands somewhere is reached.
fn stands() -> Value {
    db(5).with(json!({"connection": {
        "host": "db.example.com", "port": 5432, "database": "orders",
        "username": "${secret.user}", "password": "${secret.pw}", "secretRef": "admin",
    }}))
}

fn bound_with(spec: Value, source: Option<Value>) -> Run {
    let mut run = world().resource("r", spec).claim("c", requests(1)).settle();
    source.into_iter().for_each(|secret| put(&mut run, secret));
    run
}

fn put(run: &mut Run, object: Value) {
    run.harness.touch_parts(|world| [world.put_side(Slot::Secret, object)]);
}

fn found(run: &Run, slot: Slot) -> Option<&Value> {
    run.harness.world.side(slot, &claim_key("c"))
}

fn content(run: &Run) -> BTreeMap<String, String> {
    found(run, Slot::Secret).map(decode).unwrap_or_default()
}

fn is_ready(run: &Run) -> String {
    let conditions = run.body(CLAIM, "c")["status"]["conditions"].as_array().cloned().unwrap_or_default();
    let ready = conditions.iter().find(|c| c["type"] == "Ready").cloned().unwrap_or_default();
    let text = |field: &str| ready[field].as_str().unwrap_or_default().to_owned();
    format!("{} {}: {}", text("status"), text("reason"), text("message"))
}

#[test]
fn an_application_finds_everything_that_it_needs() {
    let run = bound_with(stands(), Some(admin()));
    assert_eq!(is_ready(&run), "True ConnectionPublished: published as Secret c");
    assert_eq!(run.body(CLAIM, "c")["status"]["binding"], json!({"name": "c"}));
    let secret = found(&run, Slot::Secret).expect("it is published");
    assert_eq!(secret["type"], "servicebinding.io/postgresql");
    let expected = [
        ("database", "orders"),
        ("host", "db.example.com"),
        ("password", PASSWORD),
        ("port", "5432"),
        ("provider", "conductor"),
        ("type", "postgresql"),
        ("uri", "postgresql://app:p%2Fss%20w%3Ard%407@db.example.com:5432/orders"),
        ("username", "app"),
    ];
    let expected: BTreeMap<String, String> =
        expected.iter().map(|(k, v)| ((*k).into(), (*v).into())).collect();
    assert_eq!(content(&run), expected);
    let config = &found(&run, Slot::Config).expect("it is published")["data"];
    let open = json!({"database": "orders", "host": "db.example.com", "port": "5432", "provider": "conductor",
        "service": format!("c.{}.svc", claim_key("c").namespace), "type": "postgresql"});
    assert_eq!(*config, open);
    let service = &found(&run, Slot::Service).expect("it is published")["spec"];
    assert_eq!(
        (&service["type"], &service["externalName"]),
        (&json!("ExternalName"), &json!("db.example.com"))
    );
}

#[test]
fn an_address_gets_a_service_with_endpoints_and_one_of_this_machine_none() {
    let at = |host: &str| bound_with(over(stands(), json!({"connection": {"host": host}})), Some(admin()));
    let run = at("10.1.2.3");
    assert_eq!(found(&run, Slot::Service).expect("it is published")["spec"]["type"], "ClusterIP");
    let slice = found(&run, Slot::Endpoints).expect("it is published");
    assert_eq!(slice["endpoints"][0]["addresses"][0], "10.1.2.3");
    assert_eq!(slice["metadata"]["labels"]["kubernetes.io/service-name"], "c");
    assert_eq!(found(&run, Slot::Service).expect("it is published")["spec"].get("ipFamilyPolicy"), None);
    let run = at("127.0.0.1");
    assert!(is_ready(&run).starts_with("True"), "{}", is_ready(&run));
    assert_eq!((found(&run, Slot::Service), found(&run, Slot::Endpoints)), (None, None));
}

#[test]
fn an_address_of_the_other_family_gets_a_service_of_both() {
    let host = json!({"connection": {"host": "2001:db8::7"}});
    let run = bound_with(over(stands(), host), Some(admin()));
    assert_eq!(found(&run, Slot::Endpoints).expect("it is published")["addressType"], "IPv6");
    let service = found(&run, Slot::Service).expect("it is published");
    assert_eq!(service["spec"]["ipFamilyPolicy"], "PreferDualStack");
}

#[test]
fn a_claim_may_name_its_secret_and_another_name_takes_the_place_of_the_first() {
    let claim = requests(1).with(json!({"connection": {"secretName": "login"}}));
    let mut run = world().resource("r", stands()).claim("c", claim).settle();
    put(&mut run, admin());
    assert_eq!(run.body(CLAIM, "c")["status"]["binding"]["name"], "login");
    run.edit_spec(CLAIM, "c", json!({"connection": {"secretName": "other"}}));
    let names: Vec<String> = published(&run).into_iter().filter(|name| name.starts_with("Secret")).collect();
    assert_eq!(names, ["Secret other"]);
    assert_eq!(run.body(CLAIM, "c")["status"]["binding"]["name"], "other");
}

/// Everything in the claim's namespace.
fn published(run: &Run) -> Vec<String> {
    let namespace = claim_key("c").namespace;
    let own = run.harness.world.sides().filter(|((_, key), _)| key.namespace == namespace);
    own.map(|((slot, key), _)| format!("{} {}", slot.kind(), key.name)).collect()
}

#[test]
fn what_is_missing_keeps_a_claim_from_ready_and_is_named() {
    for (connection, source, reported) in [
        (json!({"host": null}), admin(), "lacks host, uri"),
        (json!({}), secret("admin", json!({}), &[("user", "app")]), "lacks password, uri"),
        (json!({"port": "db"}), admin(), "connection.port is no port"),
        (json!({"port": ["a"]}), admin(), "connection.port is a list or a map"),
        (json!({"type": "a/b"}), admin(), "connection.type cannot be the type of a Secret"),
        (json!({"secretRef": "nowhere"}), admin(), "Secret nowhere does not exist yet"),
    ] {
        let run = bound_with(over(stands(), json!({"connection": connection})), Some(source));
        let ready = is_ready(&run);
        assert!(ready.starts_with("False ConnectionIncomplete") && ready.contains(reported), "{ready}");
        assert_eq!(published(&run), Vec::<String>::new());
        assert_eq!(run.body(CLAIM, "c")["status"]["phase"], "Bound");
    }
}

#[test]
fn a_resource_that_does_not_say_how_it_is_reached_says_what_to_do() {
    let run = bound_with(db(5), None);
    assert!(is_ready(&run).contains("resource r does not say how it is reached: give it spec.connection"));
}

#[test]
fn an_address_of_the_sources_own_is_taken_over_unless_the_connection_leads_elsewhere() {
    let address = "postgresql://db.example.com/orders?target_session_attrs=any";
    let whole = [
        ("host", "db.example.com"),
        ("port", "5432"),
        ("username", "app"),
        ("password", "p"),
        ("database", "orders"),
        ("uri", address),
    ];
    let reached = |connection: Value| {
        let run = bound_with(
            db(5).with(json!({ "connection": connection })),
            Some(secret("admin", json!({}), &whole)),
        );
        content(&run).remove("uri").unwrap_or_else(|| is_ready(&run))
    };
    assert_eq!(reached(json!({"secretRef": "admin"})), address);
    assert_eq!(reached(json!({"secretRef": "admin", "host": "db.example.com"})), address);
    let elsewhere = reached(json!({"secretRef": "admin", "host": "proxy.example.com"}));
    assert_eq!(elsewhere, "postgresql://app:p@proxy.example.com:5432/orders");
}

#[test]
fn what_comes_later_is_published_then() {
    let mut run = bound_with(stands(), None);
    assert!(is_ready(&run).contains("Secret admin does not exist yet"), "{}", is_ready(&run));
    put(&mut run, secret("admin", json!({}), &[("user", "app")]));
    assert!(is_ready(&run).contains("lacks password"), "{}", is_ready(&run));
    put(&mut run, admin());
    assert!(is_ready(&run).starts_with("True"), "{}", is_ready(&run));
}

#[test]
fn a_source_change_reaches_the_application_and_changes_the_hash() {
    let mut run = bound_with(stands(), Some(admin()));
    let hash = |run: &Run| {
        found(run, Slot::Secret).expect("there")["metadata"]["annotations"]["conductor.io/content-hash"]
            .clone()
    };
    let before = hash(&run);
    put(&mut run, secret("admin", json!({"metadata": {"uid": "s-2"}}), &[("user", "app"), ("pw", "next")]));
    assert_eq!(content(&run)["password"], "next");
    assert_ne!(hash(&run), before);
    assert!(is_ready(&run).starts_with("True"), "{}", is_ready(&run));
    run.edit_spec(RESOURCE, "r", over(stands(), json!({"connection": {"host": "new.example.com"}})));
    assert_eq!(content(&run)["host"], "new.example.com");
}

/// All messages that the claim's condition Ready had, in order.
fn said(driver: &mut Driver) -> Vec<String> {
    let status = |driver: &Driver| {
        let claim = driver.world.get(CLAIM, &claim_key("c")).expect("it is there");
        let conditions = claim.body["status"]["conditions"].as_array().cloned().unwrap_or_default();
        conditions.iter().find(|c| c["type"] == "Ready").map(|c| c["status"].to_string()).unwrap_or_default()
    };
    let mut said = vec![status(driver)];
    loop {
        if let Some(action) = driver.outbox.pop_front() {
            driver.carry_out(action);
        } else if let Some(event) = driver.inbox.pop_front() {
            driver.deliver_event(event);
        } else {
            return said;
        }
        let now = status(driver);
        if said.last() != Some(&now) {
            said.push(now);
        }
    }
}

#[test]
fn a_publication_that_failed_is_not_called_ready_while_it_is_tried_again() {
    let mut run = bound_with(stands(), Some(admin()));
    run.edit_spec(RESOURCE, "r", over(stands(), json!({"connection": {"host": "no host"}})));
    assert!(is_ready(&run).starts_with("False ConnectionIncomplete"), "{}", is_ready(&run));
    let revision = |run: &Run| run.find(CLAIM, "c").and_then(|claim| claim.metadata.resource_version.clone());
    let before = (revision(&run), run.harness.notes().len());
    run.harness.advance(3_600_000);
    assert!(is_ready(&run).starts_with("False ConnectionIncomplete"), "{}", is_ready(&run));
    assert_eq!((revision(&run), run.harness.notes().len()), before, "trying again says nothing");
    // Nor while something else is tried, which is as wrong.
    run.edit_spec(RESOURCE, "r", over(stands(), json!({"connection": {"host": "nor this"}})));
    assert_eq!(revision(&run), before.0);
    // A controller that starts anew does not know what went wrong: the claim says what it said.
    let mut driver = Driver::start(run.harness.world);
    assert_eq!(said(&mut driver), ["\"False\""]);
    let repaired = driver.world.edit(RESOURCE, &ObjectKey::new("conductor-system", "r"), |resource| {
        resource.body["spec"]["connection"]["host"] = json!("db2.example.com");
    });
    driver.deliver_event(repaired.expect("it is there"));
    assert_eq!(said(&mut driver), ["\"False\"", "\"True\""]);
}

#[test]
fn what_the_api_changes_in_no_object_is_made_anew() {
    let edits = [
        (json!({"host": "10.0.0.7"}), json!({"host": "2001:db8::7"}), Slot::Endpoints, "addressType"),
        (json!({"host": "2001:db8::7"}), json!({"host": "10.0.0.7"}), Slot::Endpoints, "addressType"),
        (json!({"type": "postgresql"}), json!({"type": "cockroach"}), Slot::Secret, "type"),
    ];
    for (before, after, slot, field) in edits {
        let spec = |connection: &Value| over(stands(), json!({"connection": connection}));
        let mut run = bound_with(spec(&before), Some(admin()));
        let old = found(&run, slot).expect("it is published").clone();
        run.edit_spec(RESOURCE, "r", spec(&after));
        let new = found(&run, slot).expect("it is published").clone();
        assert_ne!((&new[field], &new["metadata"]["uid"]), (&old[field], &old["metadata"]["uid"]), "{after}");
        assert!(is_ready(&run).starts_with("True"), "{after}: {}", is_ready(&run));
        // A crash between the two calls left a gap, and the restart fills it.
        let mut state = sides(&run);
        state.remove(&(slot, claim_key("c")));
        set_sides(&mut run, &state);
        let run = run.restart();
        assert!(is_ready(&run).starts_with("True"), "{after}: {}", is_ready(&run));
        assert_eq!(found(&run, slot).expect("it is published")[field], new[field], "{after}");
    }
}

#[test]
fn a_secret_made_immutable_is_recreated() {
    let mut run = bound_with(stands(), Some(admin()));
    let mut locked = found(&run, Slot::Secret).expect("it is published").clone();
    locked["immutable"] = json!(true);
    put(&mut run, locked);
    run.edit_spec(RESOURCE, "r", over(stands(), json!({"connection": {"host": "new.example.com"}})));
    assert_eq!(content(&run)["host"], "new.example.com");
    assert!(is_ready(&run).starts_with("True"), "{}", is_ready(&run));
}

#[test]
fn a_host_in_capitals_gets_a_service_too() {
    let run = bound_with(over(stands(), json!({"connection": {"host": "DB.Example.com"}})), Some(admin()));
    assert_eq!(
        found(&run, Slot::Service).expect("it is published")["spec"]["externalName"],
        "db.example.com"
    );
    assert_eq!(content(&run)["host"], "DB.Example.com", "an application reads what its author wrote");
    let run = bound_with(over(stands(), json!({"connection": {"host": "LocalHost"}})), Some(admin()));
    assert_eq!(found(&run, Slot::Service), None);
}

#[test]
fn nothing_is_written_when_nothing_changes() {
    let mut run = bound_with(stands(), Some(admin()));
    let writes = run.harness.writes();
    run.harness.advance(3_600_000);
    assert_eq!(run.harness.writes(), writes);
    let run = run.restart();
    assert_eq!(run.harness.writes(), 0);
}

#[test]
fn edits_of_published_objects_are_reverted() {
    let mut run = bound_with(stands(), Some(admin()));
    let before = content(&run);
    for slot in [Slot::Config, Slot::Service] {
        run.harness.touch_parts(|world| world.remove_side(slot, &claim_key("c")));
        assert!(found(&run, slot).is_some(), "{}", slot.kind());
    }
    // Secrets are not watched: they are resynced in turn, and when their claim changes.
    type Resync = fn(&mut Run);
    let resyncs: [(&str, Resync); 2] = [("in turn", resync), ("when touched", touch)];
    for (when, resync) in resyncs {
        let mut edited = found(&run, Slot::Secret).expect("it is published").clone();
        edited["data"]["host"] = json!(k8s_openapi::ByteString(b"evil".to_vec()));
        put(&mut run, edited);
        assert_ne!(content(&run), before, "{when}");
        resync(&mut run);
        assert_eq!(content(&run), before, "{when}");
        run.harness.touch_parts(|world| world.remove_side(Slot::Secret, &claim_key("c")));
        assert_eq!(found(&run, Slot::Secret), None, "{when}");
        resync(&mut run);
        assert_eq!(content(&run), before, "{when}");
        assert!(is_ready(&run).starts_with("True"), "{}", is_ready(&run));
    }
}

/// One resync of published objects.
fn resync(run: &mut Run) {
    let turns = (0..4).map(|turn| Event::Publish(PublishEvent::Recheck { turn, of: 4 }));
    run.harness.touch_parts(|_| turns);
}

/// A user edits an irrelevant field of the claim.
fn touch(run: &mut Run) {
    run.harness.edit(CLAIM, &claim_key("c"), |claim| {
        let annotations = claim.metadata.annotations.get_or_insert_default();
        annotations.insert("example.com/looked".to_owned(), annotations.len().to_string());
    });
}

#[test]
fn looking_at_what_is_well_writes_nothing() {
    let mut run = bound_with(stands(), Some(admin()));
    let writes = run.harness.writes();
    resync(&mut run);
    touch(&mut run);
    assert_eq!(run.harness.writes(), writes);
}

fn named(secret: &str) -> Value {
    requests(1).with(json!({"connection": {"secretName": secret}}))
}

/// Everything in the claim's namespace, as it is.
fn sides(run: &Run) -> BTreeMap<(Slot, ObjectKey), Value> {
    let namespace = claim_key("c").namespace;
    let own = run.harness.world.sides().filter(|((_, key), _)| key.namespace == namespace);
    own.map(|(place, object)| (place.clone(), object.clone())).collect()
}

/// Puts the claim's namespace into a state without an event.
fn set_sides(run: &mut Run, wanted: &BTreeMap<(Slot, ObjectKey), Value>) {
    for (slot, key) in sides(run).into_keys() {
        run.harness.world.remove_side(slot, &key);
    }
    for ((slot, _), object) in wanted {
        run.harness.world.put_side(*slot, object.clone());
    }
}

#[test]
fn a_crash_at_any_write_of_another_name_forgets_no_secret() {
    let place = |slot, name: &str| (slot, claim_key(name));
    let start = || {
        let mut run = world().resource("r", stands()).claim("c", named("login")).settle();
        put(&mut run, admin());
        run
    };
    let before = sides(&start());
    let mut renamed = start();
    renamed.edit_spec(CLAIM, "c", json!({"connection": {"secretName": "other"}}));
    let after = sides(&renamed);
    // Service, ConfigMap, the new Secret, in this order; then the old one goes.
    let steps = [place(Slot::Service, "c"), place(Slot::Config, "c"), place(Slot::Secret, "other")];
    for (crash, keeps_status) in (0..=steps.len()).flat_map(|n| [(n, true), (n, false)]) {
        let mut run = start();
        let mut state = before.clone();
        steps[..crash].iter().for_each(|step| drop(state.insert(step.clone(), after[step].clone())));
        set_sides(&mut run, &state);
        // While the controller is down, the claim requests another name; its status may be any that was written.
        run.harness.world.edit(CLAIM, &claim_key("c"), |claim| {
            claim.body["spec"]["connection"]["secretName"] = json!("other");
            if !keeps_status {
                claim.body["status"]["binding"] = Value::Null;
            }
        });
        let run = run.restart();
        let names: Vec<String> =
            sides(&run).into_keys().map(|(slot, key)| format!("{} {}", slot.kind(), key.name)).collect();
        assert_eq!(
            names,
            ["Service c", "ConfigMap c", "Secret other"],
            "crash after {crash}, status {keeps_status}"
        );
        assert_eq!(run.body(CLAIM, "c")["status"]["binding"]["name"], "other");
    }
}

#[test]
fn a_crash_at_any_write_of_a_withdrawal_leaves_nothing() {
    let places = [(Slot::Secret, "login"), (Slot::Service, "c"), (Slot::Config, "c")];
    for (gone, keeps_status) in (0..=places.len()).flat_map(|n| [(n, true), (n, false)]) {
        let mut run = world().resource("r", stands()).claim("c", named("login")).settle();
        put(&mut run, admin());
        let mut state = sides(&run);
        places[..gone].iter().for_each(|(slot, name)| drop(state.remove(&(*slot, claim_key(name)))));
        set_sides(&mut run, &state);
        run.harness.world.edit(CLAIM, &claim_key("c"), |claim| {
            claim.body["spec"]["connection"] = Value::Null;
            if !keeps_status {
                claim.body["status"]["binding"] = Value::Null;
            }
        });
        run.harness.world.delete(CLAIM, &claim_key("c"));
        let run = run.restart();
        assert_eq!(published(&run), Vec::<String>::new(), "crash after {gone}, status {keeps_status}");
        assert_eq!(run.find(CLAIM, "c"), None);
    }
}

#[test]
fn the_record_is_taken_back_after_the_last_secret() {
    let run = bound_with(stands(), Some(admin()));
    let mut driver = Driver::start(run.harness.world);
    driver.run();
    let deleted = driver.world.delete(CLAIM, &claim_key("c")).expect("it is there");
    driver.deliver_event(deleted);
    let withdrawn = |driver: &Driver| -> Vec<Slot> {
        let slots = driver.sent.iter().filter_map(|action| match action {
            Action::Withdraw { slot, .. } => Some(*slot),
            _ => None,
        });
        slots.collect()
    };
    driver.run_holding_writes();
    assert_eq!(withdrawn(&driver), [Slot::Service, Slot::Secret]);
    driver.run();
    assert_eq!(withdrawn(&driver), [Slot::Service, Slot::Secret, Slot::Config]);
}

/// The names on record.
fn record(run: &Run) -> String {
    let config = found(run, Slot::Config).expect("it is published");
    let names = &config["metadata"]["annotations"]["conductor.io/published-secrets"];
    names.as_str().unwrap_or_default().to_owned()
}

#[test]
fn a_name_stays_on_record_until_nothing_is_there_under_it() {
    let mut run = world().resource("r", stands()).claim("c", named("one")).settle();
    put(&mut run, admin());
    assert_eq!(record(&run), "one");
    run.edit_spec(CLAIM, "c", json!({"connection": {"secretName": "two"}}));
    assert_eq!(record(&run), "two,one");
    run.edit_spec(CLAIM, "c", json!({"connection": {"secretName": "three"}}));
    assert_eq!(record(&run), "three,two");
}

#[test]
fn who_may_not_read_secrets_leaves_connections_as_they_are_and_lets_claims_go() {
    let run = bound_with(stands(), Some(admin()));
    let mut driver = Driver::start(run.harness.world);
    let refuse = |driver: &mut Driver| {
        while let Some(at) = driver.outbox.iter().position(|a| matches!(a, Action::ReadSecret { .. })) {
            let Some(Action::ReadSecret { claim, key }) = driver.outbox.remove(at) else { continue };
            driver.deliver_event(Event::Publish(PublishEvent::SecretRefused { claim, key }));
        }
    };
    refuse(&mut driver);
    driver.run();
    // Its connection is complete, so nothing is written.
    assert!(driver.sent.iter().all(|action| action.write_id().is_none()), "{:?}", driver.sent);
    driver.world.remove_side(Slot::Secret, &claim_key("c"));
    let deleted = driver.world.delete(CLAIM, &claim_key("c")).expect("it is there");
    driver.deliver_event(deleted);
    refuse(&mut driver);
    driver.run();
    assert_eq!(driver.world.get(CLAIM, &claim_key("c")), None);
}

#[test]
fn an_object_that_is_not_ours_is_never_touched() {
    for slot in [Slot::Secret, Slot::Config, Slot::Service] {
        let mut run = world().resource("r", stands()).settle();
        let key = claim_key("c");
        let theirs =
            json!({"metadata": {"namespace": &*key.namespace, "name": &*key.name}, "data": {"a": "Yg=="}});
        run.harness.touch_parts(|world| [world.put_side(slot, theirs)]);
        let before = found(&run, slot).cloned();
        put(&mut run, admin());
        run.put(crate::support::claim("c", requests(1)));
        assert!(is_ready(&run).starts_with("False SecretConflict"), "{}", is_ready(&run));
        assert!(is_ready(&run).contains(slot.kind()), "{}", is_ready(&run));
        run.harness.advance(600_000);
        assert_eq!(found(&run, slot).cloned(), before);
        run.harness.touch_parts(|world| world.remove_side(slot, &key));
        run.harness.advance(600_000);
        assert!(is_ready(&run).starts_with("True"), "{}", is_ready(&run));
        // And what is theirs stays when the claim goes.
        run.delete(CLAIM, "c");
        assert_eq!(published(&run), Vec::<String>::new());
    }
}

#[test]
fn it_goes_with_the_claim_before_the_resource_is_released() {
    let mut run = bound_with(stands(), Some(admin()));
    assert_eq!(published(&run).len(), 3);
    run.delete(CLAIM, "c");
    assert_eq!(published(&run), Vec::<String>::new());
    assert_eq!(run.find(CLAIM, "c"), None);
    assert!(run.harness.world.side(Slot::Secret, &ObjectKey::new("conductor-system", "admin")).is_some());
}

#[test]
fn a_secret_of_another_type_or_owner_is_not_published() {
    let named = |more: Value| bound_with(stands(), Some(over(admin(), more)));
    let foreign = json!({"metadata": {"labels": {"conductor.io/publishable": "no"}}});
    for (more, reported) in [
        (json!({"type": "kubernetes.io/service-account-token"}), "which is never published"),
        (json!({"type": "kubernetes.io/tls"}), "which is never published"),
        (json!({"type": "kubernetes.io/dockerconfigjson"}), "which is never published"),
        (json!({"type": "bootstrap.kubernetes.io/token"}), "which is never published"),
        (json!({"type": "helm.sh/release.v1"}), "which is never published"),
        (foreign.clone(), "does not belong to resource r"),
        (
            over(
                foreign,
                json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "X", "name": "x", "uid": "x"}]}}),
            ),
            "does not belong to resource r",
        ),
    ] {
        let run = named(more);
        let ready = is_ready(&run);
        assert!(ready.starts_with("False SecretNotAllowed") && ready.contains(reported), "{ready}");
        assert_eq!(published(&run), Vec::<String>::new());
    }
}

#[test]
fn a_secret_that_the_implementation_owns_needs_no_label() {
    let class = json!({
        "reclaimPolicy": "Delete",
        "template": {"apiVersion": "example.com/v1", "kind": "Instance"},
        "connection": {
            "host": "${objects.main.status.host}", "port": "${objects.main.status.port}",
            "database": "${claim.metadata.name}", "provider": "example",
            "secretRef": {"name": "${objects.main.metadata.name}-app"},
            "username": "${secret.username}", "password": "${secret.password}",
        },
    });
    let mut run = world().class("k", class).claim("c", requests(5).with(json!({"class": "k"}))).settle();
    let part = run.harness.world.parts().next().expect("it is made").clone();
    let key = part.key();
    run.harness.touch_parts(|world| world.set_part_status(&key, ready()));
    assert!(is_ready(&run).contains("host (objects.main.status.host)"), "{}", is_ready(&run));
    let status = ready().with(json!({"host": "db-1.example.com", "port": 6432}));
    run.harness.touch_parts(|world| world.set_part_status(&key, status));
    assert!(is_ready(&run).contains("-app does not exist yet"), "{}", is_ready(&run));
    let owner = json!({"metadata": {"labels": null, "ownerReferences": [
        {"apiVersion": "example.com/v1", "kind": "Instance", "name": &*key.name, "uid": part.metadata.uid},
    ]}});
    put(&mut run, secret(&format!("{}-app", key.name), owner, &[("username", "u"), ("password", PASSWORD)]));
    assert!(is_ready(&run).starts_with("True"), "{}", is_ready(&run));
    let content = content(&run);
    assert_eq!((content["host"].as_str(), content["database"].as_str()), ("db-1.example.com", "c"));
    run.harness.touch_parts(|world| {
        world.set_part_status(&key, ready().with(json!({"host": "moved.example.com", "port": 1})))
    });
    assert_eq!(found(&run, Slot::Service).expect("there")["spec"]["externalName"], "moved.example.com");
}

#[test]
fn a_plain_text_password_is_refused_and_not_repeated() {
    let run = bound_with(over(stands(), json!({"connection": {"password": PASSWORD}})), Some(admin()));
    assert!(is_ready(&run).contains("connection.password") && is_ready(&run).contains("is in clear text"));
    assert!(!is_ready(&run).contains(PASSWORD));
}

#[test]
fn no_password_is_anywhere_but_in_the_secrets() {
    let run = bound_with(stands(), Some(admin()));
    let encoded = json!(k8s_openapi::ByteString(PASSWORD.as_bytes().to_vec()));
    let hidden = [PASSWORD, "p%2Fss%20w%3Ard%407", encoded.as_str().unwrap_or_default()];
    let mut seen: Vec<String> = run.harness.world.objects().map(|o| o.to_json().to_string()).collect();
    let open = run.harness.world.sides().filter(|((slot, _), _)| *slot != Slot::Secret);
    seen.extend(open.map(|(_, object)| object.to_string()));
    seen.extend(run.harness.notes().iter().map(|note| format!("{note:?}")));
    seen.push(format!("{:?}", run.harness.engine));
    for text in seen {
        assert!(!hidden.iter().any(|secret| text.contains(secret)), "{text}");
    }
}

#[test]
fn a_claims_record_has_low_priority_unless_its_connection_waits() {
    let recorded = |spec: Value, source: Option<Value>| {
        let mut world = world().resource("r", spec).claim("c", requests(1)).into_world();
        source.into_iter().for_each(|secret| drop(world.put_side(Slot::Secret, secret)));
        let mut driver = Driver::start(world);
        driver.run();
        let record = driver.sent.iter().find_map(|action| match action {
            Action::Write(write) if matches!(write.change, Change::ClaimSpec { .. }) => Some(write.may_wait),
            _ => None,
        });
        record.expect("what it got is recorded")
    };
    assert!(recorded(db(5), None), "no claim waits for it");
    assert!(
        !recorded(stands(), Some(admin())),
        "a connection is published only for a claim that is protected"
    );
}

#[test]
fn a_controller_that_starts_anew_says_nothing_of_objects_that_it_has_not_seen_yet() {
    let template =
        json!({"apiVersion": "postgresql.cnpg.io/v1", "kind": "Cluster", "spec": {"instances": 1}});
    let class = json!({"reclaimPolicy": "Delete", "template": template});
    let mut run =
        world().class("made", class).claim("c", requests(1).with(json!({"class": "made"}))).settle();
    run.harness.touch_parts(|world| [world.install(&PartKind::new("postgresql.cnpg.io/v1", "Cluster"))]);
    let made = run.resources().remove(0);
    run.part_says(&made, json!({"conditions": [{"type": "Ready", "status": "True"}]}));
    assert!(is_ready(&run).contains("not known yet: host"), "{}", is_ready(&run));
    let run = run.restart();
    assert!(is_ready(&run).contains("not known yet: host"), "{}", is_ready(&run));
    assert_eq!(run.harness.writes(), 0);
}
