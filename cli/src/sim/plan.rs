//! `sim plan` and `sim explain`.

use super::args::{ExplainArguments, Input, PlanArguments};
use super::{answer, split, state, suggest};
use crate::table;
use anyhow::{Result, bail};
use conductor_simulator::plan::Planned;
use conductor_simulator::report;
use std::mem::ManuallyDrop;

/// `conductor sim plan`.
pub fn plan(arguments: &PlanArguments) -> Result<u8> {
    let plan = planned(&arguments.input)?.plan();
    let again = || Ok(planned(&arguments.input)?.plan());
    let read = answer::paths(&arguments.input.paths);
    answer::page(&arguments.page, &read, |made| report::plan(&plan).html(made))?;
    answer::print(&arguments.output, &plan, again, |out| table::plan(out, &plan))?.exit(0)
}

/// `conductor sim explain`.
pub fn explain(arguments: &ExplainArguments) -> Result<u8> {
    let input = &arguments.input;
    let asked = arguments.claim.as_deref().map(|claim| split(claim, &input.namespace)).transpose()?;
    let planned = planned(input)?;
    let explained = planned.explain(asked);
    if let (Some((namespace, name)), true) = (asked, explained.claims.is_empty()) {
        bail!("no claim {namespace}/{name} in the input{}", suggest(&planned, name));
    }
    let again = || Ok(self::planned(input)?.explain(asked));
    answer::print(&arguments.output, &explained, again, |out| table::explained(out, &explained))?.exit(0)
}

/// Loads and plans.
///
/// What is planned with is never taken apart: the process ends with it, and taking apart a hundred thousand
/// claims piece by piece is time that somebody waits.
fn planned(input: &Input) -> Result<ManuallyDrop<Planned>> {
    let objects = state::read(input)?;
    Ok(ManuallyDrop::new(Planned::new(objects, &state::options(input))))
}
