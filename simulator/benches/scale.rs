//! How long the simulator's answers take on a large cluster, and the memory at the most in each: load, plan (of claims that
//! all wait, and of a cluster where nine of ten are bound), what-if on that cluster, replay.
//! `CONDUCTOR_SCALE=1000` makes everything that many times smaller. Figures are printed as text; nothing is asserted.

use conductor::model::{Kind, Object, TypeId};
use conductor_simulator::load::{LoadOptions, load};
use conductor_simulator::plan::{Options, Planned};
use conductor_simulator::record::{Change, Decision, Header, Line, Verdict, Writer};
use conductor_simulator::replay;
use conductor_simulator::whatif::{Edit, Target, what_if};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Instant;

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const RESOURCES: usize = 10_000;
const CLAIMS: usize = 100_000;
const EVENTS: usize = 1_000_000;
const SLOTS: usize = 10;
const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

fn main() {
    let scale: usize = std::env::var("CONDUCTOR_SCALE").ok().and_then(|s| s.parse().ok()).unwrap_or(1).max(1);
    let (resources, claims, events) = (RESOURCES / scale, CLAIMS / scale, EVENTS / scale);
    let folder = std::env::temp_dir().join(format!("conductor-scale-{}", std::process::id()));
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    println!("{resources} resources, {claims} claims, {events} events");
    let state = write_state(&folder, resources, claims);
    let objects = timed("load", || {
        let loaded = load(&[&state], &LoadOptions::default()).expect("our own manifests");
        loaded.objects.into_iter().map(|l| l.object).collect::<Vec<Object>>()
    });
    let options = Options::default();
    let plan = timed("plan, all wait", || Planned::new(objects.clone(), &options).plan());
    println!("  {} bound, {} pending", plan.summary.bound, plan.summary.pending);
    let objects = lived_in(objects);
    let plan = timed("plan, nine of ten bound", || Planned::new(objects.clone(), &options).plan());
    println!("  {} bound, {} pending", plan.summary.bound, plan.summary.pending);
    drop(plan);
    let lost = Target::read("resource/db-00000", "team", "conductor-system").expect("a target");
    let answer =
        timed("what-if, both plans", || what_if(objects, &[Edit::Lose(lost)], &options).expect("an edit"));
    println!("  {} claims change", answer.difference.claims.len());
    drop(answer);
    let recording = write_recording(&folder, resources, claims, events);
    let size = std::fs::metadata(&recording).map(|m| m.len()).unwrap_or(0);
    let begun = Instant::now();
    let played = timed("replay", || {
        replay::replay(&recording, &replay::Options::default()).expect("our own recording")
    });
    let rate = played.events as f64 / begun.elapsed().as_secs_f64();
    println!(
        "  {} events, {rate:.0} a second, {} % agree, file {:.1} MiB",
        played.events,
        played.agreement.percent,
        size as f64 / 1_048_576.0
    );
    let _ = std::fs::remove_dir_all(&folder);
}

fn timed<T>(what: &str, work: impl FnOnce() -> T) -> T {
    // The kernel counts the peak anew from here.
    let _ = std::fs::write("/proc/self/clear_refs", "5");
    let begun = Instant::now();
    let done = work();
    println!("{what}: {:.0} ms, {} MiB", begun.elapsed().as_secs_f64() * 1_000.0, peak_mib());
    done
}

/// The cluster after a while: nine of ten claims have their resource, the last wait.
fn lived_in(mut objects: Vec<Object>) -> Vec<Object> {
    let bound = |at: usize| at % SLOTS != SLOTS - 1;
    for object in &mut objects {
        let number = |name: &str| name.rsplit('-').next().and_then(|n| n.parse::<usize>().ok()).unwrap_or(0);
        let at = object.metadata.name.as_deref().map_or(0, number);
        match object.kind {
            Kind::Resource(_) => {
                let held = (at * SLOTS..(at + 1) * SLOTS).filter(|n| bound(*n)).map(claim_ref);
                object.body["spec"]["claimRefs"] = held.collect();
                object.body["status"]["phase"] = json!("Bound");
            }
            Kind::Claim(_) if bound(at) => {
                let resource =
                    json!({"name": format!("db-{:05}", at / SLOTS), "namespace": "conductor-system"});
                object.body["status"] = json!({"phase": "Bound", "resourceRef": resource});
            }
            _ => {}
        }
    }
    objects
}

fn claim_ref(at: usize) -> Value {
    json!({
        "namespace": format!("team-{}", at % 100), "name": format!("claim-{at:06}"), "uid": format!("c-{at}"),
        "requests": {"storage": "1Gi"},
    })
}

fn peak_mib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    line.and_then(|l| l.trim().trim_end_matches(" kB").trim().parse::<u64>().ok()).unwrap_or(0) / 1_024
}

fn resource(at: usize) -> Value {
    json!({
        "apiVersion": Kind::Resource(TYPE).api_version(), "kind": Kind::Resource(TYPE).name(),
        "metadata": {"name": format!("db-{at:05}"), "namespace": "conductor-system", "uid": format!("r-{at}"), "resourceVersion": "1"},
        "spec": {"engine": "postgresql", "version": "16.2", "capacity": {"storage": "10Gi"}, "sharing": {"maxClaims": SLOTS}},
        "status": {"phase": "Available"},
    })
}

fn claim(at: usize) -> Value {
    json!({
        "apiVersion": Kind::Claim(TYPE).api_version(), "kind": Kind::Claim(TYPE).name(),
        "metadata": {"name": format!("claim-{at:06}"), "namespace": format!("team-{}", at % 100), "uid": format!("c-{at}")},
        "spec": {"engine": "postgresql", "version": ">= 15", "resources": {"requests": {"storage": "1Gi"}}},
    })
}

fn write_state(folder: &Path, resources: usize, claims: usize) -> PathBuf {
    let path = folder.join("state.json");
    let mut out = BufWriter::new(File::create(&path).expect("a file can be made"));
    let objects = (0..resources).map(resource).chain((0..claims).map(claim));
    writeln!(out, "{{\"apiVersion\":\"v1\",\"kind\":\"List\",\"items\":[").expect("it is written");
    for (at, object) in objects.enumerate() {
        let comma = if at == 0 { "" } else { "," };
        writeln!(out, "{comma}{object}").expect("it is written");
    }
    writeln!(out, "]}}").expect("it is written");
    path
}

/// Claims come one by one, the live engine fills one resource after the other, and statuses are told over and over.
fn write_recording(folder: &Path, resources: usize, claims: usize, events: usize) -> PathBuf {
    let path = folder.join("history.rec");
    let mut out = Writer::new(BufWriter::new(File::create(&path).expect("a file can be made")));
    let header = Header {
        format: 1,
        recorder: env!("CARGO_PKG_VERSION").to_owned(),
        began: 1_704_300_000_000,
        system_namespace: "conductor-system".to_owned(),
        kinds: [("RelationalDatabase".to_owned(), "1".to_owned())].into(),
        redaction: "allow-list-1".to_owned(),
        part: 1,
        ..Header::default()
    };
    out.line(&Line::Header(Box::new(header))).expect("it is written");
    (0..resources).for_each(|at| out.line(&Line::Obj { o: resource(at) }).expect("it is written"));
    let (mut revision, mut written, echoes) = (1_u64, 0, (events / claims.max(1)).saturating_sub(3));
    for at in 0..claims.min(resources * SLOTS) {
        let name = format!("claim-{at:06}");
        let (ns, uid, time) = (format!("team-{}", at % 100), format!("c-{at}"), (at as u64) * 10);
        let mut change =
            |kind: Kind, ns: &str, name: &str, uid: &str, new: Option<Value>, patch: Option<Value>| {
                revision += 1;
                written += 1;
                let stamp = |mut value: Value| {
                    value["metadata"]["resourceVersion"] = json!(revision.to_string());
                    value
                };
                let (kind, ns, name, uid) =
                    (kind.name().to_owned(), ns.to_owned(), name.to_owned(), uid.to_owned());
                let (new, patch) = (new.map(stamp), patch.map(stamp));
                out.line(&Line::Ev(Change { at: time, kind, ns, name, uid, new, patch, gone: false }))
                    .expect("it is written");
            };
        change(Kind::Claim(TYPE), &ns, &name, &uid, Some(claim(at)), None);
        let (slot, db) = (at % SLOTS, at / SLOTS);
        let refs: Vec<Value> = (db * SLOTS..=db * SLOTS + slot).map(claim_ref).collect();
        let resource = format!("db-{db:05}");
        change(
            Kind::Resource(TYPE),
            "conductor-system",
            &resource,
            &format!("r-{db}"),
            None,
            Some(json!({"spec": {"claimRefs": refs}})),
        );
        let (kind, verdict) =
            (Kind::Claim(TYPE).name().to_owned(), Verdict::Bind { resource: resource.clone() });
        let decision =
            Decision { at: time, kind, ns: ns.clone(), name: name.clone(), uid: uid.clone(), verdict };
        out.line(&Line::Dec(decision)).expect("it is written");
        let mut change = |patch: Value| {
            revision += 1;
            written += 1;
            let mut patch = patch;
            patch["metadata"]["resourceVersion"] = json!(revision.to_string());
            let (kind, ns, name, uid) =
                (Kind::Claim(TYPE).name().to_owned(), ns.clone(), name.clone(), uid.clone());
            out.line(&Line::Ev(Change {
                at: time,
                kind,
                ns,
                name,
                uid,
                new: None,
                patch: Some(patch),
                gone: false,
            }))
            .expect("it is written");
        };
        change(
            json!({"status": {"phase": "Bound", "resourceRef": {"name": resource, "namespace": "conductor-system"}}}),
        );
        (0..echoes).for_each(|n| change(json!({"status": {"observedGeneration": n}})));
    }
    out.finish(claims as u64 * 10).expect("it is written");
    path
}
