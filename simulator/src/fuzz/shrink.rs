//! A failing history made small: steps and first objects are left out, one at a time, as long as the same law is
//! still broken. What is left is the shortest story to tell.

use super::mutant::Mutant;
use super::{Fall, play, steps_of};
use crate::fuzz::driver::Step;
use crate::plan::API_VERSION;
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeSet;

/// The smallest history that still fails.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Shrunk {
    /// [`API_VERSION`].
    pub api_version: &'static str,
    /// `Shrunk`.
    pub kind: &'static str,
    /// The seed.
    pub seed: u64,
    /// How the engine was broken on purpose, where it was.
    pub mutant: Option<&'static str>,
    /// What went wrong.
    pub wrong: String,
    /// Steps before and after.
    pub steps: (usize, usize),
    /// Objects in the cluster at the beginning, before and after.
    pub objects: (usize, usize),
    /// The cluster at the beginning, as manifests.
    pub state: Vec<Value>,
    /// What happened, line by line.
    pub history: Vec<String>,
}

/// Makes the history of a seed small; nothing where it does not fail.
pub fn shrink(seed: u64, mutant: Option<Mutant>) -> Option<Shrunk> {
    let steps = steps_of(seed);
    let first = play(seed, &steps, &BTreeSet::new(), mutant, false).err()?;
    let law = law(&first.wrong);
    let fails = |steps: &[Step], without: &BTreeSet<usize>| matches!(play(seed, steps, without, mutant, false), Err(Fall { wrong, .. }) if self::law(&wrong) == law);
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
    let Fall { wrong, trace, beginning } = play(seed, &kept, &without, mutant, true).err()?;
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

/// Halves first, then single steps: long histories are mostly noise.
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

/// The word before the first colon says which law it is.
fn law(wrong: &str) -> String {
    wrong.split(':').next().unwrap_or_default().to_owned()
}

fn beginning(seed: u64, mutant: Option<Mutant>) -> usize {
    let run = super::driver::Run::start(seed, &BTreeSet::new(), mutant, false);
    run.map_or(0, |run| run.beginning.len())
}
