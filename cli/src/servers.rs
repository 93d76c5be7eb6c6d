//! `conductor servers`: a fleet's configuration file in, one DatabaseServer an instance out, ready for `kubectl apply`.

use crate::args::{CrdFormat, ServersArguments};
use crate::output;
use anyhow::{Context, Result};
use conductor_sql_plan::server_config::{ServerConfig, config_of};
use serde_json::json;
use std::io::{Read, Write};
use std::path::Path;

/// Prints the servers of a configuration.
pub fn print(arguments: &ServersArguments) -> Result<()> {
    let text = read(&arguments.config)?;
    let server_config = config_of(&text).and_then(|text| ServerConfig::read(&text));
    let server_config = server_config.with_context(|| arguments.config.display().to_string())?;
    let servers = server_config.to_servers(&arguments.system_namespace);
    for label in server_config.on_demand.keys() {
        output::complain(&format!(
            "{label} has no host: it is made on demand, which takes conductor run --database-config"
        ));
    }
    let mut out = output::stdout();
    match arguments.output {
        CrdFormat::Json => {
            output::json(&mut out, &json!({"apiVersion": "v1", "kind": "List", "items": servers}))?;
        }
        CrdFormat::Yaml => {
            for (at, server) in servers.iter().enumerate() {
                if at > 0 {
                    writeln!(out, "---")?;
                }
                let text = serde_saphyr::to_string(server).context("a server cannot be written as YAML")?;
                out.write_all(text.as_bytes())?;
            }
        }
    }
    Ok(out.flush()?)
}

fn read(path: &Path) -> Result<String> {
    let mut text = String::new();
    match path.to_str() {
        Some("-") => drop(std::io::stdin().read_to_string(&mut text).context("standard input")?),
        _ => text = std::fs::read_to_string(path).with_context(|| path.display().to_string())?,
    }
    Ok(text)
}
