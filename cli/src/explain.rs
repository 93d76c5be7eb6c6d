//! `conductor explain`: the cluster's objects in, the simulator's explanation out, word for word.

use crate::args::{ExplainClaimArguments, Format};
use crate::sim::{split, suggest};
use crate::{cluster, get, output, table};
use anyhow::{Result, bail};
use conductor::live;
use conductor::model::{Kind, Object};
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
    let unready = objects.iter().find(|object| is_claim(object, asked)).and_then(get::unready);
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
    // A plan ends with the binding; what the application waits for then is on the claim.
    if let Some(unready) = unready {
        output::complain(&format!("{}/{} is bound and {unready}", asked.0, asked.1));
    }
    Ok(())
}

fn is_claim(object: &Object, (namespace, name): (&str, &str)) -> bool {
    let metadata = &object.metadata;
    let is_named = (metadata.namespace.as_deref(), metadata.name.as_deref()) == (Some(namespace), Some(name));
    matches!(object.kind, Kind::Claim(_)) && is_named
}
