//! The arguments, and the help that teaches them. Every example in a help text runs as it stands.

mod provisioning;

pub use provisioning::{AbandonArguments, DiffClassArguments, DiffWhat, ImportArguments};

use crate::sim::args::Simulate;
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
  conductor up                                         a Kubernetes API of its own, with everything on it
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
    /// Start a Kubernetes API of our own with the controllers on it, until interrupted
    #[command(after_help = "Examples:
  conductor up                                         in memory, on a free port; prints the kubeconfig
  conductor up -f examples/existing-database.yaml      with something to bind to
  conductor up --data ~/conductor --listen 127.0.0.1:6443
  conductor up --write-kubeconfig kubeconfig & kubectl --kubeconfig kubeconfig get rdbc -A

kubectl and every client library work on it; Pods are kept and not run. Kinds that classes make and that nobody
defines get a stand-in, which says that their objects are ready and makes no database: see --no-stand-ins.
Claims of the classes local-postgresql and local-mariadb get databases that work, on real servers beside this process,
where PostgreSQL or MariaDB is installed.
With --data, what was answered is there again after the next start, however the last one ended.

Exit codes: 0 stopped when asked to; 1 cannot go on; 2 usage, or a manifest that cannot be applied.")]
    Up(UpArguments),
    /// Show everything in a minute: start `up`, let three teams claim, and check that all is as shown
    #[command(after_help = "Examples:
  conductor demo
  CI=true conductor demo                               plain lines, as without a terminal

Exit codes: 0 everything was as shown; 1 something was not, and which.")]
    Demo,
    /// Run the scheduler offline, over manifests or a recording
    #[command(
        arg_required_else_help = true,
        after_help = "Examples:
  conductor sim plan examples/plan/teams.yaml          what every claim would get
  conductor sim explain examples/plan/teams.yaml       why claims wait, and what would help
  conductor sim whatif examples/plan/teams.yaml --lose resource/shared-mysql
  conductor sim plan manifests/ -o json | jq .summary

Exit codes of every question: 0 answered, nothing changes, passed; 1 something changes, failed;
2 usage or input error; 3 inconclusive; 4 the same input gave two answers."
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
  conductor run --allow-kinds Cluster.postgresql.cnpg.io,'*.rds.services.k8s.aws'

Several may run: one leads, the others stand by with everything seen. Health is on /healthz and /readyz of
--listen, figures on /metrics. On SIGINT or SIGTERM it ends what is under way and gives its lease back.

Exit codes: 0 stopped when asked to; 1 lost the lease or cannot go on, start it again; 2 usage, or no cluster.")]
    Run(RunArguments),
    /// Change the login of a claim's database, or of a DatabaseRole, now instead of when its time comes
    #[command(
        arg_required_else_help = true,
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        disable_help_subcommand = true,
        after_help = "Examples:
  conductor rotate team-a/orders                       a new login; the one before stays valid for a while
  conductor rotate team-a/orders --hard                after a leak: every session and older password ends
  conductor rotate role analytics/reports              the same for the login of a DatabaseRole
  conductor rotate role analytics/reports --hard -o json

The user that is not in use gets the new password, and applications find it in their Secret. The request is a note on
the record or the role; where the server is away it says so, and the login changes when the server is back.
status.rotationDone tells when it is done: kubectl get ldb -n conductor-system, kubectl get dbrole -n analytics.

Exit codes: 0 requested, and with --hard every older login is dead and its application has another; 2 usage, no such login \
                  in use, the cluster cannot be reached, or a hard change does not come to its end within 60 s: the error says \
                  whether the old login is dead."
    )]
    Rotate(RotateArguments),
    /// Have the database of a claim back that was deleted, until its quarantine is over
    #[command(
        arg_required_else_help = true,
        after_help = "Examples:
  conductor undelete team-a/orders                     it is kept, with its data
  kubectl apply -f claim.yaml                          the same claim again: it gets its database back

The request is a note on the record of the database (kubectl get ldb -n conductor-system) and counts from the moment that
it is written, also while the server is away: nothing is dropped then, and it is carried out when the server is back.

Exit codes: 0 asked for; 2 usage, nothing to have back, or the cluster cannot be asked."
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
    /// Make something that exists a resource that claims can have
    #[command(
        arg_required_else_help = true,
        after_help = "Examples:
  conductor import database.aws.conductor.io/v1alpha1/RDSInstance orders --engine mysql --version 8.0.36 \\
    --capacity storage=50Gi --host orders.example.com --database orders --secret orders-login --dry-run
  conductor import postgresql.cnpg.io/v1/Cluster ledger -n databases --as ledger-db --engine postgresql \\
    --version 16.4 --host ledger-rw.databases.svc --database app --secret ledger-app

What is imported is recorded and never owned: Conductor does not change or delete it, whatever becomes of the
resource. Without an address and credentials nothing is imported, because no application could use it. The Secret gets
the label that lets it be published to the claim that is bound. An import that was interrupted may be repeated.

Exit codes: 0 imported, or with --dry-run, could be; 2 usage, refused, or the cluster cannot be asked."
    )]
    Import(ImportArguments),
    /// Let go of a resource whose deletion is stuck; what implements it stays
    #[command(
        arg_required_else_help = true,
        after_help = "Examples:
  conductor get resources                              which are Deleting, or Failed
  kubectl describe rdb orders -n conductor-system      what it waits for
  conductor abandon orders                             asks before it does it
  conductor abandon orders --yes orders                in a script

Only a resource that is being deleted is let go of. Its policy becomes Retain and Conductor's finalizer goes, so that
it ends; nothing that implements it is deleted, and all of it is named, because from then on nobody looks after it.

Exit codes: 0 let go of; 2 usage, refused, not confirmed, or the cluster cannot be asked."
    )]
    Abandon(AbandonArguments),
    /// Compare what is with what would be
    #[command(arg_required_else_help = true)]
    Diff {
        /// What is compared
        #[command(subcommand)]
        what: DiffWhat,
    },
    /// Print the rights that Conductor needs in namespaces of applications, for `kubectl apply`
    #[command(
        arg_required_else_help = true,
        after_help = "Examples:
  conductor grant shop blog | kubectl apply -f -       connections are published in both
  conductor grant shop --group shop-team | kubectl apply -f -
                                                       and that team may read resources, for `conductor explain`
  conductor grant shop | kubectl delete -f -           takes the right away

Each namespace gets a RoleBinding to the ClusterRole conductor-namespace-publisher of deploy/publishing-roles.yaml.
Nothing is sent to a cluster. Exit codes: 0 printed; 2 usage."
    )]
    Grant(GrantArguments),
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
    /// Within how many seconds each published Secret is looked at once, to put right what somebody else changed
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    pub recheck: u64,
    /// Declare claims Lost only where at most this many of their resources are missing at once; with more, report them
    /// and leave the claims as they are
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub lost_at_once_max: usize,
    /// The only kinds of which classes may make objects, as Kind.group, or *.group for a whole group; without it,
    /// every kind that Conductor has been given rights to
    #[arg(long, value_name = "KIND.GROUP", value_delimiter = ',')]
    pub allow_kinds: Option<Vec<String>>,
    /// Leave databases on servers to another controller
    #[arg(long)]
    pub no_databases: bool,
    /// Run LocalServers on this machine, with their data in this folder
    #[arg(long, value_name = "DIR")]
    pub local_servers: Option<PathBuf>,
    /// Configuration of a fleet of database servers, kept in force as it changes: a file such as a mounted
    /// config.yaml, or configmap/NAME in the system namespace
    #[arg(long, value_name = "FILE|configmap/NAME", conflicts_with = "no_databases")]
    pub database_config: Option<String>,
    /// Folder with adapters (YAML, one a file) for more kinds of implementation, or in place of those that come along
    #[arg(long, value_name = "DIR")]
    pub adapters: Option<PathBuf>,
    /// How log lines are written; RUST_LOG chooses which
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// Arguments of `up`.
#[derive(Args, Debug)]
pub struct UpArguments {
    /// Where the API is served; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Serve others than this machine too; whoever has the token may do everything
    #[arg(long)]
    pub listen_anywhere: bool,
    /// Where /healthz, /readyz and /metrics are served; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub web: SocketAddr,
    /// Folder that keeps everything; without it, everything is in memory
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Where the kubeconfig is written; else into the data folder, else into a folder of its own
    #[arg(long, value_name = "FILE")]
    pub write_kubeconfig: Option<PathBuf>,
    /// Manifests to apply: files, directories or `-`; again at every start
    #[arg(long, short, value_name = "PATH")]
    pub filename: Vec<PathBuf>,
    /// Configuration of a fleet of database servers, kept in force as it changes: a file such as a mounted
    /// config.yaml, or configmap/NAME in the system namespace
    #[arg(long, value_name = "FILE|configmap/NAME")]
    pub database_config: Option<String>,
    /// Define and operate nothing that nobody serves: classes wait for an operator of yours
    #[arg(long)]
    pub no_stand_ins: bool,
    /// Where resources and classes live
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
    /// How log lines are written; RUST_LOG chooses which, errors only where it is not set
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

/// What every request by a note takes.
#[derive(Args, Debug)]
pub struct NoteArguments {
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Namespace of one that is given by its name only; the kubeconfig's where it is not given
    #[arg(long, short, value_name = "NS")]
    pub namespace: Option<String>,
    /// A line for people, or JSON for scripts
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

/// Arguments of `rotate`.
#[derive(Args, Debug)]
pub struct RotateArguments {
    /// What else than a claim
    #[command(subcommand)]
    pub what: Option<RotateWhat>,
    /// The claim
    #[arg(value_name = "NS/NAME", required = true)]
    pub claim: Option<String>,
    /// Where, and how it is told
    #[command(flatten)]
    pub note: NoteArguments,
    /// End every session and every older password too
    #[arg(long)]
    pub hard: bool,
}

/// What else than a claim has a login.
#[derive(Subcommand, Debug)]
pub enum RotateWhat {
    /// The login of a DatabaseRole
    Role {
        /// The role
        #[arg(value_name = "NS/NAME")]
        role: String,
        /// Where, and how it is told
        #[command(flatten)]
        note: NoteArguments,
        /// End every session and every older password too
        #[arg(long)]
        hard: bool,
    },
}

/// Arguments of `undelete`.
#[derive(Args, Debug)]
pub struct UndeleteArguments {
    /// The claim that it was made for
    #[arg(value_name = "NS/NAME")]
    pub claim: String,
    /// Where, and how it is told
    #[command(flatten)]
    pub note: NoteArguments,
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

/// Arguments of `grant`.
#[derive(Args, Debug)]
pub struct GrantArguments {
    /// The namespaces in which claims get their connection
    #[arg(value_name = "NAMESPACE", required = true)]
    pub namespaces: Vec<String>,
    /// Groups of application owners who may read resources
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Application owners who may read resources
    #[arg(long, value_name = "USER")]
    pub user: Vec<String>,
    /// Where the controller's account, resources and classes live
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
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
