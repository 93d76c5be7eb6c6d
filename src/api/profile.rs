//! `SchedulingProfile`: which plugins run, how candidates are scored, and in which order the scheduler tries the ways to
//! satisfy a claim. Only the names of plugins and scores are here.

use super::common::{leave_description_to_field, null_as_default};
use super::status::ConfigStatus;
use kube::{CustomResource, KubeSchema};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

/// How the scheduler decides. Absent fields are as in the built-in profile.
#[skip_serializing_none]
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
    doc = "How the scheduler decides. The profile named default applies to all claims; the annotation conductor.io/scheduling-profile on a claim selects another.",
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
    /// Enables and disables plugins.
    pub plugins: Option<ProfilePlugins>,
    /// Scores of candidates. The highest weighted sum wins, ties go to the first name. Default: BestFit.
    #[schemars(length(max = 16))]
    #[schemars(extend("x-kubernetes-list-type" = "map", "x-kubernetes-list-map-keys" = ["name"]))]
    pub scores: Option<Vec<ProfileScore>>,
    /// Prefer the newest version that fits among equal candidates. Default false: the lowest.
    pub prefer_newest: Option<bool>,
    /// Ways to satisfy a claim, in the order to try them; others are not tried. Absent: existing and shared resources together by best fit, then provision.
    #[schemars(length(min = 1, max = 3), extend("x-kubernetes-list-type" = "set"))]
    pub order: Option<Vec<Way>>,
    /// How to decide claims that are pending together: greedy, one after another by priority and age, or optimal, so that most are satisfied.
    #[serde(default, deserialize_with = "null_as_default")]
    pub batch: BatchMode,
}

/// The plugins of a profile.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ProfilePlugins {
    /// Plugins to disable, by the name of their predicate, such as [Selector, Quota]. Plugins that protect data cannot be disabled.
    #[schemars(length(max = 64), inner(length(min = 1, max = 63)))]
    #[schemars(extend("x-kubernetes-list-type" = "set"))]
    pub disabled: Option<Vec<String>>,
}

/// A score and its weight.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "(self.name == 'LabelPreference') == (has(self.parameters) && has(self.parameters.labels) && size(self.parameters.labels) > 0)",
        "LabelPreference requires parameters.labels; no other score takes parameters",
    )
)]
pub struct ProfileScore {
    /// Name of the score.
    pub name: ScoreName,
    /// Weight in the sum of scores; 0 disables the score. Default 1.
    #[serde(default = "one")]
    #[schemars(range(min = 0, max = 1000))]
    pub weight: i32,
    /// Parameters of the score; LabelPreference requires labels, no other score has parameters.
    pub parameters: Option<ScoreParameters>,
}

fn one() -> i32 {
    1
}

/// The available scores.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum ScoreName {
    /// Prefer the resource with the least capacity left over.
    BestFit,
    /// Prefer the newest version.
    NewestVersion,
    /// Prefer the oldest version.
    OldestVersion,
    /// Prefer shared resources with the fewest claims.
    Spread,
    /// Prefer shared resources with the most claims.
    Pack,
    /// Prefer resources with the labels in `parameters`.
    LabelPreference,
}

/// Parameters of a score.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ScoreParameters {
    /// For LabelPreference: preferred labels with their weights.
    #[schemars(length(max = 32), extend("x-kubernetes-list-type" = "atomic"))]
    pub labels: Option<Vec<LabelWeight>>,
}

/// A preferred label, or an avoided one if its weight is negative.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct LabelWeight {
    /// Key of the label, such as disk.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// Required value of the label, such as ssd.
    #[schemars(length(max = 63))]
    pub value: String,
    /// Weight of the label; a negative weight avoids resources with it. Default 1.
    #[serde(default = "one")]
    #[schemars(range(min = -100, max = 100))]
    pub weight: i32,
}

/// A way to satisfy a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline, transform = leave_description_to_field)]
pub enum Way {
    /// Bind to a resource without claims.
    Existing,
    /// Bind to a shared resource that has other claims.
    Share,
    /// Provision a new resource from a class.
    Provision,
}

/// How to decide claims that are pending together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
#[schemars(inline, transform = leave_description_to_field)]
pub enum BatchMode {
    /// One after another, by priority and age.
    #[default]
    Greedy,
    /// Together, so that as many as possible are satisfied.
    Optimal,
}
