//! Deletions in a replay that goes on from its own decisions: an object goes as it would in a cluster, once its finalizers
//! are gone, and not because another history let it go.

use super::*;
use conductor_simulator::replay::replay_to_end;

fn mysql(storage: &str, more: Value) -> Value {
    let mut spec = json!({"engine": "mysql", "capacity": {"storage": storage}});
    for (field, value) in more.as_object().into_iter().flatten() {
        spec[field] = value.clone();
    }
    spec
}

fn claims_mysql() -> Value {
    json!({"engine": "mysql", "resources": {"requests": {"storage": "1Gi"}}})
}

fn key(name: &str) -> ObjectKey {
    ObjectKey::new(SYSTEM, name)
}

fn resource<'a>(objects: &'a [Object], name: &str) -> &'a Object {
    let mut found = objects.iter().filter(|o| matches!(o.kind, Kind::Resource(_)));
    found.find(|o| o.metadata.name.as_deref() == Some(name)).expect("it is still there")
}

/// A claim that is given `small`, and `large` that is deleted while no claim holds it.
fn deletes_a_free_one(path: &Path, more: impl FnOnce(&mut Live)) {
    let objects =
        vec![database("large", mysql("10Gi", json!({}))), database("small", mysql("2Gi", json!({})))];
    let mut live = Live::start(objects, path, Redaction::fields_only());
    live.happen(|harness| harness.put(claim("c", claims_mysql())));
    live.happen(|harness| harness.delete(Kind::Resource(TYPE), &key("large")));
    more(&mut live);
    let harness = live.finish();
    let bound = harness.world.get(Kind::Claim(TYPE), &ObjectKey::new("team", "c")).expect("it is there");
    assert_eq!(bound.body["status"]["resourceRef"]["name"], "small", "the live engine chose the other one");
}

/// The same with `small` cordoned, so that the claim is given `large`.
fn without_small() -> Options {
    let cordoned = database("small", mysql("2Gi", json!({"unschedulable": true})));
    Options { closed: true, overlay: vec![cordoned], ..Options::default() }
}

#[test]
fn what_a_replay_holds_outlives_its_recorded_deletion() {
    let path = folder("held-in-replay").join("x.rec");
    deletes_a_free_one(&path, |_| {});
    let (played, end) = replay_to_end(&path, &without_small()).expect("it plays");
    assert_eq!((played.end.bound, played.end.lost), (1, 0));
    let large = resource(&end, "large");
    assert!(large.metadata.deletion_timestamp.is_some(), "its deletion was requested: {large:?}");
}

#[test]
fn a_name_is_taken_until_its_earlier_life_is_gone() {
    let path = folder("two-lives").join("x.rec");
    deletes_a_free_one(&path, |live| {
        live.happen(|harness| {
            let mut again = database("large", mysql("20Gi", json!({})));
            again.metadata.uid = Some("00000000-0000-4000-8000-00000000beef".to_owned());
            harness.put(again);
        });
    });
    let (played, end) = replay_to_end(&path, &without_small()).expect("it plays");
    assert_eq!((played.end.bound, played.end.lost), (1, 0));
    assert_eq!(resource(&end, "large").body["spec"]["capacity"]["storage"], "10Gi");
}

#[test]
fn a_name_is_free_again_once_its_holder_has_left() {
    let path = folder("second-life").join("x.rec");
    deletes_a_free_one(&path, |live| {
        live.happen(|harness| {
            let mut again = database("large", mysql("20Gi", json!({})));
            again.metadata.uid = Some("00000000-0000-4000-8000-00000000beef".to_owned());
            harness.put(again);
        });
        live.happen(|harness| {
            harness.edit(Kind::Resource(TYPE), &key("large"), |o| {
                o.body["spec"]["capacity"]["storage"] = json!("30Gi");
            });
        });
        live.happen(|harness| harness.put(claim("later", claims_mysql())));
    });
    // The claim that the replay gave the first life to goes, and takes it along.
    let cut = path.with_extension("cut");
    let mut live_claim_gone = false;
    rewritten(&path, &cut, |line| match &line {
        Line::Ev(change) if change.name == "later" && !live_claim_gone => {
            live_claim_gone = true;
            let gone = conductor_simulator::record::Change {
                at: change.at,
                kind: Kind::Claim(TYPE).name().to_owned(),
                ns: "team".to_owned(),
                name: "c".to_owned(),
                uid: uid(Kind::Claim(TYPE), "team", "c"),
                gone: true,
                ..Default::default()
            };
            vec![Line::Ev(gone), line]
        }
        _ => vec![line],
    });
    let (played, end) = replay_to_end(&cut, &without_small()).expect("it plays");
    assert_eq!(resource(&end, "large").body["spec"]["capacity"]["storage"], "30Gi");
    assert_eq!((played.end.claims, played.end.bound, played.end.lost), (1, 1, 0));
}

#[test]
fn a_replay_does_not_repeat_what_the_live_engine_reclaimed() {
    let path = folder("reclaimed-live").join("x.rec");
    let shared = json!({"sharing": {"maxClaims": 2}, "reclaimPolicy": "Delete"});
    let objects = vec![database("x", mysql("4Gi", shared)), database("y", mysql("2Gi", json!({})))];
    let mut live = Live::start(objects, &path, Redaction::fields_only());
    live.happen(|harness| {
        let mut named = claims_mysql();
        named["resourceName"] = json!("x");
        harness.put(claim("a", named));
    });
    live.happen(|harness| harness.put(claim("b", claims_mysql())));
    live.happen(|harness| harness.delete(Kind::Claim(TYPE), &ObjectKey::new("team", "a")));
    let harness = live.finish();
    assert!(harness.world.get(Kind::Resource(TYPE), &key("x")).is_none(), "the live engine destroyed it");
    let cordoned = database("y", mysql("2Gi", json!({"unschedulable": true})));
    let options = Options { closed: true, overlay: vec![cordoned], ..Options::default() };
    let (played, end) = replay_to_end(&path, &options).expect("it plays");
    assert_eq!((played.end.claims, played.end.bound, played.end.lost), (1, 1, 0));
    assert_eq!(resource(&end, "x").metadata.deletion_timestamp, None, "no user requested its deletion");
}

#[test]
fn what_went_from_under_a_live_claim_is_lost_in_a_replay_too() {
    let path = folder("forced").join("x.rec");
    let objects = vec![database("db", mysql("4Gi", json!({})))];
    let mut live = Live::start(objects, &path, Redaction::fields_only());
    live.happen(|harness| harness.put(claim("c", claims_mysql())));
    live.happen(|harness| {
        harness.touch_parts(|world| {
            let _ = world.edit(Kind::Resource(TYPE), &key("db"), |o| o.metadata.finalizers = None);
            world.delete(Kind::Resource(TYPE), &key("db"))
        });
    });
    live.finish();
    let played = replay(&path, &Options { closed: true, ..Options::default() }).expect("it plays");
    assert_eq!(played.end.lost, 1);
}
