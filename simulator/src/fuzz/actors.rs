//! What application owners, administrators and the implementing controllers do while Conductor works. They share a few
//! names, so that they interfere with each other.

use super::driver::Run;
use super::rng::Rng;
use super::{SYSTEM, TYPE, object, trace};
use conductor::event::WhyMissing;
use conductor::model::{Kind, Object, ObjectKey, Part, PartKey, PartKind};
use serde_json::{Value, json};

const NAMESPACES: [&str; 2] = ["a", "b"];
const CLASSES: [&str; 2] = ["fast", "slow"];
const ENGINES: [&str; 2] = ["mysql", "postgres"];
const VERSIONS: [&str; 3] = ["8.0.36", "8.4", "15"];
const RANGES: [&str; 4] = [">= 8", "8.0", "15", "< 15"];
const STORAGE: [&str; 3] = ["1Gi", "2Gi", "4Gi"];

type Draw = fn(&mut Rng) -> Object;

/// Creates the initial objects.
pub fn settle_in(run: &mut Run, rng: &mut Rng) {
    for name in NAMESPACES {
        put(run, namespace(rng, name));
    }
    for name in CLASSES {
        if rng.chance(60) {
            put(run, class(rng, name));
        }
    }
    let others: [(usize, Draw); 4] = [(50, quota), (25, cluster_quota), (20, limits), (30, profile)];
    for (percent, draw) in others {
        if rng.chance(percent) {
            put(run, draw(rng));
        }
    }
    for at in 0..rng.below(4) {
        put(run, resource(rng, at));
    }
    for _ in 0..rng.below(4) {
        create_claim(run, rng);
    }
    run.watches.clear();
}

pub fn act(run: &mut Run, rng: &mut Rng) {
    match rng.below(34) {
        0..=6 => create_claim(run, rng),
        7..=9 => edit_claim(run, rng),
        10..=13 => delete_one(run, rng, Kind::Claim(TYPE)),
        14..=17 => {
            let at = rng.below(5);
            if run.world.get(Kind::Resource(TYPE), &ObjectKey::new(SYSTEM, format!("db-{at}"))).is_none() {
                put(run, resource(rng, at));
            }
        }
        18..=22 => edit_resource(run, rng),
        23..=24 => delete_one(run, rng, Kind::Resource(TYPE)),
        25 => reserve(run, rng),
        26 => clear(run, rng),
        27 => {
            let name = *rng.pick(&CLASSES);
            put(run, class(rng, name));
        }
        28 => delete_one(run, rng, Kind::Class(TYPE)),
        29 if !run.calm => {
            let quota = if rng.chance(60) { quota(rng) } else { cluster_quota(rng) };
            put(run, quota);
        }
        30 if !run.calm => {
            let kind = *rng.pick(&[Kind::Quota, Kind::ClusterQuota]);
            delete_one(run, rng, kind);
        }
        31 if !run.calm => {
            let name = *rng.pick(&NAMESPACES);
            if rng.chance(20) {
                delete_one(run, rng, Kind::Namespace);
            } else {
                put(run, namespace(rng, name));
            }
        }
        32 => put_or_delete(run, rng, limits, Kind::Limits),
        33 => put_or_delete(run, rng, profile, Kind::Profile),
        _ => create_claim(run, rng),
    }
}

/// The kind of all parts.
pub fn thing() -> PartKind {
    PartKind::new("x/v1", "Thing")
}

/// A part changes its status or is deleted, or its kind is installed or uninstalled.
pub fn implement(run: &mut Run, rng: &mut Rng) {
    let keys: Vec<PartKey> = run.world.parts().map(Part::key).collect();
    let event = match rng.below(20) {
        0 => {
            let why = [WhyMissing::NotInstalled, WhyMissing::NotAllowed("no".to_owned())];
            Some(run.world.uninstall(&thing(), rng.pick(&why).clone()))
        }
        1 | 2 => Some(run.world.install(&thing())),
        3 => {
            import(run, rng);
            None
        }
        _ if keys.is_empty() => None,
        4 => run.world.delete_part(rng.pick(&keys)),
        5 => run.world.edit_part(rng.pick(&keys), |part| {
            let held = part.metadata.finalizers.is_some();
            part.metadata.finalizers = (!held).then(|| vec!["x/keep".to_owned()]);
        }),
        6 => run.world.edit_part(rng.pick(&keys), |part| part.metadata.labels = None),
        7..=9 => run.world.set_part_status(rng.pick(&keys), json!({"phase": "Starting"})),
        _ => run.world.set_part_status(rng.pick(&keys), ready()),
    };
    let what = event.as_ref().map_or("nothing".to_owned(), trace::event);
    run.note(|| format!("an implementation changes: {what}"));
    run.watch(event);
}

fn ready() -> Value {
    json!({"conditions": [{"type": "Ready", "status": "True"}]})
}

/// An administrator marks a resource as implemented by other means.
fn import(run: &mut Run, rng: &mut Rng) {
    let unmade =
        |o: &&Object| matches!(o.kind, Kind::Resource(_)) && o.body["status"]["implementationRef"].is_null();
    let keys: Vec<ObjectKey> = run.world.objects().filter(unmade).map(crate::world::key_of).collect();
    if !keys.is_empty() {
        let phase = *rng.pick(&["Available", "Available", "Failed"]);
        let key = rng.pick(&keys).clone();
        edit(run, Kind::Resource(TYPE), &key, "imports", |o| o.body["status"]["phase"] = json!(phase));
    }
}

/// Makes every implementation ready, or most of them unless `all`; installs the kind and removes finalizers.
pub fn implement_all(run: &mut Run, rng: &mut Rng, all: bool) {
    let event = run.world.install(&thing());
    run.watch(Some(event));
    let keys: Vec<PartKey> = run.world.parts().map(Part::key).collect();
    for key in keys {
        let is_ready = all || rng.chance(75);
        let event = run.world.edit_part(&key, |part| {
            part.metadata.finalizers = None;
            if is_ready {
                part.body["status"] = ready();
            }
        });
        run.watch(event);
    }
}

pub fn delete(run: &mut Run, kind: Kind, key: &ObjectKey) {
    run.note(|| format!("user deletes {}", trace::object(kind, key)));
    if let Some(object) = run.world.get(kind, key) {
        run.invariants.user_deletes(object);
    }
    let event = run.world.delete(kind, key);
    run.watch(event);
}

pub fn put(run: &mut Run, object: Object) {
    run.note(|| {
        format!("user puts {}: {}", trace::object(object.kind, &crate::world::key_of(&object)), object.body)
    });
    let known = run.world.get(object.kind, &crate::world::key_of(&object)).cloned();
    let object = match known {
        // Like a server-side apply, keep what others wrote.
        Some(known) => {
            let mut merged = known.clone();
            merged.metadata.labels = object.metadata.labels;
            merged.metadata.annotations = object.metadata.annotations;
            let status = known.body["status"].clone();
            merged.body = object.body;
            if !status.is_null() {
                merged.body["status"] = status;
            }
            merged.metadata.generation = Some(known.metadata.generation.unwrap_or(1) + 1);
            merged
        }
        None => object,
    };
    let event = run.world.put(object);
    run.watch(Some(event));
}

fn edit(run: &mut Run, kind: Kind, key: &ObjectKey, why: &str, change: impl FnOnce(&mut Object)) {
    let event = run.world.edit(kind, key, |o| {
        let spec = o.body["spec"].clone();
        change(o);
        if o.body["spec"] != spec {
            o.metadata.generation = Some(o.metadata.generation.unwrap_or(1) + 1);
        }
    });
    run.note(|| {
        let body = run_body(&event);
        format!("user {why} {}: {body}", trace::object(kind, key))
    });
    run.watch(event);
}

fn run_body(event: &Option<conductor::event::Event>) -> String {
    match event {
        Some(conductor::event::Event::Seen(object)) => object.body.to_string(),
        _ => String::new(),
    }
}

fn some_key(run: &Run, rng: &mut Rng, kind: Kind) -> Option<ObjectKey> {
    let keys: Vec<ObjectKey> =
        run.world.objects().filter(|o| o.kind == kind).map(crate::world::key_of).collect();
    (!keys.is_empty()).then(|| rng.pick(&keys).clone())
}

fn delete_one(run: &mut Run, rng: &mut Rng, kind: Kind) {
    let Some(key) = some_key(run, rng, kind) else { return };
    delete(run, kind, &key);
}

fn put_or_delete(run: &mut Run, rng: &mut Rng, draw: Draw, kind: Kind) {
    if rng.chance(60) {
        put(run, draw(rng));
    } else {
        delete_one(run, rng, kind);
    }
}

fn create_claim(run: &mut Run, rng: &mut Rng) {
    let (namespace, name) = (*rng.pick(&NAMESPACES), format!("c-{}", rng.below(4)));
    if run.world.get(Kind::Claim(TYPE), &ObjectKey::new(namespace, name.as_str())).is_some() {
        return;
    }
    let mut spec = json!({"priority": *rng.pick(&[0, 0, 0, 5])});
    if rng.chance(35) {
        // Many claims with equal requests wait in one queue group.
        spec = json!({"engine": "mysql", "resources": {"requests": {"storage": "1Gi"}}});
    } else {
        draw_spec(rng, &mut spec);
        if rng.chance(70) {
            spec["engine"] = json!(rng.pick(&ENGINES));
        }
    }
    if rng.chance(12) {
        spec["resourceName"] = json!(format!("db-{}", rng.below(5)));
    }
    let created = k8s_time(run.now.0);
    let claim = object(
        Kind::Claim(TYPE),
        namespace,
        &name,
        json!({"creationTimestamp": created, "generation": 1}),
        json!({"spec": spec}),
    );
    put(run, claim);
}

fn k8s_time(ms: i64) -> String {
    k8s_openapi::jiff::Timestamp::from_second(ms.div_euclid(1000)).unwrap_or_default().to_string()
}

/// Draws the fields that a claim's author may edit.
fn draw_spec(rng: &mut Rng, spec: &mut Value) {
    match rng.below(6) {
        0 => spec["class"] = json!(""),
        1 | 2 => spec["class"] = json!(rng.pick(&CLASSES)),
        _ => drop(spec.as_object_mut().map(|s| s.remove("class"))),
    }
    if rng.chance(40) {
        spec["version"] = json!(rng.pick(&RANGES));
    }
    if rng.chance(70) {
        spec["resources"] = json!({"requests": requested(rng)});
    }
    if rng.chance(15) {
        spec["selector"] = json!({"matchLabels": {"env": *rng.pick(&["dev", "prod"])}});
    }
    if rng.chance(10) {
        spec["exclusive"] = json!(true);
    }
}

/// Some request a second capacity, which is plentiful, so that the last holder may request none of it.
fn requested(rng: &mut Rng) -> Value {
    match *rng.pick(&STORAGE) {
        "2Gi" => json!({"storage": "2Gi", "connections": 1}),
        storage => json!({"storage": storage}),
    }
}

fn offered(rng: &mut Rng) -> Value {
    json!({"storage": rng.pick(&STORAGE), "connections": 100})
}

fn edit_claim(run: &mut Run, rng: &mut Rng) {
    let Some(key) = some_key(run, rng, Kind::Claim(TYPE)) else { return };
    let calm = run.calm;
    edit(run, Kind::Claim(TYPE), &key, "edits", |claim| {
        let spec = &mut claim.body["spec"];
        match rng.below(5) {
            0 => spec["priority"] = json!(rng.between(0, 9)),
            1 if !calm => spec["engine"] = json!(rng.pick(&ENGINES)),
            2 => spec["version"] = json!("not a range >="),
            _ => {
                spec["version"] = json!(">= 1");
                draw_spec(rng, spec);
            }
        }
    });
}

fn resource(rng: &mut Rng, at: usize) -> Object {
    let mut spec = json!({
        "engine": rng.pick(&ENGINES), "version": rng.pick(&VERSIONS),
        "reclaimPolicy": *rng.pick(&["Retain", "Delete", "Delete"]),
        "capacity": offered(rng),
    });
    if let Some(class) = rng.maybe(40, &CLASSES) {
        spec["class"] = json!(class);
    }
    if rng.chance(40) {
        spec["sharing"] = json!({"maxClaims": rng.between(1, 3)});
    }
    if rng.chance(10) {
        spec["sharing"]["allowedNamespaces"] = json!([*rng.pick(&NAMESPACES)]);
    }
    if rng.chance(15) {
        spec["template"] = json!({"apiVersion": "x/v1", "kind": "Thing"});
    }
    if rng.chance(10) {
        spec["unschedulable"] = json!(true);
    }
    if rng.chance(8) {
        spec["claimRefs"] = json!([reservation(rng)]);
    }
    let labels = json!({"env": *rng.pick(&["dev", "prod"])});
    object(
        Kind::Resource(TYPE),
        SYSTEM,
        &format!("db-{at}"),
        json!({"labels": labels, "generation": 1}),
        json!({"spec": spec}),
    )
}

fn reservation(rng: &mut Rng) -> Value {
    let mut kept = json!({"namespace": *rng.pick(&NAMESPACES), "name": format!("c-{}", rng.below(4))});
    if rng.chance(30) {
        kept["requests"] = json!({"storage": rng.pick(&STORAGE)});
    }
    kept
}

fn edit_resource(run: &mut Run, rng: &mut Rng) {
    let Some(key) = some_key(run, rng, Kind::Resource(TYPE)) else { return };
    let calm = run.calm;
    edit(run, Kind::Resource(TYPE), &key, "edits", |resource| {
        let spec = &mut resource.body["spec"];
        match rng.below(8) {
            0 | 1 => spec["unschedulable"] = json!(!spec["unschedulable"].as_bool().unwrap_or(false)),
            2 => spec["reclaimPolicy"] = json!(*rng.pick(&["Retain", "Delete", "Recycle"])),
            3 => spec["capacity"] = offered(rng),
            4 => spec["sharing"] = json!({"maxClaims": rng.between(1, 3)}),
            5 if !calm => spec["class"] = json!(rng.pick(&CLASSES)),
            6 => spec["version"] = json!(rng.pick(&VERSIONS)),
            _ => {
                let env = (*rng.pick(&["dev", "prod"])).to_owned();
                resource.metadata.labels.get_or_insert_default().insert("env".to_owned(), env);
            }
        }
    });
}

/// An administrator reserves a resource for a claim.
fn reserve(run: &mut Run, rng: &mut Rng) {
    let Some(key) = some_key(run, rng, Kind::Resource(TYPE)) else { return };
    edit(run, Kind::Resource(TYPE), &key, "reserves", |resource| {
        let refs = &mut resource.body["spec"]["claimRefs"];
        let kept = reservation(rng);
        let held = refs.as_array().is_some_and(|known| {
            known.iter().any(|r| r["name"] == kept["name"] && r["namespace"] == kept["namespace"])
        });
        match refs.as_array_mut() {
            _ if held => {}
            Some(known) => known.push(kept),
            None => *refs = json!([kept]),
        }
    });
}

/// An administrator removes all references of a resource, or only the reservations.
fn clear(run: &mut Run, rng: &mut Rng) {
    let Some(key) = some_key(run, rng, Kind::Resource(TYPE)) else { return };
    let all = rng.chance(50);
    edit(run, Kind::Resource(TYPE), &key, "clears", |resource| {
        if let Some(refs) = resource.body["spec"]["claimRefs"].as_array_mut() {
            refs.retain(|r| !all && !r["uid"].is_null());
        }
    });
}

fn class(rng: &mut Rng, name: &str) -> Object {
    let mut body = json!({"reclaimPolicy": *rng.pick(&["Retain", "Delete"])});
    if rng.chance(60) {
        body["template"] = json!({"apiVersion": "x/v1", "kind": "Thing"});
    }
    if rng.chance(30) {
        body["engine"] = json!(rng.pick(&ENGINES));
    }
    if rng.chance(30) {
        body["capacity"] = json!({"storage": {"min": "1Gi", "max": "2Gi"}});
    }
    if rng.chance(20) {
        body["sharing"] = json!({"maxClaims": 2});
    }
    let meta = if rng.chance(35) {
        json!({"annotations": {"conductor.io/is-default-class": "true"}})
    } else {
        json!({})
    };
    object(Kind::Class(TYPE), SYSTEM, name, meta, body)
}

fn quota_limits(rng: &mut Rng) -> Value {
    let mut limit = json!({});
    if rng.chance(70) {
        limit["claims"] = json!(rng.below(4));
    }
    if rng.chance(40) {
        limit["requests"] = json!({"storage": format!("{}Gi", rng.below(7))});
    }
    if rng.chance(25) {
        limit["class"] = json!(rng.pick(&CLASSES));
    }
    if rng.chance(15) {
        limit["engine"] = json!(rng.pick(&ENGINES));
    }
    json!([limit])
}

fn quota(rng: &mut Rng) -> Object {
    let namespace = *rng.pick(&NAMESPACES);
    object(Kind::Quota, namespace, "dbs", json!({}), json!({"spec": {"limits": quota_limits(rng)}}))
}

fn cluster_quota(rng: &mut Rng) -> Object {
    let mut spec = json!({"limits": quota_limits(rng)});
    if rng.chance(70) {
        spec["namespaceSelector"] = json!({"matchLabels": {"team": "x"}});
    }
    object(Kind::ClusterQuota, "", "all", json!({}), json!({"spec": spec}))
}

fn namespace(rng: &mut Rng, name: &str) -> Object {
    object(Kind::Namespace, "", name, json!({"labels": {"team": *rng.pick(&["x", "y"])}}), json!({}))
}

fn limits(rng: &mut Rng) -> Object {
    let namespace = *rng.pick(&NAMESPACES);
    let mut spec = json!({});
    if rng.chance(50) {
        spec["max"] = json!({"storage": rng.pick(&STORAGE)});
    }
    if rng.chance(30) {
        spec["min"] = json!({"storage": "2Gi"});
    }
    if rng.chance(60) {
        spec["default"] = json!({"storage": rng.pick(&STORAGE)});
    }
    object(Kind::Limits, namespace, "bounds", json!({}), json!({"spec": spec}))
}

fn profile(rng: &mut Rng) -> Object {
    let mut spec = json!({});
    if rng.chance(40) {
        spec["preferNewest"] = json!(true);
    }
    if rng.chance(30) {
        spec["order"] = json!(["Share", "Existing", "Provision"]);
    }
    if rng.chance(30) {
        spec["batch"] = json!("optimal");
    }
    object(Kind::Profile, "", "default", json!({}), json!({"spec": spec}))
}
