//! `conductor explain`: passes the cluster's objects to the simulator and prints its explanation. A user who may not read
//! the whole cluster gets an explanation from what is readable: see `readable`.

use crate::args::{ExplainClaimArguments, Format};
use crate::readable::Readable;
use crate::sim::{split, suggest};
use crate::{cluster, get, output, readable, table};
use anyhow::{Result, bail};
use conductor::model::{Kind, Object};
use conductor_simulator::plan::{Options, Planned};
use serde_json::Value;
use std::io::Write;

/// `conductor explain claim`.
pub fn claim(arguments: &ExplainClaimArguments) -> Result<()> {
    let system_namespace = arguments.object.cluster.system_namespace.as_str();
    let (read, namespace) = cluster::block_on(async {
        let (client, own) = cluster::connect(&arguments.object.cluster).await?;
        let namespace = arguments.object.namespace.clone().unwrap_or(own);
        let (within, _) = split(&arguments.claim, &namespace)?;
        Ok((readable::read(&client, system_namespace, within).await?, namespace))
    })?;
    let wanted = split(&arguments.claim, &namespace)?;
    let Readable { objects, has_resources, limits } = read;
    let own = objects.iter().find(|object| is_claim(object, wanted)).cloned();
    if let (Some(own), false) = (&own, has_resources) {
        return from_conditions(arguments, own, wanted, &limits);
    }
    let options = Options { system_namespace: system_namespace.into(), absent_phase_is_available: false };
    let planned = Planned::new(objects, &options);
    let explained = planned.explain(Some(wanted));
    if explained.claims.is_empty() {
        let (namespace, name) = wanted;
        bail!("no claim {namespace}/{name} on the cluster{}", suggest(&planned, name));
    }
    let mut out = output::stdout();
    match arguments.object.output {
        Format::Json => output::json(&mut out, &explained)?,
        Format::Table => table::explained(&mut output::sanitized(&mut out), &explained)?,
    }
    out.flush()?;
    limits.iter().for_each(|limit| output::diagnostic(&format!("note: {limit}")));
    // A plan ends with the binding; the claim's conditions show what the application waits for after it.
    if let Some(unready) = own.as_ref().and_then(get::unready) {
        output::diagnostic(&format!("{}/{} is bound and {unready}", wanted.0, wanted.1));
    }
    Ok(())
}

/// For a user who may not read resources: the claim's conditions, and how to get the permission.
fn from_conditions(
    arguments: &ExplainClaimArguments,
    claim: &Object,
    (namespace, name): (&str, &str),
    limits: &[String],
) -> Result<()> {
    let more = format!(
        "to see why each resource does not fit, get permission to read resources: conductor grant {namespace} --user USER | kubectl apply -f -"
    );
    if arguments.object.output == Format::Json {
        bail!("{}; {more}", limits.join("; "));
    }
    let phase = claim.body.pointer("/status/phase").and_then(Value::as_str).unwrap_or("Pending");
    let mut out = output::stdout();
    writeln!(output::sanitized(&mut out), "{namespace}/{name} is {phase}: {}", get::message(claim))?;
    out.flush()?;
    output::diagnostic(&format!("note: this is the claim's last status; {more}"));
    Ok(())
}

fn is_claim(object: &Object, (namespace, name): (&str, &str)) -> bool {
    let metadata = &object.metadata;
    let is_named = (metadata.namespace.as_deref(), metadata.name.as_deref()) == (Some(namespace), Some(name));
    matches!(object.kind, Kind::Claim(_)) && is_named
}
