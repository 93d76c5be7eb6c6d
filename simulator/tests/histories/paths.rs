//! I12: the same final specs by any path give the same state.
//!
//! Who gets a contended resource depends on who came first, and a binding outlives the edit that made it; so
//! the claim is made where it is sound. Every claim has one resource that it could have (its owner's label),
//! a shared one has room for all of its claims, and nothing is offered before the end: drafts are cordoned.
//! Then the final specs alone say who is bound to what, and a history of drafts, edits and deletions, with
//! the watch in any order, duplicates and crashes, must end as a cluster that was given the final specs at once.

use crate::seeds::seeds;
use conductor::model::{Kind, Object};
use conductor_simulator::fuzz::driver::{Fate, Run};
use conductor_simulator::fuzz::invariants::{claims, holders, resources};
use conductor_simulator::fuzz::quiesce::run_until_idle;
use conductor_simulator::fuzz::rng::Rng;
use conductor_simulator::fuzz::{SYSTEM, TYPE, actors, object};
use conductor_simulator::world::key_of;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// The specs that everything ends with.
fn final_objects(rng: &mut Rng) -> Vec<Object> {
    let template = json!({"apiVersion": "x/v1", "kind": "Thing"});
    let class = json!({"reclaimPolicy": "Delete", "template": template});
    let mut objects = vec![object(Kind::Class(TYPE), SYSTEM, "made", json!({}), class)];
    for owner in 0..rng.between(1, 5) {
        let label = json!({"matchLabels": {"owner": owner.to_string()}});
        let crowd = if rng.chance(30) { 3 } else { 1 };
        for at in 0..crowd {
            let mut spec = json!({
                "selector": label, "version": *rng.pick(&[">= 8", "15"]), "priority": rng.below(3),
                "resources": {"requests": {"storage": *rng.pick(&["1Gi", "2Gi"])}},
            });
            if rng.chance(15) {
                spec["class"] = json!("made");
                drop(spec.as_object_mut().map(|s| s.remove("selector")));
            }
            objects.push(object(
                Kind::Claim(TYPE),
                "a",
                &format!("c-{owner}-{at}"),
                json!({}),
                json!({"spec": spec}),
            ));
        }
        let mut spec = json!({
            "engine": "x", "version": *rng.pick(&["8.4", "15.1"]), "sharing": {"maxClaims": crowd},
            "capacity": {"storage": if crowd == 1 { *rng.pick(&["1Gi", "2Gi"]) } else { "6Gi" }},
        });
        if rng.chance(10) {
            spec["unschedulable"] = json!(true);
        }
        let labels = json!({"labels": {"owner": owner.to_string()}});
        objects.push(object(
            Kind::Resource(TYPE),
            SYSTEM,
            &format!("db-{owner}"),
            labels,
            json!({"spec": spec}),
        ));
    }
    objects
}

/// A form of the object that binds nothing.
fn draft(rng: &mut Rng, object: &Object) -> Object {
    let mut draft = object.clone();
    match object.kind {
        Kind::Resource(_) => {
            draft.body["spec"]["unschedulable"] = json!(true);
            draft.body["spec"]["version"] = json!(*rng.pick(&["1", "8", "20"]));
            draft.body["spec"]["capacity"] = json!({"storage": *rng.pick(&["1Gi", "8Gi"])});
        }
        Kind::Claim(_) => {
            draft.body["spec"]["class"] = json!("");
            draft.body["spec"]["priority"] = json!(rng.below(9));
            draft.body["spec"]["selector"] = json!({"matchLabels": {"owner": rng.below(5).to_string()}});
        }
        _ => {}
    }
    draft
}

/// Claims by what they are bound to, resources by phase and holders. Names that derive from UIDs are cut.
fn state(run: &Run) -> BTreeMap<String, String> {
    let cut = |name: &str| if name.starts_with("rdb-") { "rdb".to_owned() } else { name.to_owned() };
    let names: BTreeMap<String, String> = claims(&run.world)
        .map(|c| (c.metadata.uid.clone().unwrap_or_default(), c.metadata.name.clone().unwrap_or_default()))
        .collect();
    let claim = |c: &Object| {
        let to = c.body["status"]["resourceRef"]["name"].as_str().map(cut);
        (key_of(c).to_string(), format!("{} {to:?}", c.body["status"]["phase"]))
    };
    let resource = |r: &Object| {
        let by: BTreeSet<String> = holders(r).iter().filter_map(|uid| names.get(uid).cloned()).collect();
        let name = cut(r.metadata.name.as_deref().unwrap_or(""));
        (format!("{name} of {by:?}"), r.body["status"]["phase"].to_string())
    };
    claims(&run.world).map(claim).chain(resources(&run.world).map(resource)).collect()
}

fn check(seed: u64) -> Result<(), String> {
    let wanted = final_objects(&mut Rng::new(seed));
    let mut rng = Rng::new(seed ^ 0xA7);
    let mut at_once = Run::empty(false)?;
    wanted.iter().for_each(|o| actors::put(&mut at_once, o.clone()));
    run_until_idle(&mut at_once)?;
    let mut run = Run::empty(false)?;
    for _ in 0..rng.between(5, 30) {
        let object = rng.pick(&wanted).clone();
        if rng.chance(20) {
            actors::delete(&mut run, object.kind, &key_of(&object));
        } else {
            let draft = draft(&mut rng, &object);
            actors::put(&mut run, draft);
        }
        disturb(&mut run, &mut rng)?;
    }
    let mut last = wanted.clone();
    rng.shuffle(&mut last);
    // What is offered comes last: until then nothing can be bound.
    last.sort_by_key(|o| matches!(o.kind, Kind::Resource(_)));
    for object in last {
        actors::put(&mut run, object);
        if run
            .world
            .objects()
            .any(|o| matches!(o.kind, Kind::Resource(_)) && o.body["spec"]["unschedulable"] != true)
        {
            // The claims are as they will stay: let the watch of claims catch up before resources are offered.
            run.deliver(Kind::Claim(TYPE), usize::MAX)?;
        }
        disturb(&mut run, &mut rng)?;
    }
    run_until_idle(&mut run)?;
    for run in [&mut at_once, &mut run] {
        actors::implement_all(run, &mut Rng::new(3), true);
        run_until_idle(run)?;
    }
    let (expected, got) = (state(&at_once), state(&run));
    if expected == got { Ok(()) } else { Err(format!("at once {expected:#?}\nby another path {got:#?}")) }
}

fn disturb(run: &mut Run, rng: &mut Rng) -> Result<(), String> {
    for _ in 0..rng.below(4) {
        match rng.below(6) {
            0 | 1 => {
                run.deliver(*rng.pick(&[Kind::Claim(TYPE), Kind::Resource(TYPE), Kind::Class(TYPE)]), 2)?
            }
            2 if !run.sent.is_empty() => run.land(rng.below(run.sent.len()), Fate::Answered)?,
            3 if !run.sent.is_empty() => run.land(rng.below(run.sent.len()), Fate::Unknown)?,
            4 => run.answer_read(0)?,
            5 if rng.chance(10) => run.crash(rng)?,
            _ => run.pass(500)?,
        }
    }
    Ok(())
}

#[test]
fn the_same_final_specs_by_any_path_give_the_same_state() {
    for seed in seeds("CONDUCTOR_PATHS", 1_000) {
        if let Err(wrong) = check(seed) {
            panic!("CONDUCTOR_SEED={seed}: I12: {wrong}");
        }
    }
}
