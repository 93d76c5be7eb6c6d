//! The end of a history: faults stop, everything in flight arrives, time passes. Then the world must be idle and
//! consistent, and no claim may wait that could be served.

use super::actors;
use super::driver::{Fate, KINDS, Run};
use super::invariants::{claims, holders, owner_of, resources};
use super::oracle::{Oracle, Outcome};
use super::rng::Rng;
use conductor::action::{Action, Change};
use conductor::model::{ClaimPhase, Part};
use std::collections::BTreeMap;

/// Longer than any backoff of the engine, shorter than its resync.
const PATIENCE_MS: i64 = 100_000;

/// Runs the world until idle and checks it.
pub fn conclude(run: &mut Run, rng: &mut Rng) -> Result<(), String> {
    run.note(|| "faults stop".to_owned());
    run_until_idle(run)?;
    // Implementing the resources provisioned so far may trigger more.
    for _ in 0..2 {
        actors::implement_all(run, rng, false);
        run_until_idle(run)?;
    }
    check_rest(run)?;
    check_bindings(run)?;
    check_parts(run)?;
    check_liveness(run)?;
    check_stability(run, rng)
}

/// Delivers, lands and answers everything, time included, until nothing is left.
pub fn run_until_idle(run: &mut Run) -> Result<(), String> {
    let until = run.now.plus_ms(PATIENCE_MS);
    for _ in 0..5_000 {
        if !run.sent.is_empty() {
            run.land(0, Fate::Answered)?;
        } else if !run.answers.is_empty() {
            run.answer(0)?;
        } else if !run.reads.is_empty() {
            run.answer_read(0)?;
        } else if !run.part_watch.is_empty() {
            run.deliver_parts(usize::MAX)?;
        } else if run.watches.values().any(|queue| !queue.is_empty()) {
            KINDS.into_iter().try_for_each(|kind| run.deliver(kind, usize::MAX))?;
        } else if let Some(next) = run.wakes.first().copied().filter(|at| *at <= until) {
            let wait = (next.0 - run.now.0).max(0);
            run.pass(wait)?;
        } else {
            return Ok(());
        }
    }
    Err("I10: it does not become idle".to_owned())
}

fn check_rest(run: &Run) -> Result<(), String> {
    if !run.engine.is_idle() {
        return Err("the engine still waits for something".to_owned());
    }
    let lengths = run.engine.queue_lengths();
    if lengths.active + lengths.backoff > 0 {
        return Err(format!("claims are still queued: {lengths:?}"));
    }
    match run.engine.bound_after_flush() {
        0 => Ok(()),
        n => Err(format!("{n} claims bound only after the resync")),
    }
}

/// Checks that both sides of every binding agree.
fn check_bindings(run: &Run) -> Result<(), String> {
    let mut held: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for resource in resources(&run.world) {
        for uid in holders(resource) {
            held.entry(uid).or_default().push(resource.metadata.name.clone().unwrap_or_default());
        }
    }
    for claim in claims(&run.world) {
        let (name, status) = (claim.metadata.name.as_deref().unwrap_or(""), &claim.body["status"]);
        let by = held.get(claim.metadata.uid.as_deref().unwrap_or("")).cloned().unwrap_or_default();
        if claim.metadata.deletion_timestamp.is_some() {
            return Err(format!("claim {name} was deleted and still exists: {}", claim.body));
        }
        if by.len() > 1 {
            return Err(format!("I1: claim {name} stays bound to {by:?}"));
        }
        let bound = status["phase"] == "Bound";
        if bound && by.first().map(String::as_str) != status["resourceRef"]["name"].as_str() {
            return Err(format!("claim {name} is Bound, and held by {by:?}: {}", claim.body));
        }
        if let (false, Some(holder)) = (bound, by.first()) {
            let holder = resources(&run.world).find(|r| r.metadata.name.as_ref() == Some(holder));
            let made = holder.is_some_and(|r| {
                matches!(r.body["status"]["phase"].as_str(), None | Some("Creating" | "Pending" | "Failed"))
            });
            if !made {
                return Err(format!("claim {name} is held by {by:?} and not Bound: {status}"));
            }
        }
    }
    let alive: Vec<&str> = claims(&run.world).filter_map(|c| c.metadata.uid.as_deref()).collect();
    for resource in resources(&run.world) {
        let live = holders(resource).iter().any(|uid| alive.contains(&uid.as_str()));
        let held = !holders(resource).is_empty();
        let phase = resource.body["status"]["phase"].as_str().unwrap_or("");
        let is_consistent = if held && !live {
            ["Released", "Failed", "Deleting"].contains(&phase)
        } else {
            // It stays Released after a user removed its references.
            phase != "Released" || !held
        };
        if !is_consistent {
            return Err(format!("a resource is {phase}: {}", resource.body));
        }
        if phase == "Released" && held && resource.body["spec"]["reclaimPolicy"] == "Delete" {
            return Err(format!("a released resource with policy Delete still exists: {}", resource.body));
        }
        if resource.metadata.deletion_timestamp.is_some() && !live {
            return Err(format!("a deleted resource without holders still exists: {}", resource.body));
        }
    }
    Ok(())
}

/// I2 and I5: every resource with a template has one part and reports its state, and every part has a resource unless it
/// was to be retained.
fn check_parts(run: &Run) -> Result<(), String> {
    let mut owned: BTreeMap<String, Vec<&Part>> = BTreeMap::new();
    for part in run.world.parts() {
        owned.entry(owner_of(part)).or_default().push(part);
    }
    for resource in resources(&run.world) {
        let parts = owned.remove(resource.metadata.uid.as_deref().unwrap_or("")).unwrap_or_default();
        if parts.len() > 1 {
            return Err(format!("I2: {} parts of one resource: {}", parts.len(), resource.body));
        }
        let phase = resource.body["status"]["phase"].as_str().unwrap_or("");
        let is_ready =
            parts.first().is_some_and(|part| part.body["status"]["conditions"][0]["status"] == "True");
        let template = !resource.body["spec"]["template"].is_null();
        match phase {
            "" if template => return Err(format!("a resource has no phase: {}", resource.body)),
            "Creating" if is_ready || parts.is_empty() => {
                return Err(format!(
                    "a resource stays Creating although its part is ready or missing: {}",
                    resource.body
                ));
            }
            _ => {}
        }
    }
    owned.keys().try_for_each(|owner| run.invariants.check_orphan(owner))
}

/// I11: the naive scheduler finds nothing left to do.
fn check_liveness(run: &Run) -> Result<(), String> {
    let mut oracle = Oracle::read(run.world.objects(), run.now.0);
    oracle.bury_absent();
    let outcomes = oracle.decide_all();
    for (key, outcome) in outcomes {
        match outcome {
            Outcome::Bind(name) => return Err(format!("I11: claim {key} waits, and {name} fits")),
            // The name is taken: an administrator gave the claim's resource to another claim.
            Outcome::Provision(_) if is_taken(run, &key) => {}
            Outcome::Provision(class) => {
                return Err(format!("I11: claim {key} waits, and class {class} would provision"));
            }
            Outcome::Held(_) | Outcome::Wait(..) | Outcome::Lost | Outcome::Leaving => {}
        }
    }
    Ok(())
}

fn is_taken(run: &Run, key: &str) -> bool {
    let uid = claims(&run.world).find(|c| crate::world::key_of(c).to_string() == key);
    let name = uid.and_then(|c| c.metadata.uid.as_ref()).map(|uid| format!("rdb-{uid}"));
    resources(&run.world).any(|r| r.metadata.name == name)
}

/// I10: a relist causes no write, and a new engine only updates messages of waiting claims: a waiting claim is retried
/// only when something may help it, so its message may be out of date. A second restart writes nothing.
fn check_stability(run: &mut Run, rng: &mut Rng) -> Result<(), String> {
    let before = run.writes;
    KINDS.into_iter().try_for_each(|kind| run.relist(kind))?;
    run.relist_parts();
    run_until_idle(run)?;
    if run.writes > before {
        return Err(format!("I10: {} writes after a relist", run.writes - before));
    }
    run.note(|| "restart".to_owned());
    run.restart(rng)?;
    if let Some(sent) = run.sent.iter().find(|sent| !only_updates_message(&sent.action)) {
        return Err(format!("I10: a restart sends {:?}", sent.action));
    }
    run_until_idle(run)?;
    let before = run.writes;
    run.note(|| "second restart".to_owned());
    run.restart(rng)?;
    run_until_idle(run)?;
    if run.writes > before {
        return Err(format!("I10: a second restart sends {} writes", run.writes - before));
    }
    Ok(())
}

fn only_updates_message(action: &Action) -> bool {
    let Action::Write(write) = action else { return false };
    matches!(&write.change, Change::ClaimStatus { phase: ClaimPhase::Pending, resource: None, .. })
}
