//! Our own matching over a fixture: the scheduler's cycle for each claim, on the index, with nothing remembered from
//! one decision to the next. As for the peers, nothing is taken: every claim sees the same resources.

use crate::fixture::{Claim as Wanted, Fixture, Resource as Offered};
use conductor::cache::State;
use conductor::model::{Claim, Kind, Object, Resource, TypeId};
use conductor::scheduler::{Decision, Memo, prepare, schedule_one};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::time::{Duration, Instant};

const TY: TypeId = TypeId::RELATIONAL_DATABASE;
/// Rounds over all claims; the best counts, because what else the machine does can only add to it.
const ROUNDS: usize = 50;

/// What one run says; the peers print the same.
#[derive(Debug, Deserialize, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Outcome {
    pub nanoseconds: u64,
    pub decisions: u64,
    #[serde(rename = "memoryKiB")]
    pub memory_kib: u64,
    /// The resource that each claim gets, or nothing.
    pub choices: Vec<Option<String>>,
}

impl Outcome {
    /// Nanoseconds per decision.
    pub fn each(&self) -> f64 {
        self.nanoseconds as f64 / self.decisions.max(1) as f64
    }
}

/// Decides about every claim of a fixture.
pub fn run(fixture: &Fixture) -> Outcome {
    let mut state = State::new(false);
    for resource in &fixture.resources {
        state.set_resource(Resource::read(TY, &offered(resource)));
    }
    let claims: Vec<Claim> = fixture.claims.iter().map(|claim| Claim::read(TY, &wanted(claim))).collect();
    let choices = claims.iter().map(|claim| choose(&state, claim)).collect();
    let round = || {
        let start = Instant::now();
        for claim in &claims {
            std::hint::black_box(decide(&state, claim));
        }
        start.elapsed()
    };
    let best = (0..ROUNDS).map(|_| round()).min().unwrap_or(Duration::ZERO);
    Outcome {
        nanoseconds: u64::try_from(best.as_nanos()).unwrap_or(u64::MAX),
        decisions: claims.len() as u64,
        memory_kib: peak_memory_kib(),
        choices,
    }
}

fn decide(state: &State, claim: &Claim) -> Option<Decision> {
    let request = prepare(state, claim).ok()?;
    Some(schedule_one(state, &request, &mut Memo::default()))
}

fn choose(state: &State, claim: &Claim) -> Option<String> {
    match decide(state, claim)? {
        Decision::Bind { resource, .. } => Some(state.resource(resource)?.resource.meta.key.name.to_string()),
        Decision::Provision { .. }
        | Decision::Await { .. }
        | Decision::Disagree { .. }
        | Decision::Refuse { .. } => None,
    }
}

fn metadata(namespace: &str, name: &str) -> ObjectMeta {
    let text = |value: &str| Some(value.to_owned());
    ObjectMeta {
        namespace: text(namespace),
        name: text(name),
        uid: text(name),
        resource_version: text("1"),
        generation: Some(1),
        ..ObjectMeta::default()
    }
}

fn offered(resource: &Offered) -> Object {
    let Offered { name, class, engine, version, storage, bound } = resource;
    let holders =
        if *bound { vec![json!({"namespace": "others", "name": name, "uid": "1"})] } else { vec![] };
    let spec = json!({
        "engine": engine, "version": version, "class": class,
        "capacity": {"storage": storage}, "claimRefs": holders,
    });
    let phase = if *bound { "Bound" } else { "Available" };
    Object {
        kind: Kind::Resource(TY),
        metadata: metadata("conductor-system", name),
        body: json!({"spec": spec, "status": {"phase": phase}}),
    }
}

fn wanted(claim: &Wanted) -> Object {
    let Wanted { name, class, engine, from, below, versions: _, storage } = claim;
    let spec = json!({
        "engine": engine, "class": class, "version": format!(">= {from}, < {below}"),
        "resources": {"requests": {"storage": storage}},
    });
    Object { kind: Kind::Claim(TY), metadata: metadata("team", name), body: json!({ "spec": spec }) }
}

fn peak_memory_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap_or_default();
    line.trim().trim_end_matches(" kB").parse().unwrap_or_default()
}
