//! Worlds: random histories of a whole cluster, users, administrators and faults against the production engine, every
//! law checked after every write. A seed is a history; the same seed is the same history, everywhere and always.
//!
//! ```text
//! seed -> driver (world, engine, watches, writes, crashes) <- users
//!              |                                                mutant (the engine, broken on purpose)
//!              v
//!            laws after every write, finale at the end -> shrink -> the smallest history that still fails
//! ```
//!
//! The plain scheduler in `brute` decides by scanning everything; what the engine leaves undone it would find.

// These rooms are public for our own tests, which drive histories by hand; they are no interface.
#[doc(hidden)]
pub mod brute;
#[doc(hidden)]
pub mod driver;
#[doc(hidden)]
pub mod finale;
#[doc(hidden)]
pub mod laws;
mod mutant;
#[doc(hidden)]
pub mod rng;
mod shrink;
#[doc(hidden)]
pub mod users;
mod words;

pub use mutant::Mutant;
pub use shrink::{Shrunk, shrink};

use crate::plan::API_VERSION;
use conductor::model::{Kind, Object, TypeId};
use driver::{Run, Step, steps};
use rng::Rng;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::panic::{AssertUnwindSafe, catch_unwind};

#[doc(hidden)]
pub const TYPE: TypeId = TypeId::RELATIONAL_DATABASE;
#[doc(hidden)]
pub const SYSTEM: &str = "conductor-system";

/// What became of many histories.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fuzz {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Fuzz`.
    pub kind: &'static str,
    /// The first seed.
    pub from: u64,
    /// How many there were.
    pub seeds: u64,
    /// How the engine was broken on purpose, where it was.
    pub mutant: Option<&'static str>,
    /// Writes that the engine sent in all of them.
    pub writes: u64,
    /// The seeds that failed, in order.
    pub failures: Vec<Failure>,
}

/// A history that broke a law.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Failure {
    /// Its seed.
    pub seed: u64,
    /// What went wrong.
    pub wrong: String,
}

/// Plays the seeds from `from` on, on all processors. `done` hears how many have been played.
pub fn fuzz(from: u64, seeds: u64, mutant: Option<Mutant>, done: impl Fn(u64) + Sync) -> Fuzz {
    let threads = std::thread::available_parallelism().map_or(1, usize::from).min(16) as u64;
    let play_some = |part: u64| {
        let (mut failures, mut writes) = (Vec::new(), 0);
        for seed in (from..from.saturating_add(seeds)).filter(|seed| seed % threads == part) {
            match play(seed, &steps_of(seed), &BTreeSet::new(), mutant, false) {
                Ok(sent) => writes += sent as u64,
                Err(fall) => failures.push(Failure { seed, wrong: fall.wrong }),
            }
            done(1);
        }
        (writes, failures)
    };
    let parts: Vec<(u64, Vec<Failure>)> = std::thread::scope(|scope| {
        let play_some = &play_some;
        let workers: Vec<_> = (0..threads).map(|part| scope.spawn(move || play_some(part))).collect();
        workers.into_iter().filter_map(|worker| worker.join().ok()).collect()
    });
    let writes = parts.iter().map(|(writes, _)| writes).sum();
    let mut failures: Vec<Failure> = parts.into_iter().flat_map(|(_, failures)| failures).collect();
    failures.sort();
    let mutant = mutant.map(Mutant::name);
    Fuzz { api_version: API_VERSION, kind: "Fuzz", from, seeds, mutant, writes, failures }
}

/// How a history fell.
pub(crate) struct Fall {
    pub wrong: String,
    pub trace: String,
    pub beginning: Vec<Object>,
}

/// What became of one history: how many writes the engine sent, or how it fell.
pub(crate) fn play(
    seed: u64,
    steps: &[Step],
    without: &BTreeSet<usize>,
    mutant: Option<Mutant>,
    traced: bool,
) -> Result<usize, Fall> {
    let fall = |wrong, run: Option<&Run>| Fall {
        wrong,
        trace: run.map(Run::trace).unwrap_or_default(),
        beginning: run.map(|run| run.beginning.clone()).unwrap_or_default(),
    };
    let mut run = match catch_unwind(|| Run::start(seed, without, mutant, traced)) {
        Ok(Ok(run)) => run,
        Ok(Err(wrong)) => return Err(fall(wrong, None)),
        Err(panic) => return Err(fall(words(&*panic), None)),
    };
    let lived = catch_unwind(AssertUnwindSafe(|| {
        for step in steps {
            run.step(*step)?;
        }
        finale::conclude(&mut run, &mut Rng::new(seed ^ 0xF1A1E))
    }));
    match lived {
        Ok(Ok(())) => Ok(run.writes),
        Ok(Err(wrong)) => Err(fall(wrong, Some(&run))),
        Err(panic) => Err(fall(words(&*panic), Some(&run))),
    }
}

fn words(panic: &(dyn std::any::Any + Send)) -> String {
    let words = panic.downcast_ref::<String>().cloned();
    let words = words.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
    format!("panic: {}", words.unwrap_or_default())
}

pub(crate) fn steps_of(seed: u64) -> Vec<Step> {
    steps(&mut Rng::new(seed ^ 0x57E5))
}

/// An object as an API server serves it.
#[doc(hidden)]
pub fn object(kind: Kind, namespace: &str, name: &str, meta: Value, body: Value) -> Object {
    let mut metadata = json!({"name": name});
    if !namespace.is_empty() {
        metadata["namespace"] = json!(namespace);
    }
    for (key, value) in meta.as_object().into_iter().flatten() {
        metadata[key] = value.clone();
    }
    let metadata = serde_json::from_value(metadata).unwrap_or_default();
    Object { kind, metadata, body }
}
