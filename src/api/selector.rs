//! Label selectors as users write them: the shape of Kubernetes' LabelSelector with the limits that a schema can check.
//! `model::selector` matches them.

use super::common::leave_description_to_field;
use kube::KubeSchema;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;
use std::collections::BTreeMap;

/// Requirements on labels, combined with AND. An empty selector matches every object.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline, extend("x-kubernetes-map-type" = "atomic"))]
pub struct LabelSelector {
    /// Labels and their required values, such as {environment: dev}.
    #[schemars(extend("maxProperties" = 64))]
    pub match_labels: Option<BTreeMap<String, String>>,
    /// Requirements on labels, combined with AND, such as [{key: tier, operator: In, values: [gold]}].
    #[schemars(length(max = 64), extend("x-kubernetes-list-type" = "atomic"))]
    pub match_expressions: Option<Vec<LabelRequirement>>,
}

/// A requirement on one label.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "(self.operator in ['In', 'NotIn']) == (has(self.values) && size(self.values) > 0)",
        "In and NotIn need values; Exists and DoesNotExist take none",
    )
)]
pub struct LabelRequirement {
    /// Key of the label, such as environment.
    #[schemars(length(min = 1, max = 317))]
    pub key: String,
    /// How the label is compared with the values: In, NotIn, Exists or DoesNotExist.
    pub operator: Operator,
    /// The values to compare with; required for In and NotIn, forbidden for Exists and DoesNotExist.
    #[schemars(length(max = 256), inner(length(max = 63)), extend("x-kubernetes-list-type" = "atomic"))]
    pub values: Option<Vec<String>>,
}

/// How a requirement compares a label with its values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[schemars(inline, transform = leave_description_to_field)]
pub enum Operator {
    /// The label has one of the values.
    In,
    /// The label is absent or has none of the values.
    NotIn,
    /// The label is present.
    Exists,
    /// The label is absent.
    DoesNotExist,
}

impl Operator {
    /// Every operator.
    pub const ALL: [Operator; 4] = [Operator::In, Operator::NotIn, Operator::Exists, Operator::DoesNotExist];

    /// The name as in a manifest.
    pub fn name(self) -> &'static str {
        match self {
            Operator::In => "In",
            Operator::NotIn => "NotIn",
            Operator::Exists => "Exists",
            Operator::DoesNotExist => "DoesNotExist",
        }
    }

    /// Whether the operator compares the label with values.
    pub fn takes_values(self) -> bool {
        match self {
            Operator::In | Operator::NotIn => true,
            Operator::Exists | Operator::DoesNotExist => false,
        }
    }
}
