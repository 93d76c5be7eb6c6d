//! `conductor rotate` and `conductor undelete`: annotate a claim's LogicalDatabase, or a DatabaseRole, for the leader.

use crate::args::{Format, RotateArguments, RotateWhat, UndeleteArguments};
use crate::sim::split;
use crate::{cluster, output};
use anyhow::{Context, Result};
use conductor_sql::command::{self, Note};
use std::io::Write;
use std::time::Duration;

/// How long the command waits for a hard rotation.
const HARD_WITHIN: Duration = Duration::from_secs(60);

/// `conductor rotate`. A hard rotation succeeds once the old login is dead and its application has another.
pub fn rotate(arguments: &RotateArguments) -> Result<()> {
    let RotateArguments { what, claim, object, hard } = arguments;
    let (named, object, is_hard, is_role) = match what {
        Some(RotateWhat::Role { role, object, hard }) => (role, object, *hard, true),
        None => (claim.as_ref().context("no claim: write NS/NAME")?, object, *hard, false),
    };
    let requested = cluster::block_on(async {
        let (client, namespace) = cluster::connect(&object.cluster).await?;
        let named = split(named, object.namespace.as_ref().unwrap_or(&namespace))?;
        let system = &object.cluster.system_namespace;
        let mut requested = match is_role {
            true => command::rotate_role(&client, system, named, is_hard).await?,
            false => command::rotate(&client, system, named, is_hard).await?,
        };
        if is_hard {
            command::wait_until_rotated(&client, &requested, HARD_WITHIN).await?;
            // What blocked the rotation before it completed no longer does.
            (requested.waits_for, requested.problem) = (None, None);
        }
        Ok(requested)
    })?;
    let line = match is_hard {
        true => format!("{}: the old login is dead, and its application has another", requested.name),
        false => format!("{}: rotation requested", requested.name),
    };
    say(object.output, &requested, &line)
}

/// `conductor undelete`.
pub fn undelete(arguments: &UndeleteArguments) -> Result<()> {
    let object = &arguments.object;
    let requested = cluster::block_on(async {
        let (client, namespace) = cluster::connect(&object.cluster).await?;
        let claim = split(&arguments.claim, object.namespace.as_ref().unwrap_or(&namespace))?;
        Ok(command::undelete(&client, &object.cluster.system_namespace, claim).await?)
    })?;
    say(
        object.output,
        &requested,
        &format!("{}: restore requested; create the claim again to use it", requested.name),
    )
}

/// Prints the request, and what it waits for.
fn say(format: Format, requested: &Note, line: &str) -> Result<()> {
    let mut out = output::stdout();
    match format {
        Format::Json => output::json(&mut out, requested)?,
        Format::Table => writeln!(output::sanitized(&mut out), "{line}")?,
    }
    // If the server is down, `waits_for` says it already.
    if let Some(problem) = requested.problem.as_ref().filter(|_| requested.waits_for.is_none()) {
        output::diagnostic(&format!("{} {} reports: {problem}", requested.kind, requested.name));
    }
    if let Some(why) = &requested.waits_for {
        output::diagnostic(&format!(
            "not yet: {why}. The request stays, and is carried out once the server is well"
        ));
    }
    Ok(out.flush()?)
}

#[cfg(test)]
mod tests {
    use crate::args::{Arguments, Command, RotateWhat};
    use clap::Parser;

    #[test]
    fn rotate_distinguishes_a_claim_from_a_role() {
        let read = |words: &[&str]| Arguments::try_parse_from(words).map(|read| read.command);
        let Ok(Command::Rotate(claim)) = read(&["conductor", "rotate", "shop/orders", "--hard"]) else {
            panic!("a claim can be named");
        };
        assert_eq!(
            (claim.claim.as_deref(), claim.hard, claim.what.is_none()),
            (Some("shop/orders"), true, true)
        );
        let role = ["conductor", "rotate", "role", "analytics/reports", "--hard", "-o", "json"];
        let Ok(Command::Rotate(role)) = read(&role) else { panic!("a role can be named") };
        let Some(RotateWhat::Role { role, hard, .. }) = role.what else { panic!("it is a role") };
        assert_eq!((role.as_str(), hard), ("analytics/reports", true));
        assert!(read(&["conductor", "rotate", "role"]).is_err(), "a role has a name");
    }
}
