//! `conductor explain`: the cluster's objects in, the simulator's explanation out, word for word. A user who may not read
//! the whole cluster gets an answer from what is readable: see `readable`.

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
    let system_namespace = arguments.cluster.system_namespace.as_str();
    let (read, namespace) = cluster::block_on(async {
        let (client, own) = cluster::connect(&arguments.cluster).await?;
        let namespace = arguments.namespace.clone().unwrap_or(own);
        let (within, _) = split(&arguments.claim, &namespace)?;
        Ok((readable::read(&client, system_namespace, within).await?, namespace))
    })?;
    let asked = split(&arguments.claim, &namespace)?;
    let Readable { objects, has_resources, limits } = read;
    let own = objects.iter().find(|object| is_claim(object, asked)).cloned();
    if let (Some(own), false) = (&own, has_resources) {
        return last_answer(arguments, own, asked, &limits);
    }
    let options = Options { system_namespace: system_namespace.into(), absent_phase_is_available: false };
    let planned = Planned::new(objects, &options);
    let explained = planned.explain(Some(asked));
    if explained.claims.is_empty() {
        let (namespace, name) = asked;
        bail!("no claim {namespace}/{name} on the cluster{}", suggest(&planned, name));
    }
    let mut out = output::stdout();
    match arguments.output {
        Format::Json => output::json(&mut out, &explained)?,
        Format::Table => table::explained(&mut output::plain(&mut out), &explained)?,
    }
    out.flush()?;
    limits.iter().for_each(|limit| output::complain(&format!("note: {limit}")));
    // A plan ends with the binding; what the application waits for then is on the claim.
    if let Some(unready) = own.as_ref().and_then(get::unready) {
        output::complain(&format!("{}/{} is bound and {unready}", asked.0, asked.1));
    }
    Ok(())
}

/// For a user who may not read resources: what the controller said last, and how to get more.
fn last_answer(
    arguments: &ExplainClaimArguments,
    claim: &Object,
    (namespace, name): (&str, &str),
    limits: &[String],
) -> Result<()> {
    let more = format!(
        "what each resource lacks takes the right to read resources: conductor grant {namespace} --user USER | kubectl apply -f -"
    );
    if arguments.output == Format::Json {
        bail!("{}; {more}", limits.join("; "));
    }
    let phase = claim.body.pointer("/status/phase").and_then(Value::as_str).unwrap_or("Pending");
    let mut out = output::stdout();
    writeln!(output::plain(&mut out), "{namespace}/{name} is {phase}: {}", get::why(claim))?;
    out.flush()?;
    output::complain(&format!("note: this is the controller's last answer; {more}"));
    Ok(())
}

fn is_claim(object: &Object, (namespace, name): (&str, &str)) -> bool {
    let metadata = &object.metadata;
    let is_named = (metadata.namespace.as_deref(), metadata.name.as_deref()) == (Some(namespace), Some(name));
    matches!(object.kind, Kind::Claim(_)) && is_named
}
