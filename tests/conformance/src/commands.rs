//! What people type: commands of kubectl with their input, run one after the other on one API, and what they
//! printed without ages, times and ids.

use crate::here;
use conductor_controlplane::run_kubectl;
use regex::Regex;
use serde::Deserialize;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

/// One command.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Command {
    /// The command line; split at spaces unless `words` has the arguments.
    pub run: String,
    /// The arguments, if one contains a space or a comment.
    #[serde(default)]
    words: Vec<String>,
    /// What it reads.
    #[serde(default)]
    input: String,
    /// Whether it must fail; else it must not.
    #[serde(default)]
    pub fails: bool,
    /// Why what it prints differs; then only whether it goes well is compared.
    #[serde(default)]
    pub differs: Option<String>,
    /// Compare these lines only.
    #[serde(default)]
    only: Vec<String>,
}

/// What a command came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outcome {
    /// Whether it went well.
    pub done: bool,
    /// What it printed.
    pub output: String,
    /// What it complained of.
    pub complaints: String,
}

/// Every command, in order.
///
/// # Errors
/// Why the file cannot be read.
pub fn read_all() -> Result<Vec<Command>, String> {
    let text = fs::read_to_string(here("commands.yaml")).map_err(|error| error.to_string())?;
    serde_saphyr::from_str(&text).map_err(|error| error.to_string())
}

impl Command {
    /// Runs it on the API of a kubeconfig.
    ///
    /// # Errors
    /// When kubectl cannot be run at all.
    pub fn run(&self, kubectl: &Path, kubeconfig: &Path, home: &Path) -> Result<Outcome, String> {
        let words: Vec<&str> = match &self.words[..] {
            [] => self.run.split_whitespace().collect(),
            words => words.iter().map(String::as_str).collect(),
        };
        let output = run_kubectl(kubectl, kubeconfig, home, &words, &self.input);
        let output = output.map_err(|error| error.to_string())?;
        Ok(Outcome {
            done: output.status.success(),
            output: self.chosen(&normalise(&String::from_utf8_lossy(&output.stdout))),
            complaints: in_one_order(&normalise(&String::from_utf8_lossy(&output.stderr))),
        })
    }

    fn chosen(&self, text: &str) -> String {
        if self.only.is_empty() {
            return text.to_owned();
        }
        let lines = text.lines().filter(|line| self.only.iter().any(|only| only == line));
        lines.collect::<Vec<_>>().join("\n")
    }
}

/// What differs between any two servers and any two moments, in the order in which it is taken out.
static DIFFERS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
    let patterns = [
        (r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}", "<uid>"),
        (r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?( [+-]\d{4}|Z)?", "<time>"),
        (r"\w{3}, \d\d \w{3} \d{4} \d\d:\d\d:\d\d [+-]\d{4}", "<time>"),
        (r#"(?i)(resource ?version"?: *)"?\d+"?"#, "$1<revision>"),
        (r"https://127\.0\.0\.1:\d+", "<server>"),
        (r"/tmp/(LIVE|MERGED)-\d+", "/tmp/$1"),
        (r"\b10\.96\.0\.\d+\b", "<address>"),
        (r"\bmade-[a-z0-9]{5}\b", "made-<suffix>"),
        (r"(?m)(^|\s)(\d+[smhd])+(\s|$)", "$1<age>$3"),
        (r"[ \t]+", " "),
        (r"(?m) +$", ""),
    ];
    patterns.map(|(text, mark)| (Regex::new(text).expect("the patterns are ours"), mark)).into()
});

fn normalise(text: &str) -> String {
    DIFFERS
        .iter()
        .fold(text.to_owned(), |text, (pattern, mark)| pattern.replace_all(&text, *mark).into_owned())
}

/// Several faults of one object are found in the order of a hash map: those that are listed are sorted.
fn in_one_order(complaints: &str) -> String {
    let mut lines: Vec<&str> = complaints.lines().collect();
    for faults in lines.chunk_by_mut(|one, next| one.starts_with("* ") && next.starts_with("* ")) {
        faults.sort_unstable();
    }
    lines.join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_sorted_and_other_complaints_stay_where_they_are() {
        let complaints = "z is invalid:\n* spec.b: no\n* spec.a: no\nanother line\n* spec.c: no";
        let sorted = "z is invalid:\n* spec.a: no\n* spec.b: no\nanother line\n* spec.c: no";
        assert_eq!(in_one_order(complaints), sorted);
    }

    #[test]
    fn ages_times_and_ids_are_taken_out_and_nothing_else() {
        let printed = "NAME   SIZE   AGE\nw1     3      6m12s\n uid: 73afab91-396c-4a19-a903-08eaa1a064dc\n resourceVersion: \"26\"\n";
        assert_eq!(
            normalise(printed),
            "NAME SIZE AGE\nw1 3 <age>\n uid: <uid>\n resourceVersion: <revision>\n"
        );
    }
}
