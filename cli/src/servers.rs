//! `conductor servers`: a fleet's configuration file in, one DatabaseServer an instance out, ready for `kubectl apply`.

use crate::args::ServersArguments;
use crate::output;
use anyhow::{Context, Result};
use conductor_sql_plan::server_config::{ServerConfig, config_of};
use std::io::Write;
use std::path::Path;

/// `conductor servers`.
pub fn print(arguments: &ServersArguments) -> Result<()> {
    let text = read(&arguments.config)?;
    let server_config = config_of(&text).and_then(|text| ServerConfig::read(&text));
    let server_config = server_config.with_context(|| arguments.config.display().to_string())?;
    let servers = server_config.to_servers(&arguments.system_namespace);
    for label in server_config.on_demand.keys() {
        output::diagnostic(&format!(
            "server {label} has no host: `conductor run --database-config` provisions it on demand"
        ));
    }
    let mut out = output::stdout();
    output::manifests(&mut out, arguments.output, &servers)?;
    Ok(out.flush()?)
}

fn read(path: &Path) -> Result<String> {
    let text = match path.as_os_str() == "-" {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(path),
    };
    text.with_context(|| path.display().to_string())
}
