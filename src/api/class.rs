//! `RelationalDatabaseClass`: how to provision a database when no existing one fits.
//! Configuration only, so it has neither spec nor status. `template` compiles its expressions.

use super::common::{
    FreeForm, QuantityText, ReclaimPolicy, Sharing, VersionText, inline_schema, leave_description_to_field,
};
use super::template::{Template, Templates};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// A class as written: its fields at the top level, or the same fields under `spec`.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "storage.conductor.io",
    version = "v1alpha1",
    kind = "RelationalDatabaseClass",
    plural = "relationaldatabaseclasses",
    singular = "relationaldatabaseclass",
    shortname = "rdbclass",
    category = "conductor",
    namespaced,
    no_spec,
    derive = "PartialEq",
    doc = "A class of relational databases that Conductor can provision. Lives in the system namespace. The annotation conductor.io/is-default-class: \"true\" makes it the default for claims without a class.",
    validation = (
        "!has(self.spec) || !(has(self.reclaimPolicy) || has(self.template) || has(self.templates) || has(self.parameters) || has(self.sharing) || has(self.ready) || has(self.connection) || has(self.engine) || has(self.updatePolicy) || has(self.parameterSchema) || has(self.deadline) || has(self.allowedKinds) || has(self.capabilities) || has(self.highly__dash__available) || has(self.labels))",
        "set the fields at the top level or under spec, not both",
    ),
    printcolumn(name = "Reclaim", type_ = "string", json_path = ".reclaimPolicy"),
    printcolumn(
        name = "Default",
        type_ = "string",
        json_path = r".metadata.annotations.conductor\.io/is-default-class"
    ),
    printcolumn(name = "Engine", type_ = "string", json_path = ".engine"),
    printcolumn(name = "Implementation", type_ = "string", json_path = ".template.kind", priority = 1),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
pub struct RelationalDatabaseClassBody {
    /// The fields at the top level.
    #[serde(flatten)]
    pub fields: ClassFields,
    /// Alternative place for all fields of the class, instead of the top level.
    pub spec: Option<ClassFields>,
}

impl RelationalDatabaseClassBody {
    /// The fields of the class, in either form. Fields under `spec` take precedence.
    ///
    /// The API server refuses both forms in one object, except for `version`, `versions` and `capacity`: these have open
    /// types, which CEL rules cannot see.
    pub fn effective(&self) -> ClassFields {
        match &self.spec {
            Some(spec) => spec.clone().or(self.fields.clone()),
            None => self.fields.clone(),
        }
    }
}

/// The fields of a class: what it provisions, and what the resources offer.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!(has(self.template) && has(self.templates))", "set template or templates, not both")
)]
pub struct ClassFields {
    /// What happens to its resources when their last claim is deleted: Retain keeps them, Delete deletes them and their data. Default Retain.
    pub reclaim_policy: Option<ReclaimPolicy>,
    /// Manifest of the object that implements a resource. Values can be CEL expressions, such as `${claim.spec.version}`.
    pub template: Option<Template>,
    /// Objects that implement a resource together: created in the order of their references, deleted in reverse. Cannot be combined with template.
    pub templates: Option<Templates>,
    /// Values for the templates, available as `parameters` in expressions. The parameters of a claim override them.
    pub parameters: Option<FreeForm>,
    /// JSON schema with defaults for the parameters of claims. Absent: claims can set any parameter.
    pub parameter_schema: Option<FreeForm>,
    /// Maximum time for provisioning a resource, such as 30m. After it the resource is Failed and the next class of the claim is tried. Absent: no limit.
    #[schemars(length(min = 2, max = 32), regex(pattern = r"^([0-9]+(ms|s|m|h|d))+$"))]
    pub deadline: Option<String>,
    /// Kinds that its templates can create, as Kind.group, such as [Cluster.postgresql.cnpg.io]. Absent: all kinds that the installation allows.
    #[schemars(length(max = 64), inner(length(min = 1, max = 317)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub allowed_kinds: Option<Vec<String>>,
    /// Capacity of a resource by name: a quantity such as 10Gi, or the range that claims can request, such as {min: 1Gi, max: 100Gi, step: 1Gi}.
    #[schemars(extend("maxProperties" = 32))]
    pub capacity: Option<BTreeMap<String, ClassCapacity>>,
    /// How many claims can share one resource, and from which namespaces. Default: one claim, from any namespace.
    pub sharing: Option<Sharing>,
    /// CEL expression over `object` that is true when the object of template is ready. Default: the adapter for its kind, then its Ready condition or phase.
    #[schemars(length(max = 4096))]
    pub ready: Option<String>,
    /// Connection by key: host, port, username and others. Values can be CEL expressions over `objects`. Default: the adapter for the kind.
    pub connection: Option<FreeForm>,
    /// Engine of its resources, such as postgresql. Absent, without engines: the engine that the claim requests.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"\S"))]
    pub engine: Option<String>,
    /// Further engines that it can provision, or further names of its engine. A claim gets the one that it requests.
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub engines: Option<Vec<String>>,
    /// Version of its resources, such as "16.2".
    pub version: Option<VersionText>,
    /// Versions that it can provision, such as ["15.6", "16.2"]. A claim gets the first that it accepts.
    #[schemars(length(min = 1, max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    pub versions: Option<Vec<VersionText>>,
    /// Whether changes of the class apply to its existing resources: Never or Follow. Default Never.
    pub update_policy: Option<UpdatePolicy>,
    /// Capabilities of its resources, matched against spec.requests of claims. Absent: none, unless a template copies them from the claim.
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub capabilities: Option<Vec<String>>,
    /// Whether its resources survive the loss of a machine or zone. Absent: no, unless a template copies it from the claim.
    #[serde(rename = "highly-available")]
    pub highly_available: Option<bool>,
    /// Labels of its resources, such as {tier: gold}, matched against the selector of claims.
    #[schemars(extend("maxProperties" = 64))]
    pub labels: Option<BTreeMap<String, String>>,
}

impl ClassFields {
    /// These fields, and those of `other` that are absent here.
    fn or(self, other: ClassFields) -> ClassFields {
        macro_rules! first_of {
            ($($field:ident),*) => { ClassFields { $($field: self.$field.or(other.$field)),* } };
        }
        first_of!(
            reclaim_policy,
            template,
            templates,
            parameters,
            parameter_schema,
            deadline,
            allowed_kinds,
            capacity,
            sharing,
            ready,
            connection,
            engine,
            engines,
            version,
            versions,
            update_policy,
            capabilities,
            highly_available,
            labels
        )
    }
}

/// Whether changes of a class apply to its existing resources.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum UpdatePolicy {
    /// Existing resources stay as they are.
    #[default]
    Never,
    /// Existing resources are updated with the class.
    Follow,
}

/// How much of one capacity a class offers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ClassCapacity {
    /// Every resource has this quantity.
    Exactly(QuantityText),
    /// The quantity that the claim requests, within this range.
    Range(CapacityRange),
}

/// The range of a capacity that claims can request of a class.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CapacityRange {
    /// The minimum, also for a claim that requests less or nothing.
    pub min: Option<QuantityText>,
    /// The maximum.
    pub max: Option<QuantityText>,
    /// Requests are rounded up to `min` plus a multiple of this.
    pub step: Option<QuantityText>,
}

// A structural schema cannot say "a quantity or an object": the type stays open and only lists and booleans are excluded.
// The controller refuses the rest.
inline_schema!(ClassCapacity, |_| {
    "x-kubernetes-preserve-unknown-fields": true,
    "minLength": 1,
    "maxLength": 64,
    "minimum": 0,
    "maxItems": 0,
    "maxProperties": 3,
    "not": {"enum": [true, false]},
});
