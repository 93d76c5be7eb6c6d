//! The record of a database: written before anything is made, kept until everything is gone, with a finalizer so that
//! nobody loses it by mistake.

use super::clock;
use super::desk::{Desk, record_name};
use super::pass::policy;
use super::rotation::{self, Report, Rotation};
use super::server::Server;
use super::trouble::Trouble;
use super::world::{self, Assignment};
use conductor::api::database::logical::{
    ClaimOfDatabase, DatabasePhase, LogicalDatabase, LogicalDatabaseSpec, LogicalDatabaseStatus,
    ResourceOfDatabase,
};
use conductor::api::database::{API_VERSION, DATABASE_ID, UNDELETE};
use conductor::api::reasons::ready::LOGIN_REVOKED;
use conductor_sql_plan::ledger::Ledger;
use conductor_sql_plan::names::Names;
use conductor_sql_plan::rules::chosen;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Kept until everything that the record speaks of is gone.
const FINALIZER: &str = "database.conductor.io/record";

/// How a database stands.
pub(super) struct Told {
    pub phase: Option<DatabasePhase>,
    pub reason: &'static str,
    pub message: String,
    /// Whether its login changes in time; not known where no pass came to its end.
    pub rotation: Option<Rotation>,
}

/// What a database and everything about it is called.
pub(super) fn names_of(spec: &LogicalDatabaseSpec) -> Names {
    Names::read(&spec.id, &spec.database_name, spec.user_name.as_deref())
}

/// Writes the record of a new database.
pub(super) async fn begin(
    desk: &Desk,
    assignment: &Assignment,
    server: &Server,
) -> Result<LogicalDatabase, Trouble> {
    let Assignment { claim, resource, server: reference } = assignment;
    let id = claim.uid().unwrap_or_default();
    // What cannot be a name is told once there is a record to tell it on.
    let (database, user) = claim.data.get("spec").and_then(|spec| chosen(spec).ok()).unwrap_or_default();
    let names = Names::new(&id, database);
    let spec = LogicalDatabaseSpec {
        claim: claim_of(claim),
        server: reference.clone(),
        resource: ResourceOfDatabase { name: resource.name_any(), uid: resource.uid().unwrap_or_default() },
        database_name: names.database.to_string(),
        user_name: user.map(|user| user.to_string()),
        reclaim_policy: policy(server, resource, claim),
        quarantine_minutes: server.rules.quarantine_minutes,
        id: id.clone(),
    };
    let mut record = LogicalDatabase::new(&record_name(&id), spec);
    record.metadata = ObjectMeta {
        name: Some(record_name(&id)),
        finalizers: Some(vec![FINALIZER.to_owned()]),
        labels: Some(BTreeMap::from([(DATABASE_ID.to_owned(), id)])),
        ..ObjectMeta::default()
    };
    desk.create(&desk.records(), &record).await
}

fn claim_of(claim: &DynamicObject) -> ClaimOfDatabase {
    ClaimOfDatabase {
        namespace: claim.namespace().unwrap_or_default(),
        name: claim.name_any(),
        uid: claim.uid().unwrap_or_default(),
    }
}

/// Keeps the record in line with what decides the end of its database.
pub(super) async fn follow(
    desk: &Desk,
    record: &LogicalDatabase,
    assignment: &Assignment,
    server: &Server,
) -> Result<LogicalDatabase, Trouble> {
    let (policy, minutes) =
        (policy(server, &assignment.resource, &assignment.claim), server.rules.quarantine_minutes);
    let spec = &record.spec;
    if spec.reclaim_policy == policy && spec.quarantine_minutes == minutes {
        return Ok(record.clone());
    }
    let change = json!({"spec": {"reclaimPolicy": policy, "quarantineMinutes": minutes}});
    desk.merge(&desk.records(), &record.name_any(), guarded(record, change)).await
}

/// Gives a database that was asked back to the claim that came for it.
pub(super) async fn hand_over(
    desk: &Desk,
    record: &DynamicObject,
    assignment: &Assignment,
) -> Result<(), Trouble> {
    let claim = claim_of(&assignment.claim);
    let resource = &assignment.resource;
    let resource = ResourceOfDatabase { name: resource.name_any(), uid: resource.uid().unwrap_or_default() };
    let (api, name, mut revision) = (desk.records(), record.name_any(), record.resource_version());
    if record.data.pointer("/status/quarantinedAt").is_some() {
        // First: the next end has a quarantine of its own, be it before this claim has ever been served.
        let over: LogicalDatabase = desk.merge_status(&api, &name, json!({"quarantinedAt": null})).await?;
        if !over.annotations().contains_key(UNDELETE) {
            return Err(Trouble::Conflict);
        }
        revision = over.resource_version();
    }
    let change = json!({
        "metadata": {"resourceVersion": revision, "annotations": {UNDELETE: null}},
        "spec": {"claim": claim, "resource": resource},
    });
    desk.merge(&api, &name, change).await.map(drop)
}

/// Writes down that the database is there.
pub(super) async fn made(desk: &Desk, record: &LogicalDatabase) -> Result<LogicalDatabase, Trouble> {
    let status = json!({"phase": "Pending", "createdAt": clock::write(clock::now()), "quarantinedAt": null});
    desk.merge_status(&desk.records(), &record.name_any(), status).await
}

/// Writes down that the quarantine begins.
pub(super) async fn start_quarantine(
    desk: &Desk,
    record: &LogicalDatabase,
) -> Result<LogicalDatabase, Trouble> {
    let now = clock::write(clock::now());
    let status = json!({"quarantinedAt": now, "username": null});
    desk.merge_status(&desk.records(), &record.name_any(), status).await
}

/// Writes down that it is being dropped, on the revision that this was decided on: who asked for it back was first.
pub(super) async fn start_drop(desk: &Desk, record: &LogicalDatabase) -> Result<LogicalDatabase, Trouble> {
    let was = record.status.clone().unwrap_or_default();
    let message = "it is being dropped, and cannot be had back".to_owned();
    let told = Told {
        phase: Some(DatabasePhase::Dropping),
        reason: "Dropping",
        message,
        rotation: Some(Rotation::None),
    };
    let change = serde_json::to_value(status(record, was, told, None)).unwrap_or_default();
    desk.merge_status_of(&desk.records(), record, change).await
}

/// Writes down that every login was revoked: whoever asked for it learns that now, whatever becomes of the next login.
pub(super) async fn revoked(
    desk: &Desk,
    record: &LogicalDatabase,
    ledger: Option<&Ledger>,
) -> Result<LogicalDatabase, Trouble> {
    let told =
        Told { phase: None, reason: LOGIN_REVOKED, message: rotation::REVOKED.to_owned(), rotation: None };
    let status = status(record, record.status.clone().unwrap_or_default(), told, ledger);
    let mut change = serde_json::to_value(&status).unwrap_or_default();
    change["rotatedAt"] = Value::Null;
    desk.merge_status(&desk.records(), &record.name_any(), change).await
}

/// Writes down how the database stands, where that is not what is written there. Says whether its message is another.
pub(super) async fn tell(
    desk: &Desk,
    record: &LogicalDatabase,
    told: Told,
    ledger: Option<&Ledger>,
) -> Result<bool, Trouble> {
    let was = record.status.clone().unwrap_or_default();
    let status = status(record, was.clone(), told, ledger);
    if status == was {
        return Ok(false);
    }
    let message = |status: &LogicalDatabaseStatus| {
        let first = status.conditions.as_ref().and_then(|conditions| conditions.first());
        first.map(|condition| condition.message.clone())
    };
    let is_news = message(&status) != message(&was);
    let mut change = serde_json::to_value(&status).unwrap_or_default();
    // What a merge does not name, it keeps.
    for field in ["username", "quarantinedAt", "rotatedAt", "rotationDone", "rotationRevoked"] {
        if change.get(field).is_none() {
            change[field] = Value::Null;
        }
    }
    desk.merge_status::<LogicalDatabase>(&desk.records(), &record.name_any(), change).await.map(|_| is_news)
}

fn status(
    record: &LogicalDatabase,
    was: LogicalDatabaseStatus,
    told: Told,
    ledger: Option<&Ledger>,
) -> LogicalDatabaseStatus {
    let names = names_of(&record.spec);
    let Told { phase, reason, message, rotation } = told;
    let report = Report { is_ready: phase == Some(DatabasePhase::Ready), reason, message, rotation };
    let conditions = report.conditions(was.conditions.as_deref(), None);
    let user = ledger.and_then(|ledger| ledger.active).map(|user| names.user(user).to_string());
    LogicalDatabaseStatus {
        phase: phase.or(was.phase),
        created_at: was.created_at,
        rotated_at: ledger.and_then(|ledger| ledger.rotated_at).map(clock::write),
        username: user,
        // One of which nobody knows how it stands keeps the time that its quarantine is counted from.
        quarantined_at: was.quarantined_at.filter(|_| {
            !matches!(phase, Some(DatabasePhase::Ready | DatabasePhase::Retained | DatabasePhase::Pending))
        }),
        rotation_done: ledger.and_then(|ledger| ledger.done.clone()),
        rotation_revoked: ledger.and_then(|ledger| ledger.revoked.clone()),
        conditions: Some(conditions),
    }
}

/// Removes the record: nothing that it speaks of is left, or an administrator has taken it over.
pub(super) async fn forget(desk: &Desk, record: &LogicalDatabase) -> Result<(), Trouble> {
    let (api, name) = (desk.records(), record.name_any());
    desk.delete(&api, &name, record.uid()).await?;
    let bare = json!({"metadata": {"uid": record.uid(), "finalizers": null}});
    match desk.merge(&api, &name, bare).await {
        Err(Trouble::Api(why)) if why.starts_with("404") => Ok(()),
        other => other.map(drop),
    }
}

fn guarded(record: &LogicalDatabase, mut change: Value) -> Value {
    change["metadata"] = json!({"resourceVersion": record.resource_version()});
    change
}

/// A record as an owner.
pub(super) fn reference(record: &LogicalDatabase) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: "LogicalDatabase".to_owned(),
        name: record.name_any(),
        uid: record.uid().unwrap_or_default(),
        ..OwnerReference::default()
    }
}

/// The same, for one that is known by its copy.
pub(super) fn reference_to(record: &DynamicObject) -> OwnerReference {
    OwnerReference {
        api_version: API_VERSION.to_owned(),
        kind: "LogicalDatabase".to_owned(),
        name: record.name_any(),
        uid: record.uid().unwrap_or_default(),
        ..OwnerReference::default()
    }
}

/// A resource as an owner.
pub(super) fn resource_reference(resource: &ResourceOfDatabase) -> OwnerReference {
    let kind = world::resources();
    OwnerReference {
        api_version: kind.api_version,
        kind: kind.kind,
        name: resource.name.clone(),
        uid: resource.uid.clone(),
        ..OwnerReference::default()
    }
}
