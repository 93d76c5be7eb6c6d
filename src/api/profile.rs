//! `SchedulingProfile`: what the scheduler prefers, and in which order it tries.
//! The plugins and scores themselves are `framework`'s and `plugins`'; here are only their names.

use super::common::{leave_description_to_field, null_as_default};
use super::status::ConfigStatus;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// What the scheduler prefers. What is absent is as in the built-in profile.
#[derive(CustomResource, Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[kube(
    group = "conductor.io",
    version = "v1alpha1",
    kind = "SchedulingProfile",
    plural = "schedulingprofiles",
    singular = "schedulingprofile",
    shortname = "cprofile",
    category = "conductor",
    status = "ConfigStatus",
    derive = "PartialEq",
    doc = "What the scheduler prefers, and in which order it tries. The one named default applies everywhere; the annotation conductor.io/scheduling-profile on a claim names another.",
    printcolumn(name = "Batch", type_ = "string", json_path = ".spec.batch"),
    printcolumn(name = "Order", type_ = "string", json_path = ".spec.order"),
    printcolumn(name = "Prefer-Newest", type_ = "boolean", json_path = ".spec.preferNewest"),
    printcolumn(
        name = "Accepted",
        type_ = "string",
        json_path = r#".status.conditions[?(@.type=="Accepted")].status"#
    ),
    printcolumn(name = "Age", type_ = "date", json_path = ".metadata.creationTimestamp")
)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "!has(self.scores) || !(self.scores.exists(s, s.name == 'NewestVersion') && self.scores.exists(s, s.name == 'OldestVersion'))",
        "NewestVersion and OldestVersion contradict each other",
    ),
    validation = (
        "!has(self.preferNewest) || !self.preferNewest || !has(self.scores) || !self.scores.exists(s, s.name == 'OldestVersion')",
        "preferNewest and OldestVersion contradict each other",
    )
)]
pub struct SchedulingProfileSpec {
    /// Which plugins take part.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub plugins: Option<ProfilePlugins>,
    /// What makes one fitting resource better than another; the weighted sum decides, then the name.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub scores: Option<Vec<ProfileScore>>,
    /// Among equals take the newest version that fits instead of the lowest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prefer_newest: Option<bool>,
    /// The ways to serve a claim, in the order in which they are tried; one left out is not tried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(min = 1, max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub order: Option<Vec<Way>>,
    /// How claims that wait together are decided.
    #[serde(default, deserialize_with = "null_as_default")]
    pub batch: BatchMode,
}

/// Which plugins take part.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ProfilePlugins {
    /// Plugins that are not asked, by the name of their predicate, such as Selector or Quota.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub disabled: Option<Vec<String>>,
}

/// One score and what it counts.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "(self.name == 'LabelPreference') == (has(self.parameters) && has(self.parameters.labels) && size(self.parameters.labels) > 0)",
        "LabelPreference needs parameters.labels, and no other score takes them",
    )
)]
pub struct ProfileScore {
    /// The score.
    pub name: ScoreName,
    /// How much it counts beside the others; 0 turns it off.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1000))]
    pub weight: i32,
    /// What the score needs to know.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<ScoreParameters>,
}

fn one() -> i32 {
    1
}

/// The scores there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum ScoreName {
    /// Least capacity left over.
    BestFit,
    /// The newest version that fits.
    NewestVersion,
    /// The oldest version that fits.
    OldestVersion,
    /// Shared resources with the fewest claims.
    Spread,
    /// Shared resources with the most claims.
    Pack,
    /// Resources with the labels in `parameters`.
    LabelPreference,
}

/// What a score needs to know.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ScoreParameters {
    /// For LabelPreference: the labels that are liked, and how much.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub labels: Option<Vec<LabelWeight>>,
}

/// A label that is liked, or with a negative weight avoided.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct LabelWeight {
    /// The label.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// The value that it must have.
    #[schemars(length(max = 63))]
    pub value: String,
    /// How much it counts; below zero the label is avoided.
    #[serde(default = "one")]
    #[schemars(range(min = -100, max = 100))]
    pub weight: i32,
}

/// A way to serve a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline, transform = leave_description_to_field)]
pub enum Way {
    /// A resource that nobody holds.
    Existing,
    /// A shared resource that others hold already.
    Share,
    /// A new resource from a class.
    Provision,
}

/// How claims that wait together are decided.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline, transform = leave_description_to_field)]
pub enum BatchMode {
    /// One after another, by priority and time.
    #[default]
    Greedy,
    /// Together, so that as many as possible are served.
    Optimal,
}
