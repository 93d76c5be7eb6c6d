//! The pages for people, command by command: every block that is marked `sh` is run against a fresh `conductor up`,
//! and the lines of a `text` block after it must be in what it printed. Blocks without a mark are for reading.

use conductor_controlplane::find_kubectl;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Generous: machines are slow at times.
const WITHIN: Duration = Duration::from_secs(60);

fn root() -> PathBuf {
    PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// A block to run, where it stands, and what it must print.
struct Block {
    line: usize,
    commands: String,
    printed: Vec<String>,
}

/// The blocks of a page: `sh` ones, each with the `text` one that follows it.
fn blocks(page: &str) -> Vec<Block> {
    let mut found: Vec<Block> = Vec::new();
    let mut lines = page.lines().enumerate();
    while let Some((at, line)) = lines.next() {
        let Some(mark) = line.strip_prefix("```") else { continue };
        let body: Vec<String> =
            lines.by_ref().map(|(_, line)| line.to_owned()).take_while(|line| line != "```").collect();
        match mark {
            "sh" => found.push(Block { line: at + 1, commands: body.join("\n"), printed: Vec::new() }),
            "text" => found.last_mut().expect("a command comes first").printed = body,
            _ => {}
        }
    }
    found
}

/// A `conductor up` of the page's own. Dropped, it is killed.
struct Up {
    child: Child,
    folder: PathBuf,
}

impl Up {
    fn start(page: &str, more: &[&str]) -> Up {
        let folder = std::env::temp_dir().join(format!("conductor-docs-{page}-{}", std::process::id()));
        fs::create_dir_all(folder.join("bin")).unwrap();
        std::os::unix::fs::symlink(find_kubectl().unwrap(), folder.join("bin/kubectl")).unwrap();
        std::os::unix::fs::symlink(env!("CARGO_BIN_EXE_conductor"), folder.join("bin/conductor")).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_conductor"));
        command.arg("up").arg("--write-kubeconfig").arg(folder.join("kubeconfig")).args(more);
        let printed = fs::File::create(folder.join("printed")).unwrap();
        let child = command.current_dir(root()).stdout(printed).stdin(Stdio::null()).spawn().unwrap();
        let up = Up { child, folder };
        let end = Instant::now() + WITHIN;
        while up.run("kubectl -n conductor-system get rdbclass").is_err() {
            assert!(Instant::now() < end, "conductor up is not up");
            std::thread::sleep(Duration::from_millis(50));
        }
        up
    }

    /// The lines that it says to type next, as they would be typed.
    fn lines_to_type(&self) -> Vec<String> {
        let printed = fs::read_to_string(self.folder.join("printed")).unwrap();
        let after = printed.split_once("Type next").expect("it says what to type").1;
        let (lines, _) = after.split_once("\nCtrl-C ends it").expect("it says how to end it");
        lines.lines().filter_map(|line| line.strip_prefix("  ")).map(str::to_owned).collect()
    }

    /// What the commands printed, or what went wrong.
    fn run(&self, commands: &str) -> Result<String, String> {
        let path =
            format!("{}:{}", self.folder.join("bin").display(), std::env::var("PATH").unwrap_or_default());
        let mut shell = Command::new("bash");
        shell.args(["-euo", "pipefail", "-c", commands]).current_dir(root());
        shell.env("PATH", path).env("HOME", &self.folder).env("KUBECONFIG", self.folder.join("kubeconfig"));
        let output = shell.output().unwrap();
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        if output.status.success() {
            Ok(out.into_owned())
        } else {
            Err(format!("{}: {out}{err}", output.status))
        }
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn squeeze(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

fn try_page(page: &str, more: &[&str], least: usize) {
    let path = root().join("docs").join(format!("{page}.md"));
    let blocks = blocks(&fs::read_to_string(&path).unwrap());
    assert!(blocks.len() >= least, "{page} has {} blocks to run", blocks.len());
    let up = Up::start(page, more);
    for Block { line, commands, printed } in blocks {
        let output = up.run(&commands).unwrap_or_else(|error| panic!("docs/{page}.md:{line}: {error}"));
        for promised in printed {
            let is_there = squeeze(&output).contains(&squeeze(&promised));
            assert!(is_there, "docs/{page}.md:{line}: {promised:?} is not in\n{output}");
        }
    }
}

#[test]
fn the_page_for_application_owners_works() {
    try_page("application-owner", &["-f", "examples/demo/administrator.yaml"], 7);
}

#[test]
fn the_page_for_administrators_works() {
    try_page("administrator", &[], 7);
}

#[test]
fn the_page_for_simulation_engineers_works() {
    try_page("simulation-engineer", &[], 5);
}

#[test]
fn the_page_for_operators_works() {
    try_page("operator", &[], 3);
}

#[test]
fn the_page_about_databases_works() {
    try_page("databases", &[], 1);
}

/// With and without `-f`; twice, as after a second start on the same data.
#[test]
fn every_line_that_up_prints_works_as_typed() {
    for more in [&[][..], &["-f", "examples/demo/administrator.yaml"]] {
        let up = Up::start(&format!("typed{}", more.len()), more);
        let lines = up.lines_to_type();
        assert!(lines.len() >= 6 && lines[0].starts_with("export KUBECONFIG="), "{lines:?}");
        for _ in 0..2 {
            let output =
                up.run(&lines.join("\n")).unwrap_or_else(|error| panic!("{more:?}: {lines:#?}: {error}"));
            for promised in ["my-team/my-db Bound", "username:", "uri:"] {
                assert!(squeeze(&output).contains(promised), "{promised} is not in\n{output}");
            }
        }
        let phase = "kubectl -n my-team get rdbc my-db -o jsonpath='{.status.phase}'";
        assert_eq!(up.run(phase).unwrap(), "Bound");
    }
}

/// What a machine without PostgreSQL is shown, on any machine.
#[test]
fn a_first_claim_without_a_server_is_bound_and_ready() {
    let up = Up::start("address", &["-f", "examples/first-claim-address-only.yaml"]);
    up.run("kubectl -n my-team wait rdbc/my-db --for=condition=Ready --timeout=60s").unwrap();
    let host = up.run("kubectl -n my-team get secret my-db -o jsonpath='{.data.host}' | base64 -d").unwrap();
    assert_eq!(host, "only-an-address.example.com");
}

/// Pages name placeholders for what a reader has; what they name of this repository must be there and must do.
#[test]
fn every_simulation_that_a_page_shows_on_examples_runs() {
    let folder = std::env::temp_dir().join(format!("conductor-docs-sim-{}", std::process::id()));
    fs::create_dir_all(&folder).unwrap();
    std::os::unix::fs::symlink(root().canonicalize().unwrap().join("examples"), folder.join("examples"))
        .unwrap();
    let mut questions = std::collections::BTreeSet::new();
    for page in ["README.md", "docs/simulate.md", "docs/simulation-engineer.md", "docs/administrator.md"] {
        let text = fs::read_to_string(root().join(page)).unwrap();
        for line in
            text.lines().filter(|line| line.starts_with("conductor sim ") && line.contains("examples/"))
        {
            let command = line.replacen("conductor", env!("CARGO_BIN_EXE_conductor"), 1);
            let mut shell = Command::new("bash");
            let output = shell.args(["-c", &command]).current_dir(&folder).output().unwrap();
            let reported = String::from_utf8_lossy(&output.stderr).into_owned();
            // 1 says that something would change, or that a gate fails; a pipe has the code of its end.
            let answered = matches!(output.status.code(), Some(0 | 1)) && !reported.contains("error:");
            assert!(answered || line.contains('|') || line.contains("/tmp/"), "{page}: {line}: {reported}");
            questions.extend(line.split_whitespace().nth(2).map(str::to_owned));
        }
    }
    let _ = fs::remove_dir_all(&folder);
    assert!(questions.contains("class-impact") && questions.len() >= 6, "{questions:?}");
}

#[test]
fn every_page_that_a_page_names_is_there() {
    for entry in fs::read_dir(root().join("docs")).unwrap() {
        let path = entry.unwrap().path();
        let Ok(text) = fs::read_to_string(&path) else { continue };
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let target = link.split('#').next().unwrap_or_default();
            let is_file = !target.is_empty() && !target.contains("://");
            let there = Path::new(&path).parent().unwrap().join(target).exists();
            assert!(!is_file || there, "{}: {link} is not there", path.display());
        }
    }
}
