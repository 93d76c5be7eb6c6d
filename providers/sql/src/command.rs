//! The commands of users: rotate the login of a claim or a role, or restore the database of a deleted claim. Each only
//! writes an annotation; the leading controller carries it out, once the server is reachable.

use super::clock;
use super::error::{INVALID, LOGIN_REFUSED};
use super::informers;
use super::reconcile::GONE;
use super::role::roles;
use conductor::api::database::logical::{DatabasePhase, LogicalDatabase, LogicalDatabaseSpec, ServerRef};
use conductor::api::database::role::DatabaseRole;
use conductor::api::database::server::ServerStatus;
use conductor::api::database::{ROTATE, UNDELETE};
use conductor::api::reasons::login::SECRET_CONFLICT;
use conductor::api::status::Condition;
use conductor_sql_plan::plan::UNDELIVERED_HARD;
use kube::api::{Api, ApiResource, DynamicObject, ListParams, Patch, PatchParams};
use kube::{Client, ResourceExt};
use serde::Serialize;
use serde_json::{Value, json};
use std::time::Duration;

/// Pause between two checks of an object.
const POLL: Duration = Duration::from_millis(200);
/// How often a write that requires an unchanged object is tried: controllers write too.
const TRIES: usize = 5;

/// Why a request cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum Refused {
    /// No object fits the request.
    #[error("{0}")]
    NotFound(String),
    /// The API does not answer, or refuses.
    #[error("the API cannot be reached: {0}")]
    Api(#[from] kube::Error),
}

/// A request that was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Note {
    /// The kind of the annotated object.
    pub kind: String,
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// The annotation's key.
    pub annotation: &'static str,
    /// The annotation's value.
    pub value: String,
    /// What holds it up now, from the server's status.
    pub waits_for: Option<String>,
    /// The message of the object's own failing condition, if any.
    #[serde(rename = "told")] // tidy-allow: scripts read the field of the JSON by this name
    pub problem: Option<String>,
}

/// Requests a rotation of the login of a claim's database. A hard one also ends every session and every older password.
///
/// # Errors
/// The claim has no database in use, or the API cannot be reached.
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
            "claim {namespace}/{name} has no database in use on a server: see kubectl get ldb -n {system_namespace}"
        ))
    })?;
    on_record(client, system_namespace, &record, ROTATE, token(is_hard)).await
}

/// Waits until a hard rotation is complete: every older login is dead, and the application holds another.
///
/// # Errors
/// It is not complete in time, with the object's message; the request stays.
pub async fn wait_until_rotated(client: &Client, request: &Note, within: Duration) -> Result<(), Refused> {
    let kind = match request.kind.as_str() {
        "DatabaseRole" => roles(),
        _ => ApiResource::erase::<LogicalDatabase>(&()),
    };
    let api: Api<DynamicObject> = Api::namespaced_with(client.clone(), &request.namespace, &kind);
    let end = tokio::time::Instant::now() + within;
    loop {
        let found = api.get_opt(&request.name).await?;
        if found.as_ref().is_some_and(|found| informers::text(found, "/status/rotationDone") == request.value)
        {
            return Ok(());
        }
        let is_over = tokio::time::Instant::now() >= end;
        match found
            .as_ref()
            .filter(|found| informers::text(found, "/status/rotationRevoked") == request.value)
        {
            // The rest requires a user's change.
            Some(found) if is_over || is_stuck(request, found) => {
                return Err(Refused::NotFound(half_rotated(request, found)));
            }
            None if is_over => return Err(Refused::NotFound(not_rotated(request, found.as_ref(), within))),
            Some(_) | None => {}
        }
        tokio::time::sleep(POLL).await;
    }
}

/// Whether an object reports a problem that only a user can fix. An invalid role has no login; a database has one all the
/// same.
fn is_stuck(request: &Note, found: &DynamicObject) -> bool {
    match informers::text(found, "/status/conditions/0/reason") {
        LOGIN_REFUSED | SECRET_CONFLICT => true,
        INVALID => request.kind == "DatabaseRole",
        _ => false,
    }
}

/// The message where the old login is dead and the application has no other.
fn half_rotated(request: &Note, found: &DynamicObject) -> String {
    let (kind, name) = (&request.kind, &request.name);
    let message = informers::text(found, "/status/conditions/0/message");
    let problem = match message.strip_prefix(UNDELIVERED_HARD) {
        Some(why) => {
            let why = why.trim_start_matches(": ");
            format!("the old login is dead, but its application does not get the new one: {why}")
        }
        None => format!("the old login is dead, and no new login is published yet: {kind} {name}: {message}"),
    };
    format!("{problem}. The request stays: the controller goes on once that is repaired")
}

/// The message where the old login may still work.
fn not_rotated(request: &Note, found: Option<&DynamicObject>, within: Duration) -> String {
    let (kind, name, seconds) = (&request.kind, &request.name, within.as_secs());
    let message = found.map(|found| informers::text(found, "/status/conditions/0/message").to_owned());
    let why = match (&request.waits_for, message) {
        (Some(why), _) => why.clone(),
        (None, Some(message)) => format!("{kind} {name}: {message}"),
        (None, None) => format!("{kind} {name} no longer exists"),
    };
    format!(
        "the old login may still work: the change was not carried out within {seconds} s ({why}). The request stays, and \
         is carried out when a controller can"
    )
}

/// Requests a rotation of a role's login, as [`rotate`] does for a claim.
///
/// # Errors
/// There is no such role, it has no login, or the API cannot be reached.
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
        let problem = status.conditions.and_then(|conditions| Some(conditions.first()?.message.clone()));
        let problem = problem.unwrap_or_else(|| "no controller has reconciled it yet".to_owned());
        return Err(Refused::NotFound(format!(
            "DatabaseRole {namespace}/{name} has no login to rotate: {problem}"
        )));
    };
    let waits_for = trouble_of(client, system_namespace, &made_on.server).await?;
    let on = json!({"uid": role.uid()});
    let note = note(client, &roles(), (namespace, name), on, (ROTATE, token(is_hard))).await?;
    Ok(Note { waits_for, problem: wrong(status.conditions.as_deref()), ..note })
}

/// Requests the database of a deleted claim back: from quarantine, or before it begins, or retained.
///
/// # Errors
/// There is none, its claim exists and uses it, or the API cannot be reached.
pub async fn undelete(client: &Client, system_namespace: &str, claim: (&str, &str)) -> Result<Note, Refused> {
    for _ in 1..TRIES {
        match undelete_as_read(client, system_namespace, claim).await {
            Err(Refused::Api(kube::Error::Api(status))) if status.code == 409 => {}
            request => return request,
        }
    }
    undelete_as_read(client, system_namespace, claim).await
}

/// Writes the request only if the LogicalDatabase is unchanged: one that is dropped meanwhile cannot be restored.
async fn undelete_as_read(
    client: &Client,
    system_namespace: &str,
    (namespace, name): (&str, &str),
) -> Result<Note, Refused> {
    let claims: Api<DynamicObject> = Api::namespaced_with(client.clone(), namespace, &informers::claims());
    let claim = claims.get_opt(name).await?.filter(|claim| claim.metadata.deletion_timestamp.is_none());
    let in_use = claim.and_then(|claim| claim.uid());
    let records = records_of(client, system_namespace, (namespace, name)).await?;
    let (theirs, gone): (Vec<_>, Vec<_>) =
        records.into_iter().partition(|record| Some(&record.spec.claim.uid) == in_use.as_ref());
    let newest = gone.last().and_then(find_end);
    let found = gone.into_iter().rev().find(|record| find_end(record).is_none());
    let Some(record) = found else {
        return Err(Refused::NotFound(match (newest, theirs.is_empty()) {
            (Some(why), true) => format!("the database of claim {namespace}/{name} {why}"),
            (_, false) => {
                format!("claim {namespace}/{name} exists and has its database: there is nothing to restore")
            }
            (None, true) => format!(
                "no database of claim {namespace}/{name} is recorded: a dropped database cannot be restored; see kubectl get ldb -n {system_namespace}"
            ),
        }));
    };
    if phase(&record) == Some(DatabasePhase::Quarantined) {
        let all: Api<LogicalDatabase> = Api::namespaced(client.clone(), system_namespace);
        if find_rival(&record, &all.list(&ListParams::default()).await?.items).is_some() {
            return Err(Refused::NotFound(name_taken(&record)));
        }
    }
    on_record(client, system_namespace, &record, UNDELETE, "true".to_owned()).await
}

fn token(is_hard: bool) -> String {
    format!("{}-{}", if is_hard { "hard" } else { "soft" }, clock::now().0)
}

/// The database in use that has taken the name of one in quarantine.
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
         Nothing was changed; have an administrator remove or rename that one first",
        claim.namespace,
        claim.name,
        server.kind.word(),
        server.name
    )
}

/// Why a database cannot be restored.
fn find_end(record: &LogicalDatabase) -> Option<&'static str> {
    let condition = record.status.as_ref().and_then(|status| status.conditions.as_ref()?.first());
    match (phase(record), condition.map(|condition| condition.reason.as_str())) {
        (Some(DatabasePhase::Dropping), _) => Some("is being dropped: it cannot be restored"),
        (_, Some(GONE)) => {
            Some("no longer exists on the server: there is nothing to restore, unless it is restored there")
        }
        _ => None,
    }
}

fn phase(record: &LogicalDatabase) -> Option<DatabasePhase> {
    record.status.as_ref().and_then(|status| status.phase)
}

/// The LogicalDatabases of a claim that were created on a server, the newest last.
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
    // A database to be restored is not ready, which is no problem.
    let problem = match key {
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
            "the database is retained, and no claim can be bound to it: {kind} {of} is being deleted and takes no claims. Copy its \
             data to another database; deleting LogicalDatabase {name} then releases the server, with the data"
        )));
    }
    Ok(Note { waits_for, problem, ..note })
}

/// Whether a server is being deleted.
async fn is_going(client: &Client, system_namespace: &str, server: &ServerRef) -> Result<bool, Refused> {
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), system_namespace, &informers::servers(server.kind));
    Ok(api.get_opt(&server.name).await?.is_some_and(|found| found.metadata.deletion_timestamp.is_some()))
}

/// The message of an object's first failing condition.
fn wrong(conditions: Option<&[Condition]>) -> Option<String> {
    let wrong = conditions?.iter().find(|condition| condition.status != "True")?;
    Some(wrong.message.clone())
}

/// The problem that a server reports, if any.
async fn trouble_of(
    client: &Client,
    system_namespace: &str,
    server: &ServerRef,
) -> Result<Option<String>, Refused> {
    let (kind, name) = (server.kind.word(), &server.name);
    let api: Api<DynamicObject> =
        Api::namespaced_with(client.clone(), system_namespace, &informers::servers(server.kind));
    let Some(found) = api.get_opt(name).await? else {
        return Ok(Some(format!("{kind} {name} does not exist: create it again")));
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
    Ok(Note { kind: kind.kind.clone(), namespace, name, annotation, value, waits_for: None, problem: None })
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
