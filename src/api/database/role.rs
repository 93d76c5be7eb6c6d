//! `DatabaseRole`, an extra login on a claim's database for another application, and `DatabaseGrant`, by which the
//! owner of claims lets other namespaces have such logins. Who may have what is decided in `database::role`.

use crate::api::common::leave_description_to_field;
use crate::api::database::logical::ServerRef;
use crate::api::status::{Condition, ConfigStatus, conditions_schema};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// On which claim's database, with which rights, published where.
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
    doc = "A login of its own for another application on the database of a claim. The connection appears in a Secret beside it.",
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
#[x_kube(validation = ("has(self.secretName) == has(oldSelf.secretName)", "secretName cannot be changed: make another DatabaseRole"))]
pub struct DatabaseRoleSpec {
    /// The claim whose database it is. Another one is another role: make a new one.
    #[x_kube(validation = ("self == oldSelf", "cannot be changed: make another DatabaseRole"))]
    pub claim_ref: ClaimRef,
    /// What it may do; absent is ReadOnly.
    #[serde(default)]
    pub access: RoleAccess,
    /// Name of the Secret with the connection; absent, the name of the role.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    #[x_kube(validation = ("self == oldSelf", "cannot be changed: make another DatabaseRole"))]
    pub secret_name: Option<String>,
    /// Minutes between changes of the login; absent, as the server has it for claims.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 60, max = 1440))]
    pub rotation_minutes: Option<i32>,
}

/// A claim.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClaimRef {
    /// Its namespace; absent, the role's own. In another, only with a DatabaseGrant there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub namespace: Option<String>,
    /// Its name.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
}

/// What a role may do.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum RoleAccess {
    /// Read every table, also those that the owner makes later.
    #[default]
    ReadOnly,
    /// Read and change rows; tables remain the owner's.
    ReadWrite,
}

impl RoleAccess {
    /// Both, the smaller first.
    pub const BOTH: [RoleAccess; 2] = [RoleAccess::ReadOnly, RoleAccess::ReadWrite];

    /// How it is written.
    pub fn word(self) -> &'static str {
        match self {
            RoleAccess::ReadOnly => "ReadOnly",
            RoleAccess::ReadWrite => "ReadWrite",
        }
    }
}

/// How the role stands.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct DatabaseRoleStatus {
    /// The Secret with the connection, as servicebinding.io wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<RoleBinding>,
    /// The user that applications log in as now.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub username: Option<String>,
    /// When its login was last changed; the next change is counted from here.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64))]
    pub rotated_at: Option<String>,
    /// The request for a change of its login that was last carried out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub rotation_done: Option<String>,
    /// The request after a leak that every login was last revoked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub rotation_revoked: Option<String>,
    /// Where its users are; written before they are made, and removed after they are gone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub made_on: Option<MadeOn>,
    /// `Ready`: whether the login can be used, and if not, what it waits for; `RotationInTime`: whether it changes in time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
    /// The generation that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The Secret with the connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct RoleBinding {
    /// Its name.
    #[schemars(length(max = 253))]
    pub name: String,
}

/// Where the users of a role are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct MadeOn {
    /// The id of the database that they are for.
    #[schemars(length(min = 1, max = 128))]
    pub database_id: String,
    /// Its name on the server.
    #[schemars(length(min = 1, max = 63))]
    pub database_name: String,
    /// The server.
    pub server: ServerRef,
}

/// Who may have logins on which claims of this namespace.
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
    doc = "Lets DatabaseRoles of other namespaces have logins on the databases of claims in this namespace. Taken away, their logins end.",
    printcolumn(name = "From", type_ = "string", json_path = ".spec.from[*].namespace"),
    printcolumn(name = "Claims", type_ = "string", json_path = ".spec.claims"),
    printcolumn(name = "Access", type_ = "string", json_path = ".spec.access"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct DatabaseGrantSpec {
    /// Whose roles.
    #[schemars(length(min = 1, max = 32))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub from: Vec<GrantFrom>,
    /// On which claims of this namespace, by name; absent, all of them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 64), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub claims: Option<Vec<String>>,
    /// The most that they may do; absent is ReadOnly.
    #[serde(default)]
    pub access: RoleAccess,
}

/// Whose roles.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct GrantFrom {
    /// Their namespace.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// The one role of this name; absent, every role there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 253))]
    pub name: Option<String>,
}
