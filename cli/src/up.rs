//! `conductor up`: an embedded Kubernetes API, the controllers on it and a web address, until interrupted. It only
//! composes: the API and the controllers are other packages'. Nothing runs Pods here, and a stand-in replaces the
//! operator of a kind that a class creates. Databases are real if a server is installed: it runs as a child process.

mod databases;
mod kubeconfig;
pub mod manifests;
mod progress;
mod stand_in;
mod welcome;

use crate::args::UpArguments;
use crate::run::{log, stop_on_signal};
use crate::{cluster, output};
use anyhow::{Context, Result};

use conductor::model::Kind;
use conductor_apiserver::{Embedded, Options};
use databases::Servers;
use k8s_openapi::api::core::v1::Namespace;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::Client;
use kube::api::ApiResource;
use kube::core::GroupVersionKind;
use kubeconfig::Kubeconfig;
use serde_json::json;
use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

/// The field manager of what `up` installs at the start and of `-f`.
const MANAGER: &str = "conductor-up";

/// The holder in the Lease. Only one process opens the data at a time, so an earlier holder of this name has ended, and
/// its Lease need not expire first.
const IDENTITY: &str = "conductor-up";

/// The pause before the controllers run again after the Lease was lost.
const PAUSE: Duration = Duration::from_millis(200);

/// Runs everything until a signal.
pub fn up(arguments: &UpArguments) -> Result<()> {
    // Standard output shows what happens, warnings included.
    log(arguments.log_format, "error")?;
    // Read first: an unreadable manifest fails the command before anything starts.
    let manifests = manifests::read(&arguments.filename)?;
    cluster::block_on(async {
        let stop = stop_on_signal()?;
        // Bind before anything is written or announced: the address may be in use.
        let web = bind(arguments.web)?;
        let api = open(arguments)?;
        let served = api.serve(arguments.listen).await.map_err(refused)?;
        let client = api.client();
        install(&client, &arguments.system_namespace).await?;
        let servers = Servers::find(arguments.data.as_deref())?;
        let kubeconfig = Kubeconfig::write(arguments, &served.kubeconfig)?;
        let address = web.local_addr()?;
        // Greet before the first progress line: the state of an earlier start appears below the greeting.
        welcome::print(arguments, kubeconfig.path(), served.address, address)?;
        let mut tasks = JoinSet::new();
        tasks.spawn(progress::follow(client.clone(), arguments.system_namespace.clone()));
        tasks.spawn(progress::follow_store(api.clone()));
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
        // End watches first: they would keep the server from ending.
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
        // It holds every resource and the Lease: the controllers cannot run without it.
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

/// Rewords an error of the API in terms of the arguments.
fn refused(error: conductor_apiserver::Error) -> anyhow::Error {
    match error {
        conductor_apiserver::Error::NotLoopback(address) => anyhow::anyhow!(
            "--listen {address} is not a loopback address: use one such as 127.0.0.1:0, or allow other machines with \
             --listen-anywhere"
        ),
        other => other.into(),
    }
}

/// Runs the controllers. A process that was suspended (Ctrl-Z) has lost the Lease, and waits for it again.
async fn control(
    client: Client,
    options: conductor_controller::Options,
    stop: CancellationToken,
) -> Result<(), conductor_controller::Error> {
    loop {
        match conductor_controller::run(client.clone(), options.clone(), stop.clone()).await {
            Err(conductor_controller::Error::LeaseLost { .. }) if !stop.is_cancelled() => {
                let _ = output::say("up        the controllers lost their Lease, and wait to lead again");
            }
            ended => return ended,
        }
        tokio::time::sleep(PAUSE).await;
    }
}

/// Installs the CustomResourceDefinitions, the system namespace and the classes of local servers.
async fn install(client: &Client, system_namespace: &str) -> Result<()> {
    for crd in conductor::api::crds() {
        let object = serde_json::to_value(&crd).context("a CustomResourceDefinition")?;
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
        // `conductor run` may join on the same API: elect the leader as on every cluster.
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

/// The readiness check that writes are stored.
fn store(api: &Embedded) -> conductor_controller::Check {
    let api = api.clone();
    conductor_controller::Check { name: "store", ask: Arc::new(move || api.trouble()) }
}

/// Binds the socket of health and metrics.
fn bind(address: SocketAddr) -> Result<TcpListener> {
    TcpListener::bind(address).with_context(|| {
        format!("--web {address}: cannot listen on it; choose another port, or 0 for a free one")
    })
}

/// The API resource of one of Conductor's kinds.
pub fn resource_of(kind: Kind) -> Option<ApiResource> {
    let crds = conductor::api::crds();
    let api_version = kind.api_version();
    let (group, version) = api_version.split_once('/')?;
    let found = crds.iter().find(|crd| crd.spec.names.kind == kind.name() && crd.spec.group == group)?;
    let kind = GroupVersionKind::gvk(group, version, kind.name());
    Some(ApiResource::from_gvk_with_plural(&kind, &found.spec.names.plural))
}

fn definitions() -> ApiResource {
    ApiResource::erase::<CustomResourceDefinition>(&())
}

fn namespaces() -> ApiResource {
    ApiResource::erase::<Namespace>(&())
}
