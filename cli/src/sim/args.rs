//! The arguments of `conductor sim`, and the help that teaches them. Every example in a help text runs as it stands,
//! with files of one's own where it names none of ours.

use crate::args::{ClusterArguments, CrdFormat, Format};
use clap::{Args, Subcommand};
use std::path::PathBuf;
use std::time::Duration;

/// Questions to the scheduler.
#[derive(Debug, Subcommand)]
pub enum Simulate {
    /// Show what every claim would get
    #[command(after_help = "Examples:
  conductor sim plan examples/plan/teams.yaml
  conductor sim plan manifests/ my-claim.yaml          would my claim be served?
  kubectl get conductor,namespaces -A -o yaml | conductor sim plan -
  conductor sim plan cluster.yaml.gz -o json | jq '.claims[] | select(.outcome == \"Pending\")'

Existing bindings are honoured, and a resource without a phase counts as Available. A claim that a
resource is held by but that is not in the input counts as gone: give all claims, not one namespace's.
`conductor` is the category of every kind that decisions are made from; quotas over a namespaceSelector
need the namespaces too.

The same input gives the same bytes. Exit codes: 0 planned, whatever the outcome; 2 usage or input error.")]
    Plan(PlanArguments),
    /// Show why claims wait, and the nearest changes that would serve them
    #[command(after_help = "Examples:
  conductor sim explain examples/plan/teams.yaml
  conductor sim explain examples/plan/teams.yaml --claim reports/warehouse
  kubectl get conductor,namespaces -A -o yaml | conductor sim explain - --claim team-a/orders -o json

A change that is named is enough for its claim alone: two claims may each be told to raise the same quota by one.

Exit codes: 0 explained; 2 usage or input error, an unknown claim included.")]
    Explain(ExplainArguments),
    /// Show what would change, and only that
    #[command(
        name = "whatif",
        visible_alias = "what-if",
        after_help = "Examples:
  conductor sim whatif examples/plan/teams.yaml --lose resource/shared-mysql
  conductor sim whatif examples/plan/teams.yaml --delete claim/blog/comments
  conductor sim whatif examples/plan/teams.yaml --set quota/shop/shop:spec.limits[0].requests.storage=80Gi
  conductor sim whatif examples/plan/teams.yaml --claims 20 --like blog/comments
  conductor sim whatif cluster.yaml -f edited-class.yaml -f new-database.yaml

Edits are made in this order: -f, --set, --lose, --delete, --claims. KIND is claim, resource, class, quota,
clusterquota, limits, profile or namespace. A VALUE is JSON where it is a list, a mapping, a \"quoted text\", a whole
number, true, false or null; everything else is text as it stands: 9.10, !=15.6, >= 16, *. Labels are always text.
No value removes the field. An edit with which an object cannot be read is refused, and so is a field that no schema
has. A manifest given with -f takes the place of the object of its name; what the cluster wrote (UID, status, holders)
stays. A lost resource is gone at once; a deleted one goes as its protection and its policy say. With a namespace goes
everything that is in it.

Exit codes: 0 nothing changes; 1 something does; 2 usage or input error."
    )]
    WhatIf(WhatIfArguments),
    /// Count how many more of a claim would be served
    #[command(after_help = "Examples:
  conductor sim fit examples/plan/teams.yaml --like blog/comments
  conductor sim fit cluster.yaml --like team-a/orders --most 5000 -o json | jq .fits

Copies of the claim are planned after everybody who waits.

Exit codes: 0 counted, be it none; 2 usage or input error.")]
    Fit(FitArguments),
    /// Count how many resources more it takes so that nothing waits for one
    #[command(after_help = "Examples:
  conductor sim size examples/plan/teams.yaml --like columns-16
  conductor sim size cluster.yaml --like db-small -o json | jq '{resources, waitingAfter}'

Exit codes: 0 counted, be it none; 2 usage or input error.")]
    Size(SizeArguments),
    /// Hold an edited class against every claim
    #[command(after_help = "Examples:
  conductor sim class-impact examples/plan/teams.yaml -f examples/class-cloudnative-pg.yaml
  conductor sim class-impact cluster.yaml -f edited-class.yaml -o json | jq '.anew.claims[] | .cause'

Two questions: what changes as soon as the class is applied, and what would change for the claims that it has
served already, if each had to be served anew.

Exit codes: 0 nothing changes; 1 something does; 2 usage or input error.")]
    ClassImpact(ClassImpactArguments),
    /// Hold two profiles, or two states, side by side
    #[command(after_help = "Examples:
  conductor sim compare examples/plan/teams.yaml --a built-in --b examples/profile.yaml
  conductor sim compare prod.rec --a default --b packed.yaml --html comparison.html
  conductor sim compare yesterday.yaml --with today.yaml

A profile is a file with one SchedulingProfile, the name of one in the state, or `built-in`. It applies as the
default. A recording is played again under each profile: what that ends with is compared. Waiting times are told of
every side that is a recording.

Exit codes: 0 no difference; 1 there is one; 2 usage or input error.")]
    Compare(CompareArguments),
    /// Record a cluster: what it holds, what happens, what its controller decides
    #[command(after_help = "Examples:
  conductor sim record -o prod.rec --for 24h
  conductor sim record -o prod.rec --pseudonym-key key.txt --rotate 256MiB
  zstd -dc prod.rec | jq 'select(.t == \"dec\")'

Only fields that decisions are made from are written; Secrets are never read. With --pseudonym-key names give way
to stand-ins, the same for the same key. What was written before an interruption is readable. A file that is there
stays, --force or not, until the cluster has been listed once. A watch that is lost is told, and is a gap in the file.

Exit codes: 0 recorded; 2 usage, or the cluster cannot be asked; 3 recorded, and at the end a watch was lost.")]
    Record(RecordArguments),
    /// Show what a recording holds
    #[command(after_help = "Examples:
  conductor sim inspect prod.rec
  conductor sim inspect prod.rec -o json | jq .decisions

Exit codes: 0 readable, interrupted or not; 2 damaged, of a later format, or no recording.")]
    Inspect(InspectArguments),
    /// Look for secrets in a recording before it is given away
    #[command(after_help = "Examples:
  conductor sim audit prod.rec
  conductor sim audit prod.rec --canaries must-not-be-there.txt

Every line is looked at as it stands in the file. Exit codes: 0 nothing found; 1 something was; 2 usage or input
error, a file that holds more than its lines and an empty list of canaries included.")]
    Audit(AuditArguments),
    /// Make a recording from manifests: kubectl dumps, directories, must-gather trees; or from another recording
    #[command(after_help = "Examples:
  kubectl get conductor,namespaces -A -o yaml | conductor sim import - -o state.rec
  conductor sim import must-gather/ -o state.rec --pseudonym-key key.txt
  conductor sim import prod.rec -o away.rec --pseudonym-key key.txt    names give way to stand-ins afterwards

A recording by itself keeps its history. Beside others it counts as it ends.

Exit codes: 0 imported; 2 usage or input error; then nothing is written.")]
    Import(ImportArguments),
    /// Print the objects of a recording as manifests
    #[command(after_help = "Examples:
  conductor sim export prod.rec > state.yaml
  conductor sim export prod.rec -o json | jq '.items[].metadata.name'
  conductor sim export prod.rec --at 90s | conductor sim plan -

Exit codes: 0 printed; 2 usage or input error.")]
    Export(ExportArguments),
    /// Play a recording again, in virtual time, through the same engine
    #[command(after_help = "Examples:
  conductor sim replay prod.rec --verify               does it decide as the live engine did?
  conductor sim replay prod.rec --until 10m --html replay.html
  conductor sim replay prod.rec --closed -f packed-profile.yaml   what would have happened
  conductor sim replay prod.rec --tui                  step through it

Where the two decide differently the difference is told and explained: by a Gap (a watch was lost then), a Race
(something other than the claim's own coming changed just before), another Version, or a Rule. The replay then goes
on from what really happened; with --closed from its own decision. What is given with -f stays as given, whatever is
recorded of it.

Exit codes: 0 played, and with --verify every decision agrees; 1 a rule says otherwise; 3 they differ only by gaps,
races or versions, or no decision was recorded; 2 usage or input error.")]
    Replay(ReplayArguments),
    /// Judge a state and its policies by a suite of expectations
    #[command(after_help = "Examples:
  conductor sim gate examples/gate/suite.yaml
  conductor sim gate suite.yaml --junit gate.xml --sarif gate.sarif --markdown gate.md --html gate.html
  conductor sim gate suite.yaml --bless                accept the plan as it is now

A case that selects nothing has failed, and so has a state without a claim, unless a case counts. A policy, or an
object of the state, that would drop out because it cannot be read is an error, and so is a field of a policy that no
schema has. --bless mends a damaged baseline.

Exit codes: 0 passed; 1 failed; 2 the suite, an object or a file cannot be read or written, or the suite contradicts
itself; 3 there is no baseline yet.")]
    Gate(GateArguments),
    /// Play random histories against the engine and check every law
    #[command(after_help = "Examples:
  conductor sim fuzz --seeds 20000
  conductor sim fuzz --seeds 500 --mutant retain-is-delete   the laws catch a broken engine
  conductor sim fuzz --list-mutants

Crashes, stale and repeated watches, conflicts, lost answers, late writes of a former leader, failing
implementations, administrators who edit and delete at the worst moment. A seed is a history, the same everywhere.

Exit codes: 0 every law held; 1 a history broke one; 2 usage error.")]
    Fuzz(FuzzArguments),
    /// Make a failing history as small as it gets
    #[command(after_help = "Examples:
  conductor sim shrink --seed 34 --mutant retain-is-delete
  conductor sim shrink --seed 34 --mutant retain-is-delete --write found/

Exit codes: 0 the seed does not fail; 1 it does, and this is its smallest form; 2 usage error.")]
    Shrink(ShrinkArguments),
}

/// What a simulation reads.
#[derive(Args, Debug)]
pub struct Input {
    /// Files, directories or `-` for standard input: YAML or JSON, lists and many documents too, gzip or not; recordings
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Where resources and classes live
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
    /// Namespace of claims, quotas and limits that name none
    #[arg(long, short, value_name = "NS", default_value = "default")]
    pub namespace: String,
}

/// Arguments of `sim plan`.
#[derive(Args, Debug)]
pub struct PlanArguments {
    /// What is read
    #[command(flatten)]
    pub input: Input,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
    /// Its page
    #[command(flatten)]
    pub page: Page,
}

/// Arguments of `sim explain`.
#[derive(Args, Debug)]
pub struct ExplainArguments {
    /// What is read
    #[command(flatten)]
    pub input: Input,
    /// One claim, waiting or not; without it, every claim that waits
    #[arg(long, value_name = "NS/NAME")]
    pub claim: Option<String>,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `sim whatif`.
#[derive(Args, Debug)]
pub struct WhatIfArguments {
    /// What is read
    #[command(flatten)]
    pub input: Input,
    /// Manifests that are applied: new objects, or changed ones
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Set a field, or remove it where no value is given: KIND/[NS/]NAME:FIELD=VALUE (what a value is: see below)
    #[arg(long, value_name = "EDIT")]
    pub set: Vec<String>,
    /// Lose an object, as an outage would: KIND/[NS/]NAME
    #[arg(long, value_name = "OBJECT")]
    pub lose: Vec<String>,
    /// Delete an object, as a person would: KIND/[NS/]NAME
    #[arg(long, value_name = "OBJECT")]
    pub delete: Vec<String>,
    /// So many more claims
    #[arg(long, value_name = "N", requires = "like")]
    pub claims: Option<usize>,
    /// The claim that they are like
    #[arg(long, value_name = "NS/NAME", requires = "claims")]
    pub like: Option<String>,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
    /// Its page
    #[command(flatten)]
    pub page: Page,
}

/// Arguments of `sim fit`.
#[derive(Args, Debug)]
pub struct FitArguments {
    /// What is read
    #[command(flatten)]
    pub input: Input,
    /// The claim
    #[arg(long, value_name = "NS/NAME")]
    pub like: String,
    /// How many are tried
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub most: usize,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `sim size`.
#[derive(Args, Debug)]
pub struct SizeArguments {
    /// What is read
    #[command(flatten)]
    pub input: Input,
    /// The resource that the new ones are like
    #[arg(long, value_name = "NAME", required_unless_present = "class", conflicts_with = "class")]
    pub like: Option<String>,
    /// The class that the new ones are of: they are like its first resource by name
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `sim class-impact`.
#[derive(Args, Debug)]
pub struct ClassImpactArguments {
    /// What is read
    #[command(flatten)]
    pub input: Input,
    /// The manifest of the edited class
    #[arg(short = 'f', long = "file", value_name = "PATH", required = true)]
    pub file: PathBuf,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
    /// Its page
    #[command(flatten)]
    pub page: Page,
}

/// How an answer is written.
#[derive(Args, Debug)]
pub struct Output {
    /// A table for people, or JSON for scripts
    #[arg(id = "format", long = "output", short = 'o', value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Answer twice and compare every byte; exit code 4 where they differ
    #[arg(long)]
    pub double_run: bool,
}

/// The page of an answer that has one.
#[derive(Args, Debug)]
pub struct Page {
    /// Write the answer as one HTML page too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}

/// Arguments of `sim compare`.
#[derive(Args, Debug)]
pub struct CompareArguments {
    /// What is read
    #[command(flatten)]
    pub input: Input,
    /// The first profile
    #[arg(long, value_name = "PROFILE", requires = "b")]
    pub a: Option<String>,
    /// The second profile
    #[arg(long, value_name = "PROFILE", requires = "a")]
    pub b: Option<String>,
    /// Another state
    #[arg(long, value_name = "PATH", conflicts_with_all = ["a", "b"])]
    pub with: Option<Vec<PathBuf>>,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
    /// Its page
    #[command(flatten)]
    pub page: Page,
}

/// How recordings are made safe to give away.
#[derive(Args, Debug)]
pub struct Redact {
    /// ClaimState-ins for names, under the key in this file
    #[arg(long, value_name = "FILE")]
    pub pseudonym_key: Option<PathBuf>,
}

/// Arguments of `sim record`.
#[derive(Args, Debug)]
pub struct RecordArguments {
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// The file
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// How long, such as 90s, 10m, 24h; until interrupted where it is not given
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Go on in another file after so much, such as 256MiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub rotate: Option<u64>,
    /// Write over a file that exists
    #[arg(long)]
    pub force: bool,
    /// What is left out
    #[command(flatten)]
    pub redact: Redact,
}

/// Arguments of `sim inspect`.
#[derive(Args, Debug)]
pub struct InspectArguments {
    /// The recording
    #[arg(value_name = "FILE")]
    pub recording: PathBuf,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `sim audit`.
#[derive(Args, Debug)]
pub struct AuditArguments {
    /// The recording
    #[arg(value_name = "FILE")]
    pub recording: PathBuf,
    /// Texts that must not be in it, one a line
    #[arg(long, value_name = "FILE")]
    pub canaries: Option<PathBuf>,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `sim import`.
#[derive(Args, Debug)]
pub struct ImportArguments {
    /// What is read
    #[command(flatten)]
    pub input: Input,
    /// The file
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// Write over a file that exists
    #[arg(long)]
    pub force: bool,
    /// What is left out
    #[command(flatten)]
    pub redact: Redact,
}

/// Arguments of `sim export`.
#[derive(Args, Debug)]
pub struct ExportArguments {
    /// The recording
    #[arg(value_name = "FILE")]
    pub recording: PathBuf,
    /// As it was so long after the beginning, such as 90s; at the end where it is not given
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub at: Option<Duration>,
    /// YAML documents, or one JSON list
    #[arg(long, short, value_enum, default_value_t = CrdFormat::Yaml)]
    pub output: CrdFormat,
}

/// Arguments of `sim replay`.
#[derive(Args, Debug)]
pub struct ReplayArguments {
    /// The recording
    #[arg(value_name = "FILE")]
    pub recording: PathBuf,
    /// Judge by whether every decision agrees
    #[arg(long)]
    pub verify: bool,
    /// No further than this, such as 90s, 10m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub until: Option<Duration>,
    /// Go on from the replay's own decisions
    #[arg(long, conflicts_with = "verify")]
    pub closed: bool,
    /// Manifests that apply from the beginning: other profiles, classes, quotas
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Step through it in the terminal
    #[arg(long)]
    pub tui: bool,
    /// Draw the middle of that view as SVG, for documents
    #[arg(long, value_name = "FILE", hide = true)]
    pub tui_picture: Option<PathBuf>,
    /// Where resources and classes of those manifests live
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
    /// Its page
    #[command(flatten)]
    pub page: Page,
}

/// Arguments of `sim gate`.
#[derive(Args, Debug)]
pub struct GateArguments {
    /// The suite
    #[arg(value_name = "SUITE")]
    pub suite: PathBuf,
    /// Accept the plan as it is now: write it as the suite's baseline
    #[arg(long)]
    pub bless: bool,
    /// Write the verdict as JUnit XML too
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the verdict as SARIF too, pointing at the policies
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write the verdict as Markdown too, short enough for a comment
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Where resources and classes live
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
    /// Its page
    #[command(flatten)]
    pub page: Page,
}

/// Arguments of `sim fuzz`.
#[derive(Args, Debug)]
pub struct FuzzArguments {
    /// How many histories
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// The first seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub from: u64,
    /// An engine that is broken on purpose, to see the laws catch it
    #[arg(long, value_name = "NAME")]
    pub mutant: Option<String>,
    /// Name the ways in which the engine can be broken
    #[arg(long)]
    pub list_mutants: bool,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
}

/// Arguments of `sim shrink`.
#[derive(Args, Debug)]
pub struct ShrinkArguments {
    /// The seed
    #[arg(long, value_name = "SEED")]
    pub seed: u64,
    /// The engine that is broken on purpose, where one was
    #[arg(long, value_name = "NAME")]
    pub mutant: Option<String>,
    /// Write state.yaml and history.txt to this folder too
    #[arg(long, value_name = "FOLDER")]
    pub write: Option<PathBuf>,
    /// How it is written
    #[command(flatten)]
    pub output: Output,
}

/// `90s`, `10m`, `24h`, `7d`, `500ms`.
fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is no time: write a number and ms, s, m, h or d, such as 90s");
    let at = text.find(|c: char| !c.is_ascii_digit()).ok_or_else(wrong)?;
    let number: u64 = text[..at].parse().map_err(|_| wrong())?;
    let ms = match &text[at..] {
        "ms" => 1,
        "s" => 1_000,
        "m" => 60_000,
        "h" => 3_600_000,
        "d" => 86_400_000,
        _ => return Err(wrong()),
    };
    number.checked_mul(ms).map(Duration::from_millis).ok_or_else(wrong)
}

/// `1000`, `64KiB`, `256MiB`, `1GiB`.
fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || format!("{text:?} is no size: write a number and KiB, MiB or GiB, such as 256MiB");
    let at = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let number: u64 = text[..at].parse().map_err(|_| wrong())?;
    let scale = match &text[at..] {
        "" | "B" => 1,
        "KiB" => 1 << 10,
        "MiB" => 1 << 20,
        "GiB" => 1 << 30,
        _ => return Err(wrong()),
    };
    number.checked_mul(scale).filter(|n| *n > 0).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_and_sizes_are_read_with_their_units() {
        for (text, ms) in [("500ms", 500), ("90s", 90_000), ("10m", 600_000), ("24h", 86_400_000)] {
            assert_eq!(duration(text), Ok(Duration::from_millis(ms)));
        }
        for (text, size) in [("1000", 1_000), ("64KiB", 65_536), ("1GiB", 1 << 30)] {
            assert_eq!(bytes(text), Ok(size));
        }
        for text in ["", "10", "s", "10x", "-1s", "99999999999999999999s"] {
            assert!(duration(text).is_err(), "{text}");
        }
        for text in ["", "0", "10MB", "-1"] {
            assert!(bytes(text).is_err(), "{text}");
        }
    }
}
