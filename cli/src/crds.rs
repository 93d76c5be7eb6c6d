//! `conductor crds`: the definitions as the types generate them, ready for `kubectl apply`.

use crate::args::{CrdFormat, CrdsArguments};
use crate::output;
use anyhow::{Context, Result};
use serde_json::json;
use std::io::Write;

/// Prints every CRD.
pub fn print(arguments: &CrdsArguments) -> Result<()> {
    let crds = conductor::api::crds();
    let mut out = output::stdout();
    match arguments.output {
        CrdFormat::Json => {
            let list = json!({"apiVersion": "v1", "kind": "List", "items": crds});
            output::json(&mut out, &list)?;
        }
        CrdFormat::Yaml => {
            for (at, crd) in crds.iter().enumerate() {
                if at > 0 {
                    writeln!(out, "---")?;
                }
                let text = serde_saphyr::to_string(crd).context("a CRD cannot be written as YAML")?;
                out.write_all(text.as_bytes())?;
            }
        }
    }
    Ok(out.flush()?)
}
