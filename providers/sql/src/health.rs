//! Checks servers periodically: writes their status, and offers them to claims.

use super::api_client::ApiClient;
use super::error::Error;
use super::hold;
use super::identity;
use super::informers::{self, holders};
use super::pool::Health;
use super::reconcile::Provider;
use super::server::{self, Server};
use super::server_finalizer;
use conductor::api::database::ON_SERVER;
use conductor::api::database::logical::{ServerKind, ServerRef};
use conductor::api::database::server::{Offer, ServerStatus};
use conductor::api::names::RENDERED;
use conductor::api::reasons::{ISOLATED, READY, isolated, server as server_reason};
use conductor::api::status::Condition;
use conductor_sql_plan::sql::Dialect;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time as MetaTime;
use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Pause of a process that does not lead.
const STAND_BY: Duration = Duration::from_secs(1);
/// Pause between two checks of a server.
const EVERY: Duration = Duration::from_secs(30);
/// The same while it is not ready.
const EVERY_WHILE_ILL: Duration = Duration::from_secs(3);
/// Most claims on an offered server, unless its offer says otherwise.
const CLAIMS_DEFAULT: i32 = 100;

/// Checks servers until it is dropped, and at once when one changes. Each check is a task of its own: a server that hangs
/// delays no other.
pub(super) async fn run(provider: Provider, mut changed: watch::Receiver<()>) {
    let mut checks = Checks::default();
    loop {
        let pause = match provider.cluster.leadership.leads() {
            true => checks.start(&provider),
            false => STAND_BY,
        };
        tokio::select! {
            Ok(()) = changed.changed() => {
                // Merge simultaneous changes.
                tokio::time::sleep(Duration::from_millis(100)).await;
                checks.due.clear();
            }
            Some(done) = checks.running.join_next(), if !checks.running.is_empty() => checks.finish(done.ok()),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// The servers being checked, and when the others are due.
#[derive(Default)]
struct Checks {
    due: BTreeMap<ServerRef, Instant>,
    in_progress: BTreeSet<ServerRef>,
    running: JoinSet<(ServerRef, bool)>,
}

impl Checks {
    /// Starts the due checks; returns the time until the next.
    fn start(&mut self, provider: &Provider) -> Duration {
        let now = Instant::now();
        let mut next = now + EVERY;
        for (reference, object) in provider.informers.servers().into_iter().filter(runs) {
            let due = self.due.get(&reference).copied().unwrap_or(now);
            if due > now {
                next = next.min(due);
            } else if self.in_progress.insert(reference.clone()) {
                self.due.insert(reference.clone(), now + EVERY);
                let provider = provider.clone();
                self.running.spawn(async move {
                    provider.informers.wait_until_listed().await;
                    let is_well = check_server(&provider, &reference, &object).await;
                    (reference, is_well)
                });
            }
        }
        next - now
    }

    fn finish(&mut self, done: Option<(ServerRef, bool)>) {
        if let Some((reference, is_well)) = done {
            self.in_progress.remove(&reference);
            if !is_well {
                self.due.insert(reference, Instant::now() + EVERY_WHILE_ILL);
            }
        }
    }
}

/// Whether `local` reports a server: one of ours that does not run yet, or is being deleted.
fn runs((reference, object): &(ServerRef, Arc<DynamicObject>)) -> bool {
    let is_running =
        object.data.pointer("/status/port").is_some() && object.metadata.deletion_timestamp.is_none();
    reference.kind == ServerKind::DatabaseServer || is_running
}

/// Checks one server; returns whether it is ready.
async fn check_server(provider: &Provider, reference: &ServerRef, object: &DynamicObject) -> bool {
    if object.metadata.deletion_timestamp.is_some() {
        return release(provider, reference, object).await;
    }
    if let Err(error) = server_finalizer::protect(provider, reference, object).await {
        tracing::debug!(server = reference.name, %error, "it is not protected yet");
        return false;
    }
    let checked = query_server(provider, reference, object).await;
    if let Err(error) =
        report(&provider.cluster, reference, object, checked.as_ref().map(|(_, health)| health)).await
    {
        tracing::debug!(server = reference.name, %error, "its status cannot be written");
    }
    if let Err(error) = &checked {
        identity::warn(provider, reference, object, error).await;
    }
    let is_well = checked.as_ref().is_ok_and(|(_, health)| health.missing.is_empty());
    if let Err(error) = hold::check(provider, reference, object, is_well).await {
        tracing::debug!(server = reference.name, %error, "its resource cannot be looked after yet");
    }
    match checked {
        Ok((server, health)) if health.missing.is_empty() => {
            if let Some(of_offer) = &server.offer
                && let Err(error) = offer(provider, &server, of_offer, &health).await
            {
                tracing::warn!(server = reference.name, %error, "it cannot be offered to claims");
                return false;
            }
            true
        }
        Ok(_) | Err(_) => false,
    }
}

/// Releases a deleted server, or reports what it waits for.
async fn release(provider: &Provider, reference: &ServerRef, object: &DynamicObject) -> bool {
    let left = server_finalizer::leave(provider, reference, object).await;
    if let Err(error) = &left
        && let Err(error) = report(&provider.cluster, reference, object, Err(error)).await
    {
        tracing::debug!(server = reference.name, %error, "its status cannot be written");
    }
    left.is_ok()
}

async fn query_server(
    provider: &Provider,
    reference: &ServerRef,
    object: &DynamicObject,
) -> Result<(Server, Health), Error> {
    let server = server::read(reference, object)?;
    let access = server::access(&provider.cluster, &server).await?;
    let mut session = server::connect(&provider.pool, &server, &access).await?;
    let identity = identity::compare(provider, &server, object, &mut session).await;
    if identity.is_err() {
        session.discard();
    }
    let identity = identity?;
    let health = session.health().await;
    if health.as_ref().is_ok_and(|health| health.missing.is_empty()) {
        identity::record(provider, reference, object, &mut session, identity).await?;
    }
    if !health.as_ref().is_ok_and(|health| health.missing.is_empty()) {
        session.discard();
    }
    Ok((server, health?))
}

async fn report(
    cluster: &ApiClient,
    reference: &ServerRef,
    object: &DynamicObject,
    checked: Result<&Health, &Error>,
) -> Result<(), Error> {
    let was: ServerStatus = informers::read(object, "/status").unwrap_or_default();
    let (status, reason, message) = match checked {
        Ok(health) if health.missing.is_empty() => {
            ("True", server_reason::READY, "databases can be created on it".to_owned())
        }
        Ok(health) => ("False", server_reason::RIGHTS_MISSING, health.missing.join("; ")),
        Err(error) => ("False", error.reason(), error.to_string()),
    };
    let condition = |type_: &str, status: &str, reason: &str, message: String| {
        let before = was.conditions.as_ref().and_then(|all| all.iter().find(|c| c.type_ == type_));
        let since = before.filter(|c| c.status == status).map(|c| c.last_transition_time.clone());
        Condition {
            type_: type_.to_owned(),
            status: status.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: since.unwrap_or_else(|| MetaTime(Timestamp::now())),
            observed_generation: object.metadata.generation,
        }
    };
    let mut conditions = vec![condition(READY, status, reason, message)];
    // What is unknown now keeps its last value.
    let known = checked.ok().filter(|health| health.missing.is_empty()).map(|health| health.open.as_deref());
    match known {
        None => conditions.extend(was.conditions.iter().flatten().filter(|c| c.type_ == ISOLATED).cloned()),
        Some(None) => {}
        Some(Some([])) => {
            let message = "no grant of the server lets every login into databases".to_owned();
            conditions.push(condition(ISOLATED, "True", isolated::NO_OPEN_GRANTS, message));
        }
        Some(Some(open)) => {
            let message =
                format!("every login of the server gets into databases by its grants on {}", open.join("; "));
            conditions.push(condition(ISOLATED, "False", isolated::OPEN_GRANTS, message));
        }
    }
    let mut status = ServerStatus {
        conditions: Some(conditions),
        observed_generation: object.metadata.generation,
        ..was.clone()
    };
    if let Ok(health) = checked {
        status.version = Some(health.version.clone());
    }
    if let Some(health) = checked.ok().filter(|health| health.missing.is_empty()) {
        status.databases = Some(health.databases);
        status.size_mebibytes = Some(health.size_mebibytes);
        // In tens: a value that changes with every check would be a write with every check.
        status.connections_used = Some((health.connections_used + 9) / 10 * 10);
        status.connections_max = Some(health.connections_max);
    }
    if status == was {
        return Ok(());
    }
    let api = cluster.others(&informers::servers(reference.kind), &cluster.namespace);
    // Its identity is written elsewhere, and this copy may be stale.
    status.identity = None;
    let status = serde_json::to_value(&status).unwrap_or_default();
    cluster.merge_status(&api, &reference.name, status).await.map(drop)
}

/// Creates the resource that claims are bound to, and recycles it after its last claim.
async fn offer(provider: &Provider, server: &Server, of: &Offer, health: &Health) -> Result<(), Error> {
    let cluster = &provider.cluster;
    let name = &server.reference.name;
    let named = format!("{}/{name}", server.reference.kind.word());
    let api = cluster.others(&informers::resources(), &cluster.namespace);
    let desired = resource(server, of, health, &named);
    let digest: String =
        Sha256::digest(desired.to_string().as_bytes()).iter().take(8).map(|b| format!("{b:02x}")).collect();
    let found = provider.informers.resource(name);
    let Some(found) = found else {
        return cluster.apply(&api, name, &signed(desired, &digest)).await;
    };
    if found.annotations().get(ON_SERVER) != Some(&named) {
        let why = format!("RelationalDatabase {name} exists and is not on it: rename one of the two");
        return Err(Error::Invalid(why));
    }
    if found.annotations().get(RENDERED) != Some(&digest) {
        cluster.apply(&api, name, &signed(desired, &digest)).await?;
    }
    make_available(provider, &found).await
}

/// Makes a Released resource available again. Its databases are handled one by one, so none needs the whole server withheld.
pub(super) async fn make_available(provider: &Provider, found: &DynamicObject) -> Result<(), Error> {
    let left = holders(found);
    if informers::text(found, "/status/phase") != "Released" {
        return Ok(());
    }
    if left.iter().any(|uid| provider.informers.assignment(uid).is_some()) {
        return Ok(());
    }
    let cluster = &provider.cluster;
    let api = cluster.others(&informers::resources(), &cluster.namespace);
    let change = json!({
        "metadata": {"resourceVersion": found.resource_version(), "uid": found.uid()},
        "spec": {"claimRefs": null},
    });
    let given: Result<DynamicObject, Error> = async {
        let bare = cluster.merge(&api, &found.name_any(), change).await?;
        // Without references it would stay withdrawn, as it would protect a tenant's data elsewhere.
        cluster.merge_status_of(&api, &bare, json!({"phase": "Available"})).await
    }
    .await;
    match given {
        Ok(_) | Err(Error::Conflict) => Ok(()),
        Err(error) => Err(error),
    }
}

fn resource(server: &Server, of: &Offer, health: &Health, named: &str) -> Value {
    let engine = match server.dialect {
        Dialect::Postgresql => "postgresql",
        Dialect::Mariadb | Dialect::Mysql => "mysql",
    };
    let mut capacity = json!(of.capacity.clone().unwrap_or_default());
    if capacity.get("connections").is_none() && health.connections_max > 0 {
        capacity["connections"] = Value::from(health.connections_max.to_string());
    }
    let sharing = of.sharing.clone().map_or_else(|| json!({"maxClaims": CLAIMS_DEFAULT}), |s| json!(s));
    let mut spec = json!({
        "engine": engine, "version": health.version, "capacity": capacity, "sharing": sharing,
        "reclaimPolicy": "Retain",
        "connection": {"secretRef": "login-${claim.metadata.uid}", "sslMode": "${secret.sslMode}"},
    });
    if let Some(class) = &of.class {
        spec["class"] = Value::from(class.clone());
    }
    json!({
        "apiVersion": "storage.conductor.io/v1alpha1", "kind": "RelationalDatabase",
        "metadata": {"name": server.reference.name, "annotations": {ON_SERVER: named},
                     "labels": of.labels.clone().unwrap_or_default()},
        "spec": spec,
    })
}

fn signed(mut object: Value, digest: &str) -> Value {
    object["metadata"]["annotations"][RENDERED] = Value::from(digest);
    object
}
