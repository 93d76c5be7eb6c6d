//! `DatabaseRole`, an additional login on a claim's database for another application, and `DatabaseGrant`, with which the
//! owner of the claims allows other namespaces to create such logins.

use crate::api::claim::Binding;
use crate::api::common::leave_description_to_field;
use crate::api::database::logical::ServerRef;
use crate::api::status::{Condition, ConfigStatus, conditions_schema};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Claim, access and Secret of the login.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "database.conductor.io",
    version = "v1alpha1",
    kind = "DatabaseRole",
    plural = "databaseroles",
    singular = "databaserole",
    shortname = "dbrole",
    category = "conductor",
    namespaced,
    status = "DatabaseRoleStatus",
    derive = "PartialEq",
    doc = "An additional login on the database of a claim, for another application. The connection is published in a Secret in the same namespace.",
    printcolumn(name = "Claim-Namespace", type_ = "string", json_path = ".spec.claimRef.namespace"),
    printcolumn(name = "Claim", type_ = "string", json_path = ".spec.claimRef.name"),
    printcolumn(name = "Access", type_ = "string", json_path = ".spec.access"),
    printcolumn(name = "Secret", type_ = "string", json_path = ".status.binding.name"),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#
    ),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#
    ),
    printcolumn(name = "Rotated", type_ = "date", json_path = ".status.rotatedAt", priority = 1),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].message"#,
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(validation = ("has(self.secretName) == has(oldSelf.secretName)", "secretName is immutable: create another DatabaseRole"))]
pub struct DatabaseRoleSpec {
    /// Claim whose database the login is for. Immutable.
    #[x_kube(validation = ("self == oldSelf", "is immutable: create another DatabaseRole"))]
    pub claim_ref: ClaimRef,
    /// Access of the login: ReadOnly or ReadWrite. Default ReadOnly.
    #[serde(default)]
    pub access: RoleAccess,
    /// Name of the Secret with the connection. Default: the name of the DatabaseRole. Immutable.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    #[x_kube(validation = ("self == oldSelf", "is immutable: create another DatabaseRole"))]
    pub secret_name: Option<String>,
    /// Minutes between rotations of the login. Default: the rotationMinutes of the server.
    #[schemars(range(min = 60, max = 1440))]
    pub rotation_minutes: Option<i32>,
}

/// Reference to a claim.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClaimRef {
    /// Namespace of the claim. Default: the namespace of the DatabaseRole; another one requires a DatabaseGrant there.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// Name of the claim.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// Access of a DatabaseRole.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum RoleAccess {
    /// Read all tables, including those that the owner creates later.
    #[default]
    ReadOnly,
    /// Read, insert, update and delete rows; only the owner changes tables.
    ReadWrite,
}

impl RoleAccess {
    /// Both, the weaker first.
    pub const BOTH: [RoleAccess; 2] = [RoleAccess::ReadOnly, RoleAccess::ReadWrite];

    /// How it is written.
    pub fn word(self) -> &'static str {
        match self {
            RoleAccess::ReadOnly => "ReadOnly",
            RoleAccess::ReadWrite => "ReadWrite",
        }
    }
}

/// State of the DatabaseRole, written by Conductor.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DatabaseRoleStatus {
    /// Secret with the connection, as a servicebinding.io Provisioned Service.
    pub binding: Option<Binding>,
    /// User that applications currently log in as.
    #[schemars(length(max = 63))]
    pub username: Option<String>,
    /// Time of the last rotation of the login, in RFC 3339. The next rotation is due rotationMinutes later.
    #[schemars(length(max = 64))]
    pub rotated_at: Option<String>,
    /// Value of the annotation database.conductor.io/rotate that was last carried out.
    #[schemars(length(max = 253))]
    pub rotation_done: Option<String>,
    /// Value of the annotation database.conductor.io/rotate for which all logins were last revoked.
    #[schemars(length(max = 253))]
    pub rotation_revoked: Option<String>,
    /// Database with the users of the role. Written before they are created and removed after they are dropped.
    pub made_on: Option<MadeOn>,
    /// Conditions `Ready` (the login works and its Secret is published) and `RotationInTime` (it rotates within the deadline).
    #[serde(default)]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
    /// The metadata.generation of the object that this status describes.
    pub observed_generation: Option<i64>,
}

/// Reference to the database with the users of a role.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct MadeOn {
    /// The spec.id of the LogicalDatabase.
    #[schemars(length(min = 1, max = 128))]
    pub database_id: String,
    /// Name of the database on the server.
    #[schemars(length(min = 1, max = 63))]
    pub database_name: String,
    /// The server with the database.
    pub server: ServerRef,
}

/// Namespaces that can create DatabaseRoles on claims of this namespace, and their access.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "database.conductor.io",
    version = "v1alpha1",
    kind = "DatabaseGrant",
    plural = "databasegrants",
    singular = "databasegrant",
    shortname = "dbgrant",
    category = "conductor",
    namespaced,
    status = "ConfigStatus",
    derive = "PartialEq",
    doc = "Allows DatabaseRoles of other namespaces to create logins on the databases of claims in this namespace. When the grant is deleted, these logins are dropped.",
    printcolumn(name = "From", type_ = "string", json_path = ".spec.from[*].namespace"),
    printcolumn(name = "Claims", type_ = "string", json_path = ".spec.claims"),
    printcolumn(name = "Access", type_ = "string", json_path = ".spec.access"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseGrantSpec {
    /// Namespaces, or single DatabaseRoles in them, that the grant applies to.
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub from: Vec<GrantFrom>,
    /// Names of the claims in this namespace that the grant applies to. Absent: all claims.
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub claims: Option<Vec<String>>,
    /// Maximum access that the DatabaseRoles can have: ReadOnly or ReadWrite. Default ReadOnly.
    #[serde(default)]
    pub access: RoleAccess,
}

/// The DatabaseRoles that a grant applies to.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct GrantFrom {
    /// Namespace of the DatabaseRoles.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Name of the DatabaseRole. Absent: all in the namespace.
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
}
