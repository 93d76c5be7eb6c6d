//! Arguments of the commands that run the controllers: `run` and `up`.

use super::ClusterArguments;
use clap::{Args, ValueEnum};
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct RunArguments {
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Serve /healthz, /readyz and /metrics on this address
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8080")]
    pub listen: SocketAddr,
    /// Elect the leader by this Lease in the system namespace
    #[arg(long, value_name = "NAME", default_value = "conductor")]
    pub lease_name: String,
    /// Lead at once; safe only if no other controller runs on this cluster
    #[arg(long)]
    pub no_leader_election: bool,
    /// Limit API calls per second, averaged over time
    #[arg(long, value_name = "N", default_value_t = 2_000, value_parser = clap::value_parser!(u32).range(1..))]
    pub writes_per_second: u32,
    /// Resync every published Secret within this time, and repair it
    #[arg(long, value_name = "SECONDS", default_value_t = 600, value_parser = clap::value_parser!(u64).range(1..))]
    pub recheck: u64,
    /// Set claims Lost only if at most N of their resources are missing at once
    ///
    /// With more, the controller reports them and leaves the claims unchanged.
    #[arg(long, value_name = "N", default_value_t = 2)]
    pub lost_at_once_max: usize,
    /// Allow classes to create these kinds only: Kind.group, or *.group
    ///
    /// Without it, classes may create every kind that Conductor has permissions for.
    #[arg(long, value_name = "KIND.GROUP", value_delimiter = ',')]
    pub allow_kinds: Option<Vec<String>>,
    /// Leave databases on servers to another controller
    #[arg(long)]
    pub no_databases: bool,
    /// Run LocalServers on this machine, with their data in this folder
    #[arg(long, value_name = "DIR")]
    pub local_servers: Option<PathBuf>,
    /// Apply a fleet configuration, and follow its changes
    ///
    /// A file such as a mounted config.yaml, or configmap/NAME in the system namespace.
    #[arg(long, value_name = "FILE|configmap/NAME", conflicts_with = "no_databases")]
    pub database_config: Option<String>,
    /// Read adapters for more kinds from this folder (YAML, one per file)
    ///
    /// An adapter replaces a built-in one of the same kind.
    #[arg(long, value_name = "DIR")]
    pub adapters: Option<PathBuf>,
    /// Choose the format of log lines; RUST_LOG selects the level, else info
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

#[derive(Args, Debug)]
pub struct UpArguments {
    /// Serve the API on this address; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub listen: SocketAddr,
    /// Allow other machines to connect; the token permits everything
    #[arg(long)]
    pub listen_anywhere: bool,
    /// Serve /healthz, /readyz and /metrics here; port 0 picks a free one
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:0")]
    pub web: SocketAddr,
    /// Keep everything in this folder [default: in memory]
    #[arg(long, value_name = "DIR")]
    pub data: Option<PathBuf>,
    /// Write the kubeconfig here [default: the data folder, or one of its own]
    #[arg(long, value_name = "FILE")]
    pub write_kubeconfig: Option<PathBuf>,
    /// Apply manifests at every start: files, directories or `-`
    #[arg(long, short, value_name = "PATH")]
    pub filename: Vec<PathBuf>,
    /// Apply a fleet configuration, and follow its changes
    ///
    /// A file such as a mounted config.yaml, or configmap/NAME in the system namespace.
    #[arg(long, value_name = "FILE|configmap/NAME")]
    pub database_config: Option<String>,
    /// Provide no stand-ins: classes wait for an operator of yours
    #[arg(long)]
    pub no_stand_ins: bool,
    /// Read resources and classes in this namespace
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
    /// Choose the format of log lines; RUST_LOG selects the level, else error
    #[arg(long, value_enum, default_value_t = LogFormat::Text)]
    pub log_format: LogFormat,
}

/// How log lines are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// Text for people
    Text,
    /// One JSON object per line
    Json,
}
