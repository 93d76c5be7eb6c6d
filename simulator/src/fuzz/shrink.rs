//! Shrinks a failing history: leaves out steps and initial objects one by one as long as the same invariant fails.

use super::mutant::Mutant;
use super::{Failed, play, steps_of};
use crate::fuzz::driver::Step;
use crate::plan::API_VERSION;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// A shrunk history.
#[allow(missing_docs, reason = "the fields are named as in the printed document")]
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shrunk {
    pub api_version: &'static str,
    pub kind: &'static str,
    pub seed: u64,
    /// How the engine was deliberately broken, if it was.
    pub mutant: Option<&'static str>,
    /// The violation.
    pub wrong: String,
    /// Number of steps before and after.
    pub steps: (usize, usize),
    /// Number of initial objects before and after.
    pub objects: (usize, usize),
    /// The initial objects as manifests.
    pub state: Vec<Value>,
    /// The history, line by line.
    pub history: Vec<String>,
}

/// Shrinks the history of a seed; `None` if it does not fail.
pub fn shrink(seed: u64, mutant: Option<Mutant>) -> Option<Shrunk> {
    let steps = steps_of(seed);
    let first = play(seed, &steps, &BTreeSet::new(), mutant, false).err()?;
    let invariant = invariant(&first.wrong);
    let fails = |steps: &[Step], without: &BTreeSet<usize>| matches!(play(seed, steps, without, mutant, false), Err(Failed { wrong, .. }) if self::invariant(&wrong) == invariant);
    let all = beginning(seed, mutant);
    let (mut kept, mut without) = (steps.clone(), BTreeSet::new());
    loop {
        let before = (kept.len(), without.len());
        drop_steps(&mut kept, |fewer| fails(fewer, &without));
        for at in 0..all {
            if without.insert(at) && !fails(&kept, &without) {
                without.remove(&at);
            }
        }
        if (kept.len(), without.len()) == before {
            break;
        }
    }
    let Failed { wrong, trace, beginning } = play(seed, &kept, &without, mutant, true).err()?;
    Some(Shrunk {
        api_version: API_VERSION,
        kind: "Shrunk",
        seed,
        mutant: mutant.map(Mutant::name),
        wrong,
        steps: (steps.len(), kept.len()),
        objects: (all, all - without.len()),
        state: beginning.iter().map(conductor::model::Object::to_json).collect(),
        history: trace.lines().map(str::to_owned).collect(),
    })
}

/// Tries to drop halves first, then single steps.
fn drop_steps(kept: &mut Vec<Step>, fails: impl Fn(&[Step]) -> bool) {
    let mut stretch = kept.len() / 2;
    while stretch > 0 {
        let mut at = kept.len();
        while at > 0 {
            let from = at.saturating_sub(stretch);
            let mut fewer = kept.clone();
            fewer.drain(from..at);
            if fails(&fewer) {
                *kept = fewer;
            }
            at = from.min(kept.len());
        }
        stretch /= 2;
    }
}

/// The invariant's number, before the first colon.
fn invariant(wrong: &str) -> String {
    wrong.split(':').next().unwrap_or_default().to_owned()
}

fn beginning(seed: u64, mutant: Option<Mutant>) -> usize {
    let run = super::driver::Run::start(seed, &BTreeSet::new(), mutant, false);
    run.map_or(0, |run| run.beginning.len())
}
