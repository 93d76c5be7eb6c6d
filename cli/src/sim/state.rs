//! Loads the state of a simulation, and warns once about what it skips. Most commands can do without a broken object; a
//! gate cannot, and refuses it.

use super::args::Input;
use super::{list, plural};
use crate::output;
use anyhow::{Result, bail};
use conductor::model::{Kind, Object};
use conductor_simulator::load::{
    LoadError, LoadFailure, LoadOptions, Loaded, Located, Problem, UnknownField, load, unknown_fields,
};
use conductor_simulator::plan::{Fault, Findings, Options, check, unlabelled, unreadable};
use conductor_simulator::record::{is_recording, snapshot_at};
use conductor_simulator::world::key_of;
use std::path::{Path, PathBuf};

/// API groups of Conductor's own kinds.
const GROUPS: [&str; 2] = ["conductor.io/", "storage.conductor.io/"];

/// What to do with objects that cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// Warn about them, and use the rest.
    Warned,
    /// Refuse them: without them the result would be about another cluster.
    Refused,
}

/// Reads all of the input: manifests as they are written, recordings in their final state.
pub fn read(input: &Input) -> Result<Vec<Object>> {
    let objects = read_as(input, Broken::Warned)?;
    warn_unlabelled(&objects);
    Ok(objects)
}

/// As [`read`], with a choice about broken objects.
pub fn read_as(input: &Input, broken: Broken) -> Result<Vec<Object>> {
    let (recordings, manifests): (Vec<PathBuf>, Vec<PathBuf>) =
        input.paths.iter().cloned().partition(|path| is_recording(path));
    let mut objects = Vec::new();
    for recording in &recordings {
        objects.extend(recorded(recording, broken)?);
    }
    let mut unknown: Vec<String> = objects.iter().flat_map(unknown_of).collect();
    if !manifests.is_empty() {
        let loaded = load(&manifests, &load_options(&input.namespace, &input.system_namespace))
            .map_err(|error| recording_by_pipe(error, &manifests))?;
        let findings = warn(&loaded, &input.system_namespace, recordings.is_empty());
        if broken == Broken::Refused {
            // An unreadable request of a claim is not refused: the claim waits, on the cluster and in the plan.
            refuse(loaded.problems.iter().chain(findings.of(Fault::Drops)))?;
        }
        unknown
            .extend(loaded.unknown.iter().map(|Located { object, what, .. }| unknown_message(object, what)));
        objects.extend(loaded.objects.into_iter().map(|loaded| loaded.object));
    }
    warn_unknown(&unknown);
    Ok(objects)
}

/// A pipe turns out to be a recording only after it has been read.
fn recording_by_pipe(error: LoadError, paths: &[PathBuf]) -> anyhow::Error {
    match &error {
        LoadError { input, failure: LoadFailure::Recording, .. }
            if paths.iter().any(|path| !path.is_file() && path.to_string_lossy() == **input) =>
        {
            anyhow::anyhow!(
                "{input} is a recording in a pipe: name its file, or give it as `-` on \
                 standard input"
            )
        }
        _ => error.into(),
    }
}

fn recorded(recording: &Path, broken: Broken) -> Result<Vec<Object>> {
    let moment = snapshot_at(recording, None)?;
    let name = recording.display();
    if moment.interrupted {
        output::diagnostic_once(&format!("warning: recording {name} was interrupted; its end is missing"));
    }
    let objects = moment.objects.to_objects().map_err(|why| anyhow::anyhow!("{name}: {why}"))?;
    for object in &objects {
        let Some(why) = unreadable(object) else { continue };
        let problem = format!("{name}: {} {}: {why}", object.kind.name(), key_of(object));
        match (broken, object.kind) {
            (Broken::Refused, kind) if !matches!(kind, Kind::Claim(_)) => bail!("{problem}"),
            _ => output::diagnostic_once(&format!("warning: {problem}")),
        }
    }
    Ok(objects)
}

/// Fields of a recorded object that no schema has: another version may have recorded it.
fn unknown_of(object: &Object) -> Vec<String> {
    let Some(body) = object.body.as_object() else { return Vec::new() };
    let name = || format!("{} {}", object.kind.name(), key_of(object));
    unknown_fields(object.kind, body).iter().map(|field| unknown_message(&name(), field)).collect()
}

fn unknown_message(object: &str, UnknownField { path, meant }: &UnknownField) -> String {
    let meant = meant.as_ref().map(|meant| format!(" ({meant}?)")).unwrap_or_default();
    format!("{object}: {path}{meant}")
}

/// Warns only: the state may come from another version. A misspelt field shows in the warning.
fn warn_unknown(unknown: &[String]) {
    if !unknown.is_empty() {
        let (fields, names) = (plural(unknown.len(), "field"), list(unknown));
        output::diagnostic_once(&format!("warning: ignored {fields} that no schema has: {names}"));
    }
}

/// Refuses unknown fields of manifests that the user tries out.
fn refuse_unknown(unknown: &[Located<UnknownField>]) -> Result<()> {
    match unknown {
        [] => Ok(()),
        [only] => bail!("{only}"),
        [first, more @ ..] => bail!("{first} (and {} more that no schema has)", plural(more.len(), "field")),
    }
}

/// The first problem is the error; the warnings show the others.
fn refuse<'a>(mut problems: impl Iterator<Item = &'a Problem>) -> Result<()> {
    match problems.next() {
        Some(problem) => bail!("{problem}; the result would be wrong without it"),
        None => Ok(()),
    }
}

/// Refuses a misspelt kind of Conductor, which would be ignored and would then forbid nothing.
fn refuse_unknown_kinds(loaded: &Loaded) -> Result<()> {
    let ours = |kind: &&String| GROUPS.iter().any(|group| kind.starts_with(group));
    match loaded.ignored.keys().find(ours) {
        Some(kind) => {
            bail!("{kind} is not a kind that decisions read: correct it, or remove it from the policies")
        }
        None => Ok(()),
    }
}

/// Reads manifests that are applied on top of the state.
pub fn read_overlay(input: &Input, files: &[PathBuf]) -> Result<Vec<Object>> {
    read_files(files, &input.namespace, &input.system_namespace)
}

/// Reads manifests that the user tries out. An object that cannot be read, would be ignored, or has a field that no
/// schema has, is refused.
pub fn read_files(files: &[PathBuf], namespace: &str, system_namespace: &str) -> Result<Vec<Object>> {
    let loaded = load_files(files, namespace, system_namespace)?;
    Ok(loaded.objects.into_iter().map(|loaded| loaded.object).collect())
}

/// Reads the policies of a gate: as [`read_files`], and Conductor must know every kind.
pub fn read_policies(files: &[PathBuf], namespace: &str, system_namespace: &str) -> Result<Vec<Object>> {
    let loaded = load_files(files, namespace, system_namespace)?;
    refuse_unknown_kinds(&loaded)?;
    Ok(loaded.objects.into_iter().map(|loaded| loaded.object).collect())
}

fn load_files(files: &[PathBuf], namespace: &str, system_namespace: &str) -> Result<Loaded> {
    if files.is_empty() {
        return Ok(Loaded::default());
    }
    let loaded = load(files, &load_options(namespace, system_namespace))?;
    // A single manifest need not name the holders of its resources.
    let findings = warn(&loaded, system_namespace, false);
    refuse(loaded.problems.iter().chain(findings.problems()))?;
    refuse_unknown(&loaded.unknown)?;
    Ok(loaded)
}

/// The options of a plan.
pub fn options(input: &Input) -> Options {
    Options { system_namespace: input.system_namespace.as_str().into(), ..Options::default() }
}

fn load_options(namespace: &str, system_namespace: &str) -> LoadOptions {
    LoadOptions {
        namespace: namespace.to_owned(),
        system_namespace: system_namespace.to_owned(),
        ..LoadOptions::default()
    }
}

/// Warns about quotas that select namespaces by labels that the input does not contain.
pub fn warn_unlabelled(objects: &[Object]) {
    let quotas = unlabelled(objects);
    if !quotas.is_empty() {
        output::diagnostic_once(&format!("warning: {}", unlabelled_message(&quotas)));
    }
}

/// What is wrong with such quotas, and what to do.
pub fn unlabelled_message(quotas: &[String]) -> String {
    let (quotas, names) = (plural(quotas.len(), "ClusterClaimQuota"), list(quotas));
    format!(
        "{quotas} with a namespaceSelector and no Namespace in the input: {names}. Every namespace counts as having no \
         labels; add them: kubectl get namespaces -o yaml"
    )
}

/// Warns about skipped objects, and about problems of the others.
fn warn(loaded: &Loaded, system_namespace: &str, whole: bool) -> Findings {
    let ignored: usize = loaded.ignored.values().sum();
    if ignored > 0 {
        let kinds: Vec<String> = loaded.ignored.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        let objects = plural(ignored, "object");
        output::diagnostic_once(&format!(
            "ignored {objects} of kinds that decisions do not read: {}",
            kinds.join(", ")
        ));
    }
    for rounded in &loaded.rounded {
        output::diagnostic_once(&format!("warning: {rounded}"));
    }
    let findings = check(&loaded.objects, system_namespace);
    for problem in loaded.problems.iter().chain(findings.problems()) {
        output::diagnostic_once(&format!("warning: {problem}"));
    }
    if whole && !findings.abandoned.is_empty() {
        let names: Vec<String> = findings.abandoned.iter().cloned().collect();
        let (resources, names) = (plural(names.len(), "resource"), list(&names));
        output::diagnostic_once(&format!(
            "warning: {resources} held by claims that are not in the input and count as deleted: {names}; \
             add the claims if they exist"
        ));
    }
    findings
}
