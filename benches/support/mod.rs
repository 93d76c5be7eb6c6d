//! Worlds to measure in: seeded, so that every run and every machine sees the same objects.
//! How long anything takes is measured next door, in `decision` and in `summary`.

// Each bench is a crate of its own and uses its part of this one.
#![allow(dead_code)]

use conductor::cache::{ResourceId, State};
use conductor::engine::{Config, Engine};
use conductor::event::Event;
use conductor::model::{Claim, Kind, Name, Object, Resource, Time, TypeId};
use conductor::scheduler::{Decision, Memo, prepare, schedule_one};
use conductor::template::{CompiledClass, Inputs, Source};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// As in the binary.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// The type that is measured.
pub const TY: TypeId = TypeId::RELATIONAL_DATABASE;
/// The one moment at which everything happens.
pub const NOW: Time = Time(1_700_000_000_000);
/// Where resources live.
const SYSTEM: &str = "conductor-system";

const CLASSES: [&str; 8] =
    ["analytics", "archive", "bronze", "dev", "gold", "performance", "platinum", "silver"];
/// Engines, with the release lines that are in use; each line has four releases.
const ENGINES: [(&str, [&str; 5]); 3] = [
    ("mysql", ["5.6", "5.7", "8.0", "8.4", "9.1"]),
    ("postgresql", ["12", "13", "14", "15", "16"]),
    ("mariadb", ["10.5", "10.6", "10.11", "11.2", "11.4"]),
];
const RELEASES: u64 = 4;
const CAPABILITIES: [&[&str]; 4] =
    [&[], &["backup"], &["backup", "pitr"], &["audit", "backup", "pitr", "tls"]];
const ENVS: [&str; 3] = ["dev", "staging", "prod"];
const REGIONS: [&str; 6] = ["eu-west", "eu-north", "us-east", "us-west", "ap-south", "ap-east"];
const TIERS: [&str; 3] = ["a", "b", "c"];
/// T-shirt sizes, in GiB.
const SHIRTS: [u64; 12] = [5, 10, 20, 50, 100, 200, 400, 600, 1000, 2000, 4000, 8000];
const CONNECTIONS: [u64; 5] = [50, 100, 200, 500, 1000];

/// Splitmix64: chance that is the same everywhere.
pub struct Dice(u64);

impl Dice {
    pub fn new(seed: u64) -> Dice {
        Dice(seed)
    }

    fn roll(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// Zero to `n - 1`.
    pub fn below(&mut self, n: u64) -> u64 {
        self.roll() % n
    }

    fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len() as u64) as usize]
    }
}

/// How resources are sized.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sizes {
    /// Twelve sizes of storage, five of connections.
    Shirts,
    /// Hardly two alike.
    Any,
}

/// What a claim asks beyond the usual.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wish {
    /// Engine, version range, class, labels and capacity that are to be had.
    Usual,
    /// The same, and one thing that nothing has: storage, connections or a region.
    Impossible,
    /// The usual, and more connections than all but a few have.
    Scarce,
    /// The usual, and not one of two instances: a label that tells every resource apart.
    NotThese,
}

fn metadata(namespace: &str, name: String, uid: String) -> ObjectMeta {
    ObjectMeta {
        namespace: Some(namespace.to_owned()),
        name: Some(name),
        uid: Some(uid),
        resource_version: Some("1".to_owned()),
        generation: Some(1),
        ..Default::default()
    }
}

/// Resource number `n`: six of ten are free, three are held by the claim of their number, one is
/// in a phase in which no claim can bind it.
pub fn resource(dice: &mut Dice, n: u64, sizes: Sizes) -> Object {
    let (engine, lines) = dice.pick(&ENGINES);
    let version = format!("{}.{}", dice.pick(&lines), dice.below(RELEASES));
    let (storage, connections) = match sizes {
        Sizes::Shirts => (dice.pick(&SHIRTS) * 1024, dice.pick(&CONNECTIONS)),
        Sizes::Any => (5 * 1024 + dice.below(8_000 * 1024), 50 + dice.below(1950)),
    };
    let mut spec = json!({
        "engine": engine,
        "version": version,
        "highly-available": dice.percent(40),
        "capabilities": dice.pick(&CAPABILITIES),
        "capacity": {"storage": format!("{storage}Mi"), "connections": connections},
        "reclaimPolicy": "Retain",
    });
    let class = dice.below(9) as usize;
    if let Some(class) = CLASSES.get(class) {
        spec["class"] = json!(class);
    }
    let fate = dice.below(10);
    let phase = match fate {
        0..6 => "Available",
        6..9 => {
            let claim = json!({
                "namespace": namespace(n), "name": format!("app-{n}"), "uid": format!("claim-{n}"),
                "requests": {"storage": "5Gi"},
            });
            spec["claimRefs"] = json!([claim]);
            "Bound"
        }
        _ => dice.pick(&["Pending", "Creating", "Failed"]),
    };
    if fate == 9 {
        spec["template"] = json!({"kind": "Instance"});
    }
    let mut metadata = metadata(SYSTEM, format!("db-{n:07}"), format!("resource-{n}"));
    let labels = [
        ("env", dice.pick(&ENVS).to_owned()),
        ("region", dice.pick(&REGIONS).to_owned()),
        ("tier", dice.pick(&TIERS).to_owned()),
        ("instance", format!("i-{n:x}")),
    ];
    metadata.labels = Some(labels.into_iter().map(|(k, v)| (k.to_owned(), v)).collect::<BTreeMap<_, _>>());
    Object { kind: Kind::Resource(TY), metadata, body: json!({"spec": spec, "status": {"phase": phase}}) }
}

fn namespace(n: u64) -> String {
    format!("team-{}", n % 50)
}

/// Claim number `n`.
pub fn claim(dice: &mut Dice, n: u64, wish: Wish) -> Object {
    let (engine, lines) = dice.pick(&ENGINES);
    let from = dice.below(4) as usize;
    let version = match dice.below(4) {
        0 => lines[from].to_owned(),
        1 => format!(">= {}, < {}", lines[from], lines[from + 1]),
        2 => format!(">= {}", lines[from]),
        _ => format!("{} || >= {}", lines[from], lines[4]),
    };
    let mut labels = json!({"env": dice.pick(&ENVS)});
    if dice.percent(50) {
        labels["tier"] = json!(dice.pick(&TIERS));
    }
    let first = dice.below(5) as usize;
    let mut expressions =
        vec![json!({"key": "region", "operator": "In", "values": &REGIONS[first..first + 2]})];
    let mut requests = json!({"storage": format!("{}Gi", dice.pick(&SHIRTS[..9]) - dice.below(5))});
    if dice.percent(50) {
        requests["connections"] = json!(dice.pick(&CONNECTIONS[..4]));
    }
    match wish {
        Wish::Usual => {}
        Wish::Scarce => requests["connections"] = json!(1990),
        Wish::NotThese => {
            expressions.push(json!({"key": "instance", "operator": "NotIn", "values": ["i-1", "i-2"]}));
        }
        Wish::Impossible => match dice.below(3) {
            0 => requests["storage"] = json!("20Ti"),
            1 => requests["connections"] = json!(5000),
            _ => labels["region"] = json!("moon"),
        },
    }
    let mut spec = json!({
        "engine": engine,
        "version": version,
        "selector": {"matchLabels": labels, "matchExpressions": expressions},
        "resources": {"requests": requests},
    });
    let class = dice.below(9) as usize;
    spec["class"] = json!(CLASSES.get(class).unwrap_or(&""));
    if dice.percent(30) {
        spec["highly-available"] = json!(true);
    }
    if dice.percent(30) {
        spec["requests"] = json!(["backup"]);
    }
    claim_object(n, spec)
}

/// Claim number `n` with this spec.
pub fn claim_object(n: u64, spec: Value) -> Object {
    let metadata = metadata(&namespace(n), format!("app-{n}"), format!("claim-{n}"));
    Object { kind: Kind::Claim(TY), metadata, body: json!({ "spec": spec }) }
}

/// What is known of `count` resources.
pub fn state(count: u64, sizes: Sizes) -> State {
    let mut dice = Dice::new(count);
    let mut state = State::new(false);
    for n in 0..count {
        state.set_resource(Resource::read(TY, &resource(&mut dice, n, sizes)));
    }
    state
}

/// The first resource that no claim holds.
pub fn vacant(state: &State) -> ResourceId {
    let offered =
        |id: &ResourceId| state.index_of(TY).standing(*id) == Some(conductor::cache::Standing::Vacant);
    state.resources().map(|(id, _)| id).find(offered).expect("six of ten are free")
}

/// Claims with this wish that are served, or that are refused.
pub fn claims(state: &State, wish: Wish, served: bool, count: usize) -> Vec<Claim> {
    let mut dice = Dice::new(42);
    let of_wish = (0..5_000).map(|n| Claim::read(TY, &claim(&mut dice, 10_000_000 + n, wish)));
    let verdict = |claim: &Claim| {
        let request = prepare(state, claim).expect("the generator writes what can be read");
        let decision = schedule_one(state, &request, &mut Memo::default());
        matches!(decision, Decision::Bind { .. }) == served
    };
    of_wish.filter(verdict).take(count).collect()
}

/// An engine that has begun.
pub fn started(objects: impl IntoIterator<Item = Object>) -> Engine {
    let mut engine = Engine::new(Config::default());
    for object in objects {
        engine.handle(Event::Seen(object), NOW);
    }
    engine.handle(Event::Synced, NOW);
    while engine.queue_lengths().active > 0 {
        engine.handle(Event::Tick, NOW);
    }
    engine
}

/// `parked` claims that wait, in `lanes` kinds, for a resource like [`held`]; and `count` of those,
/// each held by a stranger.
pub fn crowd(parked: u64, lanes: u64, count: u64) -> Engine {
    let claims = (0..parked).map(|n| {
        let requests = json!({"storage": format!("{}Mi", 1024 + n % lanes)});
        let spec = json!({"engine": "mysql", "version": ">= 5.7", "class": "gold", "resources": {"requests": requests}});
        claim_object(n, spec)
    });
    started(claims.chain((0..count).map(|n| held(n, true, 1, "50Gi"))))
}

/// A resource of the crowd's kind, held by a stranger or freed.
pub fn held(n: u64, held: bool, revision: u64, storage: &str) -> Object {
    let stranger = json!({"namespace": "x", "name": format!("s-{n}"), "uid": format!("stranger-{n}")});
    let refs = if held { json!([stranger]) } else { json!([]) };
    let spec = json!({
        "engine": "mysql", "version": "8.0.36", "class": "gold", "capacity": {"storage": storage},
        "claimRefs": refs,
    });
    let mut metadata = metadata(SYSTEM, format!("held-{n}"), format!("held-{n}"));
    metadata.resource_version = Some(revision.to_string());
    let status = json!({"phase": if held { "Bound" } else { "Available" }});
    Object { kind: Kind::Resource(TY), metadata, body: json!({"spec": spec, "status": status}) }
}

/// A class of three objects, each of which uses the status of the previous one.
pub fn graph_class() -> Value {
    let object = |id: &str, spec: Value| {
        json!({"id": id, "template": {"apiVersion": "example.com/v1", "kind": "Instance",
            "metadata": {"labels": {"claim": "${claim.metadata.name}"}}, "spec": spec}})
    };
    json!([
        object("proxy", json!({"to": "${objects.server.status.address}", "port": "${parameters.port + 1}"})),
        object(
            "server",
            json!({"in": "${objects.net.status.id}", "size": "${resource.spec.capacity.storage}",
            "class": "db.${parameters.size}"})
        ),
        object("net", json!({"for": "${claim.metadata.namespace}/${claim.metadata.name}"})),
    ])
}

/// Compiles them.
pub fn compile(templates: &Value) -> CompiledClass {
    let source = Source { templates: Some(templates), ..Source::default() };
    CompiledClass::compile(&source).expect("it is well formed")
}

/// What the expressions of [`graph_class`] see.
pub struct GraphInputs {
    claim: Value,
    resource: Value,
    parameters: Value,
    objects: Vec<(Name, Value)>,
}

impl GraphInputs {
    pub fn new() -> GraphInputs {
        let there = |id: &str| (Name::from(id), json!({"status": {"id": "n-1", "address": "10.0.0.1"}}));
        GraphInputs {
            claim: json!({"metadata": {"name": "orders", "namespace": "shop"}, "spec": {}}),
            resource: json!({"metadata": {"name": "r"}, "spec": {"capacity": {"storage": "10Gi"}}}),
            parameters: json!({"port": 5432, "size": "large"}),
            objects: ["net", "server", "proxy"].map(there).to_vec(),
        }
    }

    /// Every object is there.
    pub fn all_there(&self) -> Inputs<'_> {
        Inputs {
            claim: Some(&self.claim),
            class: None,
            resource: Some(&self.resource),
            parameters: Some(&self.parameters),
            objects: self.objects.iter().map(|(id, object)| (id.clone(), object)).collect(),
        }
    }
}
