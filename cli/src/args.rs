//! The arguments, and the help that teaches them. Every example in a help text runs as it stands.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Claims for infrastructure: see what applications would get, and why
#[derive(Debug, Parser)]
#[command(
    name = "conductor",
    version,
    arg_required_else_help = true,
    after_help = "Examples:
  conductor sim plan examples/plan/teams.yaml
  kubectl get rdb,rdbc,rdbclass -A -o yaml | conductor sim plan -
  conductor crds | kubectl apply -f -"
)]
pub struct Arguments {
    /// What to do
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run the scheduler offline, over manifests
    #[command(
        arg_required_else_help = true,
        after_help = "Examples:
  conductor sim plan manifests/                       what every claim would get
  conductor sim plan manifests/ -o json | jq .summary
  conductor sim explain manifests/                    why claims wait, and what would help
  conductor sim explain manifests/ --claim team-a/orders"
    )]
    Sim {
        /// Which question
        #[command(subcommand)]
        command: Simulate,
    },
    /// Print the CustomResourceDefinitions
    #[command(after_help = "Examples:
  conductor crds | kubectl apply -f -
  conductor crds -o json | jq -r '.items[].metadata.name'")]
    Crds(CrdsArguments),
}

/// Questions to the scheduler.
#[derive(Debug, Subcommand)]
pub enum Simulate {
    /// Show what every claim would get
    #[command(after_help = "Examples:
  conductor sim plan examples/plan/teams.yaml
  conductor sim plan manifests/ my-claim.yaml          would my claim be served?
  kubectl get rdb,rdbc,rdbclass,claimquotas -A -o yaml | conductor sim plan -
  conductor sim plan cluster.yaml.gz -o json | jq '.claims[] | select(.outcome == \"Pending\")'

Existing bindings are honoured, and a resource without a phase counts as Available. A claim that a
resource is held by but that is not in the input counts as gone: give all claims, not one namespace's.

The same input gives the same bytes. Exit codes: 0 planned, whatever the outcome; 2 usage or input error.")]
    Plan(PlanArguments),
    /// Show why claims wait, and the nearest changes that would serve them
    #[command(after_help = "Examples:
  conductor sim explain examples/plan/teams.yaml
  conductor sim explain examples/plan/teams.yaml --claim reports/warehouse
  kubectl get rdb,rdbc,rdbclass -A -o yaml | conductor sim explain - --claim team-a/orders -o json

Exit codes: 0 explained; 2 usage or input error, an unknown claim included.")]
    Explain(ExplainArguments),
}

/// What a simulation reads.
#[derive(Args, Debug)]
pub struct Input {
    /// Files, directories or `-` for standard input: YAML or JSON, lists and many documents too, gzip or not
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
    /// A table for people, or JSON for scripts
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    pub output: Format,
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
    /// A table for people, or JSON for scripts
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// Arguments of `crds`.
#[derive(Args, Debug)]
pub struct CrdsArguments {
    /// YAML documents, or one JSON list
    #[arg(long, short, value_enum, default_value_t = CrdFormat::Yaml)]
    pub output: CrdFormat,
}

/// How a result is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For people
    Table,
    /// For scripts
    Json,
}

/// How CRDs are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CrdFormat {
    /// One document each
    Yaml,
    /// One list
    Json,
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::CommandFactory;

    #[test]
    fn the_arguments_are_well_formed() {
        Arguments::command().debug_assert();
    }
}
