//! `sim record`, `inspect`, `audit`, `import`, `export`: connects files and the cluster to the simulator's recordings.

use super::args::{
    AuditArguments, ExportArguments, ImportArguments, InspectArguments, RecordArguments, Redact,
};
use super::files::{self, Draft};
use super::state::{self, Broken};
use super::{answer, plural};
use crate::{cluster, output, table};
use anyhow::{Context, Result, bail};
use conductor::event::Event;
use conductor_controller::Followed;
use conductor_simulator::record::{
    self, Audit, Inspection, Reader, Recorder, RecordingInfo, Redaction, Rewritten, is_recording, rewrite,
    snapshot_at,
};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often the recording is flushed, so that it survives an interruption.
const FLUSH_EVERY: Duration = Duration::from_secs(1);
/// A key shorter than this can be guessed.
const KEY_MIN: usize = 16;

/// The exit code of a recording that ends while a watch is lost.
const INCONCLUSIVE: u8 = 3;

/// `conductor sim record`.
pub fn record(arguments: &RecordArguments) -> Result<u8> {
    require_file(&arguments.out)?;
    let redaction = redaction(&arguments.redact, &arguments.cluster.system_namespace)?;
    if arguments.rotate.is_some() && !arguments.force {
        require_no_parts(&arguments.out)?;
    }
    // An existing file stays until the cluster has been listed once.
    let (draft, out) = Draft::open(&arguments.out, arguments.force)?;
    cluster::block_on(follow(arguments, redaction, draft, out))
}

async fn follow(
    arguments: &RecordArguments,
    redaction: Redaction,
    draft: Draft,
    out: BufWriter<File>,
) -> Result<u8> {
    let mut draft = Some(draft);
    let (client, _) = cluster::connect(&arguments.cluster).await?;
    let stop = crate::run::stop_on_signal()?;
    let mut watched = conductor_controller::follow_all(&client, &arguments.cluster.system_namespace);
    let began = now_ms();
    let clock = Instant::now();
    let at = || u64::try_from(clock.elapsed().as_millis()).unwrap_or(u64::MAX);
    let subject = RecordingInfo {
        began,
        system_namespace: arguments.cluster.system_namespace.clone(),
        recorder: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut recorder = Recorder::new(out, subject, redaction);
    let mut missing = conductor_controller::kinds().len();
    let end = tokio::time::sleep(arguments.duration.unwrap_or(Duration::from_secs(u64::from(u32::MAX))));
    tokio::pin!(end);
    let mut flush = tokio::time::interval(FLUSH_EVERY);
    let mut part = 1;
    loop {
        tokio::select! {
            followed = watched.recv() => match followed {
                None => bail!("the watches ended"),
                Some(Followed::Event(event)) => {
                    let is_list = matches!(event, Event::Listed { .. });
                    recorder.take(event, at())?;
                    if is_list && missing == 0 {
                        output::diagnostic("warning: a watch was lost and its kind listed again: the recording has a gap");
                    }
                    if is_list && missing > 0 {
                        missing -= 1;
                        if missing == 0 {
                            begin(&mut recorder, draft.take(), &arguments.out)?;
                        }
                    }
                }
                Some(Followed::Lost { kind, why }) => {
                    if missing > 0 {
                        output::diagnostic_once(&format!("warning: cannot list {}: {why}", kind.name()));
                    }
                    recorder.lose(kind, &why, at());
                }
                Some(Followed::Back { kind }) => {
                    if recorder.regain(kind, at())? {
                        output::diagnostic(&format!("{}: the watch was restored", kind.name()));
                    }
                }
            },
            _ = flush.tick() => {
                for lost in recorder.note_lost(at())? {
                    output::diagnostic(&format!("warning: {lost}; the recording misses its changes until the watch is restored"));
                }
                if missing == 0 {
                    recorder.flush()?;
                }
                if missing == 0 && arguments.rotate.is_some_and(|most| recorder.written() >= most) {
                    let next = next_part(&arguments.out, &mut part, arguments.force);
                    let (draft, out) = Draft::open(&next, arguments.force)?;
                    recorder.rotate(out, at())?;
                    draft.commit()?;
                    output::diagnostic(&format!("continuing in {}", next.display()));
                }
            }
            () = &mut end => break,
            () = stop.cancelled() => break,
        }
    }
    if missing > 0 {
        bail!("stopped before all kinds were listed ({missing} missing): nothing was recorded");
    }
    let lost: Vec<String> = recorder.lost().map(|kind| kind.name().to_owned()).collect();
    let changes = recorder.changes();
    recorder.finish(at())?.flush()?;
    output::diagnostic(&format!(
        "recorded {} in {:.1} s",
        plural(changes as usize, "change"),
        clock.elapsed().as_secs_f32()
    ));
    if lost.is_empty() {
        return Ok(0);
    }
    output::diagnostic(&format!(
        "warning: {} lost at the end, which leaves a gap: {}; see `conductor sim inspect`",
        if lost.len() == 1 { "a watch is".to_owned() } else { format!("{} watches are", lost.len()) },
        lost.join(", ")
    ));
    Ok(INCONCLUSIVE)
}

/// Replaces the target with the draft, once every kind has been listed.
fn begin(recorder: &mut Recorder<BufWriter<File>>, draft: Option<Draft>, out: &Path) -> Result<()> {
    recorder.begin()?;
    draft.map_or(Ok(()), Draft::commit)?;
    let objects = plural(recorder.objects(), "object");
    output::diagnostic(&format!("recording {objects} to {}; interrupt to stop", out.display()));
    Ok(())
}

/// Refuses a pipe: a recording is written for hours, and its end is verified.
fn require_file(out: &Path) -> Result<()> {
    match out.as_os_str() == "-" {
        true => bail!("a recording needs a file: name one, such as -o prod.rec"),
        false => Ok(()),
    }
}

/// Refuses to start if a later part would hit an existing file, hours from now.
fn require_no_parts(first: &Path) -> Result<()> {
    let next = part_path(first, 2);
    files::require_free(&next).context("--rotate continues in this file")
}

/// The next part's file. A file that appeared meanwhile belongs to another program: its number is skipped.
fn next_part(first: &Path, part: &mut u32, force: bool) -> PathBuf {
    loop {
        *part += 1;
        let next = part_path(first, *part);
        if force || !next.exists() {
            return next;
        }
    }
}

/// `x.rec` becomes `x.2.rec`.
fn part_path(first: &Path, part: u32) -> PathBuf {
    let stem = first.file_stem().unwrap_or_default().to_string_lossy();
    let extension = first.extension().map(|e| format!(".{}", e.to_string_lossy())).unwrap_or_default();
    first.with_file_name(format!("{stem}.{part}{extension}"))
}

fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_millis()).unwrap_or(0)
}

fn redaction(redact: &Redact, system_namespace: &str) -> Result<Redaction> {
    let Some(path) = &redact.pseudonym_key else { return Ok(Redaction::fields_only()) };
    let key = std::fs::read(path).with_context(|| path.display().to_string())?;
    let key = key.trim_ascii();
    if key.len() < KEY_MIN {
        bail!(
            "{} holds {}: a key needs at least {KEY_MIN}; create one with `openssl rand -hex 32`",
            path.display(),
            plural(key.len(), "byte")
        );
    }
    Ok(Redaction::with_key(key, system_namespace))
}

/// `conductor sim import`.
pub fn import(arguments: &ImportArguments) -> Result<u8> {
    require_file(&arguments.out)?;
    match &arguments.input.paths[..] {
        [only] if is_recording(only) => import_history(arguments, only),
        _ => import_state(arguments),
    }
}

/// Rewrites a single recording with its history.
fn import_history(arguments: &ImportArguments, recording: &Path) -> Result<u8> {
    let reader = Reader::open(recording)?;
    let redaction = redaction(&arguments.redact, &reader.header().system_namespace)?;
    let (draft, out) = Draft::open(&arguments.out, arguments.force)?;
    let Rewritten { objects, changes, interrupted } = rewrite(reader, out, redaction)?;
    draft.commit()?;
    if interrupted {
        output::diagnostic("warning: the recording was interrupted; the new one ends at the same point");
    }
    let (objects, changes) = (plural(objects, "object"), plural(changes as usize, "change"));
    output::diagnostic(&format!("imported {objects} and {changes} to {}", arguments.out.display()));
    Ok(0)
}

/// Imports a state: manifests as they are written, recordings in their final state.
fn import_state(arguments: &ImportArguments) -> Result<u8> {
    let redaction = redaction(&arguments.redact, &arguments.input.system_namespace)?;
    // Read everything before writing anything.
    let objects = state::read_as(&arguments.input, Broken::Warned)?;
    let (draft, out) = Draft::open(&arguments.out, arguments.force)?;
    let subject = RecordingInfo {
        began: 0,
        system_namespace: arguments.input.system_namespace.clone(),
        recorder: env!("CARGO_PKG_VERSION").to_owned(),
    };
    let mut recorder = Recorder::new(out, subject, redaction);
    for object in objects {
        recorder.take(Event::Seen(object), 0)?;
    }
    recorder.begin()?;
    let objects = recorder.objects();
    recorder.finish(0)?.flush()?;
    draft.commit()?;
    output::diagnostic(&format!("imported {} to {}", plural(objects, "object"), arguments.out.display()));
    Ok(0)
}

/// `conductor sim export`.
pub fn export(arguments: &ExportArguments) -> Result<u8> {
    let moment = snapshot_at(&arguments.recording, arguments.at.map(|at| at.as_millis() as u64))?;
    if moment.interrupted {
        output::diagnostic("warning: the recording was interrupted; this is the state at that point");
    }
    let mut out = output::stdout();
    output::manifests(&mut out, arguments.output, &moment.objects.values().collect::<Vec<_>>())?;
    out.flush()?;
    Ok(0)
}

/// `conductor sim inspect`.
pub fn inspect(arguments: &InspectArguments) -> Result<u8> {
    let answer = || -> Result<Inspection> { Ok(record::inspect(&arguments.recording)?) };
    let found = answer()?;
    answer::print(&arguments.output, 0, &found, answer, |out| inspection(out, &found))
}

fn inspection(out: &mut impl Write, found: &Inspection) -> io::Result<()> {
    let header = &found.header;
    let rows = |title: &str, counts: &std::collections::BTreeMap<String, u64>| {
        counts
            .iter()
            .map(|(name, count)| vec![title.to_owned(), name.clone(), count.to_string()])
            .collect::<Vec<_>>()
    };
    let mut all = rows("objects", &found.objects);
    all.extend(rows("events", &found.events));
    all.extend(rows("decisions", &found.decisions));
    all.extend(rows("outcomes", &found.outcomes));
    table::listed(out, &["GROUP", "NAME", "COUNT"], all)?;
    writeln!(out)?;
    for (kind, why) in &header.refused {
        writeln!(out, "not recorded: {kind}: {why}")?;
    }
    for gap in &found.gaps {
        writeln!(out, "gap at {} ms: {}: {}", gap.at, gap.kind, gap.why)?;
    }
    if let Some((median, late)) = found.provisioning_ms {
        writeln!(out, "provisioning took {median} ms at the median, {late} ms at the 95th percentile")?;
    }
    let state = match (found.complete, found.gaps.len()) {
        (false, _) => "interrupted".to_owned(),
        (true, 0) => "complete".to_owned(),
        (true, gaps) => format!("complete, with {}", plural(gaps, "gap")),
    };
    writeln!(
        out,
        "part {}, {:.1} s, {}, {}, {}, recorded by {}",
        header.part,
        found.duration_ms.saturating_sub(header.from) as f64 / 1_000.0,
        plural(found.lines as usize, "line"),
        state,
        header.redaction,
        header.recorder
    )
}

/// `conductor sim audit`.
pub fn audit(arguments: &AuditArguments) -> Result<u8> {
    let mut canaries = Vec::new();
    if let Some(path) = &arguments.canaries {
        let text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?;
        canaries.extend(text.lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned));
        if canaries.is_empty() {
            bail!("{} holds no text to search for: write one per line", path.display());
        }
    }
    let answer = || -> Result<Audit> { Ok(record::audit(&arguments.recording, &canaries)?) };
    let found = answer()?;
    let code = u8::from(!found.findings.is_empty());
    answer::print(&arguments.output, code, &found, answer, |out| audited(out, &found))
}

fn audited(out: &mut impl Write, found: &Audit) -> io::Result<()> {
    if found.interrupted {
        writeln!(out, "the recording was interrupted; its end was not checked")?;
    }
    if found.findings.is_empty() {
        let texts = plural(found.texts as usize, "text");
        return writeln!(
            out,
            "nothing found in {texts} of {}, {}",
            plural(found.lines as usize, "line"),
            found.redaction
        );
    }
    let rows = found.findings.iter().map(|f| vec![f.line.to_string(), f.field.clone(), f.rule.to_owned()]);
    table::listed(out, &["LINE", "FIELD", "RULE"], rows.collect())?;
    writeln!(out, "\n{}: do not share this file", plural(found.findings.len(), "finding"))
}
