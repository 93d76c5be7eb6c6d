//! Implementation objects inside resources and classes, as written. `template` compiles and orders them.

use super::common::inline_schema;
use kube::KubeSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use serde_with::skip_serializing_none;

/// The manifest of an implementation object: `apiVersion`, `kind`, and the fields of that kind.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Template(pub Map<String, Value>);

// Not an `x-kubernetes-embedded-resource`: the API server would validate its metadata, and refuse expressions and older
// manifests (`metadata: {label: foo}`).
inline_schema!(Template, |_| {
    "type": "object",
    "x-kubernetes-preserve-unknown-fields": true,
    "properties": {
        "apiVersion": {
            "description": "API group and version of the implementation, such as database.example.com/v1. Expressions are not allowed here.",
            "type": "string",
            "minLength": 1,
            "maxLength": 317,
        },
        "kind": {
            "description": "Kind of the implementation, such as RDSInstance. Expressions are not allowed here.",
            "type": "string",
            "minLength": 1,
            "maxLength": 63,
        },
    },
    "required": ["apiVersion", "kind"],
    "x-kubernetes-validations": [{
        "rule": "!self.apiVersion.contains('${') && !self.kind.contains('${')",
        "message": "apiVersion and kind must not contain expressions",
    }],
});

/// One of several objects that implement a resource together.
#[skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "!(self.id in ['true', 'false', 'null', 'in', 'as', 'break', 'const', 'continue', 'else', 'for', 'function', 'if', 'import', 'let', 'loop', 'package', 'namespace', 'return', 'var', 'void', 'while'])",
        "id is a reserved word in expressions",
    )
)]
pub struct TemplateEntry {
    /// Name of the object in expressions: `objects.<id>`, such as objects.network.status.id for the id network.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-zA-Z_][a-zA-Z0-9_]*$"))]
    pub id: String,
    /// CEL expression; if it is false, the object is not created. Example: has(claim.spec.exclusive). Absent: always created.
    #[schemars(length(max = 4096))]
    pub when: Option<String>,
    /// CEL expression over `object` that is true when the object is ready. Default: the adapter for its kind, then its Ready condition or phase.
    #[schemars(length(max = 4096))]
    pub ready: Option<String>,
    /// Manifest of the object. Values can be CEL expressions, ${...}; references to other objects determine the order of creation.
    pub template: Template,
}

/// Several implementation objects, distinguished by `id`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Templates(pub Vec<TemplateEntry>);

inline_schema!(Templates, |generator| {
    "type": "array",
    "items": generator.subschema_for::<TemplateEntry>(),
    "minItems": 1,
    "maxItems": 64,
    "x-kubernetes-list-type": "map",
    "x-kubernetes-list-map-keys": ["id"],
});
