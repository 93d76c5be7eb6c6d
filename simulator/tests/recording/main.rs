//! Recordings: what is written is read, what is not allowed is not written, and a history played again decides alike.

mod busy;
mod deletions;

use conductor::engine::Config;
use conductor::event::{Event, Gone};
use conductor::model::{Kind, Object, ObjectKey, Revision, Time, TypeId};
use conductor_simulator::harness::Harness;
use conductor_simulator::plan::{Options as PlanOptions, plan};
use conductor_simulator::record::{
    Line, ReadError, Reader, Recorder, RecordingInfo, Redaction, Rewritten, Verdict, audit, inspect, rewrite,
    snapshot_at, to_object,
};
use conductor_simulator::replay::{Options, replay};
use conductor_simulator::world::World;
use serde_json::{Value, json};
use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;
const SYSTEM: &str = "conductor-system";
const BEGAN: i64 = 1_704_300_000_000;

fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}

/// A UID that says nothing of the name.
fn uid(kind: Kind, namespace: &str, name: &str) -> String {
    let text = format!("{}/{namespace}/{name}", kind.name());
    let hash =
        text.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    format!("00000000-0000-4000-8000-{:012x}", hash & 0xffff_ffff_ffff)
}

fn object(kind: Kind, namespace: &str, name: &str, meta: Value, body: Value) -> Object {
    let mut metadata = json!({"name": name, "uid": uid(kind, namespace, name)});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    for (key, value) in meta.as_object().into_iter().flatten() {
        metadata[key] = value.clone();
    }
    Object { kind, metadata: serde_json::from_value(metadata).expect("metadata"), body }
}

fn claim(name: &str, spec: Value) -> Object {
    object(Kind::Claim(TYPE), "team", name, json!({"generation": 1}), json!({"spec": spec}))
}

fn database(name: &str, spec: Value) -> Object {
    object(Kind::Resource(TYPE), SYSTEM, name, json!({"labels": {"tier": "gold"}}), json!({"spec": spec}))
}

/// A live controller in memory that is recorded as a cluster would be: by what a watch of it shows.
struct Live {
    harness: Harness,
    recorder: Recorder<File>,
    at: u64,
}

impl Live {
    fn start(objects: Vec<Object>, path: &Path, redaction: Redaction) -> Live {
        let mut world = World::new();
        objects.into_iter().for_each(|o| drop(world.put(o)));
        let config = Config { makes_parts: false, ..Config::default() };
        let harness = Harness::start(world, config, Time(BEGAN));
        let subject = RecordingInfo {
            began: BEGAN,
            system_namespace: SYSTEM.to_owned(),
            recorder: env!("CARGO_PKG_VERSION").to_owned(),
        };
        let file = File::create(path).expect("a file can be made");
        let mut live = Live { harness, recorder: Recorder::new(file, subject, redaction), at: 0 };
        for kind in [Kind::Claim(TYPE), Kind::Resource(TYPE), Kind::Class(TYPE), Kind::Quota, Kind::Profile] {
            let objects: Vec<Object> =
                live.harness.world.objects().filter(|o| o.kind == kind).cloned().collect();
            let revision = Revision(live.harness.world.revision());
            live.recorder.take(Event::Listed { kind, objects, revision }, 0).expect("it records");
        }
        live.recorder.begin().expect("it records");
        live.harness.take_shown();
        live
    }

    /// Something happens, and the watch shows what became of it.
    fn happen(&mut self, happens: impl FnOnce(&mut Harness)) {
        self.happen_after(10_000, happens);
    }

    /// As [`Live::happen`], so many milliseconds after the last.
    fn happen_after(&mut self, ms: u64, happens: impl FnOnce(&mut Harness)) {
        self.at += ms;
        self.harness.advance(i64::try_from(ms).expect("a short time"));
        happens(&mut self.harness);
        for event in self.harness.take_shown() {
            self.recorder.take(event, self.at).expect("it records");
        }
    }

    fn finish(self) -> Harness {
        self.recorder.finish(self.at + 60_000).expect("it records").flush().expect("it is written");
        self.harness
    }
}

/// A history with contention, quota edits, a lost database, deletions and provisioning.
fn history(path: &Path, redaction: Redaction) -> Harness {
    let quota = object(Kind::Quota, "team", "few", json!({}), json!({"spec": {"limits": [{"claims": 3}]}}));
    let class = object(
        Kind::Class(TYPE),
        SYSTEM,
        "made",
        json!({}),
        json!({"engine": "postgresql", "template": {"apiVersion": "x/v1", "kind": "Thing", "spec": {"password": "canary-1"}}}),
    );
    let big = database("big", json!({"engine": "mysql", "version": "8.0", "capacity": {"storage": "10Gi"}}));
    let mut live = Live::start(vec![quota, class, big], path, redaction);
    let mysql = |storage: &str| json!({"engine": "mysql", "resources": {"requests": {"storage": storage}}});
    live.happen(|harness| harness.put(claim("first", mysql("1Gi"))));
    live.happen(|harness| harness.put(claim("second", mysql("2Gi"))));
    live.happen(|harness| {
        harness.put(database(
            "small",
            json!({"engine": "mysql", "capacity": {"storage": "2Gi"}, "reclaimPolicy": "Delete"}),
        ))
    });
    live.happen(|harness| harness.put(claim("made", json!({"engine": "postgres", "class": "made"}))));
    live.happen(|harness| {
        let key = ObjectKey::new(SYSTEM, format!("rdb-{}", uid(Kind::Claim(TYPE), "team", "made")));
        harness.edit(Kind::Resource(TYPE), &key, |o| o.body["status"]["phase"] = json!("Available"));
    });
    live.happen(|harness| harness.put(claim("over", mysql("1Gi"))));
    live.happen(|harness| {
        harness.edit(Kind::Quota, &ObjectKey::new("team", "few"), |o| {
            o.body["spec"]["limits"] = json!([{"claims": 9}])
        });
    });
    live.happen(|harness| harness.delete(Kind::Claim(TYPE), &ObjectKey::new("team", "second")));
    live.happen(|harness| {
        harness.put(database("late", json!({"engine": "mysql", "capacity": {"storage": "4Gi"}})))
    });
    live.happen(|harness| {
        harness.edit(Kind::Claim(TYPE), &ObjectKey::new("team", "over"), |o| {
            o.body["spec"]["priority"] = json!(5)
        })
    });
    live.finish()
}

fn lines(path: &Path) -> Vec<Line> {
    let mut reader = Reader::open(path).expect("it is a recording");
    std::iter::from_fn(|| reader.next_line().expect("it is whole")).collect()
}

#[test]
fn a_history_played_again_decides_alike() {
    let path = folder("replayed").join("x.rec");
    let harness = history(&path, Redaction::fields_only());
    let found = replay(&path, &Options::default()).expect("it plays");
    assert_eq!(found.divergences, []);
    assert!(found.agreement.decisions >= 6, "{:?}", found.agreement);
    assert_eq!(found.agreement.percent, Some(100.0));
    assert!(found.inputs >= 9 && found.inputs < found.events, "{} of {}", found.inputs, found.events);
    let bound = harness
        .world
        .objects()
        .filter(|o| o.body["status"]["phase"] == "Bound" && matches!(o.kind, Kind::Claim(_)));
    assert_eq!(found.end.bound, bound.count());
}

#[test]
fn another_rule_diverges_and_says_so() {
    let path = folder("diverges").join("x.rec");
    history(&path, Redaction::fields_only());
    let cordoned =
        database("big", json!({"engine": "mysql", "unschedulable": true, "capacity": {"storage": "10Gi"}}));
    let options = Options { overlay: vec![cordoned], ..Options::default() };
    let found = replay(&path, &options).expect("it plays");
    let first = found.divergences.first().expect("the live engine gave out what is cordoned now");
    assert_eq!(first.claim, "team/first");
    assert_eq!(first.explanation.name(), "Rule");
    assert!(first.message.starts_with("Cordoned"), "{}", first.message);
    assert!(found.agreement.percent < Some(100.0));
}

/// The lines of a recording, one of them put otherwise, or more after it.
fn rewritten(from: &Path, to: &Path, mut other: impl FnMut(Line) -> Vec<Line>) {
    let mut reader = Reader::open(from).expect("our own");
    let mut writer = conductor_simulator::record::Writer::new(File::create(to).expect("a file can be made"));
    writer.line(&Line::Header(Box::new(reader.header().clone()))).expect("it is written");
    let mut last = 0;
    while let Some(line) = reader.next_line().expect("our own") {
        match line {
            Line::End(end) => last = end.at,
            line => other(line).iter().for_each(|line| writer.line(line).expect("it is written")),
        }
    }
    writer.finish(last).expect("it is written");
}

/// One claim, two databases, and a live engine that gave it the larger one. It is recorded while that one is the smaller:
/// writes and decisions agree, and only best fit is against them.
fn against_best_fit(folder: &Path, more: impl Fn(u64) -> Vec<Line>) -> PathBuf {
    let (good, bad) = (folder.join("good.rec"), folder.join("bad.rec"));
    let size = |storage: &str| json!({"engine": "mysql", "capacity": {"storage": storage}});
    let mut live = Live::start(
        vec![database("large", size("2Gi")), database("small", size("10Gi"))],
        &good,
        Redaction::fields_only(),
    );
    live.happen(|harness| harness.put(claim("c", json!({"engine": "mysql"}))));
    live.finish();
    rewritten(&good, &bad, |line| match line {
        Line::Obj { mut o } => {
            let name = o["metadata"]["name"].as_str().unwrap_or_default();
            if let Some(storage) = [("large", "10Gi"), ("small", "2Gi")].iter().find(|(of, _)| *of == name) {
                o["spec"]["capacity"]["storage"] = json!(storage.1);
            }
            vec![Line::Obj { o }]
        }
        Line::Ev(change) if change.new.is_some() => {
            more(change.at).into_iter().chain([Line::Ev(change)]).collect()
        }
        line => vec![line],
    });
    bad
}

fn explanation(path: &Path) -> &'static str {
    let found = replay(path, &Options::default()).expect("it plays");
    let first = found.divergences.first().expect("it was bound to the larger one");
    first.explanation.name()
}

fn gap(at: u64, open: bool) -> Line {
    Line::Gap { at, kind: "RelationalDatabase".to_owned(), why: String::new(), open }
}

#[test]
fn a_binding_against_best_fit_is_the_rules_and_not_a_race_with_the_claim_itself() {
    let path = against_best_fit(&folder("quiet"), |_| Vec::new());
    assert_eq!(explanation(&path), "Rule");
}

#[test]
fn a_gap_excuses_what_was_decided_in_it_and_nothing_later() {
    for (name, lines, expected) in [
        ("open", vec![gap(0, true)], "Gap"),
        ("relisted-now", vec![gap(10_000, false)], "Gap"),
        ("relisted-before", vec![gap(0, true), gap(5_000, false)], "Rule"),
        ("reported-at-its-end", vec![gap(5_000, false)], "Rule"),
    ] {
        let path = against_best_fit(&folder(&format!("gap-{name}")), |_| lines.clone());
        assert_eq!(explanation(&path), expected, "{name}");
    }
}

#[test]
fn a_recording_without_a_decision_agrees_with_nothing() {
    let path = folder("undecided").join("x.rec");
    Live::start(vec![database("db", json!({}))], &path, Redaction::fields_only()).finish();
    let found = replay(&path, &Options::default()).expect("it plays");
    assert_eq!((found.agreement.decisions, found.agreement.percent), (0, None));
}

#[test]
fn what_is_given_stays_though_something_else_is_recorded_of_it() {
    let path = folder("overlaid").join("x.rec");
    let quota = |claims: u32| {
        object(Kind::Quota, "team", "few", json!({}), json!({"spec": {"limits": [{"claims": claims}]}}))
    };
    let mut live = Live::start(
        vec![
            database("db", json!({"engine": "mysql"})),
            database("kept", json!({"engine": "mysql", "class": "x"})),
        ],
        &path,
        Redaction::fields_only(),
    );
    live.happen(|harness| harness.put(quota(9)));
    live.happen(|harness| {
        harness.edit(Kind::Quota, &ObjectKey::new("team", "few"), |o| {
            o.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        });
    });
    live.happen(|harness| harness.put(claim("c", json!({"engine": "mysql"}))));
    live.finish();
    let played = |overlay: Vec<Object>| {
        replay(&path, &Options { closed: true, overlay, ..Options::default() }).expect("it plays").end
    };
    assert_eq!(played(Vec::new()).bound, 1);
    let refused = played(vec![quota(0)]);
    assert_eq!((refused.bound, refused.pending), (0, 1), "the quota that was given says no");
    let followed =
        replay(&path, &Options { overlay: vec![quota(0)], ..Options::default() }).expect("it plays");
    assert!(!followed.divergences.is_empty(), "and the live engine decided otherwise");
}

#[test]
fn until_ends_the_replay_there() {
    let path = folder("until").join("x.rec");
    history(&path, Redaction::fields_only());
    let all = replay(&path, &Options::default()).expect("it plays");
    let some = replay(&path, &Options { until: Some(25_000), ..Options::default() }).expect("it plays");
    assert!(some.events < all.events && some.duration_ms <= 25_000, "{some:?}");
}

#[test]
fn the_state_at_the_end_is_the_clusters() {
    let path = folder("state").join("x.rec");
    let harness = history(&path, Redaction::fields_only());
    let moment = snapshot_at(&path, None).expect("it is whole");
    assert!(!moment.interrupted);
    let of = |objects: Vec<Object>| {
        let options = PlanOptions { absent_phase_is_available: false, ..PlanOptions::default() };
        plan(objects, &options).digest
    };
    let live = harness.world.objects().cloned().collect();
    assert_eq!(of(moment.objects.to_objects().expect("readable")), of(live), "redaction changes no decision");
}

#[test]
fn stand_ins_change_names_and_nothing_else() {
    let folder = folder("stand-ins");
    let (plain, renamed) = (folder.join("plain.rec"), folder.join("renamed.rec"));
    history(&plain, Redaction::fields_only());
    history(&renamed, Redaction::with_key(b"0123456789abcdef", SYSTEM));
    let text =
        |path: &Path| lines(path).iter().map(|l| serde_json::to_string(l).unwrap()).collect::<String>();
    let reported = text(&renamed);
    for name in ["\"team\"", "first", "second", "\"big\"", "small", "\"gold\"", "tier", "few"] {
        assert!(!reported.contains(name), "{name} shows through");
    }
    // The plan of the plain recording is that of the other, name by name and in the same order.
    let objects = |path: &Path| snapshot_at(path, None).unwrap().objects.to_objects().unwrap();
    let options = PlanOptions { absent_phase_is_available: false, ..PlanOptions::default() };
    let (first, second) = (plan(objects(&plain), &options), plan(objects(&renamed), &options));
    let mut names: std::collections::BTreeMap<String, String> = Default::default();
    for (a, b) in first.resources.iter().zip(&second.resources) {
        names.insert(a.name.to_string(), b.name.to_string());
        assert_eq!((a.phase, a.reclaim, a.claims.len()), (b.phase, b.reclaim, b.claims.len()));
    }
    assert_eq!(first.claims.len(), second.claims.len());
    for (a, b) in first.claims.iter().zip(&second.claims) {
        let renamed =
            |c: &conductor_simulator::plan::PlannedClaim| c.resource.as_ref().map(|r| r.name.to_string());
        assert_eq!(a.outcome, b.outcome, "{} and {}", a.name, b.name);
        assert_eq!(renamed(a).map(|name| names[&name].clone()), renamed(b));
        let counts = |c: &conductor_simulator::plan::PlannedClaim| {
            c.reasons.iter().map(|r| (r.predicate, r.count)).collect::<Vec<_>>()
        };
        assert_eq!(counts(a), counts(b));
    }
    let found = replay(&renamed, &Options::default()).expect("it plays");
    assert_eq!((found.divergences, found.agreement.percent), (Vec::new(), Some(100.0)));
}

#[test]
fn nothing_that_is_not_allowed_is_written() {
    let path = folder("canaries").join("x.rec");
    history(&path, Redaction::fields_only());
    let secret = json!({
        "spec": {"engine": "mysql", "connection": {"password": "canary-2"}, "unknown": "canary-3"},
        "status": {"phase": "Pending", "conditions": [{"type": "Bound", "status": "False", "reason": "NoMatch", "message": "canary-4"}]},
    });
    let meta = json!({"annotations": {"a": "canary-5", "kubectl.kubernetes.io/last-applied-configuration": "canary-6"}});
    let object = object(Kind::Claim(TYPE), "team", "x", meta, secret);
    let reported = Redaction::fields_only().redact(&object).to_string();
    assert!(!reported.contains("canary"), "{reported}");
    let found = audit(&path, &["canary".to_owned()]).expect("it is whole");
    assert_eq!(found.findings, []);
    assert!(found.texts > 100);
}

#[test]
fn no_field_is_written_but_those_that_are_read_however_deep_they_stand() {
    let redacted = |object: &Object| Redaction::fields_only().redact(object).to_string();
    let meta = json!({"finalizers": ["canary.example/keep", "conductor.io/resource-protection"]});
    let held = json!({"spec": {
        "engine": "mysql", "capacity": {"storage": "1Gi"}, "sharing": {"maxClaims": 2, "note": "canary"},
        "claimRefs": [{"namespace": "team", "name": "c", "uid": "u", "extra": "canary"}],
    }});
    let quota = json!({"spec": {"limits": [{"claims": 3, "note": "canary"}]}});
    let profile = json!({"spec": {"scores": [
        {"name": "LabelPreference", "note": "canary", "parameters": {"token": "canary", "labels": [{"key": "a", "value": "b", "x": "canary"}]}},
    ]}});
    let selecting = json!({"spec": {"selector": {"matchLabels": {"a": "b"}, "canary": 1}}});
    for object in [
        object(Kind::Resource(TYPE), SYSTEM, "db", meta, held),
        object(Kind::Quota, "team", "q", json!({}), quota),
        object(Kind::Profile, "", "default", json!({}), profile),
        object(Kind::Claim(TYPE), "team", "c", json!({}), selecting),
    ] {
        let reported = redacted(&object);
        assert!(!reported.contains("canary"), "{reported}");
        let read = conductor_simulator::plan::unreadable;
        let back: Value = serde_json::from_str(&reported).unwrap();
        let back = Object { body: json!({"spec": back["spec"]}), ..object.clone() };
        assert_eq!(read(&back).is_some(), read(&object).is_some(), "what is readable stays so: {reported}");
    }
}

#[test]
fn an_audit_finds_what_should_not_be_there() {
    let path = folder("leaky").join("x.rec");
    let mut file = conductor_simulator::record::Writer::new(File::create(&path).unwrap());
    let header =
        conductor_simulator::record::Header { format: 1, redaction: "none".to_owned(), ..Default::default() };
    file.line(&Line::Header(Box::new(header))).unwrap();
    let o = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "x", "managedFields": []}, "data": {"uri": "mysql://a:b@c/d"}});
    file.line(&Line::Obj { o }).unwrap();
    file.finish(0).unwrap();
    let rules: Vec<&str> = audit(&path, &[]).unwrap().findings.iter().map(|f| f.rule).collect();
    for rule in
        ["an object of a kind that is never recorded", "managed fields", "data", "a URI with a password"]
    {
        assert!(rules.contains(&rule), "{rule} is not in {rules:?}");
    }
}

#[test]
fn an_audit_covers_later_additions() {
    let path = folder("leaky-later").join("x.rec");
    let plain = path.with_extension("plain");
    history(&plain, Redaction::fields_only());
    let leaks = json!({
        "spec": {"connection": {"password": "short"}, "templates": [{"id": "a"}]},
        "metadata": {"annotations": {"kubectl.kubernetes.io/last-applied-configuration": "{}"}},
    });
    rewritten(&plain, &path, |line| match line {
        Line::Ev(mut change) if change.patch.is_some() => {
            change.patch = Some(leaks.clone());
            vec![Line::Ev(change)]
        }
        line => vec![line],
    });
    let rules: Vec<&str> = audit(&path, &[]).unwrap().findings.iter().map(|f| f.rule).collect();
    for rule in ["a connection", "a template's content", "the last applied manifest"] {
        assert!(rules.contains(&rule), "{rule} is not in {rules:?}");
    }
    rewritten(&plain, &path, |line| match line {
        Line::Ev(mut change) if change.patch.is_some() => {
            change.patch = Some(json!({"spec": {"connection": null}}));
            vec![Line::Ev(change)]
        }
        line => vec![line],
    });
    assert_eq!(audit(&path, &[]).unwrap().findings, [], "what is taken away is not given away");
}

#[test]
fn an_audit_lets_the_system_namespace_and_no_other_keep_its_name() {
    let path = folder("namespaces").join("x.rec");
    let namespace = |name: &str| object(Kind::Namespace, "", name, json!({}), json!({}));
    let profile = object(Kind::Profile, "", "default", json!({}), json!({"spec": {}}));
    let objects = [namespace(SYSTEM), namespace("team"), profile];
    let subject =
        RecordingInfo { began: BEGAN, system_namespace: SYSTEM.to_owned(), recorder: "x".to_owned() };
    let record = |redaction: Redaction| {
        let file = File::create(&path).unwrap();
        let mut recorder = Recorder::new(file, subject.clone(), redaction);
        objects.iter().for_each(|o| recorder.take(Event::Seen(o.clone()), 0).unwrap());
        recorder.begin().unwrap();
        recorder.finish(0).unwrap();
    };
    record(Redaction::with_key(b"0123456789abcdef", SYSTEM));
    assert_eq!(audit(&path, &[]).unwrap().findings, []);
    record(Redaction::with_key(b"0123456789abcdef", "elsewhere"));
    assert_eq!(audit(&path, &[]).unwrap().findings, [], "it has a stand-in");
    record(Redaction::with_key(b"0123456789abcdef", "team"));
    let rules: Vec<&str> = audit(&path, &[]).unwrap().findings.iter().map(|f| f.rule).collect();
    assert_eq!(rules, ["a name that is not a stand-in"]);
}

#[test]
fn a_recording_written_again_keeps_its_history_under_other_names() {
    let folder = folder("written-again");
    let (plain, again, renamed) =
        (folder.join("plain.rec"), folder.join("again.rec"), folder.join("renamed.rec"));
    history(&plain, Redaction::fields_only());
    let write = |from: &Path, to: &Path, redaction: Redaction| {
        let out = File::create(to).unwrap();
        rewrite(Reader::open(from).unwrap(), out, redaction).expect("it is whole")
    };
    let done = write(&plain, &again, Redaction::fields_only());
    assert!(done.objects > 0 && done.changes > 0 && !done.interrupted, "{done:?}");
    assert_eq!(lines(&again), lines(&plain), "what is safe already stays as it is");
    assert_eq!(write(&plain, &renamed, Redaction::with_key(b"0123456789abcdef", SYSTEM)), done);
    assert_eq!(Reader::open(&renamed).unwrap().header().redaction, "allow-list-1+pseudonyms");
    assert_eq!(audit(&renamed, &["team".to_owned(), "second".to_owned()]).unwrap().findings, []);
    let (before, after) = (inspect(&plain).unwrap(), inspect(&renamed).unwrap());
    assert_eq!(
        (before.objects, before.events, before.decisions),
        (after.objects, after.events, after.decisions)
    );
    let found = replay(&renamed, &Options::default()).expect("it plays");
    assert_eq!((found.divergences, found.agreement.percent), (Vec::new(), Some(100.0)));
    write(&renamed, &again, Redaction::fields_only());
    assert_eq!(lines(&again), lines(&renamed), "stand-ins stay");
    assert_eq!(Reader::open(&again).unwrap().header().redaction, "allow-list-1+pseudonyms");
}

#[test]
fn an_interrupted_recording_stays_interrupted_when_it_is_written_again() {
    let folder = folder("written-again-interrupted");
    let (cut, again) = (folder.join("cut.rec"), folder.join("again.rec"));
    history(&cut, Redaction::fields_only());
    let whole = std::fs::read(&cut).unwrap();
    std::fs::write(&cut, &whole[..whole.len() - 60]).unwrap();
    let out = File::create(&again).unwrap();
    let done = rewrite(Reader::open(&cut).unwrap(), out, Redaction::fields_only()).unwrap();
    assert!(matches!(done, Rewritten { interrupted: true, .. }) && !inspect(&again).unwrap().complete);
}

#[test]
fn what_was_there_at_the_beginning_is_no_change() {
    let path = folder("changes").join("x.rec");
    let mut live =
        Live::start(vec![database("db", json!({"engine": "mysql"}))], &path, Redaction::fields_only());
    assert_eq!(live.recorder.changes(), 0);
    live.happen(|harness| harness.put(claim("c", json!({"engine": "mysql"}))));
    let changes = live.recorder.changes();
    live.finish();
    assert_eq!(inspect(&path).unwrap().events.values().sum::<u64>(), changes);
    assert!(changes > 0);
}

#[test]
fn an_interrupted_recording_is_readable_up_to_there() {
    let path = folder("interrupted").join("x.rec");
    history(&path, Redaction::fields_only());
    let whole = std::fs::read(&path).unwrap();
    let complete = inspect(&path).unwrap();
    assert!(complete.complete);
    for cut in [whole.len() - 40, whole.len() - 100] {
        std::fs::write(&path, &whole[..cut]).unwrap();
        let found = inspect(&path).expect("what was written is readable");
        assert!(!found.complete && found.lines <= complete.lines, "{found:?}");
        assert!(!found.objects.is_empty());
    }
}

#[test]
fn damaged_foreign_and_future_files_are_refused_with_their_reason() {
    let folder = folder("damaged");
    let path = folder.join("x.rec");
    history(&path, Redaction::fields_only());
    let whole = std::fs::read(&path).unwrap();
    let mut bent = whole.clone();
    let middle = bent.len() / 2;
    bent[middle] ^= 0xff;
    let write = |bytes: &[u8]| {
        std::fs::write(&path, bytes).unwrap();
        inspect(&path)
    };
    assert!(matches!(write(&bent), Err(ReadError::Damaged { .. })));
    assert!(matches!(write(b"kind: List"), Err(ReadError::NotRecording(_))));
    assert!(matches!(write(b""), Err(ReadError::NotRecording(_))));
    let future = zstd_frame(b"{\"t\":\"header\",\"format\":99,\"recorder\":\"9.9\",\"new\":1}\n");
    match write(&future) {
        Err(ReadError::Future { found: 99, recorder, .. }) => assert_eq!(recorder, "9.9"),
        other => panic!("{other:?}"),
    }
    for text in ["{\"t\":\"obj\"}\n", "not json\n", "{\"t\":\"header\"}\n"] {
        assert!(matches!(write(&zstd_frame(text.as_bytes())), Err(ReadError::Damaged { .. })), "{text}");
    }
    // A hash that does not fit.
    let mut lines: Vec<String> = Vec::new();
    std::fs::write(&path, &whole).unwrap();
    for line in self::lines(&path) {
        lines.push(serde_json::to_string(&line).unwrap());
    }
    let header = r#"{"t":"header","format":1,"recorder":"","began":0,"systemNamespace":"","kinds":{},"redaction":"","part":1}"#;
    let text = format!("{header}\n{}\n", lines.join("\n"));
    assert!(matches!(write(&zstd_frame(text.as_bytes())), Err(ReadError::Damaged { .. })));
}

fn zstd_frame(text: &[u8]) -> Vec<u8> {
    zstd::encode_all(text, 1).unwrap()
}

#[test]
fn a_lost_watch_is_a_gap_and_what_it_missed_is_written() {
    let path = folder("gap").join("x.rec");
    let subject =
        RecordingInfo { began: BEGAN, system_namespace: SYSTEM.to_owned(), recorder: "0".to_owned() };
    let mut recorder = Recorder::new(File::create(&path).unwrap(), subject, Redaction::fields_only());
    let kind = Kind::Claim(TYPE);
    let list = |names: &[&str], revision| Event::Listed {
        kind,
        objects: names.iter().map(|n| claim(n, json!({}))).collect(),
        revision: Revision(revision),
    };
    recorder.take(list(&["a", "b"], 1), 0).unwrap();
    recorder.begin().unwrap();
    recorder.take(list(&["b", "c"], 9), 5_000).unwrap();
    recorder.finish(6_000).unwrap();
    let found: Vec<String> = lines(&path)
        .iter()
        .map(|line| match line {
            Line::Obj { o } => format!("obj {}", o["metadata"]["name"].as_str().unwrap()),
            Line::Ev(c) => format!("{} {}", if c.gone { "gone" } else { "new" }, c.name),
            other => other.tag().to_owned(),
        })
        .collect();
    assert_eq!(found, ["obj a", "obj b", "gap", "gone a", "new c", "end"]);
}

#[test]
fn a_watch_that_is_lost_is_a_gap_unless_it_is_soon_back() {
    let path = folder("lost").join("x.rec");
    let subject =
        RecordingInfo { began: BEGAN, system_namespace: SYSTEM.to_owned(), recorder: "0".to_owned() };
    let mut recorder = Recorder::new(File::create(&path).unwrap(), subject, Redaction::fields_only());
    let (claims, quotas, classes) = (Kind::Claim(TYPE), Kind::Quota, Kind::Class(TYPE));
    recorder.begin().unwrap();
    recorder.lose(claims, "reset", 1_000);
    assert!(recorder.note_lost(1_500).unwrap().is_empty(), "it may be back at once");
    assert!(!recorder.regain(claims, 1_600).unwrap());
    recorder.lose(quotas, "refused", 2_000);
    let reported = recorder.note_lost(5_000).unwrap();
    assert!(reported[0].contains("ClaimQuota") && reported[0].contains("refused"), "{reported:?}");
    assert!(recorder.note_lost(6_000).unwrap().is_empty(), "it is reported once");
    assert!(recorder.regain(quotas, 7_000).unwrap());
    recorder.lose(classes, "gone", 8_000);
    assert_eq!(recorder.lost().collect::<Vec<_>>(), [classes]);
    recorder.finish(8_100).unwrap();
    let found = inspect(&path).unwrap();
    let gaps: Vec<_> = found.gaps.iter().map(|gap| (gap.at, gap.kind.as_str(), gap.open)).collect();
    let class = "RelationalDatabaseClass";
    assert_eq!(gaps, [(5_000, "ClaimQuota", true), (7_000, "ClaimQuota", false), (8_100, class, true)]);
}

#[test]
fn what_is_gone_was_changed_before_though_another_watch_lags() {
    let path = folder("lagging").join("a.rec");
    let subject = RecordingInfo {
        began: BEGAN,
        system_namespace: SYSTEM.to_owned(),
        recorder: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let file = File::create(&path).expect("a file can be made");
    let mut recorder = Recorder::new(file, subject, Redaction::fields_only());
    let at = |mut object: Object, revision: u64| {
        object.metadata.resource_version = Some(revision.to_string());
        object
    };
    let (kind, old) = (Kind::Resource(TYPE), at(database("old", json!({"engine": "mysql"})), 1));
    let key = conductor_simulator::world::key_of(&old);
    let uid = old.metadata.uid.as_deref().unwrap_or_default().into();
    recorder
        .take(Event::Listed { kind, objects: vec![old.clone()], revision: Revision(1) }, 0)
        .expect("it records");
    recorder.begin().expect("it records");
    let mut cordoned = at(old, 20);
    cordoned.body["spec"]["unschedulable"] = json!(true);
    let gone = Gone { kind, key, uid, revision: Revision(21) };
    // The claims' watch is behind: its news is older than what the other watch has shown by then.
    for (event, after) in [
        (Event::Seen(cordoned), 10),
        (Event::Seen(at(claim("c", json!({"engine": "mysql"})), 10)), 20),
        (Event::Gone(gone), 30),
    ] {
        recorder.take(event, after).expect("it records");
    }
    recorder.finish(40).expect("it records");
    let played = replay(&path, &Options::default()).expect("it plays");
    // By revisions the claim was created and bound first, then its database was cordoned, then its deletion was requested;
    // it stays while the claim holds it.
    assert_eq!((played.events, played.end.claims, played.end.bound, played.end.lost), (3, 1, 1, 0));
}

#[test]
fn a_further_part_begins_with_everything_that_is_there() {
    let folder = folder("parts");
    let (first, second) = (folder.join("1.rec"), folder.join("2.rec"));
    let subject =
        RecordingInfo { began: BEGAN, system_namespace: SYSTEM.to_owned(), recorder: "0".to_owned() };
    let mut recorder = Recorder::new(File::create(&first).unwrap(), subject, Redaction::fields_only());
    recorder.begin().unwrap();
    recorder.take(Event::Seen(claim("a", json!({}))), 10).unwrap();
    recorder.rotate(File::create(&second).unwrap(), 20).unwrap();
    recorder.take(Event::Seen(claim("b", json!({}))), 30).unwrap();
    recorder.finish(40).unwrap();
    assert!(inspect(&first).unwrap().complete);
    let found = inspect(&second).unwrap();
    assert_eq!((found.header.part, found.header.from, found.objects.len()), (2, 20, 1));
    let names: Vec<String> = snapshot_at(&second, None)
        .unwrap()
        .objects
        .values()
        .map(|v| to_object(Kind::Claim(TYPE), v).unwrap().metadata.name.unwrap())
        .collect();
    assert_eq!(names, ["a", "b"]);
}
