//! `sim gate`: reads a suite's files, writes the verdict in every requested format, returns one exit code.

use super::args::{GateArguments, Input};
use super::overwrite_check::files_of;
use super::state::{self, Broken};
use super::{answer, files, plural};
use crate::{output, table};
use anyhow::{Context, Result, bail};
use comfy_table::{Cell, Color};
use conductor_simulator::gate::{self, Baseline, Gate, Suite, Verdict};
use conductor_simulator::plan::{API_VERSION, Plan, unlabelled};
use conductor_simulator::report;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The exit code of a verdict without a baseline.
const INCONCLUSIVE: u8 = 3;

/// `conductor sim gate`.
pub fn gate(arguments: &GateArguments) -> Result<u8> {
    let suite = Suite::read(&arguments.suite)?;
    require_apart(arguments, &suite)?;
    if arguments.bless {
        // The plan becomes the baseline; cases and thresholds are still judged below. The old baseline is not read, so that
        // a damaged one can be replaced.
        let (_, plan) = judge(arguments, &suite, None)?;
        bless(&arguments.suite, &suite, &plan)?;
    }
    let answer = || -> Result<Verdict> {
        let suite = Suite::read(&arguments.suite)?;
        let baseline = suite.baseline.as_ref().map(|path| read_baseline(&beside(&arguments.suite, path)));
        Ok(judge(arguments, &suite, baseline.transpose()?.flatten())?.0)
    };
    let verdict = answer()?;
    // A file that cannot be written is an error, and the verdict is printed nevertheless.
    let written = forms(arguments, &verdict, &suite).and_then(|forms| files::write_all(&forms));
    let code = match (verdict.passed, verdict.inconclusive) {
        (true, _) => 0,
        (false, true) => INCONCLUSIVE,
        (false, false) => 1,
    };
    let code = answer::print(&arguments.output, code, &verdict, answer, |out| verdict_table(out, &verdict))?;
    written.context("the verdict is final, but could not be written in every format")?;
    Ok(code)
}

/// Refuses to write a format over another one, or over a file of the suite.
fn require_apart(arguments: &GateArguments, suite: &Suite) -> Result<()> {
    let GateArguments { junit, sarif, markdown, page, .. } = arguments;
    let mut read = vec![("the suite", arguments.suite.clone())];
    read.extend(files_of("its state", &all_beside(&arguments.suite, &suite.state))?);
    read.extend(files_of("its policies", &all_beside(&arguments.suite, &suite.policies))?);
    let written = [
        ("its baseline", suite.baseline.as_ref().map(|path| beside(&arguments.suite, path))),
        ("--junit", junit.clone()),
        ("--sarif", sarif.clone()),
        ("--markdown", markdown.clone()),
        ("--html", page.html.clone()),
    ];
    let written = written.into_iter().filter_map(|(what, path)| Some((what, path?)));
    files::require_apart(&read, &written.collect::<Vec<_>>())
}

fn judge(arguments: &GateArguments, suite: &Suite, baseline: Option<Baseline>) -> Result<(Verdict, Plan)> {
    let input = Input {
        paths: all_beside(&arguments.suite, &suite.state),
        system_namespace: arguments.system_namespace.clone(),
        namespace: "default".to_owned(),
    };
    let (home, system) = (&input.namespace, &input.system_namespace);
    let state = state::read_as(&input, Broken::Refused)?;
    let policies = state::read_policies(&all_beside(&arguments.suite, &suite.policies), home, system)?;
    let everything: Vec<_> = state.iter().chain(&policies).cloned().collect();
    let unlabelled = unlabelled(&everything);
    if !unlabelled.is_empty() {
        bail!("{}", state::unlabelled_message(&unlabelled));
    }
    if !suite.policies.is_empty() && policies.is_empty() {
        bail!(
            "{}: the policies contain no object of Conductor: nothing would be checked",
            arguments.suite.display()
        );
    }
    let gate = Gate { suite, state, policies, baseline, options: state::options(&input) };
    gate.judge().map_err(|why| anyhow::anyhow!("{}: {why}", arguments.suite.display()))
}

/// A path relative to the suite's folder.
fn beside(suite: &Path, path: &Path) -> PathBuf {
    match suite.parent() {
        Some(folder) if path.is_relative() => folder.join(path),
        _ => path.to_owned(),
    }
}

fn all_beside(suite: &Path, paths: &[PathBuf]) -> Vec<PathBuf> {
    paths.iter().map(|path| beside(suite, path)).collect()
}

fn read_baseline(path: &Path) -> Result<Option<Baseline>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => bail!("{}: {error}", path.display()),
    };
    let baseline: Baseline = serde_json::from_str(&text)
        .with_context(|| format!("{} is not a baseline: replace it with --bless", path.display()))?;
    if baseline.api_version != API_VERSION || baseline.kind != "GateBaseline" {
        bail!(
            "{} is of kind {} {}: replace it with --bless",
            path.display(),
            baseline.api_version,
            baseline.kind
        );
    }
    Ok(Some(baseline))
}

fn bless(path: &Path, suite: &Suite, plan: &Plan) -> Result<()> {
    let Some(baseline) = &suite.baseline else {
        bail!("{} names no baseline to write: add `baseline: FILE` to it", path.display());
    };
    let baseline = beside(path, baseline);
    files::write_whole(&baseline, &(serde_json::to_string_pretty(&Baseline::of(plan))? + "\n"))?;
    output::diagnostic(&format!("wrote baseline {}", baseline.display()));
    Ok(())
}

/// The verdict in every requested format, with its file.
fn forms(arguments: &GateArguments, verdict: &Verdict, suite: &Suite) -> Result<Vec<(PathBuf, String)>> {
    let mut forms = Vec::new();
    if let Some(path) = &arguments.junit {
        forms.push((path.clone(), gate::junit(verdict).map_err(anyhow::Error::msg)?));
    }
    if let Some(path) = &arguments.sarif {
        let shown = |p: &PathBuf| beside(&arguments.suite, p).display().to_string();
        let policies: Vec<String> = suite.policies.iter().map(shown).collect();
        let sarif = gate::sarif(verdict, &arguments.suite.display().to_string(), &policies, &suite.lines);
        forms.push((path.clone(), serde_json::to_string_pretty(&sarif)? + "\n"));
    }
    if let Some(path) = &arguments.markdown {
        forms.push((path.clone(), gate::markdown(verdict)));
    }
    if let Some(path) = &arguments.page.html {
        let read = [vec![arguments.suite.clone()], all_beside(&arguments.suite, &suite.state)].concat();
        let read = [read, all_beside(&arguments.suite, &suite.policies)].concat();
        let made = answer::provenance(&answer::paths(&read));
        forms.push((path.clone(), report::gate(verdict).html(&made).map_err(anyhow::Error::msg)?));
    }
    Ok(forms)
}

fn verdict_table(out: &mut impl Write, verdict: &Verdict) -> io::Result<()> {
    let mut judged: Vec<_> = verdict.judged.iter().collect();
    judged.sort_by_key(|j| j.passed);
    table::rows(out, &["VERDICT", "CLAIMS", "CHECK", "MESSAGE"], &judged, "check", |judged| {
        let (text, colour) = if judged.passed { ("passed", Color::Green) } else { ("failed", Color::Red) };
        let mut message = judged.failures.join("\n");
        if judged.more > 0 {
            message.push_str(&format!("\nand {} more", judged.more));
        }
        vec![
            Cell::new(text).fg(colour),
            Cell::new(judged.matched),
            Cell::new(table::short(&judged.name, table::CLAIM_MAX)),
            Cell::new(message),
        ]
    })?;
    let failed = verdict.judged.iter().filter(|j| !j.passed).count();
    match (verdict.passed, verdict.inconclusive) {
        (true, _) => writeln!(out, "passed: {}", plural(verdict.judged.len(), "check")),
        (false, true) => writeln!(out, "inconclusive: no baseline yet; create one with --bless"),
        (false, false) => writeln!(out, "failed: {failed} of {}", plural(verdict.judged.len(), "check")),
    }
}
