//! The arguments of `conductor sim`, and the help that teaches them. Every example in a help text runs as it stands,
//! with files of one's own where it names none of ours.

mod quality;
mod recordings;
mod states;
mod units;

pub use quality::{FuzzArguments, GateArguments, ShrinkArguments};
pub use recordings::{
    AuditArguments, ExportArguments, ImportArguments, InspectArguments, RecordArguments, Redact,
    ReplayArguments,
};
pub use states::{
    ClassImpactArguments, CompareArguments, ExplainArguments, FitArguments, PlanArguments, SizeArguments,
    WhatIfArguments,
};

use crate::args::Format;
use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Subcommand)]
pub enum Simulate {
    /// Plan what every claim would get
    #[command(after_help = "\
Examples:
  conductor sim plan examples/plan/teams.yaml
  # Show whether a new claim would be bound
  conductor sim plan manifests/ my-claim.yaml
  # Plan a cluster
  kubectl get conductor,namespaces -A -o yaml | conductor sim plan -
  conductor sim plan cluster.yaml.gz -o json \\
    | jq '.claims[] | select(.outcome == \"Pending\")'

The plan keeps existing bindings, and treats a resource without a phase as Available. It treats a claim that holds a \
resource but is missing from the input as deleted: give the claims of all namespaces. `conductor` is the category of \
every kind that decisions read; quotas over a namespaceSelector need the namespaces too. The same input gives the same \
bytes.

Exit codes:
  0  planned, whatever the outcome
  2  usage or input error")]
    Plan(PlanArguments),
    /// Explain why claims wait, and the nearest changes that would bind them
    #[command(after_help = "\
Examples:
  conductor sim explain examples/plan/teams.yaml
  conductor sim explain examples/plan/teams.yaml --claim reports/warehouse
  kubectl get conductor,namespaces -A -o yaml \\
    | conductor sim explain - --claim team-a/orders -o json

Each proposed change is enough for its claim alone: two claims may both propose to raise the same quota by one.

Exit codes:
  0  explained
  2  usage or input error, or an unknown claim")]
    Explain(ExplainArguments),
    /// Show what edits, losses and new claims would change
    #[command(
        name = "whatif",
        visible_alias = "what-if",
        after_help = "\
Examples:
  conductor sim whatif examples/plan/teams.yaml --lose resource/shared-mysql
  conductor sim whatif examples/plan/teams.yaml --delete claim/blog/comments
  conductor sim whatif examples/plan/teams.yaml \\
    --set quota/shop/shop:spec.limits[0].requests.storage=80Gi
  conductor sim whatif examples/plan/teams.yaml --claims 20 --like blog/comments
  conductor sim whatif cluster.yaml -f edited-class.yaml -f new-database.yaml

Edits apply in this order: -f, --set, --lose, --delete, --claims. KIND is claim, resource, class, quota, clusterquota, \
limits, profile or namespace. A VALUE is JSON if it is a list, a mapping, a \"quoted text\", a whole number, true, \
false or null; everything else is text as it stands: 9.10, !=15.6, >= 16, *. Labels are always text. No value removes \
the field.

The command refuses an edit that makes an object unreadable, and a field that no schema has. A manifest given with -f \
replaces the object of its name and keeps what the cluster wrote (UID, status, holders). A lost resource disappears at \
once; a deleted one follows its finalizers and its reclaim policy. A namespace takes everything in it along.

Exit codes:
  0  nothing changes
  1  something changes
  2  usage or input error"
    )]
    WhatIf(WhatIfArguments),
    /// Count how many more copies of a claim would be served
    #[command(after_help = "\
Examples:
  conductor sim fit examples/plan/teams.yaml --like blog/comments
  conductor sim fit cluster.yaml --like team-a/orders --most 5000 -o json \\
    | jq .fits

The copies are planned after every claim that waits.

Exit codes:
  0  counted, be it none
  2  usage or input error")]
    Fit(FitArguments),
    /// Count how many more resources it takes so that no claim waits for one
    #[command(after_help = "\
Examples:
  conductor sim size examples/plan/teams.yaml --like columns-16
  conductor sim size cluster.yaml --like db-small -o json \\
    | jq '{resources, waitingAfter}'

Exit codes:
  0  counted, be it none
  2  usage or input error")]
    Size(SizeArguments),
    /// Show what an edited class would change for every claim
    #[command(after_help = "\
Examples:
  conductor sim class-impact examples/plan/teams.yaml \\
    -f examples/class-cloudnative-pg.yaml
  conductor sim class-impact cluster.yaml -f edited-class.yaml -o json \\
    | jq '.anew.claims[] | .cause'

The command answers two questions: what changes as soon as the class is applied, and what would change for the claims \
that it serves already if they were provisioned again.

Exit codes:
  0  nothing changes
  1  something changes
  2  usage or input error")]
    ClassImpact(ClassImpactArguments),
    /// Compare two profiles on one state, or two states
    #[command(after_help = "\
Examples:
  conductor sim compare examples/plan/teams.yaml \\
    --a built-in --b examples/profile.yaml
  conductor sim compare prod.rec --a default --b packed.yaml \\
    --html comparison.html
  conductor sim compare yesterday.yaml --with today.yaml

A profile is a file with one SchedulingProfile, the name of one in the state, or `built-in`. It applies as the \
default. A recording is replayed under each profile, and the final states are compared. Waiting times appear for every \
side that is a recording.

Exit codes:
  0  no difference
  1  a difference
  2  usage or input error")]
    Compare(CompareArguments),
    /// Record a cluster: its objects, its events, its controller's decisions
    #[command(after_help = "\
Examples:
  conductor sim record -o prod.rec --for 24h
  conductor sim record -o prod.rec --pseudonym-key key.txt --rotate 256MiB
  zstd -dc prod.rec | jq 'select(.t == \"dec\")'

A recording holds only the fields that decisions read, and no Secrets. With --pseudonym-key, pseudonyms replace names: \
the same ones for the same key. An interrupted recording is readable up to its end. An existing file stays until the \
cluster has been listed once, with --force too. A lost watch is reported, and leaves a gap in the file.

Exit codes:
  0  recorded
  2  usage error, or no cluster
  3  recorded, but a watch was lost at the end")]
    Record(RecordArguments),
    /// Show what a recording holds
    #[command(after_help = "\
Examples:
  conductor sim inspect prod.rec
  conductor sim inspect prod.rec -o json | jq .decisions

Exit codes:
  0  readable, interrupted or not
  2  damaged, of a later format, or no recording")]
    Inspect(InspectArguments),
    /// Search a recording for secrets before you share it
    #[command(after_help = "\
Examples:
  conductor sim audit prod.rec
  conductor sim audit prod.rec --canaries must-not-be-there.txt

The command checks every line as it stands in the file.

Exit codes:
  0  nothing found
  1  something found
  2  usage or input error, such as a file that holds more than its lines, or an
     empty list of canaries")]
    Audit(AuditArguments),
    /// Create a recording from manifests, or from another recording
    #[command(after_help = "\
Examples:
  kubectl get conductor,namespaces -A -o yaml \\
    | conductor sim import - -o state.rec
  conductor sim import must-gather/ -o state.rec --pseudonym-key key.txt
  # Replace names by pseudonyms afterwards
  conductor sim import prod.rec -o away.rec --pseudonym-key key.txt

Manifests are kubectl dumps, directories or must-gather trees. A single recording keeps its history; beside other \
inputs, only its final state counts.

Exit codes:
  0  imported
  2  usage or input error; nothing is written")]
    Import(ImportArguments),
    /// Print the objects of a recording as manifests
    #[command(after_help = "\
Examples:
  conductor sim export prod.rec > state.yaml
  conductor sim export prod.rec -o json | jq '.items[].metadata.name'
  conductor sim export prod.rec --at 90s | conductor sim plan -

Exit codes:
  0  printed
  2  usage or input error")]
    Export(ExportArguments),
    /// Replay a recording through the same engine, in virtual time
    #[command(after_help = "\
Examples:
  # Check that the engine decides as it did live
  conductor sim replay prod.rec --verify
  conductor sim replay prod.rec --until 10m --html replay.html
  # Show what would have happened under another profile
  conductor sim replay prod.rec --closed -f packed-profile.yaml
  # Step through it
  conductor sim replay prod.rec --tui

Where the two decide differently, the replay explains why: by a Gap (a watch was lost), a Race (something other than \
the claim's own arrival changed just before), another Version, or a Rule. It then continues from the recorded events; \
with --closed, from its own decisions. Objects given with -f stay as given, whatever the recording says of them.

Exit codes:
  0  replayed; with --verify, every decision agrees
  1  a rule decides otherwise
  2  usage or input error
  3  differences by gaps, races or versions only, or no recorded decision")]
    Replay(ReplayArguments),
    /// Check a state and its policies against a suite of expectations
    #[command(after_help = "\
Examples:
  conductor sim gate examples/gate/suite.yaml
  conductor sim gate suite.yaml --junit gate.xml --sarif gate.sarif \\
    --markdown gate.md --html gate.html
  # Accept the plan as it is now
  conductor sim gate suite.yaml --bless

A case that selects nothing fails, and so does a state without a claim, unless a case counts. A policy or an object of \
the state that cannot be read is an error, and so is a field of a policy that no schema has. --bless replaces a \
damaged baseline.

Exit codes:
  0  passed
  1  failed
  2  usage error, a suite, object or file that cannot be read or written, or a
     suite that contradicts itself
  3  no baseline yet")]
    Gate(GateArguments),
    /// Run random histories through the engine, and check every invariant
    #[command(after_help = "\
Examples:
  conductor sim fuzz --seeds 20000
  # See the invariants catch a broken engine
  conductor sim fuzz --seeds 500 --mutant retain-is-delete
  conductor sim fuzz --list-mutants

Histories contain crashes, stale and repeated watches, conflicts, lost responses, late writes of a former leader, \
failing implementations, and administrators who edit and delete at the worst moment. A seed gives the same history on \
every machine.

Exit codes:
  0  every invariant held
  1  a history broke one
  2  usage error")]
    Fuzz(FuzzArguments),
    /// Reduce a failing history to its smallest form
    #[command(after_help = "\
Examples:
  conductor sim shrink --seed 34 --mutant retain-is-delete
  conductor sim shrink --seed 34 --mutant retain-is-delete --write found/

Exit codes:
  0  the seed does not fail
  1  the seed fails; this is its smallest form
  2  usage error")]
    Shrink(ShrinkArguments),
}

/// What a simulation reads.
#[derive(Args, Debug)]
pub struct Input {
    /// Manifests, directories, recordings, or `-` for standard input
    ///
    /// YAML or JSON, lists and several documents included, gzip or not.
    #[arg(value_name = "PATH", required = true)]
    pub paths: Vec<PathBuf>,
    /// Read resources and classes in this namespace
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
    /// Put claims, quotas and limits without a namespace into this one
    #[arg(long, short, value_name = "NS", default_value = "default")]
    pub namespace: String,
}

/// How a result is printed.
#[derive(Args, Debug)]
pub struct Output {
    /// Choose a table for people or JSON for scripts
    #[arg(id = "format", long = "output", short = 'o', value_enum, default_value_t = Format::Table)]
    pub format: Format,
    /// Compute the result twice and compare every byte; exit with 4 if they differ
    #[arg(long)]
    pub double_run: bool,
}

/// The HTML page of a result that has one.
#[derive(Args, Debug)]
pub struct Page {
    /// Write the result as an HTML page too
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,
}
