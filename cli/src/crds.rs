//! `conductor crds`: the definitions as the types generate them, ready for `kubectl apply`.

use crate::args::CrdsArguments;
use crate::output;
use anyhow::Result;
use std::io::Write;

/// Prints every CustomResourceDefinition.
pub fn print(arguments: &CrdsArguments) -> Result<()> {
    let mut out = output::stdout();
    output::manifests(&mut out, arguments.output, &conductor::api::crds())?;
    Ok(out.flush()?)
}
