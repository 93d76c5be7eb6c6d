//! The fast mode of a replay gives the same result as the thorough one.

use super::{Mode, Options, Replay};
use crate::harness::Harness;
use crate::record::{Line, Reader, Recorder, RecordingInfo, Redaction, Verdict, Writer};
use crate::world::World;
use conductor::engine::Config;
use conductor::model::{Kind, Object, ObjectKey, Time, TypeId};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use proptest::prelude::*;
use serde_json::{Value, json};
use std::fs::File;
use std::path::{Path, PathBuf};

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;
const SYSTEM: &str = "conductor-system";
const BEGAN: i64 = 1_704_300_000_000;

/// A step in the history of the recorded cluster.
#[derive(Clone, Debug)]
enum Step {
    Claim { name: u8, gib: u8, names: Option<u8> },
    Database { name: u8, gib: u8, slots: u8, keeps_for: Option<u8>, policy: bool },
    DeleteClaim(u8),
    DeleteDatabase(u8),
    Label { name: u8 },
    Quota(u8),
    Class { gib: u8 },
    Pass(u16),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let (name, gib) = (0..6_u8, 1..12_u8);
    let step = prop_oneof![
        4 => (name.clone(), gib.clone(), prop::option::weighted(0.2, 0..4_u8))
            .prop_map(|(name, gib, names)| Step::Claim { name, gib, names }),
        3 => (0..4_u8, gib, 1..4_u8, prop::option::weighted(0.3, name.clone()), any::<bool>()).prop_map(
            |(name, gib, slots, keeps_for, policy)| Step::Database { name, gib, slots, keeps_for, policy }
        ),
        2 => name.clone().prop_map(Step::DeleteClaim),
        1 => (0..4_u8).prop_map(Step::DeleteDatabase),
        1 => name.prop_map(|name| Step::Label { name }),
        1 => (1..4_u8).prop_map(Step::Quota),
        1 => (1..9_u8).prop_map(|gib| Step::Class { gib }),
        2 => (1..9_000_u16).prop_map(Step::Pass),
    ];
    prop::collection::vec(step, 1..40)
}

fn object(kind: Kind, namespace: &str, name: &str, body: Value) -> Object {
    let metadata = ObjectMeta {
        namespace: Some(namespace.to_owned()),
        name: Some(name.to_owned()),
        generation: Some(1),
        ..ObjectMeta::default()
    };
    Object { kind, metadata, body }
}

fn claim_key(name: u8) -> ObjectKey {
    ObjectKey::new("team", format!("claim-{name}"))
}

fn database_key(name: u8) -> ObjectKey {
    ObjectKey::new(SYSTEM, format!("db-{name}"))
}

fn make(harness: &mut Harness, step: &Step) {
    let (claims, databases) = (Kind::Claim(TYPE), Kind::Resource(TYPE));
    match step {
        Step::Claim { name, .. } if harness.world.get(claims, &claim_key(*name)).is_some() => {}
        Step::Claim { name, gib, names } => {
            let mut spec =
                json!({"engine": "postgresql", "resources": {"requests": {"storage": format!("{gib}Gi")}}});
            if let Some(names) = names {
                spec["resourceName"] = json!(format!("db-{names}"));
            }
            harness.put(object(claims, "team", &claim_key(*name).name, json!({"spec": spec})));
        }
        Step::Database { name, gib, slots, keeps_for, policy } => {
            let refs: Vec<Value> = keeps_for
                .iter()
                .map(|c| json!({"namespace": "team", "name": format!("claim-{c}")}))
                .collect();
            let policy = if *policy { "Delete" } else { "Retain" };
            let spec = json!({
                "engine": "postgresql", "version": "16.2", "capacity": {"storage": format!("{gib}Gi")},
                "sharing": {"maxClaims": slots}, "claimRefs": refs, "reclaimPolicy": policy,
            });
            if harness.world.get(databases, &database_key(*name)).is_none() {
                harness.put(object(databases, SYSTEM, &database_key(*name).name, json!({"spec": spec})));
            }
        }
        Step::DeleteClaim(name) => harness.delete(claims, &claim_key(*name)),
        Step::DeleteDatabase(name) => harness.delete(databases, &database_key(*name)),
        Step::Label { name } => harness.edit(claims, &claim_key(*name), |claim| {
            claim.metadata.labels = Some([("a".to_owned(), "b".to_owned())].into());
        }),
        Step::Quota(most) => {
            let body = json!({"spec": {"limits": [{"claims": most}]}});
            harness.put(object(Kind::Quota, "team", "quota", body));
        }
        Step::Class { gib } => {
            let mut class = object(
                Kind::Class(TYPE),
                SYSTEM,
                "default",
                json!({
                    "template": {"apiVersion": "v1", "kind": "ConfigMap"}, "capacity": {"storage": {"max": format!("{gib}Gi")}},
                }),
            );
            let is_default = ("conductor.io/is-default-class".to_owned(), "true".to_owned());
            class.metadata.annotations = Some([is_default].into());
            harness.put(class);
        }
        Step::Pass(ms) => harness.advance(i64::from(*ms)),
    }
}

/// Records a history as a live engine handles it.
fn record(path: &Path, steps: &[Step]) {
    let config = Config { makes_parts: false, ..Config::default() };
    let mut harness = Harness::start(World::new(), config, Time(BEGAN));
    let subject = RecordingInfo {
        began: BEGAN,
        system_namespace: SYSTEM.to_owned(),
        recorder: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let file = File::create(path).expect("a file can be made");
    let mut recorder = Recorder::new(file, subject, Redaction::fields_only());
    recorder.begin().expect("it is written");
    for step in steps {
        make(&mut harness, step);
        let at = u64::try_from(harness.now().0 - BEGAN).expect("time goes on");
        for event in harness.take_shown() {
            recorder.take(event, at).expect("it is written");
        }
    }
    recorder.finish(1_000_000).expect("it is written");
}

/// Falsifies the decisions of a recording, so that the replay must correct itself.
fn falsify(from: &Path, to: &Path) {
    let mut reader = Reader::open(from).expect("our own");
    let mut writer = Writer::new(File::create(to).expect("a file can be made"));
    writer.line(&Line::Header(Box::new(reader.header().clone()))).expect("it is written");
    while let Some(mut line) = reader.next_line().expect("our own") {
        if let Line::Dec(decision) = &mut line
            && let Verdict::Bind { resource } = &mut decision.verdict
        {
            *resource = "db-0".to_owned();
        }
        if let Line::End(end) = line {
            writer.finish(end.at).expect("it is written");
            return;
        }
        writer.line(&line).expect("it is written");
    }
}

fn played(path: &Path, closed: bool, mode: Mode) -> (Replay, Vec<String>) {
    let options = Options { closed, ..Options::default() };
    let mut steps = Vec::new();
    let player = super::played(path, &options, mode, |progress, sample| {
        steps.push(format!("{} {} {} {:?}", progress.at, progress.what, progress.agrees, sample()));
    });
    (player.expect("our own recording").finish(None), steps)
}

#[test]
fn an_observer_sees_every_change_from_the_first_on() {
    let (path, _) = paths("first");
    let claim = |name| Step::Claim { name, gib: 1, names: None };
    record(&path, &[claim(0), Step::Pass(1_000), claim(1)]);
    let (replay, _) = played(&path, false, Mode::Fast);
    let mut changes = Vec::new();
    let look = |progress: &super::Progress<'_>, _: &dyn Fn() -> super::Sample| {
        changes.extend(Some(progress.what.to_owned()).filter(|what| !what.is_empty()));
    };
    super::replay_with(&path, &Options::default(), look).expect("our own recording");
    let created = |name: u8| format!("RelationalDatabaseClaim {} is created", claim_key(name));
    assert_eq!(changes, [created(0), created(1)]);
    assert_eq!(replay.inputs, 2);
}

fn paths(name: &str) -> (PathBuf, PathBuf) {
    let folder = std::env::temp_dir().join(format!("conductor-{name}-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    (folder.join("true.rec"), folder.join("false.rec"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn a_fast_replay_equals_a_thorough_one(steps in steps(), closed in any::<bool>()) {
        let (path, falsified) = paths("replay");
        record(&path, &steps);
        falsify(&path, &falsified);
        for path in [&path, &falsified] {
            let (fast, steps) = played(path, closed, Mode::Fast);
            let (thorough, all_steps) = played(path, closed, Mode::Thorough);
            prop_assert_eq!(steps, all_steps);
            prop_assert_eq!(fast, thorough);
        }
    }
}
