//! `sim replay`: replays a recording, and shows its agreement as a table, a page or a view to step through.

use super::args::ReplayArguments;
use super::{answer, files, plural, progress, state, tui};
use crate::table::{self, CLAIM_MAX, MESSAGE_MAX, short};
use anyhow::Result;
use comfy_table::Cell;
use conductor_simulator::record::Verdict;
use conductor_simulator::replay::{self, Explanation, Options, Replay};
use conductor_simulator::report;
use std::io::{self, Write};

/// The exit code of a replay whose differences all have an explanation outside the rules, or that verified nothing.
const INCONCLUSIVE: u8 = 3;

/// `conductor sim replay`.
pub fn replay(arguments: &ReplayArguments) -> Result<u8> {
    let options = Options {
        until: arguments.until.map(|until| until.as_millis() as u64),
        closed: arguments.closed,
        overlay: state::read_files(&arguments.files, "default", &arguments.system_namespace)?,
    };
    if arguments.tui {
        tui::require_terminal()?;
        return tui::run(&arguments.recording, &options).map(|()| 0);
    }
    if let Some(path) = &arguments.tui_picture {
        return files::write_whole(path, &tui::picture(&arguments.recording, &options)?).map(|()| 0);
    }
    let answer = || -> Result<Replay> {
        let bar = progress::lines("replaying");
        let done =
            replay::replay_with(&arguments.recording, &options, |step, _| bar.set_position(step.lines))?;
        bar.finish_and_clear();
        Ok(done)
    };
    let document = answer()?;
    let read = answer::paths([&arguments.recording].into_iter().chain(&arguments.files));
    answer::page(&arguments.page, &read, |made| report::replay(&document).html(made))?;
    let code = if arguments.verify { verdict(&document) } else { 0 };
    answer::print(&arguments.output, code, &document, answer, |out| table(out, &document, arguments.verify))
}

fn verdict(document: &Replay) -> u8 {
    let by_rule = document.agreement.explained.get(Explanation::Rule.name()).copied().unwrap_or(0);
    match (document.agreement.agreed == document.agreement.decisions, by_rule) {
        (true, _) if document.agreement.decisions == 0 => INCONCLUSIVE,
        (true, _) => 0,
        (false, 0) => INCONCLUSIVE,
        (false, _) => 1,
    }
}

fn table(out: &mut impl Write, document: &Replay, verify: bool) -> io::Result<()> {
    let Replay { agreement, divergences, waiting, end, .. } = document;
    if verify {
        let header = ["AT", "CLAIM", "LIVE", "REPLAYED", "EXPLANATION", "MESSAGE"];
        table::rows(out, &header, divergences, "divergence", |d| {
            let cells = [
                format!("{:.1}s", d.at as f64 / 1_000.0),
                short(&d.claim, CLAIM_MAX),
                outcome(d.live.as_ref()),
                outcome(d.simulated.as_ref()),
                d.explanation.name().to_owned(),
                short(&d.message, MESSAGE_MAX),
            ];
            cells.map(Cell::new).into()
        })?;
    }
    if document.interrupted {
        writeln!(out, "the recording was interrupted; its end is missing")?;
    }
    let seconds = document.duration_ms as f64 / 1_000.0;
    writeln!(
        out,
        "{seconds:.1} s of history: {} ({} by users), {}",
        plural(document.events as usize, "change"),
        document.inputs,
        plural(document.writes as usize, "write")
    )?;
    writeln!(
        out,
        "final state: {}, {} bound, {} provisioning, {} pending, {} lost",
        plural(end.claims, "claim"),
        end.bound,
        end.provision,
        end.pending,
        end.lost
    )?;
    let ms = |ms: u64| format!("{:.1} s", ms as f64 / 1_000.0);
    if waiting.simulated.count > 0 {
        let (s, l) = (&waiting.simulated, &waiting.live);
        writeln!(
            out,
            "waiting time: median {} (live {}), 95th percentile {} (live {})",
            ms(s.p50),
            ms(l.p50),
            ms(s.p95),
            ms(l.p95)
        )?;
    }
    let decisions = plural(agreement.decisions as usize, "decision");
    match agreement.percent {
        Some(percent) => writeln!(out, "{} of {decisions} agree: {percent} %", agreement.agreed),
        None => writeln!(out, "no decision was recorded, nothing was verified"),
    }
}

fn outcome(verdict: Option<&Verdict>) -> String {
    match verdict {
        None => "-".to_owned(),
        Some(Verdict::Bind { resource }) => short(resource, table::NAME_MAX),
        Some(Verdict::Provision { class }) => short(&format!("new {class}"), table::NAME_MAX),
        Some(Verdict::Refuse { reason }) => reason.clone(),
        Some(Verdict::Lost { .. }) => "Lost".to_owned(),
    }
}
