//! Random worlds over small domains, so that ties and contention happen: every field that matching reads,
//! every state that a cluster can be found in. What becomes of them is not asked here.

use conductor::model::{Kind, Object, TypeId};
use conductor_simulator::fuzz::rng::Rng;
use serde_json::{Map, Value, json};

pub const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;
pub const SYSTEM: &str = "conductor-system";
pub const NAMESPACES: [&str; 3] = ["a", "b", "c"];
pub const CLASSES: [&str; 3] = ["bronze", "gold", "silver"];
pub const ENGINES: [&str; 4] = ["mysql", "Postgres", "postgresql", "MySQL"];
pub const VERSIONS: [&str; 9] =
    ["5.6.51", "5.7", "8.0.36", "8.0.4-28", "8.1", "9.9", "9.10", "14.2", "15rc1"];
pub const RANGES: [&str; 11] =
    [">= 8", "5.6", "8.0", "< 9.10", "^8", "5.7 || 14", "*", "!= 8.1", ">= 15rc1", "~5.7", ">= 5.7, < 9"];
pub const STORAGE: [&str; 6] = ["512Mi", "1Gi", "2Gi", "4Gi", "4096Mi", "8Gi"];
pub const CONNECTIONS: [u32; 3] = [10, 50, 100];
const CAPABILITIES: [&str; 3] = ["audit", "backup", "tls"];
const TIMES: [&str; 3] = ["2024-01-01T00:00:00Z", "2024-01-02T00:00:00Z", "2024-01-03T00:00:00Z"];

/// What kind of world is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Flavour {
    /// Everything mixed.
    Mixed,
    /// A label that is nearly unique, over more resources than one group keeps shapes for.
    Crowded,
}

/// An object as an API server would serve it. `meta` is merged into its metadata.
pub fn object(kind: Kind, namespace: &str, name: &str, meta: Value, body: Value) -> Object {
    let mut metadata = json!({"name": name});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    for (key, value) in meta.as_object().into_iter().flatten() {
        metadata[key] = value.clone();
    }
    let metadata = serde_json::from_value(metadata).expect("metadata as an API server serves it");
    Object { kind, metadata, body }
}

/// A whole world, in a random order, with UIDs and revisions.
pub fn draw(rng: &mut Rng, flavour: Flavour) -> Vec<Object> {
    let (resources, claims) = match flavour {
        Flavour::Mixed => (rng.between(1, 60), rng.between(1, 40)),
        Flavour::Crowded => (rng.between(280, 420), rng.between(5, 40)),
    };
    let mut objects = surroundings(rng);
    let mut drawn: Vec<Object> = (0..claims).map(|at| claim(rng, at, resources, flavour)).collect();
    let mut databases: Vec<Object> = (0..resources).map(|at| resource(rng, at, flavour)).collect();
    hold(rng, &mut drawn, &mut databases);
    objects.append(&mut drawn);
    objects.append(&mut databases);
    for (at, object) in objects.iter_mut().enumerate() {
        object.metadata.resource_version = Some((at + 1).to_string());
    }
    rng.shuffle(&mut objects);
    objects
}

/// Classes, quotas, limits, profiles, namespaces.
pub fn surroundings(rng: &mut Rng) -> Vec<Object> {
    let mut objects = Vec::new();
    for name in CLASSES {
        if rng.chance(60) {
            objects.push(class(rng, name));
        }
    }
    for name in NAMESPACES {
        let labels = json!({"team": *rng.pick(&["x", "y"])});
        objects.push(object(
            Kind::Namespace,
            "",
            name,
            json!({"uid": uid(rng, name), "labels": labels}),
            json!({}),
        ));
        if rng.chance(40) {
            let body = json!({"spec": {"limits": quota_limits(rng)}});
            objects.push(object(Kind::Quota, name, "dbs", json!({"uid": uid(rng, name)}), body));
        }
        if rng.chance(35) {
            objects.push(limits(rng, name));
        }
    }
    if rng.chance(35) {
        let mut spec = json!({"limits": quota_limits(rng)});
        if rng.chance(70) {
            spec["namespaceSelector"] = json!({"matchLabels": {"team": "x"}});
        }
        objects.push(object(
            Kind::ClusterQuota,
            "",
            "all",
            json!({"uid": uid(rng, "all")}),
            json!({"spec": spec}),
        ));
    }
    for name in ["default", "other"] {
        if rng.chance(if name == "default" { 25 } else { 60 }) {
            objects.push(profile(rng, name));
        }
    }
    objects
}

/// UIDs are drawn, so that their order is not the order of names.
pub fn uid(rng: &mut Rng, name: &str) -> String {
    format!("{:08x}-{name}", rng.next() as u32)
}

fn quota_limits(rng: &mut Rng) -> Vec<Value> {
    (0..rng.between(1, 2)).map(|_| quota_limit(rng)).collect()
}

pub fn quota_limit(rng: &mut Rng) -> Value {
    let mut limit = Map::new();
    if let Some(class) = rng.maybe(35, &CLASSES) {
        limit.insert("class".to_owned(), json!(class));
    }
    if let Some(engine) = rng.maybe(20, &ENGINES) {
        limit.insert("engine".to_owned(), json!(engine));
    }
    if rng.chance(60) {
        limit.insert("claims".to_owned(), json!(rng.between(0, 8)));
    }
    if rng.chance(50) {
        limit.insert("requests".to_owned(), json!({"storage": format!("{}Gi", rng.between(0, 20))}));
    }
    Value::Object(limit)
}

pub fn limits(rng: &mut Rng, namespace: &str) -> Object {
    let mut spec = Map::new();
    if rng.chance(40) {
        spec.insert("min".to_owned(), json!({"storage": "1Gi"}));
    }
    if rng.chance(50) {
        spec.insert("max".to_owned(), json!({"storage": *rng.pick(&["4Gi", "8Gi"]), "connections": 90}));
    }
    if rng.chance(70) {
        spec.insert("default".to_owned(), json!({"storage": *rng.pick(&["1Gi", "2Gi"])}));
    }
    let meta = json!({"uid": uid(rng, namespace)});
    object(Kind::Limits, namespace, "bounds", meta, json!({"spec": spec}))
}

fn profile(rng: &mut Rng, name: &str) -> Object {
    let mut spec = Map::new();
    if rng.chance(50) {
        spec.insert("preferNewest".to_owned(), json!(true));
    }
    if rng.chance(50) {
        let mut order = vec!["Existing", "Share", "Provision"];
        rng.shuffle(&mut order);
        order.truncate(rng.between(1, 3));
        spec.insert("order".to_owned(), json!(order));
    }
    object(Kind::Profile, "", name, json!({"uid": uid(rng, name)}), json!({"spec": spec}))
}

/// What templates may take from a claim.
const TAKES: [&str; 4] = [
    "${resource.spec.version}",
    "${claim.spec[\"highly-available\"] ? 2 : 1}",
    "${claim.spec.requests}",
    "${resource.spec.capacity.storage}",
];

pub fn class(rng: &mut Rng, name: &str) -> Object {
    let mut body = Map::new();
    body.insert("reclaimPolicy".to_owned(), json!(*rng.pick(&["Retain", "Delete", "Delete"])));
    if rng.chance(60) {
        let takes = TAKES.into_iter().filter(|_| rng.chance(20)).collect::<Vec<_>>();
        body.insert("template".to_owned(), json!({"apiVersion": "x/v1", "kind": "Thing", "spec": takes}));
    }
    if let Some(engine) = rng.maybe(40, &ENGINES) {
        body.insert("engine".to_owned(), json!(engine));
    }
    if let Some(range) = rng.maybe(30, &RANGES) {
        body.insert("version".to_owned(), json!(range));
    }
    if rng.chance(20) {
        body.insert("highly-available".to_owned(), json!(rng.chance(50)));
    }
    if rng.chance(20) {
        body.insert("capabilities".to_owned(), json!(subset(rng, &CAPABILITIES)));
    }
    match rng.below(4) {
        0 => drop(body.insert("capacity".to_owned(), json!({"storage": *rng.pick(&STORAGE)}))),
        1 => {
            drop(body.insert(
                "capacity".to_owned(),
                json!({"storage": {"min": "1Gi", "max": "5Gi", "step": "2Gi"}}),
            ))
        }
        _ => {}
    }
    if rng.chance(20) {
        body.insert("sharing".to_owned(), json!({"maxClaims": rng.between(1, 3)}));
    }
    let mut meta = json!({"uid": uid(rng, name), "creationTimestamp": *rng.pick(&TIMES)});
    if rng.chance(30) {
        meta["annotations"] = json!({"conductor.io/is-default-class": "true"});
    }
    if rng.chance(4) {
        meta["deletionTimestamp"] = json!(TIMES[2]);
        meta["finalizers"] = json!(["someone.else/stays"]);
    }
    object(Kind::Class(TYPE), SYSTEM, name, meta, Value::Object(body))
}

fn subset(rng: &mut Rng, from: &[&str]) -> Vec<String> {
    from.iter().filter(|_| rng.chance(45)).map(|s| (*s).to_owned()).collect()
}

fn amounts(rng: &mut Rng) -> Value {
    let mut amounts = Map::new();
    if rng.chance(35) {
        amounts.insert("connections".to_owned(), json!(rng.pick(&CONNECTIONS)));
    }
    if rng.chance(75) {
        amounts.insert("storage".to_owned(), json!(rng.pick(&STORAGE)));
    }
    Value::Object(amounts)
}

fn labels(rng: &mut Rng) -> Map<String, Value> {
    let mut labels = Map::new();
    for (key, values) in [("env", &["dev", "prod", "test"][..]), ("tier", &["1", "2"][..])] {
        if let Some(value) = rng.maybe(60, values) {
            labels.insert(key.to_owned(), json!(value));
        }
    }
    labels
}

pub fn selector(rng: &mut Rng, flavour: Flavour) -> Value {
    let instance = |rng: &mut Rng| format!("i-{}", rng.below(400));
    if flavour == Flavour::Crowded && rng.chance(70) {
        let names: Vec<String> = (0..rng.between(1, 60)).map(|_| instance(rng)).collect();
        return match rng.below(4) {
            0 => json!({"matchExpressions": [{"key": "instance", "operator": "NotIn", "values": names}]}),
            1 => json!({"matchExpressions": [{"key": "instance", "operator": "DoesNotExist"}]}),
            2 => json!({"matchExpressions": [
                {"key": "instance", "operator": "In", "values": names},
                {"key": "env", "operator": "NotIn", "values": ["dev"]}]}),
            _ => json!({"matchExpressions": [{"key": "instance", "operator": "In", "values": names}]}),
        };
    }
    match rng.below(5) {
        0 => json!({"matchLabels": {"env": *rng.pick(&["dev", "prod"])}}),
        1 => json!({"matchExpressions": [{"key": "env", "operator": "In", "values": ["dev", "test"]}]}),
        2 => json!({"matchExpressions": [{"key": "env", "operator": "NotIn", "values": ["dev"]}]}),
        3 => json!({"matchExpressions": [{"key": "tier", "operator": "Exists"}]}),
        _ => {
            json!({"matchLabels": {"tier": "1"}, "matchExpressions": [{"key": "env", "operator": "DoesNotExist"}]})
        }
    }
}

/// A resource's spec, without who holds it.
pub fn resource_spec(rng: &mut Rng, flavour: Flavour) -> Value {
    let crowded = flavour == Flavour::Crowded;
    let mut spec = json!({"reclaimPolicy": *rng.pick(&["Retain", "Delete"])});
    if crowded {
        spec["engine"] = json!("mysql");
    } else if let Some(engine) = rng.maybe(90, &ENGINES) {
        spec["engine"] = json!(engine);
    }
    if let Some(class) = rng.maybe(if crowded { 5 } else { 45 }, &CLASSES) {
        spec["class"] = json!(class);
    }
    if let Some(version) = rng.maybe(85, if crowded { &VERSIONS[..2] } else { &VERSIONS[..] }) {
        spec["version"] = json!(version);
    }
    if rng.chance(30) {
        spec["highly-available"] = json!(true);
    }
    if rng.chance(50) {
        spec["capabilities"] = json!(subset(rng, &CAPABILITIES));
    }
    if rng.chance(95) {
        spec["capacity"] = amounts(rng);
    }
    if rng.chance(35) {
        spec["sharing"] = json!({"maxClaims": rng.between(1, 3)});
    }
    if rng.chance(15) {
        spec["sharing"]["allowedNamespaces"] = json!(subset(rng, &NAMESPACES));
    }
    if rng.chance(7) {
        spec["unschedulable"] = json!(true);
    }
    if rng.chance(12) {
        spec["template"] = json!({"apiVersion": "x/v1", "kind": "Thing"});
    }
    if rng.chance(2) {
        spec["sharing"]["maxClaims"] = json!(0);
    }
    spec
}

fn resource(rng: &mut Rng, at: usize, flavour: Flavour) -> Object {
    let spec = resource_spec(rng, flavour);
    let mut body = json!({"spec": spec});
    let phases =
        ["Available", "Available", "Available", "Bound", "Creating", "Pending", "Released", "Failed"];
    if let Some(phase) = rng.maybe(50, &phases) {
        body["status"] = json!({"phase": phase});
    }
    let name = format!("db-{at}");
    let mut labels = labels(rng);
    if flavour == Flavour::Crowded && rng.chance(97) {
        labels.insert("instance".to_owned(), json!(format!("i-{at}")));
    }
    let mut meta = json!({"uid": uid(rng, &name), "labels": labels});
    if rng.chance(3) {
        meta["deletionTimestamp"] = json!(TIMES[2]);
        meta["finalizers"] = json!(["conductor.io/resource-protection"]);
    }
    object(Kind::Resource(TYPE), SYSTEM, &name, meta, body)
}

/// A claim's spec, without a named resource.
pub fn claim_spec(rng: &mut Rng, flavour: Flavour) -> Value {
    let crowded = flavour == Flavour::Crowded;
    let mut spec = json!({});
    match rng.below(10) {
        _ if crowded && rng.chance(85) => {}
        0 => spec["class"] = json!(""),
        1..=3 => spec["class"] = json!(rng.pick(&CLASSES)),
        4 => {
            let mut names = CLASSES.to_vec();
            rng.shuffle(&mut names);
            names.truncate(rng.between(1, 3));
            spec["classes"] = json!(names);
        }
        _ => {}
    }
    if let Some(engine) = rng.maybe(70, if crowded { &ENGINES[..1] } else { &ENGINES[..] }) {
        spec["engine"] = json!(engine);
    }
    if let Some(range) = rng.maybe(if crowded { 20 } else { 45 }, &RANGES) {
        spec["version"] = json!(range);
    }
    if rng.chance(12) {
        spec["highly-available"] = json!(true);
    }
    if rng.chance(15) {
        spec["requests"] = json!(subset(rng, &CAPABILITIES));
    }
    if rng.chance(if crowded { 70 } else { 20 }) {
        spec["selector"] = selector(rng, flavour);
    }
    if rng.chance(80) {
        spec["resources"] = json!({"requests": amounts(rng)});
    }
    if rng.chance(12) {
        spec["exclusive"] = json!(true);
    }
    if rng.chance(30) {
        spec["priority"] = json!(*rng.pick(&[-1, 5, 5, 10]));
    }
    spec
}

fn claim(rng: &mut Rng, at: usize, resources: usize, flavour: Flavour) -> Object {
    let mut spec = claim_spec(rng, flavour);
    let name = format!("c-{at}");
    let some_db = |rng: &mut Rng| format!("db-{}", rng.below(resources + 1));
    if rng.chance(12) {
        spec["resourceName"] = json!(some_db(rng));
    }
    let mut body = json!({"spec": spec});
    let mut meta = json!({"uid": uid(rng, &name)});
    if let Some(time) = rng.maybe(60, &TIMES) {
        meta["creationTimestamp"] = json!(time);
    }
    if let Some(profile) = rng.maybe(12, &["other", "other", "ghost"]) {
        meta["annotations"] = json!({"conductor.io/scheduling-profile": profile});
    }
    match rng.below(40) {
        0 => {
            meta["deletionTimestamp"] = json!(TIMES[2]);
            meta["finalizers"] = json!(["conductor.io/claim-protection"]);
        }
        1 => body["status"] = json!({"phase": "Lost", "resourceRef": {"name": some_db(rng)}}),
        2 => body["status"] = json!({"phase": "Bound", "resourceRef": {"name": some_db(rng)}}),
        _ => {}
    }
    let namespace = *rng.pick(&NAMESPACES);
    object(Kind::Claim(TYPE), namespace, &name, meta, body)
}

/// Writes references into some of the resources: holders, reservations, and claims that do not exist.
fn hold(rng: &mut Rng, claims: &mut [Object], resources: &mut [Object]) {
    let mut held: Vec<usize> = Vec::new();
    for resource in resources.iter_mut() {
        if !rng.chance(22) {
            continue;
        }
        let slots = resource.body["spec"]["sharing"]["maxClaims"].as_u64().unwrap_or(1) as usize;
        let mut refs = Vec::new();
        for _ in 0..rng.between(1, slots.clamp(1, 3)) {
            let at = rng.below(claims.len());
            let claim = &claims[at].metadata;
            if refs.iter().any(|known: &Value| known["name"] == json!(claim.name)) {
                continue;
            }
            let mut written = json!({"namespace": claim.namespace, "name": claim.name});
            if rng.chance(70) {
                written["requests"] = amounts(rng);
            }
            match rng.below(10) {
                // A claim is held once, but for the few that two hold after a crash between two tries.
                0..=4 if !held.contains(&at) || rng.chance(5) => {
                    held.push(at);
                    written["uid"] = json!(claim.uid);
                }
                5 => written["uid"] = json!("gone-since-long"),
                _ => {}
            }
            refs.push(written);
        }
        resource.body["spec"]["claimRefs"] = json!(refs);
    }
}
