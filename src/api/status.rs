//! Shared by the statuses of all kinds: conditions, and the status of kinds that hold only configuration.
//! `reasons` defines the condition types and reasons.

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_with::skip_serializing_none;

pub use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

/// The schema of Kubernetes conditions, with descriptions that fit on a line.
pub fn conditions_schema(_: &mut SchemaGenerator) -> Schema {
    json_schema!({
        "type": "array",
        "maxItems": 16,
        "x-kubernetes-list-type": "map",
        "x-kubernetes-list-map-keys": ["type"],
        "items": {
            "type": "object",
            "required": ["type", "status", "lastTransitionTime", "reason", "message"],
            "properties": {
                "type": {
                    "description": "Type of the condition, such as Bound or Ready.",
                    "type": "string",
                    "maxLength": 316,
                },
                "status": {
                    "description": "Whether the condition holds: True, False or Unknown.",
                    "type": "string",
                    "enum": ["True", "False", "Unknown"],
                },
                "reason": {
                    "description": "Machine-readable reason for the status, such as NoMatch. docs/reference/conditions.md lists all reasons.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 1024,
                },
                "message": {
                    "description": "Explanation for people: what happened, to which object, and what to do.",
                    "type": "string",
                    "maxLength": 32768,
                },
                "lastTransitionTime": {
                    "description": "The time when the status last changed.",
                    "type": "string",
                    "format": "date-time",
                },
                "observedGeneration": {
                    "description": "The metadata.generation of the object that the condition describes.",
                    "type": "integer",
                    "format": "int64",
                    "minimum": 0,
                },
            },
        },
    })
}

/// The status of a kind that holds only configuration.
#[skip_serializing_none]
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
#[schemars(inline)]
pub struct ConfigStatus {
    /// Conditions. Conductor sets none; it reports an invalid spec as an Event with reason InvalidSpec.
    #[serde(default)]
    #[schemars(schema_with = "conditions_schema")]
    pub conditions: Option<Vec<Condition>>,
    /// The metadata.generation of the object that this status describes.
    pub observed_generation: Option<i64>,
}
