//! `RelationalDatabaseClaim`: what an application asks for, and what it got.
//! What fits is decided by the table in `model::types`, not here.

use super::common::{FreeForm, Quantities, VersionText, leave_description_to_field, null_as_default};
use super::selector::LabelSelector;
use super::status::{Condition, conditions_schema};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the application asks for. Every field is optional; what is absent is not asked.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "storage.conductor.io",
    version = "v1alpha1",
    kind = "RelationalDatabaseClaim",
    plural = "relationaldatabaseclaims",
    singular = "relationaldatabaseclaim",
    shortname = "rdbc",
    category = "conductor",
    namespaced,
    status = "RelationalDatabaseClaimStatus",
    derive = "PartialEq",
    doc = "A request for a relational database, and the claim check for the one it got. The connection appears in a Secret beside it.",
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(name = "Resource", type_ = "string", json_path = ".status.resourceRef.name"),
    printcolumn(name = "Class", type_ = "string", json_path = ".spec.class"),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Bound")].reason"#
    ),
    printcolumn(
        name = "Ready",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].status"#,
        description = "Whether the connection is published."
    ),
    printcolumn(
        name = "Since",
        type_ = "date",
        json_path = r#".status.conditions[?(@.type=="Bound")].lastTransitionTime"#,
        description = "How long it has been bound, or not."
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp"),
    printcolumn(name = "Engine", type_ = "string", json_path = ".spec.engine", priority = 1),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version", priority = 1),
    printcolumn(
        name = "Message",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Bound")].message"#,
        priority = 1
    )
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!(has(self.class) && has(self.classes))", "give class or classes, not both")
)]
pub struct RelationalDatabaseClaimSpec {
    /// The engine, such as mysql or postgresql; compared without case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"\S"))]
    pub engine: Option<String>,
    /// The versions that will do: a release line ("5.6" is any 5.6.x), or ranges such as ">= 5.6, < 8" or "~14 || ^16".
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionText>,
    /// True asks for a database that survives the loss of one machine or zone.
    #[serde(rename = "highly-available", default, skip_serializing_if = "Option::is_none")]
    pub highly_available: Option<bool>,
    /// Amounts that the claim asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resources: Option<ClaimResources>,
    /// Capabilities that the resource must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub requests: Option<Vec<String>>,
    /// The class to take from. Absent: classless resources, then the default class; empty: classless resources only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub class: Option<String>,
    /// Classes that will do, the preferred first. Instead of `class`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub classes: Option<Vec<String>>,
    /// The resource to bind to. Set by Conductor when the claim is bound; set by the user, no other is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253), regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"))]
    pub resource_name: Option<String>,
    /// Labels that the resource must have.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub selector: Option<LabelSelector>,
    /// Claims of a higher priority are served first.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schemars(range(min = -1_000_000, max = 1_000_000))]
    pub priority: i32,
    /// True asks for a resource that no other claim holds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exclusive: Option<bool>,
    /// Where the connection is published.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<ClaimConnection>,
    /// Values for the templates of the class that provisions: `parameters` in expressions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<FreeForm>,
}

/// Amounts that the claim asks for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClaimResources {
    /// Amounts by name, held against the capacity of resources, the quotas and the limits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Quantities>,
}

/// Where the connection is published.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClaimConnection {
    /// Name of the Secret; absent means the claim's own name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub secret_name: Option<String>,
}

/// What the application got.
// Written by one: a record of who owns which field of it makes the object a quarter larger, and the API server reads and
// writes it anew with every change.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, extend("x-kubernetes-map-type" = "atomic"))]
pub struct RelationalDatabaseClaimStatus {
    /// Pending, Bound, or Lost; Lost is for good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ClaimPhase>,
    /// The resource that the claim is bound to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_ref: Option<ResourceRef>,
    /// The Secret with the connection, as servicebinding.io wants it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub binding: Option<Binding>,
    /// `Bound` and `Ready`: each with the reason, and what stands in the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
    /// The generation that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
    /// Digests of the fields of the spec when the claim was bound: an edit that has no effect any more is reported.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 8192))]
    pub bound_spec: Option<String>,
    /// Classes that were tried and will not do. Each is tried again once it or the claim's spec has changed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub refused_by: Option<Vec<ClassRefusal>>,
}

/// A class that was tried and will not do.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClassRefusal {
    /// Name of the class.
    #[schemars(length(max = 253))]
    pub class: String,
    /// UID of the class.
    #[schemars(length(max = 128))]
    pub class_uid: String,
    /// The generation of the class that was tried.
    pub class_generation: i64,
    /// The generation of the claim that it was tried for.
    pub generation: i64,
    /// UID of the resource that it made and that failed, where it came so far.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub resource_uid: Option<String>,
    /// Why it will not do.
    #[schemars(length(max = 4096))]
    pub message: String,
}

/// Where a claim stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum ClaimPhase {
    /// Waiting, for the reason that the condition gives.
    Pending,
    /// It has its resource.
    Bound,
    /// Its resource is gone or holds another claim. For good.
    Lost,
}

/// The resource that a claim is bound to.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ResourceRef {
    /// Namespace of the resource.
    #[schemars(length(max = 63))]
    pub namespace: String,
    /// Name of the resource.
    #[schemars(length(max = 253))]
    pub name: String,
    /// UID of the resource: one recreated by the same name is another.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub uid: Option<String>,
}

/// The published connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Binding {
    /// Name of the Secret in the claim's namespace.
    #[schemars(length(max = 253))]
    pub name: String,
}
