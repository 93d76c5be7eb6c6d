//! `sim compare`: one state under two profiles, or two states, side by side.

use super::args::CompareArguments;
use super::{answer, state, whatif};
use crate::table;
use anyhow::{Result, bail};
use conductor::model::{Kind, Object};
use conductor_simulator::compare::{self, Comparison, Figures, Way, as_default};
use conductor_simulator::record::is_recording;
use conductor_simulator::replay::{self, Options, Percentiles};
use conductor_simulator::report;
use conductor_simulator::whatif::Edit;
use std::io::{self, Write};
use std::path::Path;

/// `conductor sim compare`.
pub fn compare(arguments: &CompareArguments) -> Result<u8> {
    let answer = || -> Result<Comparison> {
        let objects = state::read(&arguments.input)?;
        let (a, b) = match (&arguments.a, &arguments.b, &arguments.with) {
            (Some(a), Some(b), None) => {
                (profiled(arguments, &objects, a)?, profiled(arguments, &objects, b)?)
            }
            (None, None, Some(with)) => {
                let other = super::args::Input {
                    paths: with.clone(),
                    system_namespace: arguments.input.system_namespace.clone(),
                    namespace: arguments.input.namespace.clone(),
                };
                let name = |paths: &[std::path::PathBuf]| {
                    paths.iter().map(|p| p.display().to_string()).collect::<Vec<_>>().join(" ")
                };
                let first = Way { name: name(&arguments.input.paths), waiting: None, objects };
                let second = Way { name: name(with), waiting: None, objects: state::read(&other)? };
                (first, second)
            }
            _ => bail!("say what to compare: --a PROFILE --b PROFILE, or --with STATE"),
        };
        Ok(compare::compare(a, b, &state::options(&arguments.input)))
    };
    let document = answer()?;
    answer::page(&arguments.page, || report::comparison(&document))?;
    let code = u8::from(!document.difference.is_empty());
    answer::print(&arguments.output, &document, answer, |out| comparison_table(out, &document))?.exit(code)
}

/// The state with a profile as the one that applies everywhere.
fn profiled(arguments: &CompareArguments, objects: &[Object], profile: &str) -> Result<Way> {
    let found = if profile == "built-in" { None } else { Some(find(arguments, objects, profile)?) };
    let mut with: Vec<Object> = objects.to_vec();
    let overlay: Vec<Object> = found.iter().map(as_default).collect();
    match overlay.first() {
        Some(default) => Edit::Apply(Box::new(default.clone())).make(&mut with)?,
        None => with.retain(|o| !(o.kind == Kind::Profile && o.metadata.name.as_deref() == Some("default"))),
    }
    Ok(Way { name: profile.to_owned(), objects: with, waiting: waited(arguments, overlay)? })
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
            (None, _) => bail!("{profile} holds no SchedulingProfile"),
            (Some(_), Some(_)) => bail!("{profile} holds several profiles: give one"),
        };
    }
    bail!("{profile:?} is neither a profile of the state, nor a file, nor `built-in`")
}

/// How long claims waited, where the state is one recording: played again under the profile.
fn waited(arguments: &CompareArguments, overlay: Vec<Object>) -> Result<Option<Percentiles>> {
    let [path] = &arguments.input.paths[..] else { return Ok(None) };
    if !is_recording(path) {
        return Ok(None);
    }
    let options = Options { until: None, closed: true, overlay };
    Ok(Some(replay::replay(path, &options)?.waiting.simulated))
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
    row("waste", &|f| format!("{} ({} %)", f.waste, f.waste_percent));
    if a.waiting.is_some() || b.waiting.is_some() {
        let ms = |ms: Option<u64>| ms.map_or("-".to_owned(), |ms| format!("{:.1} s", ms as f64 / 1_000.0));
        row("waited, median", &|f| ms(f.waiting.as_ref().map(|w| w.p50)));
        row("waited, 95 of 100", &|f| ms(f.waiting.as_ref().map(|w| w.p95)));
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
