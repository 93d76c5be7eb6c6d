//! Writes LogicalDatabases: created before anything on the server, kept until everything is removed there, with a finalizer
//! against accidental deletion.

use super::api_client::{ApiClient, record_name};
use super::clock;
use super::error::Error;
use super::informers::{self, Assignment};
use super::reconcile::reclaim_policy;
use super::rotation::{self, Report, Rotation, status_patch};
use super::server::Server;
use conductor::api::database::logical::{
    ClaimOfDatabase, DatabasePhase, LogicalDatabase, LogicalDatabaseSpec, LogicalDatabaseStatus,
    ResourceOfDatabase,
};
use conductor::api::database::{DATABASE_ID, UNDELETE};
use conductor::api::reasons::{logical_database::DROPPING, login::LOGIN_REVOKED};
use conductor_sql_plan::names::Names;
use conductor_sql_plan::policy::chosen;
use conductor_sql_plan::rotation_state::RotationState;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// Kept until everything that the LogicalDatabase describes is removed.
const FINALIZER: &str = "database.conductor.io/record";

/// The state of a database to write into its status.
pub(super) struct StatusReport {
    pub phase: Option<DatabasePhase>,
    pub reason: &'static str,
    pub message: String,
    /// Whether its login rotates in time; unknown where no reconcile completed.
    pub rotation: Option<Rotation>,
}

/// The names of a database and of everything that belongs to it.
pub(super) fn names_of(spec: &LogicalDatabaseSpec) -> Names {
    Names::read(&spec.id, &spec.database_name, spec.user_name.as_deref())
}

/// Creates the LogicalDatabase of a new database.
pub(super) async fn begin(
    cluster: &ApiClient,
    assignment: &Assignment,
    server: &Server,
) -> Result<LogicalDatabase, Error> {
    let Assignment { claim, resource, server: reference } = assignment;
    let id = claim.uid().unwrap_or_default();
    // Invalid names are reported on the LogicalDatabase once it exists.
    let (database, user) = claim.data.get("spec").and_then(|spec| chosen(spec).ok()).unwrap_or_default();
    let names = Names::new(&id, database);
    let spec = LogicalDatabaseSpec {
        claim: claim_of(claim),
        server: reference.clone(),
        resource: ResourceOfDatabase { name: resource.name_any(), uid: resource.uid().unwrap_or_default() },
        database_name: names.database.to_string(),
        user_name: user.map(|user| user.to_string()),
        reclaim_policy: reclaim_policy(server, resource, claim),
        quarantine_minutes: server.policy.quarantine_minutes,
        id: id.clone(),
    };
    let mut record = LogicalDatabase::new(&record_name(&id), spec);
    record.metadata = ObjectMeta {
        name: Some(record_name(&id)),
        finalizers: Some(vec![FINALIZER.to_owned()]),
        labels: Some(BTreeMap::from([(DATABASE_ID.to_owned(), id)])),
        ..ObjectMeta::default()
    };
    cluster.create(&cluster.records(), &record).await
}

fn claim_of(claim: &DynamicObject) -> ClaimOfDatabase {
    ClaimOfDatabase {
        namespace: claim.namespace().unwrap_or_default(),
        name: claim.name_any(),
        uid: claim.uid().unwrap_or_default(),
    }
}

/// Updates what decides the end of its database.
pub(super) async fn follow(
    cluster: &ApiClient,
    record: &LogicalDatabase,
    assignment: &Assignment,
    server: &Server,
) -> Result<LogicalDatabase, Error> {
    let (reclaim_policy, minutes) =
        (reclaim_policy(server, &assignment.resource, &assignment.claim), server.policy.quarantine_minutes);
    let spec = &record.spec;
    if spec.reclaim_policy == reclaim_policy && spec.quarantine_minutes == minutes {
        return Ok(record.clone());
    }
    let change = json!({"spec": {"reclaimPolicy": reclaim_policy, "quarantineMinutes": minutes}});
    cluster.merge(&cluster.records(), &record.name_any(), guarded(record, change)).await
}

/// Hands a restored database over to its new claim.
pub(super) async fn hand_over(
    cluster: &ApiClient,
    record: &DynamicObject,
    assignment: &Assignment,
) -> Result<(), Error> {
    let claim = claim_of(&assignment.claim);
    let resource = &assignment.resource;
    let resource = ResourceOfDatabase { name: resource.name_any(), uid: resource.uid().unwrap_or_default() };
    let (api, name, mut revision) = (cluster.records(), record.name_any(), record.resource_version());
    if record.data.pointer("/status/quarantinedAt").is_some() {
        // First: the next deletion starts a new quarantine, even before this claim was ever served.
        let over: LogicalDatabase = cluster.merge_status(&api, &name, json!({"quarantinedAt": null})).await?;
        if !over.annotations().contains_key(UNDELETE) {
            return Err(Error::Conflict);
        }
        revision = over.resource_version();
    }
    let change = json!({
        "metadata": {"resourceVersion": revision, "annotations": {UNDELETE: null}},
        "spec": {"claim": claim, "resource": resource},
    });
    cluster.merge(&api, &name, change).await.map(drop)
}

/// Records that the database exists on its server.
pub(super) async fn made(cluster: &ApiClient, record: &LogicalDatabase) -> Result<LogicalDatabase, Error> {
    let status = json!({"phase": "Pending", "createdAt": clock::write(clock::now()), "quarantinedAt": null});
    cluster.merge_status(&cluster.records(), &record.name_any(), status).await
}

/// Records that the quarantine begins.
pub(super) async fn start_quarantine(
    cluster: &ApiClient,
    record: &LogicalDatabase,
) -> Result<LogicalDatabase, Error> {
    let now = clock::write(clock::now());
    let status = json!({"quarantinedAt": now, "username": null});
    cluster.merge_status(&cluster.records(), &record.name_any(), status).await
}

/// Records that it is being dropped, on the revision that this was decided on: an earlier request to restore it wins.
pub(super) async fn start_drop(
    cluster: &ApiClient,
    record: &LogicalDatabase,
) -> Result<LogicalDatabase, Error> {
    let message = "it is being dropped, and cannot be restored".to_owned();
    let report = StatusReport {
        phase: Some(DatabasePhase::Dropping),
        reason: DROPPING,
        message,
        rotation: Some(Rotation::None),
    };
    let change = serde_json::to_value(status(record, report, None)).unwrap_or_default();
    cluster.merge_status_of(&cluster.records(), record, change).await
}

/// Records that every login was revoked: the requesting user sees that now, whatever happens to the next login.
pub(super) async fn revoked(
    cluster: &ApiClient,
    record: &LogicalDatabase,
    state: Option<&RotationState>,
) -> Result<LogicalDatabase, Error> {
    let report = StatusReport {
        phase: None,
        reason: LOGIN_REVOKED,
        message: rotation::REVOKED.to_owned(),
        rotation: None,
    };
    let status = status(record, report, state);
    let mut change = serde_json::to_value(&status).unwrap_or_default();
    change["rotatedAt"] = Value::Null;
    cluster.merge_status(&cluster.records(), &record.name_any(), change).await
}

/// Writes the status of a database, if it changed. Returns whether its message changed.
pub(super) async fn report(
    cluster: &ApiClient,
    record: &LogicalDatabase,
    report: StatusReport,
    state: Option<&RotationState>,
) -> Result<bool, Error> {
    let status = status(record, report, state);
    if record.status.as_ref() == Some(&status) {
        return Ok(false);
    }
    fn message(status: &LogicalDatabaseStatus) -> Option<&str> {
        Some(&status.conditions.as_ref()?.first()?.message)
    }
    let is_news = message(&status) != record.status.as_ref().and_then(message);
    let cleared = ["username", "quarantinedAt", "rotatedAt", "rotationDone", "rotationRevoked"];
    let change = status_patch(&status, &cleared);
    cluster
        .merge_status::<LogicalDatabase>(&cluster.records(), &record.name_any(), change)
        .await
        .map(|_| is_news)
}

fn status(
    record: &LogicalDatabase,
    report: StatusReport,
    state: Option<&RotationState>,
) -> LogicalDatabaseStatus {
    let was = record.status.clone().unwrap_or_default();
    let names = names_of(&record.spec);
    let StatusReport { phase, reason, message, rotation } = report;
    let report = Report { is_ready: phase == Some(DatabasePhase::Ready), reason, message, rotation };
    let conditions = report.conditions(was.conditions.as_deref(), None);
    let user = state.and_then(|state| state.active).map(|user| names.user(user).to_string());
    LogicalDatabaseStatus {
        phase: phase.or(was.phase),
        created_at: was.created_at,
        rotated_at: state.and_then(|state| state.rotated_at).map(clock::write),
        username: user,
        // While its state is unknown, it keeps the start of its quarantine.
        quarantined_at: was.quarantined_at.filter(|_| {
            !matches!(phase, Some(DatabasePhase::Ready | DatabasePhase::Retained | DatabasePhase::Pending))
        }),
        rotation_done: state.and_then(|state| state.done.clone()),
        rotation_revoked: state.and_then(|state| state.revoked.clone()),
        conditions: Some(conditions),
    }
}

/// Deletes the LogicalDatabase: nothing is left on the server, or an administrator has taken it over.
pub(super) async fn forget(cluster: &ApiClient, record: &LogicalDatabase) -> Result<(), Error> {
    let (api, name) = (cluster.records(), record.name_any());
    cluster.delete(&api, &name, record.uid()).await?;
    let bare = json!({"metadata": {"uid": record.uid(), "finalizers": null}});
    match cluster.merge(&api, &name, bare).await {
        Err(Error::Api(why)) if why.starts_with("404") => Ok(()),
        other => other.map(drop),
    }
}

fn guarded(record: &LogicalDatabase, mut change: Value) -> Value {
    change["metadata"] = json!({"resourceVersion": record.resource_version()});
    change
}

/// A resource as an owner.
pub(super) fn resource_reference(resource: &ResourceOfDatabase) -> OwnerReference {
    let kind = informers::resources();
    OwnerReference {
        api_version: kind.api_version,
        kind: kind.kind,
        name: resource.name.clone(),
        uid: resource.uid.clone(),
        ..OwnerReference::default()
    }
}
