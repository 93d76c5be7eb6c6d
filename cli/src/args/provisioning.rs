//! Arguments of the commands by which administrators look after what classes make.

use super::{ClusterArguments, Format};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of `import`.
#[derive(Args, Debug)]
pub struct ImportArguments {
    /// The kind of what exists, as group/version/Kind
    #[arg(value_name = "GROUP/VERSION/KIND")]
    pub kind: String,
    /// The name of what exists
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Where it is; the system namespace where it is not given
    #[arg(long, short, value_name = "NS")]
    pub namespace: Option<String>,
    /// The name of the new RelationalDatabase; the name of what exists where it is not given
    #[arg(long = "as", value_name = "NAME")]
    pub name_as: Option<String>,
    /// What it runs, such as mysql or postgresql
    #[arg(long, value_name = "NAME")]
    pub engine: String,
    /// Which version it runs; without it, it fits no claim that asks for one
    #[arg(long, value_name = "VERSION")]
    pub version: Option<String>,
    /// What it offers, such as storage=50Gi; may be given several times
    #[arg(long, value_name = "NAME=AMOUNT", value_parser = pair)]
    pub capacity: Vec<(String, String)>,
    /// The class that it counts under; without it, it serves claims that name none
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    /// Where it is reached
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// The port; the engine's own where it is not given
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// The database in it that a claim gets
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// A Secret in the system namespace with the keys username and password
    #[arg(long, value_name = "NAME")]
    pub secret: Option<String>,
    /// Say what would be done, and do nothing
    #[arg(long)]
    pub dry_run: bool,
}

fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((name, amount)) if !name.is_empty() && !amount.is_empty() => {
            Ok((name.to_owned(), amount.to_owned()))
        }
        _ => Err("write it as storage=50Gi".to_owned()),
    }
}

/// Arguments of `abandon`.
#[derive(Args, Debug)]
pub struct AbandonArguments {
    /// The RelationalDatabase that is being deleted and does not go
    #[arg(value_name = "NAME")]
    pub name: String,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Ask nothing; for scripts. The name is given once more
    #[arg(long, value_name = "NAME")]
    pub yes: Option<String>,
}

/// What can be compared.
#[derive(Debug, Subcommand)]
pub enum DiffWhat {
    /// Show what an edit of a class would change in everything that was made from it
    #[command(after_help = "Examples:
  conductor diff class gold -f gold.yaml               before `kubectl apply -f gold.yaml`
  conductor diff class gold                            what has been edited, and not followed
  conductor diff class gold -f gold.yaml -o json | jq '.resources[].changes'

Objects are rendered for each resource with what its claim said when it was made. One that needs what another
tells of itself is compared as it is written. Nothing is changed. With updatePolicy Follow an edit reaches
existing resources once it is applied; with Never, which is the default, only new ones.

Exit codes: 0 nothing would change; 1 something would; 2 usage, an unknown class, or the cluster cannot be asked.")]
    Class(DiffClassArguments),
}

/// Arguments of `diff class`.
#[derive(Args, Debug)]
pub struct DiffClassArguments {
    /// The class
    #[arg(value_name = "NAME")]
    pub class: String,
    /// The edited class: YAML or JSON, `-` for standard input; without it, the class as the cluster has it
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// A table for people, or JSON for scripts
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}
