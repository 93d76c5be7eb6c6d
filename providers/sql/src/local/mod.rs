//! `LocalServer`: servers that this process runs itself, so that claims end in a working login on a machine where
//! nothing else is. Nothing here is for machines whose data matters to anybody but their user.
//!
//! Each has a folder of its own, named by its object's UID, and keeps its port and its administrator's password over
//! restarts. Its data goes only with its object, and only once no database on it is on record any more.

mod installed;
pub mod process;

pub use installed::{find_missing, find_version};

use super::book::text;
use super::desk::Desk;
use super::pass::Provider;
use super::secret::Password;
use super::server::{dialect, local_secret};
use super::trouble::Trouble;
use super::world;
use conductor::api::database::logical::{ServerKind, ServerRef};
use conductor::api::database::server::{LocalServerSpec, ServerStatus};
use conductor::api::database::{ADMIN_HOSTS, API_VERSION};
use conductor_sql_plan::sql::Dialect;
use k8s_openapi::ByteString;
use k8s_openapi::api::core::v1::Secret;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use process::{Plan, Process};
use serde_json::json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tokio::sync::watch;

/// Kept until the server is stopped and its data is gone.
const FINALIZER: &str = "database.conductor.io/local-server";
/// How often the processes are looked at.
const EVERY: Duration = Duration::from_secs(2);

/// Runs servers until it is dropped; all of them end with it.
pub(super) async fn run(provider: Provider, folder: PathBuf, mut changed: watch::Receiver<()>) {
    let mut keeper = Keeper { provider, folder, running: BTreeMap::new() };
    loop {
        keeper.look_at_all().await;
        tokio::select! {
            Ok(()) = changed.changed() => {}
            () = tokio::time::sleep(EVERY) => {}
        }
    }
}

struct Keeper {
    provider: Provider,
    folder: PathBuf,
    /// By UID of the object.
    running: BTreeMap<String, Process>,
}

impl Keeper {
    async fn look_at_all(&mut self) {
        if !self.provider.desk.leadership.leads() {
            return;
        }
        for (reference, object) in self.provider.world.servers() {
            if reference.kind != ServerKind::LocalServer {
                continue;
            }
            let done = match object.metadata.deletion_timestamp {
                Some(_) => self.end(&reference, &object).await,
                None => self.keep(&reference, &object).await,
            };
            if let Err(trouble) = done
                && let Ok(true) = tell(&self.provider.desk, &reference, &object, &trouble).await
            {
                tracing::warn!(server = reference.name, %trouble, "a local server does not run");
            }
        }
    }

    /// Sees that a server runs.
    async fn keep(&mut self, reference: &ServerRef, object: &DynamicObject) -> Result<(), Trouble> {
        let uid = object.uid().unwrap_or_default();
        if self.running.get_mut(&uid).is_some_and(|process| !process.has_ended()) {
            return Ok(());
        }
        let desk = &self.provider.desk;
        let api = desk.others(&world::servers(ServerKind::LocalServer), &desk.namespace);
        // Before there is anything that could be left behind.
        if !object.finalizers().iter().any(|own| own == FINALIZER) {
            let finalizers: Vec<&str> =
                object.finalizers().iter().map(String::as_str).chain([FINALIZER]).collect();
            let patch =
                json!({"metadata": {"resourceVersion": object.resource_version(), "finalizers": finalizers}});
            desk.merge(&api, &reference.name, patch).await?;
        }
        let plan = self.plan(reference, object, &uid).await?;
        let port = plan.port;
        let process = Process::start(plan).await?;
        self.running.insert(uid, process);
        let status = json!({"host": "127.0.0.1", "port": port});
        desk.merge_status(&api, &reference.name, status).await.map(drop)
    }

    async fn plan(&self, reference: &ServerRef, object: &DynamicObject, uid: &str) -> Result<Plan, Trouble> {
        let spec = object.data.get("spec").cloned().unwrap_or_default();
        let spec: LocalServerSpec = serde_json::from_value(spec)
            .map_err(|error| Trouble::Invalid(format!("LocalServer {}: spec: {error}", reference.name)))?;
        let status: ServerStatus = object
            .data
            .get("status")
            .and_then(|s| serde_json::from_value(s.clone()).ok())
            .unwrap_or_default();
        let dialect = dialect(spec.engine);
        let folder = folder_of(&self.folder, uid);
        let left = folder.clone();
        // Before its port is asked for: applications hold the address with it.
        let _ = tokio::task::spawn_blocking(move || process::end_predecessor(dialect, &left)).await;
        let kept = status.port.and_then(|port| u16::try_from(port).ok()).filter(|port| is_free(*port));
        let port = kept.or_else(free_port).ok_or_else(|| Trouble::Refused("no port is free".to_owned()))?;
        let password = admin(&self.provider.desk, reference, object, (dialect, port)).await?;
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

    /// Ends a server and removes its data, once nothing on it is on record any more.
    async fn end(&mut self, reference: &ServerRef, object: &DynamicObject) -> Result<(), Trouble> {
        let left = self.provider.world.records_on(reference).len();
        if left > 0 {
            self.keep(reference, object).await?;
            let why = format!("{left} databases on it are still on record: it goes when they are gone");
            return Err(Trouble::Refused(why));
        }
        let desk = &self.provider.desk;
        desk.may_destroy().await?;
        let uid = object.uid().unwrap_or_default();
        if let Some(mut process) = self.running.remove(&uid) {
            let _ = tokio::task::spawn_blocking(move || process.stop()).await;
        }
        let folder = folder_of(&self.folder, &uid);
        if folder.exists() {
            std::fs::remove_dir_all(&folder)
                .map_err(|error| Trouble::Refused(format!("folder {}: {error}", folder.display())))?;
        }
        let secrets = desk.secrets();
        if let Some(secret) = desk.find(&secrets, &local_secret(&reference.name)).await? {
            desk.delete(&secrets, &secret.name_any(), secret.metadata.uid.clone()).await?;
        }
        let api: Api<DynamicObject> = desk.others(&world::servers(ServerKind::LocalServer), &desk.namespace);
        let rest: Vec<&String> = object.finalizers().iter().filter(|own| *own != FINALIZER).collect();
        let patch = json!({"metadata": {"resourceVersion": object.resource_version(), "finalizers": rest}});
        desk.merge(&api, &reference.name, patch).await.map(drop)
    }
}

/// The administrator's password: made once, kept in a Secret, which says where the server listens now.
async fn admin(
    desk: &Desk,
    reference: &ServerRef,
    object: &DynamicObject,
    (dialect, port): (Dialect, u16),
) -> Result<Password, Trouble> {
    let (api, name) = (desk.secrets(), local_secret(&reference.name));
    let hosts = (ADMIN_HOSTS.to_owned(), format!("127.0.0.1:{port}"));
    if let Some(mut secret) = desk.find(&api, &name).await? {
        let is_ours = secret.owner_references().iter().any(|owner| Some(&owner.uid) == object.uid().as_ref());
        let Some(password) = text(&secret, "password").filter(|_| is_ours) else {
            let why = format!("Secret {name} exists and is not this server's: remove it");
            return Err(Trouble::Invalid(why));
        };
        if secret.annotations().get(ADMIN_HOSTS) != Some(&hosts.1) {
            secret.annotations_mut().insert(hosts.0, hosts.1);
            desk.replace(&api, &secret).await?;
        }
        return Ok(Password::new(password));
    }
    let password = Password::make(32);
    let username = match dialect {
        Dialect::Postgresql => "postgres",
        Dialect::Mariadb | Dialect::Mysql => "root",
    };
    let entry = |key: &str, text: &str| (key.to_owned(), ByteString(text.as_bytes().to_vec()));
    let owner = OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: reference.kind.word().to_owned(),
        name: reference.name.clone(),
        uid: object.uid().unwrap_or_default(),
        ..OwnerReference::default()
    };
    let metadata = ObjectMeta {
        name: Some(name),
        annotations: Some(BTreeMap::from([hosts])),
        owner_references: Some(vec![owner]),
        ..ObjectMeta::default()
    };
    let data = BTreeMap::from([entry("username", username), entry("password", password.expose())]);
    let secret = Secret { metadata, data: Some(data), ..Secret::default() };
    desk.create(&api, &secret).await?;
    Ok(password)
}

/// Why it does not run, in its status; written only where it is news, and says whether it was.
async fn tell(
    desk: &Desk,
    reference: &ServerRef,
    object: &DynamicObject,
    trouble: &Trouble,
) -> Result<bool, Trouble> {
    let was = object.data.pointer("/status/conditions/0/message").and_then(serde_json::Value::as_str);
    if was == Some(&trouble.to_string()) {
        return Ok(false);
    }
    let now = super::clock::write(super::clock::now());
    let condition = json!({"type": "Ready", "status": "False", "reason": trouble.reason(),
        "message": trouble.to_string(), "lastTransitionTime": now});
    let api = desk.others(&world::servers(ServerKind::LocalServer), &desk.namespace);
    desk.merge_status(&api, &reference.name, json!({"conditions": [condition]})).await.map(|_| true)
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
