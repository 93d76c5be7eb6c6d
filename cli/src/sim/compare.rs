//! `sim compare`: one state under two profiles, or two states, side by side.

use super::args::{CompareArguments, Input};
use super::{answer, state, whatif};
use crate::table;
use anyhow::{Result, bail};
use conductor::model::{Kind, Object};
use conductor_simulator::compare::{self, Comparison, Figures, Scenario, as_default};
use conductor_simulator::record::is_recording;
use conductor_simulator::replay::{self, Options};
use conductor_simulator::report;
use conductor_simulator::whatif::Edit;
use std::collections::BTreeSet;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// `conductor sim compare`.
pub fn compare(arguments: &CompareArguments) -> Result<u8> {
    let answer = || -> Result<Comparison> {
        let mut options = state::options(&arguments.input);
        let (a, b) = match (&arguments.a, &arguments.b, &arguments.with) {
            (Some(a), Some(b), None) => {
                // In the final state of a replay every resource has a phase.
                options.absent_phase_is_available = find_recording(&arguments.input).is_none();
                let objects = state::read(&arguments.input)?;
                (profiled(arguments, &objects, a)?, profiled(arguments, &objects, b)?)
            }
            (None, None, Some(with)) => {
                let other = Input {
                    paths: with.clone(),
                    system_namespace: arguments.input.system_namespace.clone(),
                    namespace: arguments.input.namespace.clone(),
                };
                (as_it_is(&arguments.input)?, as_it_is(&other)?)
            }
            _ => bail!("nothing to compare: give --a PROFILE --b PROFILE, or --with STATE"),
        };
        Ok(compare::compare(a, b, &options))
    };
    let document = answer()?;
    let profiles: Vec<PathBuf> =
        [&arguments.a, &arguments.b].into_iter().flatten().map(PathBuf::from).collect();
    let profiles = profiles.iter().filter(|path| path.is_file());
    let with = arguments.with.iter().flatten();
    let read = answer::paths(arguments.input.paths.iter().chain(with).chain(profiles));
    answer::page(&arguments.page, &read, |made| report::comparison(&document).html(made))?;
    let code = u8::from(!document.difference.is_empty());
    answer::print(&arguments.output, code, &document, answer, |out| comparison_table(out, &document))
}

/// A state as it is, or a recording's final state.
fn as_it_is(input: &Input) -> Result<Scenario> {
    let names: Vec<String> = input.paths.iter().map(|path| path.display().to_string()).collect();
    let objects = state::read(input)?;
    let waiting = match find_recording(input) {
        Some(path) => Some(replay::replay(path, &Options::default())?.waiting.live),
        None => None,
    };
    Ok(Scenario { name: names.join(" "), objects, waiting })
}

/// The state under a profile that applies everywhere. A recording is replayed under it, from the replay's own decisions:
/// its final state results from another profile.
fn profiled(arguments: &CompareArguments, objects: &[Object], profile: &str) -> Result<Scenario> {
    let default = match profile {
        "built-in" => compare::built_in(),
        named => as_default(&find(arguments, objects, named)?),
    };
    let (objects, waiting) = match find_recording(&arguments.input) {
        Some(path) => {
            let options = Options { until: None, closed: true, overlay: vec![default] };
            let (replay, end) = replay::replay_to_end(path, &options)?;
            (end, Some(replay.waiting.simulated))
        }
        None => {
            let mut with = objects.to_vec();
            Edit::Apply(Box::new(default)).make(&mut with)?;
            (with, None)
        }
    };
    Ok(Scenario { name: profile.to_owned(), objects, waiting })
}

/// The recording, if the state is one and nothing else.
fn find_recording(input: &Input) -> Option<&Path> {
    match &input.paths[..] {
        [path] if is_recording(path) => Some(path),
        _ => None,
    }
}

/// A profile by its file, or by its name in the state.
fn find(arguments: &CompareArguments, objects: &[Object], profile: &str) -> Result<Object> {
    let named =
        objects.iter().find(|o| o.kind == Kind::Profile && o.metadata.name.as_deref() == Some(profile));
    if let Some(object) = named {
        return Ok(object.clone());
    }
    let input = &arguments.input;
    if Path::new(profile).exists() {
        let read = state::read_files(&[profile.into()], &input.namespace, &input.system_namespace)?;
        let mut profiles = read.into_iter().filter(|o| o.kind == Kind::Profile);
        return match (profiles.next(), profiles.next()) {
            (Some(only), None) => Ok(only),
            (None, _) => bail!("{profile} contains no SchedulingProfile"),
            (Some(_), Some(_)) => bail!("{profile} contains several SchedulingProfiles: give one"),
        };
    }
    bail!("no profile {profile:?}: give a SchedulingProfile of the state, a file, or `built-in`")
}

/// The capacities that either side wastes, in order.
fn capacities<'a>(a: &'a Figures, b: &'a Figures) -> BTreeSet<&'a str> {
    a.waste_by_capacity.keys().chain(b.waste_by_capacity.keys()).map(String::as_str).collect()
}

fn comparison_table(out: &mut impl Write, document: &Comparison) -> io::Result<()> {
    let Comparison { a, b, moved, difference, .. } = document;
    whatif::difference(out, difference)?;
    let mut table = table::table(&["", "A", "B"]);
    let short = |text: &str| table::short(text, table::NAME_MAX);
    let mut row = |name: &str, value: &dyn Fn(&Figures) -> String| {
        table.add_row([name.to_owned(), value(a), value(b)]);
    };
    row("profile or state", &|f| short(&f.name));
    row("bound", &|f| f.summary.bound.to_string());
    row("provision", &|f| f.summary.provision.to_string());
    row("pending", &|f| f.summary.pending.to_string());
    row("lost", &|f| f.summary.lost.to_string());
    row("resources in use", &|f| f.used.to_string());
    for name in capacities(a, b) {
        let waste = |f: &Figures| match f.waste_by_capacity.get(name) {
            Some(waste) => format!("{} ({} %)", waste.left, waste.percent),
            None => "-".to_owned(),
        };
        row(&format!("waste of {name}"), &waste);
    }
    if a.waiting.is_some() || b.waiting.is_some() {
        let ms = |ms: Option<u64>| ms.map_or("-".to_owned(), |ms| format!("{:.1} s", ms as f64 / 1_000.0));
        // Without a bound claim there is no waiting time.
        let waited = |f: &Figures| f.waiting.clone().filter(|waiting| waiting.count > 0);
        row("waited, median", &|f| ms(waited(f).map(|w| w.p50)));
        row("waited, 95 of 100", &|f| ms(waited(f).map(|w| w.p95)));
    }
    writeln!(out, "{}\n", table.trim_fmt())?;
    match difference.is_empty() {
        true => writeln!(out, "no difference"),
        false => {
            let claims = difference.claims.len();
            let differ = if claims == 1 { "differs" } else { "differ" };
            writeln!(out, "{} {differ}, {moved} of them moved", super::plural(claims, "claim"))
        }
    }
}
