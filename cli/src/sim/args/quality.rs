//! Arguments of the commands that pass or fail: `gate`, `fuzz`, `shrink`.

use super::{Output, Page};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct GateArguments {
    /// Suite of expectations
    #[arg(value_name = "SUITE")]
    pub suite: PathBuf,
    /// Write the plan as the suite's new baseline
    #[arg(long)]
    pub bless: bool,
    /// Write the verdict as JUnit XML too
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// Write the verdict as SARIF too, with positions in the policies
    #[arg(long, value_name = "FILE")]
    pub sarif: Option<PathBuf>,
    /// Write the verdict as Markdown too, short enough for a comment
    #[arg(long, value_name = "FILE")]
    pub markdown: Option<PathBuf>,
    /// Read resources and classes in this namespace
    #[arg(long, value_name = "NS", default_value = "conductor-system")]
    pub system_namespace: String,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub page: Page,
}

#[derive(Args, Debug)]
pub struct FuzzArguments {
    /// Run N histories
    #[arg(long, value_name = "N", default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..))]
    pub seeds: u64,
    /// Start with this seed
    #[arg(long, value_name = "SEED", default_value_t = 0)]
    pub from: u64,
    /// Break the engine on purpose, to see the invariants catch it
    #[arg(long, value_name = "NAME")]
    pub mutant: Option<String>,
    /// List the ways to break the engine
    #[arg(long)]
    pub list_mutants: bool,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct ShrinkArguments {
    /// Reduce the history of this seed
    #[arg(long, value_name = "SEED")]
    pub seed: u64,
    /// Break the engine as `sim fuzz` did
    #[arg(long, value_name = "NAME")]
    pub mutant: Option<String>,
    /// Write state.yaml and history.txt to this folder too
    #[arg(long, value_name = "FOLDER")]
    pub write: Option<PathBuf>,
    #[command(flatten)]
    pub output: Output,
}
