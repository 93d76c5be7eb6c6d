//! `conductor up`: a Kubernetes API of our own, the controllers on it and a web address, until interrupted. It
//! composes: the API is the simulator package's, the controllers are the library's, what is printed is told below.
//! Nothing runs Pods here; kinds that only an operator could fill with life get a stand-in that says so. Databases are
//! real where a server is installed: it runs as a process beside us.

mod databases;
mod kubeconfig;
pub mod manifests;
mod stand_in;
mod tell;
mod welcome;

use crate::args::UpArguments;
use crate::run::{log, stop_on_signal};
use crate::{cluster, output};
use anyhow::{Context, Result};
use conductor::model::Kind;
use conductor_apiserver::{Embedded, Options};
use databases::Servers;
use kube::Client;
use kube::api::ApiResource;
use kubeconfig::Kubeconfig;
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// Who applies what is installed at the start and what `-f` names.
const MANAGER: &str = "conductor-up";

/// Who we are in the Lease. Only one process has the data at a time, so whoever held it by this name has ended, and its
/// Lease need not be waited out.
const IDENTITY: &str = "conductor-up";

/// How long it waits before it runs the controllers again after the Lease was lost.
const PAUSE: Duration = Duration::from_millis(200);

/// Runs everything until a signal.
pub fn up(arguments: &UpArguments) -> Result<()> {
    // What happens is told on standard output, warnings included.
    log(arguments.log_format, "error")?;
    // Before anything is started: a manifest that cannot be read should stop nothing.
    let manifests = manifests::read(&arguments.filename)?;
    cluster::block_on(async {
        let stop = stop_on_signal()?;
        // Before anything is written or announced: the address may be in use.
        let web = bind(arguments.web)?;
        let api = open(arguments)?;
        let served = api.serve(arguments.listen).await.map_err(refused)?;
        let client = api.client();
        install(&client, &arguments.system_namespace).await?;
        let servers = Servers::find(arguments.data.as_deref())?;
        let kubeconfig = Kubeconfig::write(arguments, &served.kubeconfig)?;
        let address = web.local_addr()?;
        // Before the first line of what happens: what an earlier start left is told below the greeting.
        welcome::print(arguments, kubeconfig.path(), served.address, address)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(tell::follow(client.clone(), arguments.system_namespace.clone()));
        tasks.spawn(tell::follow_store(api.clone()));
        if !arguments.no_stand_ins {
            tasks.spawn(stand_in::provide(client.clone(), arguments.system_namespace.clone()));
        }
        let options = conductor_controller::Options {
            checks: vec![store(&api)],
            ..options(arguments, web, address, &servers)
        };
        let controllers = control(client.clone(), options, stop.clone());
        let controllers = tokio::spawn(controllers);
        if api.restored_system_namespace() {
            let name = &arguments.system_namespace;
            output::say(&format!(
                "up        namespace {name} was being deleted and is Active again: resources in it that are marked for \
                 deletion stay until their claims are deleted (kubectl -n {name} get rdb)"
            ))?;
        }
        manifests::apply(&client, &manifests, &output::say).await?;
        let ended = controllers.await.context("the controllers ended")?;
        // Watches first: they are what would keep the server from ending.
        tasks.shutdown().await;
        api.end_watches();
        served.shutdown().await;
        output::say("stopped")?;
        Ok(ended?)
    })
}

fn open(arguments: &UpArguments) -> Result<Embedded> {
    let options = Options {
        listen_anywhere: arguments.listen_anywhere,
        // Everything that claims hold is on record there, and the controllers cannot lead without it.
        system_namespace: Some(arguments.system_namespace.clone()),
        ..Options::default()
    };
    Ok(match &arguments.data {
        Some(folder) => {
            let failed = || format!("--data {}", folder.display());
            Embedded::open_with(folder, options).with_context(failed)?
        }
        None => Embedded::in_memory_with(options),
    })
}

/// What keeps it from being served, in the words of the arguments.
fn refused(error: conductor_apiserver::Error) -> anyhow::Error {
    match error {
        conductor_apiserver::Error::NotLoopback(address) => anyhow::anyhow!(
            "--listen {address} is not a loopback address: name one such as 127.0.0.1:0, or serve other machines on \
             purpose by --listen-anywhere"
        ),
        other => other.into(),
    }
}

/// Runs the controllers. Who was stopped for a while (Ctrl-Z) has lost the Lease, and stands by for it again.
async fn control(
    client: Client,
    options: conductor_controller::Options,
    stop: CancellationToken,
) -> Result<(), conductor_controller::Error> {
    loop {
        match conductor_controller::run(client.clone(), options.clone(), stop.clone()).await {
            Err(conductor_controller::Error::LeaseLost { .. }) if !stop.is_cancelled() => {
                let _ = output::say("up        lost the Lease, and stands by for it");
            }
            ended => return ended,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// The definitions and the system namespace: what `conductor crds | kubectl apply -f -` would do.
async fn install(client: &Client, system_namespace: &str) -> Result<()> {
    for crd in conductor::api::crds() {
        let object = serde_json::to_value(&crd).context("a definition")?;
        manifests::put(client, &definitions(), &object).await?;
    }
    let namespace = json!({
        "apiVersion": "v1", "kind": "Namespace", "metadata": {"name": system_namespace},
    });
    manifests::put(client, &namespaces(), &namespace).await?;
    databases::install(client, system_namespace).await
}

fn options(
    arguments: &UpArguments,
    web: TcpListener,
    address: SocketAddr,
    servers: &Servers,
) -> conductor_controller::Options {
    conductor_controller::Options {
        system_namespace: arguments.system_namespace.clone(),
        // `conductor run` may come to the same API: the one that leads is elected as everywhere.
        lease: Some(conductor_controller::LeaseOptions {
            namespace: arguments.system_namespace.clone(),
            ..conductor_controller::LeaseOptions::default()
        }),
        identity: IDENTITY.to_owned(),
        listen: Some(address),
        listener: Some(Arc::new(web)),
        databases: true,
        local_servers: Some(servers.folder()),
        database_config: arguments.database_config.clone(),
        ..conductor_controller::Options::default()
    }
}

/// Whether writes are kept, for readiness.
fn store(api: &Embedded) -> conductor_controller::Check {
    let api = api.clone();
    conductor_controller::Check { name: "store", ask: Arc::new(move || api.trouble()) }
}

/// The socket of health and metrics.
fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address)
        .with_context(|| format!("--web {address}: cannot listen there; choose another port, or 0 for any"))
}

/// Where a kind of ours is served.
fn resource_of(kind: Kind) -> Option<ApiResource> {
    let crds = conductor::api::crds();
    let api_version = kind.api_version();
    let (group, version) = api_version.split_once('/')?;
    let found = crds.iter().find(|crd| crd.spec.names.kind == kind.name() && crd.spec.group == group)?;
    Some(ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        kind: kind.name().to_owned(),
        plural: found.spec.names.plural.clone(),
        api_version,
    })
}

fn definitions() -> ApiResource {
    known("apiextensions.k8s.io", "v1", "CustomResourceDefinition", "customresourcedefinitions")
}

fn namespaces() -> ApiResource {
    known("", "v1", "Namespace", "namespaces")
}

fn known(group: &str, version: &str, kind: &str, plural: &str) -> ApiResource {
    let api_version = if group.is_empty() { version.to_owned() } else { format!("{group}/{version}") };
    ApiResource {
        group: group.to_owned(),
        version: version.to_owned(),
        api_version,
        kind: kind.to_owned(),
        plural: plural.to_owned(),
    }
}
