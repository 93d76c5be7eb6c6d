//! `sim record`, `inspect`, `audit`, `import`, `export`: files and the cluster joined to the simulator's recordings.

use super::args::{
    AuditArguments, ExportArguments, ImportArguments, InspectArguments, RecordArguments, Redact,
};
use super::files::{self, Draft};
use super::state::{self, Broken};
use super::{answer, plural};
use crate::args::CrdFormat;
use crate::{cluster, output, table};
use anyhow::{Context, Result, bail};
use conductor::event::Event;
use conductor_controller::Followed;
use conductor_simulator::record::{
    self, Audit, Inspection, Reader, Recorder, RecordingInfo, Redaction, Rewritten, is_recording, rewrite,
    snapshot_at,
};
use serde_json::{Value, json};
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// How often what was seen is made safe from an interruption.
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
    // What is there already stays until the cluster has been listed once.
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
                        output::complain("warning: a watch was lost, and its kind listed anew: the recording has a gap");
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
                        output::complain_once(&format!("warning: cannot list {}: {why}", kind.name()));
                    }
                    recorder.lose(kind, &why, at());
                }
                Some(Followed::Back { kind }) => {
                    if recorder.regain(kind, at())? {
                        output::complain(&format!("{}: the watch is back", kind.name()));
                    }
                }
            },
            _ = flush.tick() => {
                for lost in recorder.note_lost(at())? {
                    output::complain(&format!("warning: {lost}; what happens to it is missing until it is back"));
                }
                if missing == 0 {
                    recorder.flush()?;
                }
                if missing == 0 && arguments.rotate.is_some_and(|most| recorder.written() >= most) {
                    let next = next_part(&arguments.out, &mut part, arguments.force);
                    let (draft, out) = Draft::open(&next, arguments.force)?;
                    recorder.rotate(out, at())?;
                    draft.settle()?;
                    output::complain(&format!("going on in {}", next.display()));
                }
            }
            () = &mut end => break,
            () = stop.cancelled() => break,
        }
    }
    if missing > 0 {
        bail!("stopped before every kind was listed: {missing} were missing; nothing was recorded");
    }
    let lost: Vec<String> = recorder.lost().map(|kind| kind.name().to_owned()).collect();
    let changes = recorder.changes();
    recorder.finish(at())?.flush()?;
    output::complain(&format!(
        "recorded {} in {:.1} s",
        plural(changes as usize, "change"),
        clock.elapsed().as_secs_f32()
    ));
    if lost.is_empty() {
        return Ok(0);
    }
    output::complain(&format!(
        "warning: at the end {} lost, and the recording has a gap there: {}; see `conductor sim inspect`",
        if lost.len() == 1 { "a watch is".to_owned() } else { format!("{} watches are", lost.len()) },
        lost.join(", ")
    ));
    Ok(INCONCLUSIVE)
}

/// Everything has been listed once: the file takes its place.
fn begin(recorder: &mut Recorder<BufWriter<File>>, draft: Option<Draft>, out: &Path) -> Result<()> {
    recorder.begin()?;
    draft.map_or(Ok(()), Draft::settle)?;
    let objects = plural(recorder.objects(), "object");
    output::complain(&format!("recording {objects} into {}; interrupt to end", out.display()));
    Ok(())
}

/// A recording is written on for hours and has its end checked: it cannot go down a pipe.
fn require_file(out: &Path) -> Result<()> {
    match out.as_os_str() == "-" {
        true => bail!("a recording is a file: name one, such as -o prod.rec"),
        false => Ok(()),
    }
}

/// Refuses to begin where a further part would meet a file, hours from now.
fn require_no_parts(first: &Path) -> Result<()> {
    let next = part_path(first, 2);
    files::require_free(&next).context("--rotate goes on there")
}

/// The next part's file; one that came in the meantime is somebody else's, and its number is left out.
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
            "{} holds {}: a key has at least {KEY_MIN}, such as `openssl rand -hex 32` makes",
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

/// A recording by itself keeps its history.
fn import_history(arguments: &ImportArguments, recording: &Path) -> Result<u8> {
    let reader = Reader::open(recording)?;
    let redaction = redaction(&arguments.redact, &reader.header().system_namespace)?;
    let (draft, out) = Draft::open(&arguments.out, arguments.force)?;
    let Rewritten { objects, changes, interrupted } = rewrite(reader, out, redaction)?;
    draft.settle()?;
    if interrupted {
        output::complain("warning: the recording was interrupted, and so is what is made of it");
    }
    let (objects, changes) = (plural(objects, "object"), plural(changes as usize, "change"));
    output::complain(&format!("imported {objects} and {changes} into {}", arguments.out.display()));
    Ok(0)
}

/// Everything else is a state: manifests as they are written, recordings among them as they end.
fn import_state(arguments: &ImportArguments) -> Result<u8> {
    let redaction = redaction(&arguments.redact, &arguments.input.system_namespace)?;
    // Everything is read before anything is written.
    let objects = state::read_as(&arguments.input, Broken::Told)?;
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
    draft.settle()?;
    output::complain(&format!("imported {} into {}", plural(objects, "object"), arguments.out.display()));
    Ok(0)
}

/// `conductor sim export`.
pub fn export(arguments: &ExportArguments) -> Result<u8> {
    let moment = snapshot_at(&arguments.recording, arguments.at.map(|at| at.as_millis() as u64))?;
    if moment.interrupted {
        output::complain("warning: the recording was interrupted; this is the state up to there");
    }
    let mut out = output::stdout();
    match arguments.output {
        CrdFormat::Json => {
            let items: Vec<Value> = moment.objects.values().collect();
            output::json(&mut out, &json!({"apiVersion": "v1", "kind": "List", "items": items}))?;
        }
        CrdFormat::Yaml => {
            for object in moment.objects.values() {
                writeln!(out, "---")?;
                write!(out, "{}", serde_saphyr::to_string(&object)?)?;
            }
        }
    }
    out.flush()?;
    Ok(0)
}

/// `conductor sim inspect`.
pub fn inspect(arguments: &InspectArguments) -> Result<u8> {
    let answer = || -> Result<Inspection> { Ok(record::inspect(&arguments.recording)?) };
    let found = answer()?;
    answer::print(&arguments.output, &found, answer, |out| inspection(out, &found))?.exit(0)
}

fn inspection(out: &mut impl Write, found: &Inspection) -> io::Result<()> {
    let header = &found.header;
    let rows = |title: &str, counts: &std::collections::BTreeMap<String, u64>| {
        counts
            .iter()
            .map(|(word, count)| vec![title.to_owned(), word.clone(), count.to_string()])
            .collect::<Vec<_>>()
    };
    let mut all = rows("objects", &found.objects);
    all.extend(rows("events", &found.events));
    all.extend(rows("decisions", &found.decisions));
    all.extend(rows("made", &found.outcomes));
    table::listed(out, &["WHAT", "OF", "COUNT"], all)?;
    writeln!(out)?;
    for (kind, why) in &header.refused {
        writeln!(out, "not recorded: {kind}: {why}")?;
    }
    for gap in &found.gaps {
        writeln!(out, "gap at {} ms: {}: {}", gap.at, gap.kind, gap.why)?;
    }
    if let Some((median, late)) = found.provisioning_ms {
        writeln!(out, "making a resource took {median} ms, 95 of 100 up to {late} ms")?;
    }
    let state = match (found.complete, found.gaps.len()) {
        (false, _) => "interrupted: readable up to there".to_owned(),
        (true, 0) => "complete".to_owned(),
        (true, gaps) => format!("to its end, with {}", plural(gaps, "gap")),
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
            bail!("{} holds no text to look for: write one a line", path.display());
        }
    }
    let answer = || -> Result<Audit> { Ok(record::audit(&arguments.recording, &canaries)?) };
    let found = answer()?;
    let code = u8::from(!found.findings.is_empty());
    answer::print(&arguments.output, &found, answer, |out| audited(out, &found))?.exit(code)
}

fn audited(out: &mut impl Write, found: &Audit) -> io::Result<()> {
    if found.interrupted {
        writeln!(out, "the recording was interrupted; it was looked at up to there")?;
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
    table::listed(out, &["LINE", "FIELD", "FOUND"], rows.collect())?;
    writeln!(out, "\n{}: do not give this file away", plural(found.findings.len(), "finding"))
}
