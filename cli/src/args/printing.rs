//! Arguments of the commands that print objects or manifests, and change nothing.

use super::{ClusterArguments, CrdFormat, Format, ObjectArguments};
use clap::{Args, Subcommand, ValueEnum};
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct GetArguments {
    /// Kind of object to list
    #[arg(value_enum)]
    pub what: Listed,
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// List claims and quotas of this namespace [default: the kubeconfig's]
    #[arg(long, short, value_name = "NS")]
    pub namespace: Option<String>,
    /// List all namespaces
    #[arg(long, short = 'A', conflicts_with = "namespace")]
    pub all_namespaces: bool,
    /// Choose a table for people or JSON for scripts
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Claims of applications
    Claims,
    /// Resources that claims can bind
    Resources,
    /// Classes that provision resources
    Classes,
    /// Quotas, with what is used
    Quotas,
}

#[derive(Debug, Subcommand)]
pub enum ExplainWhat {
    /// Explain one claim, as `sim explain` does
    #[command(after_help = "\
Examples:
  conductor explain claim team-a/orders
  conductor explain claim orders -n team-a -o json | jq '.claims[0].nearest'

Exit codes:
  0  explained
  2  usage error, an unknown claim, or no cluster")]
    Claim(ExplainClaimArguments),
}

#[derive(Args, Debug)]
pub struct ExplainClaimArguments {
    /// Claim to explain
    #[arg(value_name = "NS/NAME")]
    pub claim: String,
    #[command(flatten)]
    pub object: ObjectArguments,
}

#[derive(Args, Debug)]
pub struct GrantArguments {
    /// Namespaces in which Conductor may publish connections
    #[arg(value_name = "NAMESPACE", required = true)]
    pub namespaces: Vec<String>,
    /// Let this group of application owners read resources
    #[arg(long, value_name = "GROUP")]
    pub group: Vec<String>,
    /// Let this application owner read resources
    #[arg(long, value_name = "USER")]
    pub user: Vec<String>,
    /// Use this namespace of the controller's account, resources and classes
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
}

#[derive(Args, Debug)]
pub struct ServersArguments {
    /// Configuration, or a ConfigMap with the key `config.yaml`; `-` for standard input
    #[arg(value_name = "FILE")]
    pub config: PathBuf,
    /// Create servers in this namespace
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
    /// Choose YAML documents or one JSON list
    #[arg(long, short, value_enum, default_value_t = CrdFormat::Yaml)]
    pub output: CrdFormat,
}

#[derive(Args, Debug)]
pub struct CrdsArguments {
    /// Choose YAML documents or one JSON list
    #[arg(long, short, value_enum, default_value_t = CrdFormat::Yaml)]
    pub output: CrdFormat,
}
