//! `RelationalDatabase`: a database that claims can be bound to, whatever implements it.
//! The table in `model::types` says how its fields match those of claims.

use super::common::{
    AnyValue, FreeForm, Quantities, ReclaimPolicy, Sharing, VersionText, leave_description_to_field,
    null_as_default,
};
use super::status::{Condition, conditions_schema};
use super::template::{Template, Templates};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// What the database offers, which claims hold it, and what implements it.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "storage.conductor.io",
    version = "v1alpha1",
    kind = "RelationalDatabase",
    plural = "relationaldatabases",
    singular = "relationaldatabase",
    shortname = "rdb",
    category = "conductor",
    namespaced,
    status = "RelationalDatabaseStatus",
    derive = "PartialEq",
    doc = "A relational database that claims can be bound to, whatever implements it. Lives in the system namespace.",
    printcolumn(name = "Engine", type_ = "string", json_path = ".spec.engine"),
    printcolumn(name = "Version", type_ = "string", json_path = ".spec.version"),
    printcolumn(name = "Class", type_ = "string", json_path = ".spec.class"),
    printcolumn(name = "Storage", type_ = "string", json_path = ".spec.capacity.storage"),
    printcolumn(name = "Phase", type_ = "string", json_path = ".status.phase"),
    printcolumn(
        name = "Unschedulable",
        type_ = "boolean",
        json_path = ".spec.unschedulable",
        description = "Whether the resource is cordoned: no new claim is bound to it, in any phase."
    ),
    printcolumn(
        name = "Claim",
        type_ = "string",
        json_path = ".spec.claimRefs[*].name",
        description = "First claim that is bound to it or reserves it."
    ),
    printcolumn(
        name = "Claim-Namespace",
        type_ = "string",
        json_path = ".spec.claimRefs[*].namespace",
        description = "Namespace of that claim."
    ),
    printcolumn(
        name = "Reported",
        type_ = "string",
        json_path = ".status.version",
        description = "Version that the implementation reports.",
        priority = 1
    ),
    printcolumn(name = "Reclaim", type_ = "string", json_path = ".spec.reclaimPolicy", priority = 1),
    printcolumn(name = "HA", type_ = "boolean", json_path = ".spec.highly-available", priority = 1),
    printcolumn(
        name = "Reason",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Ready")].reason"#,
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!(has(self.template) && has(self.templates))", "set template or templates, not both")
)]
pub struct RelationalDatabaseSpec {
    /// Engine, such as mysql or postgresql. Upper and lower case are equal; postgres means postgresql.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"\S"))]
    pub engine: String,
    /// Version of the engine, such as "8.0.36". Quote it: YAML reads 5.10 without quotes as 5.1. Absent: does not match a claim with a version.
    pub version: Option<VersionText>,
    /// Whether the database survives the loss of a machine or zone. Default false.
    #[serde(rename = "highly-available")]
    pub highly_available: Option<bool>,
    /// Total capacity by name, such as {storage: 100Gi, connections: 200}. A claim fits if all its requests fit in what is left.
    pub capacity: Option<Quantities>,
    /// Capabilities, such as [postgis, point-in-time-recovery], matched against spec.requests of claims.
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub capabilities: Option<Vec<String>>,
    /// Name of the class that it belongs to. Absent: only claims without a class bind to it.
    #[schemars(length(max = 253))]
    pub class: Option<String>,
    /// What happens when the last claim is deleted: Retain keeps the resource and its data, Delete deletes it and its implementation. Default Retain.
    #[serde(default, deserialize_with = "null_as_default")]
    pub reclaim_policy: ReclaimPolicy,
    /// Manifest of the object that implements the resource. Absent, without templates: the resource represents a database that already exists.
    pub template: Option<Template>,
    /// Objects that implement the resource together: created in the order of their references, deleted in reverse. Cannot be combined with template.
    pub templates: Option<Templates>,
    /// Claim, class and parameters at the time of provisioning, for the expressions in the templates. Written by Conductor.
    pub inputs: Option<FreeForm>,
    /// How many claims can share the resource, and from which namespaces. Default: one claim, from any namespace.
    pub sharing: Option<Sharing>,
    /// Cordons the resource, as for a node: existing claims stay bound, no new claim is bound to it. Default false.
    pub unschedulable: Option<bool>,
    /// Claims that are bound to the resource. Written by Conductor; an administrator can add an entry without uid to reserve it for a claim.
    #[schemars(length(max = 10_000), extend("x-kubernetes-list-type" = "atomic"))]
    pub claim_refs: Option<Vec<ClaimRef>>,
    /// Connection to a database that has no template: host, port, database, username and others, or a secretRef to a Secret beside it.
    pub connection: Option<FreeForm>,
}

/// A claim that is bound to the resource, or that it is reserved for.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClaimRef {
    /// Namespace of the claim.
    #[schemars(length(min = 1, max = 63))]
    pub namespace: String,
    /// Name of the claim.
    #[schemars(length(min = 1, max = 253))]
    pub name: String,
    /// UID of the claim. Absent: a reservation for the claim of that name.
    #[schemars(length(max = 128))]
    pub uid: Option<String>,
    /// Capacity that the claim uses, such as {storage: 25Gi}.
    pub requests: Option<Quantities>,
    /// Whether an administrator made the reservation. If true, unbinding removes only the uid and keeps the entry.
    pub reserved: Option<bool>,
}

/// State of the resource, written by Conductor.
// Atomic, as the claim's status and for the same reason.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, extend("x-kubernetes-map-type" = "atomic"))]
pub struct RelationalDatabaseStatus {
    /// Phase of the resource: Pending, Creating, Available, Bound, Released, Failed or Deleting. Absent counts as Available in simulations.
    pub phase: Option<ResourcePhase>,
    /// Reference or references to the objects that implement it. A plain name refers to an object that Conductor does not manage.
    pub implementation_ref: Option<AnyValue>,
    /// Version that the implementation reports. It takes precedence over spec.version.
    #[schemars(length(max = 256))]
    pub version: Option<String>,
    /// Sum of the capacity that its claims use.
    pub allocated: Option<Quantities>,
    /// Condition `Ready`: whether claims can use the resource.
    #[serde(default)]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
    /// The metadata.generation of the object that this status describes.
    pub observed_generation: Option<i64>,
}

/// The lifecycle of a resource.
///
/// ```text
/// Pending -> Creating -> Available <-> Bound -> Released -> Deleting   (policy Delete)
///                 \____________ Failed ____________/    \-> stays      (policy Retain)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field, transform = also_created)]
pub enum ResourcePhase {
    /// The controller has not processed it yet.
    Pending,
    /// Its implementation is being created.
    Creating,
    /// Ready; no claim is bound to it.
    #[serde(alias = "Created")]
    Available,
    /// At least one claim is bound to it.
    Bound,
    /// Its last claim was deleted; the reclaim policy decides what happens next.
    Released,
    /// Provisioning or reclaiming it failed; condition `Ready` has the reason.
    Failed,
    /// It and its implementation are being deleted.
    Deleting,
}

impl ResourcePhase {
    /// Every phase, in the order of the lifecycle.
    pub const ALL: [ResourcePhase; 7] = [
        ResourcePhase::Pending,
        ResourcePhase::Creating,
        ResourcePhase::Available,
        ResourcePhase::Bound,
        ResourcePhase::Released,
        ResourcePhase::Failed,
        ResourcePhase::Deleting,
    ];

    /// The phase as in the status.
    pub fn name(self) -> &'static str {
        match self {
            ResourcePhase::Pending => "Pending",
            ResourcePhase::Creating => "Creating",
            ResourcePhase::Available => "Available",
            ResourcePhase::Bound => "Bound",
            ResourcePhase::Released => "Released",
            ResourcePhase::Failed => "Failed",
            ResourcePhase::Deleting => "Deleting",
        }
    }

    /// The phase of this name; `Created` is Available.
    pub fn find(name: &str) -> Option<ResourcePhase> {
        match name {
            "Created" => Some(ResourcePhase::Available),
            name => ResourcePhase::ALL.into_iter().find(|p| p.name() == name),
        }
    }
}

/// Accepts `Created`, the name of Available in the first manifests. Conductor reads it and never writes it.
fn also_created(schema: &mut Schema) {
    let created = json_schema!({"type": "string", "const": "Created"});
    if let Some(variants) = schema.get_mut("oneOf").and_then(|one_of| one_of.as_array_mut()) {
        variants.push(created.to_value());
    }
}
