//! How a history ends: faults stop, everything on its way arrives, time passes, and the world must be at rest,
//! whole, and leave no claim waiting that could be served.

use super::brute::{Brute, Outcome};
use super::driver::{Fate, KINDS, Run};
use super::laws::{claims, holders, owner_of, resources};
use super::rng::Rng;
use super::users;
use conductor::action::{Action, Change};
use conductor::model::{ClaimPhase, Part};
use std::collections::BTreeMap;

/// Longer than every pause of the engine, shorter than its safety flush.
const PATIENCE_MS: i64 = 100_000;

/// Lets everything come to rest and looks at what is left.
pub fn conclude(run: &mut Run, rng: &mut Rng) -> Result<(), String> {
    run.note(|| "faults stop".to_owned());
    settle(run)?;
    // What was made by then is implemented, and what that leads to once more.
    for _ in 0..2 {
        users::implement_all(run, rng, false);
        settle(run)?;
    }
    check_rest(run)?;
    check_bindings(run)?;
    check_parts(run)?;
    check_liveness(run)?;
    check_stability(run, rng)
}

/// Delivers, lands and answers everything until nothing moves, time included.
pub fn settle(run: &mut Run) -> Result<(), String> {
    let until = run.now.plus_ms(PATIENCE_MS);
    for _ in 0..5_000 {
        if !run.sent.is_empty() {
            run.land(0, Fate::Told)?;
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
    Err("I10: it does not come to rest".to_owned())
}

fn check_rest(run: &Run) -> Result<(), String> {
    if !run.engine.is_idle() {
        return Err("the engine still waits for something".to_owned());
    }
    let lengths = run.engine.queue_lengths();
    if lengths.active + lengths.backoff > 0 {
        return Err(format!("claims are still to be tried: {lengths:?}"));
    }
    match run.engine.bound_after_flush() {
        0 => Ok(()),
        n => Err(format!("{n} claims bound only after the safety flush")),
    }
}

/// Both sides of every binding agree.
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
            return Err(format!("claim {name} was deleted and is still there: {}", claim.body));
        }
        if by.len() > 1 {
            return Err(format!("I1: claim {name} is held by {by:?} for good"));
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
        let told = if held && !live {
            ["Released", "Failed", "Deleting"].contains(&phase)
        } else {
            // One whose references somebody cleared stays Released.
            phase != "Released" || !held
        };
        if !told {
            return Err(format!("a resource says {phase}: {}", resource.body));
        }
        if phase == "Released" && held && resource.body["spec"]["reclaimPolicy"] == "Delete" {
            return Err(format!(
                "a released resource is to be deleted, and is still there: {}",
                resource.body
            ));
        }
        if resource.metadata.deletion_timestamp.is_some() && !live {
            return Err(format!(
                "a resource was deleted, nobody holds it, and it is still there: {}",
                resource.body
            ));
        }
    }
    Ok(())
}

/// I2 and I5: every resource that is to be implemented has one part that tells how far it is, and every
/// part a resource, unless its resource was to leave it behind.
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
            "" if template => return Err(format!("nobody looked at a resource: {}", resource.body)),
            "Creating" if is_ready || parts.is_empty() => {
                return Err(format!("a resource waits for what is there, or for nobody: {}", resource.body));
            }
            _ => {}
        }
    }
    owned.keys().try_for_each(|owner| run.laws.check_orphan(owner))
}

/// I11: the plain scheduler finds nothing left to do in the world as it is.
fn check_liveness(run: &Run) -> Result<(), String> {
    let mut brute = Brute::read(run.world.objects(), run.now.0);
    brute.bury_absent();
    let outcomes = brute.decide_all();
    for (key, outcome) in outcomes {
        match outcome {
            Outcome::Bind(name) => return Err(format!("I11: claim {key} waits, and {name} fits")),
            // The name is taken: an administrator gave what was made for the claim to somebody else.
            Outcome::Provision(_) if is_taken(run, &key) => {}
            Outcome::Provision(class) => {
                return Err(format!("I11: claim {key} waits, and {class} would make one"));
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

/// I10: told everything once more it writes nothing, and a new engine writes at most what a waiting claim
/// is told. A parked claim is woken only by what can help it, so the counts it shows may be those of its
/// last try; a second restart writes nothing at all.
fn check_stability(run: &mut Run, rng: &mut Rng) -> Result<(), String> {
    let before = run.writes;
    KINDS.into_iter().try_for_each(|kind| run.relist(kind))?;
    run.relist_parts();
    settle(run)?;
    if run.writes > before {
        return Err(format!("I10: {} writes for nothing new", run.writes - before));
    }
    run.note(|| "restart".to_owned());
    run.restart(rng)?;
    if let Some(sent) = run.sent.iter().find(|sent| !only_tells(&sent.action)) {
        return Err(format!("I10: a restart sends {:?}", sent.action));
    }
    settle(run)?;
    let before = run.writes;
    run.note(|| "second restart".to_owned());
    run.restart(rng)?;
    settle(run)?;
    if run.writes > before {
        return Err(format!("I10: a second restart sends {} writes", run.writes - before));
    }
    Ok(())
}

fn only_tells(action: &Action) -> bool {
    let Action::Write(write) = action else { return false };
    matches!(&write.change, Change::ClaimStatus { phase: ClaimPhase::Pending, resource: None, .. })
}
