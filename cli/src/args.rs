//! The arguments, and the help that teaches them. Every example in a help text runs as it stands.

use clap::{Args, Parser, Subcommand, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

/// Claims for infrastructure: see what applications would get, and why
#[derive(Debug, Parser)]
#[command(
    name = "conductor",
    version,
    arg_required_else_help = true,
    after_help = "Examples:
  conductor sim plan examples/plan/teams.yaml          what would happen, without a cluster
  conductor crds | kubectl apply -f -                  install the kinds
  conductor run                                        bind claims on the cluster of your kubeconfig
  conductor explain claim team-a/orders                why a claim waits, and what would help"
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
    /// Bind claims on a cluster, until interrupted
    #[command(after_help = "Examples:
  conductor crds | kubectl apply -f -                  once, before the first run
  kubectl create namespace conductor-system
  conductor run                                        the cluster of KUBECONFIG, of ~/.kube/config, or of the pod
  conductor run --context staging --no-leader-election
  conductor run --adapters /etc/conductor/adapters     kinds of implementation that Conductor does not know yet
  RUST_LOG=debug conductor run --log-format json

Several may run: one leads, the others stand by with everything seen. Health is on /healthz and /readyz of
--listen, figures on /metrics. On SIGINT or SIGTERM it ends what is under way and gives its lease back.

Exit codes: 0 stopped when asked to; 1 lost the lease or cannot go on, start it again; 2 usage, or no cluster.")]
    Run(RunArguments),
    /// Change the login of a claim's database now, instead of when its time comes
    #[command(
        arg_required_else_help = true,
        after_help = "Examples:
  conductor rotate team-a/orders                       a new login; the one before stays valid for a while
  conductor rotate team-a/orders --hard                after a leak: every session and older password ends

Exit codes: 0 asked for; 2 usage, no such database in use, or the cluster cannot be asked."
    )]
    Rotate(RotateArguments),
    /// Have a database back that is in quarantine since its claim was deleted
    #[command(
        arg_required_else_help = true,
        after_help = "Examples:
  conductor undelete team-a/orders                     it is kept, with its data
  kubectl apply -f claim.yaml                          the same claim again: it gets its database back

Exit codes: 0 asked for; 2 usage, nothing in quarantine, or the cluster cannot be asked."
    )]
    Undelete(UndeleteArguments),
    /// List claims, resources, classes or quotas of a cluster
    #[command(after_help = "Examples:
  conductor get claims -A                              every claim, and why it waits
  conductor get resources                              what there is, and who has it
  conductor get quotas -n team-a -o json | jq '.items[].status.used'

Exit codes: 0 listed, be it nothing; 2 usage, or the cluster cannot be asked.")]
    Get(GetArguments),
    /// Explain on a cluster why a claim waits, in the words of `sim explain`
    #[command(arg_required_else_help = true)]
    Explain {
        /// What is explained
        #[command(subcommand)]
        what: ExplainWhat,
    },
    /// Turn the configuration file of a fleet of servers into DatabaseServers
    #[command(
        arg_required_else_help = true,
        after_help = "Examples:
  conductor servers config.yaml | kubectl apply -f -
  kubectl get configmap db-controller-config -o yaml | conductor servers -

Each instance becomes a server that offers itself under the label instance=NAME. Both `host: a` and `host=a`
are read. Exit codes: 0 printed; 2 usage, or a value that cannot be read, told with its place."
    )]
    Servers(ServersArguments),
    /// Print the CustomResourceDefinitions
    #[command(after_help = "Examples:
  conductor crds | kubectl apply -f -
  conductor crds -o json | jq -r '.items[].metadata.name'")]
    Crds(CrdsArguments),
}

/// Which cluster.
#[derive(Args, Debug)]
pub struct ClusterArguments {
    /// Kubeconfig of the cluster; else KUBECONFIG, else ~/.kube/config, else the pod's own account
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Where resources and classes live
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
}

/// Arguments of `run`.
#[derive(Args, Debug)]
pub struct RunArguments {
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Where /healthz, /readyz and /metrics are served
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Name of the Lease by which the leader is elected, in the system namespace
    #[arg(long, value_name = "NAME", default_value = "conductor")]
    pub lease_name: String,
    /// Lead at once; only where no other controller runs on this cluster
    #[arg(long)]
    pub no_leader_election: bool,
    /// Most calls a second to the API, in the long run
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub writes_per_second: u32,
    /// Leave databases on servers to another controller
    #[arg(long)]
    pub no_databases: bool,
    /// Run LocalServers on this machine, with their data in this folder
    #[arg(long, value_name = "DIR")]
    pub local_servers: Option<PathBuf>,
    /// Folder with adapters (YAML, one a file) for more kinds of implementation, or in place of those that come along
    #[arg(long, value_name = "DIR")]
    pub adapters: Option<PathBuf>,
    /// How log lines are written; RUST_LOG chooses which
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people
    Text,
    /// One JSON object a line
    Json,
}

/// Arguments of `rotate`.
#[derive(Args, Debug)]
pub struct RotateArguments {
    /// The claim
    #[arg(value_name = "NS/NAME")]
    pub claim: String,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Namespace of a claim that is given by its name only; the kubeconfig's where it is not given
    #[arg(long, short, value_name = "NS")]
    pub namespace: Option<String>,
    /// End every session and every older password too
    #[arg(long)]
    pub hard: bool,
}

/// Arguments of `undelete`.
#[derive(Args, Debug)]
pub struct UndeleteArguments {
    /// The claim that it was made for
    #[arg(value_name = "NS/NAME")]
    pub claim: String,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Namespace of a claim that is given by its name only; the kubeconfig's where it is not given
    #[arg(long, short, value_name = "NS")]
    pub namespace: Option<String>,
}

/// Arguments of `get`.
#[derive(Args, Debug)]
pub struct GetArguments {
    /// What is listed
    #[arg(value_enum)]
    pub what: Listed,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Namespace of claims and quotas; the kubeconfig's where it is not given
    #[arg(long, short, value_name = "NS")]
    pub namespace: Option<String>,
    /// All namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// A table for people, or JSON for scripts
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// What applications ask for
    Claims,
    /// What there is
    Resources,
    /// What can be made
    Classes,
    /// What may be used
    Quotas,
}

/// What can be explained.
#[derive(Debug, Subcommand)]
pub enum ExplainWhat {
    /// Explain one claim
    #[command(after_help = "Examples:
  conductor explain claim team-a/orders
  conductor explain claim orders -n team-a -o json | jq '.claims[0].nearest'

Exit codes: 0 explained; 2 usage, an unknown claim, or the cluster cannot be asked.")]
    Claim(ExplainClaimArguments),
}

/// Arguments of `explain claim`.
#[derive(Args, Debug)]
pub struct ExplainClaimArguments {
    /// The claim
    #[arg(value_name = "NS/NAME")]
    pub claim: String,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Namespace of a claim that is given by its name only; the kubeconfig's where it is not given
    #[arg(long, short, value_name = "NS")]
    pub namespace: Option<String>,
    /// A table for people, or JSON for scripts
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    pub output: Format,
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

/// Arguments of `servers`.
#[derive(Args, Debug)]
pub struct ServersArguments {
    /// The configuration, or a ConfigMap with it under `config.yaml`; `-` for standard input
    #[arg(value_name = "FILE")]
    pub config: PathBuf,
    /// Where servers live
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
    /// YAML documents, or one JSON list
    #[arg(long, short, value_enum, default_value_t = CrdFormat::Yaml)]
    pub output: CrdFormat,
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
