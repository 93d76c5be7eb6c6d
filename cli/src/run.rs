//! `conductor run`: turns arguments into options and signals into a request to stop, and logs to standard error.

use crate::adapters;
use crate::args::{LogFormat, RunArguments};
use crate::cluster;
use anyhow::{Context, Result};
use conductor::model::AllowedKinds;
use conductor::template::Adapters;
use conductor_controller::{LeaseOptions, Options};
use std::io::IsTerminal;
use std::sync::Arc;
use std::time::Duration;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Libraries whose logs are off unless `RUST_LOG` names them: the client logs every failed call and watch, which the
/// controller logs already, once and with the kind.
const UNLOGGED: [&str; 2] = ["kube_client", "kube_runtime"];

/// Runs the controller until a signal.
pub fn run(arguments: &RunArguments) -> Result<()> {
    log(arguments.log_format, "info")?;
    let options = options(arguments)?;
    cluster::block_on(async {
        let stop = stop_on_signal()?;
        let (client, _) = cluster::connect(&arguments.cluster).await?;
        Ok(conductor_controller::run(client, options, stop).await?)
    })
}

fn options(arguments: &RunArguments) -> Result<Options> {
    let system_namespace = arguments.cluster.system_namespace.clone();
    let lease = LeaseOptions {
        namespace: system_namespace.clone(),
        name: arguments.lease_name.clone(),
        ..LeaseOptions::default()
    };
    let adapters = match &arguments.adapters {
        Some(folder) => Arc::new(adapters::read(folder)?),
        None => Adapters::builtin(),
    };
    Ok(Options {
        system_namespace,
        lease: (!arguments.no_leader_election).then_some(lease),
        writes_per_second: arguments.writes_per_second,
        burst: arguments.writes_per_second,
        recheck: Duration::from_secs(arguments.recheck),
        lost_at_once_max: arguments.lost_at_once_max,
        listen: Some(arguments.listen),
        allowed_kinds: arguments.allow_kinds.clone().map(AllowedKinds::new).unwrap_or_default(),
        databases: !arguments.no_databases,
        local_servers: arguments.local_servers.clone(),
        database_config: arguments.database_config.clone(),
        adapters,
        ..Options::default()
    })
}

/// A token that SIGINT or SIGTERM cancels. A second signal ends the process at once.
pub fn stop_on_signal() -> Result<CancellationToken> {
    let stop = CancellationToken::new();
    let catch = |kind| signal(kind).context("cannot handle signals");
    let (mut interrupt, mut terminate) = (catch(SignalKind::interrupt())?, catch(SignalKind::terminate())?);
    let cancelled = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        cancelled.cancel();
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
        std::process::exit(1);
    });
    Ok(stop)
}

/// Logs to standard error, at the levels of `RUST_LOG` or else at `level`.
pub fn log(format: LogFormat, level: &str) -> Result<()> {
    let mut directives = std::env::var("RUST_LOG").unwrap_or_default();
    if directives.is_empty() {
        level.clone_into(&mut directives);
    }
    for library in UNLOGGED.into_iter().filter(|library| !directives.contains(library)).collect::<Vec<_>>() {
        directives.push_str(&format!(",{library}=off"));
    }
    let filter = EnvFilter::try_new(directives)
        .context("RUST_LOG cannot be read: write a level such as debug, or target=level")?;
    // Reporting a closed log stream on the same stream would panic.
    let lines = tracing_subscriber::fmt().with_env_filter(filter).log_internal_errors(false);
    let lines = lines.with_writer(std::io::stderr);
    match format {
        LogFormat::Text => lines.with_ansi(std::io::stderr().is_terminal()).with_target(false).init(),
        LogFormat::Json => lines.json().flatten_event(true).init(),
    }
    Ok(())
}
