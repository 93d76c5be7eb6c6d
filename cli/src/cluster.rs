//! Connects a command to its cluster, and runs its calls.

use crate::args::ClusterArguments;
use anyhow::{Context, Result};
use kube::Client;

/// A client for the cluster, and the namespace that its kubeconfig names.
pub async fn connect(arguments: &ClusterArguments) -> Result<(Client, String)> {
    let ClusterArguments { kubeconfig, context, system_namespace: _ } = arguments;
    let config = conductor_controller::find_cluster(kubeconfig.as_deref(), context.as_deref()).await?;
    let namespace = config.default_namespace.clone();
    Ok((conductor_controller::connect(config)?, namespace))
}

/// Runs one command's calls to completion.
pub fn block_on<T>(calls: impl Future<Output = Result<T>>) -> Result<T> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    runtime.context("cannot start the async runtime")?.block_on(calls)
}
