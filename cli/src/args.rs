//! The arguments, and the help that teaches them. Every example in a help text runs as it stands.

mod controllers;
mod printing;
mod provisioning;

pub use controllers::{LogFormat, RunArguments, UpArguments};
pub use printing::{
    CrdsArguments, ExplainClaimArguments, ExplainWhat, GetArguments, GrantArguments, Listed, ServersArguments,
};
pub use provisioning::{
    AbandonArguments, DiffClassArguments, DiffWhat, ImportArguments, ObjectArguments, RotateArguments,
    RotateWhat, UndeleteArguments,
};

use crate::sim::args::Simulate;
use clap::{Args, Parser, Subcommand, ValueEnum};
use std::path::PathBuf;

/// Bind applications' claims to databases, and simulate what would happen
#[derive(Debug, Parser)]
#[command(
    name = "conductor",
    version,
    arg_required_else_help = true,
    after_help = "\
Examples:
  # Start a Kubernetes API of its own, with everything on it
  conductor up
  # Show what would happen, without a cluster
  conductor sim plan examples/plan/teams.yaml
  # Install the CustomResourceDefinitions
  conductor crds | kubectl apply -f -
  # Bind claims on the cluster of your kubeconfig
  conductor run
  # Explain why a claim waits, and what would help
  conductor explain claim team-a/orders"
)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Command,
}

#[derive(Debug, Subcommand)]
pub enum Command {
    /// Start an embedded Kubernetes API with all controllers
    #[command(after_help = "\
Examples:
  # Serve from memory on a free port, and print the path of the kubeconfig
  conductor up
  # Apply manifests at every start
  conductor up -f examples/existing-database.yaml
  # Keep everything in a folder
  conductor up --data ~/conductor --listen 127.0.0.1:6443
  # Use it with kubectl
  conductor up --write-kubeconfig kubeconfig &
  kubectl --kubeconfig kubeconfig get rdbc -A

`up` runs until it is interrupted. kubectl and every client library work on it; it stores Pods and does not run them. \
A kind that a class creates and that has no definition gets a stand-in, which reports its objects as ready and creates \
no database: see --no-stand-ins. Claims of the classes local-postgresql and local-mariadb get working databases, on \
real servers that run beside this process, where PostgreSQL or MariaDB is installed. With --data, every acknowledged \
write survives the end of this process, however it ends.

Exit codes:
  0  stopped by a signal
  1  cannot continue
  2  usage error, or a manifest that cannot be applied")]
    Up(UpArguments),
    /// Run a demo that checks itself: start `up`, and let three teams claim
    #[command(after_help = "\
Examples:
  conductor demo
  # Print plain lines, as without a terminal
  CI=true conductor demo

Exit codes:
  0  every step had the result that the demo shows
  1  a step had another result; the error names it")]
    Demo,
    /// Simulate the scheduler offline, on manifests or a recording
    #[command(
        arg_required_else_help = true,
        after_help = "\
Examples:
  # Show what every claim would get
  conductor sim plan examples/plan/teams.yaml
  # Explain why claims wait, and what would help
  conductor sim explain examples/plan/teams.yaml
  # Show what the loss of a resource would change
  conductor sim whatif examples/plan/teams.yaml --lose resource/shared-mysql
  conductor sim plan manifests/ -o json | jq .summary

Exit codes of every command:
  0  done: nothing changes, or passed
  1  something changes, or failed
  2  usage or input error
  3  inconclusive
  4  the same input gave two results"
    )]
    Sim {
        #[command(subcommand)]
        command: Simulate,
    },
    /// Run the controllers on a cluster, until interrupted
    #[command(after_help = "\
Examples:
  # Prepare a cluster once, before the first run
  conductor crds | kubectl apply -f -
  kubectl create namespace conductor-system
  # Run on the cluster of KUBECONFIG, of ~/.kube/config, or of the pod
  conductor run
  conductor run --context staging --no-leader-election
  # Support more kinds of implementation
  conductor run --adapters /etc/conductor/adapters
  RUST_LOG=debug conductor run --log-format json
  conductor run --allow-kinds Cluster.postgresql.cnpg.io,'*.rds.services.k8s.aws'

Several instances may run: one leads, the others keep their caches warm and take over when it ends. --listen serves \
health on /healthz and /readyz, and metrics on /metrics. On SIGINT or SIGTERM it completes the writes in flight and \
releases its lease.

Exit codes:
  0  stopped by a signal
  1  lost the lease, or cannot continue: start it again
  2  usage error, or no cluster")]
    Run(RunArguments),
    /// Rotate the login of a claim's database, or of a DatabaseRole
    #[command(
        arg_required_else_help = true,
        args_conflicts_with_subcommands = true,
        subcommand_negates_reqs = true,
        disable_help_subcommand = true,
        after_help = "\
Examples:
  # Issue a new login; the one before stays valid for a while
  conductor rotate team-a/orders
  # After a leak: end every session and every older password
  conductor rotate team-a/orders --hard
  # Rotate the login of a DatabaseRole
  conductor rotate role analytics/reports
  conductor rotate role analytics/reports --hard -o json

Rotation happens now instead of at its scheduled time: the user that is not in use gets a new password, and \
applications find it in their Secret. The request is an annotation on the LogicalDatabase or the DatabaseRole. While \
the server is down the command says so, and the rotation follows when the server is back. status.rotationDone shows \
when it is complete: kubectl get ldb -n conductor-system, kubectl get dbrole -n analytics.

Exit codes:
  0  requested; with --hard, every older login is dead and its application has
     another
  2  usage error, no such login in use, no cluster, or a hard rotation that does
     not complete within 60 s: the error says whether the old login is dead"
    )]
    Rotate(RotateArguments),
    /// Restore a deleted claim's database during its quarantine
    #[command(
        arg_required_else_help = true,
        after_help = "\
Examples:
  # Keep the database, with its data
  conductor undelete team-a/orders
  # Create the same claim again: it gets its database
  kubectl apply -f claim.yaml

The request is an annotation on the LogicalDatabase (kubectl get ldb -n conductor-system). It counts from the moment \
it is written, also while the server is down: nothing is dropped, and the restore follows when the server is back.

Exit codes:
  0  requested
  2  usage error, nothing to restore, or no cluster"
    )]
    Undelete(UndeleteArguments),
    /// List claims, resources, classes or quotas of a cluster
    #[command(after_help = "\
Examples:
  # List every claim, and why it waits
  conductor get claims -A
  # List resources, and which claims hold them
  conductor get resources
  conductor get quotas -n team-a -o json | jq '.items[].status.used'

Exit codes:
  0  listed, be it nothing
  2  usage error, or no cluster")]
    Get(GetArguments),
    /// Explain why a claim on a cluster waits, and what would help
    #[command(arg_required_else_help = true)]
    Explain {
        #[command(subcommand)]
        what: ExplainWhat,
    },
    /// Import an existing database as a resource that claims can bind
    #[command(
        arg_required_else_help = true,
        after_help = "\
Examples:
  conductor import database.aws.conductor.io/v1alpha1/RDSInstance orders \\
    --engine mysql --version 8.0.36 --capacity storage=50Gi \\
    --host orders.example.com --database orders --secret orders-login --dry-run
  conductor import postgresql.cnpg.io/v1/Cluster ledger -n databases \\
    --as ledger-db --engine postgresql --version 16.4 \\
    --host ledger-rw.databases.svc --database app --secret ledger-app

Conductor records an imported object and never owns it: it does not change or delete it, whatever becomes of the \
resource. It refuses an import without an address and credentials, because no application could use it. It labels the \
Secret, which allows publishing it to the claim that binds. An interrupted import can be repeated.

Exit codes:
  0  imported; with --dry-run, can be imported
  2  usage error, refused, or no cluster"
    )]
    Import(ImportArguments),
    /// Release a resource whose deletion is stuck, and keep its objects
    #[command(
        arg_required_else_help = true,
        after_help = "\
Examples:
  # Find resources that are Deleting or Failed
  conductor get resources
  # Show what the deletion waits for
  kubectl describe rdb orders -n conductor-system
  # Release it, after a confirmation
  conductor abandon orders
  # Release it from a script
  conductor abandon orders --yes orders

Only a resource that is being deleted can be released. The command sets its policy to Retain and removes Conductor's \
finalizer, so that the deletion completes. It deletes no object that implements the resource, and lists all of them, \
because no controller manages them any more.

Exit codes:
  0  released
  2  usage error, refused, not confirmed, or no cluster"
    )]
    Abandon(AbandonArguments),
    /// Preview what an edit would change
    #[command(arg_required_else_help = true)]
    Diff {
        #[command(subcommand)]
        what: DiffWhat,
    },
    /// Print RBAC manifests that let Conductor publish in namespaces
    #[command(
        arg_required_else_help = true,
        after_help = "\
Examples:
  # Let Conductor publish connections in two namespaces
  conductor grant shop blog | kubectl apply -f -
  # Let a team read resources too, for `conductor explain`
  conductor grant shop --group shop-team | kubectl apply -f -
  # Revoke the permission
  conductor grant shop | kubectl delete -f -

Each namespace gets a RoleBinding to the ClusterRole conductor-namespace-publisher of deploy/publishing-roles.yaml. \
The command prints manifests and sends nothing to a cluster.

Exit codes:
  0  printed
  2  usage error"
    )]
    Grant(GrantArguments),
    /// Convert a fleet configuration file into DatabaseServer manifests
    #[command(
        arg_required_else_help = true,
        after_help = "\
Examples:
  conductor servers config.yaml | kubectl apply -f -
  kubectl get configmap db-controller-config -o yaml | conductor servers -

Each instance becomes a server that offers itself under the label instance=NAME. The file may contain both `host: a` \
and `host=a`.

Exit codes:
  0  printed
  2  usage error, or an unreadable value; the error names its position"
    )]
    Servers(ServersArguments),
    /// Print the CustomResourceDefinitions
    #[command(after_help = "\
Examples:
  conductor crds | kubectl apply -f -
  conductor crds -o json | jq -r '.items[].metadata.name'

Exit codes:
  0  printed
  2  usage error")]
    Crds(CrdsArguments),
}

#[derive(Args, Debug)]
pub struct ClusterArguments {
    /// Use this kubeconfig [default: KUBECONFIG, ~/.kube/config, or the pod's account]
    #[arg(long, value_name = "FILE")]
    pub kubeconfig: Option<PathBuf>,
    /// Use this context of the kubeconfig
    #[arg(long, value_name = "NAME")]
    pub context: Option<String>,
    /// Read resources and classes in this namespace
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
}

/// How results are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// A table for people
    Table,
    /// JSON for scripts
    Json,
}

/// How manifests are printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum CrdFormat {
    /// One document per object
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
