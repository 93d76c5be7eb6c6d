//! `LogicalDatabase`: the record of one database that was made for a claim on a shared server. It is written before
//! the first statement and outlives the claim, so that nothing that was made is ever forgotten. No password is in it.

use crate::api::common::{ReclaimPolicy, leave_description_to_field};
use crate::api::status::{Condition, conditions_schema};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Whose database it is, where, and what becomes of it. Written by Conductor.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "database.conductor.io",
    version = "v1alpha1",
    kind = "LogicalDatabase",
    plural = "logicaldatabases",
    singular = "logicaldatabase",
    shortname = "ldb",
    category = "conductor",
    namespaced,
    status = "LogicalDatabaseStatus",
    derive = "PartialEq",
    doc = "The record of a database that Conductor made for a claim on a server. Lives in the system namespace; written by Conductor.",
    printcolumn(name = "Server", type_ = "string", json_path = ".spec.server.name"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Claim-Namespace", type_ = "string", json_path = ".spec.claim.namespace"),
    printcolumn(name = "Claim", type_ = "string", json_path = ".spec.claim.name"),
    printcolumn(name = "Database", type_ = "string", json_path = ".spec.databaseName"),
    printcolumn(name = "Rotated", type_ = "date", json_path = ".status.rotatedAt"),
    printcolumn(name = "Reclaim", type_ = "string", json_path = ".spec.reclaimPolicy", priority = 1),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct LogicalDatabaseSpec {
    /// What names and ownership marks on the server are made of: the UID of the claim that it was made for.
    #[schemars(length(min = 1, max = 128))]
    pub id: String,
    /// The claim that uses it.
    pub claim: ClaimOfDatabase,
    /// The server that it is on.
    pub server: ServerRef,
    /// The RelationalDatabase that its claim is bound to.
    pub resource: ResourceOfDatabase,
    /// Its name on the server.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z][a-z0-9_]*$"))]
    pub database_name: String,
    /// What its users are called, without their ending; absent, the name is made of the id.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 61), regex(pattern = r"^[a-z][a-z0-9_]*$"))]
    pub user_name: Option<String>,
    /// What becomes of it when its claim is gone.
    #[serde(default)]
    pub reclaim_policy: ReclaimPolicy,
    /// Minutes for which it can be had back before it is dropped.
    #[serde(default)]
    #[schemars(range(min = 0, max = 525_600))]
    pub quarantine_minutes: i32,
}

/// The claim that uses a database.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClaimOfDatabase {
    /// Namespace of the claim.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Name of the claim.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// UID of the claim: one made again by the same name is another.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
}

/// A server.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ServerRef {
    /// What it is.
    pub kind: ServerKind,
    /// Its name, in this namespace.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What a server is.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum ServerKind {
    /// One that somebody runs.
    #[default]
    DatabaseServer,
    /// One that Conductor runs.
    LocalServer,
}

impl ServerKind {
    /// The kind's name.
    pub fn word(self) -> &'static str {
        match self {
            ServerKind::DatabaseServer => "DatabaseServer",
            ServerKind::LocalServer => "LocalServer",
        }
    }
}

/// The RelationalDatabase that a database's claim is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ResourceOfDatabase {
    /// Its name, in this namespace.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// Its UID.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
}

/// Where the database is in its life.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct LogicalDatabaseStatus {
    /// Where it is in its life.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<DatabasePhase>,
    /// When it was made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub created_at: Option<String>,
    /// When its login was last changed; the next change is counted from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub rotated_at: Option<String>,
    /// The user that applications log in as now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub username: Option<String>,
    /// Since when it is in quarantine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub quarantined_at: Option<String>,
    /// The request for a change of its login that was last carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub rotation_done: Option<String>,
    /// The request after a leak that every login was last revoked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub rotation_revoked: Option<String>,
    /// `Ready`: whether it can be used, and if not, why; `RotationInTime`: whether its login changes in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
}

/// The life of a database.
///
/// ```text
/// Pending -> Ready -> Retained                                    (policy Retain)
///                 \-> Quarantined -> Dropping -> record gone      (policy Delete)
///                          \-- undelete --> Retained
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum DatabasePhase {
    /// Being made.
    Pending,
    /// Its claim can use it.
    Ready,
    /// Its claim is gone; it is kept, and nobody can log in.
    Retained,
    /// Its claim is gone; nobody can log in, and it will be dropped.
    Quarantined,
    /// Being dropped.
    Dropping,
}
