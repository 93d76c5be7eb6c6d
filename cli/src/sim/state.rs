//! The state that a question is about: files loaded, and what was passed over on the way told once.

use super::args::Input;
use super::{list, plural};
use crate::output;
use anyhow::Result;
use conductor::model::Object;
use conductor_simulator::load::{LoadOptions, Loaded, load};
use conductor_simulator::plan::{Options, check};
use conductor_simulator::record::{is_recording, moment};
use std::path::PathBuf;

/// Everything that the input holds: manifests as they are written, recordings as they end.
pub fn read(input: &Input) -> Result<Vec<Object>> {
    let (recordings, manifests): (Vec<PathBuf>, Vec<PathBuf>) =
        input.paths.iter().cloned().partition(|path| is_recording(path));
    let mut objects = Vec::new();
    for recording in &recordings {
        let moment = moment(recording, None)?;
        if moment.interrupted {
            output::complain(&format!(
                "warning: {} was interrupted; it is read up to there",
                recording.display()
            ));
        }
        let read = moment.objects.to_objects();
        objects.extend(read.map_err(|why| anyhow::anyhow!("{}: {why}", recording.display()))?);
    }
    if !manifests.is_empty() {
        let loaded = load(&manifests, &load_options(&input.namespace, &input.system_namespace))?;
        tell(&loaded, &input.system_namespace, recordings.is_empty());
        objects.extend(loaded.objects.into_iter().map(|loaded| loaded.object));
    }
    Ok(objects)
}

/// The objects of manifests that are applied on top.
pub fn read_overlay(input: &Input, files: &[PathBuf]) -> Result<Vec<Object>> {
    read_files(files, &input.namespace, &input.system_namespace)
}

/// The objects of manifests.
pub fn read_files(files: &[PathBuf], namespace: &str, system_namespace: &str) -> Result<Vec<Object>> {
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let loaded = load(files, &load_options(namespace, system_namespace))?;
    // Who holds what is not for a single manifest to say.
    tell(&loaded, system_namespace, false);
    Ok(loaded.objects.into_iter().map(|loaded| loaded.object).collect())
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

/// Tells what was passed over, and what is odd about the rest.
pub fn tell(loaded: &Loaded, system_namespace: &str, whole: bool) {
    let ignored: usize = loaded.ignored.values().sum();
    if ignored > 0 {
        let kinds: Vec<String> = loaded.ignored.iter().map(|(kind, n)| format!("{n} {kind}")).collect();
        let objects = plural(ignored, "object");
        output::complain(&format!("ignored {objects} of kinds that do not take part: {}", kinds.join(", ")));
    }
    let findings = check(&loaded.objects, system_namespace);
    for problem in loaded.problems.iter().chain(&findings.problems) {
        output::complain(&format!("warning: {problem}"));
    }
    if whole && !findings.abandoned.is_empty() {
        let names: Vec<String> = findings.abandoned.iter().cloned().collect();
        let (resources, names) = (plural(names.len(), "resource"), list(&names));
        output::complain(&format!(
            "warning: {resources} held by claims that are not in the input, which count as gone: {names}; \
             add the claims if they exist"
        ));
    }
}
