//! `conductor sim`: manifests in, the engine's answer out. Loading and planning are the simulator's.

use crate::args::{ExplainArguments, Format, Input, PlanArguments};
use crate::{output, table};
use anyhow::{Result, bail};
use conductor_simulator::load::{LoadOptions, Loaded, load};
use conductor_simulator::plan::{Options, Planned, check};
use std::io::Write;
use std::mem::ManuallyDrop;

/// How many names are listed where there may be any number of them.
const NAMES_MAX: usize = 5;

/// `conductor sim plan`.
pub fn plan(arguments: &PlanArguments) -> Result<()> {
    let plan = planned(&arguments.input)?.plan();
    let mut out = output::stdout();
    match arguments.output {
        Format::Json => output::json(&mut out, &plan)?,
        Format::Table => table::plan(&mut out, &plan)?,
    }
    Ok(out.flush()?)
}

/// `conductor sim explain`.
pub fn explain(arguments: &ExplainArguments) -> Result<()> {
    let input = &arguments.input;
    let asked = arguments.claim.as_deref().map(|claim| split(claim, &input.namespace)).transpose()?;
    let planned = planned(input)?;
    let explained = planned.explain(asked);
    if let (Some((namespace, name)), true) = (asked, explained.claims.is_empty()) {
        bail!("no claim {namespace}/{name} in the input{}", suggest(&planned, name));
    }
    let mut out = output::stdout();
    match arguments.output {
        Format::Json => output::json(&mut out, &explained)?,
        Format::Table => table::explained(&mut out, &explained)?,
    }
    Ok(out.flush()?)
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

/// Loads and plans, and tells what was passed over on the way.
///
/// What is planned with is never taken apart: the process ends with it, and taking apart a hundred thousand
/// claims piece by piece is time that somebody waits.
fn planned(input: &Input) -> Result<ManuallyDrop<Planned>> {
    let options = LoadOptions {
        namespace: input.namespace.clone(),
        system_namespace: input.system_namespace.clone(),
        ..LoadOptions::default()
    };
    let loaded = load(&input.paths, &options)?;
    tell(&loaded, &input.system_namespace);
    let objects = loaded.objects.into_iter().map(|loaded| loaded.object).collect();
    let system_namespace = input.system_namespace.as_str().into();
    let options = Options { system_namespace, ..Options::default() };
    Ok(ManuallyDrop::new(Planned::new(objects, &options)))
}

fn tell(loaded: &Loaded, system_namespace: &str) {
    let ignored: usize = loaded.ignored.values().sum();
    if ignored > 0 {
        let kinds: Vec<String> = loaded.ignored.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        let objects = plural(ignored, "object");
        output::complain(&format!("ignored {objects} of kinds that do not take part: {}", kinds.join(", ")));
    }
    let findings = check(&loaded.objects, system_namespace);
    for problem in loaded.problems.iter().chain(&findings.problems) {
        output::complain(&format!("warning: {problem}"));
    }
    if !findings.abandoned.is_empty() {
        let names: Vec<String> = findings.abandoned.iter().cloned().collect();
        let (resources, names) = (plural(names.len(), "resource"), list(&names));
        output::complain(&format!(
            "warning: {resources} held by claims that are not in the input, which count as gone: {names}; \
             add the claims if they exist"
        ));
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
