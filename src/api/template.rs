//! Implementation objects inside resources and classes, as they are written.
//! Reading their expressions and ordering them is the `template` room's.

use kube::KubeSchema;
use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::borrow::Cow;

/// An implementation object: `apiVersion`, `kind`, and the rest as its kind wants it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Template(pub Map<String, Value>);

// Not an `x-kubernetes-embedded-resource`: the API server would then check its metadata, and refuse
// what an expression or an older manifest (`metadata: {label: foo}`) may rightly hold.
impl JsonSchema for Template {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Template".into()
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "object",
            "x-kubernetes-preserve-unknown-fields": true,
            "properties": {
                "apiVersion": {
                    "description": "Group and version of the implementation's kind. No expression may stand here.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 317,
                },
                "kind": {
                    "description": "The implementation's kind. No expression may stand here.",
                    "type": "string",
                    "minLength": 1,
                    "maxLength": 63,
                },
            },
            "required": ["apiVersion", "kind"],
            "x-kubernetes-validations": [{
                "rule": "!self.apiVersion.contains('${') && !self.kind.contains('${')",
                "message": "apiVersion and kind are fixed: no expression may stand there",
            }],
        })
    }
}

/// One of several implementation objects that make up a resource.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, KubeSchema)]
#[serde(rename_all = "camelCase")]
#[x_kube(
    validation = (
        "!(self.id in ['true', 'false', 'null', 'in', 'as', 'break', 'const', 'continue', 'else', 'for', 'function', 'if', 'import', 'let', 'loop', 'package', 'namespace', 'return', 'var', 'void', 'while'])",
        "id is a reserved word in expressions",
    )
)]
pub struct TemplateEntry {
    /// Name of the object in expressions: `objects.<id>`.
    #[schemars(length(min = 1, max = 63), regex(pattern = r"^[a-zA-Z_][a-zA-Z0-9_]*$"))]
    pub id: String,
    /// Expression; where it is false, the object is left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub when: Option<String>,
    /// Expression over `object` that is true once the object is ready.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(length(max = 4096))]
    pub ready: Option<String>,
    /// The object. Its values may be expressions, `${...}`; references to other objects give the order.
    pub template: Template,
}

/// Several implementation objects, told apart by `id`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Templates(pub Vec<TemplateEntry>);

impl JsonSchema for Templates {
    fn inline_schema() -> bool {
        true
    }

    fn schema_name() -> Cow<'static, str> {
        "Templates".into()
    }

    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "array",
            "items": generator.subschema_for::<TemplateEntry>(),
            "minItems": 1,
            "maxItems": 64,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["id"],
        })
    }
}
