//! `RelationalDatabaseClass`: how a database is made when no existing one fits.
//! Configuration only, so neither spec nor status; how expressions are read is `template`'s business.

use super::common::{
    FreeForm, QuantityText, ReclaimPolicy, Sharing, VersionText, leave_description_to_field,
};
use super::template::{Template, Templates};
use kube::{CustomResource, KubeSchema};
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// A class as it is written: its fields at the top, or the same under `spec`.
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
    doc = "A kind of relational database that can be made on demand. Lives in the system namespace. The annotation conductor.io/is-default-class: \"true\" makes it the class of claims that name none.",
    validation = (
        "!has(self.spec) || !(has(self.reclaimPolicy) || has(self.template) || has(self.templates) || has(self.parameters) || has(self.sharing) || has(self.ready) || has(self.connection) || has(self.engine) || has(self.updatePolicy) || has(self.parameterSchema) || has(self.deadline) || has(self.allowedKinds) || has(self.capabilities) || has(self.highly__dash__available) || has(self.labels))",
        "write the fields at the top or under spec, not both",
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
    /// The fields at the top.
    #[serde(flatten)]
    pub fields: ClassFields,
    /// The second form: the same fields, here instead of at the top.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub spec: Option<ClassFields>,
}

impl RelationalDatabaseClassBody {
    /// The fields, in whichever form they were written; where both forms give one, `spec` has it.
    ///
    /// The API server refuses a mixture where its rules can see one; `version`, `versions` and
    /// `capacity` have open types, which rules cannot see, so a mixture of those may arrive here.
    pub fn effective(&self) -> ClassFields {
        match &self.spec {
            Some(spec) => spec.clone().or(self.fields.clone()),
            None => self.fields.clone(),
        }
    }
}

/// What a class says of the resources made from it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("!(has(self.template) && has(self.templates))", "give template or templates, not both")
)]
pub struct ClassFields {
    /// What becomes of its resources when their last claim is gone; absent means Retain.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reclaim_policy: Option<ReclaimPolicy>,
    /// The object that implements a resource. Values may be expressions: `${claim.spec.version}`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub template: Option<Template>,
    /// The objects that implement a resource, where one is not enough: created in the order of their references, deleted in reverse.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub templates: Option<Templates>,
    /// Values for the templates: `parameters` in expressions; a claim's own parameters come over them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<FreeForm>,
    /// What claims may choose by `parameters`: a JSON schema with defaults. Without one, anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameter_schema: Option<FreeForm>,
    /// How long making a resource may take, such as 30m, before it has failed for good and the claim's next class is tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 2, max = 32), regex(pattern = r"^([0-9]+(ms|s|m|h|d))+$"))]
    pub deadline: Option<String>,
    /// The kinds that its templates may make, as Kind.group; absent, whatever the installation allows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 317)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub allowed_kinds: Option<Vec<String>>,
    /// What a resource offers, by name: an amount, or the least, the most and the step of what a claim may ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 32))]
    pub capacity: Option<BTreeMap<String, ClassCapacity>>,
    /// How many claims may hold one resource, and from where; absent means one claim from anywhere.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sharing: Option<Sharing>,
    /// Expression over `object` that is true once the template's object is ready; absent, the adapter for its kind says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub ready: Option<String>,
    /// The connection, key by key: host, port, username, ... Values may be expressions over `objects`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<FreeForm>,
    /// The engine that it makes; absent, whichever the claim asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63), regex(pattern = r"\S"))]
    pub engine: Option<String>,
    /// More engines that it can make, or other names of what it makes: a claim gets the one that it asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 16), inner(length(min = 1, max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub engines: Option<Vec<String>>,
    /// The version that it makes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub version: Option<VersionText>,
    /// The versions that it can make; a claim gets the lowest that fits, unless the profile prefers the newest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 128), extend("x-kubernetes-list-type" = "atomic"))]
    pub versions: Option<Vec<VersionText>>,
    /// Whether a change of the class reaches the resources that were made from it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub update_policy: Option<UpdatePolicy>,
    /// What its resources can do; matched against a claim's requests. Absent, none, unless a template takes them from the claim.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 253)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub capabilities: Option<Vec<String>>,
    /// Whether its resources survive the loss of one machine or zone. Absent, no, unless a template takes it from the claim.
    #[serde(rename = "highly-available", default, skip_serializing_if = "Option::is_none")]
    pub highly_available: Option<bool>,
    /// Labels of its resources; matched against a claim's selector.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("maxProperties" = 64))]
    pub labels: Option<BTreeMap<String, String>>,
}

impl ClassFields {
    /// These fields, and those of `other` where these say nothing.
    fn or(self, other: ClassFields) -> ClassFields {
        let ClassFields {
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
            labels,
        } = self;
        ClassFields {
            reclaim_policy: reclaim_policy.or(other.reclaim_policy),
            template: template.or(other.template),
            templates: templates.or(other.templates),
            parameters: parameters.or(other.parameters),
            parameter_schema: parameter_schema.or(other.parameter_schema),
            deadline: deadline.or(other.deadline),
            allowed_kinds: allowed_kinds.or(other.allowed_kinds),
            capacity: capacity.or(other.capacity),
            sharing: sharing.or(other.sharing),
            ready: ready.or(other.ready),
            connection: connection.or(other.connection),
            engine: engine.or(other.engine),
            engines: engines.or(other.engines),
            version: version.or(other.version),
            versions: versions.or(other.versions),
            update_policy: update_policy.or(other.update_policy),
            capabilities: capabilities.or(other.capabilities),
            highly_available: highly_available.or(other.highly_available),
            labels: labels.or(other.labels),
        }
    }
}

/// Whether a change of the class reaches what was made from it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum UpdatePolicy {
    /// Existing resources stay as they were made.
    #[default]
    Never,
    /// Existing resources follow the class.
    Follow,
}

/// What a class offers of one capacity.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ClassCapacity {
    /// Every resource has this much.
    Exactly(QuantityText),
    /// As much as the claim asks for, within bounds.
    Range(CapacityRange),
}

/// Bounds of what a claim may ask of a class.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CapacityRange {
    /// The least that is made, also where the claim asks for less or nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<QuantityText>,
    /// The most that is made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<QuantityText>,
    /// Requests are rounded up to a multiple of this above the least.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub step: Option<QuantityText>,
}

// "A quantity or an object" has no structural schema: the type stays open and only lists and booleans
// are shut out. The controller tells of the rest.
impl JsonSchema for ClassCapacity {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "ClassCapacity".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "x-kubernetes-preserve-unknown-fields": true,
            "minLength": 1,
            "maxLength": 64,
            "minimum": 0,
            "maxItems": 0,
            "maxProperties": 3,
            "not": {"enum": [true, false]},
        })
    }
}
