//! `conductor explain`: the cluster's objects in, the simulator's explanation out, word for word.

use crate::args::{ExplainClaimArguments, Format};
use crate::sim::{split, suggest};
use crate::{cluster, output, table};
use anyhow::{Result, bail};
use conductor::live;
use conductor_simulator::plan::{Options, Planned};
use std::io::Write;

/// `conductor explain claim`.
pub fn claim(arguments: &ExplainClaimArguments) -> Result<()> {
    let system_namespace = arguments.cluster.system_namespace.as_str();
    let (objects, namespace) = cluster::block_on(async {
        let (client, namespace) = cluster::connect(&arguments.cluster).await?;
        Ok((live::list_all(&client, system_namespace).await?, namespace))
    })?;
    let namespace = arguments.namespace.as_ref().unwrap_or(&namespace);
    let asked = split(&arguments.claim, namespace)?;
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
    Ok(out.flush()?)
}
