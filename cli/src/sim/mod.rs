//! `conductor sim`: a state in, the engine's answer out. Loading, planning and everything else is the simulator's;
//! each question has its room here, which reads its arguments and writes its answer.

mod answer;
pub mod args;
mod compare;
mod files;
mod fuzz;
mod gate;
mod places;
mod plan;
mod progress;
mod record;
mod replay;
mod state;
mod tui;
mod whatif;

use anyhow::{Result, bail};
use args::Simulate;
use conductor_simulator::plan::Planned;

/// How many names are listed where there may be any number of them.
const NAMES_MAX: usize = 5;

/// Answers one question. Returns the exit code.
pub fn run(question: &Simulate) -> Result<u8> {
    places::require_apart(question)?;
    match question {
        Simulate::Plan(arguments) => plan::plan(arguments),
        Simulate::Explain(arguments) => plan::explain(arguments),
        Simulate::WhatIf(arguments) => whatif::what_if(arguments),
        Simulate::Fit(arguments) => whatif::fit(arguments),
        Simulate::Size(arguments) => whatif::size(arguments),
        Simulate::ClassImpact(arguments) => whatif::class_impact(arguments),
        Simulate::Compare(arguments) => compare::compare(arguments),
        Simulate::Record(arguments) => record::record(arguments),
        Simulate::Inspect(arguments) => record::inspect(arguments),
        Simulate::Audit(arguments) => record::audit(arguments),
        Simulate::Import(arguments) => record::import(arguments),
        Simulate::Export(arguments) => record::export(arguments),
        Simulate::Replay(arguments) => replay::replay(arguments),
        Simulate::Gate(arguments) => gate::gate(arguments),
        Simulate::Fuzz(arguments) => fuzz::fuzz(arguments),
        Simulate::Shrink(arguments) => fuzz::shrink(arguments),
    }
}

/// `NS/NAME`, or a name in the default namespace.
pub fn split<'a>(claim: &'a str, namespace: &'a str) -> Result<(&'a str, &'a str)> {
    match claim.split('/').collect::<Vec<_>>()[..] {
        [name] if !name.is_empty() => Ok((namespace, name)),
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => Ok((namespace, name)),
        _ => bail!("{claim:?} names no claim: write NAMESPACE/NAME"),
    }
}

/// Claims of the same name elsewhere, or whatever claims there are.
pub fn suggest(planned: &Planned, name: &str) -> String {
    let claims: Vec<String> = planned.claims().map(ToString::to_string).collect();
    let same: Vec<String> = claims.iter().filter(|c| c.ends_with(&format!("/{name}"))).cloned().collect();
    match (same.is_empty(), claims.is_empty()) {
        (false, _) => format!("; there is {}", list(&same)),
        (true, false) => format!("; there are {}", list(&claims)),
        (true, true) => ", which holds no claims at all".to_owned(),
    }
}

/// `1 claim`, `2 claims`.
pub fn plural(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

/// The first few, and how many more.
pub fn list(names: &[String]) -> String {
    let shown = names[..names.len().min(NAMES_MAX)].join(", ");
    match names.len().saturating_sub(NAMES_MAX) {
        0 => shown,
        more => format!("{shown} and {more} more"),
    }
}
