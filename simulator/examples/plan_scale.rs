//! How long a plan takes: claims and resources made in memory, planned, timed. Nothing is
//! checked here, and nothing is averaged.
//!
//! ```text
//! cargo run --release -p conductor-simulator --example plan_scale -- 100000 100000 [fit|wait|mixed|held]
//! ```

use conductor::model::{Kind, Object, TypeId};
use conductor_simulator::plan::{Options, Planned};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use std::io::Write;
use std::time::Instant;

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;

fn object(kind: Kind, namespace: String, name: String, body: Value) -> Object {
    let uid = Some(format!("uid-{}-{name}", kind.name()));
    let metadata = ObjectMeta { namespace: Some(namespace), name: Some(name), uid, ..ObjectMeta::default() };
    Object { kind, metadata, body }
}

fn claim(at: usize, mode: &str) -> Object {
    let engine = ["mysql", "postgresql"][at % 2];
    // Those that wait ask for a version that no resource has.
    let version = match mode {
        "wait" => ">= 99",
        "mixed" if at.is_multiple_of(3) => ">= 99",
        _ => [">= 12", "14", "< 17", "~15.1"][at % 4],
    };
    let spec = json!({
        "engine": engine, "version": version,
        "resources": {"requests": {"storage": format!("{}Gi", 1 + at % 20)}},
        "selector": {"matchLabels": {"zone": format!("z{}", at % 3)}},
    });
    object(Kind::Claim(TYPE), format!("team-{}", at % 500), format!("claim-{at:07}"), json!({"spec": spec}))
}

fn resource(at: usize, mode: &str) -> Object {
    let engine = ["mysql", "postgresql"][at % 2];
    let version = ["12.4", "14.2", "15.1.3", "16.0"][at % 4];
    let mut spec = json!({
        "engine": engine, "version": version, "capacity": {"storage": format!("{}Gi", 1 + at % 50)},
    });
    if mode == "held" {
        let claim = claim(at, mode).metadata;
        spec["claimRefs"] = json!([{"namespace": claim.namespace, "name": claim.name, "uid": claim.uid}]);
    }
    let mut object = object(
        Kind::Resource(TYPE),
        "conductor-system".to_owned(),
        format!("db-{at:07}"),
        json!({"spec": spec}),
    );
    object.metadata.labels = Some([("zone".to_owned(), format!("z{}", at % 3))].into());
    object
}

fn main() {
    let arguments: Vec<String> = std::env::args().collect();
    let number = |at: usize| arguments.get(at).and_then(|n| n.parse().ok()).unwrap_or(100_000);
    let mode = arguments.get(3).map_or("fit", String::as_str);
    let mut objects: Vec<Object> = (0..number(1)).map(|at| claim(at, mode)).collect();
    objects.extend((0..number(2)).map(|at| resource(at, mode)));
    let start = Instant::now();
    let planned = Planned::new(objects, &Options::default());
    let decided = start.elapsed();
    let plan = planned.plan();
    let told = start.elapsed() - decided;
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let memory = status.lines().find(|line| line.starts_with("VmHWM")).unwrap_or_default();
    // A reader that goes away, as `head` does, is no reason to panic.
    let _ = writeln!(
        std::io::stdout(),
        "{mode}: decided in {decided:.2?}, told in {told:.2?}: {:?}\n{memory}",
        plan.summary
    );
}
