//! A client for the cluster of a kubeconfig, or of the pod that we run in. It retries nothing by itself:
//! a write that was decided while we led must not land after the lease is lost.

use super::error::Error;
use kube::Client;
use kube::client::ClientBuilder;
use kube::config::{Config, KubeConfigOptions, Kubeconfig};
use std::path::Path;
use std::time::Duration;

/// How long a connection may take to be made.
const CONNECT_WITHIN: Duration = Duration::from_secs(10);

/// What is known of the cluster: the kubeconfig at `path`, else `KUBECONFIG` or the user's own file,
/// else the pod's service account.
///
/// # Errors
/// When no cluster is known, or what is known of it cannot be read.
pub async fn find_cluster(path: Option<&Path>, context: Option<&str>) -> Result<Config, Error> {
    let options = KubeConfigOptions { context: context.map(str::to_owned), ..KubeConfigOptions::default() };
    let mut config = match path {
        Some(path) => {
            let failed = |error| Error::Connect(format!("kubeconfig {}: {error}", path.display()));
            let kubeconfig = Kubeconfig::read_from(path).map_err(failed)?;
            Config::from_custom_kubeconfig(kubeconfig, &options).await.map_err(failed)?
        }
        None => match Config::from_kubeconfig(&options).await {
            Ok(config) => config,
            Err(error) if context.is_some() || std::env::var_os("KUBECONFIG").is_some() => {
                return Err(Error::Connect(format!("kubeconfig: {error}")));
            }
            Err(no_file) => Config::incluster().map_err(|no_pod| {
                let help = "name a kubeconfig by --kubeconfig or KUBECONFIG";
                Error::Connect(format!("no cluster is known ({no_file}; {no_pod}): {help}"))
            })?,
        },
    };
    config.default_retry = false;
    config.connect_timeout = Some(CONNECT_WITHIN);
    Ok(config)
}

/// A client for a cluster.
///
/// # Errors
/// When its certificates or credentials cannot be used.
pub fn connect(mut config: Config) -> Result<Client, Error> {
    config.default_retry = false;
    let server = config.cluster_url.clone();
    let builder = ClientBuilder::try_from(config);
    Ok(builder.map_err(|error| Error::Connect(format!("cluster {server}: {error}")))?.build())
}
