//! `ClaimQuota` and `ClusterClaimQuota`: how much a namespace, or several together, may claim.
//! Counting and reserving are the quota plugin's.

use super::common::Quantities;
use super::selector::LabelSelector;
use super::status::{Condition, conditions_schema};
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the claims of the namespace may take.
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
    doc = "How much the claims of a namespace may take. A claim over quota stays Pending and hinders no other.",
    printcolumn(name = "Used", type_ = "string", json_path = ".status.summary"),
    printcolumn(
        name = "Claims-Used",
        type_ = "integer",
        json_path = ".status.used[0].claims",
        description = "Claims counted under the first limit.",
        priority = 1
    ),
    printcolumn(
        name = "Claims-Limit",
        type_ = "integer",
        json_path = ".spec.limits[0].claims",
        description = "Claims allowed by the first limit.",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClaimQuotaSpec {
    /// The limits; a claim must keep every one that covers it.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub limits: Vec<QuotaLimit>,
}

/// What the claims of several namespaces may take together.
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
    doc = "How much the claims of several namespaces may take together.",
    printcolumn(name = "Used", type_ = "string", json_path = ".status.summary"),
    printcolumn(
        name = "Claims-Used",
        type_ = "integer",
        json_path = ".status.used[0].claims",
        description = "Claims counted under the first limit.",
        priority = 1
    ),
    printcolumn(
        name = "Claims-Limit",
        type_ = "integer",
        json_path = ".spec.limits[0].claims",
        description = "Claims allowed by the first limit.",
        priority = 1
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ClusterClaimQuotaSpec {
    /// The namespaces that are counted together, by their labels; absent or empty means all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace_selector: Option<LabelSelector>,
    /// The limits; a claim must keep every one that covers it.
    #[schemars(length(min = 1, max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub limits: Vec<QuotaLimit>,
}

/// One limit: which claims it covers, and how much they may take.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "has(self.claims) || (has(self.requests) && size(self.requests) > 0)",
        "a limit must limit something: give claims, requests, or both",
    )
)]
pub struct QuotaLimit {
    /// Covers claims of this class only; empty covers classless claims; absent covers any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub class: Option<String>,
    /// Covers claims for this engine only; absent covers any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 63))]
    pub engine: Option<String>,
    /// The most claims that may be bound or on their way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0))]
    pub claims: Option<i64>,
    /// The most that claims may request together, by name; what one has to itself without a request counts as well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Quantities>,
}

/// What is used of a quota.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct QuotaStatus {
    /// Use and limit of each entry, in the order of the spec.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub used: Option<Vec<QuotaUse>>,
    /// The same on one line, for `kubectl get`: `3/5 claims, 60Gi/100Gi storage`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub summary: Option<String>,
    /// `Accepted`: whether the quota could be read and is in force.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
    /// The generation that this status speaks of.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_generation: Option<i64>,
}

/// What is used of one limit.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct QuotaUse {
    /// The limit's class.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 253))]
    pub class: Option<String>,
    /// The limit's engine.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 63))]
    pub engine: Option<String>,
    /// Claims bound, assumed or provisioning.
    #[serde(default)]
    #[schemars(range(min = 0))]
    pub claims: i64,
    /// What they request together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<Quantities>,
}
