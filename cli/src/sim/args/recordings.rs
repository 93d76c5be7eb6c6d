//! Arguments of the commands that write or read recordings: `record`, `inspect`, `audit`, `import`, `export`, `replay`.

use super::units::{bytes, duration};
use super::{Input, Output, Page};
use crate::args::{ClusterArguments, CrdFormat};
use clap::Args;
use std::path::PathBuf;
use std::time::Duration;

/// How recordings are made safe to share.
#[derive(Args, Debug)]
pub struct Redact {
    /// Replace names by pseudonyms, computed with the key in this file
    #[arg(long, value_name = "FILE")]
    pub pseudonym_key: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct RecordArguments {
    #[command(flatten)]
    pub cluster: ClusterArguments,
    /// Write the recording to this file
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// Stop after a time such as 90s, 10m or 24h [default: when interrupted]
    #[arg(long = "for", value_name = "TIME", value_parser = duration)]
    pub duration: Option<Duration>,
    /// Continue in another file at a size such as 256MiB
    #[arg(long, value_name = "SIZE", value_parser = bytes)]
    pub rotate: Option<u64>,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub redact: Redact,
}

#[derive(Args, Debug)]
pub struct InspectArguments {
    /// Recording to inspect
    #[arg(value_name = "FILE")]
    pub recording: PathBuf,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct AuditArguments {
    /// Recording to search
    #[arg(value_name = "FILE")]
    pub recording: PathBuf,
    /// Search for these texts too, one per line
    #[arg(long, value_name = "FILE")]
    pub canaries: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct ImportArguments {
    #[command(flatten)]
    pub input: Input,
    /// Write the recording to this file
    #[arg(long, short, value_name = "FILE")]
    pub out: PathBuf,
    /// Overwrite an existing file
    #[arg(long)]
    pub force: bool,
    #[command(flatten)]
    pub redact: Redact,
}

#[derive(Args, Debug)]
pub struct ExportArguments {
    /// Recording to print
    #[arg(value_name = "FILE")]
    pub recording: PathBuf,
    /// Print the state after a time such as 90s [default: at the end]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub at: Option<Duration>,
    /// Choose YAML documents or one JSON list
    #[arg(long, short, value_enum, default_value_t = CrdFormat::Yaml)]
    pub output: CrdFormat,
}

#[derive(Args, Debug)]
pub struct ReplayArguments {
    /// Recording to replay
    #[arg(value_name = "FILE")]
    pub recording: PathBuf,
    /// Exit with 0 only if every decision agrees
    #[arg(long)]
    pub verify: bool,
    /// Stop after a time such as 90s or 10m
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub until: Option<Duration>,
    /// Continue from the replay's own decisions
    #[arg(long, conflicts_with = "verify")]
    pub closed: bool,
    /// Apply manifests from the beginning: other profiles, classes, quotas
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Step through it in the terminal
    #[arg(long)]
    pub tui: bool,
    /// Draw the middle of that view as SVG, for documents
    #[arg(long, value_name = "FILE", hide = true)]
    pub tui_picture: Option<PathBuf>,
    /// Put resources and classes of -f into this namespace
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub page: Page,
}
