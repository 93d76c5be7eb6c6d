//! Arguments of the commands that manage existing databases: their logins, their deletion, their import, and the
//! effect of an edited class on them.

use super::{ClusterArguments, Format};
use clap::{Args, Subcommand};
use std::path::PathBuf;

/// Arguments of every command about one object.
#[derive(Args, Debug)]
pub struct ObjectArguments {
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Search an object without NS in this namespace [default: the kubeconfig's]
    #[arg(long, short, value_name = "NS")]
    pub namespace: Option<String>,
    /// Choose text for people or JSON for scripts
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}

#[derive(Args, Debug)]
pub struct RotateArguments {
    #[command(subcommand)]
    pub what: Option<RotateWhat>,
    /// Claim whose login to rotate
    #[arg(value_name = "NS/NAME", required = true)]
    pub claim: Option<String>,
    #[command(flatten)]
    pub object: ObjectArguments,
    /// End every session and every older password too
    #[arg(long)]
    pub hard: bool,
}

#[derive(Subcommand, Debug)]
pub enum RotateWhat {
    /// Rotate the login of a DatabaseRole
    Role {
        /// Role whose login to rotate
        #[arg(value_name = "NS/NAME")]
        role: String,
        #[command(flatten)]
        object: ObjectArguments,
        /// End every session and every older password too
        #[arg(long)]
        hard: bool,
    },
}

#[derive(Args, Debug)]
pub struct UndeleteArguments {
    /// Deleted claim whose database to restore
    #[arg(value_name = "NS/NAME")]
    pub claim: String,
    #[command(flatten)]
    pub object: ObjectArguments,
}

#[derive(Args, Debug)]
pub struct ImportArguments {
    /// Kind of the existing object
    #[arg(value_name = "GROUP/VERSION/KIND")]
    pub kind: String,
    /// Name of the existing object
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Read the object in this namespace [default: the system namespace]
    #[arg(long, short, value_name = "NS")]
    pub namespace: Option<String>,
    /// Name the new RelationalDatabase [default: as the object]
    #[arg(long = "as", value_name = "NAME")]
    pub name_as: Option<String>,
    /// Set the engine, such as mysql or postgresql
    #[arg(long, value_name = "NAME")]
    pub engine: String,
    /// Set the version; without it, no claim that requests a version fits
    #[arg(long, value_name = "VERSION")]
    pub version: Option<String>,
    /// Set a capacity, such as storage=50Gi; repeat for more
    #[arg(long, value_name = "NAME=AMOUNT", value_parser = pair)]
    pub capacity: Vec<(String, String)>,
    /// Set the class; without it, claims that name no class bind it
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    /// Set the host that applications connect to
    #[arg(long, value_name = "HOST")]
    pub host: Option<String>,
    /// Set the port [default: the engine's]
    #[arg(long, value_name = "PORT")]
    pub port: Option<u16>,
    /// Set the database that a claim gets
    #[arg(long, value_name = "NAME")]
    pub database: Option<String>,
    /// Read username and password from this Secret in the system namespace
    #[arg(long, value_name = "NAME")]
    pub secret: Option<String>,
    /// Print what would be created, and change nothing
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

#[derive(Args, Debug)]
pub struct AbandonArguments {
    /// RelationalDatabase whose deletion is stuck
    #[arg(value_name = "NAME")]
    pub name: String,
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Skip the confirmation, for scripts: repeat the name
    #[arg(long, value_name = "NAME")]
    pub yes: Option<String>,
}

#[derive(Debug, Subcommand)]
pub enum DiffWhat {
    /// Preview what an edited class would change in existing resources
    #[command(after_help = "\
Examples:
  # Before `kubectl apply -f gold.yaml`
  conductor diff class gold -f gold.yaml
  # Show edits that existing resources have not followed
  conductor diff class gold
  conductor diff class gold -f gold.yaml -o json | jq '.resources[].changes'

The command renders the objects of each resource from the claim as it was at provisioning time, and changes nothing. \
It compares an object that needs another object's outputs as it is written. With updatePolicy Follow, existing \
resources follow an applied edit; with Never, the default, only new resources use it.

Exit codes:
  0  nothing would change
  1  something would change
  2  usage error, an unknown class, or no cluster")]
    Class(DiffClassArguments),
}

#[derive(Args, Debug)]
pub struct DiffClassArguments {
    /// Class to compare
    #[arg(value_name = "NAME")]
    pub class: String,
    /// Read the edited class from this file, `-` for standard input [default: the cluster's class]
    #[arg(long, short, value_name = "FILE")]
    pub file: Option<PathBuf>,
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Choose a table for people or JSON for scripts
    #[arg(long, short, value_enum, default_value_t = Format::Table)]
    pub output: Format,
}
