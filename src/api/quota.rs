//! `ClaimQuota` and `ClusterClaimQuota`: limits on the total of claims in one namespace, or in several together.
//! The quota plugin counts and reserves.

use super::common::Quantities;
use super::selector::LabelSelector;
use super::status::{Condition, conditions_schema};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// Limits on the claims of the namespace.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "conductor.io",
    version = "v1alpha1",
    kind = "ClaimQuota",
    plural = "claimquotas",
    singular = "claimquota",
    shortname = "cquota",
    category = "conductor",
    namespaced,
    status = "QuotaStatus",
    derive = "PartialEq",
    doc = "Limits the total of the claims in a namespace. A claim over quota stays Pending with reason QuotaExceeded and does not block other claims.",
    printcolumn(name = "Used", type_ = "string", json_path = ".status.summary"),
    printcolumn(
        name = "Claims-Used",
        type_ = "integer",
        json_path = ".status.used[0].claims",
        description = "Number of claims that count towards the first limit.",
        priority = 1
    ),
    printcolumn(
        name = "Claims-Limit",
        type_ = "integer",
        json_path = ".spec.limits[0].claims",
        description = "Maximum number of claims of the first limit.",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClaimQuotaSpec {
    /// The limits. A claim must fit within every limit that covers it.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub limits: Vec<QuotaLimit>,
}

/// Limits on the claims of several namespaces together.
#[skip_serializing_none]
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[kube(
    group = "conductor.io",
    version = "v1alpha1",
    kind = "ClusterClaimQuota",
    plural = "clusterclaimquotas",
    singular = "clusterclaimquota",
    shortname = "ccquota",
    category = "conductor",
    status = "QuotaStatus",
    derive = "PartialEq",
    doc = "Limits the total of the claims in several namespaces together. A claim over quota stays Pending with reason QuotaExceeded and does not block other claims.",
    printcolumn(name = "Used", type_ = "string", json_path = ".status.summary"),
    printcolumn(
        name = "Claims-Used",
        type_ = "integer",
        json_path = ".status.used[0].claims",
        description = "Number of claims that count towards the first limit.",
        priority = 1
    ),
    printcolumn(
        name = "Claims-Limit",
        type_ = "integer",
        json_path = ".spec.limits[0].claims",
        description = "Maximum number of claims of the first limit.",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClusterClaimQuotaSpec {
    /// Selects the namespaces to count together by their labels. Absent or empty: all namespaces.
    pub namespace_selector: Option<LabelSelector>,
    /// The limits. A claim must fit within every limit that covers it.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub limits: Vec<QuotaLimit>,
}

/// One limit: the claims that it covers and their maximum.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "has(self.claims) || (has(self.requests) && size(self.requests) > 0)",
        "set claims, requests, or both",
    )
)]
pub struct QuotaLimit {
    /// Cover only claims of this class; the empty string covers claims without a class. Absent: claims of any class.
    #[schemars(length(max = 253))]
    pub class: Option<String>,
    /// Cover only claims for this engine, such as postgresql. Absent: any engine.
    #[schemars(length(min = 1, max = 63))]
    pub engine: Option<String>,
    /// Maximum number of claims that are bound or being provisioned.
    #[schemars(range(min = 0))]
    pub claims: Option<i64>,
    /// Maximum sum of requests, by capacity name, such as {storage: 500Gi}. A capacity that a claim does not request counts whole if it has the resource alone.
    pub requests: Option<Quantities>,
}

/// Usage of a quota.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct QuotaStatus {
    /// Usage of each limit, in the order of spec.limits.
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub used: Option<Vec<QuotaUse>>,
    /// Usage and limits on one line, such as `claims 3/5, storage 60Gi/100Gi`.
    #[schemars(length(max = 4096))]
    pub summary: Option<String>,
    /// Conditions. Conductor sets none; it reports an invalid spec as an Event with reason InvalidSpec.
    #[serde(default)]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
    /// The metadata.generation of the object that this status describes.
    pub observed_generation: Option<i64>,
}

/// Usage of one limit.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct QuotaUse {
    /// Class that the limit covers.
    #[schemars(length(max = 253))]
    pub class: Option<String>,
    /// Engine that the limit covers.
    #[schemars(length(max = 63))]
    pub engine: Option<String>,
    /// Number of claims that are bound, about to be bound or being provisioned.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub claims: i64,
    /// Sum of their requests, by capacity name.
    pub requests: Option<Quantities>,
}
