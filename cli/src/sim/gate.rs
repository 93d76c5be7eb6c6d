//! `sim gate`: a suite's files read, the verdict in every form that was asked for, one exit code.

use super::args::{GateArguments, Input};
use super::{answer, plural, state};
use crate::{output, table};
use anyhow::{Context, Result, bail};
use comfy_table::{Cell, Color};
use conductor_simulator::gate::{self, Baseline, Gate, Suite, Verdict};
use conductor_simulator::plan::{API_VERSION, Plan};
use conductor_simulator::report;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// The exit code of a verdict that is open.
const INCONCLUSIVE: u8 = 3;

/// `conductor sim gate`.
pub fn gate(arguments: &GateArguments) -> Result<u8> {
    let answer = || -> Result<(Verdict, Plan, Suite)> {
        let suite = Suite::read(&arguments.suite)?;
        let (verdict, plan) = judge(arguments, &suite)?;
        Ok((verdict, plan, suite))
    };
    if arguments.bless {
        // Blessed is the plan; cases and thresholds still have their say below.
        let (_, plan, suite) = answer()?;
        bless(&arguments.suite, &suite, &plan)?;
    }
    let (verdict, _, suite) = answer()?;
    let again = || answer().map(|(verdict, _, _)| verdict);
    write_forms(arguments, &verdict, &suite)?;
    answer::page(&arguments.output, || report::gate(&verdict))?;
    let code = match (verdict.passed, verdict.inconclusive) {
        (true, _) => 0,
        (false, true) => INCONCLUSIVE,
        (false, false) => 1,
    };
    answer::print(&arguments.output, &verdict, again, |out| verdict_table(out, &verdict))?.exit(code)
}

fn judge(arguments: &GateArguments, suite: &Suite) -> Result<(Verdict, Plan)> {
    let all_beside =
        |paths: &[PathBuf]| paths.iter().map(|p| beside(&arguments.suite, p)).collect::<Vec<_>>();
    let input = Input {
        paths: all_beside(&suite.state),
        system_namespace: arguments.system_namespace.clone(),
        namespace: "default".to_owned(),
    };
    let state = state::read(&input)?;
    let policies =
        state::read_files(&all_beside(&suite.policies), &input.namespace, &input.system_namespace)?;
    if !suite.policies.is_empty() && policies.is_empty() {
        bail!(
            "{}: policies hold no object that takes part: nothing would be judged",
            arguments.suite.display()
        );
    }
    let baseline = match &suite.baseline {
        Some(path) => read_baseline(&beside(&arguments.suite, path))?,
        None => None,
    };
    let gate = Gate { suite, state, policies, baseline, options: state::options(&input) };
    gate.judge().map_err(|why| anyhow::anyhow!("{}: {why}", arguments.suite.display()))
}

/// A path as the suite means it: from its own folder.
fn beside(suite: &Path, path: &Path) -> PathBuf {
    match suite.parent() {
        Some(folder) if path.is_relative() => folder.join(path),
        _ => path.to_owned(),
    }
}

fn read_baseline(path: &Path) -> Result<Option<Baseline>> {
    let text = match std::fs::read_to_string(path) {
        Ok(text) => text,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        Err(error) => bail!("{}: {error}", path.display()),
    };
    let baseline: Baseline = serde_json::from_str(&text)
        .with_context(|| format!("{} is no baseline: make it anew with --bless", path.display()))?;
    if baseline.api_version != API_VERSION || baseline.kind != "GateBaseline" {
        bail!(
            "{} is of kind {} {}: make it anew with --bless",
            path.display(),
            baseline.api_version,
            baseline.kind
        );
    }
    Ok(Some(baseline))
}

fn bless(path: &Path, suite: &Suite, plan: &Plan) -> Result<()> {
    let Some(baseline) = &suite.baseline else {
        bail!("{} names no baseline to bless: write `baseline: FILE` in it", path.display());
    };
    let baseline = beside(path, baseline);
    write_whole(&baseline, &(serde_json::to_string_pretty(&Baseline::of(plan))? + "\n"))?;
    output::complain(&format!("blessed {}", baseline.display()));
    Ok(())
}

/// All of it or nothing: a reader never meets half a file.
pub fn write_whole(path: &Path, text: &str) -> Result<()> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let draft = path.with_file_name(format!(".{name}.{}", std::process::id()));
    let written = std::fs::write(&draft, text).and_then(|()| std::fs::rename(&draft, path));
    if written.is_err() {
        let _ = std::fs::remove_file(&draft);
    }
    written.with_context(|| path.display().to_string())
}

fn write_forms(arguments: &GateArguments, verdict: &Verdict, suite: &Suite) -> Result<()> {
    if let Some(path) = &arguments.junit {
        write_whole(path, &gate::junit(verdict).map_err(anyhow::Error::msg)?)?;
    }
    if let Some(path) = &arguments.sarif {
        let shown = |p: &PathBuf| beside(&arguments.suite, p).display().to_string();
        let policies: Vec<String> = suite.policies.iter().map(shown).collect();
        let sarif = gate::sarif(verdict, &arguments.suite.display().to_string(), &policies);
        write_whole(path, &(serde_json::to_string_pretty(&sarif)? + "\n"))?;
    }
    if let Some(path) = &arguments.markdown {
        write_whole(path, &gate::markdown(verdict))?;
    }
    Ok(())
}

fn verdict_table(out: &mut impl Write, verdict: &Verdict) -> io::Result<()> {
    if !verdict.judged.is_empty() {
        let mut table = table::table(&["VERDICT", "CLAIMS", "WHAT", "WHY"]);
        let mut sorted: Vec<_> = verdict.judged.iter().collect();
        sorted.sort_by_key(|j| j.passed);
        for judged in sorted {
            let (word, colour) =
                if judged.passed { ("passed", Color::Green) } else { ("failed", Color::Red) };
            let mut why = judged.failures.join("\n");
            if judged.more > 0 {
                why.push_str(&format!("\nand {} more", judged.more));
            }
            table.add_row(vec![
                Cell::new(word).fg(colour),
                Cell::new(judged.matched),
                Cell::new(table::short(&judged.name, table::CLAIM_MAX)),
                Cell::new(why),
            ]);
        }
        writeln!(out, "{}\n", table.trim_fmt())?;
    }
    let failed = verdict.judged.iter().filter(|j| !j.passed).count();
    match (verdict.passed, verdict.inconclusive) {
        (true, _) => writeln!(out, "passed: {}", plural(verdict.judged.len(), "check")),
        (false, true) => writeln!(out, "inconclusive: there is no baseline yet; make one with --bless"),
        (false, false) => writeln!(out, "failed: {failed} of {}", plural(verdict.judged.len(), "check")),
    }
}
