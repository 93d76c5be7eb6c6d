//! What people ask by hand: another login now, for a claim or for a role, or a database back whose claim is gone. All of
//! them only leave a note; whoever leads carries it out, and where a server is away, when it is back.

use super::clock;
use super::pass::GONE;
use super::role::roles;
use super::trouble::{INVALID, LOGIN_REFUSED};
use super::world;
use conductor::api::database::logical::{DatabasePhase, LogicalDatabase, LogicalDatabaseSpec, ServerRef};
use conductor::api::database::role::DatabaseRole;
use conductor::api::database::server::ServerStatus;
use conductor::api::database::{ROTATE, UNDELETE};
use conductor::api::reasons::ready::SECRET_CONFLICT;
use conductor::api::status::Condition;
use conductor_sql_plan::plan::UNDELIVERED_HARD;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Between two looks at an object that is waited for.
const POLL: Duration = Duration::from_millis(200);
/// How often a note that has to land on what was read is tried: controllers write too.
const TRIES: usize = 5;

/// Why it cannot be asked.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// Nothing fits.
    #[error("{0}")]
    NotFound(String),
    /// The API does not answer, or refuses.
    #[error("the cluster cannot be asked: {0}")]
    Api(#[from] kube::Error),
}

/// What was asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// The kind of the object that the note is on.
    pub kind: String,
    /// Where that is.
    pub namespace: String,
    /// What it is called.
    pub name: String,
    /// The annotation.
    pub annotation: &'static str,
    /// What it says.
    pub value: String,
    /// Why it cannot be carried out right now, in the words of the server's status.
    pub waits_for: Option<String>,
    /// What the object itself says is wrong, where something is.
    pub told: Option<String>,
}

/// Asks for another login for a claim's database. A hard change also ends every session and every older password.
///
/// # Errors
/// The claim has no database that is in use, or the cluster cannot be asked.
pub async fn rotate(
    client: &Client,
    system_namespace: &str,
    (namespace, name): (&str, &str),
    is_hard: bool,
) -> Result<Note, Refused> {
    let records = records_of(client, system_namespace, (namespace, name)).await?;
    let record = records.into_iter().rev().find(|record| phase(record) == Some(DatabasePhase::Ready));
    let record = record.ok_or_else(|| {
        Refused::NotFound(format!(
            "claim {namespace}/{name} has no database in use on a server of Conductor's: see kubectl get ldb -n {system_namespace}"
        ))
    })?;
    on_record(client, system_namespace, &record, ROTATE, token(is_hard)).await
}

/// Waits until a hard change of a login was carried out: every older login is dead, and its application holds another.
///
/// # Errors
/// It was not carried out in time, or not to its end, with what its object says; the note stays.
pub async fn wait_until_rotated(client: &Client, asked: &Note, within: Duration) -> Result<(), Refused> {
    let kind = match asked.kind.as_str() {
        "DatabaseRole" => roles(),
        _ => ApiResource::erase::<LogicalDatabase>(&()),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &asked.namespace, &kind);
    let end = tokio::time::Instant::now() + within;
    loop {
        let found = api.get_opt(&asked.name).await?;
        if found.as_ref().is_some_and(|found| world::text(found, "/status/rotationDone") == asked.value) {
            return Ok(());
        }
        let is_over = tokio::time::Instant::now() >= end;
        match found.as_ref().filter(|found| world::text(found, "/status/rotationRevoked") == asked.value) {
            // The rest does not happen by itself.
            Some(found) if is_over || is_stuck(asked, found) => {
                return Err(Refused::NotFound(half_rotated(asked, found)));
            }
            None if is_over => return Err(Refused::NotFound(not_rotated(asked, found.as_ref(), within))),
            Some(_) | None => {}
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Whether an object says that something is in the way that only people can end. A role that cannot be honoured has no
/// login; a database has one all the same.
fn is_stuck(asked: &Note, found: &DynamicObject) -> bool {
    match world::text(found, "/status/conditions/0/reason") {
        LOGIN_REFUSED | SECRET_CONFLICT => true,
        INVALID => asked.kind == "DatabaseRole",
        _ => false,
    }
}

/// What the user must know: the old login is dead, and its application has no other.
fn half_rotated(asked: &Note, found: &DynamicObject) -> String {
    let (kind, name) = (&asked.kind, &asked.name);
    let message = world::text(found, "/status/conditions/0/message");
    let told = match message.strip_prefix(UNDELIVERED_HARD) {
        Some(why) => {
            let why = why.trim_start_matches(": ");
            format!("the old login is dead, but its application does not get the new one: {why}")
        }
        None => format!("the old login is dead, and no new login is published yet: {kind} {name}: {message}"),
    };
    format!("{told}. The request stays: the controller goes on once that is repaired")
}

/// What the user must know: the old login may still work.
fn not_rotated(asked: &Note, found: Option<&DynamicObject>, within: Duration) -> String {
    let (kind, name, seconds) = (&asked.kind, &asked.name, within.as_secs());
    let message = found.map(|found| world::text(found, "/status/conditions/0/message").to_owned());
    let why = match (&asked.waits_for, message) {
        (Some(why), _) => why.clone(),
        (None, Some(message)) => format!("{kind} {name}: {message}"),
        (None, None) => format!("{kind} {name} does not exist any more"),
    };
    format!(
        "the old login may still work: the change was not carried out within {seconds} s ({why}). The request stays, and \
         is carried out when a controller can"
    )
}

/// Asks for another login for a role, as [`rotate`] does for a claim.
///
/// # Errors
/// There is no such role, it has no login, or the cluster cannot be asked.
pub async fn rotate_role(
    client: &Client,
    system_namespace: &str,
    (namespace, name): (&str, &str),
    is_hard: bool,
) -> Result<Note, Refused> {
    let api: Api<DatabaseRole> = Api::namespaced(client.clone(), namespace);
    let role = api.get_opt(name).await?.ok_or_else(|| {
        let see = format!("see kubectl get dbrole -n {namespace}");
        Refused::NotFound(format!("there is no DatabaseRole {namespace}/{name}: {see}"))
    })?;
    let status = role.status.clone().unwrap_or_default();
    let (Some(made_on), Some(_)) = (&status.made_on, &status.username) else {
        let told =
            status.conditions.unwrap_or_default().into_iter().next().map(|condition| condition.message);
        let told = told.unwrap_or_else(|| "no controller has looked at it yet".to_owned());
        return Err(Refused::NotFound(format!(
            "DatabaseRole {namespace}/{name} has no login to change: {told}"
        )));
    };
    let waits_for = trouble_of(client, system_namespace, &made_on.server).await?;
    let on = json!({"uid": role.uid()});
    let note = note(client, &roles(), (namespace, name), on, (ROTATE, token(is_hard))).await?;
    Ok(Note { waits_for, told: wrong(status.conditions.as_deref()), ..note })
}

/// Asks for the database of a claim that is gone back: from quarantine, or before it has begun, or from what is kept.
///
/// # Errors
/// There is none, its claim is there and has it, or the cluster cannot be asked.
pub async fn undelete(client: &Client, system_namespace: &str, claim: (&str, &str)) -> Result<Note, Refused> {
    for _ in 1..TRIES {
        match undelete_as_read(client, system_namespace, claim).await {
            Err(Refused::Api(kube::Error::Api(status))) if status.code == 409 => {}
            asked => return asked,
        }
    }
    undelete_as_read(client, system_namespace, claim).await
}

/// The note lands on the record as it was read, or not at all: one that is dropped meanwhile is not asked back.
async fn undelete_as_read(
    client: &Client,
    system_namespace: &str,
    (namespace, name): (&str, &str),
) -> Result<Note, Refused> {
    let claims: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &world::claims());
    let claim = claims.get_opt(name).await?.filter(|claim| claim.metadata.deletion_timestamp.is_none());
    let in_use = claim.and_then(|claim| claim.uid());
    let records = records_of(client, system_namespace, (namespace, name)).await?;
    let (theirs, gone): (Vec<_>, Vec<_>) =
        records.into_iter().partition(|record| Some(&record.spec.claim.uid) == in_use.as_ref());
    let newest = gone.last().and_then(find_end);
    let found = gone.into_iter().rev().find(|record| find_end(record).is_none());
    match (found, theirs.is_empty()) {
        (Some(record), _) if phase(&record) == Some(DatabasePhase::Quarantined) => {
            let all: Api<LogicalDatabase> = Api::namespaced(client.clone(), system_namespace);
            match find_rival(&record, &all.list(&ListParams::default()).await?.items) {
                Some(_) => Err(Refused::NotFound(name_taken(&record))),
                None => on_record(client, system_namespace, &record, UNDELETE, "true".to_owned()).await,
            }
        }
        (Some(record), _) => on_record(client, system_namespace, &record, UNDELETE, "true".to_owned()).await,
        (None, true) if newest.is_some() => {
            let why = newest.unwrap_or_default();
            Err(Refused::NotFound(format!("the database of claim {namespace}/{name} {why}")))
        }
        (None, false) => Err(Refused::NotFound(format!(
            "claim {namespace}/{name} is there and has its database: there is nothing to have back"
        ))),
        (None, true) => Err(Refused::NotFound(format!(
            "no database of claim {namespace}/{name} is on record: what is dropped is gone; see kubectl get ldb -n {system_namespace}"
        ))),
    }
}

fn token(is_hard: bool) -> String {
    format!("{}-{}", if is_hard { "hard" } else { "soft" }, clock::now().0)
}

/// The database in use that has the name of one in quarantine: only one of them can have it.
fn find_rival<'a>(record: &LogicalDatabase, all: &'a [LogicalDatabase]) -> Option<&'a LogicalDatabase> {
    let spec = &record.spec;
    all.iter().find(|other| {
        let is_made = other.status.as_ref().is_some_and(|status| status.created_at.is_some());
        let is_away = matches!(phase(other), Some(DatabasePhase::Quarantined));
        let is_same = other.spec.server == spec.server && other.spec.database_name == spec.database_name;
        is_same && other.spec.id != spec.id && is_made && !is_away
    })
}

fn name_taken(record: &LogicalDatabase) -> String {
    let LogicalDatabaseSpec { server, database_name, claim, .. } = &record.spec;
    format!(
        "the database of claim {}/{} cannot be restored: its name {database_name} on {} {} is in use by another database. \
         Nothing was changed; ask an administrator to remove or rename that one first",
        claim.namespace,
        claim.name,
        server.kind.word(),
        server.name
    )
}

/// Why a database cannot be had back.
fn find_end(record: &LogicalDatabase) -> Option<&'static str> {
    let condition = record.status.as_ref().and_then(|status| status.conditions.as_ref()?.first());
    match (phase(record), condition.map(|condition| condition.reason.as_str())) {
        (Some(DatabasePhase::Dropping), _) => Some("is being dropped: it cannot be had back"),
        (_, Some(GONE)) => {
            Some("is gone from the server: there is nothing to have back, unless it is restored there")
        }
        _ => None,
    }
}

fn phase(record: &LogicalDatabase) -> Option<DatabasePhase> {
    record.status.as_ref().and_then(|status| status.phase)
}

/// The records of a claim's databases that have been there, the newest last.
async fn records_of(
    client: &Client,
    system_namespace: &str,
    (namespace, name): (&str, &str),
) -> Result<Vec<LogicalDatabase>, Refused> {
    let api: Api<LogicalDatabase> = Api::namespaced(client.clone(), system_namespace);
    let records = api.list(&ListParams::default()).await?;
    let created_at = |record: &LogicalDatabase| record.status.as_ref().and_then(|s| s.created_at.clone());
    let is_meant = |record: &LogicalDatabase| {
        let claim = &record.spec.claim;
        claim.namespace == namespace && claim.name == name && created_at(record).is_some()
    };
    let mut found: Vec<LogicalDatabase> = records.into_iter().filter(is_meant).collect();
    found.sort_by_key(created_at);
    Ok(found)
}

async fn on_record(
    client: &Client,
    system_namespace: &str,
    record: &LogicalDatabase,
    key: &'static str,
    value: String,
) -> Result<Note, Refused> {
    let server = &record.spec.server;
    let waits_for = trouble_of(client, system_namespace, server).await?;
    let (kind, name) = (ApiResource::erase::<LogicalDatabase>(&()), record.name_any());
    let mut on = json!({"uid": record.uid()});
    // One that is asked back is not ready, and that is nothing that is wrong with it.
    let told = match key {
        UNDELETE => {
            on["resourceVersion"] = json!(record.resource_version());
            None
        }
        _ => record.status.as_ref().and_then(|status| wrong(status.conditions.as_deref())),
    };
    let note = note(client, &kind, (system_namespace, &name), on, (key, value)).await?;
    if key == UNDELETE && is_going(client, system_namespace, server).await? {
        let (kind, of) = (server.kind.word(), &server.name);
        return Err(Refused::NotFound(format!(
            "the database is kept, and no claim can be bound to it: {kind} {of} is being deleted and takes no claims. Copy its \
             data to another database; deleting LogicalDatabase {name} then lets the server go, with the data"
        )));
    }
    Ok(Note { waits_for, told, ..note })
}

/// Whether a server is being deleted.
async fn is_going(client: &Client, system_namespace: &str, server: &ServerRef) -> Result<bool, Refused> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), system_namespace, &world::servers(server.kind));
    Ok(api.get_opt(&server.name).await?.is_some_and(|found| found.metadata.deletion_timestamp.is_some()))
}

/// What an object says is wrong with it.
fn wrong(conditions: Option<&[Condition]>) -> Option<String> {
    let wrong = conditions?.iter().find(|condition| condition.status != "True")?;
    Some(wrong.message.clone())
}

/// What a server says is wrong with it, where something is.
async fn trouble_of(
    client: &Client,
    system_namespace: &str,
    server: &ServerRef,
) -> Result<Option<String>, Refused> {
    let (kind, name) = (server.kind.word(), &server.name);
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), system_namespace, &world::servers(server.kind));
    let Some(found) = api.get_opt(name).await? else {
        return Ok(Some(format!("there is no {kind} {name}: make it again")));
    };
    let status: ServerStatus =
        found.data.get("status").and_then(|s| serde_json::from_value(s.clone()).ok()).unwrap_or_default();
    Ok(wrong(status.conditions.as_deref()).map(|message| format!("{kind} {name}: {message}")))
}

async fn note(
    client: &Client,
    kind: &ApiResource,
    (namespace, name): (&str, &str),
    mut on: Value,
    (annotation, value): (&'static str, String),
) -> Result<Note, Refused> {
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, kind);
    on["annotations"] = json!({annotation: &value});
    api.patch(name, &PatchParams::default(), &Patch::Merge(json!({"metadata": on}))).await?;
    let (namespace, name) = (namespace.to_owned(), name.to_owned());
    Ok(Note { kind: kind.kind.clone(), namespace, name, annotation, value, waits_for: None, told: None })
}

#[cfg(test)]
mod tests {
    use super::*;
    use conductor::api::database::logical::LogicalDatabaseStatus;

    #[test]
    fn a_database_is_not_restored_over_one_that_has_its_name() {
        let record = |id: &str, server: &str, name: &str, phase: DatabasePhase, is_made: bool| {
            let mut spec = LogicalDatabaseSpec { id: id.to_owned(), ..LogicalDatabaseSpec::default() };
            (spec.server.name, spec.database_name) = (server.to_owned(), name.to_owned());
            let mut record = LogicalDatabase::new(id, spec);
            let created_at = is_made.then(|| "2026-01-01T00:00:00Z".to_owned());
            record.status = Some(LogicalDatabaseStatus {
                phase: Some(phase),
                created_at,
                ..LogicalDatabaseStatus::default()
            });
            record
        };
        let (away, ready) = (DatabasePhase::Quarantined, DatabasePhase::Ready);
        let kept = record("1", "main", "orders", away, true);
        for (other, is_rival) in [
            (kept.clone(), false),
            (record("2", "main", "orders", ready, true), true),
            (record("2", "main", "orders", DatabasePhase::Retained, true), true),
            (record("2", "main", "orders", DatabasePhase::Pending, false), false),
            (record("2", "main", "orders", away, true), false),
            (record("2", "other", "orders", ready, true), false),
            (record("2", "main", "bills", ready, true), false),
        ] {
            assert_eq!(find_rival(&kept, std::slice::from_ref(&other)).is_some(), is_rival, "{other:?}");
        }
    }
}
