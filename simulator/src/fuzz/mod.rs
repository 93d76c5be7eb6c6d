//! Random histories of a whole cluster with users, administrators and faults, against the production engine. Every
//! invariant is checked after every write. A seed always gives the same history.
//!
//! ```text
//! seed -> driver (world, engine, watches, writes, crashes) <- actors
//!              |                                                mutant (the engine, deliberately broken)
//!              v
//!            invariants after every write, quiesce at the end -> shrink -> the smallest history that still fails
//! ```
//!
//! The naive scheduler in `oracle` decides by scanning everything, and finds what the engine left undone.

// Public for our own tests, which drive histories by hand; not an interface.
#[doc(hidden)]
pub mod actors;
#[doc(hidden)]
pub mod driver;
#[doc(hidden)]
pub mod invariants;
mod mutant;
#[doc(hidden)]
pub mod oracle;
#[doc(hidden)]
pub mod quiesce;
#[doc(hidden)]
pub mod rng;
mod shrink;
mod trace;

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

/// The result of many histories.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Fuzz {
    pub api_version: &'static str,
    pub kind: &'static str,
    /// The first seed.
    pub from: u64,
    pub seeds: u64,
    /// How the engine was deliberately broken, if it was.
    pub mutant: Option<&'static str>,
    /// Number of writes that the engine sent.
    pub writes: u64,
    /// The seeds that failed, in order.
    pub failures: Vec<Failure>,
}

/// A history that violated an invariant.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Failure {
    pub seed: u64,
    /// The violation.
    pub wrong: String,
}

/// Plays all seeds from `from` on, on all processors. Calls `done` with the number of seeds just played.
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

/// A failed history.
pub(crate) struct Failed {
    pub wrong: String,
    pub trace: String,
    pub beginning: Vec<Object>,
}

/// Plays one history. Returns the number of writes, or how it failed.
pub(crate) fn play(
    seed: u64,
    steps: &[Step],
    without: &BTreeSet<usize>,
    mutant: Option<Mutant>,
    traced: bool,
) -> Result<usize, Failed> {
    let fall = |wrong, run: Option<&Run>| Failed {
        wrong,
        trace: run.map(Run::trace).unwrap_or_default(),
        beginning: run.map(|run| run.beginning.clone()).unwrap_or_default(),
    };
    let mut run = match catch_unwind(|| Run::start(seed, without, mutant, traced)) {
        Ok(Ok(run)) => run,
        Ok(Err(wrong)) => return Err(fall(wrong, None)),
        Err(panic) => return Err(fall(message(&*panic), None)),
    };
    let lived = catch_unwind(AssertUnwindSafe(|| {
        for step in steps {
            run.step(*step)?;
        }
        quiesce::conclude(&mut run, &mut Rng::new(seed ^ 0xF1A1E))
    }));
    match lived {
        Ok(Ok(())) => Ok(run.writes),
        Ok(Err(wrong)) => Err(fall(wrong, Some(&run))),
        Err(panic) => Err(fall(message(&*panic), Some(&run))),
    }
}

fn message(panic: &(dyn std::any::Any + Send)) -> String {
    let message = panic.downcast_ref::<String>().cloned();
    let message = message.or_else(|| panic.downcast_ref::<&str>().map(|s| (*s).to_owned()));
    format!("panic: {}", message.unwrap_or_default())
}

pub(crate) fn steps_of(seed: u64) -> Vec<Step> {
    steps(&mut Rng::new(seed ^ 0x57E5))
}

/// Creates an object as an API server returns it.
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
