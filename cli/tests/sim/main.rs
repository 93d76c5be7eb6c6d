//! `conductor` as people and scripts run it: arguments in, bytes and exit codes out.
//! What is decided is the engine's and the simulator's business, and tested there.

mod answers;
mod broken;
mod compare;
mod explain;
mod fields;
mod gate;
mod help;
mod inputs;
mod overwrite_check;
mod plan;
mod replay;
mod tables;
mod whatif;

use serde_json::Value;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

/// The repository.
fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn conductor(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
    command.args(arguments).current_dir(root()).env_remove("NO_COLOR").stdin(Stdio::null());
    command
}

fn run(arguments: &[&str]) -> Output {
    conductor(arguments).output().expect("conductor starts")
}

fn run_with(arguments: &[&str], input: &[u8]) -> Output {
    let mut command = conductor(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().expect("conductor starts");
    let mut stdin = child.stdin.take().expect("it has an input");
    // It may stop reading early, where the input is broken.
    let _ = stdin.write_all(input);
    drop(stdin);
    child.wait_with_output().expect("it ends")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8(bytes.to_vec()).expect("output is UTF-8")
}

/// Standard output of a run that succeeds.
#[track_caller]
fn succeed(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(0), "{}", text(&output.stderr));
    text(&output.stdout)
}

/// Standard error of a run that is refused, which prints no result.
#[track_caller]
fn refused(output: &Output) -> String {
    assert_eq!(output.status.code(), Some(2), "{}", text(&output.stderr));
    assert_eq!(text(&output.stdout), "");
    text(&output.stderr)
}

#[track_caller]
fn json(output: &Output) -> Value {
    serde_json::from_str(&succeed(output)).expect("it is JSON")
}

/// A claim in namespace `a`. The name is quoted: `y` alone is a boolean, to kubectl too.
fn claim(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabaseClaim\n\
         metadata: {{name: '{name}', namespace: a}}\nspec: {{{spec}}}\n"
    )
}

fn resource(name: &str, spec: &str) -> String {
    format!(
        "apiVersion: storage.conductor.io/v1alpha1\nkind: RelationalDatabase\n\
         metadata: {{name: {name}, namespace: conductor-system}}\nspec: {{{spec}}}\n"
    )
}

/// Documents of one file.
fn documents(documents: &[String]) -> Vec<u8> {
    documents.join("---\n").into_bytes()
}

/// A folder of this test's own, empty.
fn folder(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_dir_all(&folder);
    std::fs::create_dir_all(&folder).expect("a folder can be made");
    folder
}
