//! Servers looked at, again and again: their status says how they are, and what they offer is there for claims.

use super::desk::Desk;
use super::hold;
use super::identity;
use super::leaving;
use super::pass::Provider;
use super::pool::Health;
use super::server::{self, Server};
use super::trouble::Trouble;
use super::world::{self, holders};
use conductor::api::database::ON_SERVER;
use conductor::api::database::logical::{ServerKind, ServerRef};
use conductor::api::database::server::{Offer, ServerStatus};
use conductor::api::names::RENDERED;
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

/// How long one who does not lead waits before it asks again.
const STAND_BY: Duration = Duration::from_secs(1);
/// How often a server is looked at.
const EVERY: Duration = Duration::from_secs(30);
/// The same while it is not well.
const EVERY_WHILE_ILL: Duration = Duration::from_secs(3);
/// The condition that reports whether a server's own grants keep tenants apart.
const ISOLATED: &str = "Isolated";
/// Claims on an offered server where its offer does not say.
const CLAIMS_DEFAULT: i32 = 100;

/// Looks at servers until it is dropped; at once where one changes. Each is looked at on its own: one that hangs delays
/// nobody's look but its own.
pub(super) async fn run(provider: Provider, mut changed: watch::Receiver<()>) {
    let mut rounds = Rounds::default();
    loop {
        let pause = match provider.desk.leadership.leads() {
            true => rounds.start(&provider),
            false => STAND_BY,
        };
        tokio::select! {
            Ok(()) = changed.changed() => {
                // Several changes at once are one.
                tokio::time::sleep(Duration::from_millis(100)).await;
                rounds.due.clear();
            }
            Some(done) = rounds.looks.join_next(), if !rounds.looks.is_empty() => rounds.note(done.ok()),
            () = tokio::time::sleep(pause) => {}
        }
    }
}

/// Who is being looked at, and when the others are next.
#[derive(Default)]
struct Rounds {
    due: BTreeMap<ServerRef, Instant>,
    looked_at: BTreeSet<ServerRef>,
    looks: JoinSet<(ServerRef, bool)>,
}

impl Rounds {
    /// Looks at whoever is due; says for how long nobody is.
    fn start(&mut self, provider: &Provider) -> Duration {
        let now = Instant::now();
        let mut next = now + EVERY;
        for (reference, object) in provider.world.servers().into_iter().filter(runs) {
            let due = self.due.get(&reference).copied().unwrap_or(now);
            if due > now {
                next = next.min(due);
            } else if self.looked_at.insert(reference.clone()) {
                self.due.insert(reference.clone(), now + EVERY);
                let provider = provider.clone();
                self.looks.spawn(async move {
                    provider.world.wait_until_listed().await;
                    let is_well = look(&provider, &reference, &object).await;
                    (reference, is_well)
                });
            }
        }
        next - now
    }

    fn note(&mut self, done: Option<(ServerRef, bool)>) {
        if let Some((reference, is_well)) = done {
            self.looked_at.remove(&reference);
            if !is_well {
                self.due.insert(reference, Instant::now() + EVERY_WHILE_ILL);
            }
        }
    }
}

/// One of ours that does not run yet, or is going, is told of by whoever starts and ends it.
fn runs((reference, object): &(ServerRef, Arc<DynamicObject>)) -> bool {
    let is_running =
        object.data.pointer("/status/port").is_some() && object.metadata.deletion_timestamp.is_none();
    reference.kind == ServerKind::DatabaseServer || is_running
}

/// Looks at one; says whether it is well.
async fn look(provider: &Provider, reference: &ServerRef, object: &DynamicObject) -> bool {
    if object.metadata.deletion_timestamp.is_some() {
        return bid_farewell(provider, reference, object).await;
    }
    if let Err(trouble) = leaving::protect(provider, reference, object).await {
        tracing::debug!(server = reference.name, %trouble, "it is not protected yet");
        return false;
    }
    let asked = ask(provider, reference, object).await;
    if let Err(trouble) =
        tell(&provider.desk, reference, object, asked.as_ref().map(|(_, health)| health)).await
    {
        tracing::debug!(server = reference.name, %trouble, "its status cannot be written");
    }
    if let Err(trouble) = &asked {
        identity::warn(provider, reference, object, trouble).await;
    }
    let is_well = asked.as_ref().is_ok_and(|(_, health)| health.missing.is_empty());
    if let Err(trouble) = hold::look(provider, reference, object, is_well).await {
        tracing::debug!(server = reference.name, %trouble, "its resource cannot be looked after yet");
    }
    match asked {
        Ok((server, health)) if health.missing.is_empty() => {
            if let Some(of_offer) = &server.offer
                && let Err(trouble) = offer(provider, &server, of_offer, &health).await
            {
                tracing::warn!(server = reference.name, %trouble, "it cannot be offered to claims");
                return false;
            }
            true
        }
        Ok(_) | Err(_) => false,
    }
}

/// One that is deleted goes, or says what it waits for.
async fn bid_farewell(provider: &Provider, reference: &ServerRef, object: &DynamicObject) -> bool {
    let left = leaving::leave(provider, reference, object).await;
    if let Err(trouble) = &left
        && let Err(trouble) = tell(&provider.desk, reference, object, Err(trouble)).await
    {
        tracing::debug!(server = reference.name, %trouble, "its status cannot be written");
    }
    left.is_ok()
}

async fn ask(
    provider: &Provider,
    reference: &ServerRef,
    object: &DynamicObject,
) -> Result<(Server, Health), Trouble> {
    let server = server::read(reference, object)?;
    let access = server::access(&provider.desk, &server).await?;
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

async fn tell(
    desk: &Desk,
    reference: &ServerRef,
    object: &DynamicObject,
    asked: Result<&Health, &Trouble>,
) -> Result<(), Trouble> {
    let was: ServerStatus =
        object.data.get("status").and_then(|s| serde_json::from_value(s.clone()).ok()).unwrap_or_default();
    let (word, reason, message) = match asked {
        Ok(health) if health.missing.is_empty() => {
            ("True", "Ready", "databases can be made on it".to_owned())
        }
        Ok(health) => ("False", "RightsMissing", health.missing.join("; ")),
        Err(trouble) => ("False", trouble.reason(), trouble.to_string()),
    };
    let condition = |type_: &str, word: &str, reason: &str, message: String| {
        let before = was.conditions.as_ref().and_then(|all| all.iter().find(|c| c.type_ == type_));
        let since = before.filter(|c| c.status == word).map(|c| c.last_transition_time.clone());
        Condition {
            type_: type_.to_owned(),
            status: word.to_owned(),
            reason: reason.to_owned(),
            message,
            last_transition_time: since.unwrap_or_else(|| MetaTime(Timestamp::now())),
            observed_generation: object.metadata.generation,
        }
    };
    let mut conditions = vec![condition("Ready", word, reason, message)];
    // What is not known now is as it was known last.
    let known = asked.ok().filter(|health| health.missing.is_empty()).map(|health| health.open.as_deref());
    match known {
        None => conditions.extend(was.conditions.iter().flatten().filter(|c| c.type_ == ISOLATED).cloned()),
        Some(None) => {}
        Some(Some([])) => {
            let message = "no grant of the server lets every login into databases".to_owned();
            conditions.push(condition(ISOLATED, "True", "NoOpenGrants", message));
        }
        Some(Some(open)) => {
            let message =
                format!("every login of the server gets into databases by its grants on {}", open.join("; "));
            conditions.push(condition(ISOLATED, "False", "OpenGrants", message));
        }
    }
    let mut status = ServerStatus {
        conditions: Some(conditions),
        observed_generation: object.metadata.generation,
        ..was.clone()
    };
    if let Ok(health) = asked {
        status.version = Some(health.version.clone());
    }
    if let Some(health) = asked.ok().filter(|health| health.missing.is_empty()) {
        status.databases = Some(health.databases);
        status.size_mebibytes = Some(health.size_mebibytes);
        // In tens: a figure that moves with every look would be a write with every look.
        status.connections_used = Some((health.connections_used + 9) / 10 * 10);
        status.connections_max = Some(health.connections_max);
    }
    if status == was {
        return Ok(());
    }
    let api = desk.others(&world::servers(reference.kind), &desk.namespace);
    // Its identity is written elsewhere, and what was read of it may be older.
    status.identity = None;
    let status = serde_json::to_value(&status).unwrap_or_default();
    desk.merge_status(&api, &reference.name, status).await.map(drop)
}

/// Makes the resource that claims are bound to, and gives it out again when the last of them is gone.
async fn offer(provider: &Provider, server: &Server, of: &Offer, health: &Health) -> Result<(), Trouble> {
    let desk = &provider.desk;
    let name = &server.reference.name;
    let named = format!("{}/{name}", server.reference.kind.word());
    let api = desk.others(&world::resources(), &desk.namespace);
    let wanted = resource(server, of, health, &named);
    let digest: String =
        Sha256::digest(wanted.to_string().as_bytes()).iter().take(8).map(|b| format!("{b:02x}")).collect();
    let found = provider.world.resource(name);
    let Some(found) = found else {
        return desk.apply(&api, name, &signed(wanted, &digest)).await;
    };
    if found.annotations().get(ON_SERVER) != Some(&named) {
        let why = format!("RelationalDatabase {name} exists and is not on it: rename one of the two");
        return Err(Trouble::Invalid(why));
    }
    if found.annotations().get(RENDERED) != Some(&digest) {
        desk.apply(&api, name, &signed(wanted, &digest)).await?;
    }
    give_out_again(provider, &found).await
}

/// A resource that its last claim has left is Released. Its databases are dealt with one by one, so the server itself
/// has nothing of them left to protect.
pub(super) async fn give_out_again(provider: &Provider, found: &DynamicObject) -> Result<(), Trouble> {
    let left = holders(found);
    if world::text(found, "/status/phase") != "Released" {
        return Ok(());
    }
    if left.iter().any(|uid| provider.world.assignment(uid).is_some()) {
        return Ok(());
    }
    let desk = &provider.desk;
    let api = desk.others(&world::resources(), &desk.namespace);
    let change = json!({
        "metadata": {"resourceVersion": found.resource_version(), "uid": found.uid()},
        "spec": {"claimRefs": null},
    });
    let given: Result<DynamicObject, Trouble> = async {
        let bare = desk.merge(&api, &found.name_any(), change).await?;
        // Without references it would stay withdrawn: elsewhere there would be somebody's data in it.
        desk.merge_status_of(&api, &bare, json!({"phase": "Available"})).await
    }
    .await;
    match given {
        Ok(_) | Err(Trouble::Conflict) => Ok(()),
        Err(trouble) => Err(trouble),
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
