//! `ClaimLimits`: minimum, maximum and default requests of each claim in a namespace, as a LimitRange for claims.
//! The limits plugin applies them.

use super::common::Quantities;
use super::status::ConfigStatus;
use kube::{CustomResource, KubeSchema};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Minimum, maximum and default requests of each claim in the namespace.
#[skip_serializing_none]
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
    doc = "Minimum, maximum and default requests of each claim in a namespace, as a LimitRange for claims. A claim outside the limits stays Pending with reason LimitsExceeded.",
    printcolumn(name = "Min-Storage", type_ = "string", json_path = ".spec.min.storage"),
    printcolumn(name = "Max-Storage", type_ = "string", json_path = ".spec.max.storage"),
    printcolumn(name = "Default-Storage", type_ = "string", json_path = ".spec.default.storage"),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = ("has(self.min) || has(self.max) || has(self.default)", "set at least one of min, max and default"),
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
    /// Minimum that a claim can request, by capacity name, such as {storage: 1Gi}.
    pub min: Option<Quantities>,
    /// Maximum that a claim can request, by capacity name, such as {storage: 100Gi, connections: 200}.
    pub max: Option<Quantities>,
    /// Request of a claim that does not set one, by capacity name, such as {storage: 10Gi}.
    pub default: Option<Quantities>,
}
