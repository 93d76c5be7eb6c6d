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
    answer::print(&arguments.output, 0, &plan, again, |out| table::plan(out, &plan))
}

/// `conductor sim explain`.
pub fn explain(arguments: &ExplainArguments) -> Result<u8> {
    let input = &arguments.input;
    let wanted = arguments.claim.as_deref().map(|claim| split(claim, &input.namespace)).transpose()?;
    let planned = planned(input)?;
    let explained = planned.explain(wanted);
    if let (Some((namespace, name)), true) = (wanted, explained.claims.is_empty()) {
        bail!("no claim {namespace}/{name} in the input{}", suggest(&planned, name));
    }
    let again = || Ok(self::planned(input)?.explain(wanted));
    answer::print(&arguments.output, 0, &explained, again, |out| table::explained(out, &explained))
}

/// Loads and plans.
///
/// The result is never dropped: the process ends with it, and dropping a hundred thousand claims one by one would keep
/// the user waiting.
fn planned(input: &Input) -> Result<ManuallyDrop<Planned>> {
    let objects = state::read(input)?;
    Ok(ManuallyDrop::new(Planned::new(objects, &state::options(input))))
}
