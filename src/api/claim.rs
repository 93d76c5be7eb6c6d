//! `RelationalDatabaseClaim`: what an application requests, and what it is bound to.
//! The table in `model::types` says how its fields match those of resources.

use super::common::{FreeForm, Quantities, VersionText, leave_description_to_field, null_as_default};
use super::selector::LabelSelector;
use super::status::{Condition, conditions_schema};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// What the application requires. All fields are optional; an absent field imposes no requirement.
#[skip_serializing_none]
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
    doc = "A request for a relational database. Conductor binds it to a RelationalDatabase that fits or provisions one, and publishes the connection in a Secret in the claim's namespace.",
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
        description = "Whether the connection Secret is published and complete."
    ),
    printcolumn(
        name = "Since",
        type_ = "date",
        json_path = r#".status.conditions[?(@.type=="Bound")].lastTransitionTime"#,
        description = "Time since the Bound condition last changed."
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
    validation = ("!(has(self.class) && has(self.classes))", "set class or classes, not both")
)]
pub struct RelationalDatabaseClaimSpec {
    /// Engine, such as mysql or postgresql. Upper and lower case are equal; postgres means postgresql.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"\S"))]
    pub engine: Option<String>,
    /// Acceptable versions: a release line ("5.6" matches any 5.6.x) or a range such as ">= 5.6, < 8" or "~14 || ^16". Absent: any version.
    pub version: Option<VersionText>,
    /// Require a database that survives the loss of a machine or zone. Default false: not required.
    #[serde(rename = "highly-available")]
    pub highly_available: Option<bool>,
    /// Capacity that the claim requests.
    pub resources: Option<ClaimResources>,
    /// Capabilities that the resource must have, such as [postgis, point-in-time-recovery].
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub requests: Option<Vec<String>>,
    /// Name of the class to bind from. Absent: resources without a class, then the default class. Empty string: only resources without a class.
    #[schemars(length(max = 253))]
    pub class: Option<String>,
    /// Acceptable classes in order of preference, such as [gold, silver]. Cannot be combined with class.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub classes: Option<Vec<String>>,
    /// Name of the resource to bind to. If the user sets it, no other resource is considered; otherwise Conductor sets it when it binds the claim.
    #[schemars(length(max = 253), regex(pattern = r"^([a-z0-9]([-a-z0-9.]*[a-z0-9])?)?$"))]
    pub resource_name: Option<String>,
    /// Label selector that the resource must match.
    pub selector: Option<LabelSelector>,
    /// Scheduling priority: claims with a higher value are decided first. Default 0.
    #[serde(default, deserialize_with = "null_as_default")]
    #[schemars(range(min = -1_000_000, max = 1_000_000))]
    pub priority: i32,
    /// Require a resource that no other claim is bound to. Default false.
    pub exclusive: Option<bool>,
    /// Where to publish the connection.
    pub connection: Option<ClaimConnection>,
    /// Values for the templates of the class, available as `parameters` in their expressions; they override the parameters of the class.
    pub parameters: Option<FreeForm>,
}

/// Capacity that a claim requests.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClaimResources {
    /// Requested quantities by capacity name, such as {storage: 25Gi, connections: 50}. Checked against resources, quotas and limits.
    pub requests: Option<Quantities>,
}

/// Where to publish the connection of a claim.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClaimConnection {
    /// Name of the Secret in the namespace of the object. Default: the name of the claim.
    #[schemars(
        length(min = 1, max = 253),
        regex(pattern = r"^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$")
    )]
    pub secret_name: Option<String>,
}

/// State of the claim, written by Conductor.
// Atomic, because only the controller writes it: field ownership of each entry would make the object a quarter larger, and
// the API server rewrites it with every change.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, extend("x-kubernetes-map-type" = "atomic"))]
pub struct RelationalDatabaseClaimStatus {
    /// Pending: waits for the reason in condition Bound. Bound: has its resource. Lost: its resource was deleted or holds another claim.
    pub phase: Option<ClaimPhase>,
    /// Resource that the claim is bound to.
    pub resource_ref: Option<ResourceRef>,
    /// Secret with the connection, as a servicebinding.io Provisioned Service.
    pub binding: Option<Binding>,
    /// Conditions `Bound` (claim and resource refer to each other) and `Ready` (the connection is published and complete).
    #[serde(default)]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
    /// The metadata.generation of the object that this status describes.
    pub observed_generation: Option<i64>,
    /// Digests of the spec fields at the time of binding, to report later edits that have no effect.
    #[schemars(length(max = 8192))]
    pub bound_spec: Option<String>,
    /// Classes that failed for this claim. Each is tried again when it or the claim's spec changes.
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "atomic"))]
    pub refused_by: Option<Vec<ClassRefusal>>,
}

/// A class that failed for a claim.
#[skip_serializing_none]
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
    /// metadata.generation of the class at that time.
    pub class_generation: i64,
    /// metadata.generation of the claim at that time.
    pub generation: i64,
    /// UID of the resource that was provisioned and failed. Absent if none was created.
    #[schemars(length(max = 128))]
    pub resource_uid: Option<String>,
    /// Why the class failed.
    #[schemars(length(max = 4096))]
    pub message: String,
}

/// Phase of a claim.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema,
)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum ClaimPhase {
    /// Waits; condition `Bound` has the reason. Also the phase of a claim whose status is empty.
    #[default]
    Pending,
    /// Claim and resource refer to each other.
    Bound,
    /// The resource was deleted or holds another claim. Ends only when the same resource holds this claim again.
    Lost,
}

impl ClaimPhase {
    /// The phase as in the status.
    pub fn name(self) -> &'static str {
        match self {
            ClaimPhase::Pending => "Pending",
            ClaimPhase::Bound => "Bound",
            ClaimPhase::Lost => "Lost",
        }
    }
}

/// Reference to the resource that a claim is bound to.
#[skip_serializing_none]
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
    /// UID of the resource. A resource that is recreated with the same name has another UID.
    #[schemars(length(max = 128))]
    pub uid: Option<String>,
}

/// Reference to the Secret with a connection.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct Binding {
    /// Name of the Secret in the namespace of the object.
    #[schemars(length(max = 253))]
    pub name: String,
}
