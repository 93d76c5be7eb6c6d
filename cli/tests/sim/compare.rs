//! `sim compare` of recordings: what would have happened under each profile, and how long claims waited.

use super::*;
use conductor::engine::Config;
use conductor::event::Event;
use conductor::model::{Kind, Object, Revision, Time, TypeId};
use conductor_simulator::harness::Harness;
use conductor_simulator::record::{Recorder, RecordingInfo, Redaction};
use conductor_simulator::world::World;
use serde_json::json;
use std::fs::File;

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;
const SYSTEM: &str = "conductor-system";
const BEGAN: i64 = 1_704_300_000_000;

fn object(kind: Kind, namespace: &str, name: &str, spec: Value) -> Object {
    let mut metadata = json!({"name": name, "uid": format!("{}-{name}", kind.name())});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    Object { kind, metadata: serde_json::from_value(metadata).unwrap(), body: json!({"spec": spec}) }
}

fn profile(name: &str, newest: bool) -> Object {
    object(Kind::Profile, "", name, json!({"preferNewest": newest}))
}

/// A cluster under a profile that prefers the newest, recorded while a claim comes and is served.
fn record(path: &Path) {
    let database = |name: &str, version: &str| {
        object(Kind::Resource(TYPE), SYSTEM, name, json!({"engine": "mysql", "version": version}))
    };
    let mut world = World::new();
    let there =
        [database("old", "8.0"), database("new", "9.0"), profile("default", true), profile("plain", false)];
    there.into_iter().for_each(|object| drop(world.put(object)));
    let config = Config { makes_parts: false, ..Config::default() };
    let mut harness = Harness::start(world, config, Time(BEGAN));
    let subject =
        RecordingInfo { began: BEGAN, system_namespace: SYSTEM.to_owned(), recorder: "1.0.0".to_owned() };
    let mut recorder = Recorder::new(File::create(path).unwrap(), subject, Redaction::fields_only());
    for kind in [Kind::Claim(TYPE), Kind::Resource(TYPE), Kind::Profile] {
        let objects: Vec<Object> = harness.world.objects().filter(|o| o.kind == kind).cloned().collect();
        let revision = Revision(harness.world.revision());
        recorder.take(Event::Listed { kind, objects, revision }, 0).unwrap();
    }
    recorder.begin().unwrap();
    harness.take_shown();
    harness.put(object(Kind::Claim(TYPE), "team", "x", json!({"engine": "mysql"})));
    harness.take_shown().into_iter().for_each(|event| recorder.take(event, 1_000).unwrap());
    recorder.finish(2_000).unwrap();
}

fn compared(arguments: &[&str]) -> (Option<i32>, Value) {
    let output = run(&[&["sim", "compare"], arguments, &["-o", "json", "--double-run"]].concat());
    (output.status.code(), serde_json::from_slice(&output.stdout).expect("it is JSON"))
}

#[test]
fn a_recording_is_played_again_under_each_profile() {
    let path = folder("compared").join("x.rec");
    record(&path);
    let file = path.to_str().unwrap();
    for (a, b) in [("default", "plain"), ("default", "built-in")] {
        let (code, reported) = compared(&[file, "--a", a, "--b", b]);
        assert_eq!((code, reported["moved"].as_u64()), (Some(1), Some(1)), "{a} {b}: {reported}");
        let [moved] = reported["claims"].as_array().map(Vec::as_slice).unwrap_or_default() else {
            panic!("{reported}")
        };
        assert_eq!(moved["before"]["resource"]["name"], "new");
        assert_eq!(moved["after"]["resource"]["name"], "old");
        for side in ["a", "b"] {
            assert_eq!(reported[side]["waiting"]["count"], 1, "{side}");
        }
    }
    let (code, _) = compared(&[file, "--a", "plain", "--b", "built-in"]);
    assert_eq!(code, Some(0), "what is built in is a profile that says nothing");
}

#[test]
fn waiting_times_are_reported_of_each_side_that_is_a_recording() {
    let path = folder("two-recordings").join("x.rec");
    record(&path);
    let file = path.to_str().unwrap();
    let (code, reported) = compared(&[file, "--with", file]);
    assert_eq!(code, Some(0));
    assert_eq!(
        (&reported["a"]["waiting"]["count"], &reported["b"]["waiting"]["count"]),
        (&1.into(), &1.into())
    );
    let (_, reported) = compared(&[file, "--with", "examples/plan/teams.yaml"]);
    assert_eq!((&reported["a"]["waiting"]["count"], &reported["b"]["waiting"]), (&1.into(), &Value::Null));
}
