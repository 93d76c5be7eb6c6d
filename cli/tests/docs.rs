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
        let child = command.current_dir(root()).stdout(Stdio::null()).stdin(Stdio::null()).spawn().unwrap();
        let up = Up { child, folder };
        let end = Instant::now() + WITHIN;
        while up.run("kubectl -n conductor-system get rdbclass").is_err() {
            assert!(Instant::now() < end, "conductor up is not up");
            std::thread::sleep(Duration::from_millis(50));
        }
        up
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
