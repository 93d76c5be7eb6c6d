//! `LocalServer`: servers that this process runs itself, so that claims get a working login on a machine without other
//! servers. For development only.
//!
//! Each has its own folder, named by its object's UID, and keeps its port and its administrator's password over restarts.
//! Its data is deleted only with its object, and only once no database on it is recorded.

mod installed;
pub mod process;

pub use installed::{find_missing, find_version};

use super::api_client::ApiClient;
use super::error::Error;
use super::finalizer;
use super::informers;
use super::login_secrets::text;
use super::reconcile::Provider;
use super::secret::Password;
use super::server::{dialect, local_secret};
use conductor::api::database::ADMIN_HOSTS;
use conductor::api::database::logical::{ServerKind, ServerRef};
use conductor::api::database::server::{LocalServerSpec, ServerStatus};
use conductor::api::reasons::READY;
use conductor_sql_plan::sql::Dialect;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::api::{Api, DynamicObject};
use kube::{Resource, ResourceExt};
use process::{Plan, Process};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;

/// Kept until the server is stopped and its data is deleted.
const FINALIZER: &str = "database.conductor.io/local-server";
/// Pause between two checks of the processes.
const EVERY: Duration = Duration::from_secs(2);

/// Runs servers until it is dropped; all of them end with it.
pub(super) async fn run(provider: Provider, folder: PathBuf, mut changed: watch::Receiver<()>) {
    let mut servers = LocalServers { provider, folder, running: BTreeMap::new() };
    loop {
        servers.reconcile_all().await;
        tokio::select! {
            Ok(()) = changed.changed() => {}
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

struct LocalServers {
    provider: Provider,
    folder: PathBuf,
    /// By UID of the object.
    running: BTreeMap<String, Process>,
}

impl LocalServers {
    async fn reconcile_all(&mut self) {
        if !self.provider.cluster.leadership.leads() {
            return;
        }
        for (reference, object) in self.provider.informers.servers() {
            if reference.kind != ServerKind::LocalServer {
                continue;
            }
            let done = match object.metadata.deletion_timestamp {
                Some(_) => self.end(&reference, &object).await,
                None => self.keep(&reference, &object).await,
            };
            if let Err(error) = done
                && let Ok(true) = report(&self.provider.cluster, &reference, &object, &error).await
            {
                tracing::warn!(server = reference.name, %error, "a local server does not run");
            }
        }
    }

    /// Ensures that a server runs.
    async fn keep(&mut self, reference: &ServerRef, object: &DynamicObject) -> Result<(), Error> {
        let uid = object.uid().unwrap_or_default();
        if self.running.get_mut(&uid).is_some_and(|process| !process.has_ended()) {
            return Ok(());
        }
        let cluster = &self.provider.cluster;
        let api = cluster.others(&informers::servers(ServerKind::LocalServer), &cluster.namespace);
        // Before anything exists that could be left behind.
        finalizer::add(cluster, &api, object, FINALIZER).await?;
        let plan = self.plan(reference, object, &uid).await?;
        let port = plan.port;
        let process = Process::start(plan).await?;
        self.running.insert(uid, process);
        let status = json!({"host": "127.0.0.1", "port": port});
        cluster.merge_status(&api, &reference.name, status).await.map(drop)
    }

    async fn plan(&self, reference: &ServerRef, object: &DynamicObject, uid: &str) -> Result<Plan, Error> {
        let spec = object.data.get("spec").cloned().unwrap_or_default();
        let spec: LocalServerSpec = serde_json::from_value(spec)
            .map_err(|error| Error::Invalid(format!("LocalServer {}: spec: {error}", reference.name)))?;
        let status: ServerStatus = informers::read(object, "/status").unwrap_or_default();
        let dialect = dialect(spec.engine);
        let folder = folder_of(&self.folder, uid);
        let left = folder.clone();
        // Before its port is chosen: applications hold the address with it.
        let _ = tokio::task::spawn_blocking(move || process::end_predecessor(dialect, &left)).await;
        let kept = status.port.and_then(|port| u16::try_from(port).ok()).filter(|port| is_free(*port));
        let port = kept.or_else(free_port).ok_or_else(|| Error::Refused("no port is free".to_owned()))?;
        let password = admin(&self.provider.cluster, reference, object, (dialect, port)).await?;
        Ok(Plan {
            dialect,
            folder,
            port,
            password,
            max_connections: spec.max_connections.unwrap_or(100).clamp(10, 10_000),
            cache_mebibytes: spec.cache_mebibytes.unwrap_or(32).clamp(8, 65_536),
            more: Vec::new(),
        })
    }

    /// Ends a server and removes its data, once no database on it is recorded.
    async fn end(&mut self, reference: &ServerRef, object: &DynamicObject) -> Result<(), Error> {
        let left = self.provider.informers.records_on(reference).len();
        if left > 0 {
            self.keep(reference, object).await?;
            let why = format!("{left} databases on it are still recorded: it is deleted after them");
            return Err(Error::Refused(why));
        }
        let cluster = &self.provider.cluster;
        cluster.may_destroy().await?;
        let uid = object.uid().unwrap_or_default();
        if let Some(mut process) = self.running.remove(&uid) {
            let _ = tokio::task::spawn_blocking(move || process.stop()).await;
        }
        let folder = folder_of(&self.folder, &uid);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)
                .map_err(|error| Error::Refused(format!("folder {}: {error}", folder.display())))?;
        }
        let secrets = cluster.secrets();
        if let Some(secret) = cluster.find(&secrets, &local_secret(&reference.name)).await? {
            cluster.delete(&secrets, &secret.name_any(), secret.metadata.uid.clone()).await?;
        }
        let api: Api<DynamicObject> =
            cluster.others(&informers::servers(ServerKind::LocalServer), &cluster.namespace);
        finalizer::remove(cluster, &api, object, FINALIZER, object.resource_version()).await
    }
}

/// The administrator's password: generated once, kept in a Secret with the server's current address.
async fn admin(
    cluster: &ApiClient,
    reference: &ServerRef,
    object: &DynamicObject,
    (dialect, port): (Dialect, u16),
) -> Result<Password, Error> {
    let (api, name) = (cluster.secrets(), local_secret(&reference.name));
    let hosts = (ADMIN_HOSTS.to_owned(), format!("127.0.0.1:{port}"));
    if let Some(mut secret) = cluster.find(&api, &name).await? {
        let is_ours = secret.owner_references().iter().any(|owner| Some(&owner.uid) == object.uid().as_ref());
        let Some(password) = text(&secret, "password").filter(|_| is_ours) else {
            let why = format!("Secret {name} exists and belongs to another owner: remove it");
            return Err(Error::Invalid(why));
        };
        if secret.annotations().get(ADMIN_HOSTS) != Some(&hosts.1) {
            secret.annotations_mut().insert(hosts.0, hosts.1);
            cluster.replace(&api, &secret).await?;
        }
        return Ok(Password::new(password));
    }
    let password = Password::make(32);
    let username = match dialect {
        Dialect::Postgresql => "postgres",
        Dialect::Mariadb | Dialect::Mysql => "root",
    };
    let entry = |key: &str, text: &str| (key.to_owned(), ByteString(text.as_bytes().to_vec()));
    let owner = object.owner_ref(&informers::servers(reference.kind));
    let metadata = ObjectMeta {
        name: Some(name),
        annotations: Some(BTreeMap::from([hosts])),
        owner_references: owner.map(|owner| vec![owner]),
        ..ObjectMeta::default()
    };
    let data = BTreeMap::from([entry("username", username), entry("password", password.expose())]);
    let secret = Secret { metadata, data: Some(data), ..Secret::default() };
    cluster.create(&api, &secret).await?;
    Ok(password)
}

/// Writes into its status why it does not run; returns whether that changed.
async fn report(
    cluster: &ApiClient,
    reference: &ServerRef,
    object: &DynamicObject,
    error: &Error,
) -> Result<bool, Error> {
    let was = object.data.pointer("/status/conditions/0/message").and_then(serde_json::Value::as_str);
    if was == Some(&error.to_string()) {
        return Ok(false);
    }
    let now = super::clock::write(super::clock::now());
    let condition = json!({"type": READY, "status": "False", "reason": error.reason(),
        "message": error.to_string(), "lastTransitionTime": now});
    let api = cluster.others(&informers::servers(ServerKind::LocalServer), &cluster.namespace);
    cluster.merge_status(&api, &reference.name, json!({"conditions": [condition]})).await.map(|_| true)
}

fn folder_of(base: &Path, uid: &str) -> PathBuf {
    let plain: String = uid.chars().filter(|c| c.is_ascii_alphanumeric() || *c == '-').collect();
    base.join(plain)
}

fn is_free(port: u16) -> bool {
    std::net::TcpListener::bind(("127.0.0.1", port)).is_ok()
}

fn free_port() -> Option<u16> {
    let listener = std::net::TcpListener::bind(("127.0.0.1", 0)).ok()?;
    Some(listener.local_addr().ok()?.port())
}
