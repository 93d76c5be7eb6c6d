//! `conductor rotate` and `conductor undelete`: a note on the record of a claim's database, or on a role, for whoever
//! leads.

use crate::args::{Format, RotateArguments, RotateWhat, UndeleteArguments};
use crate::sim::split;
use crate::{cluster, output};
use anyhow::{Context, Result};
use conductor_sql::command::{self, Note};
use std::io::Write;
use std::time::Duration;

/// How long a hard change of a login is waited for.
const HARD_WITHIN: Duration = Duration::from_secs(60);

/// `conductor rotate`. A hard change is over when the old login is dead and its application holds another; until then the
/// command has not succeeded.
pub fn rotate(arguments: &RotateArguments) -> Result<()> {
    let RotateArguments { what, claim, note, hard } = arguments;
    let (named, note, is_hard, is_role) = match what {
        Some(RotateWhat::Role { role, note, hard }) => (role, note, *hard, true),
        None => (claim.as_ref().context("which claim? Write NS/NAME")?, note, *hard, false),
    };
    let asked = cluster::block_on(async {
        let (client, namespace) = cluster::connect(&note.cluster).await?;
        let named = split(named, note.namespace.as_ref().unwrap_or(&namespace))?;
        let system = &note.cluster.system_namespace;
        let mut asked = match is_role {
            true => command::rotate_role(&client, system, named, is_hard).await?,
            false => command::rotate(&client, system, named, is_hard).await?,
        };
        if is_hard {
            command::wait_until_rotated(&client, &asked, HARD_WITHIN).await?;
            // What was in the way before it was carried out is not any more.
            (asked.waits_for, asked.problem) = (None, None);
        }
        Ok(asked)
    })?;
    let line = match is_hard {
        true => format!("the old login is dead, and its application has another: {}", asked.name),
        false => format!("asked for another login: {}", asked.name),
    };
    say(note.output, &asked, &line)
}

/// `conductor undelete`.
pub fn undelete(arguments: &UndeleteArguments) -> Result<()> {
    let note = &arguments.note;
    let asked = cluster::block_on(async {
        let (client, namespace) = cluster::connect(&note.cluster).await?;
        let claim = split(&arguments.claim, note.namespace.as_ref().unwrap_or(&namespace))?;
        Ok(command::undelete(&client, &note.cluster.system_namespace, claim).await?)
    })?;
    say(note.output, &asked, &format!("asked back: {}; make the claim again to use it", asked.name))
}

/// What was asked for, and what it waits for where it cannot be had at once.
fn say(format: Format, asked: &Note, line: &str) -> Result<()> {
    let mut out = output::stdout();
    match format {
        Format::Json => output::json(&mut out, asked)?,
        Format::Table => writeln!(output::plain(&mut out), "{line}")?,
    }
    // What the record says of a server that is away, the server says itself.
    if let Some(problem) = asked.problem.as_ref().filter(|_| asked.waits_for.is_none()) {
        output::complain(&format!("{} {} says: {problem}", asked.kind, asked.name));
    }
    if let Some(why) = &asked.waits_for {
        output::complain(&format!(
            "not yet: {why}. The note stays, and is carried out when the server is well."
        ));
    }
    Ok(out.flush()?)
}

/// The arguments of both are checked where they are written.
#[cfg(test)]
mod tests {
    use crate::args::{Arguments, Command, RotateWhat};
    use clap::Parser;

    #[test]
    fn a_claim_and_a_role_are_told_apart() {
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
