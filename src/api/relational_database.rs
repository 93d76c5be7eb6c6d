//! `RelationalDatabase`: a database that claims can be bound to, whatever implements it.
//! What fits what is decided by the table in `model::types`, not here.

use super::common::{
    AnyValue, FreeForm, Quantities, ReclaimPolicy, Sharing, VersionText, leave_description_to_field,
    null_as_default,
};
use super::status::{Condition, conditions_schema};
use super::template::{Template, Templates};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, json_schema};
use serde::{Deserialize, Serialize};

/// What the database is, who holds it, and what implements it.
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
        description = "Whether it is cordoned: no further claim is bound to it, whatever its phase."
    ),
    printcolumn(
        name = "Claim",
        type_ = "string",
        json_path = ".spec.claimRefs[*].name",
        description = "The first claim that holds it."
    ),
    printcolumn(
        name = "Claim-Namespace",
        type_ = "string",
        json_path = ".spec.claimRefs[*].namespace",
        description = "The namespace of the first claim that holds it."
    ),
    printcolumn(
        name = "Reported",
        type_ = "string",
        json_path = ".status.version",
        description = "The version that its implementation reports.",
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
    validation = ("!(has(self.template) && has(self.templates))", "give template or templates, not both")
)]
pub struct RelationalDatabaseSpec {
    /// The engine, such as mysql or postgresql; compared without case.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"\S"))]
    pub engine: String,
    /// The version that runs. Quote it where a zero at the end matters: 5.10 without quotes is 5.1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionText>,
    /// Whether the database survives the loss of one machine or zone.
    #[serde(rename = "highly-available", default, skip_serializing_if = "Option::is_none")]
    pub highly_available: Option<bool>,
    /// What it offers, by name: storage, connections, ... A claim fits where every request does.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity: Option<Quantities>,
    /// What it can do, such as postgis or point-in-time-recovery; matched against a claim's requests.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub capabilities: Option<Vec<String>>,
    /// The class it belongs to. Without one, it is offered to claims that name no class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub class: Option<String>,
    /// What becomes of it when its last claim is gone: Retain keeps it, Delete removes it and its implementation.
    #[serde(default, deserialize_with = "null_as_default")]
    pub reclaim_policy: ReclaimPolicy,
    /// The object that implements it. Without one, the resource stands for a database that exists already.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Template>,
    /// The objects that implement it, where one is not enough: created in the order of their references, deleted in reverse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates: Option<Templates>,
    /// What the templates' expressions were given when the resource was made: claim, class and parameters as they were then. Written by Conductor.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<FreeForm>,
    /// How many claims may hold it, and from where; absent means one claim from anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// Cordon: keeps its claims and takes no new ones.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unschedulable: Option<bool>,
    /// Who holds it. Written by Conductor; an administrator may add a name without a uid to reserve it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 10_000), extend("x-kubernetes-list-type" = "atomic"))]
    pub claim_refs: Option<Vec<ClaimRef>>,
    /// How to reach a database that no template makes: host, port, database, ... or a secretRef.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<FreeForm>,
}

/// A claim that holds, or is promised, the resource.
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
    /// UID of the claim. Absent: a reservation for whichever claim comes by that name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 128))]
    pub uid: Option<String>,
    /// What the claim takes of the capacity.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Quantities>,
    /// True where an administrator made the reservation: on unbinding the name stays and only the uid goes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reserved: Option<bool>,
}

/// What Conductor knows of the database.
// Atomic as the claim's, and for the same reason.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, extend("x-kubernetes-map-type" = "atomic"))]
pub struct RelationalDatabaseStatus {
    /// Where it is in its life; absent counts as Available.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<ResourcePhase>,
    /// The object or objects that implement it: a name, or a reference.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub implementation_ref: Option<AnyValue>,
    /// The version that its implementation reports; where it differs from the spec's, this one counts.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 256))]
    pub version: Option<String>,
    /// What its claims take of the capacity, summed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub allocated: Option<Quantities>,
    /// `Ready`: whether it can be used, and if not, why.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
    /// The generation that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// The life of a resource.
///
/// ```text
/// Pending -> Creating -> Available <-> Bound -> Released -> Deleting   (policy Delete)
///                 \____________ Failed ____________/    \-> stays      (policy Retain)
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field, transform = also_created)]
pub enum ResourcePhase {
    /// Not looked at yet.
    Pending,
    /// Its implementation is being made.
    Creating,
    /// Ready to be claimed.
    #[serde(alias = "Created")]
    Available,
    /// Held by at least one claim.
    Bound,
    /// Its last claim is gone; the reclaim policy decides.
    Released,
    /// Making or reclaiming it failed; the condition says why.
    Failed,
    /// It and its implementation are being deleted.
    Deleting,
}

/// `Created` is what the first manifests wrote for Available: read, never written.
fn also_created(schema: &mut Schema) {
    let created = json_schema!({"type": "string", "const": "Created"});
    if let Some(variants) = schema.get_mut("oneOf").and_then(|one_of| one_of.as_array_mut()) {
        variants.push(created.to_value());
    }
}
