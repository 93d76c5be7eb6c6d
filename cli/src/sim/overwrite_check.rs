//! Checks before anything is read that a command overwrites none of its inputs, and reads standard input only once. The
//! files of a gate are in its suite: `gate` checks them.

use super::args::{Input, Page, Redact, Simulate};
use super::files::{self, Named};
use anyhow::{Result, bail};
use conductor_simulator::load;
use conductor_simulator::record::is_recording;
use std::path::{Path, PathBuf};

/// Refuses a command that would overwrite an input, or read standard input twice.
pub fn require_apart(command: &Simulate) -> Result<()> {
    require_rereadable(command)?;
    let (written, reads) = files_of_command(command);
    if written.is_empty() {
        return Ok(());
    }
    let mut read = Vec::new();
    for (what, paths) in reads {
        read.extend(files_of(what, &paths)?);
    }
    files::require_apart(&read, &written)
}

/// Every file that is read from these paths, those in folders included.
pub fn files_of(what: &'static str, paths: &[PathBuf]) -> Result<Vec<Named>> {
    Ok(load::files(paths)?.into_iter().map(|file| (what, file)).collect())
}

/// Standard input can be read once only: a second run would read nothing.
fn require_rereadable(command: &Simulate) -> Result<()> {
    let (output, paths) = match command {
        Simulate::Plan(a) => (&a.output, &a.input.paths[..]),
        Simulate::Explain(a) => (&a.output, &a.input.paths[..]),
        Simulate::WhatIf(a) => (&a.output, &a.input.paths[..]),
        Simulate::Fit(a) => (&a.output, &a.input.paths[..]),
        Simulate::Size(a) => (&a.output, &a.input.paths[..]),
        Simulate::ClassImpact(a) => (&a.output, &a.input.paths[..]),
        Simulate::Compare(a) => (&a.output, &a.input.paths[..]),
        Simulate::Inspect(a) => (&a.output, std::slice::from_ref(&a.recording)),
        Simulate::Audit(a) => (&a.output, std::slice::from_ref(&a.recording)),
        Simulate::Replay(a) => (&a.output, std::slice::from_ref(&a.recording)),
        Simulate::Record(_)
        | Simulate::Import(_)
        | Simulate::Export(_)
        | Simulate::Gate(_)
        | Simulate::Fuzz(_)
        | Simulate::Shrink(_) => return Ok(()),
    };
    if output.double_run && paths.iter().any(|path| path == Path::new("-")) {
        bail!("--double-run reads its input twice, which standard input does not allow: give a file");
    }
    if let Simulate::Compare(_) = command
        && paths.iter().any(|path| path == Path::new("-") && is_recording(path))
    {
        bail!(
            "`compare` replays a recording once per profile, which standard input does not allow: give a file"
        );
    }
    Ok(())
}

/// The files that a command writes and reads. Of a command that writes none, the inputs do not matter.
fn files_of_command(command: &Simulate) -> (Vec<Named>, Vec<(&'static str, Vec<PathBuf>)>) {
    let html = |page: &Page| page.html.clone().map(|path| ("--html", path));
    let out = |path: &Path| Some(("--out", path.to_owned()));
    let state = |input: &Input| ("the input", input.paths.clone());
    let applied = |files: &[PathBuf]| ("-f", files.to_vec());
    let key = |redact: &Redact| ("--pseudonym-key", redact.pseudonym_key.iter().cloned().collect());
    let (written, read) = match command {
        Simulate::Plan(a) => ([html(&a.page), None], vec![state(&a.input)]),
        Simulate::WhatIf(a) => ([html(&a.page), None], vec![state(&a.input), applied(&a.files)]),
        Simulate::ClassImpact(a) => {
            ([html(&a.page), None], vec![state(&a.input), applied(std::slice::from_ref(&a.file))])
        }
        Simulate::Compare(a) => {
            // A profile is a file or a name.
            let profiles =
                [&a.a, &a.b].into_iter().flatten().map(PathBuf::from).filter(|path| path.is_file());
            let with = ("--with", a.with.clone().unwrap_or_default());
            ([html(&a.page), None], vec![state(&a.input), with, ("a profile", profiles.collect())])
        }
        Simulate::Replay(a) => {
            let picture = a.tui_picture.clone().map(|path| ("--tui-picture", path));
            let recording = ("the recording", vec![a.recording.clone()]);
            ([html(&a.page), picture], vec![recording, applied(&a.files)])
        }
        Simulate::Record(a) => ([out(&a.out), None], vec![key(&a.redact)]),
        Simulate::Import(a) => ([out(&a.out), None], vec![state(&a.input), key(&a.redact)]),
        Simulate::Explain(_)
        | Simulate::Fit(_)
        | Simulate::Size(_)
        | Simulate::Inspect(_)
        | Simulate::Audit(_)
        | Simulate::Export(_)
        | Simulate::Gate(_)
        | Simulate::Fuzz(_)
        | Simulate::Shrink(_) => ([None, None], Vec::new()),
    };
    (written.into_iter().flatten().collect(), read)
}
