//! `conductor sim`: a state in, the engine's result out. The simulator loads and plans; each command has a file here,
//! which reads its arguments and prints its result.

mod answer;
pub mod args;
mod compare;
mod files;
mod fuzz;
mod gate;
mod overwrite_check;
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

/// Most names in a list within a sentence.
const NAMES_MAX: usize = 5;

/// Runs one command. Returns the exit code.
pub fn run(command: &Simulate) -> Result<u8> {
    overwrite_check::require_apart(command)?;
    match command {
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

/// Splits `NS/NAME`; a name alone is in the given namespace.
pub fn split<'a>(claim: &'a str, namespace: &'a str) -> Result<(&'a str, &'a str)> {
    match claim.split('/').collect::<Vec<_>>()[..] {
        [name] if !name.is_empty() => Ok((namespace, name)),
        [namespace, name] if !namespace.is_empty() && !name.is_empty() => Ok((namespace, name)),
        _ => bail!("{claim:?} is not a claim: write NAMESPACE/NAME"),
    }
}

/// Suggests claims of the same name in other namespaces, else any claims.
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
