//! `LogicalDatabase`: the record of one database that was created for a claim on a shared server. The provider writes it
//! before the first statement, and it outlives the claim, so that no database is forgotten. It contains no password.

use crate::api::common::{ReclaimPolicy, leave_description_to_field};
use crate::api::status::{Condition, conditions_schema};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Owner, server and reclaim policy of the database. Written by Conductor.
#[skip_serializing_none]
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
    doc = "The record of a database that Conductor created for a claim on a server. Lives in the system namespace; written by Conductor.",
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
    /// UID of the claim that the database was created for. Names and ownership marks on the server derive from it.
    #[schemars(length(min = 1, max = 128))]
    pub id: String,
    /// The claim that uses the database.
    pub claim: ClaimOfDatabase,
    /// The server with the database.
    pub server: ServerRef,
    /// The RelationalDatabase that the claim is bound to.
    pub resource: ResourceOfDatabase,
    /// Name of the database on the server.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-z][a-z0-9_]*$"))]
    pub database_name: String,
    /// Name of its users without the suffix _a or _b. Default: derived from the id.
    #[schemars(length(min = 1, max = 61), regex(pattern = r"^[a-z][a-z0-9_]*$"))]
    pub user_name: Option<String>,
    /// What happens to the database when its claim is deleted: Retain keeps it, Delete drops it after its quarantine. Default Retain.
    #[serde(default)]
    pub reclaim_policy: ReclaimPolicy,
    /// Minutes in quarantine, where the database can be restored, before it is dropped. Default 0.
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
    /// UID of the claim. A claim that is recreated with the same name has another UID.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
}

/// Reference to a server.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ServerRef {
    /// Kind of the server: DatabaseServer or LocalServer.
    pub kind: ServerKind,
    /// Name of the server in this namespace.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Kind of a server.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum ServerKind {
    /// A server that the administrator runs.
    #[default]
    DatabaseServer,
    /// A server that Conductor runs.
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

/// Reference to the RelationalDatabase that a database's claim is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ResourceOfDatabase {
    /// Name of the RelationalDatabase in this namespace.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// UID of the RelationalDatabase.
    #[schemars(length(min = 1, max = 128))]
    pub uid: String,
}

/// State of the database, written by Conductor.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct LogicalDatabaseStatus {
    /// Phase of the database: Pending, Ready, Retained, Quarantined or Dropping.
    pub phase: Option<DatabasePhase>,
    /// Time of creation, in RFC 3339.
    #[schemars(length(max = 64))]
    pub created_at: Option<String>,
    /// Time of the last rotation of the login, in RFC 3339. The next rotation is due rotationMinutes later.
    #[schemars(length(max = 64))]
    pub rotated_at: Option<String>,
    /// User that applications currently log in as.
    #[schemars(length(max = 63))]
    pub username: Option<String>,
    /// Time when the quarantine began, in RFC 3339.
    #[schemars(length(max = 64))]
    pub quarantined_at: Option<String>,
    /// Value of the annotation database.conductor.io/rotate that was last carried out.
    #[schemars(length(max = 253))]
    pub rotation_done: Option<String>,
    /// Value of the annotation database.conductor.io/rotate for which all logins were last revoked.
    #[schemars(length(max = 253))]
    pub rotation_revoked: Option<String>,
    /// Conditions `Ready` (the claim can use the database) and `RotationInTime` (its login rotates within the deadline).
    #[serde(default)]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
}

/// The lifecycle of a database.
///
/// ```text
/// Pending -> Ready -> Retained                                    (policy Retain)
///                 \-> Quarantined -> Dropping -> record deleted   (policy Delete)
///                          \-- undelete --> Retained
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum DatabasePhase {
    /// Being created.
    Pending,
    /// Its claim can use it.
    Ready,
    /// Its claim was deleted; the database is kept, and all logins are locked.
    Retained,
    /// Its claim was deleted; all logins are locked, and the database will be dropped.
    Quarantined,
    /// Being dropped.
    Dropping,
}
