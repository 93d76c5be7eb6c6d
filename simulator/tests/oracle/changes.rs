//! The changes that an explanation names are true: made as it says, each alone serves the claim, with the
//! resource that it names. Changes that only time or a person can make are left out.

use crate::seeds::seeds;
use crate::worlds::{Flavour, draw};
use crate::{decided, engine_on};
use conductor::engine::{Binding, Engine};
use conductor::model::{Kind, Object, Quantity, Selector, TypeId, Uid};
use conductor::scheduler::{Nearest, explain, prepare};
use conductor_simulator::fuzz::oracle::Outcome;
use conductor_simulator::fuzz::rng::Rng;
use serde_json::{Value, json};
use std::collections::BTreeMap;

fn key_of(object: &Object) -> String {
    format!(
        "{}/{}",
        object.metadata.namespace.as_deref().unwrap_or(""),
        object.metadata.name.as_deref().unwrap_or("")
    )
}

/// The world with one claim left to decide about: what the others were given is written down, and those
/// that wait are taken out.
fn pinned(objects: &[Object], engine: &Engine, chosen: &str) -> Vec<Object> {
    let mut kept: Vec<Object> = Vec::new();
    let mut given: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for object in objects.iter().filter(|o| matches!(o.kind, Kind::Claim(_))) {
        let uid = Uid::from(object.metadata.uid.as_deref().unwrap_or(""));
        match engine.binding(&uid) {
            Some(Binding::Waiting(_)) if key_of(object) == chosen => kept.push(object.clone()),
            Some(Binding::Bound { .. } | Binding::Leaving | Binding::Lost { .. }) => {
                kept.push(object.clone())
            }
            Some(Binding::Assumed { resource, .. }) => {
                kept.push(object.clone());
                let state = engine.state();
                let entry = TypeId::all().find_map(|ty| state.resource(state.find_resource(ty, resource)?));
                let mut refs = entry.into_iter().flat_map(|entry| entry.refs());
                let held = refs.find(|r| r.uid.as_ref() == Some(&uid)).map(|r| r.requests.to_json());
                given.entry(resource.to_string()).or_default().push(json!({
                    "namespace": object.metadata.namespace, "name": object.metadata.name,
                    "uid": &*uid, "requests": held.unwrap_or(json!({})),
                }));
            }
            _ => {}
        }
    }
    for object in objects.iter().filter(|o| !matches!(o.kind, Kind::Claim(_))) {
        let mut object = object.clone();
        if let Some(new) = object
            .metadata
            .name
            .as_ref()
            .and_then(|n| given.get(n))
            .filter(|_| matches!(object.kind, Kind::Resource(_)))
        {
            let old = object.body["spec"]["claimRefs"].as_array().cloned().unwrap_or_default();
            let filled = |r: &Value| {
                r["uid"].is_null()
                    && new.iter().any(|n| n["name"] == r["name"] && n["namespace"] == r["namespace"])
            };
            let refs: Vec<Value> =
                old.into_iter().filter(|r| !filled(r)).chain(new.iter().cloned()).collect();
            object.body["spec"]["claimRefs"] = json!(refs);
        }
        kept.push(object);
    }
    kept
}

/// Makes the change in the world, where its words can be followed.
fn make(change: &str, claim: &str, objects: &mut [Object]) -> bool {
    let after = |prefix: &str| change.strip_prefix(prefix);
    let spec_of = |objects: &mut [Object], key: &str, edit: &dyn Fn(&mut Value)| {
        let found = objects
            .iter_mut()
            .find(|o| key_of(o) == key && matches!(o.kind, Kind::Claim(_) | Kind::Resource(_)));
        found.map(|o| edit(&mut o.body["spec"])).is_some()
    };
    let db = |name: &str| format!("conductor-system/{name}");
    let drop_field =
        |name: &'static str| move |spec: &mut Value| drop(spec.as_object_mut().map(|s| s.remove(name)));
    if let Some(range) = after("widen the claim's version to ") {
        return spec_of(objects, claim, &|spec| spec["version"] = json!(range));
    }
    if let Some(asked) = after("request no more than ") {
        return spec_of(objects, claim, &|spec| {
            for part in asked.split(" and ") {
                let (name, amount) = part.split_once(' ').expect("a name and an amount");
                spec["resources"]["requests"][name] = json!(amount);
            }
        });
    }
    if let Some(class) = after("set the claim's class to ") {
        let class = class.split([',', ' ']).next().unwrap_or("").trim_matches('"');
        return spec_of(objects, claim, &|spec| {
            drop_field("classes")(spec);
            spec["class"] = json!(class);
        });
    }
    if let Some(engine) = after("set the claim's engine to ") {
        return spec_of(objects, claim, &|spec| spec["engine"] = json!(engine));
    }
    if let Some(names) =
        change.strip_prefix("drop ").and_then(|c| c.strip_suffix(" from the claim's requests"))
    {
        let dropped: Vec<&str> = names.split(", ").collect();
        return spec_of(objects, claim, &|spec| {
            if let Some(all) = spec["requests"].as_array_mut() {
                all.retain(|have| !dropped.contains(&have.as_str().unwrap_or("")));
            }
        });
    }
    if let Some(words) =
        change.strip_prefix("drop ").and_then(|c| c.strip_suffix(" from the claim's selector"))
    {
        return spec_of(objects, claim, &|spec| spec["selector"] = without(&spec["selector"], words));
    }
    match change {
        "drop highly-available from the claim" => {
            return spec_of(objects, claim, &drop_field("highly-available"));
        }
        "drop exclusive from the claim" => return spec_of(objects, claim, &drop_field("exclusive")),
        "drop resourceName from the claim" => return spec_of(objects, claim, &drop_field("resourceName")),
        _ => {}
    }
    if let Some((name, _)) = after("release ").and_then(|c| c.split_once(", which ")) {
        return spec_of(objects, &db(name), &|spec| {
            // The engine never proposes to release a resource that a claim holds.
            let refs = spec["claimRefs"].as_array_mut().expect("it is kept for a claim");
            assert!(refs.iter().all(|r| r["uid"].is_null()), "{change}: {refs:?}");
            refs.clear();
        });
    }
    if let Some((name, _)) = after("keep ").and_then(|c| c.split_once(", with its last claim's data")) {
        let (namespace, own) = claim.split_once('/').expect("a key");
        return spec_of(objects, &db(name), &|spec| {
            spec["claimRefs"] = json!([{"namespace": namespace, "name": own}]);
        });
    }
    if let Some(name) = after("take unschedulable off ") {
        return spec_of(objects, &db(name), &drop_field("unschedulable"));
    }
    if let Some((namespace, name)) = after("add ").and_then(|c| c.split_once(" to the allowedNamespaces of "))
    {
        return spec_of(objects, &db(name), &|spec| {
            if let Some(all) = spec["sharing"]["allowedNamespaces"].as_array_mut() {
                all.push(json!(namespace));
            }
        });
    }
    if let Some((name, slots)) = after("raise sharing.maxClaims of ").and_then(|c| c.split_once(" above ")) {
        let slots: u64 = slots.parse().expect("a number");
        return spec_of(objects, &db(name), &|spec| spec["sharing"]["maxClaims"] = json!(slots + 1));
    }
    if let Some(rest) = after("raise ") {
        return rest.split(" and raise ").all(|one| raise(one, objects));
    }
    if let Some(broken) = after("request what the limits of namespace ").and_then(|c| c.split_once(": ")) {
        return spec_of(objects, claim, &|spec| {
            for part in broken.1.trim_end_matches(')').split("; ") {
                let name = part.split(' ').next().unwrap_or("");
                spec["resources"]["requests"][name] = json!(part.rsplit(' ').next().unwrap_or(""));
            }
        });
    }
    false
}

/// A selector without the requirements that `words` lists.
fn without(selector: &Value, words: &str) -> Value {
    let shown = |one: Value| Selector::from_json(&one).expect("a selector").to_string();
    let mut left = json!({"matchLabels": {}, "matchExpressions": []});
    for (key, value) in selector["matchLabels"].as_object().into_iter().flatten() {
        if !words.contains(&shown(json!({"matchLabels": {key: value}}))) {
            left["matchLabels"][key] = value.clone();
        }
    }
    for expression in selector["matchExpressions"].as_array().into_iter().flatten() {
        if !words.contains(&shown(json!({"matchExpressions": [expression]}))) {
            left["matchExpressions"].as_array_mut().expect("a list").push(expression.clone());
        }
    }
    left
}

/// `claims of quota a/dbs for gold by 1`
fn raise(words: &str, objects: &mut [Object]) -> bool {
    let Some((what, rest)) = words.split_once(" of ") else { return false };
    let Some((quota, by)) = rest.rsplit_once(" by ") else { return false };
    let (quota, scope) = quota.split_once(" for ").map_or((quota, None), |(q, s)| (q, Some(s)));
    let (kind, key) = match quota.strip_prefix("cluster quota ") {
        Some(name) => (Kind::ClusterQuota, format!("/{name}")),
        None => (Kind::Quota, quota.strip_prefix("quota ").unwrap_or("").to_owned()),
    };
    let Some(object) = objects.iter_mut().find(|o| o.kind == kind && key_of(o) == key) else { return false };
    let by = Quantity::parse(by).expect("a quantity");
    for limit in object.body["spec"]["limits"].as_array_mut().into_iter().flatten() {
        let engine = limit["engine"]
            .as_str()
            .map(|e| e.to_lowercase().replace("postgresql", "postgres").replace("postgres", "postgresql"));
        let named = limit["class"].as_str().map(str::to_owned).or(engine);
        if named.as_deref() != scope {
            continue;
        }
        let field = if what == "claims" { &mut limit["claims"] } else { &mut limit["requests"][what] };
        if !field.is_null() {
            let raised = Quantity::from_json(field).expect("a quantity").saturating_add(by);
            *field = if what == "claims" {
                json!(raised.to_string().parse::<u64>().expect("a count"))
            } else {
                json!(raised.to_string())
            };
        }
    }
    true
}

fn nearest(objects: &[Object], key: &str) -> Vec<Nearest> {
    let (engine, _) = engine_on(objects);
    let state = engine.state();
    let Some(claim) = state.claims().find(|c| c.meta.key.to_string() == key) else { return Vec::new() };
    // Left alone it may be served after all: another that waited, or was being provided for, had its place.
    if !matches!(engine.binding(&claim.meta.uid), Some(Binding::Waiting(_))) {
        return Vec::new();
    }
    let Ok(request) = prepare(state, claim) else { return Vec::new() };
    explain(state, &request).map(|e| e.nearest).unwrap_or_default()
}

#[test]
fn every_change_that_is_named_serves_the_claim_as_it_says() {
    let (mut made, mut passed_over) = (0, 0);
    for seed in seeds("CONDUCTOR_WORLDS", 400) {
        let objects = draw(&mut Rng::new(seed), Flavour::Mixed);
        let (engine, _) = engine_on(&objects);
        let waiting = decided(&engine).into_iter().filter(|(_, o)| matches!(o, Outcome::Wait(..)));
        for (key, _) in waiting.take(6) {
            let world = pinned(&objects, &engine, &key);
            for near in nearest(&world, &key) {
                let mut changed = world.clone();
                if !make(&near.change, &key, &mut changed) {
                    passed_over += 1;
                    continue;
                }
                made += 1;
                let got = &decided(&engine_on(&changed).0)[&key];
                let served = match (&near.binds, got) {
                    (Some(name), Outcome::Bind(got)) => **name == **got,
                    (None, Outcome::Provision(_)) => true,
                    _ => false,
                };
                let claim = world.iter().find(|o| key_of(o) == key && matches!(o.kind, Kind::Claim(_)));
                assert!(
                    served,
                    "CONDUCTOR_SEED={seed}: {key}: {near:?} gives {got:?}\n{:#}",
                    claim.map(|c| c.body.clone()).unwrap_or_default()
                );
            }
        }
    }
    println!("{made} changes made, {passed_over} passed over");
    assert!(made > passed_over, "most changes can be followed: {made} of {}", made + passed_over);
}
