//! `conductor rotate` and `conductor undelete`: a note on the record of a claim's database, for whoever leads.

use crate::args::{RotateArguments, UndeleteArguments};
use crate::sim::split;
use crate::{cluster, output};
use anyhow::Result;
use conductor::provider::command;
use std::io::Write;

/// `conductor rotate`.
pub fn rotate(arguments: &RotateArguments) -> Result<()> {
    let record = cluster::block_on(async {
        let (client, namespace) = cluster::connect(&arguments.cluster).await?;
        let namespace = arguments.namespace.as_ref().unwrap_or(&namespace);
        let claim = split(&arguments.claim, namespace)?;
        Ok(command::rotate(&client, &arguments.cluster.system_namespace, claim, arguments.hard).await?)
    })?;
    say(&format!("asked for another login: {record}"))
}

/// `conductor undelete`.
pub fn undelete(arguments: &UndeleteArguments) -> Result<()> {
    let record = cluster::block_on(async {
        let (client, namespace) = cluster::connect(&arguments.cluster).await?;
        let namespace = arguments.namespace.as_ref().unwrap_or(&namespace);
        let claim = split(&arguments.claim, namespace)?;
        Ok(command::undelete(&client, &arguments.cluster.system_namespace, claim).await?)
    })?;
    say(&format!("asked back: {record}; make the claim again to use it"))
}

fn say(line: &str) -> Result<()> {
    let mut out = output::stdout();
    writeln!(out, "{line}")?;
    Ok(out.flush()?)
}
