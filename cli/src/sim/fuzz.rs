//! `sim fuzz` and `sim shrink`: random histories, and the smallest one that still fails.

use super::args::{FuzzArguments, Output, ShrinkArguments};
use super::{answer, files, plural, progress};
use crate::args::CrdFormat;
use crate::output;
use anyhow::{Result, bail};
use conductor_simulator::fuzz::{self, Fuzz, Mutant, Shrunk};
use conductor_simulator::plan::API_VERSION;
use serde::Serialize;
use std::io::{self, Write};
use std::path::Path;

/// Most failures that are shown.
const FAILURES_MAX: usize = 20;

/// `conductor sim fuzz`.
pub fn fuzz(arguments: &FuzzArguments) -> Result<u8> {
    if arguments.list_mutants {
        return list_mutants(&arguments.output);
    }
    if arguments.from.checked_add(arguments.seeds).is_none() {
        bail!("seeds end at {}: start before --from {}, or run fewer", u64::MAX, arguments.from);
    }
    let mutant = find_mutant(arguments.mutant.as_deref())?;
    let answer = || -> Result<Fuzz> {
        let bar = progress::of(arguments.seeds, "fuzzing");
        // A panic in a history is a finding, which is reported with its seed.
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let found = fuzz::fuzz(arguments.from, arguments.seeds, mutant, |n| bar.inc(n));
        std::panic::set_hook(hook);
        bar.finish_and_clear();
        Ok(found)
    };
    let found = answer()?;
    let code = u8::from(!found.failures.is_empty());
    answer::print(&arguments.output, code, &found, answer, |out| fuzz_table(out, &found))
}

/// The ways to break the engine on purpose.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Mutants {
    api_version: &'static str,
    kind: &'static str,
    mutants: Vec<Broken>,
}

#[derive(Serialize)]
struct Broken {
    name: &'static str,
    what: &'static str,
}

fn list_mutants(output: &Output) -> Result<u8> {
    let answer = || {
        let mutants = Mutant::all().iter().map(|m| Broken { name: m.name(), what: m.what() }).collect();
        Ok(Mutants { api_version: API_VERSION, kind: "Mutants", mutants })
    };
    let document = answer()?;
    let table = |out: &mut dyn Write| {
        document.mutants.iter().try_for_each(|Broken { name, what }| writeln!(out, "{name:<28} {what}"))
    };
    answer::print(output, 0, &document, answer, |out| table(out))
}

fn fuzz_table(out: &mut impl Write, found: &Fuzz) -> io::Result<()> {
    for failure in found.failures.iter().take(FAILURES_MAX) {
        let wrong: String = failure.wrong.chars().take(160).collect();
        writeln!(out, "seed {}: {wrong}", failure.seed)?;
    }
    if found.failures.len() > FAILURES_MAX {
        writeln!(out, "and {} more", found.failures.len() - FAILURES_MAX)?;
    }
    let played = format!(
        "{} from {}, {} writes",
        plural(found.seeds as usize, "history").replace("historys", "histories"),
        found.from,
        found.writes
    );
    match found.failures.first() {
        None => writeln!(out, "{played}: every invariant held"),
        Some(first) => {
            let mutant = found.mutant.map(|m| format!(" --mutant {m}")).unwrap_or_default();
            writeln!(out, "{played}: {} failed", found.failures.len())?;
            writeln!(out, "reduce the first failure: conductor sim shrink --seed {}{mutant}", first.seed)
        }
    }
}

fn find_mutant(name: Option<&str>) -> Result<Option<Mutant>> {
    let Some(name) = name else { return Ok(None) };
    match Mutant::find(name) {
        Some(mutant) => Ok(Some(mutant)),
        None => bail!("no mutant {name:?}: `conductor sim fuzz --list-mutants` lists them"),
    }
}

/// `conductor sim shrink`.
pub fn shrink(arguments: &ShrinkArguments) -> Result<u8> {
    let mutant = find_mutant(arguments.mutant.as_deref())?;
    let answer = || -> Result<Answer> {
        let hook = std::panic::take_hook();
        std::panic::set_hook(Box::new(|_| {}));
        let small = fuzz::shrink(arguments.seed, mutant);
        std::panic::set_hook(hook);
        let held = Held {
            api_version: API_VERSION,
            kind: "Shrunk",
            seed: arguments.seed,
            mutant: mutant.map(Mutant::name),
            wrong: None,
        };
        Ok(small.map_or(Answer::Held(held), |small| Answer::Failed(Box::new(small))))
    };
    let found = answer()?;
    let small = match &found {
        Answer::Failed(small) => Some(&**small),
        Answer::Held(_) => None,
    };
    if let (Some(folder), Some(small)) = (&arguments.write, small) {
        write(folder, small)?;
    }
    let code = u8::from(small.is_some());
    answer::print(&arguments.output, code, &found, answer, |out| shrink_table(out, arguments.seed, small))
}

/// The result of `sim shrink`.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Failed(Box<Shrunk>),
    Held(Held),
}

/// A seed that does not fail.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Held {
    api_version: &'static str,
    kind: &'static str,
    seed: u64,
    mutant: Option<&'static str>,
    wrong: Option<String>,
}

fn yaml(small: &Shrunk) -> Result<String> {
    let mut text = Vec::new();
    output::manifests(&mut text, CrdFormat::Yaml, &small.state)?;
    Ok(String::from_utf8(text)?)
}

fn write(folder: &Path, small: &Shrunk) -> Result<()> {
    std::fs::create_dir_all(folder)?;
    let history = small.history.join("\n") + "\n";
    files::write_all(&[(folder.join("state.yaml"), yaml(small)?), (folder.join("history.txt"), history)])?;
    output::diagnostic(&format!("wrote state.yaml and history.txt to {}", folder.display()));
    Ok(())
}

fn shrink_table(out: &mut impl Write, seed: u64, small: Option<&Shrunk>) -> io::Result<()> {
    let Some(small) = small else { return writeln!(out, "seed {seed} does not fail: every invariant held") };
    writeln!(out, "{}\n", small.wrong)?;
    writeln!(out, "initial state:\n\n{}", yaml(small).map_err(io::Error::other)?)?;
    writeln!(out, "history:\n")?;
    for line in &small.history {
        writeln!(out, "{line}")?;
    }
    let (steps, objects) = (small.steps, small.objects);
    writeln!(
        out,
        "\nseed {seed}: {} of {} steps and {} of {} objects reproduce the failure",
        steps.1, steps.0, objects.1, objects.0
    )
}
