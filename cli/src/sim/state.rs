//! The state that a question is about: files loaded, and what was passed over on the way told once. A question can do
//! without a broken object; a gate cannot, and has it refused.

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

/// Groups of which every kind takes part.
const GROUPS: [&str; 2] = ["conductor.io/", "storage.conductor.io/"];

/// What becomes of objects that drop out because they cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Broken {
    /// They are told, and the rest is of use.
    Told,
    /// They are refused: without them the answer would be about another cluster.
    Refused,
}

/// Everything that the input holds: manifests as they are written, recordings as they end.
pub fn read(input: &Input) -> Result<Vec<Object>> {
    let objects = read_as(input, Broken::Told)?;
    tell_unlabelled(&objects);
    Ok(objects)
}

/// As [`read`], of which nothing may drop out.
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
        let findings = tell(&loaded, &input.system_namespace, recordings.is_empty());
        if broken == Broken::Refused {
            // What a claim asks for may be unreadable: then it waits, and says so, on the cluster and in the plan.
            refuse(loaded.problems.iter().chain(findings.of(Fault::Drops)))?;
        }
        unknown.extend(loaded.unknown.iter().map(|Located { object, what, .. }| unknown_words(object, what)));
        objects.extend(loaded.objects.into_iter().map(|loaded| loaded.object));
    }
    tell_unknown(&unknown);
    Ok(objects)
}

/// What is read from a pipe is known for a recording only afterwards, and is gone by then.
fn recording_by_pipe(error: LoadError, paths: &[PathBuf]) -> anyhow::Error {
    match &error {
        LoadError { input, failure: LoadFailure::Recording, .. }
            if paths.iter().any(|path| !path.is_file() && path.to_string_lossy() == **input) =>
        {
            anyhow::anyhow!(
                "{input}: this is a recording, and not in a file: name its file, or give it as `-` by \
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
        output::complain_once(&format!("warning: {name} was interrupted; it is read up to there"));
    }
    let objects = moment.objects.to_objects().map_err(|why| anyhow::anyhow!("{name}: {why}"))?;
    for object in &objects {
        let Some(why) = unreadable(object) else { continue };
        let told = format!("{name}: {} {}: {why}", object.kind.name(), key_of(object));
        match (broken, object.kind) {
            (Broken::Refused, kind) if !matches!(kind, Kind::Claim(_)) => bail!("{told}"),
            _ => output::complain_once(&format!("warning: {told}")),
        }
    }
    Ok(objects)
}

/// Fields of a recorded object that no schema names: another version may have recorded it.
fn unknown_of(object: &Object) -> Vec<String> {
    let Some(body) = object.body.as_object() else { return Vec::new() };
    let name = || format!("{} {}", object.kind.name(), key_of(object));
    unknown_fields(object.kind, body).iter().map(|field| unknown_words(&name(), field)).collect()
}

fn unknown_words(object: &str, UnknownField { path, meant }: &UnknownField) -> String {
    let meant = meant.as_ref().map(|meant| format!(" ({meant}?)")).unwrap_or_default();
    format!("{object}: {path}{meant}")
}

/// A state may be of another version than this program, and is taken as it is; whoever misspelt a field wants to know.
fn tell_unknown(unknown: &[String]) {
    if !unknown.is_empty() {
        let (fields, names) = (plural(unknown.len(), "field"), list(unknown));
        output::complain_once(&format!(
            "warning: {fields} that no schema has, which count for nothing: {names}"
        ));
    }
}

/// What somebody tries must not count for nothing.
fn refuse_unknown(unknown: &[Located<UnknownField>]) -> Result<()> {
    match unknown {
        [] => Ok(()),
        [only] => bail!("{only}"),
        [first, more @ ..] => bail!("{first} (and {} more that no schema has)", plural(more.len(), "field")),
    }
}

/// The first is the error; the others have been told.
fn refuse<'a>(mut problems: impl Iterator<Item = &'a Problem>) -> Result<()> {
    match problems.next() {
        Some(problem) => bail!("{problem}; without it the answer would be another"),
        None => Ok(()),
    }
}

/// A misspelt kind of ours would be passed over, and what it was to forbid allowed.
fn refuse_strangers(loaded: &Loaded) -> Result<()> {
    let ours = |kind: &&String| GROUPS.iter().any(|group| kind.starts_with(group));
    match loaded.ignored.keys().find(ours) {
        Some(kind) => {
            bail!("{kind} is no kind that decisions are made from: mend it, or take it out of the policies")
        }
        None => Ok(()),
    }
}

/// The objects of manifests that are applied on top.
pub fn read_overlay(input: &Input, files: &[PathBuf]) -> Result<Vec<Object>> {
    read_files(files, &input.namespace, &input.system_namespace)
}

/// The objects of manifests that somebody tries: one that cannot be read, would not be looked at, or has a field that no
/// schema names, is refused.
pub fn read_files(files: &[PathBuf], namespace: &str, system_namespace: &str) -> Result<Vec<Object>> {
    let loaded = load_files(files, namespace, system_namespace)?;
    Ok(loaded.objects.into_iter().map(|loaded| loaded.object).collect())
}

/// The policies of a gate: as [`read_files`], and every kind must be one that takes part.
pub fn read_policies(files: &[PathBuf], namespace: &str, system_namespace: &str) -> Result<Vec<Object>> {
    let loaded = load_files(files, namespace, system_namespace)?;
    refuse_strangers(&loaded)?;
    Ok(loaded.objects.into_iter().map(|loaded| loaded.object).collect())
}

fn load_files(files: &[PathBuf], namespace: &str, system_namespace: &str) -> Result<Loaded> {
    if files.is_empty() {
        return Ok(Loaded::default());
    }
    let loaded = load(files, &load_options(namespace, system_namespace))?;
    // Who holds what is not for a single manifest to say.
    let findings = tell(&loaded, system_namespace, false);
    refuse(loaded.problems.iter().chain(findings.problems()))?;
    refuse_unknown(&loaded.unknown)?;
    Ok(loaded)
}

/// What plans are made under.
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

/// Tells of quotas that select namespaces by labels that nobody knows here.
pub fn tell_unlabelled(objects: &[Object]) {
    let quotas = unlabelled(objects);
    if !quotas.is_empty() {
        output::complain_once(&format!("warning: {}", unlabelled_words(&quotas)));
    }
}

/// What is wrong with such quotas, and what to do.
pub fn unlabelled_words(quotas: &[String]) -> String {
    let (quotas, names) = (plural(quotas.len(), "ClusterClaimQuota"), list(quotas));
    format!(
        "{quotas} with a namespaceSelector, and no Namespace in the input, so that each namespace counts as having no \
         labels: {names}; add the namespaces: kubectl get namespaces -o yaml"
    )
}

/// Tells what was passed over, and what is odd about the rest.
fn tell(loaded: &Loaded, system_namespace: &str, whole: bool) -> Findings {
    let ignored: usize = loaded.ignored.values().sum();
    if ignored > 0 {
        let kinds: Vec<String> = loaded.ignored.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        let objects = plural(ignored, "object");
        output::complain_once(&format!(
            "ignored {objects} of kinds that do not take part: {}",
            kinds.join(", ")
        ));
    }
    for rounded in &loaded.rounded {
        output::complain_once(&format!("warning: {rounded}"));
    }
    let findings = check(&loaded.objects, system_namespace);
    for problem in loaded.problems.iter().chain(findings.problems()) {
        output::complain_once(&format!("warning: {problem}"));
    }
    if whole && !findings.abandoned.is_empty() {
        let names: Vec<String> = findings.abandoned.iter().cloned().collect();
        let (resources, names) = (plural(names.len(), "resource"), list(&names));
        output::complain_once(&format!(
            "warning: {resources} held by claims that are not in the input, which count as gone: {names}; \
             add the claims if they exist"
        ));
    }
    findings
}
