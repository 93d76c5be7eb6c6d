//! `ClaimLimits`: how small and how large one claim of a namespace may be, as a LimitRange for claims.
//! Applying defaults and refusing are the limits plugin's.

use super::common::Quantities;
use super::status::ConfigStatus;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};

/// Bounds and defaults for the requests of each claim.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "conductor.io",
    version = "v1alpha1",
    kind = "ClaimLimits",
    plural = "claimlimits",
    singular = "claimlimits",
    shortname = "climits",
    category = "conductor",
    namespaced,
    status = "ConfigStatus",
    derive = "PartialEq",
    doc = "How small and how large one claim of the namespace may be, and what it asks for where it does not say.",
    printcolumn(name = "Min-Storage", type_ = "string", json_path = ".spec.min.storage"),
    printcolumn(name = "Max-Storage", type_ = "string", json_path = ".spec.max.storage"),
    printcolumn(name = "Default-Storage", type_ = "string", json_path = ".spec.default.storage"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.min) || has(self.max) || has(self.default)", "limits must limit something: give min, max or default"),
    validation = (
        "!has(self.min) || !has(self.max) || self.min.all(k, !(k in self.max) || quantity(string(self.min[k])).compareTo(quantity(string(self.max[k]))) <= 0)",
        "min must not exceed max",
    ),
    validation = (
        "!has(self.min) || !has(self.default) || self.default.all(k, !(k in self.min) || quantity(string(self.min[k])).compareTo(quantity(string(self.default[k]))) <= 0)",
        "default must not be below min",
    ),
    validation = (
        "!has(self.max) || !has(self.default) || self.default.all(k, !(k in self.max) || quantity(string(self.default[k])).compareTo(quantity(string(self.max[k]))) <= 0)",
        "default must not exceed max",
    )
)]
pub struct ClaimLimitsSpec {
    /// The least that a claim may request, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<Quantities>,
    /// The most that a claim may request, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<Quantities>,
    /// What a claim requests where it says nothing, by name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub default: Option<Quantities>,
}
