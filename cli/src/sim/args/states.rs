//! Arguments of the commands that plan a state: `plan`, `explain`, `whatif`, `fit`, `size`, `class-impact`, `compare`.

use super::{Input, Output, Page};
use clap::Args;
use std::path::PathBuf;

#[derive(Args, Debug)]
pub struct PlanArguments {
    #[command(flatten)]
    pub input: Input,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub page: Page,
}

#[derive(Args, Debug)]
pub struct ExplainArguments {
    #[command(flatten)]
    pub input: Input,
    /// Explain one claim, waiting or not [default: every claim that waits]
    #[arg(long, value_name = "NS/NAME")]
    pub claim: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct WhatIfArguments {
    #[command(flatten)]
    pub input: Input,
    /// Apply manifests: new or changed objects
    #[arg(short = 'f', long = "file", value_name = "PATH")]
    pub files: Vec<PathBuf>,
    /// Set or remove a field: KIND/[NS/]NAME:FIELD=VALUE (see below)
    #[arg(long, value_name = "EDIT")]
    pub set: Vec<String>,
    /// Lose an object, as in an outage: KIND/[NS/]NAME
    #[arg(long, value_name = "OBJECT")]
    pub lose: Vec<String>,
    /// Delete an object, as a user would: KIND/[NS/]NAME
    #[arg(long, value_name = "OBJECT")]
    pub delete: Vec<String>,
    /// Add N claims
    #[arg(long, value_name = "N", requires = "like")]
    pub claims: Option<usize>,
    /// Copy the added claims from this one
    #[arg(long, value_name = "NS/NAME", requires = "claims")]
    pub like: Option<String>,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub page: Page,
}

#[derive(Args, Debug)]
pub struct FitArguments {
    #[command(flatten)]
    pub input: Input,
    /// Add copies of this claim
    #[arg(long, value_name = "NS/NAME")]
    pub like: String,
    /// Stop after N copies
    #[arg(long, value_name = "N", default_value_t = 1_000)]
    pub most: usize,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct SizeArguments {
    #[command(flatten)]
    pub input: Input,
    /// Add copies of this resource
    #[arg(long, value_name = "NAME", required_unless_present = "class", conflicts_with = "class")]
    pub like: Option<String>,
    /// Add copies of the first resource of this class, by name
    #[arg(long, value_name = "NAME")]
    pub class: Option<String>,
    #[command(flatten)]
    pub output: Output,
}

#[derive(Args, Debug)]
pub struct ClassImpactArguments {
    #[command(flatten)]
    pub input: Input,
    /// Read the edited class from this manifest
    #[arg(short = 'f', long = "file", value_name = "PATH", required = true)]
    pub file: PathBuf,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub page: Page,
}

#[derive(Args, Debug)]
pub struct CompareArguments {
    #[command(flatten)]
    pub input: Input,
    /// Plan the first side under this profile
    #[arg(long, value_name = "PROFILE", requires = "b")]
    pub a: Option<String>,
    /// Plan the second side under this profile
    #[arg(long, value_name = "PROFILE", requires = "a")]
    pub b: Option<String>,
    /// Compare with another state
    #[arg(long, value_name = "PATH", conflicts_with_all = ["a", "b"])]
    pub with: Option<Vec<PathBuf>>,
    #[command(flatten)]
    pub output: Output,
    #[command(flatten)]
    pub page: Page,
}
